//! From a correlation id to the call that used it.

use crate::profile::calls::{Calls, NO_CORRELATION};
use crate::profile::nvtx::process;
use rustc_hash::FxHashMap;

/// Call index by (process, correlation id). Ids are unique per process only: another rank uses the same numbers.
pub struct Correlation {
    by_pid: FxHashMap<i64, Index>,
}

enum Index {
    /// Ids count up from a start, so they are usually dense: a vector beats a hash map twenty times.
    Dense {
        first: u32,
        calls: Vec<u32>,
    },
    Sparse(FxHashMap<u32, u32>),
}

const NO_CALL: u32 = u32::MAX;
/// A vector up to this many times larger than its content is still worth it.
const MAX_SPARSITY: usize = 8;

impl Correlation {
    /// The first call of each id wins: calls are sorted outermost first, so a nested driver row that shares the id of
    /// its runtime call stays behind it.
    pub fn new(calls: &Calls) -> Self {
        let mut members: FxHashMap<i64, Vec<(u32, u32)>> = FxHashMap::default();
        for (thread, list) in calls.threads.iter().zip(&calls.by_thread) {
            let ids = list
                .iter()
                .map(|&i| (calls.correlation[i as usize], i))
                .filter(|&(c, _)| c != NO_CORRELATION);
            members.entry(process(*thread)).or_default().extend(ids);
        }
        Self { by_pid: members.into_iter().map(|(pid, list)| (pid, Index::new(list))).collect() }
    }

    pub fn call(&self, pid: i64, correlation: u32) -> Option<u32> {
        let call = match self.by_pid.get(&pid)? {
            Index::Dense { first, calls } => *calls.get(correlation.checked_sub(*first)? as usize)?,
            Index::Sparse(map) => *map.get(&correlation)?,
        };
        (call != NO_CALL).then_some(call)
    }
}

impl Index {
    fn new(list: Vec<(u32, u32)>) -> Self {
        let first = list.iter().map(|l| l.0).min().unwrap_or(0);
        let last = list.iter().map(|l| l.0).max().unwrap_or(0);
        let width = (last - first) as usize + 1;
        if width <= MAX_SPARSITY * list.len().max(1) {
            let mut calls = vec![NO_CALL; width];
            for (id, call) in list {
                let slot = &mut calls[(id - first) as usize];
                *slot = (*slot).min(call);
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
