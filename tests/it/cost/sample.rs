//! Long loops, of which some iterations are simulated.

use super::*;
use sync_report::cost::simulate::run::Variant;
use sync_report::cost::simulate::{Assumed, Outcome, Program, run};
use sync_report::vocabulary::Change;
use typed_index_collections::TiVec;

const STEPS: i64 = 600;

/// ```text
///  NVTX       [step 0---------------------------][step 1---------------------------] …      600, no two as long
///  host        [launch a][.item()=======]··[launch b]        ·· : 8 µs and up to 7 more
///  stream 7             [a~~~~~~~~~~~]               [b~~~~~~]
///  step 110    [launch a][.item()=======]··[launch b][device sync=====]      now and then
/// ```
fn long_loop() -> Export {
    let (mut e, t) = empty();
    let mut now = 1_000;
    for i in 0..STEPS {
        let (begin, kernel, host) = (now, 20_000 + i * 7_919 % 17_000, 8_000 + i * 104_729 % 7_000);
        e.launch(t, now..now + 5_000, GPU0, now + 7_000..now + 7_000 + kernel, "a");
        now += 7_000 + kernel;
        e.item(t, now - 500..now + 4_000, GPU0, now + 500..now + 1_500);
        now += 4_000 + host;
        e.launch(t, now..now + 5_000, GPU0, now + 7_000..now + 37_000, "b");
        now += 6_000;
        if i % 100 == 10 {
            e.device_sync(t, now..now + 34_000, 0);
            now += 36_000;
        }
        e.nvtx(t, begin..now, &format!("step {i}"));
        now += 1_000;
    }
    e
}

/// Reads are the first site, the others the second.
fn program(found: &look::Kept, steps: usize) -> Program {
    let mut program = Program::new(&found.profile, &found.devices, &found.waits, &Assumed::default());
    let iterations = found.iterations.as_ref().expect("a loop");
    let thread = found.profile.calls.threads.binary_search(&iterations.tid).ok();
    program.mark_iterations(&found.profile.calls, iterations, thread, steps);
    let (reads, others) = found.waits.iter().partition(|w| w.copy.is_some());
    let site = |waits: Vec<&sync_report::waits::Wait>| waits.iter().map(|w| (w.call, w.copy_call)).collect();
    program.mark(&TiVec::from(vec![site(reads), site(others)]));
    program
}

fn outcomes(program: &Program) -> [Outcome; 2] {
    [Change::Keep, Change::Drop]
        .map(|fix| run(program, &Variant { fixes: vec![fix, Change::Keep].into(), ..Variant::default() }))
}

#[test]
fn some_iterations_stand_for_all() {
    let found = look::analysed(&long_loop());
    let (whole, some) = (program(&found, 1_000_000), program(&found, 150));
    assert!(some.size() * 5 < whole.size(), "{} of {}", some.size(), whole.size());
    assert_eq!(whole.reached().raw, [true, true]);
    let ([kept, dropped], [all, without]) = (outcomes(&some), outcomes(&whole));
    assert_eq!(all.end, whole.recorded);
    let near = |a: i64, b: i64| assert!((a - b).abs() * 50 <= b, "{a} {b}");
    near(kept.end, all.end);
    assert!(without.end + 1_000_000 < all.end);
    near(kept.end - dropped.end, all.end - without.end);
    near(kept.waited.raw[0], all.waited.raw[0]);
    near(kept.laps.expect("laps"), all.laps.expect("laps"));
    near(kept.busy_in_laps, all.busy_in_laps);
}

/// What no simulated iteration comes by has no figure, rather than nothing.
#[test]
fn a_site_that_is_not_reached_is_known() {
    let found = look::analysed(&long_loop());
    assert_eq!(program(&found, 150).reached().raw, [true, false]);
}
