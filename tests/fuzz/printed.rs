//! A report in every format.

use crate::random::Random;
use std::path::PathBuf;
use sync_report::analysis::Options;
use sync_report::formats::{DETAILS, Format, REPORT, Rendered, Setting};
use sync_report::render::style::Style;
use sync_report::report::run_keeping;
use sync_report::vocabulary::Class;

/// Prints exports in one format. Exports that cannot be read are no failure.
pub fn in_some_format(paths: &[PathBuf], options: &Options, r: &Random) -> Result<(), String> {
    let format = &REPORT[r.below(REPORT.len())];
    let options = Options {
        timelines: format.timelines.then_some(sync_report::model::timeline::WHOLE),
        awaited: format.awaited,
        as_captured: r.one_in(4),
        step: r.one_in(4).then(|| r.extreme().saturating_abs()),
        iteration_marker: r.one_in(4).then(|| "step".to_owned()),
        classes: if r.one_in(4) { vec![Class::False] } else { Vec::new() },
        top: r.below(4),
        ..options.clone()
    };
    let (mut captures, mut waits) = (Vec::new(), Vec::new());
    let kept = run_keeping(paths, &options, |capture, of_it| {
        captures.push(capture);
        waits.push(of_it);
    });
    let Ok(report) = kept else { return Ok(()) };
    let found = Rendered { report, captures, waits };
    let site = found.report.sites.first().map(|site| site.id.clone());
    if let Some(folder) = format.folder {
        let to = tempfile::tempdir().expect("a folder");
        return folder(&found, to.path()).map_err(|error| format!("{}: {error:#}", format.name));
    }
    print(format, &found, r)?;
    if site.is_some() {
        let setting = Setting { site, ..Setting::default() };
        DETAILS.render(&found, &setting, &mut Vec::new()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Prints a tree for a terminal of some width.
pub fn print<T>(format: &Format<T>, tree: &T, r: &Random) -> Result<(), String> {
    let width = r.pick(&[None, Some(1), Some(40), Some(120)]);
    let setting = Setting { style: Style { width, color: r.one_in(2) }, all: true, ..Setting::default() };
    let mut out = Vec::new();
    format.render(tree, &setting, &mut out).map_err(|error| format!("{}: {error}", format.name))?;
    String::from_utf8(out).map(drop).map_err(|_| format!("{}: writes no UTF-8", format.name))
}
