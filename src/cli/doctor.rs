//! `sync-report doctor`: is this capture good enough?

use super::args::DoctorArgs;
use super::{folders, input, options, output};
use anyhow::Result;
use std::path::Path;
use std::process::ExitCode;
use sync_report::error::InputError;
use sync_report::formats::Setting;
use sync_report::model::SCHEMA_VERSION;
use sync_report::model::doctor::{Diagnosis, Examined};
use sync_report::text::escape_terminal;
use sync_report::{analysis, doctor};

/// Exit code 2 if a capture is damaged or holds no CUDA calls.
pub fn run(args: DoctorArgs) -> Result<ExitCode> {
    let args = DoctorArgs { profiles: folders::exports(&args.profiles)?, ..args };
    output::refuse_input(&args.output, &args.profiles)?;
    let exports = input::exports(&args.profiles, &args.shared)?;
    let mut found = Diagnosis { schema_version: SCHEMA_VERSION, ..Diagnosis::default() };
    // Findings before an unreadable file are printed all the same.
    let read = exports.paths.iter().try_for_each(|path| {
        found.captures.push(examine(path, &exports, &args)?);
        anyhow::Ok(())
    });
    output::print(args.format, &found, Setting::default(), &args.output, &args.shared)?;
    read?;
    for left_out in &exports.left_out {
        output::say(&escape_terminal(&left_out.message));
    }
    let good = exports.left_out.is_empty() && found.captures.iter().all(|capture| capture.usable);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// A capture without CUDA calls is a finding here, but still bad input.
fn examine(path: &Path, exports: &input::Exports, args: &DoctorArgs) -> Result<Examined> {
    let typed = exports.typed(path).display().to_string();
    match analysis::analyse(path, &exports.named(options::plain(&args.shared))) {
        Ok(found) => Ok(doctor::examine(&found, typed)),
        Err(e) => match e.downcast::<InputError>()? {
            e @ InputError::NoCuda { .. } => Ok(doctor::refuse(e.to_string(), typed)),
            e => Err(e.into()),
        },
    }
}
