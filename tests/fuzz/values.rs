//! Well-formed exports that say impossible things: no command panics, and no sum runs over.

use crate::export::Schema;
use crate::export::folder::{GROUP, to_folder};
use crate::random::Random;
use crate::{drawn, printed, reports, runner};
use std::path::{Path, PathBuf};
use sync_report::analysis::filter::Filter;
use sync_report::analysis::{self, Options};
use sync_report::diff::Snapshot;
use sync_report::formats::DOCTOR;
use sync_report::model::doctor::Diagnosis;
use sync_report::replay::python;
use sync_report::replay::trace::{self, ReplayRequest};
use sync_report::{doctor, report};

#[test]
fn values() {
    runner::run("values", 0..30, &[], case);
}

fn case(r: &Random) -> Result<(), String> {
    let home = tempfile::tempdir().expect("a folder");
    let schema = r.pick(&Schema::ALL);
    let mut paths = Vec::new();
    for rank in 0..r.pick(&[1, 1, 1, 2]) {
        let file = home.path().join(format!("rank_{rank}.sqlite"));
        drawn::program(schema, rank, 5).write(&file);
        drawn::alter_rows(&file, r);
        let folder = home.path().join(format!("rank_{rank}"));
        if r.one_in(4) {
            // In folders all numbers of some columns are unsigned.
            to_folder(&file, &folder, GROUP);
            paths.push(folder);
        } else {
            paths.push(file);
        }
    }
    let options = Options { threads: 1, filter: filter(r), ..Options::default() };
    match r.below(5) {
        0 => examined(&paths[0], &options, r),
        1 => replayed(&paths[0], &options),
        2 => compared(&paths, &options, r),
        _ => printed::in_some_format(&paths, &options, r),
    }
}

fn filter(r: &Random) -> Filter {
    let mut filter = Filter::default();
    match r.below(12) {
        0 => filter.nvtx = Some("step".to_owned()),
        1 => filter.from = Some(r.extreme()),
        2 => filter.to = Some(r.extreme()),
        3 => filter.thread = Some("1".to_owned()),
        _ => {}
    }
    filter
}

fn examined(path: &Path, options: &Options, r: &Random) -> Result<(), String> {
    let Ok(found) = analysis::analyse(path, options) else { return Ok(()) };
    let captures = vec![doctor::examine(&found, path.display().to_string())];
    let diagnosis = Diagnosis { captures, ..Diagnosis::default() };
    DOCTOR.iter().try_for_each(|format| printed::print(format, &diagnosis, r))
}

fn replayed(path: &Path, options: &Options) -> Result<(), String> {
    // A plan needs all waits.
    let options = &Options { filter: Filter::default(), ..options.clone() };
    let Ok((report, mut found)) = report::run_whole(&[path.to_owned()], options) else { return Ok(()) };
    if let Ok(plan) = trace::plan(&report, &mut found[0], &ReplayRequest::default()) {
        serde_json::to_string(&plan).map_err(|error| error.to_string())?;
        python::script(&plan);
    }
    Ok(())
}

fn compared(paths: &[PathBuf], options: &Options, r: &Random) -> Result<(), String> {
    let Ok(odd) = report::run(paths, options) else { return Ok(()) };
    reports::held_against(&Snapshot::of(odd, r.one_in(2)), r)
}
