//! The default command: the report.

use super::args::{ReportArgs, SavingArgs};
use super::{folders, input, options, output};
use anyhow::{Result, bail};
use std::process::ExitCode;
use sync_report::analysis::Options;
use sync_report::formats::{self, Rendered, Setting};
use sync_report::lint;
use sync_report::model::Report;
use sync_report::ranks::parquet;
use sync_report::replay::results;
use sync_report::report as reports;
use sync_report::report::scenario::no_site;
use sync_report::verdict::source::editable;

fn find_elsewhere(report: &mut Report, id: &str, options: &Options) {
    let Some((ix, frame, pattern)) =
        report.site(id).and_then(|site| Some((site.ix, site.user_frame.clone()?, site.pattern?)))
    else {
        return;
    };
    let file = editable(&options.sources(), &frame.file).ok().and_then(|(path, _)| path.canonicalize().ok());
    let found = file.and_then(|file| lint::elsewhere(&file, frame.line, pattern, options.threads));
    if let Some(site) = report.sites.iter_mut().find(|site| site.ix == ix) {
        site.elsewhere = found;
    }
}

pub fn run(args: ReportArgs) -> Result<ExitCode> {
    let args = ReportArgs { profiles: folders::exports(&args.profiles)?, ..args };
    let SavingArgs { replay_results, constants, .. } = &args.saving;
    output::refuse_input(&args.output, &args.profiles)?;
    let exports = input::exports(&args.profiles, &args.shared)?;
    let read = [&exports.paths, replay_results.as_slice(), constants.as_slice()].concat();
    output::refuse_input(&args.output, &read)?;
    if args.brief && !args.format.brief {
        bail!("--brief is a form of JSON; give it with --format json");
    }
    let format = match args.details {
        Some(_) => formats::DETAILS,
        None if args.brief => formats::BRIEF,
        None => args.format,
    };
    if format.folder.is_some() {
        parquet::refuse(&args.output)?;
    }
    let mut options = exports.named(options::report(&args, format)?);
    // A file that is no result is refused before the export is read.
    let results = replay_results.as_ref();
    let results = results.map(|path| results::read(path).map(|read| (path, read))).transpose()?;
    let top = options.top;
    if results.is_some() {
        options.top = 0; // a replayed site may be among those that are cut
    }
    let (mut captures, mut waits) = (Vec::new(), Vec::new());
    let mut report = reports::run_keeping(&exports.paths, &options, |capture, of_it| {
        if format.folder.is_some() {
            waits.push(of_it);
        }
        if format.captures {
            captures.push(capture);
        }
    })?;
    if let Some((path, measured)) = &results {
        results::embed(&mut report, measured, path)?;
        report.cut(top);
    }
    options.progress = None; // the bar goes before the report comes
    // Before the output is opened: a mistyped site must not empty the file of the last report.
    if let Some(site) = args.details.as_deref().filter(|site| report.site(site).is_none()) {
        return Err(no_site(&report, site).into());
    }
    if let Some(id) = &args.details {
        find_elsewhere(&mut report, id, &options);
    }
    let setting = Setting {
        site: args.details,
        wide: args.wide,
        capture: args.graph_ready,
        ..output::setting(&args.repository, &args.select)
    };
    let found = Rendered { report, captures, waits };
    output::print(format, &found, setting, &args.output, &args.shared)?;
    Ok(output::exit_code(&found.report))
}
