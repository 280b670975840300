//! `sync-report replay`: the workload around a wait, with and without it, on the GPU at hand.

use super::args::{SharedArgs, parse_fix, parse_root};
use super::{input, output, progress, report};
use anyhow::{Context, Result};
use clap::{Args, ValueEnum, ValueHint};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use sync_report::analysis::pricing::WhatIf;
use sync_report::analysis::{self, Options};
use sync_report::cost::simulate::Fix;
use sync_report::replay::gpu;
use sync_report::replay::interrupt;
use sync_report::replay::measured::Measured;
use sync_report::replay::plan::{HostTime, Matching, Plan};
use sync_report::replay::python;
use sync_report::replay::timeline::{self, Wish};
use sync_report::report::replay as render;
use sync_report::sites::frames::PathRules;
use sync_report::verdict::source::SourceRoot;

#[derive(Args)]
pub struct ReplayArgs {
    /// Nsight Systems export (.sqlite) or report (.nsys-rep)
    #[arg(value_name = "PROFILE", value_hint = ValueHint::FilePath)]
    pub profile: PathBuf,
    /// Replay these sites (S3,S5), by id or key; by default the avoidable ones that cost most
    #[arg(long, value_name = "SITES", value_delimiter = ',')]
    pub site: Vec<String>,
    /// Make this change of a site, whatever its verdict, and count it as avoidable: keep, delete, gpu-wait, drop,
    /// non-blocking, pinned, delay, coalesce
    #[arg(long, value_name = "SITE=CHANGE", value_parser = parse_fix, value_delimiter = ',')]
    pub fix: Vec<(String, Fix)>,
    /// Print what would run, as JSON, and run nothing
    #[arg(long, conflicts_with_all = ["emit_python", "format"])]
    pub plan: bool,
    /// Write the same workload as a PyTorch script, with a switch for the waits, and run nothing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["format", "output"])]
    pub emit_python: Option<PathBuf>,
    /// How long the host works between calls: `recorded`, `unprofiled` (less the profiler's estimated part), `none`, or
    /// a factor
    #[arg(long, value_name = "TIME", default_value = "recorded", value_parser = parse_host)]
    pub host: HostTime,
    /// What a matrix product of unknown size takes here
    #[arg(long = "match", value_enum, default_value_t = Match::Peak)]
    pub matching: Match,
    /// How long to measure at most; fewer rounds are made where they agree, and at least three
    #[arg(long, value_name = "TIME", default_value_t = gpu::DEFAULT_SECONDS, value_parser = parse_seconds)]
    pub seconds: f64,
    /// Make this many rounds of measurements instead, each of which runs every variant twice, and the first twice for
    /// each
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// GPU to run on
    #[arg(long, value_name = "GPU", default_value_t = 0)]
    pub device: usize,
    /// Look for CUDA's libraries here first; may be given more than once
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub lib_dir: Vec<PathBuf>,
    /// Keep the results here too, as --replay-results reads them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["plan", "emit_python"])]
    pub save: Option<PathBuf>,
    /// How to print the results; `json` is what --replay-results reads
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Where to write them; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Simulate savings to compare with however large the capture is
    #[arg(long)]
    pub simulate: bool,
    /// Where the Python sources are: a directory, or OLD=NEW for paths recorded under OLD; may be given more than once
    #[arg(long, value_name = "[OLD=]NEW", value_parser = parse_root)]
    pub source_root: Vec<SourceRoot>,
    #[command(flatten)]
    pub shared: SharedArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
    Markdown,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Match {
    /// As long as recorded, scaled by the two GPUs' peaks
    Peak,
    /// As long as recorded
    Duration,
}

/// `recorded`, `unprofiled`, `none`, `0.5`.
fn parse_host(text: &str) -> Result<HostTime, String> {
    const MOST: f64 = 1000.0;
    match text {
        "recorded" => Ok(HostTime::Recorded),
        "unprofiled" => Ok(HostTime::Unprofiled),
        "none" => Ok(HostTime::Scaled(0.0)),
        _ => match text.parse::<f64>() {
            Ok(by) if (0.0..=MOST).contains(&by) => Ok(HostTime::Scaled(by)),
            _ => Err(format!("`{text}` is none of recorded, unprofiled, none or a factor from 0 to {MOST}")),
        },
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    const MOST: f64 = 3600.0;
    let seconds = text.parse::<f64>().ok().filter(|s| *s > 0.0 && *s <= MOST);
    seconds.ok_or_else(|| format!("`{text}` is no number of seconds up to {MOST}"))
}

pub fn run(args: ReplayArgs) -> Result<ExitCode> {
    output::refuse_one_file(&args.output, args.save.as_deref())?;
    let arguments = [args.profile.clone()];
    let written =
        [args.emit_python.as_deref().unwrap_or(&args.output)].into_iter().chain(args.save.as_deref());
    written.clone().try_for_each(|path| output::refuse_input(path, &arguments))?;
    let exports = input::exports(&arguments, &args.shared)?;
    written.clone().try_for_each(|path| output::refuse_input(path, &exports.paths))?;
    let plan = plan(&exports.paths[0], &args)?;
    if args.plan {
        return print(&args, |out| render::plan(&plan, out));
    }
    if let Some(path) = &args.emit_python {
        let script = python::script(&plan);
        if path == Path::new("-") {
            return print(&args, |out| out.write_all(script.as_bytes()));
        }
        fs::write(path, script).with_context(|| format!("{}: cannot be written", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let measured = measure(&plan, &args)?;
    if let Some(path) = &args.save {
        let mut json = Vec::new();
        render::json(&measured, &mut json)?;
        fs::write(path, json).with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    let mut out = output::Output::open(&args.output, &args.shared)?;
    let style = out.style();
    match args.format {
        Format::Table => render::table(&plan, &measured, &style, out.writer())?,
        Format::Json => render::json(&measured, out.writer())?,
        Format::Markdown => render::markdown(&plan, &measured, out.writer())?,
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn print(
    args: &ReplayArgs,
    what: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> Result<ExitCode> {
    let mut out = output::Output::open(&args.output, &args.shared)?;
    what(out.writer())?;
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn plan(path: &Path, args: &ReplayArgs) -> Result<Plan> {
    let options = Options {
        threads: report::threads(&args.shared),
        source_roots: args.source_root.clone(),
        rules: PathRules::default(),
        simulate_up_to: args.simulate.then_some(usize::MAX),
        progress: progress::bar(args.shared.quiet),
        what_if: WhatIf { fixes: args.fix.clone(), ..WhatIf::default() },
        ..Options::default()
    };
    let (report, mut found) = analysis::run_one(path, &options)?;
    let matching = match args.matching {
        Match::Peak => Matching::Peak,
        Match::Duration => Matching::Duration,
    };
    let wish = Wish { sites: args.site.clone(), fixes: args.fix.clone(), host: args.host, matching };
    timeline::plan(&report, &mut found, &wish)
}

/// Runs the plan; what it leaves out or assumes goes before what running it showed.
fn measure(plan: &Plan, args: &ReplayArgs) -> Result<Measured> {
    interrupt::listen().context("Ctrl-C cannot be heeded")?;
    let options = gpu::Options {
        device: args.device,
        lib_dirs: args.lib_dir.clone(),
        rounds: args.rounds.unwrap_or(gpu::DEFAULT_ROUNDS),
        time: args.rounds.is_none().then(|| Duration::from_secs_f64(args.seconds)),
    };
    let measured = gpu::execute(plan, &options)?;
    let notes = plan.notes.iter().cloned().chain(measured.notes).collect();
    Ok(Measured { notes, ..measured })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_times_are_words_or_factors() {
        for (text, host) in [
            ("recorded", HostTime::Recorded),
            ("unprofiled", HostTime::Unprofiled),
            ("none", HostTime::Scaled(0.0)),
            ("0.4", HostTime::Scaled(0.4)),
        ] {
            assert_eq!(parse_host(text), Ok(host));
        }
        for text in ["", "-1", "nan", "inf", "fast", "1e9"] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }
}
