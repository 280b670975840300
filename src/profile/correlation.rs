//! From a correlation id to the call that used it.

use crate::profile::calls::Calls;
use crate::profile::ids::{CallId, ExportId, OpId, StreamIx, process};
use crate::profile::ops::Ops;
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

/// Call index by (process, correlation id). Ids are unique per process only: another rank uses the same numbers.
pub struct Correlation {
    by_pid: FxHashMap<i64, Index>,
}

enum Index {
    /// Ids count up from a start, so they are usually dense: a vector beats a hash map twenty times.
    Dense {
        first: u32,
        calls: Vec<Option<CallId>>,
    },
    Sparse(FxHashMap<u32, CallId>),
}

/// A vector up to this many times larger than its content is still worth it.
const MAX_SPARSITY: usize = 8;

impl Correlation {
    /// The first call of each id wins: calls are sorted outermost first, so a nested driver row that shares the id of
    /// its runtime call stays behind it.
    pub fn new(calls: &Calls) -> Self {
        let mut members: FxHashMap<i64, Vec<(u32, CallId)>> = FxHashMap::default();
        for (thread, list) in calls.threads.iter().zip(&calls.by_thread) {
            let ids = list.iter().filter_map(|&call| Some((calls.correlation[call].known()?, call)));
            members.entry(process(*thread)).or_default().extend(ids);
        }
        Self { by_pid: members.into_iter().map(|(pid, list)| (pid, Index::new(list))).collect() }
    }

    /// The call that issued each op.
    pub fn issuers(&self, ops: &Ops) -> TiVec<OpId, Option<CallId>> {
        let of_stream: TiVec<StreamIx, Option<&Index>> =
            ops.streams.iter().map(|stream| self.by_pid.get(&stream.pid)).collect();
        let issuer = |(&stream, &id): (&StreamIx, &ExportId)| of_stream[stream]?.call(id);
        ops.stream.iter().zip(&ops.correlation).map(issuer).collect()
    }

    /// The call of a process with this correlation id.
    pub fn call(&self, pid: i64, correlation: ExportId) -> Option<CallId> {
        self.by_pid.get(&pid)?.call(correlation)
    }
}

impl Index {
    fn call(&self, correlation: ExportId) -> Option<CallId> {
        let id = correlation.known()?;
        match self {
            Self::Dense { first, calls } => *calls.get(id.checked_sub(*first)? as usize)?,
            Self::Sparse(map) => map.get(&id).copied(),
        }
    }

    fn new(list: Vec<(u32, CallId)>) -> Self {
        let first = list.iter().map(|l| l.0).min().unwrap_or(0);
        let last = list.iter().map(|l| l.0).max().unwrap_or(0);
        let width = (last - first) as usize + 1;
        if width <= MAX_SPARSITY * list.len().max(1) {
            let mut calls = vec![None; width];
            for (id, call) in list {
                let slot = &mut calls[(id - first) as usize];
                *slot = Some(slot.map_or(call, |known: CallId| known.min(call)));
            }
            return Self::Dense { first, calls };
        }
        let mut map = FxHashMap::default();
        for (id, call) in list {
            let slot = map.entry(id).or_insert(call);
            *slot = (*slot).min(call);
        }
        Self::Sparse(map)
    }
}
