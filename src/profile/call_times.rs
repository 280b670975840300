//! Picks the NVTX rows that matter: ranges around a call that may wait or many calls, marks at a twin.

use crate::profile::calls::Calls;
use crate::profile::ids::{CallId, GlobalTid};
use crate::profile::seek::seek;

/// A range around this many calls is kept even if none may wait: an iteration without waits counts too.
const MANY_CALLS: usize = 8;

pub(super) struct CallTimes<'a> {
    /// Sorted by tid.
    threads: Vec<ThreadTimes<'a>>,
    pub has_twins: bool,
}

struct ThreadTimes<'a> {
    tid: GlobalTid,
    /// All kept calls: those that may wait or issued an op.
    calls: Starts<'a>,
    /// Backtrace twins of calls that may wait.
    twins: Starts<'a>,
    /// The shortest time in which [`MANY_CALLS`] calls start, in ns: most ranges are shorter.
    many: i64,
}

/// Ascending times.
#[derive(Clone, Copy)]
enum Starts<'a> {
    Column(&'a [i64]),
    Calls(&'a Calls, &'a [CallId]),
}

impl Starts<'_> {
    #[inline]
    fn get(self, at: usize) -> Option<i64> {
        match self {
            Self::Column(column) => column.get(at).copied(),
            Self::Calls(calls, list) => Some(calls.start(*list.get(at)?)),
        }
    }

    /// Index of the first time at or after `time`.
    #[inline]
    fn first_from(self, place: &mut usize, time: i64) -> usize {
        let length = match self {
            Self::Column(column) => column.len(),
            Self::Calls(_, list) => list.len(),
        };
        seek(length, place, |at| self.get(at).is_some_and(|start| start < time))
    }
}

/// Ends of the last look-ups of a scan: rows are mostly in start order.
#[derive(Default)]
pub(super) struct Cursor {
    thread: usize,
    call: usize,
    twin: usize,
}

impl<'a> CallTimes<'a> {
    pub fn new(calls: &'a Calls) -> Self {
        let threads = calls.threads.iter_enumerated().map(|(thread, &tid)| {
            let list = calls.by_thread[thread].as_slice();
            let span = |many: &[CallId]| calls.start(many[MANY_CALLS - 1]) - calls.start(many[0]);
            ThreadTimes {
                tid,
                calls: Starts::Calls(calls, list),
                twins: Starts::Column(calls.twins.starts(thread)),
                many: list.windows(MANY_CALLS).map(span).min().unwrap_or(i64::MAX),
            }
        });
        Self { threads: threads.collect(), has_twins: !calls.twins.is_empty() }
    }

    /// `calls` are sorted; `starts` are their times again.
    pub fn of(calls: &[(GlobalTid, i64)], mut starts: &'a [i64]) -> Self {
        let threads = calls.chunk_by(|a, b| a.0 == b.0).map(|list| {
            let (column, others) = starts.split_at(list.len());
            starts = others;
            let (calls, twins) = (Starts::Column(column), Starts::Column(&[]));
            ThreadTimes { tid: list[0].0, calls, twins, many: 0 }
        });
        Self { threads: threads.collect(), has_twins: false }
    }

    fn thread(&self, place: &mut Cursor, tid: GlobalTid) -> Option<&ThreadTimes<'a>> {
        if self.threads.get(place.thread).is_none_or(|t| t.tid != tid) {
            let thread = self.threads.binary_search_by_key(&tid, |t| t.tid).ok()?;
            *place = Cursor { thread, ..Cursor::default() };
        }
        self.threads.get(place.thread)
    }

    pub fn is_twin(&self, place: &mut Cursor, tid: GlobalTid, start: i64) -> bool {
        let Some(thread) = self.thread(place, tid) else { return false };
        let at = thread.twins.first_from(&mut place.twin, start);
        thread.twins.get(at) == Some(start)
    }

    /// Whether a range holds a call that may wait, or many calls.
    pub fn matters(&self, place: &mut Cursor, tid: GlobalTid, start: i64, end: i64) -> bool {
        let Some(thread) = self.thread(place, tid) else { return false };
        let mut nth_call_from_start = |n: usize| {
            let first = thread.calls.first_from(&mut place.call, start);
            thread.calls.get(first + n).is_some_and(|call| call <= end)
        };
        if !self.has_twins {
            return nth_call_from_start(0);
        }
        let twin = thread.twins.first_from(&mut place.twin, start);
        thread.twins.get(twin).is_some_and(|t| t <= end)
            || end.saturating_sub(start) >= thread.many && nth_call_from_start(MANY_CALLS - 1)
    }
}
