//! `sync-report lint`: the waits of sources that were never captured.

use super::args::LintArgs;
use super::{fix, options, output, own};
use anyhow::Result;
use std::process::ExitCode;
use sync_report::lint::{self, LintOptions};
use sync_report::model::lint::LintReport;

/// Exit code 1 if a finding fails the run.
pub fn run(args: LintArgs) -> Result<ExitCode> {
    own::read()?;
    // An existing source may lie below one of the paths: an input too.
    let is_source = args.output.extension().is_some_and(|end| end == "py") && args.output.exists();
    let inputs = args.paths.iter().chain(is_source.then_some(&args.output)).cloned().collect::<Vec<_>>();
    output::refuse_input(&args.output, &inputs)?;
    let wanted = LintOptions { threads: options::plain(&args.shared).threads, fail_on: args.fail_on };
    let mut report = lint::run(&args.paths, wanted)?;
    if args.fix {
        let (files, fixed) = lint::plan(&report);
        fix::apply(&files)?;
        if fixed > 0 {
            // Lines have moved.
            report = LintReport { fixed, ..lint::run(&args.paths, wanted)? };
        }
    }
    let passed = report.passed;
    output::print(args.format, &report, output::checkout(&args.repository), &args.output, &args.shared)?;
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
