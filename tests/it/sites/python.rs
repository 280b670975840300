//! Exact Python frames, and whose they are.

use super::*;
use sync_report::vocabulary::PatternId;

#[test]
fn json_and_binary_payloads_give_equal_reports() {
    let with = |payload| {
        let (mut e, t) = empty();
        e.payload(payload);
        let deep: Vec<PythonFrame> = (0..60).map(|i| ("recurse", "/w/deep.py", i + 1)).collect();
        item(&mut e, t, 0, &[("step", "/w/train.py", 24), ("<module>", "/w/train.py", 47)]);
        item(&mut e, t, 10_000, &deep);
        item(&mut e, t, 20_000, &[("<lambda>", "/w/a <b> & \"c\".py", 1)]);
        look::report(&e)
    };
    let (json, blob, both) = (with(Payload::Json), with(Payload::Blob), with(Payload::Both));
    assert_eq!(json.sites.len(), 3);
    assert!(json.sites.iter().all(|s| s.attribution == Attribution::PythonBacktrace));
    assert_eq!(look::everything(&json), look::everything(&blob));
    assert_eq!(look::everything(&json), look::everything(&both));
}

/// Marks without payload (the default export): no line, and the re-export command.
#[test]
fn marks_without_payload_are_recognised() {
    let (mut e, t) = empty();
    e.payload(Payload::Nothing);
    item(&mut e, t, 0, &[("step", "/w/train.py", 24)]);
    let report = look::report(&e);
    assert_eq!(only(&report).attribution, Attribution::None);
    let warning = report.warnings.iter().find(|w| w.code == "python-payload-missing").expect("the warning");
    assert!(warning.fix.contains("--include-json=true"), "{warning:?}");
}

/// The innermost frame outside the libraries is the user's; the whole stack stays in view.
#[test]
fn the_user_frame_lies_past_the_libraries() {
    let tensor = format!("{TORCH}_tensor.py");
    let frames: &[PythonFrame] = &[
        ("wrapped", &tensor, 50),
        ("helper", "/usr/lib/python3.12/contextlib.py", 81),
        ("_call_with_frames_removed", "<frozen importlib._bootstrap>", 488),
        ("inner", "/venv/lib/python3.12/site-packages/mylib/core.py", 7),
        ("step", "/w/train.py", 24),
        ("<module>", "/w/train.py", 47),
    ];
    let (mut e, t) = empty();
    item(&mut e, t, 0, frames);
    let site = |rules: PathRules| {
        let report = look::report_with(&e, &Options { rules, ..options() });
        only(&report).clone()
    };
    let plain = site(PathRules::default());
    assert_eq!(user(&plain), "/w/train.py:24 step");
    assert_eq!(plain.frames.len(), 6);
    assert_eq!(
        plain.frames.iter().map(|f| f.user).collect::<Vec<_>>(),
        [false, false, false, false, true, true]
    );
    let mine = "/venv/lib/python3.12/site-packages/mylib".to_owned();
    let rules = PathRules { user: vec![mine], library: vec![] };
    assert_eq!(user(&site(rules)), "/venv/lib/python3.12/site-packages/mylib/core.py:7 inner");
    let rules = PathRules { user: vec![], library: vec!["/w".to_owned()] };
    let none = site(rules);
    assert_eq!(none.user_frame, None);
    assert_eq!(none.frames[0].function, "wrapped");
}

#[test]
fn names_are_unescaped_and_harmless() {
    let hostile = "evil\u{1b}[2J\u{202e}\n\r\"=cmd()";
    let (mut e, t) = empty();
    item(&mut e, t, 0, &[("<module>", "/w/train.py", 1)]);
    item(&mut e, t, 10_000, &[(hostile, "/w/\u{1b}]0;owned\u{7}.py", 2)]);
    e.nvtx(t, 0..20_000, hostile);
    let report = look::report(&e);
    let functions: Vec<&str> =
        report.sites.iter().filter_map(|s| s.user_frame.as_ref()).map(|f| &*f.function).collect();
    assert!(functions.contains(&"<module>"), "{functions:?}");
    assert!(functions.contains(&hostile), "JSON consumers get the name as it is: {functions:?}");
    let printed = look::everything(&report);
    let raw = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}' || c == '\u{7}';
    let text = printed.split_once("id,key,class").expect("CSV follows JSON").1;
    assert!(!text.chars().any(raw), "{text:?}");
    // JSON must escape controls to be JSON at all.
    assert!(!printed.contains('\u{1b}'));
}

/// Ids of strings that do not exist, lines below zero, no frames at all.
#[test]
fn odd_frames_do_not_unplace_the_rest() {
    let (mut e, t) = empty();
    item(&mut e, t, 0, &[("step", "/w/train.py", -1)]);
    item(&mut e, t, 10_000, &[("step", "/w/train.py", 24)]);
    e.sql("DELETE FROM StringIds WHERE value = 'step'");
    let report = look::report(&e);
    assert_eq!(report.totals.waits, 2);
    for site in &report.sites {
        assert_eq!(site.attribution, Attribution::PythonBacktrace);
        assert_eq!(site.user_frame.as_ref().map(|f| &*f.function), Some("<unknown function>"));
    }
    assert!(report.sites.iter().any(|s| s.user_frame.as_ref().is_some_and(|f| f.line == 0)));
}

#[test]
fn a_mark_on_either_call_places_the_wait() {
    for on_copy in [true, false] {
        let (mut e, t) = empty();
        let (copy, wait) = item(&mut e, t, 0, &[]);
        e.python(if on_copy { copy } else { wait }, &[("step", "/w/train.py", 24)]);
        let report = look::report(&e);
        assert_eq!(user(only(&report)), "/w/train.py:24 step", "mark on the copy: {on_copy}");
    }
}

/// A copy to pinned memory on one line, the synchronisation that completes it on another: two calls of one thread and
/// stream, with nothing but Python between them.
///
/// ```text
///  host   [launch] [copy, line 10]   5 ms of Python    [sync, line 12]
///  GPU       [gemm~~~~~~~~~~~~~~~~~~~~][copy]
/// ```
#[test]
fn a_copy_of_another_line_is_no_part_of_the_wait() {
    let read = |copy_line: i64| {
        let (mut e, t) = empty();
        for at in [1_000_000, 20_000_000, 40_000_000] {
            e.launch(t, at..at + 10, GPU0, at + 20..at + 900, "gemm");
            let copy =
                e.memcpy(t, at + 200..at + 210, Copy::d2h(4, Memory::Pinned), GPU0, at + 901..at + 905);
            let wait = e.sync(t, "cudaStreamSynchronize", at + 5_000_000..at + 5_002_000, GPU0);
            e.python(copy, &[("step", "/w/train.py", copy_line)]);
            e.python(wait, &[("step", "/w/train.py", 12)]);
        }
        let report = look::report(&e);
        assert_eq!((report.totals.waits, report.sites.len()), (3, 1));
        (report.sites[0].pattern, report.sites[0].copy.is_some(), report.sites[0].blocked_max_ns)
    };
    assert_eq!(read(12), (Some(PatternId::A01), true, 2000), "one line: one wait");
    assert_eq!(read(10), (Some(PatternId::D05), false, 2000), "two lines: the wait completes the copy");
}
