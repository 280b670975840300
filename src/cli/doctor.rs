//! `sync-report doctor`: is this capture good enough?

use super::args::DoctorArgs;
use super::{folders, input, options, output};
use anyhow::Result;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use sync_report::analysis;
use sync_report::error::InputError;
use sync_report::model::Warning;
use sync_report::render::style::Style;
use sync_report::text::escape_terminal;
use sync_report::{doctor, profile::recapture};

/// Judges captures; 2 where one is damaged or holds no CUDA calls.
pub fn run(args: DoctorArgs) -> Result<ExitCode> {
    let args = DoctorArgs { profiles: folders::exports(&args.profiles)?, ..args };
    let exports = input::exports(&args.profiles, &args.shared)?;
    let mut good = true;
    output::write(Path::new("-"), &args.shared, |style, out| {
        for path in &exports.paths {
            good &= judge(path, &exports, &args, style, out)?;
        }
        Ok(())
    })?;
    for left_out in &exports.left_out {
        output::say(&escape_terminal(&left_out.message));
        good = false;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// Prints what one capture has and lacks; whether it could be read as a whole.
fn judge(
    path: &Path,
    exports: &input::Exports,
    args: &DoctorArgs,
    style: Style,
    out: &mut dyn Write,
) -> Result<bool> {
    let heading = escape_terminal(&exports.typed(path).display().to_string()).into_owned();
    let found = match analysis::analyse(path, &exports.named(options::plain(&args.shared))) {
        Ok(found) => found,
        // What makes a report impossible is a finding here, but still bad input.
        Err(e) => match e.downcast::<InputError>()? {
            e @ InputError::NoCuda { .. } => {
                writeln!(
                    out,
                    "{heading}\n  --  {:<30} none\n\n{}",
                    "CUDA API calls",
                    escape_terminal(&e.to_string())
                )?;
                return Ok(false);
            }
            e => return Err(e.into()),
        },
    };
    writeln!(out, "{heading}")?;
    let checks = doctor::checks(&found);
    for check in &checks {
        let mark = if check.good { "ok " } else { "-- " };
        writeln!(out, "  {mark} {:<30} {}", check.question, escape_terminal(&check.answer))?;
    }
    let warnings = doctor::warnings(&found);
    writeln!(out, "\n{}", advice(&warnings, checks.iter().all(|check| check.good), style))?;
    Ok(!warnings.iter().any(Warning::is_damage))
}

/// What is missing, and the commands that mend it; one command often mends several things: it stands once.
fn advice(warnings: &[Warning], whole: bool, style: Style) -> String {
    const BRACKET: &str = "Bracket the steps to look at with torch.cuda.profiler.start() and .stop(), and add --capture-range=cudaProfilerApi: backtraces slow every CUDA call.";
    if warnings.is_empty() {
        let nothing = "Nothing is missing: every wait has its exact line.";
        return if whole { nothing } else { "Other flags would show no more of this program." }.to_owned();
    }
    let mut lines = Vec::new();
    let mut last = "";
    for Warning { message, fix, .. } in warnings {
        lines.push(style.hang("", &escape_terminal(message)));
        if !fix.is_empty() && fix != last {
            lines.push(format!("    {}", escape_terminal(fix)));
            last = fix;
        }
    }
    if warnings.iter().any(|w| w.fix.contains(recapture::BACKTRACES) && !w.fix.contains("--capture-range")) {
        lines.push(format!("\n{}", style.hang("", BRACKET)));
    }
    lines.join("\n")
}
