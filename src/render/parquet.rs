//! The report as two tables, for data frames: every wait, and every site with the columns of CSV.
//!
//! `waits.parquet` names sites by id and by key. A key is the same in every rank of a program, so folders of many ranks
//! are merged by reading `*/waits.parquet` as one table and grouping by `key`. What belongs to no site (the report's
//! totals, iterations, warnings) stands in the metadata of `sites.parquet` as the JSON report without its sites.

use super::columns::{COLUMNS, Values};
use crate::frame::Waits;
use crate::model::Report;
use anyhow::{Context, Result, bail};
use polars::prelude::{Column, DataFrame, NamedFrom, Series};
use polars_io::parquet::write::{KeyValueMetadata, ParquetWriter};
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind};
use std::path::Path;

/// The files of a folder.
const WAITS: &str = "waits.parquet";
const SITES: &str = "sites.parquet";
/// What the metadata of sites is found by.
const REPORT: &str = "sync-report";

/// Refuses what is no folder, and one that holds anything but an earlier report of this format.
///
/// # Errors
/// One sentence that says why.
pub fn refuse(folder: &Path) -> Result<()> {
    let name = folder.display();
    if folder == Path::new("-") {
        bail!("--format parquet writes two files; name a folder for them with -o");
    }
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("{name}: is no folder to write tables to"))?,
    };
    for entry in entries {
        let entry = entry.with_context(|| format!("{name}: cannot be read"))?.file_name();
        if entry != WAITS && entry != SITES {
            bail!("{name}: holds other files ({}); give -o a new folder", entry.display());
        }
    }
    Ok(())
}

/// Writes both tables; `waits` of each export of the report, in its order.
///
/// # Errors
/// One sentence where the folder cannot be written.
pub fn write(report: &Report, waits: &[Waits], folder: &Path) -> Result<()> {
    refuse(folder)?;
    if !folder.is_dir() {
        fs::create_dir(folder).with_context(|| format!("{}: cannot be written", folder.display()))?;
    }
    let mut all: Option<DataFrame> = None;
    for (number, (waits, profile)) in waits.iter().zip(&report.profiles).enumerate() {
        let listed = report.sites.iter().filter(|s| s.ix.profile == number);
        let table = waits.table(&profile.path, listed)?;
        all = Some(match all {
            Some(all) => all.vstack(&table)?,
            None => table,
        });
    }
    put(&mut all.unwrap_or_default(), &folder.join(WAITS), None)?;
    let rest = Report { sites: Vec::new(), ..report.clone() };
    let rest = KeyValueMetadata::from_static(vec![(REPORT.to_owned(), serde_json::to_string(&rest)?)]);
    put(&mut sites(report)?, &folder.join(SITES), Some(rest))
}

fn sites(report: &Report) -> Result<DataFrame> {
    let of = |(name, values): &(&str, Values)| -> Column {
        let sites = report.sites.iter();
        match values {
            Values::Text(of) => column(name, sites.map(|s| of(report, s))),
            Values::Whole(of) => column(name, sites.map(|s| of(report, s))),
            Values::Float(of) => column(name, sites.map(|s| of(report, s))),
            Values::Flag(of) => column(name, sites.map(|s| of(report, s))),
        }
    };
    Ok(DataFrame::new(report.sites.len(), COLUMNS.iter().map(of).collect())?)
}

fn column<T>(name: &str, values: impl Iterator<Item = T>) -> Column
where
    Series: NamedFrom<Vec<T>, [T]>,
{
    Series::new(name.into(), values.collect::<Vec<T>>()).into()
}

fn put(table: &mut DataFrame, path: &Path, metadata: Option<KeyValueMetadata>) -> Result<()> {
    let failed = || format!("{}: cannot be written", path.display());
    let file = BufWriter::new(File::create(path).with_context(failed)?);
    ParquetWriter::new(file).with_key_value_metadata(metadata).finish(table).with_context(failed)?;
    Ok(())
}
