//! The stack of Python functions and operators around calls, by a sweep over each thread.
//!
//! A trace holds functions and operators as ranges; their nesting in time says which calls which.
//!
//! ```text
//!  python   [main                                  ]
//!  python      [step                          ]
//!  C           [<built-in method item>   ]
//!  operator        [aten::item          ]
//!  call                  |cudaStreamSynchronize        its stack: main, step, item, aten::item
//! ```
//! Ranges and calls are sorted by start, and ranges of equal starts longest first: a stack of open ranges
//! surrounds each call. The tracer misses the end of functions that turn it on and off, such as
//! `profiler.step()`: they seem open for long. A Python call has a number, and its caller's: it closes Python
//! calls that seem open inside its caller. Equal stacks are one node of a tree. Cost: a sort, and one pass.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A range, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub start: i64,
    pub end: i64,
    pub name: u32,
    /// The string with the line that called it; 0 where that is not recorded.
    pub from: u32,
    /// Number of a Python call, `parent` that of its caller; 0 where there is none.
    pub id: u32,
    pub parent: u32,
    /// Shared by an operator and its backward operator; else [`NO_SEQUENCE`].
    pub sequence: u32,
}

pub const NO_SEQUENCE: u32 = u32::MAX;

/// A stack: its innermost range, and the stack around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub outer: Option<u32>,
    pub name: u32,
    pub from: u32,
}

/// Distinct stacks.
#[derive(Default)]
pub struct Tree {
    nodes: Vec<Node>,
    places: FxHashMap<Node, u32>,
}

impl Tree {
    fn place(&mut self, node: Node) -> u32 {
        *self.places.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        })
    }

    /// A stack's ranges, innermost first.
    pub fn outwards(&self, node: Option<u32>) -> impl Iterator<Item = Node> {
        let at = |place: u32| self.nodes[place as usize];
        std::iter::successors(node.map(at), move |node| node.outer.map(at))
    }

    /// The stack around each of a thread's ascending `times`, and its outermost sequence number.
    pub fn sweep(&mut self, ranges: &mut [Range], times: &[i64]) -> Vec<(Option<u32>, u32)> {
        ranges.sort_by_key(|range| (range.start, Reverse(range.end)));
        let mut next = ranges.iter().peekable();
        let mut open: Vec<Open> = Vec::new();
        let around = |&time: &i64| {
            while let Some(range) = next.next_if(|range| range.start <= time) {
                let ended = |top: &mut Open| {
                    top.end < range.start || top.end == range.start && range.start < range.end
                };
                while open.pop_if(ended).is_some() {}
                close_missed(&mut open, range.parent);
                let outer = open.last().map(|top| top.node);
                let node = self.place(Node { outer, name: range.name, from: range.from });
                let outer = open.last().map_or(NO_SEQUENCE, |top| top.sequence);
                let sequence = if outer == NO_SEQUENCE { range.sequence } else { outer };
                open.push(Open { end: range.end, node, id: range.id, sequence });
            }
            while open.pop_if(|top| top.end < time).is_some() {}
            let top = open.last();
            (top.map(|top| top.node), top.map_or(NO_SEQUENCE, |top| top.sequence))
        };
        times.iter().map(around).collect()
    }
}

struct Open {
    end: i64,
    node: u32,
    /// Number of a Python call; 0 for an operator.
    id: u32,
    /// The sequence number of the outermost open operator that has one.
    sequence: u32,
}

/// Closes Python calls that seem open inside call number `parent`, and all inside them.
fn close_missed(open: &mut Vec<Open>, parent: u32) {
    if parent == 0 {
        return;
    }
    let Some(at) = open.iter().rposition(|one| one.id == parent) else { return };
    if let Some(missed) = open[at + 1..].iter().position(|one| one.id != 0) {
        open.truncate(at + 1 + missed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `id` and `parent` as in [`Range`].
    fn range(start: i64, end: i64, name: u32, [id, parent]: [u32; 2]) -> Range {
        Range { start, end, name, from: 0, id, parent, sequence: NO_SEQUENCE }
    }

    /// Innermost first.
    fn names(tree: &Tree, found: &[(Option<u32>, u32)]) -> Vec<Vec<u32>> {
        found.iter().map(|(node, _)| tree.outwards(*node).map(|node| node.name).collect()).collect()
    }

    /// ```text
    ///  1 [0                    20]
    ///  2   [2         10][10 14]        3 follows 2
    ///  at  2    5       10      16  25
    /// ```
    #[test]
    fn a_stack_stands_around_each_call() {
        let range = |start, end, name| range(start, end, name, [0, 0]);
        let mut tree = Tree::default();
        let mut ranges = [range(10, 14, 3), range(2, 10, 2), range(0, 20, 1)];
        let found = tree.sweep(&mut ranges, &[2, 5, 10, 16, 25]);
        assert_eq!(names(&tree, &found), [vec![2, 1], vec![2, 1], vec![3, 1], vec![1], vec![]]);
        assert_eq!(found[0], found[1], "equal stacks are one");
        // An empty range, as whole µs make them, lies in open ranges, not in ended ones.
        let mut ranges = [range(0, 20, 1), range(2, 5, 2), range(8, 8, 3)];
        let found = tree.sweep(&mut ranges, &[8, 9]);
        assert_eq!(names(&tree, &found), [vec![3, 1], vec![1]]);
    }

    /// ```text
    ///  1 main  [0                        20]
    ///  2 step    [1                      20]    seems open, but its end was missed
    ///  3 item            [8   10]               main calls it
    ///  4 op          [6         12]             between them
    /// ```
    #[test]
    fn calls_whose_end_was_missed_are_closed_by_the_next_of_their_caller() {
        let op = range(2, 12, 4, [0, 0]);
        let range = |start, end, id, parent| range(start, end, id, [id, parent]);
        let mut ranges = [range(0, 20, 1, 0), range(1, 20, 2, 1), range(8, 10, 3, 1)];
        let mut tree = Tree::default();
        let found = tree.sweep(&mut ranges, &[4, 9, 11]);
        assert_eq!(names(&tree, &found), [vec![2, 1], vec![3, 1], vec![1]]);
        let mut ranges = [range(0, 20, 1, 0), op, range(8, 10, 3, 1)];
        let found = tree.sweep(&mut ranges, &[9]);
        assert_eq!(names(&tree, &found), [vec![3, 4, 1]], "an operator that calls Python stays");
    }
}
