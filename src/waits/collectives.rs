//! Collectives: kernels of NCCL, in which processes wait for each other, and which of them came late.
//!
//! ```text
//!  host 0   [all_reduce][read======================================]
//!  rank 0       [all-reduce, waits ~~~~~~~~~~~~~~~~~~~~~~~~~|~~~~~~]
//!  rank 1                                                   [~~~~~~]      launched late
//!  late                 |-----------------------------------|             of the wait: until the last rank arrived
//! ```
//! **Meetings.** Ranks run their collectives in the same order. Of each kernel name and communicator
//! ([`crate::profile::communicators`]), the kernels of all processes that have them (GPUs of one process are parties of
//! their own) are gone through side by side: those at the head meet if all had begun when the first of them ended, as they
//! must where each needs what all have, and ended together. What does not meet so is passed over; where that happens often,
//! or one party runs more of them than meet while all run some, they are of other groups of ranks than thought, and none
//! of them meets. Only kernels in which all wait for all are matched: all-reduce, all-gather, reduce-scatter. A sender may
//! be done before its receiver begins.
//!
//! Linear in the collectives, times the parties.

use super::Wait;
use super::device::{DeviceIx, Devices};
use super::held::{Held, Stretch};
use super::streams::Streams;
use crate::profile::Profile;
use crate::profile::communicators::Member;
use crate::profile::ids::{GlobalPid, OpId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Operations in which all wait for all, as they stand in the names of kernels.
const MEETINGS: [&str; 3] = ["AllReduce", "AllGather", "ReduceScatter"];

/// Whether all wait for all in a kernel of NCCL.
pub fn all_for_all(kernel: &str) -> bool {
    MEETINGS.iter().any(|operation| kernel.contains(operation))
}

/// Parties that are matched: the GPUs of one machine, several times.
const MOST_PARTIES: usize = 64;

/// Share of the kernels that have to meet, in percent: a few at the edges of the capture do not.
const MOST_MEET: usize = 80;

/// How far apart a collective ends on its ranks, beside its own length: clocks, and the last piece on its way.
pub const END_APART_NS: i64 = 20_000;

/// A process on a GPU.
pub type Party = (GlobalPid, DeviceIx);

/// The collectives of an export.
#[derive(Default)]
pub struct Collectives {
    /// How many there are.
    pub count: u64,
    /// Names (ids of strings) that are collectives.
    names: Vec<u32>,
    /// When those of a process ran: disjoint, ascending.
    busy: FxHashMap<GlobalPid, Vec<(i64, i64)>>,
    /// Each that met others, with the one of them that began last, by op.
    last: Vec<(OpId, OpId)>,
    /// The hash of the communicator that each was called for, where it is recorded.
    communicators: FxHashMap<OpId, u64>,
    /// Which rank a process is in the largest communicator, where NCCL says so.
    pub members: BTreeMap<GlobalPid, Member>,
}

/// Time of waits that passed behind collectives, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// All of it.
    pub ns: i64,
    /// Behind those whose other ranks are in the capture.
    pub met_ns: i64,
    /// Of that, until the last rank arrived: by rank.
    pub late: BTreeMap<Party, i64>,
    /// By name of the kernel.
    pub names: BTreeMap<u32, i64>,
}

impl Collectives {
    /// Of an export; `names`: the ids of all names of NCCL's kernels with their texts, ascending; `communicators` of
    /// those that meet, where known.
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

    /// The communicator that a collective was called for: its hash, the same on all ranks.
    pub fn communicator(&self, op: OpId) -> Option<u64> {
        self.communicators.get(&op).copied()
    }

    /// Whether the export holds none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many have no other rank in the capture that is known.
    pub fn alone(&self) -> u64 {
        self.count - self.last.len() as u64
    }

    /// Each that met others, with the one of them that began last: itself, where no other kept it.
    pub fn met(&self) -> impl Iterator<Item = (OpId, OpId)> + '_ {
        self.last.iter().copied()
    }

    /// The kernel of the last rank to begin, of a collective that waited for another one.
    pub fn late(&self, op: OpId) -> Option<OpId> {
        self.last_of(op).filter(|&last| last != op)
    }

    /// The kernel that began last of those that a collective met, which may be it.
    fn last_of(&self, op: OpId) -> Option<OpId> {
        let at = self.last.binary_search_by_key(&op, |met| met.0).ok()?;
        Some(self.last[at].1)
    }

    /// Whether an op is one of them.
    pub fn holds(&self, profile: &Profile, op: OpId) -> bool {
        profile.ops.kernel(op).is_some_and(|name| self.names.binary_search(&name).is_ok())
    }

    /// All of them, in the order of their start.
    pub fn all<'a>(&'a self, profile: &'a Profile) -> impl Iterator<Item = OpId> + 'a {
        let is = |op: &OpId| self.holds(profile, *op);
        profile.ops.ids().filter(is)
    }

    /// Adds what of a wait passed behind collectives.
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

/// A collective that all parties took part in.
pub struct Meeting {
    /// Which kernel of each party, by the order of its list.
    pub at: Vec<usize>,
    /// The party that began last.
    pub last: usize,
}

/// Matches the kernels of one name and communicator: start and end of those of each party, ascending. `apart`: how far apart, in ns, a
/// collective ends on its parties, beside its own length.
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

/// The most kernels that a party has while all have some: captures begin and end at other times.
fn most_while_all_run(parties: &[Vec<(i64, i64)>]) -> usize {
    let begun = parties.iter().filter_map(|party| party.first()).map(|kernel| kernel.0).max();
    let ended = parties.iter().filter_map(|party| party.last()).map(|kernel| kernel.1).min();
    let Some((from, to)) = begun.zip(ended) else { return 0 };
    let during = |party: &Vec<(i64, i64)>| party.iter().filter(|k| k.0 >= from && k.1 <= to).count();
    parties.iter().map(during).max().unwrap_or(0)
}

/// Matches the kernels of one name and communicator, by party in the order of their start: each that met, with the last to begin.
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
    /// Time until the last rank arrived, over all ranks.
    pub fn late_ns(&self) -> i64 {
        self.late.values().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// The kernel that most of it passed behind, by the id of its name.
    pub fn name(&self) -> Option<u32> {
        self.names.iter().max_by_key(|&(name, ns)| (ns, std::cmp::Reverse(name))).map(|n| *n.0)
    }
}
