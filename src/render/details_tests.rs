use super::*;
use crate::model::sample;
use crate::render::document::terminal;
use crate::render::style::Style;

fn rendered(id: &str, width: Option<usize>, color: bool) -> Option<String> {
    let style = Style { width, color };
    document(&sample::sample(), id).map(|site| terminal::text(&site, &style))
}

/// A site with everything, a sampled one, a hostile one; ids match in any case.
#[test]
fn sites_are_shown_whole() {
    let sites = [("S1", Some(100)), ("s3", Some(80)), ("S7", None)];
    let sites = sites.map(|(id, width)| rendered(id, width, false).expect("a site"));
    insta::assert_snapshot!(sites.join("\n"));
}

/// Two streams, one with work that is not read; a rank that comes late; a GPU that had nothing to do.
#[test]
fn a_site_says_what_it_waited_for() {
    let text = rendered("S6", Some(120), false).expect("S6 is a site");
    let from = text.find("what it waited for").expect("a section");
    let section = text[from..].split("\n\n").next().unwrap_or_default();
    insta::assert_snapshot!(section);
}

#[test]
fn colour_adds_codes_and_nothing_else() {
    for id in ["S1", "S2", "S4", "S5", "S6"] {
        let plain = rendered(id, Some(100), false).expect("a site");
        let colored = rendered(id, Some(100), true).expect("a site");
        assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
    }
}

#[test]
fn a_replayed_site_says_what_was_measured() {
    let mut report = sample::sample();
    report.sites[0].replayed = Some(sample::replayed());
    let site = document(&report, "S1").expect("a site");
    let text = terminal::text(&site, &Style::default());
    let line = text.lines().find(|line| line.contains("measured")).expect("a line");
    assert_eq!(
        line.trim(),
        "measured    58.2 µs of a stretch of 4.62 ms (1.3 %), between 55.2 µs and 61.2 µs, replayed on NVIDIA \\x1b[31mH200; predicted: 61.6 µs"
    );
}

#[test]
fn an_unknown_id_prints_nothing() {
    assert_eq!(rendered("S99", None, false), None);
}

#[test]
fn bars_scale() {
    assert_eq!(bar(0, 8, 4), "");
    assert_eq!(bar(1, u64::MAX, 4), "▏");
    assert_eq!(bar(4, 8, 4), "██");
    assert_eq!(bar(u64::MAX, u64::MAX, 2), "██");
}
