//! Several streams in the simulation: the legacy default stream, and order that the GPU keeps itself.

use super::*;
use crate::export::{Copy, Memory};
use proptest::prelude::*;
use sync_report::analysis::Priced;
use sync_report::cost::simulate::run;
use sync_report::cost::simulate::run::Variant;
use sync_report::vocabulary::Change;

const FREE: Gpu = Gpu { device: 0, stream: 20 };

/// Stream 13 was created blocking, stream 20 not; 7 is the default stream.
fn with_flags(e: &mut Export) {
    e.sql("UPDATE TARGET_INFO_CUDA_STREAM SET flag = 1 WHERE streamId = 13");
}

fn end_of(found: &Priced, fixes: &[(usize, Change)], usual: bool) -> i64 {
    let program = look::program(found);
    let mut all = vec![Change::Keep; program.sites];
    fixes.iter().for_each(|&(site, fix)| all[site] = fix);
    let variant = Variant { fixes: all.into(), usual, ..Variant::default() };
    run(&program, &variant).end
}

/// ```text
///  host        [launch w][launch a] [sync 13=========]···[launch b]
///  default   7   [w]                                        [b~~~~]
///  stream   13      [a~~~~~~~~~~~~~~~~~~~]
///  without     b waits for a if 13 is a blocking stream, and runs beside it if not
/// ```
#[test]
fn the_default_stream_waits_for_blocking_streams() {
    for blocking in [true, false] {
        let (mut e, t) = empty();
        e.launch(t, 0..5_000, GPU0, 7_000..8_000, "w");
        e.launch(t, 6_000..11_000, SIDE, 13_000..500_000, "a");
        e.sync(t, "cudaStreamSynchronize", 20_000..504_000, SIDE);
        e.launch(t, 510_000..515_000, GPU0, 517_000..600_000, "b");
        if blocking {
            with_flags(&mut e);
        }
        let found = look::analysed(&e);
        assert_eq!(end_of(&found, &[], false), 600_000);
        let expected = if blocking { 500_000 + 1_500 + 83_000 } else { 500_000 };
        let without = end_of(&found, &[(0, Change::Delete)], false);
        assert!((without - expected).abs() <= 2_000, "blocking {blocking}: {without} {expected}");
    }
}

#[test]
fn blocking_streams_wait_for_the_default_stream() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, SIDE, 7_000..8_000, "w");
    e.launch(t, 6_000..11_000, GPU0, 13_000..500_000, "a");
    e.launch(t, 12_000..17_000, SIDE, 501_500..600_000, "b");
    e.launch(t, 18_000..23_000, FREE, 25_000..30_000, "c");
    with_flags(&mut e);
    let found = look::analysed(&e);
    for usual in [false, true] {
        let end = end_of(&found, &[], usual);
        assert!((end - 600_000).abs() <= 3_000, "usual latencies {usual}: {end}");
    }
}

/// ```text
///  host       [copy][sync==========]···[launch k]
///  stream 13    [copy~~~~~~~~~~~~]
///  stream  7                              [k~~~]      k uses what was copied, whoever waits for it
/// ```
#[test]
fn what_uses_an_upload_stays_behind_it() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..8_000, "w");
    e.memcpy(t, 10_000..15_000, Copy::h2d(8 << 20, Memory::Pinned), SIDE, 17_000..170_000);
    e.sync(t, "cudaStreamSynchronize", 15_500..174_000, SIDE);
    e.launch(t, 180_000..185_000, GPU0, 187_000..200_000, "k");
    let found = look::analysed(&e);
    let end = end_of(&found, &[(0, Change::NonBlocking)], false);
    assert!((170_000 + 13_000..=187_000).contains(&end), "{end}");
}

#[test]
fn the_gpu_can_wait_instead() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..8_000, "w");
    e.launch(t, 6_000..11_000, SIDE, 13_000..500_000, "a");
    e.sync(t, "cudaStreamSynchronize", 20_000..504_000, SIDE);
    e.launch(t, 510_000..515_000, GPU0, 517_000..600_000, "b");
    let found = look::analysed(&e);
    let (deleted, ordered) =
        (end_of(&found, &[(0, Change::Delete)], false), end_of(&found, &[(0, Change::GpuWait)], false));
    assert_eq!(deleted, 500_000);
    assert!((583_000..=586_000).contains(&ordered), "{ordered}");
}

/// A random program's steps: host work, a kernel on one of three streams, a wait for one.
#[derive(Clone, Debug)]
enum Do {
    Host(i64),
    Launch(usize, i64),
    Sync(usize),
}

const STREAMS: [Gpu; 3] = [GPU0, SIDE, FREE];

fn doing() -> impl Strategy<Value = Do> {
    prop_oneof![
        3 => (1_000..60_000i64).prop_map(Do::Host),
        6 => (0..3usize, 1_000..150_000i64).prop_map(|(stream, work)| Do::Launch(stream, work)),
        2 => (0..3usize).prop_map(Do::Sync),
    ]
}

/// Runs a program on a GPU that keeps the legacy default stream's rule; returns its end.
fn execute(list: &[Do], without: &[usize], mut draw: Option<(&mut Export, Thread)>) -> i64 {
    let (mut now, mut last_call, mut free, mut wait) = (0i64, 0i64, [i64::MIN / 2; 3], 0);
    for what in list {
        now += 500;
        match *what {
            Do::Host(ns) => now += ns,
            Do::Launch(stream, work) => {
                let barrier = [free[1], free[0], i64::MIN / 2][stream];
                let start = (now + 7_000).max(free[stream] + 1_500).max(barrier + 1_500);
                free[stream] = start + work;
                if let Some((e, t)) = &mut draw {
                    e.launch(*t, now..now + 5_000, STREAMS[stream], start..start + work, "k");
                }
                now += 5_000;
                last_call = now;
            }
            Do::Sync(stream) => {
                wait += 1;
                last_call = now;
                if without.contains(&(wait - 1)) {
                    continue;
                }
                let until = free[stream];
                let end = (now + 2_000).max(if until > now { until + 4_000 } else { 0 });
                if let Some((e, t)) = &mut draw {
                    e.sync(*t, "cudaStreamSynchronize", now..end, STREAMS[stream]);
                }
                (now, last_call) = (end, end);
            }
        }
    }
    free.into_iter().fold(last_call, i64::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_default_streams_rule_outlives_the_waits(
        mut list in prop::collection::vec(doing(), 4..50),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        (0..3).for_each(|stream| list.insert(0, Do::Launch(stream, 20_000)));
        let (mut e, t) = empty();
        let recorded = execute(&list, &[], Some((&mut e, t)));
        with_flags(&mut e);
        let found = look::analysed(&e);
        let first = found.profile.bounds().expect("calls").0;
        let slack = 2_500 * list.len() as i64;
        for usual in [false, true] {
            let plain = end_of(&found, &[], usual) + first;
            prop_assert!((plain - recorded).abs() <= slack, "usual {}: {} {}", usual, plain, recorded);
        }
        let waits = found.waits.len();
        let mut gone: Vec<usize> = chosen.iter().filter(|_| waits > 0).map(|c| c.index(waits)).collect();
        gone.sort_unstable();
        gone.dedup();
        let fixes: Vec<_> = gone.iter().map(|&w| (w, Change::Delete)).collect();
        let without = end_of(&found, &fixes, false) + first;
        let truth = execute(&list, &gone, None);
        prop_assert!((without - truth).abs() <= slack, "{} {} {}", without, truth, recorded);
    }
}
