//! The forward simulation: drawn timelines, and random programs whose run without a wait is known.

use super::*;
use crate::export::{Copy, Memory};
use proptest::prelude::*;
use sync_report::cost::simulate::run::Variant;
use sync_report::cost::simulate::{Outcome, Program, run};
use sync_report::vocabulary::Change;
use sync_report::vocabulary::Direction;

fn outcome(program: &Program, fixes: &[(usize, Change)]) -> Outcome {
    let mut all = vec![Change::Keep; program.sites];
    fixes.iter().for_each(|&(site, fix)| all[site] = fix);
    run(program, &Variant { fixes: all.into(), ..Variant::default() })
}

fn ends(e: &Export, fixes: &[(usize, Change)]) -> (i64, i64, i64) {
    let found = look::analysed(e);
    let program = look::program(&found);
    (program.recorded, outcome(&program, &[]).end, outcome(&program, fixes).end)
}

/// ```text
///  host      [launch a]  [sync============]···[launch b]         a µs after the sync, 10 µs of host work
///            0      5    10             53    63     68
///  stream 7           [a~~~~~~~~~~~~~~~~]               [b~~~]
///                     7                50               70   90
///  without   [launch a]···[launch b]
///  stream 7           [a~~~~~~~~~~~~~~~~][b~~~]                  b follows a: 20 − 1.5 µs earlier
/// ```
#[test]
fn a_deleted_wait_lets_the_queue_fill() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..50_000, "a");
    e.sync(t, "cudaStreamSynchronize", 10_000..53_000, GPU0);
    e.launch(t, 63_000..68_000, GPU0, 70_000..90_000, "b");
    assert_eq!(ends(&e, &[(0, Change::Delete)]), (90_000, 90_000, 50_000 + 1_500 + 20_000));
}

/// ```text
///  host      [launch a]  [sync A==========] [sync B]       B takes over what A gave up
/// ```
#[test]
fn removing_one_of_two_waits_moves_the_time_into_the_other() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..50_000, "a");
    e.sync(t, "cudaStreamSynchronize", 10_000..53_000, GPU0);
    e.device_sync(t, 54_000..56_000, 0);
    e.launch(t, 63_000..68_000, GPU0, 70_000..90_000, "b");
    let found = look::analysed(&e);
    let program = look::program(&found);
    let (all, without) = (outcome(&program, &[]), outcome(&program, &[(0, Change::Delete)]));
    assert!(all.end - without.end <= 3_000, "{all:?} {without:?}");
    assert!(without.waited.raw[1] - all.waited.raw[1] > 35_000, "{all:?} {without:?}");
    let both = outcome(&program, &[(0, Change::Delete), (1, Change::Delete)]);
    assert!(all.end - both.end > 17_000, "{both:?}");
}

/// ```text
///  host      [copy, staged===========][sync]···[launch]
///  stream 7     [copy~~~~~~~~~~~~~~~~~~~]         [k~~~~]
///  pinned    [copy]···[launch]
///  stream 7         [copy~][k~~~~]                           1 MiB at the speed of the bus
/// ```
#[test]
fn an_upload_from_pinned_memory_takes_the_bus_only() {
    let (mut e, t) = empty();
    let copy = Copy::h2d(1 << 20, Memory::Pageable);
    e.memcpy(t, 0..200_000, copy, GPU0, 20_000..210_000);
    e.sync(t, "cudaStreamSynchronize", 201_000..214_000, GPU0);
    e.launch(t, 220_000..225_000, GPU0, 227_000..300_000, "k");
    let (recorded, kept, pinned) = ends(&e, &[(0, Change::Pinned)]);
    assert_eq!(kept, recorded);
    let found = look::analysed(&e);
    let bus = look::program(&found).learned.pinned(1 << 20, Direction::HostToDevice);
    let expected = 5_000 + 2_000 + bus + 73_000;
    assert!((pinned - expected).abs() < 5_000, "{pinned} {expected}");
    // Staging keeps the host, asynchronous or not.
    let (_, _, pageable) = ends(&e, &[(0, Change::NonBlocking)]);
    assert!(recorded - pageable < 14_000, "{pageable}");
}

/// ```text
///  host      [copy][sync====]  …  [copy][sync]  …             each read waits for its work
///  dropped                                                    the copies are gone too
/// ```
#[test]
fn a_dropped_read_takes_its_copy_along() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..50_000, "a");
    e.item(t, 10_000..60_000, GPU0, 51_000..57_000);
    e.launch(t, 63_000..68_000, GPU0, 70_000..90_000, "b");
    let (_, kept, dropped) = ends(&e, &[(0, Change::Drop)]);
    let (_, _, delayed) = ends(&e, &[(0, Change::Delay)]);
    assert_eq!((kept, dropped), (90_000, 50_000 + 1_500 + 20_000));
    assert!(dropped < delayed && delayed < kept, "{dropped} {delayed} {kept}");
    // A value kept on the GPU costs an op there.
    let (_, _, stays) = ends(&e, &[(0, Change::OnGpu)]);
    assert!(dropped < stays && stays <= delayed, "{dropped} {stays} {delayed}");
}

/// A number that is added up on the GPU waits for nothing at the end of its iteration; a delayed read does.
///
/// ```text
///  step #    [launch a][read==========]·[launch b]···     a is long: at the end of each step the GPU is behind
///  stream 7      [a~~~~~~~~~~~~~~~]         [b]
/// ```
#[test]
fn what_stays_on_the_gpu_is_not_waited_for() {
    let (mut e, t) = empty();
    for i in 0..20i64 {
        let at = i * 130_000;
        e.nvtx(t, at..at + 129_000, &format!("step {i}"));
        e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 90_000, "a");
        e.item(t, at + 10_000..at + 96_000, GPU0, at + 90_500..at + 92_000);
        e.launch(t, at + 97_000..at + 102_000, GPU0, at + 104_000..at + 106_000, "b");
    }
    let saved = |fix| {
        let report = look::report_with(&e, &look::asking(&[("S1", fix)]));
        report.totals.iteration.expect("a loop").saved_ns
    };
    let (stays, delayed) = (saved(Change::OnGpu), saved(Change::Delay));
    assert!(stays > delayed + 3_000, "{stays} {delayed}");
    // A loss that is read is advised to stay there.
    let site = &look::report(&e).sites[0];
    assert_eq!(site.recoverable.as_ref().map(|r| r.change), Some(Change::OnGpu));
}

/// ```text
///  main      [launch]··························[launch]        backward(): no call of main's
///  autograd            [launch][wait=======][launch]
/// ```
#[test]
fn a_wait_of_the_autograd_thread_delays_the_main_thread() {
    let (mut e, main) = empty();
    let autograd = e.thread(100, 101);
    for at in (0..4).map(|i| i * 1_000_000) {
        for k in 0..3 {
            let start = at + k * 10_000;
            e.launch(main, start..start + 5_000, GPU0, start + 7_000..start + 8_000, "f");
        }
        let burst = at + 40_000;
        for k in 0..4 {
            let start = burst + k * 10_000;
            e.launch(autograd, start..start + 5_000, GPU0, start + 7_000..start + 8_000, "b");
        }
        e.launch(autograd, burst + 50_000..burst + 55_000, GPU0, burst + 57_000..burst + 500_000, "long");
        e.sync(autograd, "cudaStreamSynchronize", burst + 60_000..burst + 503_000, GPU0);
        e.launch(autograd, burst + 510_000..burst + 515_000, GPU0, burst + 517_000..burst + 518_000, "b");
    }
    let all: Vec<_> = (0..4).map(|i| (i, Change::Delete)).collect();
    let (recorded, kept, without) = ends(&e, &all);
    assert_eq!(kept, recorded);
    // Each iteration's 440 µs: main starts the next one earlier, but the long kernels then fill the GPU.
    assert!(kept - without > 1_200_000, "{kept} {without}");
}

/// ```text
///  thread A  [launch][launch][launch]  …
///  thread B    [launch][sync==][launch]   …       calls overlap: side by side, no handing over
/// ```
#[test]
fn threads_side_by_side_hand_nothing_over() {
    let (mut e, a) = empty();
    let b = e.thread(100, 101);
    for at in (0..40).map(|i| i * 20_000) {
        e.launch(a, at..at + 9_000, GPU0, at + 11_000..at + 12_000, "a");
        e.launch(b, at + 3_000..at + 8_000, SIDE, at + 10_000..at + 15_000, "b");
        e.sync(b, "cudaStreamSynchronize", at + 9_000..at + 17_000, SIDE);
    }
    let all: Vec<_> = (0..40).map(|i| (i, Change::Delete)).collect();
    let (recorded, kept, without) = ends(&e, &all);
    assert_eq!(kept, recorded);
    assert!(kept - without < 10_000, "thread A goes its own way: {kept} {without}");
}

/// ```text
///  main      [30 launches][long][sync==========][launch][30 launches] …
///  callbacks                                     [launch]                now and then, beside main's: it follows main
///  stream 7               [long~~~~~~~~~~]       [c]
/// ```
#[test]
fn a_thread_that_comes_now_and_then_keeps_up_with_the_busy_one() {
    let (mut e, main) = empty();
    let callbacks = e.thread(100, 101);
    for at in (0..10).map(|i| i * 1_000_000) {
        for start in (0..30).map(|k| at + k * 10_000) {
            e.launch(main, start..start + 5_000, GPU0, start + 7_000..start + 8_000, "f");
        }
        e.launch(main, at + 300_000..at + 305_000, GPU0, at + 307_000..at + 800_000, "long");
        e.sync(main, "cudaStreamSynchronize", at + 310_000..at + 803_000, GPU0);
        e.launch(callbacks, at + 805_000..at + 810_000, GPU0, at + 812_000..at + 813_000, "c");
        e.launch(main, at + 806_000..at + 811_000, GPU0, at + 814_000..at + 815_000, "f");
    }
    let all: Vec<_> = (0..10).map(|i| (i, Change::Delete)).collect();
    let (recorded, kept, without) = ends(&e, &all);
    assert_eq!(kept, recorded);
    assert!(kept - without > 2_500_000, "what it issues does not hold main up: {kept} {without}");
}

/// ```text
///  main      [launch a]  [sync============]···[launch b]
///  other                                                  ····[sync]     its only call, when main is done: it follows main
/// ```
#[test]
fn a_thread_that_comes_when_all_is_done_does_not_hold_the_end() {
    let (mut e, t) = empty();
    let other = e.thread(100, 101);
    e.launch(t, 0..5_000, GPU0, 7_000..50_000, "a");
    e.sync(t, "cudaStreamSynchronize", 10_000..53_000, GPU0);
    e.launch(t, 63_000..68_000, GPU0, 70_000..90_000, "b");
    e.device_sync(other, 1_000_000..1_002_000, 0);
    let (recorded, kept, without) = ends(&e, &[(0, Change::Delete)]);
    assert_eq!((recorded, kept), (1_002_000, 1_002_000));
    assert!(kept - without > 17_000, "main ends 18.5 µs earlier: {kept} {without}");
}

/// ```text
///  stream 7   [a~~~~~~~~~~~~]
///  stream 13                 [b~~~]        launched long before: it follows a, event recorded or not
/// ```
#[test]
fn an_op_follows_another_stream() {
    for recorded in [true, false] {
        let (mut e, t) = empty();
        e.launch(t, 0..5_000, GPU0, 7_000..500_000, "a");
        if recorded {
            e.event_record(t, 5_100..5_200, GPU0, 3);
            e.stream_wait(t, 5_300..5_400, SIDE, 3);
        }
        e.launch(t, 6_000..11_000, SIDE, 502_000..600_000, "b");
        e.sync(t, "cudaStreamSynchronize", 20_000..603_000, SIDE);
        e.launch(t, 610_000..615_000, GPU0, 617_000..900_000, "c");
        let (span, kept, without) = ends(&e, &[(0, Change::Delete)]);
        assert!((span - kept).abs() <= 2_000, "{span} {kept}");
        // c runs right after a, while b runs beside it.
        assert!((without - (501_500 + 283_000)).abs() <= 2_000, "{without}");
    }
}

/// ```text
///  host      [l][l] … [launch that waits for a place in the queue===========][l]
///  stream 7     [k0~~~~][k1~~~~] …
/// ```
#[test]
fn a_full_queue_holds_the_host() {
    let (mut e, t) = empty();
    let work = |k: i64| 7_000 + k * 101_000..107_000 + k * 101_000;
    let mut at = 0;
    for k in 0..1_100i64 {
        let full = (k >= 1_024).then(|| work(k - 1_024).end);
        let end = full.map_or(at + 5_000, |ended| (at + 5_000).max(ended));
        e.launch(t, at..end, GPU0, work(k), "k");
        at = end + 1_000;
    }
    e.device_sync(t, at..work(1_099).end + 3_000, 0);
    let (recorded, kept, without) = ends(&e, &[(0, Change::Delete)]);
    assert!((recorded - kept).abs() <= 10_000, "{recorded} {kept}");
    assert!(recorded - without <= 10_000, "the GPU's work remains: {without}");
}

/// ```text
///  host      [launch w][sync==========][l1][l2] … [l300=====][l301=====] … [l600]~~~~~~~~~~~~~~~~~[launch z]
///  stream 7    [w~~~~~~~~~~~~~~~~~~~~]  [k1~~~~~][k2~~~~~] …                                          [z]
///  without   [launch w][l1] … [l299][l300=====][l301=====] …     the wait's time is the full queue's now, not won
/// ```
/// The queue is 300 deep here, which only the capture tells.
#[test]
fn a_full_queue_takes_over_from_a_wait() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..10_000_000, "w");
    e.sync(t, "cudaStreamSynchronize", 6_000..10_003_000, GPU0);
    let ended = |k: i64| 10_010_000 + k * 101_500;
    let mut at = 10_004_000;
    for k in 1..=600i64 {
        let end = (at + 5_000).max(if k > 300 { ended(k - 300) } else { 0 });
        e.launch(t, at..end, GPU0, ended(k) - 100_000..ended(k), "k");
        at = end + 1_000;
    }
    at += 40_000_000;
    e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 17_000, "z");
    let found = look::analysed(&e);
    assert_eq!(look::program(&found).learned.depth, 300);
    let (recorded, kept, without) = ends(&e, &[(0, Change::Delete)]);
    assert!((recorded - kept).abs() <= 1_000, "{recorded} {kept}");
    // w and the queue behind it keep the host: only k1's start right after w is saved.
    assert!((0..20_000).contains(&(kept - without)), "{kept} {without}");
}

/// A queue that held more than usual without blocking holds as much again.
#[test]
fn a_queue_that_was_deeper_is_deeper() {
    let (mut e, t) = empty();
    let work = |k: i64| 7_000 + k * 101_000..107_000 + k * 101_000;
    for k in 0..1_500i64 {
        e.launch(t, k * 6_000..k * 6_000 + 5_000, GPU0, work(k), "k");
    }
    let at = 200_000_000;
    e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 17_000, "z");
    let found = look::analysed(&e);
    let program = look::program(&found);
    assert!(program.learned.depth > 1_400, "{}", program.learned.depth);
    assert_eq!(outcome(&program, &[]).end, program.recorded);
}

/// ```text
///  host      [copy, staged========][sync] …          2100 uploads; from pinned memory they are only enqueued, 1024 at most
///  pinned    [c][c][c] … [c=====][c=====] … ~~~~~~[launch z]
/// ```
#[test]
fn copies_wait_for_a_place_in_the_queue_too() {
    let (mut e, t) = empty();
    const COPIES: i64 = 2_100;
    for at in (0..COPIES).map(|i| i * 910_000) {
        let copy = Copy::h2d(8 << 20, Memory::Pageable);
        e.memcpy(t, at..at + 900_000, copy, GPU0, at + 20_000..at + 890_000);
        e.sync(t, "cudaStreamSynchronize", at + 901_000..at + 904_000, GPU0);
    }
    let at = COPIES * 910_000 + 300_000_000;
    e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 17_000, "z");
    let found = look::analysed(&e);
    let program = look::program(&found);
    let all: Vec<_> = (0..found.waits.len()).map(|wait| (wait, Change::Pinned)).collect();
    let end = outcome(&program, &all).end;
    let each = program.learned.pinned(8 << 20, Direction::HostToDevice);
    let expected = (COPIES - 1_024) * each + 300_000_000;
    assert!((end - expected).abs() < expected / 20, "{end} {expected}");
}

#[derive(Clone, Debug)]
enum Do {
    Host(i64),
    Launch { side: bool, work: i64 },
    Sync { side: bool },
    Device,
}

fn doing() -> impl Strategy<Value = Do> {
    prop_oneof![
        4 => (1_000..60_000i64).prop_map(Do::Host),
        6 => (any::<bool>(), 1_000..150_000i64).prop_map(|(side, work)| Do::Launch { side, work }),
        2 => any::<bool>().prop_map(|side| Do::Sync { side }),
        1 => Just(Do::Device),
    ]
}

/// Runs a program on a GPU that keeps to the rules, without the waits in `without`. Draws it, and returns its end.
fn execute(list: &[Do], without: &[usize], mut draw: Option<(&mut Export, Thread)>) -> i64 {
    let (mut now, mut last_call, mut stream, mut wait) = (0, 0, [i64::MIN / 2; 2], 0);
    for what in list {
        now += 500;
        match what {
            Do::Host(ns) => now += ns,
            Do::Launch { side, work } => {
                let free = &mut stream[usize::from(*side)];
                let start = (now + 5_000 + 2_000).max(*free + 1_500);
                *free = start + work;
                if let Some((e, t)) = &mut draw {
                    let gpu = if *side { SIDE } else { GPU0 };
                    e.launch(*t, now..now + 5_000, gpu, start..start + work, "k");
                }
                now += 5_000;
                last_call = now;
            }
            Do::Sync { .. } | Do::Device => {
                wait += 1;
                last_call = now;
                if without.contains(&(wait - 1)) {
                    continue;
                }
                let until = match what {
                    Do::Sync { side } => stream[usize::from(*side)],
                    _ => stream[0].max(stream[1]),
                };
                let end = (now + 2_000).max(if until > now { until + 4_000 } else { 0 });
                if let Some((e, t)) = &mut draw {
                    match what {
                        Do::Sync { side } => {
                            e.sync(*t, "cudaStreamSynchronize", now..end, if *side { SIDE } else { GPU0 })
                        }
                        _ => e.device_sync(*t, now..end, 0),
                    };
                }
                now = end;
                last_call = now;
            }
        }
    }
    last_call.max(stream[0]).max(stream[1])
}

/// How far learned medians may be off in all, per wait and per op.
fn tolerance(list: &[Do]) -> i64 {
    2_500 * list.len() as i64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Removing nothing changes nothing. A program without some waits takes as long as the simulation of the
    /// recorded one says.
    #[test]
    fn the_simulation_knows_what_the_program_would_do(
        mut list in prop::collection::vec(doing(), 4..60),
        chosen in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        list.insert(0, Do::Launch { side: false, work: 20_000 });
        list.insert(1, Do::Launch { side: true, work: 20_000 });
        let (mut e, t) = empty();
        let recorded = execute(&list, &[], Some((&mut e, t)));
        let found = look::analysed(&e);
        let program = look::program(&found);
        let plain = outcome(&program, &[]);
        let first = program.origin;
        prop_assert!((plain.end + first - recorded).abs() <= tolerance(&list) / 4, "{} {recorded}", plain.end + first);
        let waits = found.waits.len();
        if waits == 0 {
            return Ok(());
        }
        let mut gone: Vec<usize> = chosen.iter().map(|c| c.index(waits)).collect();
        gone.sort_unstable();
        gone.dedup();
        let fixes: Vec<_> = gone.iter().map(|&w| (w, Change::Delete)).collect();
        let without = outcome(&program, &fixes);
        let truth = execute(&list, &gone, None);
        prop_assert!(without.end <= plain.end + tolerance(&list) / 4, "{} {}", without.end, plain.end);
        prop_assert!((without.end + first - truth).abs() <= tolerance(&list), "{} {truth} {recorded}", without.end + first);
        // Values are inside the bounds before anything is cut.
        prop_assert_eq!(found.prices.cut, 0, "{:?}", found.prices.sites);
        for busy in without.busy {
            prop_assert!(busy <= without.end);
        }
    }
}

/// A process that ends long after its last work: unloading is not simulated.
///
/// ```text
///  host  [launch][sync====] … 20 times                     [unload]
///  GPU     [k~~~~~~~~~~~]                                      60 ms later
/// ```
#[test]
fn what_a_process_takes_down_is_no_error_of_the_simulation() {
    let drawn = |unloads: bool| {
        let (mut e, t) = empty();
        let mut at = 0;
        for _ in 0..20i64 {
            e.launch(t, at..at + 5_000, GPU0, at + 7_000..at + 90_000, "k");
            e.device_sync(t, at + 10_000..at + 93_000, 0);
            at += 100_000;
        }
        if unloads {
            e.call(t, "cuLibraryUnload", at + 60_000_000..at + 60_100_000);
        }
        let (_kept, path) = e.write_temp();
        let report = report::run(&[path], &options()).expect("a report");
        (report.totals.simulation_error, report.totals.recoverable_false_joint_ns)
    };
    assert_eq!(drawn(true), drawn(false));
    assert!(drawn(true).1.is_some(), "{:?}", drawn(true));
}

#[test]
fn without_rows_of_the_gpu_there_is_no_saving() {
    let (mut e, t) = empty();
    for at in (0..20i64).map(|n| n * 11_000_000) {
        e.call(t, "cudaLaunchKernel_v7000", at..at + 5_000);
        e.call(t, "cudaStreamSynchronize_v3020", at + 10_000..at + 10_010_000);
    }
    let (_kept, path) = e.write_temp();
    let report = report::run(&[path], &options()).expect("a report");
    assert!(report.totals.savings_unknown);
    assert_eq!((report.totals.waits, report.totals.undecided_ns), (20, None));
}
