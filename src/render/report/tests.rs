use super::*;
use crate::model::{ProfileInfo, sample};
use crate::render::document::{markdown, terminal};
use crate::render::markdown_text::COMMENT;
use crate::render::style::Style;

fn rendered(report: &Report, width: Option<usize>, color: bool) -> String {
    terminal::text(&document(report, Form::Wide, None), &Style { width, color })
}

fn reviewed(report: &Report, limit: usize) -> String {
    markdown::text(&document(report, Form::Review, None), limit)
}

#[test]
fn reviews_of_two_ranks_and_of_a_capture_without_waits() {
    let reports = [sample::sample(), sample::empty()];
    insta::assert_snapshot!(reports.map(|report| reviewed(&report, COMMENT)).join("\n"));
}

#[test]
fn little_room_keeps_the_head_and_says_what_is_missing() {
    let short = reviewed(&sample::sample(), 1_500);
    assert!(short.chars().count() <= 1_500);
    assert!(short.contains("details of 7 sites left out: there is no more room"), "{short}");
    for limit in (1_000..9_000).step_by(37) {
        assert!(reviewed(&sample::sample(), limit).chars().count() <= limit, "{limit}");
    }
}

/// Extreme numbers and names, and missing values.
fn extremes() -> Report {
    let mut report = sample::sample();
    let huge = &mut report.sites[0];
    huge.waits = u64::MAX;
    huge.per_iteration = Some(f64::NAN);
    (huge.blocked_ns, huge.drain_ns) = (i64::MAX, i64::MIN);
    (huge.blocked_percent, huge.drain_percent) = (f64::NAN, f64::INFINITY);
    let long = &mut report.sites[1];
    if let Some(frame) = &mut long.user_frame {
        frame.function = "模型".repeat(5_000);
        frame.file = format!("/{}/🚀🚀🚀.py", "deep/".repeat(1_000));
        frame.line = u32::MAX;
    }
    let bare = &mut report.sites[3];
    bare.waits = 0;
    (bare.native, bare.fix, bare.api) = (Vec::new(), None, String::new());
    report.totals.gpu_busy_ns = i64::MAX;
    report.totals.gpu_idle_ns = i64::MAX;
    report.profiles[0].gpus[0].busy_ns = -1;
    report
}

#[test]
fn two_ranks() {
    let widths = [Some(80), Some(120), None];
    insta::assert_snapshot!(widths.map(|width| rendered(&sample::sample(), width, false)).join("\n"));
}

#[test]
fn one_process() {
    let printed = [(120, false), (200, false), (120, true)];
    let printed = printed.map(|(width, color)| rendered(&sample::single(), Some(width), color));
    insta::assert_snapshot!(printed.join("\n").replace('\u{1b}', "^"));
}

#[test]
fn no_waits() {
    insta::assert_snapshot!(rendered(&sample::empty(), Some(80), false));
}

#[test]
fn colour_adds_codes_and_nothing_else() {
    let report = sample::sample();
    for width in [Some(60), Some(80), Some(120), Some(250), None] {
        let plain = rendered(&report, width, false);
        assert!(!plain.contains('\u{1b}'));
        let colored = rendered(&report, width, true);
        assert_eq!(anstream::adapter::strip_str(&colored).to_string(), plain);
    }
}

#[test]
fn lines_fit_the_width() {
    let copied = |line: &&str| line.starts_with("    nsys profile");
    for report in [sample::sample(), sample::single(), sample::empty(), extremes()] {
        for width in (80..=240).step_by(5) {
            let text = rendered(&report, Some(width), false);
            for line in text.lines().filter(|line| !copied(line)) {
                assert!(text::width(line) <= width, "{line:?} is wider than {width}");
            }
        }
    }
}

#[test]
fn narrow_terminals_get_something() {
    for width in (0..80).step_by(8) {
        let text = rendered(&extremes(), Some(width), false);
        assert!(text.contains("S7"));
    }
}

#[test]
fn a_pipe_gets_a_line_per_site() {
    for report in [sample::sample(), extremes()] {
        let text = rendered(&report, None, false);
        for site in &report.sites {
            let lines = text.lines().filter(|line| line.starts_with(&format!("{} ", site.id)));
            assert_eq!(lines.count(), 1, "{}", site.id);
        }
    }
}

#[test]
fn nothing_of_a_hostile_name_reaches_the_terminal() {
    for width in [Some(80), Some(200), None] {
        let text = rendered(&sample::sample(), width, false);
        let bad = text.chars().find(|&c| (c.is_control() && c != '\n') || c == '\u{202e}');
        assert_eq!(bad, None);
    }
}

#[test]
fn filters_that_leave_nothing_say_so() {
    let mut report = sample::empty();
    for (waits, said) in [
        (212, "None of the 212 waits passes the filters."),
        (1, "The one wait there is does not pass the filters."),
    ] {
        report.waits_filtered_out = waits;
        let text = rendered(&report, Some(80), false);
        assert!(text.contains(said) && !text.contains("No waits"), "{text}");
    }
}

#[test]
fn many_gpus_are_summed_up() {
    let mut report = sample::sample();
    let gpu = report.profiles[0].gpus[0].clone();
    report.profiles[0].gpus = vec![gpu; 7];
    let text = rendered(&report, Some(120), false);
    assert!(text.contains("GPUs        8 × NVIDIA H200: busy 61.2 %"), "{text}");
}

#[test]
fn replayed_sites() {
    let mut report = sample::single();
    let replayed = sample::replayed();
    report.sites[0].replayed = Some(replayed.clone());
    report.totals.replayed = Some(replayed);
    for width in [Some(80), Some(120), None] {
        let text = rendered(&report, width, false);
        assert!(text.contains("measured") && text.contains("58.2 µs (1.3 %)"), "{text}");
        assert!(text.contains("Measured, all avoidable sites fixed: 58.2 µs"), "{text}");
        let lines = || text.lines().filter(|line| !line.trim_start().starts_with("nsys profile"));
        assert!(width.is_none_or(|w| lines().all(|line| text::width(line) <= w)), "{text}");
    }
    insta::assert_snapshot!(rendered(&report, Some(120), false));
}

/// A saving above "blocked" is explained once, and only where it occurs.
#[test]
fn savings_above_blocked_are_explained() {
    const WHY: &str = "\"saves\" can exceed \"blocked\": removing a call also removes the CPU time";
    let mut report = sample::sample();
    assert!(!rendered(&report, Some(120), false).contains(WHY));
    let site = &mut report.sites[0];
    if let Some(saving) = &mut site.recoverable {
        saving.alone_ns = site.blocked_ns + 1;
    }
    assert_eq!(rendered(&report, None, false).matches(WHY).count(), 1);
    report.sites.remove(0);
    assert!(!rendered(&report, None, false).contains(WHY));
}

#[test]
fn one_wait_each_is_one_wait() {
    let mut report = sample::sample();
    if let Some(iterations) = &mut report.iterations {
        iterations.waits_per_iteration = 1.0;
    }
    assert!(rendered(&report, None, false).contains(", 1 wait each\n"));
}

/// The iterations are of one export; waits of another export's loop are not among them.
#[test]
fn of_several_loops_the_one_shown_is_named() {
    let mut report = sample::sample();
    report.profiles.truncate(1);
    report.profiles[0].iterations = 30;
    let other = ProfileInfo { path: "b/rank_1.sqlite".into(), ..report.profiles[0].clone() };
    report.profiles[0].path = "a/rank_0.sqlite".into();
    assert!(!rendered(&report, None, false).contains("` in rank_0"));
    report.profiles.push(other);
    assert!(rendered(&report, None, false).contains("` in rank_0.sqlite, "));
}

#[test]
fn what_stands_for_all_iterations_is_said() {
    const WORDS: &str = "3,392 evenly spread iterations stand for all: not each is simulated.";
    let mut report = sample::sample();
    assert!(!rendered(&report, None, false).contains("stand for all"));
    report.totals.sampled_iterations = Some(3_392);
    assert!(rendered(&report, None, false).contains(WORDS));
}

/// The answer in at most eight lines, a line or two a site, and few warnings.
#[test]
fn the_first_screen_is_short() {
    let mut report = sample::single();
    let warning = sample::sample().warnings[0].clone();
    report.warnings = vec![warning; 9];
    let style = Style { width: Some(100), color: false };
    let text = terminal::text(&document(&report, Form::Screen, None), &style);
    let (head, rest) = text.split_once("\n\nid ").expect("a table");
    assert!(head.lines().count() <= 8, "{text}");
    assert!(text.starts_with("train_mlp.py · NVIDIA H200 · 100 iterations of "), "{text}");
    assert!(rest.contains("6 more warnings with --wide") && !rest.contains("p99  "), "{text}");
    assert!(text.lines().all(|line| text::width(line) <= 100 || line.starts_with("    nsys")), "{text}");
}
