//! An Nsight Systems export as typed columns. The only room that knows SQLite, parquet exports and nsys.

pub mod blocked;
mod call_times;
pub mod calls;
pub mod chains;
pub mod coded;
pub mod commands;
pub mod communicators;
mod correlation;
pub mod database;
pub mod details;
pub mod elsewhere;
pub mod footer;
mod getters;
pub mod header;
pub mod host_calls;
pub mod ids;
pub mod issued;
pub mod lacks;
pub mod memory;
pub mod nvtx;
pub mod ops;
pub mod os_calls;
pub mod parallel;
pub mod payload;
pub mod recapture;
pub mod recorded;
pub mod samples;
pub mod seek;
pub mod strings;
pub mod syncs;
mod tally;
pub mod target;
pub mod times;
pub mod unclosed;
pub mod wanted;

use crate::error::InputError;
use blocked::Blocked;
use calls::{Calls, Interest};
use correlation::Correlation;
use database::{Database, Reading};
use ids::{CallId, GlobalPid, GlobalTid, OpId};
use issued::IssuedBy;
use lacks::Lack;
use nvtx::Nvtx;
use ops::Ops;
use os_calls::OsCalls;
use parallel::both;
use recorded::Recorded;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use strings::Strings;
use syncs::Syncs;
use target::Target;
use typed_index_collections::TiVec;
use wanted::{Names, Wanted};

/// [`Profile::load`] reads the large tables, [`Profile::with_nvtx`] reads NVTX and joins calls and ops.
pub struct Profile {
    /// Open for columns that only some rows need.
    pub db: Arc<Database>,
    /// The report that the export was made from for this run; `None` where the export was given.
    pub report: Option<PathBuf>,
    pub strings: Strings,
    pub target: Target,
    pub calls: Arc<Calls>,
    /// Only threads that call CUDA.
    pub os_calls: OsCalls,
    /// Stretches outside CUDA, in threads that call CUDA; `None` where the export does not tell.
    pub blocked: Option<Blocked>,
    pub ops: Ops,
    /// By thread; empty for an export of nsys.
    pub recorded: FxHashMap<GlobalTid, Recorded>,
    pub syncs: Syncs,
    /// Empty until [`Profile::with_nvtx`].
    pub nvtx: Nvtx,
    /// Empty until [`Profile::with_nvtx`]; `None` where the export lacks the call.
    issuer: TiVec<OpId, Option<CallId>>,
    /// Ids of names that show that the host may see kernels' writes without a copy.
    pub sharing: Vec<i64>,
    pub names_pytorch: bool,
    /// Text ids of wanted ranges, until [`Profile::with_nvtx`].
    registered: Vec<FxHashSet<i64>>,
    pub lacks: Vec<Lack>,
}

/// Time of an op whose launch is not recorded: before everything, so that it counts as issued when it ran.
pub const ISSUE_UNKNOWN: i64 = i64::MIN;

impl Profile {
    /// Reads an export, but for NVTX.
    ///
    /// # Errors
    /// [`InputError`]: the file cannot be read, is damaged, or is no nsys export. An export without CUDA
    /// calls is not an error here: `doctor` has something to say about it.
    pub fn load(path: &Path, reading: Reading, wanted: &Wanted) -> Result<Self, InputError> {
        let db = Database::open(path, reading)?;
        if db.is_cut_trace().is_none() && !is_nsys(&db) {
            let command = commands::some_export();
            return Err(InputError::NotNsys(path.to_owned(), command));
        }
        let mut lacks = lacks::missing(&db);
        let mut strings = Strings::default();
        let target = Target::read(&db, &mut strings)?;
        let ops = Ops::read(&db)?;
        let mut syncs = Syncs::read(&db)?;
        let issued = &IssuedBy::new(|| ops.issued().chain(syncs.records()));
        let names = Names::read(&db, wanted)?;
        let calls = calls::Rows::read(&db, &Interest { names: &names, issued })?;
        let ops = Mutex::new(ops);
        let order = || std::mem::take(&mut *ops.lock().unwrap_or_else(PoisonError::into_inner)).order();
        let (mut ops, calls) = both(order, || Calls::new(calls, &db, &mut strings));
        let calls = calls?;
        let os_calls = os_calls::read(&db, &mut strings, &names.os_calls, &calls.threads)?;
        let blocked = Blocked::read(&db, &calls, &os_calls)?;
        lacks.extend(lacks::absent(&db, &target, &calls, &ops));
        lacks.extend(lacks::cut(&db));
        let recorded = Recorded::read(&db)?;
        if let Some(pid) = only_process(&calls) {
            ops.set_missing_pid(pid);
            syncs.set_missing_pid(pid);
        }
        Ok(Self {
            db: Arc::new(db),
            report: None,
            strings,
            target,
            calls: Arc::new(calls),
            os_calls,
            blocked,
            ops,
            recorded,
            syncs,
            nvtx: Nvtx::default(),
            lacks,
            issuer: TiVec::new(),
            sharing: names.sharing.into_iter().collect(),
            names_pytorch: names.pytorch,
            registered: names.ranges,
        })
    }

    /// Reads NVTX, the largest table, while calls and ops are joined and `work` runs on them.
    pub fn with_nvtx<T>(&mut self, wanted: &Wanted, work: impl FnOnce(&Self) -> T) -> Result<T, InputError> {
        let (db, calls, registered) =
            (self.db.clone(), self.calls.clone(), std::mem::take(&mut self.registered));
        let read = || Nvtx::read(&db, &calls, wanted, &registered);
        let (nvtx, done) = both(read, || {
            self.join();
            work(self)
        });
        self.nvtx = nvtx?;
        Ok(done)
    }

    /// Finds the call of each op and of each event record.
    fn join(&mut self) {
        let correlation = Correlation::new(&self.calls);
        self.issuer = correlation.issuers(&self.ops);
        self.syncs.find_calls(&correlation);
    }

    pub fn issuer(&self, op: OpId) -> Option<CallId> {
        self.issuer[op]
    }

    /// When an op's issuing call began; [`ISSUE_UNKNOWN`] where the export lacks it (trimmed exports).
    pub fn issued(&self, op: OpId) -> i64 {
        self.issuer[op].map_or(ISSUE_UNKNOWN, |call| self.calls.start(call))
    }

    /// The names of all kernels, each once by its id, in no order.
    pub fn kernel_names(&mut self) -> Result<Vec<(u32, Arc<str>)>, InputError> {
        let ids: FxHashSet<u32> = self.ops.ids().filter_map(|op| self.ops.kernel(op)).collect();
        self.strings.fetch(&self.db, ids.iter().map(|&id| i64::from(id)))?;
        let named = |id: u32| Some((id, Arc::clone(self.strings.get(i64::from(id))?)));
        Ok(ids.into_iter().filter_map(named).collect())
    }

    /// `None` where it was not fetched.
    pub fn kernel_name(&self, op: OpId) -> Option<&Arc<str>> {
        self.strings.get(i64::from(self.ops.kernel(op)?))
    }

    /// As [`Self::issued`], but the op's start where no launch is recorded.
    pub fn issued_by(&self, op: OpId) -> i64 {
        match self.issued(op) {
            ISSUE_UNKNOWN => self.ops.start(op),
            time => time,
        }
    }

    /// Path of the export, or of the report that it was made from, whichever was given.
    pub fn path(&self) -> &Path {
        self.report.as_deref().unwrap_or_else(|| self.db.path())
    }

    /// Whether savings can be computed: without GPU operations, their issuers or what a wait waited for, each
    /// saving would be all of the wait or nothing.
    pub fn can_price(&self) -> bool {
        !self.ops.is_empty() && self.lacks.iter().all(|lack| !lack.prices)
    }

    /// First start to last end of all calls and ops, in ns.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        let spans = || self.calls.spans.iter();
        let first =
            spans().map(|s| s.start).chain(self.ops.ids().next().map(|op| self.ops.start(op))).min()?;
        let last = spans().map(|s| s.end).chain(self.ops.times.iter().map(|op| op.1)).max()?;
        Some((first, last))
    }
}

/// Every export since 2019 has a table of strings and at least one of events.
fn is_nsys(db: &Database) -> bool {
    let event = |t: &str| {
        t.starts_with("CUPTI_ACTIVITY_KIND_") || t == "NVTX_EVENTS" || t.starts_with("TARGET_INFO_")
    };
    db.table_names().any(|t| t == "StringIds") && db.table_names().any(event)
}

/// The process of all calls, if there is only one: it takes rows that name none.
fn only_process(calls: &Calls) -> Option<GlobalPid> {
    let mut pids = calls.threads.iter().map(|t| t.process()).filter(|&p| p != GlobalPid::NONE);
    let first = pids.next()?;
    pids.all(|p| p == first).then_some(first)
}
