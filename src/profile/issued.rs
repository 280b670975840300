//! Correlation ids of ops: other calls are kept only if they may wait.

use crate::profile::ids::{ExportId, GlobalPid};
use crate::profile::tally::Tally;
use rustc_hash::FxHashSet;

/// A vector of up to this many bits an id is still worth it: a set takes 9 bytes an id or more.
const MAX_BIT_SPARSITY: u64 = 64;

/// Processes and correlation ids that issued an op or recorded an event.
pub struct IssuedBy {
    by_pid: Tally<GlobalPid, Ids>,
    /// Some rows name no process: any call may have issued them.
    any: bool,
}

enum Ids {
    /// One bit an id, from the first.
    Dense { first: u32, bits: Vec<u64> },
    /// Two ids far apart must not cost 512 MiB: a process that counts from a random start, a damaged row.
    Sparse(FxHashSet<u32>),
}

/// `count` includes repetitions.
struct Extent {
    first: u32,
    last: u32,
    count: u64,
}

impl IssuedBy {
    /// `all` is iterated twice: for the bounds of the ids, then for the ids.
    pub fn new<I: Iterator<Item = (GlobalPid, ExportId)>>(all: impl Fn() -> I) -> Self {
        let ids = || all().filter_map(|(pid, id)| Some((pid, id.known()?)));
        let mut extents: Tally<GlobalPid, Extent> = Tally::default();
        for (pid, id) in ids() {
            let e = extents.of(pid, || Extent { first: id, last: id, count: 0 });
            (e.first, e.last, e.count) = (e.first.min(id), e.last.max(id), e.count + 1);
        }
        let mut sets: Tally<GlobalPid, Ids> = Tally::default();
        for (pid, extent) in extents.iter() {
            sets.of(*pid, || Ids::new(extent));
        }
        ids().for_each(|(pid, id)| sets.of(pid, || Ids::Sparse(FxHashSet::default())).insert(id));
        Self { any: sets.get(&GlobalPid::NONE).is_some(), by_pid: sets }
    }

    pub(super) fn issued(&self, pid: GlobalPid, correlation: ExportId) -> bool {
        let id = correlation.number();
        self.any || self.by_pid.get(&pid).is_some_and(|set| set.contains(id))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_far_apart_take_no_room() {
        let [one, two] = [1 << 24, 2 << 24].map(GlobalPid::new);
        let near: Vec<(GlobalPid, u32)> = (100..200).map(|id| (one, id * 3)).collect();
        let far = [(two, 5), (two, u32::MAX - 1)];
        let ids = || near.iter().chain(&far).map(|&(pid, id)| (pid, ExportId::from(id)));
        let issued = IssuedBy::new(ids);
        for (pid, id) in ids() {
            assert!(issued.issued(pid, id), "{pid:?} {id:?}");
        }
        for (pid, id) in [(GlobalPid::new(1), 300), (one, 301), (one, 0), (one, 5), (two, 300), (two, 6)] {
            assert!(!issued.issued(pid, id.into()), "{pid:?} {id}");
        }
        let dense = |pid| matches!(issued.by_pid.get(&pid), Some(Ids::Dense { .. }));
        assert_eq!([dense(one), dense(two)], [true, false]);
    }
}
