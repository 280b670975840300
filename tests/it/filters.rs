//! Which waits a report is about.

use crate::export::{Export, GPU0, empty};
use crate::look::options;
use sync_report::analysis::Options;
use sync_report::analysis::filter::Filter;

fn inside(e: &Export, range: &str) -> Result<u64, String> {
    let (_dir, path) = e.write_temp();
    let filter = Filter { nvtx: Some(range.to_owned()), ..Filter::default() };
    let report = sync_report::report::run(&[path], &Options { filter, ..options() });
    report.map(|r| r.totals.waits).map_err(|e| e.to_string())
}

/// ```text
///  main      [step 0----------------------------]
///  autograd        [item]                            [item]
///  other process         [item]
/// ```
#[test]
fn a_range_is_around_the_waits_of_all_threads_of_its_process() {
    let (mut e, t) = empty();
    let autograd = e.thread(100, 101);
    let other = e.thread(200, 200);
    e.nvtx(t, 0..99_000, "step 0");
    e.launch(t, 100..110, GPU0, 120..200, "gemm");
    e.item(autograd, 1000..31_000, GPU0, 30_001..30_010);
    e.item(other, 2000..41_000, GPU0, 40_001..40_010);
    e.item(autograd, 200_000..231_000, GPU0, 230_001..230_010);
    for name in ["step", "step #", "step 0"] {
        assert_eq!(inside(&e, name), Ok(1), "{name}");
    }
}

/// ```text
///  start/end   [a-----------------]
///                    [b-----------------]
///                                [c-----] of another domain
///  waits               w1    w2    w3
/// ```
#[test]
fn overlapping_ranges_do_not_hide_each_other() {
    let (mut e, t) = empty();
    e.nvtx_start_end(t, t, 0..200_000, "a");
    e.nvtx_start_end(t, t, 50_000..300_000, "b");
    e.nvtx_domain(t, 190_000..310_000, "c", "other");
    for at in [60_000, 120_000, 195_000, 250_000] {
        e.item(t, at..at + 31_000, GPU0, at + 30_001..at + 30_010);
    }
    assert_eq!(["a", "b", "c"].map(|name| inside(&e, name)), [Ok(3), Ok(4), Ok(2)]);
}

#[test]
fn a_range_without_waits_is_still_a_range() {
    let (mut e, t) = empty();
    e.nvtx(t, 0..10, "aten::gelu, op_id = 7");
    e.nvtx_registered(t, 20..30, "registered");
    e.item(t, 1000..31_000, GPU0, 30_001..30_010);
    assert_eq!([inside(&e, "aten::gelu"), inside(&e, "registered")], [Ok(0), Ok(0)]);
    assert!(inside(&e, "aten::relu").is_err());
}

#[test]
fn registered_and_open_ranges_hold_waits() {
    let (mut e, t) = empty();
    e.nvtx_registered(t, 0..50_000, "train 1");
    e.nvtx_open(t, 60_000, "rest");
    for at in [1_000, 100_000] {
        e.item(t, at..at + 31_000, GPU0, at + 30_001..at + 30_010);
    }
    assert_eq!([inside(&e, "train"), inside(&e, "rest")], [Ok(1), Ok(1)]);
}

#[test]
fn filters_that_leave_nothing_say_so() {
    use crate::look::{self, report_with};
    let (mut e, t) = empty();
    e.name_thread(t, "python3");
    for i in 0..3 {
        e.item(t, i * 50_000..i * 50_000 + 31_000, GPU0, i * 50_000 + 30_001..i * 50_000 + 30_010);
    }
    let none = Filter::default;
    for (filter, code) in [
        (Filter { device: Some(5), ..none() }, Some("no GPU 5 worked here; there are: 0 (NVIDIA H200)")),
        (
            Filter { process: Some(7), ..none() },
            Some("no process 7 called CUDA here; there are: 100 (python3)"),
        ),
        (
            Filter { thread: Some("99999".into()), ..none() },
            Some("no thread `99999` called CUDA here; there are: 100 (python3)"),
        ),
        (Filter { from: Some(1 << 40), ..none() }, None),
    ] {
        let report = report_with(&e, &Options { filter: filter.clone(), ..options() });
        assert_eq!((report.totals.waits, report.waits_filtered_out), (0, 3), "{filter:?}");
        let said: Vec<&str> =
            report.warnings.iter().filter(|w| w.code.starts_with("no-such")).map(|w| &*w.message).collect();
        assert_eq!(said, Vec::from_iter(code));
        let text = look::table(&report, None);
        assert!(text.contains("None of the 3 waits passes the filters."), "{text}");
    }
    let main = Filter { thread: Some("main".into()), ..none() };
    let report = report_with(&e, &Options { filter: main, ..options() });
    assert_eq!((report.totals.waits, report.waits_filtered_out), (3, 0), "the first thread is the main one");
    let classes = vec![sync_report::vocabulary::Class::True];
    let report = report_with(&e, &Options { classes, ..options() });
    assert_eq!((report.totals.waits, report.waits_filtered_out), (0, 3), "a class is a filter too");
    let all = report_with(&e, &options());
    assert_eq!((all.totals.waits, all.waits_filtered_out), (3, 0));
}
