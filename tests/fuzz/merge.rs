//! The tables of two ranks, their columns and types altered: one report or a sentence.

use crate::export::Schema;
use crate::random::Random;
use crate::{drawn, folders, printed, runner};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use sync_report::analysis::Options;
use sync_report::formats::{MERGED, Merged};
use sync_report::ranks;
use sync_report::ranks::parquet;
use sync_report::ranks::tables::Tables;
use sync_report::report::run_keeping;
use tempfile::TempDir;

#[test]
fn merge() {
    runner::run("merge", 0..35, &[], case);
}

/// Output of `--format parquet` for each of two ranks.
fn bases() -> &'static TempDir {
    static BASES: OnceLock<TempDir> = OnceLock::new();
    BASES.get_or_init(|| {
        let home = tempfile::tempdir().expect("a folder");
        for rank in 0..2 {
            let file = home.path().join(format!("rank_{rank}.sqlite"));
            drawn::program(Schema::V2025_3, rank, 6).write(&file);
            let mut waits = Vec::new();
            let report = run_keeping(&[file], &Options::default(), |_, of_it| waits.push(of_it));
            let report = report.expect("a report");
            parquet::write(&report, &waits, &home.path().join(format!("rank_{rank}"))).expect("tables");
        }
        home
    })
}

fn case(r: &Random) -> Result<(), String> {
    let home = tempfile::tempdir().expect("a folder");
    let both = [0, 1].map(|rank| home.path().join(format!("rank_{rank}")));
    both.iter().for_each(|to| folders::copy(&bases().path().join(to.file_name().expect("a name")), to));
    let spoiled = &both[..1 + r.below(2)];
    spoiled.iter().for_each(|folder| folders::spoil(&folders::files(folder), r));
    if r.one_in(6) {
        // A table of one rank in place of the other's.
        let files = folders::files(&both[1]);
        if let Some(file) = files.get(r.below(4)) {
            fs::copy(file, both[0].join(file.file_name().expect("a name"))).expect("a copy");
        }
    }
    let given = if r.one_in(4) { &both[..1] } else { &both };
    merged(given, home.path(), r)
}

fn merged(folders: &[PathBuf], home: &Path, r: &Random) -> Result<(), String> {
    let Ok((tables, left_out)) = Tables::read(folders) else { return Ok(()) };
    let Ok(mut report) = ranks::merged(&tables, r.below(3)) else { return Ok(()) };
    report.warnings.extend(left_out);
    let merged = Merged { report, tables };
    for format in MERGED {
        match format.folder {
            // Tables that hold odd columns may be refused.
            Some(write) => drop(write(&merged, &home.join("merged"))),
            None => printed::print(format, &merged, r)?,
        }
    }
    Ok(())
}
