//! An Nsight Systems export as typed columns. The only room that knows SQLite and nsys.

pub mod calls;
pub mod chains;
pub mod commands;
pub mod correlation;
pub mod database;
pub mod details;
pub mod nvtx;
pub mod ops;
pub mod os_calls;
pub mod payload;
pub mod samples;
pub mod seek;
pub mod strings;
pub mod syncs;
pub mod target;

use crate::error::InputError;
use calls::{Calls, Interest};
use correlation::{Correlation, IssuedBy};
use database::{Database, Progress};
use nvtx::{Nvtx, process};
use ops::Ops;
use std::path::Path;
use std::sync::Arc;
use strings::Strings;
use syncs::Syncs;
use target::Target;

/// One export, its large tables read: NVTX by [`Profile::with_nvtx`], the others by [`Profile::load`].
pub struct Profile {
    pub db: Database,
    pub strings: Strings,
    pub target: Target,
    pub calls: Calls,
    pub ops: Ops,
    pub syncs: Syncs,
    pub nvtx: Nvtx,
    pub correlation: Correlation,
    /// When the call that issued each op began; `i64::MIN` where the export holds no such call (trimmed exports).
    pub issued: Vec<i64>,
}

/// Time of an op whose launch is not recorded: before everything, so that it counts as issued when it ran.
pub const ISSUE_UNKNOWN: i64 = i64::MIN;

impl Profile {
    /// Reads an export on `threads` threads. `may_wait` tells by name (suffix gone) which calls may block the host.
    ///
    /// # Errors
    /// [`InputError`]: the file cannot be read, is damaged, or is no nsys export. An export without CUDA calls is not
    /// an error here: `doctor` has something to say about it.
    pub fn load(
        path: &Path,
        threads: usize,
        progress: Option<Arc<dyn Progress>>,
        may_wait: fn(&str) -> bool,
    ) -> Result<Self, InputError> {
        let db = Database::open(path, threads, progress)?;
        if !is_nsys(&db) {
            let command = commands::export(path);
            return Err(InputError::NotNsys { path: path.to_owned(), command });
        }
        let mut strings = Strings::default();
        let target = Target::read(&db, &mut strings)?;
        let mut ops = Ops::read(&db)?;
        let mut syncs = Syncs::read(&db)?;
        let interest = Interest { may_wait, issued: &IssuedBy::new(&ops, &syncs) };
        let calls = Calls::read(&db, &mut strings, &interest)?;
        if let Some(pid) = only_process(&calls) {
            ops.set_missing_pid(pid);
            syncs.set_missing_pid(pid);
        }
        let correlation = Correlation::new(&calls);
        let issued = (0..ops.len())
            .map(|i| {
                let pid = ops.streams[ops.stream[i] as usize].pid;
                correlation.call(pid, ops.correlation[i]).map_or(ISSUE_UNKNOWN, |c| calls.start[c as usize])
            })
            .collect();
        let nvtx = Nvtx::default();
        Ok(Self { db, strings, target, calls, ops, syncs, nvtx, correlation, issued })
    }

    /// Reads NVTX, the largest table, while `work` runs on what is already here.
    ///
    /// # Errors
    /// As [`Profile::load`].
    pub fn with_nvtx<T>(&mut self, work: impl FnOnce(&Self) -> T) -> Result<T, InputError> {
        let this = &*self;
        let (nvtx, done) = std::thread::scope(|scope| {
            let reading = scope.spawn(|| Nvtx::read(&this.db, &this.calls));
            let done = work(this);
            (reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), done)
        });
        self.nvtx = nvtx?;
        Ok(done)
    }

    pub fn path(&self) -> &Path {
        self.db.path()
    }

    /// First start to last end of all calls and ops, in ns.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        let spans = || self.calls.spans.iter();
        let first = spans().map(|s| s.start).chain(self.ops.start.first().copied()).min()?;
        let last = spans().map(|s| s.end).chain(self.ops.end.iter().copied()).max()?;
        Some((first, last))
    }
}

/// A table of strings and at least one table of events: what every export since 2019 has.
fn is_nsys(db: &Database) -> bool {
    let event = |t: &str| {
        t.starts_with("CUPTI_ACTIVITY_KIND_") || t == "NVTX_EVENTS" || t.starts_with("TARGET_INFO_")
    };
    db.has_table("StringIds") && db.table_names().any(event)
}

/// The process of all calls, if there is only one: rows that name none are its.
fn only_process(calls: &Calls) -> Option<i64> {
    let mut pids = calls.threads.iter().map(|&t| process(t)).filter(|&p| p != 0);
    let first = pids.next()?;
    pids.all(|p| p == first).then_some(first)
}
