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
use sync_report::check::{self, Rules, init};
use sync_report::model::Report;
use sync_report::report as reports;
use sync_report::whole::Whole;

/// Read and written if none is named.
const BUDGET: &str = "sync-budget.toml";

/// Exit code 1 if a rule is broken.
pub fn run(args: CheckArgs) -> Result<ExitCode> {
    let args = CheckArgs { profiles: folders::exports(&args.profiles)?, ..args };
    let baseline = args.baseline.as_deref().map(diff::ranks).transpose()?;
    let captures = [&args.profiles[..], baseline.as_deref().unwrap_or_default()].concat();
    output::refuse_input(&args.output, &[&captures, args.budget.as_slice()].concat())?;
    if args.init_budget {
        return init_budget(&args);
    }
    let budget = budget(&args)?;
    let fail_on = match (&args.baseline, args.fail_on.is_empty()) {
        (Some(_), true) => vec![FailOn::NewFalse],
        _ => args.fail_on.clone(),
    };
    if budget.is_none() && fail_on.is_empty() {
        bail!(
            "nothing to check: give --budget, --baseline or --fail-on, or write {BUDGET} with --init-budget"
        );
    }
    let exports = input::exports(&args.profiles, &args.shared)?;
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
    let outcome = check::check(&found, &ranges, &rules)?;
    let setting = output::setting(&args.repository, &args.select);
    output::print(args.format, &outcome, setting, &args.output, &args.shared)?;
    let damaged = output::exit_code(&found);
    Ok(if damaged == ExitCode::SUCCESS && !outcome.passed { ExitCode::from(1) } else { damaged })
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
    let exports = input::exports(&args.profiles, &args.shared)?;
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
