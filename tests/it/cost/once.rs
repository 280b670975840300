//! A wait is paid once by when it happens, not by how samples part it into sites.

use super::*;
use crate::export::{Copy, Memory};

/// An H2D copy; a CPU sample inside shows the function `sampled`.
fn upload(e: &mut Export, t: Thread, from: i64, bytes: i64, sampled: Option<&str>) {
    let copy = Copy::h2d(bytes, Memory::Pageable);
    e.memcpy_blocking(t, from..from + 90_000, copy, GPU0, from + 10_000..from + 80_000);
    if let Some(function) = sampled {
        e.cpu_sample(t, from + 50_000, &[("memcpy", "libc.so.6"), (function, "/w/solver")]);
    }
}

/// The saving of a program's fixes, and how many sites are paid once, in captures without samples and with them.
fn both(drawn: impl Fn(&mut Export, Thread, bool)) -> [(Option<i64>, u64); 2] {
    [false, true].map(|sampled| {
        let mut e = Export::new(Schema::V2026_2);
        e.process(100, "./solver");
        let t = e.thread(100, 100);
        drawn(&mut e, t, sampled);
        let report = look::report(&e);
        (report.totals.recoverable_false_joint_ns, report.totals.once.sites)
    })
}

/// One pass: all its H2D copies are its work, also before the first kernel.
///
/// ```text
///  host      [upload][launch][upload][launch][upload][launch]
///  sample      read            refill          refill            two sites, without samples one
///  GPU               [k]             [k]             [k]
/// ```
#[test]
fn one_pass_pays_nothing_once() {
    let [without, with] = both(|e, t, sampled| {
        for (i, bytes) in [64 << 20, 4 << 20, 4 << 20].into_iter().enumerate() {
            let at = i as i64 * 200_000;
            let function = if i == 0 { "read" } else { "refill" };
            upload(e, t, at, bytes, sampled.then_some(function));
            e.launch(t, at + 100_000..at + 105_000, GPU0, at + 110_000..at + 150_000, ["a", "b", "c"][i]);
        }
    });
    assert_eq!(without, with);
    assert!(without.0 > Some(0) && without.1 == 0, "{without:?}");
}

/// The first steps copy more than later ones; all copies are of the loop.
///
/// ```text
///  host      [upload 1 MiB][k] [upload 1 MiB][k] [upload 128 kiB][k] … [upload 128 kiB][k]
///  sample      prefetch          prefetch          next                next
/// ```
#[test]
fn the_first_uploads_of_a_loop_are_of_the_loop() {
    let [without, with] = both(|e, t, sampled| {
        for i in 0..40 {
            let at = i * 200_000;
            e.nvtx(t, at..at + 190_000, &format!("step {i}"));
            let (bytes, function) = if i < 2 { (1 << 20, "prefetch") } else { (128 << 10, "next") };
            upload(e, t, at, bytes, sampled.then_some(function));
            e.launch(t, at + 100_000..at + 105_000, GPU0, at + 110_000..at + 150_000, "k");
        }
    });
    assert_eq!(without, with);
    assert_eq!(without.1, 0);
}
