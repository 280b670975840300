//! Long loops, of which some iterations are simulated.

use super::*;
use crate::export::{Copy, Memory};
use sync_report::cost::most::Capture;
use sync_report::cost::simulate::beside::Part;
use sync_report::cost::simulate::run::Variant;
use sync_report::cost::simulate::sample::Loop;
use sync_report::cost::simulate::{Assumed, Draft, Outcome, Program, run};
use sync_report::vocabulary::{Change, Direction};
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

fn program(found: &look::Kept, steps: usize) -> Program {
    let draft = Draft::new(&found.profile, &found.devices, &found.waits, &Assumed::default());
    let iterations = found.iterations.as_ref().expect("a loop");
    let repeats = Loop::new(&found.profile.calls, iterations, steps);
    let mut program = draft.place(&found.profile, &found.devices, &found.waits, Some(&repeats));
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

/// A site that no simulated iteration reaches has no figure, instead of 0.
#[test]
fn a_site_that_is_not_reached_is_known() {
    let found = look::analysed(&long_loop());
    assert_eq!(program(&found, 150).reached().raw, [true, false]);
}

/// The bound of work that goes with waits covers all waits, also those that runs skip.
///
/// ```text
///  host      [count][.item()======]··[select]··[upload====]       600 times, ·: 8 µs and up to 7 more
///  stream 7     [count~~~~][4 B]        [~~~~]      [64 KiB]
/// ```
#[test]
fn bounds_do_not_depend_on_what_is_simulated() {
    let (mut e, t) = empty();
    let [count, select] = ["cub::DeviceReduceKernel", "cub::DeviceSelectSweepKernel"];
    let ids = [(e.string(count), Part::Count), (e.string(select), Part::Select)];
    let kernels = ids.into_iter().map(|(id, part)| (id as u32, part)).collect();
    let mut now = 1_000;
    for i in 0..STEPS {
        let (begin, host) = (now, 8_000 + i * 104_729 % 7_000);
        e.launch(t, now..now + 5_000, GPU0, now + 7_000..now + 27_000, count);
        e.item(t, now + 6_000..now + 33_000, GPU0, now + 28_000..now + 29_500);
        now += 33_000 + host;
        e.launch(t, now..now + 4_000 + host / 8, GPU0, now + 7_000..now + 17_000, select);
        now += 6_000 + host;
        let upload = Copy::h2d(1 << 16, Memory::Pageable);
        e.memcpy_blocking(t, now..now + 30_000, upload, GPU0, now + 20_000..now + 28_000);
        e.nvtx(t, begin..now + 31_000, &format!("step {i}"));
        now += 32_000;
    }
    let found = look::analysed(&e);
    let (profile, devices, waits) = (&found.profile, &found.devices, &found.waits);
    let calls = |direction: Direction| -> Vec<_> {
        let of = |w: &&sync_report::waits::Wait| w.copy.is_some_and(|copy| copy.direction == direction);
        found.waits.iter().filter(of).map(|w| (w.call, w.copy_call)).collect()
    };
    let (reads, uploads) = (calls(Direction::DeviceToHost), calls(Direction::HostToDevice));
    let of = |steps: usize, goes: bool| {
        let mut program = program(&found, steps);
        if goes {
            program.mark_beside(profile, &kernels, [(0.into(), reads.clone())].into_iter());
            program.mark_made(profile, &uploads, 0.1);
        }
        let program = &program;
        let capture = Capture { profile, devices, waits, program };
        (program.size(), found.waits.keys().map(|w| capture.beside(w, Change::Drop)).sum::<i64>())
    };
    let ((all, whole), (some, sampled), (_, alone)) = (of(1_000_000, true), of(150, true), of(150, false));
    assert!(some * 4 < all, "{some} of {all}");
    assert_eq!(whole, sampled);
    // Per iteration: the select's launch and the gap before it, both kernels, and the copied data's making.
    assert!(whole - alone > STEPS * (8_000 + 4_000 + 5_000 + 30_000 + 6_500), "{whole} {alone}");
}
