//! Ops that ran within a stretch of time, whatever the number of streams.

use crate::profile::ids::OpId;
use crate::profile::ops::Ops;

/// Ops in start order, below a tree of their latest ends.
pub(super) struct Overlaps {
    /// Node `n` has the children `2n` and `2n + 1`; the leaves are the ops.
    latest: Vec<i64>,
    leaves: usize,
}

impl Overlaps {
    pub fn new(ops: &Ops) -> Self {
        let leaves = ops.len().next_power_of_two();
        let mut latest = vec![i64::MIN; leaves];
        latest.extend(ops.times.iter().map(|op| op.1));
        latest.resize(2 * leaves, i64::MIN);
        for node in (1..leaves).rev() {
            latest[node] = latest[2 * node].max(latest[2 * node + 1]);
        }
        Self { latest, leaves }
    }

    /// Ops that start before `until` and end after `from`. Cost: a few steps of the tree each.
    pub fn between(&self, ops: &Ops, from: i64, until: i64) -> Vec<OpId> {
        let begun = ops.times.first_from(until);
        let mut found = Vec::new();
        // Nodes left to visit: node, first leaf, number of leaves.
        let mut left = vec![(1, 0, self.leaves)];
        while let Some((node, first, leaves)) = left.pop() {
            if first >= begun || self.latest[node] <= from {
                continue;
            }
            if leaves == 1 {
                found.push(OpId::from(first));
                continue;
            }
            let half = leaves / 2;
            left.extend([(2 * node, first, half), (2 * node + 1, first + half, half)]);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_finds_what_a_search_of_all_finds() {
        let mut ops = Ops::default();
        for i in 0..37 {
            ops.times.push(i * 10, i * 10 + (i * i * 7) % 90);
        }
        let tree = Overlaps::new(&ops);
        for from in (-10..400).step_by(7) {
            for until in [from, from + 1, from + 30, 500] {
                let mut found = tree.between(&ops, from, until);
                found.sort_unstable();
                let all = ops.ids().filter(|&op| ops.start(op) < until && ops.end(op) > from);
                assert_eq!(found, all.collect::<Vec<_>>(), "{from}..{until}");
            }
        }
        assert!(Overlaps::new(&Ops::default()).between(&Ops::default(), 0, 1).is_empty());
    }
}
