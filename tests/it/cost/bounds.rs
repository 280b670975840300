//! Bounds of each wait alone, drawn: the shortest of blocked time, time to the next wait, and idle time.

use super::*;
use sync_report::cost::bounds::{self, Bounded};
use sync_report::model::Bounds;
use sync_report::vocabulary::Change;

/// The bounds of the one site that calls `api`.
fn of(e: &Export, api: &str) -> Bounds {
    let found = look::analysed(e);
    let mut sites = found.sites.iter().zip(&found.prices.sites).filter(|(s, _)| &*s.bundle.api == api);
    let bounds = sites.next().expect("a site").1.bounds;
    assert!(sites.next().is_none(), "one site only");
    assert_sound(&look::report(e));
    bounds
}

fn each(e: &Export, api: &str) -> (i64, i64) {
    let bounds = of(e, api);
    (bounds.each_low_ns, bounds.each_high_ns)
}

/// ```text
///  host   [launch a]  [sync=================]··[device sync]          blocked 43 µs, 2 µs to the next wait
///  GPU             [a~~~~~~~~~~~~~~~~~~~~]                            idle from 50 to 55 µs
/// ```
#[test]
fn the_next_wait_is_nearer_than_what_was_blocked() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..50_000, "a");
    e.sync(t, "cudaStreamSynchronize", 10_000..53_000, GPU0);
    e.device_sync(t, 55_000..57_000, 0);
    // A return takes 2 µs where a capture does not show it: all of it is certain.
    assert_eq!(each(&e, "cudaStreamSynchronize"), (2_000, 2_000));
}

/// ```text
///  host   [launch a][launch b]  [sync of a======]··················[device sync]      blocked 43 µs, 100 µs to the next
///  7              [a~~~~~~~~~~~~~~~~~~~~~~~~~~~]
///  13                [b~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]                       idle for the last 20 µs, or never
/// ```
#[test]
fn no_more_is_saved_than_the_device_idles() {
    for (until, idle) in [(133_000, 20_000), (200_000, 0)] {
        let (mut e, t) = empty();
        e.launch(t, 0..4_000, GPU0, 5_000..50_000, "a");
        e.launch(t, 4_000..8_000, SIDE, 9_000..until, "b");
        e.sync(t, "cudaStreamSynchronize", 10_000..53_000, GPU0);
        e.device_sync(t, 153_000..(until + 3_000).max(155_000), 0);
        assert_eq!(each(&e, "cudaStreamSynchronize").1, idle, "{until}");
        assert!(each(&e, "cudaStreamSynchronize").0 <= idle);
    }
}

/// ```text
///  host   [launch a]  [sync==============]·[launch b]        nothing waits after it: until the thread's last call
/// ```
#[test]
fn after_the_last_wait_the_threads_calls_count() {
    for (more, high) in [(true, 9_000), (false, 0)] {
        let (mut e, t) = empty();
        e.launch(t, 0..5_000, GPU0, 7_000..50_000, "a");
        e.sync(t, "cudaStreamSynchronize", 10_000..53_000, GPU0);
        if more {
            e.launch(t, 57_000..62_000, GPU0, 64_000..90_000, "b");
        }
        assert_eq!(each(&e, "cudaStreamSynchronize").1, high, "{more}");
    }
}

/// ```text
///  host   [launch][sync========================]···[launch][sync===]······································
///                  40 µs                        10          10 µs   40 µs
/// ```
/// By instances 10 + 10 µs; means (25 and 25 µs) would say 50.
#[test]
fn instances_are_summed_and_not_means() {
    let (mut e, t) = empty();
    for at in (0..4i64).map(|i| i * 110_000) {
        e.launch(t, at..at + 4_000, GPU0, at + 5_000..at + 42_000, "a");
        e.sync(t, "cudaStreamSynchronize", at + 5_000..at + 45_000, GPU0);
        e.launch(t, at + 46_000..at + 50_000, GPU0, at + 52_000..at + 62_000, "b");
        e.sync(t, "cudaStreamSynchronize", at + 55_000..at + 65_000, GPU0);
    }
    // After the last one there is no call any more; the others have 45 µs to the next.
    assert_eq!(each(&e, "cudaStreamSynchronize").1, 4 * 10_000 + 3 * 10_000);
}

/// ```text
///  host   [launch a]  [sync============]·[device sync]        1 µs: less than a call takes to return
/// ```
#[test]
fn what_is_certain_is_no_more_than_what_is_possible() {
    let (mut e, t) = empty();
    e.launch(t, 0..5_000, GPU0, 7_000..50_000, "a");
    e.sync(t, "cudaStreamSynchronize", 10_000..53_000, GPU0);
    e.device_sync(t, 54_000..57_000, 0);
    assert_eq!(each(&e, "cudaStreamSynchronize"), (1_000, 1_000));
}

/// ```text
///  host   [launch k][sync==============][sync]··················[launch k]    100 µs of waiting with no host work behind
///                    100 µs              1    100 µs                          it, then the reverse
///  GPU            [k~~~~~~~~~~~~~~~~~~]                              [k~~
/// ```
/// Wait by wait next to nothing is saved, and yet the host's work fits beside the kernel's: both together give it all.
#[test]
fn each_alone_bounds_no_group() {
    let (mut e, t) = empty();
    for at in (0..5i64).map(|i| i * 210_000) {
        e.launch(t, at..at + 4_000, GPU0, at + 5_000..at + 105_000, "k");
        e.sync(t, "cudaStreamSynchronize", at + 5_000..at + 107_000, GPU0);
        e.sync(t, "cudaStreamSynchronize", at + 107_000..at + 108_000, GPU0);
    }
    let found = look::analysed(&e);
    let (next, alone_at_most) = bounds::following(&found.profile, &found.devices, &found.waits);
    let launched = bounds::Launched::new(&found.profile, &found.devices);
    let capture = Bounded {
        profile: &found.profile,
        devices: &found.devices,
        waits: &found.waits,
        next: &next,
        alone_at_most: &alone_at_most,
        launched: &launched,
        program: &look::program(&found),
    };
    let gone: Vec<_> = found.waits.keys().map(|w| (w, Change::Delete)).collect();
    let bounds = bounds::of_all(&capture, &gone);
    assert!(bounds.each_high_ns <= 10 * 1_000, "{bounds:?}");
    assert!((4 * 98_000..=5 * 110_000).contains(&bounds.together_high_ns), "{bounds:?}");
}
