//! `sync-report check`: the gate.

use super::args::CheckArgs;
use super::{diff, folders, input, options, output};
use anyhow::{Context, Result, anyhow, bail};
use chrono::{DateTime, NaiveDate};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use sync_report::check::budget::Budget;
use sync_report::check::fail_on::FailOn;
use sync_report::check::{self, CheckError, Rules, init};
use sync_report::model::Report;
use sync_report::model::check::CheckReport;
use sync_report::model::trial::Trial;
use sync_report::report as reports;
use sync_report::whole::Whole;

/// Read and written if none is named.
const BUDGET: &str = "sync-budget.toml";

/// Exit code 1 if a rule is broken.
///
/// # Errors
/// One sentence where a rule cannot be held against what was given.
pub fn run(args: CheckArgs) -> Result<ExitCode> {
    if args.init_budget {
        return init_budget(&args);
    }
    let trial = args.measured.as_deref().map(trial).transpose()?;
    let of_trial = |on: &&FailOn| matches!(on, FailOn::Slower(_));
    if trial.is_none() && args.fail_on.iter().any(|on| of_trial(&on)) {
        return Err(CheckError::NoTrial.into());
    }
    let alone = trial.as_ref().filter(|_| args.profiles.is_empty());
    let (mut outcome, mut code) = match alone {
        None => captured(&args)?,
        Some(trial) => {
            output::refuse_input(&args.output, args.measured.as_slice())?;
            let options = [("--budget", args.budget.is_some()), ("--baseline", args.baseline.is_some())];
            let other = ("--fail-on", args.fail_on.iter().any(|on| !of_trial(&on)));
            if let Some((option, _)) = options.into_iter().chain([other]).find(|(_, given)| *given) {
                return Err(CheckError::NoProfile(option).into());
            }
            (check::measured::alone(trial), ExitCode::SUCCESS)
        }
    };
    if let Some(trial) = &trial {
        check::measured::hold(trial, &args.fail_on, &mut outcome)?;
    }
    let setting = output::setting(&args.repository, &args.select);
    output::print(args.format, &outcome, setting, &args.output, &args.shared)?;
    if code == ExitCode::SUCCESS && !outcome.passed {
        code = ExitCode::from(1);
    }
    Ok(code)
}

/// The result of `sync-report try`.
fn trial(path: &Path) -> Result<Trial> {
    let text = fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    serde_json::from_slice(&text)
        .map_err(|error| anyhow!("{}: no result of `sync-report try` ({error})", path.display()))
}

/// The outcome for captures, and the exit code that is due for what they are.
fn captured(args: &CheckArgs) -> Result<(CheckReport, ExitCode)> {
    let profiles = folders::exports(&args.profiles)?;
    let baseline = args.baseline.as_deref().map(diff::ranks).transpose()?;
    let captures = [&profiles[..], baseline.as_deref().unwrap_or_default()].concat();
    output::refuse_input(
        &args.output,
        &[&captures, args.budget.as_slice(), args.measured.as_slice()].concat(),
    )?;
    let budget = budget(args)?;
    let fail_on = match (&args.baseline, args.fail_on.is_empty()) {
        (Some(_), true) => vec![FailOn::NewFalse],
        _ => args.fail_on.clone(),
    };
    if budget.is_none() && fail_on.is_empty() {
        bail!(
            "nothing to check: give --budget, --baseline or --fail-on, or write {BUDGET} with --init-budget"
        );
    }
    let exports = input::exports(&profiles, &args.shared)?;
    // Prices rank the sites: `S3` is to be the report's, although no rule asks for prices.
    let mut options = exports.named(options::selected(&args.select, &args.shared));
    let old = baseline.map(|paths| diff::side(&paths, &options, &args.shared, false));
    let baseline = old.transpose()?.map(|(side, _)| side);
    let names = ranges(budget.as_ref());
    let (found, inside) = reports::run_parts(&exports.paths, &options, &names)?;
    let ranges: BTreeMap<String, Report> = names.into_iter().zip(inside).collect();
    options.progress = None; // the bar goes before the outcome comes
    let today = args.today.unwrap_or_else(today);
    let rules = Rules { budget: budget.as_ref(), fail_on: &fail_on, baseline: baseline.as_ref(), today };
    Ok((check::check(&found, &ranges, &rules)?, output::exit_code(&found)))
}

/// The budget named, else the one in this folder.
fn budget(args: &CheckArgs) -> Result<Option<Budget>> {
    let here = Some(Path::new(BUDGET)).filter(|path| path.is_file());
    let Some(path) = args.budget.as_deref().or(here) else { return Ok(None) };
    let text = fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let budget = Budget::parse(&text).map_err(|e| anyhow!("{}: {e}", path.display()))?;
    Ok(Some(budget))
}

fn ranges(budget: Option<&Budget>) -> Vec<String> {
    let named: BTreeSet<&String> =
        budget.iter().flat_map(|b| &b.limit).filter_map(|l| l.nvtx.as_ref()).collect();
    named.into_iter().cloned().collect()
}

/// Writes a budget that the profile keeps.
fn init_budget(args: &CheckArgs) -> Result<ExitCode> {
    let path = args.budget.clone().unwrap_or_else(|| PathBuf::from(BUDGET));
    if !args.force && path.exists() {
        bail!("{}: is there already; --force replaces it", path.display());
    }
    let profiles = folders::exports(&args.profiles)?;
    output::refuse_input(&args.output, &[&profiles, args.budget.as_slice()].concat())?;
    let exports = input::exports(&profiles, &args.shared)?;
    let options = exports.named(options::selected(&args.select, &args.shared));
    let found = reports::run(&exports.paths, &options)?;
    let text = init::write(&found);
    let mut file = Whole::begin(&path)?;
    file.write_all(text.as_bytes()).with_context(|| format!("{}: cannot be written", path.display()))?;
    // A budget that another process wrote meanwhile stays, too.
    if args.force {
        file.finish()?
    } else {
        file.finish_new()?
    }
    output::write(&args.output, &args.shared, |_, out| Ok(writeln!(out, "wrote {}", path.display())?))?;
    Ok(output::exit_code(&found))
}

/// In UTC.
fn today() -> NaiveDate {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let now = i64::try_from(seconds).ok().and_then(|s| DateTime::from_timestamp(s, 0));
    now.unwrap_or_default().date_naive()
}
