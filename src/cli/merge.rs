//! `sync-report merge`: the results of many ranks as one report.

use super::args::MergeArgs;
use super::{folders, output};
use anyhow::Result;
use std::process::ExitCode;
use sync_report::formats::{Merged, Setting};
use sync_report::ranks;
use sync_report::ranks::parquet;
use sync_report::ranks::tables::Tables;

pub fn run(args: MergeArgs) -> Result<ExitCode> {
    let folders = folders::results(&args.results)?;
    output::refuse_input(&args.output, &folders)?;
    if args.format.folder.is_some() {
        parquet::refuse(&args.output)?;
    }
    let (tables, left_out) = Tables::read(&folders)?;
    let mut report = ranks::merged(&tables, args.top.unwrap_or(args.format.top))?;
    report.warnings.extend(left_out);
    let merged = Merged { report, tables };
    output::print(args.format, &merged, Setting::default(), &args.output, &args.shared)?;
    Ok(output::exit_code(&merged.report))
}
