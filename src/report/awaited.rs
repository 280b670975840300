//! The work that a site's waits waited for, summed: streams, ops, collectives and late ranks.

use crate::analysis::Priced;
use crate::model::{
    Awaited, AwaitedOperation, AwaitedStream, BehindCollectives, IdleGpu, LateRank, Narrow, Process,
};
use crate::profile::ids::{GlobalPid, OpId, StreamIx};
use crate::sites::native;
use crate::sites::neighbours::op_name;
use crate::text;
use crate::verdict::site::Site;
use crate::vocabulary::{Direction, Evidence, ProfileIx, RuleId};
use crate::waits::Wait;
use crate::waits::api::Blocking;
use crate::waits::collectives::{Behind, Party};
use crate::waits::device::DeviceIx;
use crate::waits::held::Held;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

const LISTED: usize = 8;

pub struct Look<'a> {
    found: &'a Priced,
    held: Held<'a>,
    number: ProfileIx,
}

/// An op without its time: stream, kind, kernel name.
type Name = (StreamIx, u8, Option<u32>);

fn add(sum: &mut i64, ns: i64) {
    *sum = sum.saturating_add(ns);
}

/// The longest, at most [`LISTED`], and the number left out.
fn longest<K: Copy + Ord, T>(all: impl IntoIterator<Item = (K, T)>, ns: fn(&T) -> i64) -> (Vec<(K, T)>, u64) {
    let mut all: Vec<(K, T)> = all.into_iter().collect();
    all.sort_by_key(|(key, one)| (std::cmp::Reverse(ns(one)), *key));
    let left_out = all.len().saturating_sub(LISTED);
    all.truncate(LISTED);
    (all, left_out as u64)
}

impl<'a> Look<'a> {
    pub fn new(found: &'a Priced, number: ProfileIx) -> Self {
        Self { found, held: Held::new(&found.profile, &found.devices), number }
    }

    fn waits(&self, site: &'a Site) -> impl Iterator<Item = &'a Wait> + use<'a> {
        let waits = &self.found.waits;
        site.bundle.waits.iter().map(move |&w| &waits[w])
    }

    /// Cost: a search per wait and stream, and a step per op that ran while the waits blocked.
    pub fn whole(&self, site: &'a Site, collectives: Option<BehindCollectives>) -> Awaited {
        let (streams, streams_left_out) = self.streams(site);
        let (operations, operations_left_out, idle_ns) = self.operations(site);
        Awaited {
            streams,
            streams_left_out,
            operations,
            operations_left_out,
            idle_ns,
            narrow: self.narrow(site),
            idle_gpu: self.idle_gpu(site),
            collectives,
        }
    }

    fn streams(&self, site: &'a Site) -> (Vec<AwaitedStream>, u64) {
        let ops = &self.found.profile.ops;
        let empty = |stream| {
            let (device, stream) = (self.device(stream), ops.streams[stream].stream.number());
            AwaitedStream { device, stream, waits: 0, pending_ns: 0, only_ns: 0, read: 0 }
        };
        let mut streams: FxHashMap<StreamIx, AwaitedStream> = FxHashMap::default();
        for wait in self.waits(site) {
            let pending = self.held.pending(wait);
            let (began, mut others) = (self.held.began(wait), pending.iter().skip(1));
            let before = others.next().map_or(began, |&(_, op)| ops.end(op).max(began));
            for (nth, &(stream, op)) in pending.iter().enumerate() {
                let sum = streams.entry(stream).or_insert_with(|| empty(stream));
                let end = ops.end(op).min(wait.end);
                sum.waits += 1;
                add(&mut sum.pending_ns, (end - began).max(0));
                add(&mut sum.only_ns, if nth == 0 { (end - before).max(0) } else { 0 });
            }
            let to_host = wait.copy.is_some_and(|copy| copy.direction == Direction::DeviceToHost);
            let copy = wait.awaited.filter(|_| to_host).or(wait.completes);
            let read = copy.map(|op| ops.stream(op)).filter(|own| pending.iter().any(|p| p.0 == *own));
            if let Some(sum) = read.and_then(|stream| streams.get_mut(&stream)) {
                sum.read += 1;
            }
        }
        let (listed, left_out) = longest(streams, |sum| sum.pending_ns);
        (listed.into_iter().map(|(_, sum)| sum).collect(), left_out)
    }

    fn device(&self, stream: StreamIx) -> u32 {
        self.found.devices.list[self.found.devices.of_stream[stream]].id
    }

    /// Listed ops, the number left out, and the blocked time in which none ran, in ns.
    fn operations(&self, site: &'a Site) -> (Vec<AwaitedOperation>, u64, i64) {
        let ops = &self.found.profile.ops;
        // An example, the count and the time of each.
        let mut all: FxHashMap<Name, (OpId, u64, i64)> = FxHashMap::default();
        let mut idle = 0;
        for wait in self.waits(site) {
            let mut ran = 0;
            for stretch in self.held.path(wait) {
                let op = stretch.op;
                let name = (ops.stream(op), ops.kind(op) as u8, ops.kernel(op));
                let sum = all.entry(name).or_insert((op, 0, 0));
                sum.1 += 1;
                add(&mut sum.2, stretch.to - stretch.from);
                add(&mut ran, stretch.to - stretch.from);
            }
            add(&mut idle, wait.blocked.saturating_sub(ran).max(0));
        }
        let (listed, left_out) = longest(all, |sum| sum.2);
        let one = |((stream, ..), (op, count, ns)): (Name, (OpId, u64, i64))| AwaitedOperation {
            name: op_name(&self.found.profile, op).to_string(),
            device: self.device(stream),
            stream: ops.streams[stream].stream.number(),
            count,
            blocked_ns: ns,
        };
        (listed.into_iter().map(one).collect(), left_out, idle)
    }

    fn narrow(&self, site: &'a Site) -> Option<Narrow> {
        let ops = &self.found.profile.ops;
        let mut narrow = Narrow { waits: 0, copies: 0, streams: Vec::new(), shorter_ns: 0 };
        let mut streams = BTreeSet::new();
        for wait in self.waits(site) {
            let Some(less) = self.held.narrower(wait) else { continue };
            narrow.waits += 1;
            narrow.copies += u64::from(less.copy);
            streams.insert(ops.streams[ops.stream(less.op)].stream.number());
            add(&mut narrow.shorter_ns, self.held.shorter(wait, less));
        }
        narrow.streams = streams.into_iter().take(LISTED).collect();
        (narrow.shorter_ns > 0).then_some(narrow)
    }

    fn idle_gpu(&self, site: &'a Site) -> Option<IdleGpu> {
        let devices = &self.found.devices;
        let mut idle = (0, BTreeSet::new(), BTreeSet::new());
        for wait in self.waits(site).filter(|wait| wait.blocking == Blocking::Context) {
            let busy = devices.working_beside(wait);
            if !busy.is_empty() {
                idle.0 += 1;
                idle.1.extend(wait.device);
                idle.2.extend(busy);
            }
        }
        let ids =
            |set: BTreeSet<DeviceIx>| set.into_iter().map(|d| devices.list[d].id).take(LISTED).collect();
        (idle.0 > 0).then(|| IdleGpu { waits: idle.0, gpus: ids(idle.1), busy: ids(idle.2) })
    }

    /// `None` if no wait was behind a collective.
    pub fn behind(&self, site: &'a Site) -> Option<BehindCollectives> {
        let (found, mut sum) = (self.found, Behind::default());
        for wait in self.waits(site) {
            found.collectives.add(&self.held, wait, &mut sum);
        }
        let name = found.profile.strings.get(i64::from(sum.name()?))?;
        let rank = |(party, ns): (Party, i64)| LateRank {
            process: process(found, self.number, party.0),
            device: found.devices.list[party.1].id,
            late_ns: ns,
        };
        let late_ns = sum.late_ns();
        let (late, _) = longest(sum.late, |&ns| ns);
        Some(BehindCollectives {
            name: native::short(name),
            blocked_ns: sum.ns,
            met_ns: sum.met_ns,
            late_ns,
            late: late.into_iter().map(rank).collect(),
        })
    }
}

pub fn process(found: &Priced, number: ProfileIx, pid: GlobalPid) -> Process {
    let name = found.profile.target.process_names.get(&pid).map(|name| name.to_string());
    Process { pid: pid.pid(), name, profile: number }
}

/// Name of the latest rank, if late ranks explain half of the blocked time or more.
pub fn latest(behind: &BehindCollectives, blocked: i64) -> Option<String> {
    behind.late.first().filter(|_| behind.late_ns >= blocked / 2).map(LateRank::name)
}

/// End of a sentence of [`said`] until the other ranks are known: one export cannot tell more.
pub const UNTOLD: &str =
    "the capture does not tell whether another rank came late: none is known to have taken part";

/// `None` if less than a tenth of the blocked time passed behind collectives.
pub fn said(behind: &BehindCollectives, blocked: i64) -> Option<Evidence> {
    let [passed, all, late] = [behind.blocked_ns, blocked, behind.late_ns].map(text::duration);
    let rest = match behind.late.first() {
        Some(latest) => {
            let others = if behind.late.len() > 1 { " most of all" } else { "" };
            format!(
                "{late} of that before {}{others} had arrived: whatever is done about this wait, that time is no saving, and what makes the other late is worth a look",
                latest.name()
            )
        }
        None if behind.met_ns == 0 => UNTOLD.to_owned(),
        None => "no other rank of the capture came late".to_owned(),
    };
    let text = format!("{passed} of its {all} passed behind {}; {rest}", behind.name);
    (behind.blocked_ns >= blocked / 10).then(|| Evidence::new(RuleId::Collective, text))
}
