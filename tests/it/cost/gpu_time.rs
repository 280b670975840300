//! Where GPU time goes, drawn: a moment counts for the first kind of work that runs in it.

use super::*;
use crate::export::{Copy, Memory};
use sync_report::model::gpu_time::{BlockedTime, CopyTime, GpuTime};
use sync_report::vocabulary::{Direction, HostMemory};

/// ```text
///  host  [launch a]  [copy u]   [launch m]  [sync=======]      [launch b]
///  7     [a------------]                                               [b---]
///  13            [u pageable H2D---------]
///  7                                      [m]
///        0   kernel   20   copy          40  45   idle after   80         90 µs
/// ```
#[test]
fn each_moment_counts_once() {
    let (mut e, t) = empty();
    e.launch(t, 0..2_000, GPU0, 0..20_000, "a");
    let other = Gpu { stream: 13, ..GPU0 };
    let call = e.call(t, "cudaMemcpyAsync", 3_000..5_000);
    e.copy(call, Copy::h2d(4096, Memory::Pageable), other, 10_000..40_000);
    e.memset(t, 6_000..8_000, 64, GPU0, 40_000..45_000);
    e.sync(t, "cudaStreamSynchronize", 10_000..46_000, GPU0);
    e.launch(t, 50_000..52_000, GPU0, 80_000..90_000, "b");
    let report = look::report(&e);
    assert_sound(&report);
    let upload =
        CopyTime { direction: Direction::HostToDevice, host_memory: HostMemory::Pageable, ns: 20_000 };
    let expected = GpuTime {
        kernels_ns: 30_000,
        collectives_ns: 0,
        copies: vec![upload],
        memsets_ns: 5_000,
        idle_after_waits_ns: 35_000,
        idle_otherwise_ns: 0,
        idle_blocked_ns: None,
        blocked_in: Vec::new(),
    };
    assert_eq!(report.gpu_time(), expected);
}

/// Two kernels of a thread, each of 10 µs, with 160 µs between them.
///
/// ```text
///  host  [a]                                                         [b]
///  GPU     [a 10-20]                                                   [b 180-190 µs]
/// ```
fn two_kernels() -> (Export, Thread) {
    let (mut e, t) = empty();
    e.launch(t, 5_000..8_000, GPU0, 10_000..20_000, "a");
    e.launch(t, 170_000..175_000, GPU0, 180_000..190_000, "b");
    (e, t)
}

/// Idle time not after waits, its part with a blocked CPU, and the blocking calls.
fn blocked(e: &Export) -> (i64, Option<i64>, Vec<BlockedTime>) {
    let report = look::report(e);
    assert_sound(&report);
    let time = report.gpu_time();
    (time.idle_otherwise_ns, time.idle_blocked_ns, time.blocked_in)
}

fn call(name: &str, ns: i64) -> BlockedTime {
    BlockedTime { call: Some(name.to_owned()), at: None, ns }
}

/// ```text
///  host  [a] [munmap]                     [b]     the kernel of the system works for it
///  GPU    [a]                                [b]
/// ```
#[test]
fn without_calls_that_wait_nothing_is_known() {
    let (mut e, t) = two_kernels();
    assert_eq!(blocked(&e), (160_000, None, vec![]));
    assert_eq!(blocked(e.clone().all_tables()), (160_000, None, vec![]), "without rows");
    e.osrt(t, "munmap", 30_000..90_000, &[]);
    assert_eq!(blocked(&e), (160_000, None, vec![]));
    e.osrt(t, "read", 2_000..3_000, &[]);
    assert_eq!(blocked(&e), (160_000, Some(0), vec![]), "before the gap");
}

/// ```text
///  host  [a] [epoch [poll 30-150------------------] [read 152-160] ] [b]
///                  [load     ]   sample in train.py:12
///  GPU    [a 10-20]                                                    [b 180-190 µs]
/// ```
#[test]
fn a_loader_that_is_late_is_named_with_its_place() {
    let (mut e, t) = two_kernels();
    e.osrt(t, "poll", 30_000..150_000, &[]).osrt(t, "read", 152_000..160_000, &[]);
    assert_eq!(blocked(&e), (160_000, Some(128_000), vec![call("poll", 120_000), call("read", 8_000)]));
    e.nvtx(t, 22_000..165_000, "epoch 3").nvtx(t, 25_000..151_000, "load 7");
    let at = |e: &Export| blocked(e).2[0].at.clone();
    assert_eq!(at(&e).as_deref(), Some("range load #"));
    let frames = [("get", "/usr/lib/python3.12/queue.py", 171), ("main", "/workspace/train.py", 12)];
    e.sample(t, 60_000, &frames).sample(t, 100_000, &frames);
    assert_eq!(at(&e).as_deref(), Some("train.py:12"));
    let page = look::printed(&look::report(&e), "markdown", &Default::default());
    assert!(page.contains("71 % idle, CPU blocked in poll (train.py:12)"), "{page}");
    assert!(page.contains("18 % idle, waiting for the CPU"), "{page}");
    assert!(page.contains("data loader, files, locks"), "{page}");
}

/// The backward pass's thread waits for the main thread.
///
/// ```text
///  main      [a]   [pthread_mutex_lock 40-100]    [b]
///  autograd  [c][pthread_cond_wait 12-----------------160]  [d]
///  GPU        [a 10-20]                             [b 180-190][d 200-210 µs]
/// ```
#[test]
fn a_lock_counts_while_no_thread_can_launch() {
    let (mut e, t) = two_kernels();
    let autograd = e.thread(t.pid, t.tid + 1);
    e.launch(autograd, 6_000..9_000, GPU0, 12_000..15_000, "c");
    e.launch(autograd, 192_000..195_000, GPU0, 200_000..210_000, "d");
    e.osrt(autograd, "pthread_cond_wait", 12_000..160_000, &[]);
    assert_eq!(blocked(&e), (170_000, Some(0), vec![]), "main works");
    e.osrt(t, "pthread_mutex_lock", 40_000..100_000, &[]);
    assert_eq!(blocked(&e), (170_000, Some(60_000), vec![call("pthread_mutex_lock", 60_000)]));
}

/// ```text
///  host  [a] [cudaHostAlloc 30-60  ] [sync 70-90 ]  [read 100-110 [fgets 101-109]]  [b]
///              [ioctl, futex 32-50]    [poll 75-85]
///  GPU    [a 10-20]                                                                  [b 180-190 µs]
/// ```
#[test]
fn what_cuda_waits_for_is_its_own() {
    let (mut e, t) = two_kernels();
    e.call(t, "cudaHostAlloc", 30_000..60_000);
    e.sync(t, "cudaStreamSynchronize", 70_000..90_000, GPU0);
    e.osrt(t, "ioctl", 31_000..32_000, &[]).osrt(t, "futex", 32_000..50_000, &[]);
    e.osrt(t, "poll", 75_000..85_000, &[]);
    e.osrt(t, "read", 100_000..110_000, &[]).osrt(t, "fgets", 101_000..109_000, &[]);
    assert_eq!(blocked(&e), (160_000, Some(10_000), vec![call("read", 10_000)]));
}

/// A gap belongs to the wait before it, whatever the CPU does next.
///
/// ```text
///  host  [a] [sync 10-20]  [read 30-150]   [b]
///  GPU    [a 10-20]                          [b 180-190 µs]
/// ```
#[test]
fn what_a_wait_leaves_is_not_counted_twice() {
    let (mut e, t) = two_kernels();
    e.sync(t, "cudaStreamSynchronize", 9_000..21_000, GPU0);
    e.osrt(t, "read", 30_000..150_000, &[]);
    assert_eq!(blocked(&e), (0, Some(0), vec![]));
}

/// ```text
///  host  [a]     off its CPU 40-60  [sync 70-90, off 75-85]   [b]
///  GPU    [a 10-20]                                              [b 180-190 µs]
/// ```
#[test]
fn without_system_calls_the_scheduler_tells() {
    let (mut e, t) = two_kernels();
    e.sync(t, "cudaStreamSynchronize", 70_000..90_000, GPU0);
    e.off_cpu(t, 40_000..60_000).off_cpu(t, 75_000..85_000);
    assert_eq!(blocked(&e), (160_000, Some(20_000), vec![BlockedTime { call: None, at: None, ns: 20_000 }]));
    e.osrt(t, "read", 100_000..110_000, &[]);
    assert_eq!(blocked(&e), (160_000, Some(10_000), vec![call("read", 10_000)]));
}

/// A loop that runs ahead of its GPU: its work begins after earlier work, and outlasts its launches.
///
/// ```text
///  host  [load]  [step 0][step 1] … [step 9]          [sync===========================]
///  GPU     [load 1-201 µs-----------------][k0 100 µs][k1]…                       [k9]
/// ```
#[test]
fn a_loop_that_runs_ahead_has_the_time_of_its_work() {
    let (mut e, t) = empty();
    e.launch(t, 0..1_000, GPU0, 1_000..201_000, "load");
    for i in 0..10 {
        let (at, from) = (10_000 + i * 10_000, 201_000 + i * 100_000);
        e.nvtx(t, at..at + 9_000, &format!("step {i}"));
        e.launch(t, at + 1_000..at + 3_000, GPU0, from..from + 100_000, "k");
    }
    e.sync(t, "cudaDeviceSynchronize", 120_000..1_205_000, GPU0);
    let report = look::report(&e);
    let time = &report.iterations.as_ref().expect("a loop").gpu_time;
    assert_eq!((time.kernels_ns, time.whole_ns()), (1_000_000, 1_000_000));
}

/// Kernels of one stream run one after the other: the most that fixes may save leaves their time.
///
/// ```text
///  host  [step 0 [launch k][sync=======] idle 20 µs][step 1 …
///  GPU            [k 80 µs-----------]
/// ```
#[test]
fn no_fix_saves_what_kernels_of_a_stream_take() {
    let (mut e, t) = empty();
    for i in 0..20 {
        let at = i * 100_000;
        e.nvtx(t, at..at + 99_000, &format!("step {i}"));
        e.launch(t, at + 1_000..at + 3_000, GPU0, at + 4_000..at + 84_000, "k");
        e.sync(t, "cudaDeviceSynchronize", at + 4_000..at + 86_000, GPU0);
    }
    let report = look::report(&e);
    let least = report.iterations.as_ref().expect("a loop").busiest_stream_ns;
    let one = report.totals.iteration.expect("priced");
    assert_eq!(least, 80_000);
    assert!(one.saved_ns <= one.high_ns && one.high_ns <= one.ns - least, "{one:?}");
}
