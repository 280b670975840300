//! R25: synchronisations that end a measurement, by the trace alone.

use super::*;

const TURN: i64 = 1_000_000;

/// Six iterations with a range of a name: a launch, then a synchronisation that found its work pending.
struct Ranges {
    name: fn(i64) -> String,
    /// Every nth iteration synchronises.
    every: i64,
    /// A launch behind the synchronisation, still in the range.
    more: bool,
    twice: bool,
}

const FORWARD: Ranges = Ranges { name: |_| "forward".into(), every: 1, more: false, twice: false };

impl Ranges {
    fn said(&self) -> Vec<String> {
        let (mut e, t) = empty();
        for turn in 0..6 {
            let at = 1_000 + turn * TURN;
            e.nvtx(t, at..at + 500_000, &(self.name)(turn));
            e.launch(t, at + 1_000..at + 6_000, GPU0, at + 7_000..at + 200_000, "gemm");
            if turn % self.every == 0 {
                e.device_sync(t, at + 10_000..at + 201_000, 0);
                if self.twice {
                    e.device_sync(t, at + 210_000..at + 211_000, 0);
                }
            }
            if self.more {
                e.launch(t, at + 300_000..at + 305_000, GPU0, at + 306_000..at + 310_000, "relu");
            }
        }
        let report = look::report(&e);
        let mut said: Vec<String> = report.sites.iter().map(words).collect();
        said.sort();
        said.dedup();
        said
    }
}

/// The last call of most ranges of one name makes the range as long as the GPU's work.
///
/// ```text
///  NVTX    [forward                   ]  [forward                   ]
///  host      [launch][device sync====]     [launch][device sync====]
///  s7          [gemm~~~~~~~~~~~~~~~]         [gemm~~~~~~~~~~~~~~~]
/// ```
#[test]
fn the_last_call_of_ranges_measures_them() {
    let timing = ["false timing F01 R25"];
    assert_eq!(FORWARD.said(), timing);
    assert_eq!(Ranges { name: |turn| format!("step {turn}"), ..FORWARD }.said(), timing);
    let explicit = ["false explicit F01 R02"];
    assert_eq!(Ranges { more: true, ..FORWARD }.said(), explicit);
    assert_eq!(Ranges { every: 2, ..FORWARD }.said(), explicit);
    assert_eq!(Ranges { name: |turn| format!("layer{turn}"), ..FORWARD }.said(), explicit);
}

#[test]
fn a_second_wait_at_the_end_is_redundant() {
    assert_eq!(
        Ranges { twice: true, ..FORWARD }.said(),
        ["false explicit F01 R02", "false redundant F01 R04"]
    );
}

#[test]
fn names_of_ranges_say_what_measures() {
    for (name, timing) in [
        ("benchmark", true),
        ("bench/forward", true),
        ("timed_region", true),
        ("warm-up", true),
        ("Warmup", true),
        ("workbench", false),
        ("runtime", false),
    ] {
        // The named range also holds work after the wait.
        let (mut e, t) = empty();
        e.nvtx(t, 0..TURN, name);
        e.launch(t, 1_000..6_000, GPU0, 7_000..200_000, "gemm");
        e.device_sync(t, 10_000..201_000, 0);
        e.launch(t, 300_000..305_000, GPU0, 306_000..310_000, "relu");
        let report = look::report(&e);
        assert_eq!(only(&report).kind.as_str() == "timing", timing, "{name}");
        let title = &only(&report).fix.as_ref().expect("a fix").title;
        assert_eq!(title == "time with CUDA events, read after the loop", timing, "{name}: {title}");
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Uses {
    Nothing,
    Query,
    StreamWait,
}

/// Six iterations of work between two events. `waits`: for the second event, else for the device.
fn between_events(uses: Uses, waits: bool, work: bool) -> String {
    let (mut e, t) = empty();
    for turn in 0..6 {
        let at = 1_000 + turn * TURN;
        let first = 2 * turn;
        e.launch(t, at..at + 1_000, GPU0, at + 1_000..at + 90_000, "gemm");
        e.event_record(t, at + 2_000..at + 3_000, GPU0, first);
        if work {
            e.launch(t, at + 4_000..at + 6_000, GPU0, at + 90_000..at + 200_000, "gemm");
        }
        e.event_record(t, at + 7_000..at + 8_000, GPU0, first + 1);
        match waits {
            true => e.event_sync(t, at + 10_000..at + 201_000, first + 1),
            false => e.device_sync(t, at + 10_000..at + 201_000, 0),
        };
        match uses {
            Uses::Nothing => {}
            Uses::Query => _ = e.event_query(t, at + 210_000..at + 211_000, first),
            Uses::StreamWait => _ = e.stream_wait(t, at + 210_000..at + 211_000, GPU0, first),
        }
    }
    words(only(&look::report(&e)))
}

/// An event that nothing waits for or asks about only takes the time.
///
/// ```text
///  host   [record a][launch][record b][sync b====]  [record c][launch][record d][sync d====]
///  s7                 [gemm~~~~~~~~~~~~~~~~~~]                  [gemm~~~~~~~~~~~~~~~~~~]
/// ```
#[test]
fn two_events_around_work_measure_it() {
    assert_eq!(between_events(Uses::Nothing, true, true), "false timing F03 R25");
    assert_eq!(between_events(Uses::Nothing, false, true), "false timing F01 R25");
    for (uses, work) in [(Uses::Query, true), (Uses::StreamWait, true), (Uses::Nothing, false)] {
        let said = between_events(uses, true, work);
        assert!(said.starts_with("false explicit"), "{said}");
    }
}
