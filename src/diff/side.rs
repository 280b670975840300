//! One side of a comparison: what of a report is compared.
//!
//! A side is read from the report's JSON, whether that comes from a file (`--format json --top 0`, kept since an earlier
//! run) or from a capture analysed just now: one way in, so that both compare alike.

use crate::report::{Frame, Report, json};
use crate::timeline::Timeline;
use crate::vocabulary::{Attribution, Class, Copy, DriverApi, Kind, ThreadRole};
use serde::Deserialize;
use thiserror::Error;

/// The version of the report's layout that is understood.
const SCHEMA: u32 = 1;

/// Why a file is no report to compare with.
#[derive(Debug, Error)]
pub enum SideError {
    #[error(
        "is no report of sync-report ({0}); write one with: sync-report PROFILE --format json --top 0 -o OLD.json"
    )]
    NotAReport(serde_json::Error),
    #[error(
        "is a report of schema version {0}, and this program knows version {SCHEMA}; write it again from its profile"
    )]
    OtherSchema(u32),
    #[error(
        "was written with --top: {0} sites are missing and would look new; write it again with: --format json --top 0"
    )]
    Cut(usize),
}

#[derive(Clone, Debug, Deserialize)]
pub struct Side {
    pub schema_version: u32,
    pub profiles: Vec<Profile>,
    pub totals: Totals,
    pub iterations: Option<Iterations>,
    pub sites: Vec<Site>,
    #[serde(default)]
    pub sites_omitted: usize,
    #[serde(default)]
    pub waits_filtered_out: u64,
    /// Whether `source` is the line as it was when the capture ran. Sources are read from today's files: those of an
    /// earlier capture may have been edited since.
    #[serde(skip)]
    pub sources_are_its_own: bool,
    /// The captures drawn, where they were asked for; a report kept as JSON has none.
    #[serde(skip)]
    pub timelines: Vec<Timeline>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Profile {
    pub path: String,
    pub span_ns: i64,
    pub gpus: Vec<Gpu>,
    pub processes: Vec<Process>,
    pub command: Option<String>,
    pub backtraces: String,
    #[serde(default)]
    pub launch_ns: Option<i64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Gpu {
    pub name: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Process {
    pub pid: u32,
    #[serde(default)]
    pub profile: usize,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Totals {
    pub blocked_ns: i64,
    pub drain_ns: i64,
    pub gpu_busy_ns: i64,
    pub gpu_idle_ns: i64,
    pub recoverable_false_joint_ns: Option<i64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Iterations {
    pub source: String,
    pub count: u64,
    pub median_ns: i64,
    pub mean_ns: i64,
    pub quartiles_ns: [i64; 3],
    pub gpu_busy_ns: i64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Site {
    pub id: String,
    pub key: String,
    pub api: String,
    pub driver_api: DriverApi,
    pub class: Class,
    pub kind: Kind,
    pub pattern: Option<String>,
    pub evidence: Vec<Evidence>,
    pub attribution: Attribution,
    pub frames: Vec<Frame>,
    pub user_frame: Option<Frame>,
    pub native: Vec<String>,
    pub nvtx: Vec<String>,
    pub source: Option<String>,
    pub thread: Thread,
    pub process: Process,
    pub copy: Option<Copy>,
    pub waits: u64,
    pub per_iteration: Option<f64>,
    pub blocked_per_iteration_ns: Option<i64>,
    pub drain_per_iteration_ns: Option<i64>,
    pub blocked_ns: i64,
    pub drain_ns: i64,
    /// Present where it waits only at start-up, whatever it says of that.
    #[serde(default)]
    pub start_up: Option<serde::de::IgnoredAny>,
    pub recoverable: Option<Recoverable>,
    pub fix: Option<Fix>,
    pub spread: Spread,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Evidence {
    pub rule: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Thread {
    pub role: ThreadRole,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Recoverable {
    pub alone_ns: i64,
    pub per_iteration_ns: Option<i64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Fix {
    pub title: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Spread {
    pub per: String,
    pub samples: u64,
    pub waits: [u64; 3],
    pub blocked_ns: [i64; 3],
    pub drain_ns: [i64; 3],
}

impl Side {
    /// Reads a report in JSON.
    ///
    /// # Errors
    /// [`SideError`] where it is none, of another version, or not whole.
    pub fn from_json(bytes: &[u8]) -> Result<Self, SideError> {
        #[derive(Deserialize)]
        struct Version {
            schema_version: u32,
        }
        let Version { schema_version } = serde_json::from_slice(bytes).map_err(SideError::NotAReport)?;
        if schema_version != SCHEMA {
            return Err(SideError::OtherSchema(schema_version));
        }
        let side: Self = serde_json::from_slice(bytes).map_err(SideError::NotAReport)?;
        if side.sites_omitted > 0 {
            return Err(SideError::Cut(side.sites_omitted));
        }
        Ok(Self { sources_are_its_own: true, ..side })
    }

    /// What of a report is compared. `sources_are_its_own`: see the field.
    ///
    /// # Errors
    /// As [`Side::from_json`].
    pub fn of(report: &Report, sources_are_its_own: bool) -> anyhow::Result<Self> {
        let mut bytes = Vec::new();
        json::render(report, &mut bytes)?;
        let timelines = report.timelines.clone();
        Ok(Self { sources_are_its_own, timelines, ..Self::from_json(&bytes)? })
    }

    /// Processes whose waits the sites are: ranks, where each has its own.
    pub fn ranks(&self) -> usize {
        let mut ranks: Vec<(usize, u32)> =
            self.sites.iter().map(|s| (s.process.profile, s.process.pid)).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.len()
    }
}

impl Site {
    /// The frame that stands for the site.
    pub fn location(&self) -> Option<&Frame> {
        self.user_frame.as_ref().or(self.frames.first())
    }

    /// Whether the verdict rests, in part, on what the trace shows around the wait (rules `X01` and on): that strays from
    /// run to run.
    pub fn is_indirect(&self) -> bool {
        // X12 says only that a wait is of the start-up.
        self.evidence.iter().any(|e| e.rule.starts_with('X') && e.rule != "X12")
    }

    /// The frames from that one outwards.
    pub fn callers(&self) -> &[Frame] {
        let at = self.location().and_then(|l| self.frames.iter().position(|f| f == l));
        at.map_or(&[], |at| &self.frames[at + 1..])
    }
}
