//! Where each GPU's time goes: the ops of a window in parts that do not overlap.
//!
//! ```text
//!  s7         [gemm--------]             [gemm----]
//!  s14   [H2D------------------]
//!  counts [H2D][gemm--------][H2D]  idle  [gemm----]        a moment counts for the first kind that runs in it:
//! ```                                                        kernels, collectives, copies by kind, memsets
//! A kind's own time is the union of all kinds up to it, less the union up to the kind before. Cost: a pass
//! over the ops, sorted by start, with a step for each kind from the op's own on.

use super::blocked::IdleBlocked;
use crate::model::gpu_time::{BlockedTime, CopyTime, GpuTime};
use crate::profile::Profile;
use crate::profile::ids::OpId;
use crate::profile::ops::OpKind;
use crate::vocabulary::{Direction, HostMemory};
use crate::waits::collectives::Collectives;
use crate::waits::device::{DeviceIx, Devices};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use typed_index_collections::TiVec;

/// An idle gap after a wait: GPU, start and end in ns.
pub type Gap = (DeviceIx, i64, i64);

pub fn of(
    profile: &Profile,
    devices: &Devices,
    collectives: &Collectives,
    gaps: impl Iterator<Item = Gap>,
    blocked: Option<&IdleBlocked>,
    window: &TiVec<DeviceIx, (i64, i64)>,
) -> TiVec<DeviceIx, GpuTime> {
    let copies = kinds_of_copies(profile);
    // Kernels, collectives, copies of each kind, memsets.
    let mut unions: TiVec<DeviceIx, Vec<Union>> =
        window.iter().map(|_| vec![Union::EMPTY; copies.len() + 3]).collect();
    let ops = &profile.ops;
    for op in ops.ids() {
        let device = devices.of_op(ops, op);
        let (from, to) = window[device];
        let (start, end) = (ops.start(op).max(from), ops.end(op).min(to));
        if start < end {
            let kind = kind(profile, collectives, &copies, op);
            unions[device][kind..].iter_mut().for_each(|union| union.add(start, end));
        }
    }
    let mut after: TiVec<DeviceIx, Vec<(i64, i64)>> = window.iter().map(|_| Vec::new()).collect();
    for (device, start, end) in gaps {
        let (from, to) = window[device];
        if start.max(from) < end.min(to) {
            after[device].push((start.max(from), end.min(to)));
        }
    }
    after.iter_mut().for_each(|gaps| gaps.sort_unstable());
    let time = |(device, unions): (DeviceIx, &Vec<Union>)| {
        let own = |kind: usize| unions[kind].sum - if kind == 0 { 0 } else { unions[kind - 1].sum };
        let times = copies.iter().zip(2..).map(|(&(direction, host_memory), kind)| CopyTime {
            direction,
            host_memory,
            ns: own(kind),
        });
        let (from, to) = window[device];
        let idle = to - from - unions.last().map_or(0, |all| all.sum);
        let idle_after_waits_ns = after[device].iter().map(|gap| gap.1 - gap.0).sum::<i64>().min(idle);
        let blocked_in =
            blocked.map(|blocked| by_call(profile, blocked, device, &after[device], window[device]));
        let sum = blocked_in.iter().flatten().map(|time| time.ns).sum::<i64>();
        GpuTime {
            kernels_ns: own(0),
            collectives_ns: own(1),
            copies: times.filter(|copy| copy.ns > 0).collect(),
            memsets_ns: own(unions.len() - 1),
            idle_after_waits_ns,
            idle_otherwise_ns: idle - idle_after_waits_ns,
            idle_blocked_ns: blocked_in.is_some().then_some(sum),
            blocked_in: blocked_in.unwrap_or_default(),
        }
    };
    unions.iter_enumerated().map(time).collect()
}

/// Time of a window in which no thread could launch, by the blocking function; without gaps after waits.
fn by_call(
    profile: &Profile,
    blocked: &IdleBlocked,
    device: DeviceIx,
    after: &[(i64, i64)],
    (from, to): (i64, i64),
) -> Vec<BlockedTime> {
    let mut sums: BTreeMap<Option<i64>, i64> = BTreeMap::new();
    for idle in &blocked.of_device[device] {
        let (start, end) = (idle.start.max(from), idle.end.min(to).max(from));
        let first = after.partition_point(|gap| gap.1 <= start);
        let inside = after[first..].iter().take_while(|gap| gap.0 < end);
        let left = inside.map(|gap| gap.1.min(end) - gap.0.max(start)).sum::<i64>();
        *sums.entry(idle.call()).or_default() += (end - start).max(0) - left;
    }
    let name = |id: i64| profile.strings.get(id).map(|name| name.to_string());
    let time = |(call, ns): (Option<i64>, i64)| BlockedTime {
        call: call.and_then(name),
        at: blocked.at.as_ref().filter(|at| at.0 == call).map(|at| at.1.clone()),
        ns,
    };
    let mut times: Vec<BlockedTime> = sums.into_iter().filter(|time| time.1 > 0).map(time).collect();
    times.sort_by_key(|time| Reverse(time.ns));
    times
}

/// Length of the union of stretches that are added by ascending start.
#[derive(Clone, Copy)]
struct Union {
    until: i64,
    sum: i64,
}

impl Union {
    const EMPTY: Self = Self { until: i64::MIN, sum: 0 };

    fn add(&mut self, start: i64, end: i64) {
        self.sum += (end - start.max(self.until)).max(0);
        self.until = self.until.max(end);
    }
}

fn kinds_of_copies(profile: &Profile) -> Vec<(Direction, HostMemory)> {
    let kinds: BTreeSet<_> = profile.ops.copies().map(|copy| (copy.direction, copy.host_memory)).collect();
    kinds.into_iter().collect()
}

fn kind(profile: &Profile, collectives: &Collectives, copies: &[(Direction, HostMemory)], op: OpId) -> usize {
    let ops = &profile.ops;
    match ops.kind(op) {
        OpKind::Memset => copies.len() + 2,
        OpKind::Memcpy => {
            let kind = ops.copy(op).map(|copy| (copy.direction, copy.host_memory));
            2 + kind.and_then(|kind| copies.binary_search(&kind).ok()).unwrap_or(0)
        }
        OpKind::Kernel | OpKind::GraphLaunch => usize::from(collectives.holds(profile, op)),
    }
}
