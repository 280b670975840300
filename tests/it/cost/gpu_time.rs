//! Where GPU time goes, drawn: a moment counts for the first kind of work that runs in it.

use super::*;
use crate::export::{Copy, Memory};
use sync_report::model::gpu_time::{CopyTime, GpuTime};
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
    };
    assert_eq!(report.gpu_time(), expected);
}
