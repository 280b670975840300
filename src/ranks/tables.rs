//! The tables of ranks: made from a report, written to a folder, read from many.
//!
//! | file | a row each |
//! |---|---|
//! | `ranks.parquet` | process: rank, export, host, loop, spans; `report` holds its export as JSON |
//! | `sites.parquet` | process and site ([`crate::frame::sites`]) |
//! | `collectives.parquet` | kernel of NCCL in which all ranks wait for all |
//!
//! `capture` and `pid` say whose row it is in each. Folders are read through a lazy scan: a query takes the columns that it
//! names, of each file in turn. The scan is ours, over polars' reader of parquet: `LazyFrame::scan_parquet` of this version runs in
//! the streaming engine only. With that the program has 330 crates instead of 241 and is 30 % larger, and a debug build merges the
//! tables of 1,024 ranks in 230 MB and 12.7 s of processor time instead of 140 MB and 11.0 s.

use super::numbers::{self, Party};
use crate::frame::sites::{Sites, capture, column};
use crate::model::ranks::Rank;
use crate::model::{ProfileInfo, Report, Warning};
use crate::profile::footer::{self, guarded};
use crate::whole::Whole;
use anyhow::{Context, Result, anyhow, bail};
use polars::prelude::{
    AnonymousScan, AnonymousScanArgs, DataFrame, DataType, Expr, IntoLazy, JoinArgs, JoinType, LazyFrame,
    NULL, NamedFrom, PolarsError, PolarsResult, ScanArgsAnonymous, Schema, SchemaExt, SchemaRef, Series,
    SortMultipleOptions, col, df, lit,
};
use polars_arrow::datatypes::ArrowDataType;
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use polars_io::parquet::write::{KeyValueMetadata, ParquetWriter};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, IntoInnerError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a folder.
pub const RANKS: &str = "ranks.parquet";
/// A row each process and site.
pub const SITES: &str = "sites.parquet";
/// A row each kernel.
pub const COLLECTIVES: &str = "collectives.parquet";

/// What every result over ranks is computed from.
#[derive(Clone)]
pub struct Tables {
    ranks: DataFrame,
    sites: LazyFrame,
    collectives: LazyFrame,
}

impl Tables {
    /// Of a report; `collectives` of each of its exports, in their order.
    ///
    /// # Errors
    /// polars refused the columns: a defect.
    pub fn of(report: &Report, collectives: &[DataFrame]) -> Result<Self> {
        let mut kernels = Vec::new();
        for (table, profile) in collectives.iter().zip(&report.profiles) {
            let whose = lit(capture(profile)).alias("capture");
            kernels.push(table.clone().lazy().with_column(whose).collect()?);
        }
        let sites = Sites::of(report, &report.sites)?.rows();
        Ok(Self {
            ranks: ranks(report, &kernels, sites.clone())?,
            sites,
            collectives: stacked(kernels)?.unwrap_or_default().lazy(),
        })
    }

    /// Of folders. Those that cannot be read are handed back with the reason.
    ///
    /// # Errors
    /// Two of them hold the same process of the same export.
    pub fn read(folders: &[PathBuf]) -> Result<(Self, Vec<Warning>)> {
        let (mut ranks, mut good, mut bad) = (Vec::new(), Vec::new(), Vec::new());
        for folder in folders {
            match read(folder) {
                Ok(table) => {
                    ranks.push(table);
                    good.push(folder);
                }
                Err(error) => bad.push((folder, error)),
            }
        }
        let Some(ranks) = stacked(ranks)? else {
            let Some((_, error)) = bad.into_iter().next() else { bail!("no folders of tables were given") };
            return Err(error);
        };
        let scan = |name| Scan::over(good.iter().map(|folder| folder.join(name)).collect());
        let tables = Self { ranks, sites: scan(SITES)?, collectives: scan(COLLECTIVES)? };
        tables.refuse_twice()?;
        Ok((tables, bad.into_iter().map(|(folder, error)| super::numbers::unread(folder, &error)).collect()))
    }

    fn refuse_twice(&self) -> Result<()> {
        let mut seen: BTreeMap<(String, u32), String> = BTreeMap::new();
        for party in self.parties()? {
            let other = seen.insert((party.capture, party.listed.pid), party.folder.clone());
            if let Some(other) = other {
                let path = &party.profile.path;
                bail!(
                    "{path}: process {} is in {other} and in {}; give each result once",
                    party.listed.pid,
                    party.folder
                );
            }
        }
        Ok(())
    }

    /// Its processes in the order of their ranks.
    ///
    /// # Errors
    /// A column is missing or of another type: tables of another version.
    pub fn parties(&self) -> Result<Vec<Party>> {
        let text = |name| texts(&self.ranks, name);
        let whole = |name| numbers_of(&self.ranks, name);
        let (captures, folders, reports, warnings) =
            (text("capture")?, text("folder")?, text("report")?, text("warnings")?);
        let device = self.ranks.column("device")?.i64()?;
        let (pid, waits) = (whole("pid")?, whole("waits")?);
        let (blocked, drain) = (whole("blocked_ns")?, whole("drain_ns")?);
        let mut parties = Vec::with_capacity(pid.len());
        for (i, capture) in captures.into_iter().enumerate() {
            let profile: ProfileInfo =
                serde_json::from_str(&reports[i]).context("the table of ranks is of another version")?;
            let listed = Rank {
                profile: profile.path.clone(),
                pid: u32::try_from(pid[i]).unwrap_or_default(),
                host: profile.host.clone(),
                iterations: profile.iterations,
                start_up: profile.start_up,
                iteration_ns: profile.iteration_ns,
                span_ns: profile.span_ns,
                waits: waits[i].unsigned_abs(),
                blocked_ns: blocked[i],
                drain_ns: drain[i],
                ..Rank::default()
            };
            let (folder, warnings) = (folders[i].clone(), warnings[i].clone());
            parties.push(Party { listed, capture, folder, profile, device: device.get(i), warnings });
        }
        numbers::number(&mut parties);
        Ok(parties)
    }

    /// What limits the reports that the rows come from.
    pub fn warnings(&self, parties: &[Party]) -> Vec<Warning> {
        let said = |party: &Party| serde_json::from_str::<Vec<Warning>>(&party.warnings).unwrap_or_default();
        numbers::once(parties.iter().flat_map(said).collect())
    }

    /// Rows of sites, with the place of their process among these (`party`), in that order.
    pub fn sites(&self, parties: &[Party]) -> Result<LazyFrame> {
        whose(self.sites.clone(), parties)
    }

    /// Rows of collectives, likewise.
    pub fn collectives(&self, parties: &[Party]) -> Result<DataFrame> {
        Ok(whose(self.collectives.clone(), parties)?.collect()?)
    }

    /// The same with their rows in the order of ranks.
    ///
    /// # Errors
    /// As [`Self::parties`].
    pub fn in_order(&self) -> Result<Self> {
        let parties = self.parties()?;
        let sorted =
            |rows: LazyFrame| -> Result<DataFrame> { Ok(whose(rows, &parties)?.collect()?.drop("party")?) };
        Ok(Self {
            ranks: sorted(self.ranks.clone().lazy())?,
            sites: sorted(self.sites.clone())?.lazy(),
            collectives: sorted(self.collectives.clone())?.lazy(),
        })
    }

    /// Writes them to a folder that is there. `rest`: what stands in the metadata of sites.
    ///
    /// # Errors
    /// One sentence where a file cannot be written.
    pub fn write(&self, folder: &Path, rest: (String, String)) -> Result<()> {
        let parties = self.parties()?;
        let at = parties.iter().map(|p| ((p.capture.as_str(), i64::from(p.listed.pid)), p));
        let at: FxHashMap<(&str, i64), &Party> = at.collect();
        let whose = self.ranks.column("capture")?.str()?.iter().zip(self.ranks.column("pid")?.i64()?.iter());
        let rows: Vec<Option<&Party>> = whose.map(|key| at.get(&(key.0?, key.1?)).copied()).collect();
        // An export's own folder; of merged ones, the folders that they came from.
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let from = |party: &Party| if party.folder.is_empty() { name.clone() } else { party.folder.clone() };
        let mut ranks = self.ranks.clone();
        ranks.with_column(column("rank", rows.iter().map(|p| p.map(|p| i64::from(p.listed.rank)))))?;
        ranks.with_column(column("named_by", rows.iter().map(|p| p.map(|p| p.listed.named_by.as_str()))))?;
        ranks.with_column(column("folder", rows.iter().map(|p| p.map(from))))?;
        put(&mut ranks, &folder.join(RANKS), None)?;
        let rest = KeyValueMetadata::from_static(vec![rest]);
        put(&mut self.sites.clone().collect()?, &folder.join(SITES), Some(rest))?;
        put(&mut self.collectives.clone().collect()?, &folder.join(COLLECTIVES), None)
    }
}

/// The texts of a column; empty where it has none.
pub(super) fn texts(table: &DataFrame, name: &str) -> Result<Vec<String>> {
    Ok(table.column(name)?.str()?.iter().map(|text| text.unwrap_or_default().to_owned()).collect())
}

/// The numbers of a column; 0 where it has none.
pub(super) fn numbers_of(table: &DataFrame, name: &str) -> Result<Vec<i64>> {
    Ok(table.column(name)?.i64()?.iter().map(Option::unwrap_or_default).collect())
}

/// The table of ranks in a folder.
fn read(folder: &Path) -> Result<DataFrame> {
    let table = |name: &str| {
        let path = folder.join(name);
        let whole = || {
            let (mut file, footer) = footer::open(&path)?;
            footer::check_pages(&mut file, &footer)?;
            reader(file)
        };
        whole().map_err(|error| {
            let what =
                if error.is::<std::io::Error>() { "cannot be read" } else { "is no table of sync-report" };
            let command = format!("sync-report PROFILE --format parquet -o {}", folder.display());
            anyhow!("{}: {what} ({error}); write it with: {command}", path.display())
        })
    };
    for name in [SITES, COLLECTIVES] {
        drop(table(name)?);
    }
    let ranks = table(RANKS)?;
    let damaged = || format!("{}: is no table of sync-report", folder.join(RANKS).display());
    guarded(|| Ok(ranks.set_rechunk(true).finish()?)).with_context(damaged)
}

/// A reader of a table that has columns of known types only.
///
/// # Errors
/// Why not, as the end of a sentence.
fn reader(file: File) -> Result<ParquetReader<File>> {
    let mut reader = ParquetReader::new(file);
    let schema = guarded(|| Ok(reader.schema()?))?;
    match schema.iter_values().find(|field| !is_known(&field.dtype)) {
        Some(field) => {
            bail!("its column `{}` is of type {:?}, which no such table has", field.name, field.dtype)
        }
        None => Ok(reader),
    }
}

/// Whether the tables written here have columns of this type. Of most others polars panics, at the latest when it joins or adds them.
fn is_known(kind: &ArrowDataType) -> bool {
    use ArrowDataType as T;
    matches!(kind, T::Boolean | T::Int64 | T::Float64 | T::Utf8 | T::LargeUtf8 | T::Utf8View)
}

/// Tables below one another; those without columns left out.
///
/// # Errors
/// They have other columns: a defect.
pub fn stacked(tables: Vec<DataFrame>) -> Result<Option<DataFrame>> {
    let tables = tables.into_iter().filter(|table| table.width() > 0);
    Ok(tables.map(PolarsResult::Ok).reduce(|all, table| all?.vstack(&table?)).transpose()?)
}

/// Rows in the order of their processes, with the place of each (`party`).
fn whose(rows: LazyFrame, parties: &[Party]) -> Result<LazyFrame> {
    let table = df![
        "capture" => parties.iter().map(|p| p.capture.as_str()).collect::<Vec<_>>(),
        "pid" => parties.iter().map(|p| i64::from(p.listed.pid)).collect::<Vec<_>>(),
        "party" => (0..parties.len() as u32).collect::<Vec<_>>(),
    ]?;
    let by = [col("capture"), col("pid")];
    let joined = rows.join(table.lazy(), by.clone(), by, JoinArgs::new(JoinType::Inner));
    Ok(joined.sort(["party"], SortMultipleOptions::default().with_maintain_order(true)))
}

/// A row each process that waits or meets others; of an export without any, its first.
fn ranks(report: &Report, kernels: &[DataFrame], sites: LazyFrame) -> Result<DataFrame> {
    let sums = ["waits", "blocked_ns", "drain_ns"];
    let zeros = |at: usize| -> Vec<Expr> {
        let whole = |n: usize, name| lit(n as i64).cast(DataType::Int64).alias(name);
        let whose = [whole(at, "export"), col("pid"), col("device")];
        whose.into_iter().chain(sums.map(|sum| whole(0, sum))).collect()
    };
    let own = ["export", "pid", "device"].into_iter().chain(sums).map(col);
    let mut rows = vec![sites.select(own.collect::<Vec<_>>()).collect()?];
    let waiting: BTreeSet<usize> = report.sites.iter().map(|site| site.process.profile.index()).collect();
    for (at, profile) in report.profiles.iter().enumerate() {
        if let Some(table) = kernels.get(at).filter(|table| table.height() > 0) {
            rows.push(table.clone().lazy().select(zeros(at)).collect()?);
        } else if let Some(first) = profile.processes.first().filter(|_| !waiting.contains(&at)) {
            let alone = df!["pid" => [i64::from(first.pid)], "device" => [None::<i64>]]?;
            rows.push(alone.lazy().select(zeros(at)).collect()?);
        }
    }
    let process = ["export", "pid"];
    let rows = stacked(rows)?.unwrap_or_default().lazy().group_by(process);
    let each = std::iter::once(col("device").min()).chain(sums.map(|sum| col(sum).sum()));
    let rows = rows.agg(each.collect::<Vec<_>>()).sort(process, SortMultipleOptions::default());
    let all = || report.profiles.iter();
    let json = all().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    let columns = [
        lit(NULL).cast(DataType::Int64).alias("rank"),
        lit("").alias("named_by"),
        of_profile("capture", all().map(capture)),
        lit("").alias("folder"),
        of_profile("profile", all().map(|p| p.path.as_str())),
        of_profile("host", all().map(|p| p.host.as_deref())),
        col("pid"),
        col("device"),
        of_profile("command", all().map(|p| p.command.as_deref())),
        of_profile("export_version", all().map(|p| p.export_version.as_deref())),
        of_profile("started_utc_ns", all().map(|p| p.started_utc_ns)),
        of_profile("span_ns", all().map(|p| p.span_ns)),
        of_profile("iterations", all().map(|p| i64::try_from(p.iterations).ok())),
        of_profile("iteration_ns", all().map(|p| p.iteration_ns)),
        col("waits"),
        col("blocked_ns"),
        col("drain_ns"),
        of_profile("report", json.iter().map(String::as_str)),
    ];
    let mut table = rows.select(columns).collect()?;
    let said = serde_json::to_string(&report.warnings)?;
    let warnings = (0..table.height()).map(|row| if row == 0 { said.as_str() } else { "" });
    table.with_column(column("warnings", warnings))?;
    Ok(table)
}

/// What each export has, beside its processes.
fn of_profile<T>(name: &str, values: impl Iterator<Item = T>) -> Expr
where
    Series: NamedFrom<Vec<T>, [T]>,
{
    lit(column(name, values).take_materialized_series()).gather(col("export"), false).alias(name)
}

/// Writes a table.
///
/// # Errors
/// One sentence where the file cannot be written.
pub fn put(table: &mut DataFrame, path: &Path, metadata: Option<KeyValueMetadata>) -> Result<()> {
    let failed = || format!("{}: cannot be written", path.display());
    let mut file = BufWriter::new(Whole::begin(path)?);
    ParquetWriter::new(&mut file).with_key_value_metadata(metadata).finish(table).with_context(failed)?;
    file.into_inner().map_err(IntoInnerError::into_error).with_context(failed)?.finish()
}

/// Files of one table, read when a query asks, and only the columns that it names.
struct Scan {
    files: Vec<PathBuf>,
}

impl Scan {
    fn over(files: Vec<PathBuf>) -> Result<LazyFrame> {
        Ok(LazyFrame::anonymous_scan(Arc::new(Self { files }), ScanArgsAnonymous::default())?)
    }

    /// Runs what reads one of the files.
    fn of<T>(path: &Path, read: impl FnOnce(ParquetReader<File>) -> PolarsResult<T>) -> PolarsResult<T> {
        let whole = footer::open(path).and_then(|(file, _)| reader(file));
        let read = whole.and_then(|reader| guarded(|| Ok(read(reader)?)));
        read.map_err(|error| PolarsError::ComputeError(format!("{}: {error:#}", path.display()).into()))
    }
}

impl AnonymousScan for Scan {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn schema(&self, _: Option<usize>) -> PolarsResult<SchemaRef> {
        let Some(first) = self.files.first() else { return Ok(SchemaRef::default()) };
        Self::of(first, |mut reader| Ok(Arc::new(Schema::from_arrow_schema(&*reader.schema()?))))
    }

    fn allows_projection_pushdown(&self) -> bool {
        true
    }

    fn scan(&self, asked: AnonymousScanArgs) -> PolarsResult<DataFrame> {
        let columns =
            asked.with_columns.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>());
        let mut all: Option<DataFrame> = None;
        for path in &self.files {
            let table = Self::of(path, |reader| reader.with_columns(columns.clone()).finish())?;
            match &mut all {
                Some(all) => drop(all.vstack_mut(&table)?),
                None => all = Some(table),
            }
        }
        Ok(all.unwrap_or_default())
    }
}
