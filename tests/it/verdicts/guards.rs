//! R26: waits that guard host memory, even if they found nothing to wait for.

use super::*;
use crate::export::Gpu;

const SIDE: Gpu = Gpu { device: 0, stream: 13 };
const TURN: i64 = 1_000_000;
const EVENT: i64 = 3;

#[derive(Clone, Copy)]
struct Ring {
    copy: Copy,
    on: Gpu,
    /// Records an event; `cast` adds a kernel on the stream before it.
    recorded: bool,
    cast: bool,
    /// The call that waits in the next iteration; empty for none.
    wait: &'static str,
    /// The host queries the event in the next iteration.
    asked: bool,
    schema: Schema,
}

const RING: Ring = Ring {
    copy: Copy { bytes: 1 << 20, from: Memory::Pinned, to: Memory::Device },
    on: SIDE,
    recorded: true,
    cast: false,
    wait: "cudaEventSynchronize",
    asked: false,
    schema: Schema::V2025_3,
};

impl Ring {
    fn said(self) -> Vec<String> {
        let (mut e, t) = empty_of(self.schema);
        for turn in 0..6 {
            let at = 1_000 + turn * TURN;
            if self.asked && turn > 0 {
                e.event_query(t, at..at + 1_000, EVENT);
            }
            if !self.wait.is_empty() && turn > 0 {
                let call = at + 10_000..at + 12_000;
                let wait = match self.wait {
                    "cudaEventSynchronize" => e.event_sync(t, call, EVENT),
                    "cudaDeviceSynchronize" => e.device_sync(t, call, 0),
                    api => e.sync(t, api, call, self.on),
                };
                e.python(wait, &[("load", "/w/data.py", 9)]);
            }
            e.memcpy(t, at + 100_000..at + 105_000, self.copy, self.on, at + 106_000..at + 150_000);
            if self.cast {
                e.launch(t, at + 110_000..at + 115_000, self.on, at + 150_000..at + 155_000, "cast");
            }
            if self.recorded {
                e.event_record(t, at + 120_000..at + 121_000, self.on, EVENT);
            }
            e.launch(t, at + 200_000..at + 205_000, GPU0, at + 206_000..at + 300_000, "gemm");
        }
        let report = look::report(&e);
        let at_load = report.sites.iter().filter(|site| site.user_frame.is_some());
        at_load.map(|site| format!("{} {}", site.waits, words(site))).collect()
    }
}

/// An event recorded right behind a pinned copy is the copy's own.
///
/// ```text
///  host    [sync e][write][H2D][record e]  [launch]     [sync e][write][H2D][record e]
///  s13                     [copy]                                        [copy]
///  s7                                         [gemm~~]
/// ```
#[test]
fn an_event_behind_a_pinned_copy_guards_its_memory() {
    let needed = ["5 true barrier D05 R26"];
    assert_eq!(RING.said(), needed);
    assert_eq!(Ring { on: GPU0, ..RING }.said(), needed);
    let to_host = Copy { bytes: 4096, from: Memory::Device, to: Memory::Pinned };
    assert_eq!(Ring { copy: to_host, ..RING }.said(), needed);
    let unknown = Copy { from: Memory::Unknown, ..RING.copy };
    assert_eq!(Ring { copy: unknown, ..RING }.said(), needed);
    for copy in [Copy { bytes: 64, from: Memory::Pageable, ..RING.copy }, Copy::d2d(1 << 20)] {
        assert_eq!(Ring { copy, ..RING }.said(), ["5 false idle F03 R06"], "{copy:?}");
    }
}

/// With other work before the record, or a wait for a whole stream, the copy is one of several awaited operations.
///
/// ```text
///  host    [sync][write][H2D][launch][record e]      [sync][write][H2D]
///  s13                   [copy][cast]                             [copy]
/// ```
#[test]
fn waits_that_cover_a_pinned_copy_stay_undecided() {
    assert_eq!(Ring { cast: true, ..RING }.said(), ["5 unknown value-read F03 R26"]);
    for (wait, pattern) in [("cudaStreamSynchronize", "F02"), ("cudaDeviceSynchronize", "F01")] {
        let said = Ring { wait, recorded: false, ..RING }.said();
        assert_eq!(said, [format!("5 unknown value-read {pattern} R26")], "{wait}");
    }
}

/// A copy with its own event needs no other wait: the host, or PyTorch's allocator, queries that event.
///
/// ```text
///  host    [query e][device sync][H2D][record e]     [query e][device sync][H2D][record e]
///  s13                            [copy]                                    [copy]
/// ```
#[test]
fn copies_with_an_event_of_their_own_need_no_other_wait() {
    for cast in [false, true] {
        let said = Ring { wait: "cudaDeviceSynchronize", asked: true, cast, ..RING }.said();
        assert_eq!(said, ["5 false idle F01 R05"], "cast: {cast}");
    }
}

/// After a wait that drained all streams, an event still guards its copy; a second device-wide wait guards nothing.
///
/// ```text
///  host    [H2D][record e] [device sync] [sync e] [device sync]
///  s13      [copy]
/// ```
#[test]
fn drained_events_guard_and_drained_devices_do_not() {
    let (mut e, t) = empty();
    e.memcpy(t, 100..200, RING.copy, SIDE, 210..5_000);
    e.event_record(t, 220..230, SIDE, EVENT);
    e.device_sync(t, 300..5_100, 0);
    e.event_sync(t, 5_200..5_300, EVENT);
    e.device_sync(t, 5_400..5_500, 0);
    let report = look::report(&e);
    let mut said: Vec<String> = report.sites.iter().map(words).collect();
    said.sort();
    // The event guards the copy, so the device-wide wait does not.
    assert_eq!(said, ["false explicit F01 R02", "false redundant F01 R04", "true barrier D05 R26"]);
}

/// A wait that found nothing may still order streams: the advice lets the GPU wait.
///
/// ```text
///  host    [launch]  [stream sync]  [launch]
///  s13       [cast]
///  s7                                 [gemm]
/// ```
#[test]
fn waits_between_streams_are_replaced_not_deleted() {
    let title = |stream: Gpu| {
        let (mut e, t) = empty();
        e.launch(t, 100..110, stream, 120..200, "cast");
        e.sync(t, "cudaStreamSynchronize", 5_000..5_100, stream);
        e.launch(t, 6_000..6_010, GPU0, 6_020..6_100, "gemm");
        let report = look::report(&e);
        only(&report).fix.as_ref().expect("a fix").title.clone()
    };
    assert_eq!(title(SIDE), "let the GPU wait: other.wait_stream(stream)");
    assert_eq!(title(GPU0), "delete it: it found nothing to wait for");
}
