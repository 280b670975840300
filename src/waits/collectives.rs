//! Collectives (NCCL kernels in which processes wait for each other), and the ranks that came late.
//!
//! ```text
//!  host 0   [all_reduce][read======================================]
//!  rank 0       [all-reduce, waits ~~~~~~~~~~~~~~~~~~~~~~~~~|~~~~~~]
//!  rank 1                                                   [~~~~~~]      launched late
//!  late                 |-----------------------------------|             of the wait: until the last rank arrived
//! ```
//! **Meetings.** Ranks run their collectives in the same order. The kernels of one name and communicator
//! ([`crate::profile::communicators`]) are walked side by side, by party: GPUs of one process are parties of
//! their own. The kernels at the head meet if all had begun when the first of them ended, and all ended
//! together: they must, where each needs the data of all. A head that does not meet is skipped. If many are
//! skipped, or if one party runs more kernels than meet while all run some, the parties are of different
//! groups of ranks: none of them meets. Only all-reduce, all-gather and reduce-scatter are matched: a sender
//! may be done before its receiver begins. Linear in the collectives, times the parties.

use super::Wait;
use super::device::{DeviceIx, Devices};
use super::held::{Held, Stretch};
use super::streams::Streams;
use crate::profile::Profile;
use crate::profile::communicators::Member;
use crate::profile::ids::{GlobalPid, OpId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Operations in which every rank waits for all, as spelled in kernel names.
const MEETINGS: [&str; 3] = ["AllReduce", "AllGather", "ReduceScatter"];

pub fn all_for_all(kernel: &str) -> bool {
    MEETINGS.iter().any(|operation| kernel.contains(operation))
}

/// Most parties that are matched: several times the GPUs of one machine.
const MOST_PARTIES: usize = 64;

/// Least share of the kernels that must meet, in percent: a few at the capture's edges do not.
const MOST_MEET: usize = 80;

/// How far apart a collective may end on its ranks, beyond its own length: clocks, and data in flight.
pub const END_APART_NS: i64 = 20_000;

pub type Party = (GlobalPid, DeviceIx);

#[derive(Default)]
pub struct Collectives {
    pub count: u64,
    /// String ids of collectives' names, ascending.
    names: Vec<u32>,
    /// Busy times by process: disjoint, ascending.
    busy: FxHashMap<GlobalPid, Vec<(i64, i64)>>,
    /// Each collective that met others, with the last to begin; sorted.
    last: Vec<(OpId, OpId)>,
    communicators: FxHashMap<OpId, u64>,
    /// Rank of each process in the largest communicator, where NCCL says so.
    pub members: BTreeMap<GlobalPid, Member>,
}

/// Time that waits spent behind collectives, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    pub ns: i64,
    /// Behind collectives with other ranks in the capture.
    pub met_ns: i64,
    /// `met_ns` until the last rank arrived, by that rank.
    pub late: BTreeMap<Party, i64>,
    pub names: BTreeMap<u32, i64>,
}

impl Collectives {
    /// `names`: ids and texts of NCCL's kernel names, ascending. `communicators`: only known ones.
    pub fn new(
        profile: &Profile,
        devices: &Devices,
        names: &[(u32, &str)],
        communicators: FxHashMap<OpId, u64>,
    ) -> Self {
        let ops = &profile.ops;
        let names_of = names.iter().map(|n| n.0).collect();
        let mut found = Self { names: names_of, communicators, ..Self::default() };
        if names.is_empty() {
            return found;
        }
        type Group<'a> = (&'a str, Option<u64>);
        let mut parties: BTreeMap<Group, BTreeMap<Party, Vec<OpId>>> = BTreeMap::new();
        for op in ops.ids() {
            let Some(at) = ops.kernel(op).and_then(|n| found.names.binary_search(&n).ok()) else { continue };
            let (pid, (start, end)) = (ops.pid(op), (ops.start(op), ops.end(op)));
            found.count += 1;
            let busy = found.busy.entry(pid).or_default();
            match busy.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => busy.push((start, end)),
            }
            if all_for_all(names[at].1) {
                let party = (pid, devices.of_op(ops, op));
                let group = (names[at].1, found.communicator(op));
                parties.entry(group).or_default().entry(party).or_default().push(op);
            }
        }
        let by_party = parties.into_values().map(|by| by.into_values().collect::<Vec<_>>());
        found.last = by_party.flat_map(|parties| meet(profile, &parties)).collect();
        found.last.sort_unstable();
        found
    }

    /// Hash of a collective's communicator, the same on all ranks.
    pub fn communicator(&self, op: OpId) -> Option<u64> {
        self.communicators.get(&op).copied()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn alone(&self) -> u64 {
        self.count - self.last.len() as u64
    }

    /// Each collective that met others, with the last of them to begin (possibly itself).
    pub fn met(&self) -> impl Iterator<Item = (OpId, OpId)> + '_ {
        self.last.iter().copied()
    }

    /// The kernel of the last rank to begin; `None` where the op waited for no other.
    pub fn late(&self, op: OpId) -> Option<OpId> {
        self.last_of(op).filter(|&last| last != op)
    }

    fn last_of(&self, op: OpId) -> Option<OpId> {
        let at = self.last.binary_search_by_key(&op, |met| met.0).ok()?;
        Some(self.last[at].1)
    }

    pub fn holds(&self, profile: &Profile, op: OpId) -> bool {
        profile.ops.kernel(op).is_some_and(|name| self.names.binary_search(&name).is_ok())
    }

    /// In order of start.
    pub fn all<'a>(&'a self, profile: &'a Profile) -> impl Iterator<Item = OpId> + 'a {
        let is = |op: &OpId| self.holds(profile, *op);
        profile.ops.ids().filter(is)
    }

    pub fn add(&self, held: &Held, wait: &Wait, sum: &mut Behind) {
        let Streams { profile, devices, .. } = held.streams;
        let Some(busy) = self.busy.get(&wait.pid) else { return };
        let next = busy.partition_point(|b| b.1 <= wait.start);
        if busy.get(next).is_none_or(|b| b.0 >= wait.end) {
            return;
        }
        for Stretch { op, from, to } in held.path(wait) {
            let Some(name) = profile.ops.kernel(op).filter(|n| self.names.binary_search(n).is_ok()) else {
                continue;
            };
            let add = |sum: &mut i64, ns: i64| *sum = sum.saturating_add(ns);
            add(&mut sum.ns, to - from);
            add(sum.names.entry(name).or_default(), to - from);
            let Some(last) = self.last_of(op) else { continue };
            add(&mut sum.met_ns, to - from);
            let late = profile.ops.start(last).min(to) - from;
            if last != op && late > 0 {
                let party = (profile.ops.pid(last), devices.of_op(&profile.ops, last));
                add(sum.late.entry(party).or_default(), late);
            }
        }
    }
}

pub struct Meeting {
    /// By party: the kernel's index in the party's list.
    pub at: Vec<usize>,
    pub last: usize,
}

/// Matches the kernels of one name and communicator: each party's starts and ends, ascending. `apart`: how
/// far apart, in ns, a collective may end on its parties, beyond its own length.
pub fn meetings(parties: &[Vec<(i64, i64)>], apart: i64) -> Vec<Meeting> {
    if parties.len() < 2 {
        return Vec::new();
    }
    let (mut met, mut at) = (Vec::new(), vec![0; parties.len()]);
    while at.iter().zip(parties).all(|(&at, party)| at < party.len()) {
        let heads = || at.iter().zip(parties).map(|(&at, party)| party[at]).enumerate();
        let last = heads().max_by_key(|&(party, (start, _))| (start, party));
        let first = heads().min_by_key(|&(party, (_, end))| (end, party));
        let Some(((last, (begun, _)), (early, (_, ended)))) = last.zip(first) else { break };
        let together = ended.saturating_sub(begun);
        let behind = heads().map(|(_, (_, end))| end).max().unwrap_or(0).saturating_sub(ended);
        if together > -apart.saturating_sub(END_APART_NS) && behind <= together.max(0).saturating_add(apart) {
            met.push(Meeting { at: at.clone(), last });
            at.iter_mut().for_each(|at| *at += 1);
        } else {
            at[early] += 1;
        }
    }
    let enough = met.len() * 100 >= most_while_all_run(parties) * MOST_MEET;
    if enough { met } else { Vec::new() }
}

/// Most kernels of one party while all run some: captures begin and end at different times.
fn most_while_all_run(parties: &[Vec<(i64, i64)>]) -> usize {
    let begun = parties.iter().filter_map(|party| party.first()).map(|kernel| kernel.0).max();
    let ended = parties.iter().filter_map(|party| party.last()).map(|kernel| kernel.1).min();
    let Some((from, to)) = begun.zip(ended) else { return 0 };
    let during = |party: &Vec<(i64, i64)>| party.iter().filter(|k| k.0 >= from && k.1 <= to).count();
    parties.iter().map(during).max().unwrap_or(0)
}

/// Each kernel that met others, with the last to begin. `parties`: of one name and communicator, by start.
fn meet(profile: &Profile, parties: &[Vec<OpId>]) -> Vec<(OpId, OpId)> {
    if parties.len() > MOST_PARTIES {
        return Vec::new();
    }
    let ops = &profile.ops;
    let span = |&op: &OpId| (ops.start(op), ops.end(op));
    let spans: Vec<Vec<_>> = parties.iter().map(|party| party.iter().map(span).collect()).collect();
    let mut met = Vec::new();
    for Meeting { at, last } in meetings(&spans, END_APART_NS) {
        let op = |party: usize| parties[party][at[party]];
        met.extend((0..parties.len()).map(|party| (op(party), op(last))));
    }
    met
}

impl Behind {
    pub fn late_ns(&self) -> i64 {
        self.late.values().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// Name id of the kernel with most of the time.
    pub fn name(&self) -> Option<u32> {
        self.names.iter().max_by_key(|&(name, ns)| (ns, std::cmp::Reverse(name))).map(|n| *n.0)
    }
}
