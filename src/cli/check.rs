//! `sync-report check`: the gate.

use super::args::{CheckArgs, CheckFormat};
use super::{diff, input, output, report, summary};
use anyhow::{Context, Result, anyhow, bail};
use chrono::{DateTime, NaiveDate};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use sync_report::analysis::{self, Options};
use sync_report::check::budget::Budget;
use sync_report::check::fail_on::FailOn;
use sync_report::check::{self, Rules, init};
use sync_report::report::Report;
use sync_report::report::check::{CheckReport, github, json, markdown, sarif, table};
use sync_report::repository::Repository;

/// The budget that is taken, and written, where none is named.
const BUDGET: &str = "sync-budget.toml";

pub fn run(args: CheckArgs) -> Result<ExitCode> {
    let mut inputs = args.profiles.clone();
    inputs.extend(args.baseline.iter().flat_map(|path| diff::ranks(path)));
    inputs.extend(args.budget.clone());
    output::refuse_input(&args.output, &inputs)?;
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
    // What fixes would save is no matter here.
    let mut options = Options { simulate_up_to: Some(0), ..report::options(&args.select, &args.shared) };
    let baseline = args.baseline.as_deref().map(diff::ranks);
    let old = baseline.map(|paths| diff::side(&paths, &options, &args.shared, false));
    let baseline = old.transpose()?.map(|(side, _)| side);
    let found = analysis::run(&exports.paths, &options)?;
    let ranges = ranges(budget.as_ref(), &exports.paths, &options)?;
    options.progress = None; // the bar goes before the outcome comes
    let today = args.today.unwrap_or_else(today);
    let rules = Rules { budget: budget.as_ref(), fail_on: &fail_on, baseline: baseline.as_ref(), today };
    let outcome = check::check(&found, &ranges, &rules)?;
    print(&args, &outcome)?;
    let damaged = report::exit_code(&found);
    Ok(if damaged == ExitCode::SUCCESS && !outcome.passed { ExitCode::from(1) } else { damaged })
}

fn print(args: &CheckArgs, outcome: &CheckReport) -> Result<()> {
    let mut out = output::Output::open(&args.output, &args.shared)?;
    let style = out.style();
    let repository = Repository::new(args.repository.repository.clone(), args.select.source_root.clone());
    match args.format {
        CheckFormat::Table => table::render(outcome, &style, out.writer())?,
        CheckFormat::Markdown => markdown::render(outcome, out.writer())?,
        CheckFormat::Json => json::render(outcome, out.writer())?,
        CheckFormat::Sarif => sarif::render(outcome, &repository, out.writer())?,
        CheckFormat::Github => {
            let left = github::render(outcome, &repository, out.writer())?;
            summary::append(|limit| markdown::text_of(outcome, limit), left, out.writer())?;
        }
    }
    out.finish()
}

/// The budget named, else the one that lies here.
fn budget(args: &CheckArgs) -> Result<Option<Budget>> {
    let path = match &args.budget {
        Some(path) => path.clone(),
        None if Path::new(BUDGET).is_file() => PathBuf::from(BUDGET),
        None => return Ok(None),
    };
    let text = fs::read_to_string(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let budget = Budget::parse(&text).map_err(|e| anyhow!("{}: {e}", path.display()))?;
    Ok(Some(budget))
}

/// A report of each NVTX range that the budget limits.
fn ranges(budget: Option<&Budget>, paths: &[PathBuf], options: &Options) -> Result<BTreeMap<String, Report>> {
    let mut reports = BTreeMap::new();
    let named: BTreeSet<&String> =
        budget.iter().flat_map(|b| &b.limit).filter_map(|l| l.nvtx.as_ref()).collect();
    for range in named {
        let mut inside = options.clone();
        inside.filter.nvtx = Some(range.clone());
        reports.insert(range.clone(), analysis::run(paths, &inside)?);
    }
    Ok(reports)
}

/// Writes a budget that the profile keeps. An existing file stays unless `--force` is given.
fn init_budget(args: &CheckArgs) -> Result<ExitCode> {
    let path = args.budget.clone().unwrap_or_else(|| PathBuf::from(BUDGET));
    let exports = input::exports(&args.profiles, &args.shared)?;
    let found = analysis::run(&exports.paths, &report::options(&args.select, &args.shared))?;
    let text = init::write(&found);
    let mut open = OpenOptions::new();
    open.write(true);
    // create_new: what appears between a look and the writing is not overwritten either.
    if args.force {
        open.create(true).truncate(true)
    } else {
        open.create_new(true)
    };
    let mut file = open.open(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => {
            anyhow!("{}: is there already; --force replaces it", path.display())
        }
        _ => anyhow!("{}: cannot be written ({e})", path.display()),
    })?;
    file.write_all(text.as_bytes()).with_context(|| format!("{}: cannot be written", path.display()))?;
    let mut out = output::Output::open(&args.output, &args.shared)?;
    writeln!(out.writer(), "wrote {}", path.display())?;
    out.finish()?;
    Ok(report::exit_code(&found))
}

/// Today by the system's clock, in UTC.
fn today() -> NaiveDate {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let now = i64::try_from(seconds).ok().and_then(|s| DateTime::from_timestamp(s, 0));
    now.unwrap_or_default().date_naive()
}
