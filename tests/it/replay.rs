//! Replaying without a GPU: the program runs on stub libraries, built from C here, that pretend to be one.

mod bench;
mod failures;
mod plans;
pub mod stubs;

use std::time::Duration;
use stubs::Stubs;
use sync_report::replay::gpu::{Options, Thoroughness, execute};
use sync_report::replay::measured::Measured;
use sync_report::replay::plan::{Certainty, Plan, ReplayOp};
use sync_report::replay::product::Element;

const ROUNDS: u32 = 2;

fn run(stubs: &Stubs, plan: &Plan, settings: &[(&str, &str)]) -> Result<Measured, String> {
    let folder = tempfile::tempdir().expect("temporary folder");
    let file = folder.path().join("plan.json");
    std::fs::write(&file, serde_json::to_string(plan).expect("a plan is JSON")).expect("written");
    let mut child = std::process::Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "replay::the_child", "--ignored", "--nocapture", "--test-threads=1"]);
    child.env("REPLAY_PLAN", &file).env("REPLAY_LIBRARIES", stubs.folder());
    child.envs(settings.iter().copied());
    let out = child.output().expect("it runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    let line = |mark: &str| text.lines().find_map(|l| l.split_once(mark).map(|(_, rest)| rest.to_owned()));
    match (line("MEASURED "), line("FAILED ")) {
        (Some(json), None) => Ok(serde_json::from_str(&json).expect("what was measured is JSON")),
        (None, Some(error)) => Err(error),
        _ => panic!("neither a result nor an error:\n{text}\n{stderr}"),
    }
}

/// [`run`] starts this: the stubs take their settings from the environment, and a GPU error spoils the process.
#[test]
#[ignore = "started by other tests"]
fn the_child() {
    let (Ok(plan), Ok(libraries)) = (std::env::var("REPLAY_PLAN"), std::env::var("REPLAY_LIBRARIES")) else {
        return;
    };
    let plan = std::fs::read_to_string(plan).expect("a plan");
    let plan: Plan = serde_json::from_str(&plan).expect("a plan is JSON");
    let rounds = std::env::var("REPLAY_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(ROUNDS);
    let time = std::env::var("REPLAY_SECONDS").ok().and_then(|s| s.parse().ok()).map(Duration::from_secs_f64);
    let options = Options { lib_dirs: vec![libraries.into()], ..Options::default() };
    match execute(&plan, &options, time.map_or(Thoroughness::Rounds(rounds), Thoroughness::Time)) {
        Ok(measured) => println!("\nMEASURED {}", serde_json::to_string(&measured).expect("JSON")),
        Err(e) => println!("\nFAILED {e}"),
    }
}

/// 100 µs of host and 100 µs of GPU work: one after the other, then at once. The median of many short runs, since the
/// stubs' GPU works on the host's clock and tests share the processor.
#[test]
fn without_its_wait_host_and_gpu_work_side_by_side() {
    let Some(stubs) = Stubs::get() else { return };
    let measured = run(stubs, &plans::loop_with_sync(), &[("REPLAY_ROUNDS", "60")]).expect("it runs");
    let [recorded, fixed] = &measured.variants[..] else { panic!("{measured:?}") };
    assert_eq!((recorded.name.as_str(), fixed.name.as_str()), ("as recorded", "S1 fixed"));
    assert!(recorded.wall.median_ns > 195_000, "{recorded:?}");
    assert!(
        recorded.gpu.median_ns > 100_000 && recorded.gpu.median_ns <= recorded.wall.median_ns,
        "{recorded:?}"
    );
    assert!(fixed.wall.median_ns > 100_000, "{fixed:?}");
    assert!(recorded.saving.is_none());
    let saving = fixed.saving.expect("it is compared");
    assert!(saving.median_ns > 20_000 && saving.runs == 60, "{saving:?}");
    assert_eq!(fixed.predicted_saving_ns, Some(100_000));
    assert_eq!(measured.gpu.name, "Stub GPU 0");
}

#[test]
fn every_op_runs() {
    let Some(stubs) = Stubs::get() else { return };
    let measured = run(stubs, &plans::everything(), &[]).expect("it runs");
    assert_eq!(measured.variants.len(), 1);
    assert!(measured.variants[0].wall.median_ns > 0 && measured.variants[0].saving.is_none());
    assert!(measured.notes.iter().any(|n| n.contains("managed memory")), "{:?}", measured.notes);
    let shapes: Vec<(u64, u64, u64, u64)> =
        measured.products.iter().map(|p| (p.m, p.n, p.k, p.batch)).collect();
    assert_eq!(shapes, [(33, 17, 65, 1), (40, 24, 56, 3)]);
}

#[test]
fn a_product_of_unknown_shape_takes_as_long_as_recorded() {
    let Some(stubs) = Stubs::get() else { return };
    for (start, recorded_ns) in [(256, 150_000), (2048, 40_000)] {
        let mut plan = plans::loop_with_sync();
        plan.gemms = vec![plans::gemm(start, start, start, Element::F16)].into();
        plan.gemms.raw[0].certainty = Certainty::DurationMatched;
        plan.gemms.raw[0].recorded_ns = recorded_ns;
        let measured = run(stubs, &plan, &[]).expect("it runs");
        let [product] = &measured.products[..] else { panic!("{measured:?}") };
        assert_eq!(product.wanted_ns, recorded_ns, "nothing is known of the recorded GPU");
        assert!(measured.notes.iter().any(|n| n.contains("how fast its GPU was")), "{:?}", measured.notes);
        let off = product.took_ns as f64 / recorded_ns as f64;
        assert!((0.7..1.4).contains(&off), "{product:?}");
        assert!([product.m, product.n, product.k].iter().all(|side| side % 8 == 0), "{product:?}");
    }
}

#[test]
fn a_product_too_large_for_the_memory_is_made_smaller_and_said() {
    let Some(stubs) = Stubs::get() else { return };
    let mut plan = plans::loop_with_sync();
    plan.gemms = vec![plans::gemm(4096, 4096, 4096, Element::F16)].into();
    let measured = run(stubs, &plan, &[("STUB_MEMORY", "80000000")]).expect("it runs");
    let [product] = &measured.products[..] else { panic!("{measured:?}") };
    assert!(product.m * product.n * product.k < 4096 * 4096 * 4096, "{product:?}");
    let note = "4096×4096×4096 fp16 needs 96 MiB";
    assert!(
        measured.notes.iter().any(|n| n.starts_with(note) && n.contains("it runs as")),
        "{:?}",
        measured.notes
    );
}

#[test]
fn another_gpu_than_the_recorded_one_and_a_busy_one_are_said() {
    let Some(stubs) = Stubs::get() else { return };
    let mut plan = plans::loop_with_sync();
    plan.gpu.name = Some("NVIDIA A100-SXM4-80GB".to_owned());
    let measured = run(stubs, &plan, &[("STUB_USED", "9000000000")]).expect("it runs");
    let said = |words: &str| measured.notes.iter().any(|n| n.contains(words));
    assert!(said("Recorded on NVIDIA A100-SXM4-80GB, replayed on Stub GPU 0"), "{:?}", measured.notes);
    assert!(said("are in use: if another program is at work on it"), "{:?}", measured.notes);
}

#[test]
fn a_timer_with_coarse_steps_is_not_used() {
    let Some(stubs) = Stubs::get() else { return };
    let measured = run(stubs, &plans::loop_with_sync(), &[("STUB_TICK", "1024")]).expect("it runs");
    assert!(measured.variants[0].gpu.median_ns > 100_000, "{measured:?}");
}

#[test]
fn a_plan_that_does_not_hold_together_is_refused() {
    let Some(stubs) = Stubs::get() else { return };
    for op in [
        ReplayOp::Gemm { gemm: 7.into(), stream: 0.into() },
        ReplayOp::Gemm { gemm: 0.into(), stream: 9.into() },
        ReplayOp::Record { event: 3.into(), stream: 0.into() },
        ReplayOp::Spin { ns: 5, stream: 2.into() },
    ] {
        let mut plan = plans::loop_with_sync();
        plan.variants[1].ops.push(op.clone());
        let error = run(stubs, &plan, &[]).expect_err("it does not run");
        assert!(error.starts_with("this cannot be replayed: the plan has no "), "{op:?}: {error}");
    }
    let mut plan = plans::loop_with_sync();
    plan.gemms.raw[0].shape.m = 0;
    let error = run(stubs, &plan, &[]).expect_err("it does not run");
    assert!(error.contains("no product of 0×48×32 fp16"), "{error}");
}

/// cuBLAS's work before a launch is in the recorded host time and in the replay: it must not count twice.
#[test]
fn host_time_of_cublas_is_not_spent_twice() {
    let Some(stubs) = Stubs::get() else { return };
    let acts = vec![ReplayOp::Host { ns: 300_000 }, ReplayOp::Gemm { gemm: 0.into(), stream: 0.into() }];
    let gemms = vec![plans::gemm(64, 48, 32, Element::F16)];
    let plan = plans::plan(gemms, vec![("as recorded", acts)]);
    let slow = [("STUB_CHOOSING", "200000"), ("REPLAY_ROUNDS", "100")];
    // The fastest of many rounds, and of some runs: tests share the processor.
    let all: Vec<_> = (0..5).map(|_| run(stubs, &plan, &slow).expect("it runs")).collect();
    let measured = all.iter().min_by_key(|one| one.variants[0].wall.low_ns).expect("five runs");
    let wall = measured.variants[0].wall.low_ns;
    assert!((295_000..480_000).contains(&wall), "300 µs, of which cuBLAS takes 200: {wall}");
    assert!(measured.notes.iter().any(|n| n.contains("which cuBLAS takes here")), "{:?}", measured.notes);
}

/// A replay without a number of rounds fills its time, with fewer stretches in a row if it must.
#[test]
fn a_replay_ends_in_its_time() {
    let Some(stubs) = Stubs::get() else { return };
    let plan = Plan { repeat: 1_000, ..plans::loop_with_sync() };
    let start = std::time::Instant::now();
    let measured = run(stubs, &plan, &[("REPLAY_SECONDS", "0.5")]).expect("it runs");
    assert!(start.elapsed().as_secs_f64() < 10.0, "{:?}", start.elapsed());
    assert!((2..100).contains(&measured.repeat), "{}", measured.repeat);
    let saving = measured.variants[1].saving.expect("it is compared");
    assert!((3..=100).contains(&saving.runs), "{saving:?}");
}
