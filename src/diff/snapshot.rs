//! One side of a comparison: what of a report is compared.
//!
//! A report of a capture analysed just now, or one that was kept as JSON (`--format json`) by an earlier run.

use crate::model::{Report, SCHEMA_VERSION, Site};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Deref;
use thiserror::Error;

/// Why a file is no report to compare with.
#[derive(Debug, Error)]
pub enum SideError {
    #[error(
        "is no report of sync-report ({0}); write one with: sync-report PROFILE --format json -o OLD.json"
    )]
    NotAReport(serde_json::Error),
    #[error(
        "is a report of schema version {0}, and this program knows version {SCHEMA_VERSION}; write it again from its profile"
    )]
    OtherSchema(u32),
    #[error(
        "was written with --top: {0} sites are missing and would look new; write it again with --format json, and without --top"
    )]
    Cut(usize),
}

/// A report to compare.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What is compared.
    pub report: Report,
    /// Whether `source` is the line as it was when the capture ran. Sources are read from today's files: those of an
    /// earlier capture may have been edited since.
    pub sources_are_its_own: bool,
}

impl Deref for Snapshot {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.report
    }
}

impl Snapshot {
    /// Reads a report in JSON.
    ///
    /// # Errors
    /// `SideError` where it is none, of another version, or not whole.
    pub fn from_json(bytes: &[u8]) -> Result<Self, SideError> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
        }
        let Version { schema_version } = serde_json::from_slice(bytes).map_err(SideError::NotAReport)?;
        if schema_version != SCHEMA_VERSION {
            return Err(SideError::OtherSchema(schema_version));
        }
        let report: Report = serde_json::from_slice(bytes).map_err(SideError::NotAReport)?;
        if report.sites_omitted > 0 {
            return Err(SideError::Cut(report.sites_omitted));
        }
        Ok(Self { report, sources_are_its_own: true })
    }

    /// A report just made. `sources_are_its_own`: see the field.
    pub fn of(report: Report, sources_are_its_own: bool) -> Self {
        Self { report, sources_are_its_own }
    }

    /// Processes whose waits the sites are: ranks, where each has its own.
    pub fn ranks(&self) -> usize {
        ranks(&self.sites)
    }

    /// Turns of its loop; 1 without one.
    pub fn turns(&self) -> u64 {
        self.iterations.as_ref().map_or(1, |i| i.count).max(1)
    }

    /// Names of its GPUs, each once.
    pub fn gpus(&self) -> BTreeSet<&String> {
        self.profiles.iter().flat_map(|p| &p.gpus).filter_map(|g| g.name.as_ref()).collect()
    }
}

/// Processes that wait at some sites.
pub fn ranks<'a>(sites: impl IntoIterator<Item = &'a Site>) -> usize {
    sites.into_iter().map(|s| s.process.rank()).collect::<BTreeSet<_>>().len()
}
