//! `sync-report replay`: the workload around a wait, with and without it, on the GPU at hand.

use super::args::ReplayArgs;
use super::input::Exports;
use super::{input, options, output};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use sync_report::formats::Setting;
use sync_report::render::json;
use sync_report::replay::gpu;
use sync_report::replay::interrupt;
use sync_report::replay::measured::Measured;
use sync_report::replay::plan::Plan;
use sync_report::replay::python;
use sync_report::replay::trace::{self, ReplayRequest};
use sync_report::report as reports;

pub fn run(args: ReplayArgs) -> Result<ExitCode> {
    output::refuse_one_file(&args.output, args.save.as_deref())?;
    let arguments = [args.profile.clone()];
    let printed = args.emit_python.as_deref().unwrap_or(&args.output);
    let refuse = |inputs: &[PathBuf]| {
        let mut written = [printed].into_iter().chain(args.save.as_deref());
        written.try_for_each(|path| output::refuse_input(path, inputs))
    };
    refuse(&arguments)?;
    let exports = input::exports(&arguments, &args.shared)?;
    refuse(&exports.paths)?;
    let plan = plan(&exports, &args)?;
    if args.plan {
        return output::write(&args.output, &args.shared, |_, out| Ok(json::write(&plan, out)?));
    }
    if let Some(path) = &args.emit_python {
        let script = python::script(&plan);
        return output::write(path, &args.shared, |_, out| Ok(out.write_all(script.as_bytes())?));
    }
    let measured = measure(&plan, &args)?;
    if let Some(path) = &args.save {
        output::save(&measured, path)?;
    }
    output::print(args.format, &(plan, measured), Setting::default(), &args.output, &args.shared)
}

fn plan(exports: &Exports, args: &ReplayArgs) -> Result<Plan> {
    let options = exports.named(options::replay(args));
    let (report, mut found) = reports::run_whole(&exports.paths, &options)?;
    let request = ReplayRequest {
        sites: args.site.clone(),
        fixes: args.fix.clone(),
        host: args.host,
        matching: args.matching,
    };
    trace::plan(&report, &mut found[0], &request)
}

/// Notes of the plan come before notes of the run.
fn measure(plan: &Plan, args: &ReplayArgs) -> Result<Measured> {
    interrupt::listen().context("Ctrl-C cannot be heeded")?;
    let options = gpu::Options { device: args.device, lib_dirs: args.lib_dir.clone() };
    let budget = match args.rounds {
        Some(rounds) => gpu::Thoroughness::Rounds(rounds),
        None => gpu::Thoroughness::Time(Duration::from_secs_f64(args.seconds)),
    };
    let measured = gpu::execute(plan, &options, budget)?;
    let notes = plan.notes.iter().cloned().chain(measured.notes).collect();
    Ok(Measured { notes, ..measured })
}
