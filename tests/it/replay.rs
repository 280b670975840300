//! Replaying without a GPU: the program runs on stub libraries, built from C here, that pretend to be one.

mod plans;
pub mod stubs;

use stubs::Stubs;
use sync_report::replay::gpu::{Options, execute};
use sync_report::replay::plan::Plan;

/// Rounds enough to run everything.
const ROUNDS: u32 = 2;

/// Runs a plan in a process of its own: what went wrong, or what was measured, as JSON.
fn run(stubs: &Stubs, plan: &Plan, settings: &[(&str, &str)]) -> Result<serde_json::Value, String> {
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

/// What [`run`] starts: the stubs take their settings from the environment, and a GPU error spoils the process.
#[test]
#[ignore = "started by other tests"]
fn the_child() {
    let (Ok(plan), Ok(libraries)) = (std::env::var("REPLAY_PLAN"), std::env::var("REPLAY_LIBRARIES")) else {
        return;
    };
    let plan = std::fs::read_to_string(plan).expect("a plan");
    let plan: Plan = serde_json::from_str(&plan).expect("a plan is JSON");
    let options = Options { lib_dirs: vec![libraries.into()], rounds: ROUNDS, ..Options::default() };
    match execute(&plan, &options) {
        Ok(measured) => println!("\nMEASURED {}", serde_json::to_string(&measured).expect("JSON")),
        Err(e) => println!("\nFAILED {e}"),
    }
}

#[test]
fn a_plan_runs_in_all_its_variants() {
    let Some(stubs) = Stubs::get() else { return };
    let measured = run(stubs, &plans::loop_with_sync(), &[]).expect("it runs");
    println!("{measured:#}");
}
