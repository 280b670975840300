//! The tables of ranks: made from a report, written to a folder, read from many.
//!
//! | file | a row each |
//! |---|---|
//! | `ranks.parquet` | process: rank, export, host, loop, spans; `report` holds its export as JSON |
//! | `sites.parquet` | process and site ([`crate::frame::sites`]) |
//! | `collectives.parquet` | kernel of NCCL in which all ranks wait for all |
//!
//! `capture` and `pid` name the process of each row. A query reads only its own columns. polars' own scan of
//! parquet (`LazyFrame::scan_parquet`) would add its query planner and streaming engine.

use super::numbers::{self, Party};
use crate::frame::parquet::{self, Layout};
use crate::frame::sites::{self, capture, column};
use crate::model::ranks::Rank;
use crate::model::{ProfileInfo, Report, Warning};
use crate::profile::footer;
use crate::whole::Whole;
use anyhow::{Context, Result, anyhow, bail};
use polars::prelude::{DataFrame, IdxCa, IdxSize, NamedFrom, PolarsResult};
use polars_arrow::datatypes::ArrowDataType;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, IntoInnerError};
use std::path::{Path, PathBuf};

pub const RANKS: &str = "ranks.parquet";
pub const SITES: &str = "sites.parquet";
pub const COLLECTIVES: &str = "collectives.parquet";

#[derive(Clone)]
pub struct Tables {
    ranks: DataFrame,
    sites: Rows,
    collectives: Rows,
}

/// Rows of a table: in memory, or in files that are read on demand.
#[derive(Clone)]
enum Rows {
    Here(DataFrame),
    In(Vec<PathBuf>),
}

impl Tables {
    /// `collectives`: of each of the report's exports, in their order.
    pub fn of(report: &Report, collectives: &[DataFrame]) -> Result<Self> {
        let mut kernels = collectives.to_vec();
        for (table, profile) in kernels.iter_mut().zip(&report.profiles) {
            let whose = std::iter::repeat_n(capture(profile), table.height());
            table.with_column(column("capture", whose))?;
        }
        Ok(Self {
            ranks: ranks(report, &kernels)?,
            sites: Rows::Here(sites::table(report)?),
            collectives: Rows::Here(stacked(kernels)?.unwrap_or_default()),
        })
    }

    /// Unreadable folders are handed back as warnings.
    ///
    /// # Errors
    /// Two folders hold the same process of the same export.
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
        let files = |name| Rows::In(good.iter().map(|folder| folder.join(name)).collect());
        let tables = Self { ranks, sites: files(SITES), collectives: files(COLLECTIVES) };
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

    /// Processes in the order of their ranks.
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

    pub fn warnings(&self, parties: &[Party]) -> Vec<Warning> {
        let said = |party: &Party| serde_json::from_str::<Vec<Warning>>(&party.warnings).unwrap_or_default();
        numbers::once(parties.iter().flat_map(said).collect())
    }

    /// These columns of sites, with `capture`, `pid` and process index (`party`), sorted by `party`.
    pub fn sites(&self, parties: &[Party], columns: &[&str]) -> Result<DataFrame> {
        whose(&self.sites.read(Some(&[&["capture", "pid"], columns].concat()))?, parties)
    }

    pub fn collectives(&self, parties: &[Party]) -> Result<DataFrame> {
        whose(&self.collectives.read(None)?, parties)
    }

    /// These tables, rows in the order of ranks.
    pub fn in_order(&self) -> Result<Self> {
        let parties = self.parties()?;
        let sorted = |rows: &DataFrame| -> Result<DataFrame> { Ok(whose(rows, &parties)?.drop("party")?) };
        Ok(Self {
            ranks: sorted(&self.ranks)?,
            sites: Rows::Here(sorted(&self.sites.read(None)?)?),
            collectives: Rows::Here(sorted(&self.collectives.read(None)?)?),
        })
    }

    /// Writes all tables to an existing folder. `rest`: key and value for the metadata of sites.
    pub fn write(&self, folder: &Path, rest: (String, String)) -> Result<()> {
        let parties = self.parties()?;
        let at = parties.iter().map(|p| ((p.capture.as_str(), i64::from(p.listed.pid)), p));
        let at: FxHashMap<(&str, i64), &Party> = at.collect();
        let whose = self.ranks.column("capture")?.str()?.iter().zip(self.ranks.column("pid")?.i64()?.iter());
        let rows: Vec<Option<&Party>> = whose.map(|key| at.get(&(key.0?, key.1?)).copied()).collect();
        // An export's own folder; merged exports keep the folders they came from.
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let from = |party: &Party| if party.folder.is_empty() { name.clone() } else { party.folder.clone() };
        let mut ranks = self.ranks.clone();
        ranks.with_column(column("rank", rows.iter().map(|p| p.map(|p| i64::from(p.listed.rank)))))?;
        ranks.with_column(column("named_by", rows.iter().map(|p| p.map(|p| p.listed.named_by.as_str()))))?;
        ranks.with_column(column("folder", rows.iter().map(|p| p.map(from))))?;
        put(&ranks, &folder.join(RANKS), None)?;
        put(&self.sites.read(None)?, &folder.join(SITES), Some(rest))?;
        put(&self.collectives.read(None)?, &folder.join(COLLECTIVES), None)
    }
}

/// Texts of a column; empty for null.
pub(super) fn texts(table: &DataFrame, name: &str) -> Result<Vec<String>> {
    Ok(table.column(name)?.str()?.iter().map(|text| text.unwrap_or_default().to_owned()).collect())
}

/// Numbers of a column; 0 for null.
pub(super) fn numbers_of(table: &DataFrame, name: &str) -> Result<Vec<i64>> {
    Ok(table.column(name)?.i64()?.iter().map(Option::unwrap_or_default).collect())
}

/// The table of ranks in a folder, once all its tables are checked.
fn read(folder: &Path) -> Result<DataFrame> {
    for name in [SITES, COLLECTIVES, RANKS] {
        let path = folder.join(name);
        let whole = || {
            let (mut file, footer) = footer::open(&path)?;
            footer::check_pages(&mut file, &footer)?;
            match parquet::fields(&footer)?.iter().find(|field| !is_known(&field.dtype)) {
                Some(field) => {
                    bail!("its column `{}` is of type {:?}, which no such table has", field.name, field.dtype)
                }
                None => Ok(()),
            }
        };
        whole().map_err(|error| {
            let what =
                if error.is::<std::io::Error>() { "cannot be read" } else { "is no table of sync-report" };
            let command = format!("sync-report PROFILE --format parquet -o {}", folder.display());
            anyhow!("{}: {what} ({error}); write it with: {command}", path.display())
        })?;
    }
    let damaged = || format!("{}: is no table of sync-report", folder.join(RANKS).display());
    parquet::read(&folder.join(RANKS), None).with_context(damaged)
}

/// Whether tables written here have columns of this type: polars panics on most others.
fn is_known(kind: &ArrowDataType) -> bool {
    use ArrowDataType as T;
    matches!(kind, T::Boolean | T::Int64 | T::Float64 | T::Utf8View)
}

/// Concatenates rows; tables without columns are left out.
pub fn stacked(tables: Vec<DataFrame>) -> Result<Option<DataFrame>> {
    let tables = tables.into_iter().filter(|table| table.width() > 0);
    Ok(tables.map(PolarsResult::Ok).reduce(|all, table| all?.vstack(&table?)).transpose()?)
}

/// Rows sorted by process, with the process's index (`party`).
fn whose(rows: &DataFrame, parties: &[Party]) -> Result<DataFrame> {
    let known = parties.iter().zip(0u32..).map(|(p, at)| ((p.capture.as_str(), i64::from(p.listed.pid)), at));
    let known: FxHashMap<(&str, i64), u32> = known.collect();
    let (captures, pids) = (rows.column("capture")?.str()?, rows.column("pid")?.i64()?);
    let owners = captures.iter().zip(pids.iter()).map(|(capture, pid)| known.get(&(capture?, pid?)).copied());
    let mut order: Vec<(u32, IdxSize)> = owners.zip(0..).filter_map(|(at, row)| Some((at?, row))).collect();
    // Stable: rows of a process stay as they were.
    order.sort_by_key(|row| row.0);
    let places: Vec<IdxSize> = order.iter().map(|row| row.1).collect();
    let mut sorted = rows.take(&IdxCa::new("row".into(), places))?;
    sorted.with_column(column("party", order.into_iter().map(|row| row.0)))?;
    Ok(sorted)
}

/// One row per process that waits or meets others; an export without any gets its first process.
fn ranks(report: &Report, kernels: &[DataFrame]) -> Result<DataFrame> {
    #[derive(Default)]
    struct Sum {
        device: Option<i64>,
        waits: i64,
        blocked_ns: i64,
        drain_ns: i64,
    }
    let first = |one: Option<i64>, other: Option<i64>| one.into_iter().chain(other).min();
    let mut sums: BTreeMap<(usize, i64), Sum> = BTreeMap::new();
    for site in &report.sites {
        let sum = sums.entry((site.process.profile.index(), i64::from(site.process.pid))).or_default();
        sum.device = first(sum.device, site.device.map(i64::from));
        sum.waits = sum.waits.saturating_add_unsigned(site.waits);
        sum.blocked_ns = sum.blocked_ns.saturating_add(site.blocked_ns);
        sum.drain_ns = sum.drain_ns.saturating_add(site.drain_ns);
    }
    let waiting: BTreeSet<usize> = sums.keys().map(|key| key.0).collect();
    for (at, profile) in report.profiles.iter().enumerate() {
        if let Some(table) = kernels.get(at).filter(|table| table.height() > 0) {
            for (pid, device) in table.column("pid")?.i64()?.iter().zip(table.column("device")?.i64()?.iter())
            {
                let sum = sums.entry((at, pid.unwrap_or_default())).or_default();
                sum.device = first(sum.device, device);
            }
        } else if let Some(first) = profile.processes.first().filter(|_| !waiting.contains(&at)) {
            sums.entry((at, i64::from(first.pid))).or_default();
        }
    }
    let profiles = || sums.keys().filter_map(|&(at, _)| report.profiles.get(at));
    let json = report.profiles.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
    let said = serde_json::to_string(&report.warnings)?;
    let columns = vec![
        column("rank", sums.keys().map(|_| None::<i64>)),
        column("named_by", sums.keys().map(|_| "")),
        column("capture", profiles().map(capture)),
        column("folder", sums.keys().map(|_| "")),
        column("profile", profiles().map(|p| p.path.as_str())),
        column("host", profiles().map(|p| p.host.as_deref())),
        column("pid", sums.keys().map(|&(_, pid)| pid)),
        column("device", sums.values().map(|sum| sum.device)),
        column("command", profiles().map(|p| p.command.as_deref())),
        column("export_version", profiles().map(|p| p.export_version.as_deref())),
        column("started_utc_ns", profiles().map(|p| p.started_utc_ns)),
        column("span_ns", profiles().map(|p| p.span_ns)),
        column("iterations", profiles().map(|p| i64::try_from(p.iterations).ok())),
        column("iteration_ns", profiles().map(|p| p.iteration_ns)),
        column("waits", sums.values().map(|sum| sum.waits)),
        column("blocked_ns", sums.values().map(|sum| sum.blocked_ns)),
        column("drain_ns", sums.values().map(|sum| sum.drain_ns)),
        column("report", sums.keys().filter_map(|&(at, _)| json.get(at)).map(String::as_str)),
        column("warnings", (0..sums.len()).map(|row| if row == 0 { said.as_str() } else { "" })),
    ];
    Ok(DataFrame::new(sums.len(), columns)?)
}

/// `more` as in [`parquet::write`].
pub fn put(table: &DataFrame, path: &Path, more: Option<(String, String)>) -> Result<()> {
    let failed = || format!("{}: cannot be written", path.display());
    let mut file = BufWriter::new(Whole::begin(path)?);
    parquet::write(table, &mut file, Layout::default(), more).with_context(failed)?;
    file.into_inner().map_err(IntoInnerError::into_error).with_context(failed)?.finish()
}

impl Rows {
    /// All columns if `None`.
    fn read(&self, columns: Option<&[&str]>) -> Result<DataFrame> {
        let files = match self {
            Self::Here(table) => {
                return Ok(columns.map_or(Ok(table.clone()), |names| table.select(names.iter().copied()))?);
            }
            Self::In(files) => files,
        };
        let mut all: Option<DataFrame> = None;
        for path in files {
            let table = parquet::read(path, columns);
            let table = table.map_err(|error| anyhow!("{}: {error:#}", path.display()))?;
            match &mut all {
                Some(all) => drop(all.vstack_mut(&table)?),
                None => all = Some(table),
            }
        }
        Ok(all.unwrap_or_default())
    }
}
