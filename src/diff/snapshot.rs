//! One side of a comparison: the report of a capture just analysed, or one kept as JSON.

use crate::model::{Report, SCHEMA_VERSION, Site};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::ops::Deref;
use thiserror::Error;

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

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub report: Report,
    /// Whether `source` holds lines as they were during the capture. Sources are read from today's files,
    /// which may have been edited since an earlier capture.
    pub sources_are_its_own: bool,
}

impl Deref for Snapshot {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.report
    }
}

impl Snapshot {
    /// # Errors
    /// `SideError` for no report, another version, or a cut report.
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

    pub fn of(report: Report, sources_are_its_own: bool) -> Self {
        Self { report, sources_are_its_own }
    }

    pub fn ranks(&self) -> usize {
        ranks(&self.sites)
    }

    /// Iterations of the loop; 1 without one.
    pub fn turns(&self) -> u64 {
        self.iterations.as_ref().map_or(1, |i| i.count).max(1)
    }

    pub fn gpus(&self) -> BTreeSet<&String> {
        self.profiles.iter().flat_map(|p| &p.gpus).filter_map(|g| g.name.as_ref()).collect()
    }
}

pub fn ranks<'a>(sites: impl IntoIterator<Item = &'a Site>) -> usize {
    sites.into_iter().map(|s| s.process.rank()).collect::<BTreeSet<_>>().len()
}
