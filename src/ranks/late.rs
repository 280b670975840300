//! Ranks that come late to collectives, the cost for other ranks, and the wait that made a rank late.
//!
//! ```text
//!  rank 0   [work][all-reduce, stands ~~~~~~~~~~~~~~~~~~~~~~~|~~~]
//!  rank 1   host   [wait w===============] loss.append  [launch]
//!           stream [work~~~~~~~~~~~~~~~~~]                   [~~~]        last to begin
//!  late            |-----------------------------------------|
//!  spent           |--- waiting ---------|--- host -----|-gpu|            the wait ended within, so it is what made it late
//! ```
//! Kernels of one name and communicator are matched between ranks as within an export
//! ([`crate::waits::collectives`]). The rank that begins last is late, by the time since the rank before it,
//! if this exceeds the clocks' error. The delay costs each other rank the time since that rank's own begin. A
//! wait that ended before the others had begun did not make the rank late. A launch before that did not
//! either: then its GPU had more work.
//! Linear in the collectives, times the ranks.

use super::clocks::{Aligned, Group, Kernel};
use super::numbers::{Party, PartyIx};
use crate::iterations::{WARM_UP, start_up};
use crate::model::ranks::{Late, LateWait, Spent};
use crate::model::{Code, Warning};
use crate::text;
use crate::vocabulary::Per;
use crate::waits::collectives::{END_APART_NS, Meeting, meetings};
use std::collections::BTreeMap;
use typed_index_collections::TiSlice;

const LISTED: usize = 20;

/// Entries below this fraction (1/n) of the first one's cost are noise.
const LEAST_PART: i64 = 50;

#[derive(Default)]
pub struct LateRanks {
    /// Most costly for other ranks first.
    pub late: Vec<Late>,
    /// Collectives on all ranks of their group.
    pub met: u64,
    pub alone: u64,
    /// Whether no communicator is known.
    unnamed: bool,
}

#[derive(Default)]
struct Sum {
    /// In order of time: the delay in ns, and its part in a wait.
    late: Vec<(i64, i64)>,
    cost: i64,
    spent: Spent,
    waits: BTreeMap<u32, u64>,
}

pub fn find(aligned: &Aligned, parties: &TiSlice<PartyIx, Party>, per: Per) -> LateRanks {
    let residual = aligned.clocks.and_then(|clocks| clocks.residual_ns).unwrap_or(0);
    let apart = END_APART_NS.saturating_add(residual.saturating_mul(2));
    let unnamed = aligned.kernels.keys().all(|group| group.communicator.is_none());
    let mut found = LateRanks { unnamed, ..LateRanks::default() };
    for (group, by_rank) in &aligned.kernels {
        // Ranks with kernels are a communicator's members; without one, all ranks are one group.
        let among: Vec<PartyIx> = by_rank
            .keys()
            .filter(|&rank| group.communicator.is_none() || !by_rank[rank].is_empty())
            .collect();
        let by_rank: Vec<&Vec<Kernel>> = among.iter().map(|&rank| &by_rank[rank]).collect();
        let spans: Vec<Vec<(i64, i64)>> =
            by_rank.iter().map(|kernels| kernels.iter().map(|kernel| kernel.span).collect()).collect();
        let met = meetings(&spans, apart);
        let most = by_rank.iter().map(|kernels| kernels.len()).max().unwrap_or(0);
        found.met += met.len() as u64;
        found.alone += (most - met.len().min(most)) as u64;
        let mut sums: BTreeMap<usize, Sum> = BTreeMap::new();
        for Meeting { at, last } in &met {
            let begun = |rank: usize| by_rank[rank][at[rank]].span.0;
            let others = (0..by_rank.len()).filter(|rank| rank != last);
            let before = others.clone().map(begun).max().unwrap_or(begun(*last));
            let late = begun(*last).saturating_sub(before);
            if late > apart {
                let cost =
                    others.map(|rank| begun(*last).saturating_sub(begun(rank))).fold(0, i64::saturating_add);
                sums.entry(*last).or_default().add(&by_rank[*last][at[*last]], late, cost);
            }
        }
        let late = |(rank, sum): (usize, Sum)| {
            let party = &parties[among[rank]];
            let iterations = (per == Per::Iteration).then_some(party.profile.iterations);
            let (rank, among) = (party.listed.rank, among.len() as u64);
            Late { rank, among, ..sum.at(group, met.len(), &aligned.keys, iterations) }
        };
        found.late.extend(sums.into_iter().map(late));
    }
    found.late.sort_by_key(|late| (std::cmp::Reverse(late.cost_ns), late.rank));
    let least = found.late.first().map_or(0, |late| late.cost_ns / LEAST_PART);
    found.late.retain(|late| late.cost_ns >= least);
    found.late.truncate(LISTED);
    found
}

impl Sum {
    fn add(&mut self, kernel: &Kernel, late: i64, cost: i64) {
        let (to, from) = (kernel.span.0, kernel.span.0.saturating_sub(late));
        self.cost = self.cost.saturating_add(cost);
        let launched = kernel.launched.map_or(from, |launched| launched.clamp(from, to));
        let wait = kernel.wait.filter(|&(_, _, end)| end > from && end <= launched);
        let (began, ended) = wait.map_or((from, from), |(_, start, end)| (start.max(from), end));
        let (waiting, spent) = (ended - began, &mut self.spent);
        self.late.push((late, waiting));
        spent.gpu_ns = spent.gpu_ns.saturating_add(to - launched);
        spent.waiting_ns = spent.waiting_ns.saturating_add(waiting);
        spent.host_ns = spent.host_ns.saturating_add(launched - from - waiting);
        wait.into_iter().for_each(|(key, ..)| *self.waits.entry(key).or_default() += 1);
    }

    /// Mean of `part` per iteration, without start-up.
    fn each(&self, part: fn(&(i64, i64)) -> i64, iterations: u64) -> i64 {
        let times: Vec<i64> = self.late.iter().map(|late| late.0).collect();
        let settled = &self.late[start_up(&times, times.len() / WARM_UP)..];
        let sum = settled.iter().map(part).fold(0, i64::saturating_add);
        let mean = sum / settled.len().max(1) as i64;
        mean.saturating_mul(self.late.len() as i64) / iterations.max(1) as i64
    }

    fn at(mut self, group: &Group, of: usize, keys: &[String], iterations: Option<u64>) -> Late {
        let [per_iteration_ns, waiting_per_iteration_ns] =
            [|late: &(i64, i64)| late.0, |late: &(i64, i64)| late.1]
                .map(|part| Some(self.each(part, iterations?)));
        self.late.sort_unstable();
        let most = self.waits.into_iter().max_by_key(|&(key, times)| (times, std::cmp::Reverse(key)));
        let wait = most.and_then(|(key, times)| {
            let key = keys.get(key as usize)?.clone();
            Some(LateWait { place: key.clone(), key, id: None, times })
        });
        Late {
            rank: 0,
            collective: group.name.clone(),
            communicator: group.communicator.clone(),
            among: 0,
            times: self.late.len() as u64,
            of: of as u64,
            late_p50_ns: self.late[self.late.len() / 2].0,
            late_max_ns: self.late.last().copied().unwrap_or_default().0,
            late_ns: self.late.iter().fold(0, |sum, late| sum.saturating_add(late.0)),
            cost_ns: self.cost,
            per_iteration_ns,
            waiting_per_iteration_ns,
            spent: self.spent,
            wait,
        }
    }
}

impl LateRanks {
    pub fn doubts(&self, parties: &[Party]) -> Option<Warning> {
        let by = if self.unnamed { "name" } else { "communicator" };
        let message = format!(
            "the {} of {} do not fit together by {by} and order: who comes late there is not told",
            text::counted(self.alone, "collective"),
            text::counted(parties.len() as u64, "rank")
        );
        // Missing without `-t nvtx` in the capture, or payloads in the export.
        let action = "capture with NVTX and export with --include-json=true: then NCCL names the communicator of each, since 2.25";
        let action = if self.unnamed { action } else { "" };
        (self.met == 0 && self.alone > 0).then(|| Warning::new(Code::CollectivesNotMatched, message, action))
    }
}
