//! From a correlation id to the call that used it, and which ids issued an op.

use crate::profile::calls::{Calls, NO_CORRELATION};
use crate::profile::nvtx::process;
use crate::profile::ops::Ops;
use crate::profile::syncs::Syncs;
use rustc_hash::{FxHashMap, FxHashSet};

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
/// The same for a vector of bits: a set takes 9 bytes an id or more, so this many bits are about as large.
const MAX_BIT_SPARSITY: u64 = 64;

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

/// Which (process, correlation id) issued an op or recorded an event.
pub struct IssuedBy {
    /// Few processes: searched in order.
    by_pid: Vec<(i64, Ids)>,
    /// Some rows name no process: any call may have issued them.
    any: bool,
}

/// A set of correlation ids.
enum Ids {
    /// One bit an id, from the first.
    Dense { first: u32, bits: Vec<u64> },
    /// Two ids far apart must not cost 512 MiB: a process that counts from a random start, a damaged row.
    Sparse(FxHashSet<u32>),
}

/// How many ids there are, with repetitions, and within which bounds.
struct Extent {
    first: u32,
    last: u32,
    count: u64,
}

impl IssuedBy {
    pub fn new(ops: &Ops, syncs: &Syncs) -> Self {
        let of_op = |i: usize| (ops.streams[ops.stream[i] as usize].pid, ops.correlation[i]);
        let ids = || (0..ops.len()).map(of_op).chain(syncs.records()).filter(|&(_, c)| c != NO_CORRELATION);
        Self::of(ids)
    }

    /// Reads (process, id) pairs twice: for their bounds, then for themselves.
    fn of<I: Iterator<Item = (i64, u32)>>(ids: impl Fn() -> I) -> Self {
        let mut extents: FxHashMap<i64, Extent> = FxHashMap::default();
        for (pid, id) in ids() {
            let e = extents.entry(pid).or_insert(Extent { first: id, last: id, count: 0 });
            (e.first, e.last, e.count) = (e.first.min(id), e.last.max(id), e.count + 1);
        }
        let any = extents.contains_key(&0);
        let mut by_pid: Vec<(i64, Ids)> =
            extents.into_iter().map(|(pid, extent)| (pid, Ids::new(&extent))).collect();
        by_pid.sort_unstable_by_key(|p| p.0);
        for (pid, id) in ids() {
            if let Some((_, set)) = by_pid.iter_mut().find(|p| p.0 == pid) {
                set.insert(id);
            }
        }
        Self { by_pid, any }
    }

    pub fn issued(&self, pid: i64, correlation: u32) -> bool {
        self.any || self.by_pid.iter().find(|p| p.0 == pid).is_some_and(|(_, set)| set.contains(correlation))
    }
}

impl Ids {
    fn new(extent: &Extent) -> Self {
        let width = u64::from(extent.last - extent.first) + 1;
        if width <= MAX_BIT_SPARSITY * extent.count {
            return Self::Dense { first: extent.first, bits: vec![0; width.div_ceil(64) as usize] };
        }
        Self::Sparse(FxHashSet::default())
    }

    fn insert(&mut self, id: u32) {
        match self {
            Self::Dense { first, bits } => {
                let at = (id - *first) as usize;
                bits[at / 64] |= 1 << (at % 64);
            }
            Self::Sparse(set) => {
                set.insert(id);
            }
        }
    }

    fn contains(&self, id: u32) -> bool {
        match self {
            Self::Dense { first, bits } => {
                let at = id.wrapping_sub(*first) as usize;
                bits.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
            }
            Self::Sparse(set) => set.contains(&id),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_far_apart_take_no_room() {
        let near: Vec<(i64, u32)> = (100..200).map(|id| (1 << 24, id * 3)).collect();
        let far = [(2 << 24, 5), (2 << 24, u32::MAX - 1)];
        let ids = || near.iter().chain(&far).copied();
        let issued = IssuedBy::of(ids);
        for (pid, id) in ids() {
            assert!(issued.issued(pid, id), "{pid} {id}");
        }
        for (pid, id) in [(1, 300), (1 << 24, 301), (1 << 24, 0), (1 << 24, 5), (2 << 24, 300), (2 << 24, 6)]
        {
            assert!(!issued.issued(pid, id), "{pid} {id}");
        }
        let kinds: Vec<bool> =
            issued.by_pid.iter().map(|(_, set)| matches!(set, Ids::Dense { .. })).collect();
        assert_eq!(kinds, [true, false]);
    }
}
