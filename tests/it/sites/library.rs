//! Waits inside libraries: both lines, and the advice for a line that is not the user's.

use super::*;
use crate::diff::compare;
use sync_report::diff::Snapshot;
use sync_report::vocabulary::PatternId;

const SITE: &str = "/venv/lib/python3.12/site-packages/";

fn items(stacks: &[&[PythonFrame]]) -> Report {
    let (mut e, t) = empty();
    for (i, frames) in stacks.iter().enumerate() {
        item(&mut e, t, i as i64 * 10_000, frames);
    }
    look::report(&e)
}

fn library(site: &Site) -> String {
    let frame =
        site.library_frame.as_ref().map_or_else(String::new, |f| format!("{}:{}", f.function, f.line));
    format!("{} {frame}", site.library.as_deref().unwrap_or("-"))
}

fn advice(site: &Site) -> &str {
    site.fix.as_ref().map_or("", |fix| &fix.title)
}

fn details(report: &Report) -> String {
    let with = sync_report::formats::Setting { site: Some("S1".to_owned()), ..Default::default() };
    crate::look::printed(report, "details", &with)
}

/// One line of the user, two lines of a library: two sites, which name them, and no advice for a line that is not the user's.
#[test]
fn each_line_of_an_unknown_library_is_a_site() {
    let bars = format!("{SITE}fancybar/bars.py");
    let carry = format!("{TORCH}utils/_contextlib.py");
    let stack = |line| {
        let carrier: PythonFrame = ("decorate_context", &carry, 120);
        vec![carrier, ("render", &*bars, line), ("fit", &*bars, 3), ("main", "/w/train.py", 43)]
    };
    let report = items(&[&stack(10), &stack(20), &stack(10)]);
    let mut sites: Vec<_> = report.sites.iter().map(|s| (s.waits, library(s), user(s))).collect();
    sites.sort();
    let line = || "/w/train.py:43 main".to_owned();
    assert_eq!(
        sites,
        [(1, "fancybar render:20".to_owned(), line()), (2, "fancybar render:10".to_owned(), line())]
    );
    for site in &report.sites {
        assert_eq!(advice(site), "inside fancybar: call it less often, or see its options");
        let fix = site.fix.as_ref().expect("advice");
        assert!(fix.before.is_empty() && fix.here.is_none() && fix.why.contains("bars.py"), "{fix:?}");
    }
    assert_ne!(report.sites[0].key, report.sites[1].key);
    let table = look::table(&report, Some(80));
    assert!(table.contains("train.py:43 main") && table.contains("in bars.py:20 render"), "{table}");
}

/// ```text
///  host      [device_sync, by a library]      nothing pending
/// ```
/// A call made by PyTorch's code or a library is not the user's to delete; `torch.cuda.synchronize()` itself is.
#[test]
fn only_the_users_own_call_is_to_be_deleted() {
    let (sync, optimizer) = (format!("{TORCH}cuda/__init__.py"), format!("{TORCH}optim/fancy.py"));
    let timer = format!("{SITE}fancybar/timer.py");
    let own: PythonFrame = ("synchronize", &sync, 1162);
    for (inner, title) in [
        (vec![own], "delete it: it found nothing to wait for"),
        (vec![own, ("step", &*optimizer, 9)], "inside torch: leave it, it found nothing to wait for"),
        (vec![own, ("stop", &*timer, 7)], "inside fancybar: leave it, it found nothing to wait for"),
        (vec![("step", &*optimizer, 9)], "inside torch: leave it, it found nothing to wait for"),
    ] {
        let (mut e, t) = empty();
        e.launch(t, 100..110, GPU0, 120..130, "k");
        let wait = e.device_sync(t, 5000..5010, 0);
        let frames: Vec<PythonFrame> = inner.iter().copied().chain([("main", "/w/train.py", 4)]).collect();
        e.python(wait, &frames);
        let report = look::report(&e);
        assert_eq!(advice(only(&report)), title);
        // The body of `torch.cuda.synchronize()` is no library line of its own; its callers in libraries are.
        assert_eq!(library(only(&report)) == "- ", inner == [own], "{title}");
    }
}

/// A tensor in a log record is formatted by the standard library: still the user's print.
#[test]
fn the_standard_library_carries_a_call_on() {
    let (string, tensor) = (format!("{TORCH}_tensor_str.py"), format!("{TORCH}_tensor.py"));
    let stack = [
        ("_str", &*string, 726),
        ("__repr__", &*tensor, 574),
        ("getMessage", "/usr/lib/python3.12/logging/__init__.py", 391),
        ("step", "/w/train.py", 24),
    ];
    let report = items(&[&stack]);
    assert_eq!(advice(only(&report)), "print(t.cpu()) every N steps: one wait instead of many");
    assert_eq!(library(only(&report)), "torch __repr__:574");
}

/// `torch.unique` is a Python function around the operator: the advice is for the user's line that calls it,
/// and the function's body is not shown.
#[test]
fn a_wrapper_of_an_operator_leaves_the_advice() {
    let functional = format!("{TORCH}functional.py");
    let (mut e, t) = empty();
    let (copy, wait) =
        item(&mut e, t, 0, &[("_return_output", &functional, 1074), ("step", "/w/train.py", 8)]);
    for call in [copy, wait] {
        e.native(call, &[("at::_ops::_unique2::call(at::Tensor const&)", "libtorch_cpu.so")]);
    }
    let report = look::report(&e);
    assert_eq!(advice(only(&report)), "mark the classes that are present");
    assert_eq!(library(only(&report)), "- ");
}

#[test]
fn each_line_of_known_code_is_a_site() {
    let check = format!("{TORCH}distributions/distribution.py");
    let stack = |line| vec![("__init__", &*check, line), ("act", "/w/agent.py", 12)];
    let report = items(&[&stack(70), &stack(76), &stack(70)]);
    let mut sites: Vec<_> = report.sites.iter().map(|s| (s.waits, library(s))).collect();
    sites.sort();
    assert_eq!(sites, [(1, "torch __init__:76".to_owned()), (2, "torch __init__:70".to_owned())]);
    for site in &report.sites {
        assert_eq!((site.pattern, advice(site)), (Some(PatternId::A26), "pass validate_args=False"));
    }
    assert_ne!(report.sites[0].key, report.sites[1].key);
}

/// A comparison takes them together: older reports have one site for them, and a new version of the library moves its lines.
#[test]
fn lines_of_known_code_are_compared_as_one() {
    let check = format!("{TORCH}distributions/distribution.py");
    let stack = |line| vec![("__init__", &*check, line), ("act", "/w/agent.py", 12)];
    let [before, after] = [[70, 70, 70], [71, 77, 77]].map(|lines| {
        let stacks = lines.map(stack);
        let stacks: Vec<&[PythonFrame]> = stacks.iter().map(Vec::as_slice).collect();
        Snapshot::of(items(&stacks), false)
    });
    let report = compare(&before, &after);
    assert_eq!((report.counts.new, report.counts.gone, report.sites.len()), (0, 0, 1));
}

/// ```text
///  train.py:8  auroc.py:277 ─┐
///                            ├─ roc.py:54 ── data.py:206 bincount      one site, two paths
///              auroc.py:125 ─┘
/// ```
#[test]
fn paths_through_a_library_are_told() {
    let [data, roc, auroc] = ["data.py", "roc.py", "auroc.py"].map(|file| format!("{SITE}metrics/{file}"));
    let stack = |line| {
        vec![
            ("bincount", &*data, 206),
            ("curve", &*roc, 54),
            ("compute", &*auroc, line),
            ("main", "/w/train.py", 8),
        ]
    };
    let report = items(&[&stack(277), &stack(125), &stack(277)]);
    let mut paths: Vec<_> = only(&report)
        .call_paths
        .iter()
        .map(|path| (path.library.iter().map(|frame| frame.line).collect::<Vec<_>>(), path.waits))
        .collect();
    paths.sort();
    assert_eq!(paths, [(vec![54, 125], 1), (vec![54, 277], 2)]);
    let page = details(&report);
    // The frames that all paths share tell none apart.
    assert!(page.contains("auroc.py:277 compute\n") && !page.contains("roc.py:54 curve, from"), "{page}");
}

/// ```text
///  main.py:10  layers.py:30 ──┐
///              layers.py:31 ──┼── norm.py:5 .item()      one site, three paths
///              layers.py:32 ──┘
/// ```
#[test]
fn paths_are_told_with_what_they_cost() {
    let stack =
        |line| vec![("norm", "/w/norm.py", 5), ("forward", "/w/layers.py", line), ("main", "/w/main.py", 10)];
    let report = items(&[&stack(30), &stack(31), &stack(32), &stack(31)]);
    let site = only(&report);
    let mut paths: Vec<_> = site.call_paths.iter().map(|p| (p.callers[0].line, p.waits)).collect();
    paths.sort_unstable();
    assert_eq!(paths, [(30, 1), (31, 2), (32, 1)]);
    let sums = site.call_paths.iter().fold((0, 0), |sums, p| (sums.0 + p.blocked_ns, sums.1 + p.drain_ns));
    assert_eq!(sums, (site.blocked_ns, site.drain_ns));
    assert_eq!(site.caller.as_ref().map(|f| f.line), Some(31), "the path that blocks longest");
    let page = details(&report);
    assert!(page.contains("called from\n  2 waits, "), "{page}");
}

/// Ways that differ in library code only are one way to the user.
#[test]
fn paths_through_other_library_code_are_one() {
    let module = format!("{TORCH}nn/modules/container.py");
    let stack =
        |line| vec![("norm", "/w/norm.py", 5), ("forward", &*module, line), ("main", "/w/main.py", 10)];
    let report = items(&[&stack(30), &stack(31)]);
    assert_eq!((only(&report).waits, only(&report).call_paths.len()), (2, 0));
}

/// ```text
///  NVTX   [step 0][step 1] … [step 11]
///  host    item    item       item       item (evaluation)
/// ```
/// A wait paid once stays apart: it is no part of an iteration's cost.
#[test]
fn a_caller_outside_the_loop_stays_apart() {
    let (mut e, t) = empty();
    for i in 0..13 {
        let (caller, at) = if i < 12 { ("train", i * 10_000) } else { ("evaluate", 200_000) };
        if i < 12 {
            e.nvtx(t, at..at + 9_000, &format!("step {i}"));
        }
        item(&mut e, t, at, &[("loss", "/w/model.py", 5), (caller, "/w/main.py", 1 + at % 3)]);
    }
    e.launch(t, 300_000..300_010, GPU0, 300_020..300_030, "k");
    let report = look::report(&e);
    let mut sites: Vec<_> = report
        .sites
        .iter()
        .map(|s| (s.waits, s.once, s.caller.as_ref().map_or("", |c| &*c.function)))
        .collect();
    sites.sort_unstable();
    assert_eq!(sites, [(1, true, "evaluate"), (12, false, "train")]);
}

/// ```text
///  NVTX           [step 0][step 1] … [step 11]
///  host    item    item    item       item
/// ```
/// The loop's key does not depend on whether the capture holds the wait paid once.
#[test]
fn keys_of_the_loop_stay_without_what_is_paid_once() {
    let drawn = |once: bool| {
        let (mut e, t) = empty();
        let line = |caller: &'static str| [("loss", "/w/model.py", 5), (caller, "/w/main.py", 7)];
        if once {
            item(&mut e, t, 0, &line("check"));
        }
        for at in (0..12).map(|i| 100_000 + i * 10_000) {
            e.nvtx(t, at..at + 9_000, "step");
            item(&mut e, t, at, &line("train"));
        }
        let mut keys: Vec<_> = look::report(&e).sites.into_iter().map(|s| (s.once, s.key)).collect();
        keys.sort_unstable();
        keys
    };
    let (with, without) = (drawn(true), drawn(false));
    assert_eq!((with.len(), &with[..1]), (2, &without[..]));
    // A key of its own, from its own facts and not from its order.
    assert!(with[1].0 && with[1].1 != with[0].1 && !with[1].1.contains('~'), "{with:?}");
}
