//! From a correlation id to the call that used it, and which ids issued an op.

use crate::profile::calls::{Calls, NO_CORRELATION};
use crate::profile::nvtx::process;
use crate::profile::ops::Ops;
use crate::profile::syncs::Syncs;
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

/// Which (process, correlation id) issued an op or recorded an event: one bit an id.
pub struct IssuedBy {
    /// By process: first id and bits. Few processes: searched in order.
    by_pid: Vec<(i64, u32, Vec<u64>)>,
    /// Some rows name no process: any call may have issued them.
    any: bool,
}

impl IssuedBy {
    pub fn new(ops: &Ops, syncs: &Syncs) -> Self {
        let mut bounds: FxHashMap<i64, (u32, u32)> = FxHashMap::default();
        let ids = || {
            let of_op = |i: usize| (ops.streams[ops.stream[i] as usize].pid, ops.correlation[i]);
            (0..ops.len()).map(of_op).chain(syncs.records()).filter(|&(_, c)| c != NO_CORRELATION)
        };
        for (pid, id) in ids() {
            let b = bounds.entry(pid).or_insert((id, id));
            *b = (b.0.min(id), b.1.max(id));
        }
        let any = bounds.contains_key(&0);
        let mut by_pid: Vec<(i64, u32, Vec<u64>)> = bounds
            .into_iter()
            .map(|(pid, (first, last))| (pid, first, vec![0u64; (last - first) as usize / 64 + 1]))
            .collect();
        by_pid.sort_unstable_by_key(|p| p.0);
        for (pid, id) in ids() {
            if let Some((_, first, bits)) = by_pid.iter_mut().find(|p| p.0 == pid) {
                let at = (id - *first) as usize;
                bits[at / 64] |= 1 << (at % 64);
            }
        }
        Self { by_pid, any }
    }

    pub fn issued(&self, pid: i64, correlation: u32) -> bool {
        self.any
            || self.by_pid.iter().find(|p| p.0 == pid).is_some_and(|(_, first, bits)| {
                let at = correlation.wrapping_sub(*first) as usize;
                bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
            })
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
