use super::*;

const PLAIN: Style = Style { width: Some(80), color: false };

fn page(id: &str, style: Style) -> String {
    terminal::text(&pattern(catalogue::by_id(id).expect("a known id")), &style)
}

#[test]
fn one_entry_has_all_its_parts() {
    let text = page("C03", PLAIN);
    let call = "cuStreamSynchronize";
    for part in ["C03", "Device movement", "avoidable, H2D copy", call, "  - loader", "  + loader", "mind"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains('\x1b'));
    assert!(page("C03", Style { color: true, ..PLAIN }).contains("\x1b["));
}

#[test]
fn an_entry_says_what_came_of_running_its_pair() {
    let wide = Style { width: Some(400), color: false };
    let ran = page("A01", wide);
    assert!(ran.contains("4 waits → 0 in 4 steps, values equal (loss_sum)"), "{ran}");
    assert!(ran.contains("run on PyTorch 2.11.0, NVIDIA H200"), "{ran}");
    let later = page("D01", wide);
    assert!(later.contains("blocked for ") && !later.contains("waits →"), "{later}");
    let compared = page("A16", wide);
    assert!(compared.contains("values not compared; what is shown"), "{compared}");
    let cuda = page("K01", wide);
    assert!(cuda.contains("not run: CUDA C++"), "{cuda}");
    let known = page("C08", wide);
    assert!(known.contains("0 waits → 0"), "{known}");
    assert!(!page("H01", wide).contains("pair "), "no pair, no line");
    let listed = terminal::text(&list(), &wide);
    for (id, word) in [("A01", "4 → 0"), ("D01", "later"), ("K01", "not run")] {
        let line = listed.lines().find(|line| line.contains(id)).unwrap_or_default();
        assert!(line.contains(word), "{line}");
    }
}

#[test]
fn prose_keeps_to_the_width() {
    for width in [60, 100] {
        let style = Style { width: Some(width), color: false };
        for blocks in catalogue::all().map(pattern).chain(rules::all().map(rule)) {
            let text = terminal::text(&blocks, &style);
            let too_long = text.lines().find(|line| !line.starts_with("  ") && text::width(line) > width);
            assert_eq!(too_long, None, "{text}");
        }
    }
}

#[test]
fn the_lists_have_every_entry() {
    let style = Style { width: Some(120), color: false };
    let text = terminal::text(&list(), &style);
    for p in catalogue::all() {
        assert!(text.contains(p.id.as_str()) && text.contains(p.title), "{}", p.id);
    }
    assert!(text.starts_with("1. Explicit synchronisation"));
    let text = terminal::text(&list_rules(), &style);
    for rule in rules::all() {
        assert!(text.contains(rule.id.as_str()) && text.contains(rule.id.title()), "{}", rule.id);
    }
}

#[test]
fn a_rule_has_all_its_parts() {
    let parts = |id, parts: &[&str]| {
        let wide = Style { width: Some(200), color: false };
        let text = terminal::text(&rule(rules::row(id).expect("a known rule")), &wide);
        for part in parts {
            assert!(text.contains(part), "{part} in\n{text}");
        }
    };
    parts(
        RuleId::R05,
        &["R05  nothing was pending", " %  (", "unless it says barrier", "stream 7", "comes after"],
    );
    parts(
        RuleId::S07,
        &[" %  (", "x.norm().item()", "what the trace proves, in cases of 65 % and more: R23, R13"],
    );
    parts(RuleId::X11, &["the share of labelled reads", "log_metrics"]);
    parts(RuleId::Collective, &["collective  a collective was awaited"]);
}
