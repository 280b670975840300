//! The report as tables, for data frames and to be merged: every wait, and the tables of [`crate::ranks::tables`].
//!
//! `waits.parquet` names sites by id and by key. A key is the same in every rank of a program, so waits of
//! many ranks are one table (`*/waits.parquet`), grouped by `key`. The report's totals, iterations and
//! warnings are in the metadata of `sites.parquet`, as the JSON report without its sites.

use super::tables::{COLLECTIVES, RANKS, SITES, Tables, put, stacked};
use crate::frame::WaitTable;
use crate::model::Report;
use anyhow::{Context, Result, bail};
use polars::prelude::DataFrame;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

const WAITS: &str = "waits.parquet";
const REPORT: &str = "sync-report";

/// Refuses a path that is no folder, and a folder with anything but an earlier report of this format.
pub fn refuse(folder: &Path) -> Result<()> {
    let name = folder.display();
    if folder == Path::new("-") {
        bail!("--format parquet writes several files; name a folder for them with -o");
    }
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("{name}: is no folder to write tables to"))?,
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("{name}: cannot be read"))?.file_name();
        if ![WAITS, SITES, RANKS, COLLECTIVES].iter().any(|name| entry == *name) {
            bail!("{name}: holds other files ({}); give -o a new folder", entry.display());
        }
    }
    Ok(())
}

/// Writes all tables; `waits`: of each export, in the report's order.
pub fn write(report: &Report, waits: &[WaitTable], folder: &Path) -> Result<()> {
    make(folder)?;
    let tables = waits.iter().zip(&report.profiles).enumerate().map(|(number, (waits, profile))| {
        waits.table(&profile.path, report.sites.iter().filter(|s| s.ix.profile.index() == number))
    });
    let all = stacked(tables.collect::<Result<Vec<_>, _>>()?)?;
    put(&all.unwrap_or_default(), &folder.join(WAITS), None)?;
    let collectives: Vec<DataFrame> = waits.iter().map(|waits| waits.collectives.clone()).collect();
    write_tables(report, &Tables::of(report, &collectives)?, folder)
}

fn make(folder: &Path) -> Result<()> {
    refuse(folder)?;
    if !folder.is_dir() {
        fs::create_dir_all(folder).with_context(|| format!("{}: cannot be written", folder.display()))?;
    }
    Ok(())
}

/// Writes the tables of merged ranks; waits stay in their own folders.
pub fn write_merged(report: &Report, tables: &Tables, folder: &Path) -> Result<()> {
    make(folder)?;
    write_tables(report, &tables.in_order()?, folder)
}

fn write_tables(report: &Report, tables: &Tables, folder: &Path) -> Result<()> {
    let rest = Report { sites: Vec::new(), ..report.clone() };
    tables.write(folder, (REPORT.to_owned(), serde_json::to_string(&rest)?))
}
