//! Stretches in which threads that call CUDA were blocked by something else.
//!
//! ```text
//!  main      [cudaStreamSynchronize]   [read-----------]  [cudaLaunchKernel]
//!  OSRT         [poll----]             [read-----------]
//!  blocked                             |---------------|     the poll belongs to the synchronisation
//! ```
//! Operating-system calls give the time and the function. Without any, scheduler events give the time off the
//! CPU. A thread off its CPU calls nothing, so a call holds such a stretch whole or not at all.

use crate::error::InputError;
use crate::profile::calls::Calls;
use crate::profile::database::{Cells, Database};
use crate::profile::ids::{GlobalTid, ThreadIx};
use crate::profile::os_calls::{Kind, OsCall, OsCalls};
use crate::profile::seek::seek;
use std::cmp::Reverse;
use typed_index_collections::TiVec;

const SCHEDULER: &str = "SCHED_EVENTS";

/// A stretch in which a thread was blocked, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub start: i64,
    pub end: i64,
    /// StringIds id of the blocking function; `None` where only the scheduler's events tell.
    pub call: Option<i64>,
}

/// The stretches of each thread: disjoint, ascending.
#[derive(Default)]
pub struct Blocked(TiVec<ThreadIx, Vec<Stretch>>);

impl Blocked {
    /// `None` where the export holds neither operating-system calls nor scheduler events.
    pub fn read(db: &Database, calls: &Calls, os_calls: &OsCalls) -> Result<Option<Self>, InputError> {
        let mut all = if os_calls.is_empty() {
            match off_cpu(db, calls)? {
                Some(all) => all,
                None => return Ok(None),
            }
        } else {
            calls.threads.iter().map(|&tid| in_os_calls(os_calls, tid)).collect()
        };
        let mut others = calls.host_calls.clone();
        others.sort_unstable_by_key(|call| (call.tid, call.start));
        for (thread, stretches) in all.iter_mut_enumerated() {
            let (tid, kept) = (calls.threads[thread], &calls.by_thread[thread]);
            leave_out(stretches, kept.len(), |i| calls.get(kept[i]));
            let own = &others[others.partition_point(|call| call.tid < tid)..];
            let own = &own[..own.partition_point(|call| call.tid == tid)];
            leave_out(stretches, own.len(), |i| (own[i].start, own[i].end));
        }
        Ok(Some(Self(all)))
    }

    pub fn of(&self, thread: ThreadIx) -> &[Stretch] {
        self.0.get(thread).map_or(&[], Vec::as_slice)
    }
}

/// A call inside another adds no stretch of its own.
fn in_os_calls(os_calls: &OsCalls, tid: GlobalTid) -> Vec<Stretch> {
    let mut own = [os_calls.of(Kind::Write, tid), os_calls.of(Kind::Wait, tid)].concat();
    own.sort_unstable_by_key(|call| (call.start, Reverse(call.end)));
    let mut until = i64::MIN;
    let stretch = |call: &OsCall| {
        let start = call.start.max(until);
        until = until.max(call.end);
        (start < call.end).then_some(Stretch { start, end: call.end, call: Some(call.name) })
    };
    own.iter().filter_map(stretch).collect()
}

/// From each switch off a CPU to the thread's next switch onto one; `None` without events of these threads.
fn off_cpu(db: &Database, calls: &Calls) -> Result<Option<TiVec<ThreadIx, Vec<Stretch>>>, InputError> {
    let event = |row: &Cells| {
        let thread = calls.threads.binary_search(&row.global_tid(0)?).ok()?;
        Some((thread, row.time(1).ok()??, row.int(2)? != 0))
    };
    let mut events = db.scan(SCHEDULER, &["globalTid", "start", "isSchedIn"], event)?;
    events.sort_unstable();
    let mut all: TiVec<ThreadIx, Vec<Stretch>> = calls.threads.iter().map(|_| Vec::new()).collect();
    for pair in events.windows(2) {
        if let [(thread, start, false), (same, end, true)] = *pair
            && thread == same
        {
            all[thread].push(Stretch { start, end, call: None });
        }
    }
    Ok((!events.is_empty()).then_some(all))
}

/// Leaves out stretches inside one of these calls, which ascend by start.
fn leave_out(stretches: &mut Vec<Stretch>, calls: usize, times: impl Fn(usize) -> (i64, i64)) {
    /// Calls searched backwards: a few may lie inside the one around a stretch.
    const NESTED: usize = 8;
    let mut near = 0;
    stretches.retain(|stretch| {
        let begun = seek(calls, &mut near, |i| times(i).0 <= stretch.start);
        (begun.saturating_sub(NESTED)..begun).all(|i| times(i).1 <= stretch.start)
    });
}
