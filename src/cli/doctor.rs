//! `sync-report doctor`: is this capture good enough?

use super::args::{DoctorArgs, SharedArgs};
use super::{input, output, progress};
use anyhow::Result;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use sync_report::analysis::{self, Options};
use sync_report::error::InputError;
use sync_report::report::Warning;
use sync_report::text::{escape_terminal, wrap};
use sync_report::{doctor, profile::commands};

pub fn run(args: DoctorArgs) -> Result<ExitCode> {
    let exports = input::exports(&args.profiles, &args.shared)?;
    let mut out = output::Output::open(Path::new("-"), &args.shared)?;
    let width = out.style().width.unwrap_or(usize::MAX);
    let mut code = ExitCode::SUCCESS;
    for path in &exports.paths {
        writeln!(out.writer(), "{}", escape_terminal(&path.display().to_string()))?;
        match analysis::analyse(path, &options(&args.shared)) {
            Ok(found) => {
                let warnings = doctor::warnings(&found);
                for check in doctor::checks(&found) {
                    let mark = if check.good { "ok " } else { "-- " };
                    writeln!(
                        out.writer(),
                        "  {mark} {:<30} {}",
                        check.question,
                        escape_terminal(&check.answer)
                    )?;
                }
                print(&warnings, width, out.writer())?;
                if warnings.iter().any(|w| w.code.starts_with(doctor::DAMAGED)) {
                    code = ExitCode::from(2);
                }
            }
            // What makes a report impossible is a finding here, but still bad input.
            Err(e) => match e.downcast::<InputError>()? {
                e @ InputError::NoCuda { .. } => {
                    writeln!(out.writer(), "  --  CUDA API calls                 none")?;
                    writeln!(out.writer())?;
                    writeln!(out.writer(), "{}", escape_terminal(&e.to_string()))?;
                    code = ExitCode::from(2);
                }
                e => return Err(e.into()),
            },
        }
    }
    out.finish()?;
    Ok(code)
}

fn options(shared: &SharedArgs) -> Options {
    Options {
        threads: super::report::threads(shared),
        progress: progress::bar(shared.quiet),
        ..Options::default()
    }
}

fn print(warnings: &[Warning], width: usize, out: &mut dyn Write) -> Result<()> {
    writeln!(out)?;
    if warnings.is_empty() {
        writeln!(out, "Nothing is missing: every wait has its exact line.")?;
        return Ok(());
    }
    let mut last = "";
    for warning in warnings {
        for line in wrap(&escape_terminal(&warning.message), width) {
            writeln!(out, "{line}")?;
        }
        // One command often mends several things: it stands once.
        if !warning.fix.is_empty() && warning.fix != last {
            writeln!(out, "    {}", escape_terminal(&warning.fix))?;
            last = &warning.fix;
        }
    }
    if warnings.iter().any(|w| w.fix.contains(commands::BACKTRACE_FLAGS)) {
        writeln!(out)?;
        for line in wrap(
            "Bracket the steps to look at with torch.cuda.profiler.start() and .stop(), and add --capture-range=cudaProfilerApi: backtraces slow every CUDA call.",
            width,
        ) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}
