//! Sites of one capture with the times of another.

use super::*;
use crate::export::{Copy, Memory};
use sync_report::analysis::timing::Timing;

/// Sites and verdicts of the one capture, times of the other, which has twice the iterations.
#[test]
fn times_come_from_the_light_capture() {
    let timing = Timing::From(sample("train_mlp_python_sampling.sqlite"));
    let report = on("train_mlp.sqlite", &Options { timing, ..options() });
    assert_sound(&report);
    let light = on("train_mlp_python_sampling.sqlite", &options());
    assert_eq!(report.totals.blocked_ns, light.totals.blocked_ns);
    assert_eq!(report.profiles[0].span_ns, light.profiles[0].span_ns);
    assert!(report.sites.iter().all(|s| s.user_frame.as_ref().is_some_and(|f| f.line > 0)));
    // Another process: its iterations are its own.
    assert!(report.sites.iter().any(|s| s.per_iteration == Some(3.0)));
    let said = report.warnings.iter().find(|w| w.code == "timing-matched").expect("said");
    assert!(said.message.contains("420 of 420"), "{}", said.message);
}

#[test]
fn times_of_another_program_are_refused() {
    let options = Options { timing: Timing::From(sample("train_mlp.sqlite")), ..options() };
    let error = report::run(&[sample("patterns.sqlite")], &options).expect_err("another program");
    assert!(error.to_string().contains("not the same program"), "{error}");
}

/// Ten synchronisations of the stream, of which the last `others` are of the device instead.
///
/// ```text
///  backtraces   stream  stream  stream  …  stream  stream
///  light        stream  stream  stream  …  stream  device     nine of ten have their like: enough, and eight are not
/// ```
fn ten_waits(others: i64) -> Export {
    let (mut e, t) = empty();
    for i in 0..10i64 {
        let at = i * 100_000;
        e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 50_000, "a");
        if i < 10 - others {
            e.sync(t, "cudaStreamSynchronize", at + 10_000..at + 53_000, GPU0);
        } else {
            e.device_sync(t, at + 10_000..at + 53_000, 0);
        }
    }
    e
}

#[test]
fn nine_of_ten_waits_must_match() {
    let (_kept, sites) = ten_waits(0).write_temp();
    let timed_by = |others| {
        let (_kept, timing) = ten_waits(others).write_temp();
        report::run(std::slice::from_ref(&sites), &Options { timing: Timing::From(timing), ..options() })
    };
    let report = timed_by(1).expect("one of ten may differ");
    let said = report.warnings.iter().find(|w| w.code == "timing-matched").expect("said");
    assert!(said.message.contains("9 of 10"), "{}", said.message);
    let error = timed_by(2).expect_err("two of ten are too many").to_string();
    assert!(error.contains("8 of 10"), "{error}");
}

/// So many marked steps of a launch and these copies, each waited for.
fn steps(count: i64, copies: impl Fn(i64) -> Vec<Copy>) -> Export {
    let (mut e, t) = empty();
    for i in 0..count {
        let at = i * 400_000;
        e.nvtx(t, at..at + 399_000, &format!("step {i}"));
        e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 50_000, "a");
        for (n, copy) in (0..).zip(copies(i)) {
            let from = at + 60_000 + n * 100_000;
            e.memcpy(t, from..from + 10_000, copy, GPU0, from + 4_000..from + 9_000);
            e.sync(t, "cudaStreamSynchronize", from + 11_000..from + 14_000, GPU0);
        }
    }
    e
}

/// ```text
///  backtraces   [a][a][a 2][a][a][a 2]                          an iteration in three logs, 2
///  light        [a][a][a 2][a][a][a 2][a][a][a 2] … [a]
/// ```
/// Where the light capture goes on, each iteration is as the last one with the same waits.
#[test]
fn an_iteration_that_goes_on_is_like_one_with_as_many_waits() {
    let drawn = |count| {
        steps(count, |i| vec![Copy::d2h(4, Memory::Pinned); if i % 3 == 2 { 2 } else { 1 }]).write_temp()
    };
    let ((_kept, sites), (_also, timing)) = (drawn(7), drawn(22));
    let report = report::run(&[sites], &Options { timing: Timing::From(timing), ..options() });
    let report = report.expect("the same program");
    let said = report.warnings.iter().find(|w| w.code == "timing-matched").expect("said");
    assert!(said.message.contains("29 of 29"), "{}", said.message);
}

/// ```text
///  backtraces   [upload 512][read][upload 1024][read][upload 1536][read] …
///  light        [upload 640][read][upload 1152][read][upload 1664][read] …     other batches, none of a size alike
/// ```
/// A copy whose size differs from iteration to iteration is like that of the same turn; of another batch size it is not.
#[test]
fn batches_that_differ_in_length_match_by_their_turn() {
    let drawn = |size: fn(i64) -> i64| {
        let copies = |i| vec![Copy::h2d(size(i), Memory::Pageable), Copy::d2h(4, Memory::Pinned)];
        steps(20, copies).write_temp()
    };
    let (_kept, sites) = drawn(|i| 512 + i % 3 * 512);
    let timed_by = |size| {
        let (_kept, timing) = drawn(size);
        report::run(std::slice::from_ref(&sites), &Options { timing: Timing::From(timing), ..options() })
    };
    let report = timed_by(|i| 640 + i % 3 * 512).expect("the same program");
    let said = report.warnings.iter().find(|w| w.code == "timing-matched").expect("said");
    assert!(said.message.contains("40 of 40"), "{}", said.message);
    assert!(said.message.contains("copy size, where it is always the same;"), "{}", said.message);
    let error = timed_by(|_| 4096).expect_err("another batch size").to_string();
    assert!(error.contains("20 of 40"), "{error}");
}
