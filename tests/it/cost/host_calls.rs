//! Host time in calls that allocate memory or load code.

use super::*;
use sync_report::model::HostCalls;

fn told(e: &Export) -> (Vec<HostCalls>, Vec<String>) {
    let report = look::report(e);
    let own = ["host-allocation", "device-allocation", "module-loading"];
    let said = report.warnings.iter().filter(|w| own.contains(&&*w.code));
    (report.profiles[0].host_calls.clone(), said.map(|w| w.message.clone()).collect())
}

/// A nested call is part of the outer one, a wait counts as a wait, and the longer of two threads counts.
///
/// ```text
///  main    [l] [cudaMalloc 100-300                      ]  [cudaHostAlloc 400-900, waits for k]
///               [cuLibraryLoadData 150-200] [sync 250-280]
///  other       [cudaMalloc 100-250]
///  GPU     [k ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]     µs
/// ```
#[test]
fn no_time_is_counted_twice() {
    let (mut e, t) = empty();
    let other = e.thread(t.pid, t.tid + 1);
    e.launch(t, 0..5_000, GPU0, 10_000..895_000, "k");
    e.call(t, "cudaMalloc", 100_000..300_000);
    e.call(t, "cuLibraryLoadData", 150_000..200_000);
    e.sync(t, "cudaStreamSynchronize", 250_000..280_000, SIDE);
    e.call(other, "cudaMalloc", 100_000..250_000);
    e.call(t, "cudaHostAlloc", 400_000..900_000);
    let (calls, said) = told(&e);
    let [malloc] = &calls[..] else { panic!("one family: {calls:?}") };
    assert_eq!((&*malloc.api, malloc.calls, malloc.ns), ("cudaMalloc", 1, 170_000));
    assert_eq!((malloc.start_up_ns, malloc.first_call_ns), (0, 0));
    assert_eq!(said.len(), 1, "{said:?}");
}

/// Twenty steps of 100 µs; each allocates pinned memory for `allocating` ns. A module loads before them.
fn steps(allocating: i64, loading: i64) -> Export {
    let (mut e, t) = empty();
    e.call(t, "cudaGetDeviceCount", -loading - 2_000..-loading - 1_000);
    e.call(t, "cuModuleLoadData", -loading..0);
    for i in 0..20 {
        let at = i * 100_000;
        e.nvtx(t, at + 1_000..at + 99_000, &format!("step {i}"));
        e.call(t, "cudaHostAlloc", at + 2_000..at + 2_000 + allocating);
        e.launch(t, at + 60_000..at + 65_000, GPU0, at + 70_000..at + 80_000, "k");
        e.sync(t, "cudaStreamSynchronize", at + 70_000..at + 90_000, GPU0);
    }
    e
}

#[test]
fn a_tenth_of_the_run_is_told() {
    let (calls, said) = told(&steps(30_000, 50_000));
    assert_eq!(
        calls.iter().map(|c| (c.ns, c.start_up_ns)).collect::<Vec<_>>(),
        [(600_000, 60_000), (50_000, 50_000)]
    );
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0]
            .starts_with("allocating pinned memory of the host takes 600 µs of the run of 2.04 ms, 29.4 %"),
        "{said:?}"
    );
    assert!(
        said[0]
            .contains("(20 calls on one thread, most time in cudaHostAlloc); allocate pinned buffers once"),
        "{said:?}"
    );
    let (_, said) = told(&steps(9_000, 900_000));
    assert!(
        said.len() == 1 && said[0].contains("in cuModuleLoadData, all at start-up); warm up"),
        "{said:?}"
    );
}

/// The first call of a process creates the context: its own time is unknown.
#[test]
fn the_first_call_creates_the_context() {
    let (mut e, t) = empty();
    e.call(t, "cudaMalloc", 0..200_000_000);
    e.launch(t, 200_000_000..200_005_000, GPU0, 200_010_000..200_020_000, "k");
    let (calls, said) = told(&e);
    assert_eq!((calls[0].ns, calls[0].first_call_ns), (200_000_000, 200_000_000));
    assert!(
        said[0].ends_with("most of it is the process' first CUDA call, which creates the context too"),
        "{said:?}"
    );
}
