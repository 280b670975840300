//! From a capture to a program: what each op waited for (launch, stream, other streams), what each call cost
//! the host, what each wait covers.

use super::follow::{self, Ends, HandOver};
use super::issue::{Entry, Issue};
use super::learn::{Assumed, Learned, OpSamples, kind_index};
use super::legacy;
use super::model::{Late, Program, Reach};
use super::packed::Packed;
use super::sample::{self, Loop};
use super::step::{GroupIx, Op, Rank, Step, StepKind, UNEXPLAINED_NS};
use crate::profile::Profile;
use crate::profile::ids::{CallId, GlobalPid, NameIx, OpId, StreamIx};
use crate::profile::ops::OpKind;
use crate::profile::parallel::both;
use crate::profile::seek::seek;
use crate::vocabulary::{Direction, HostMemory};
use crate::waits::api::{Blocking, classify};
use crate::waits::collectives::Collectives;
use crate::waits::device::{DeviceIx, Devices};
use crate::waits::{Covers, Found, Wait, Waits};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Range;
use typed_index_collections::TiVec;

/// A launch was held up if it took longer than both this many times its usual length and `HELD_UP_NS`.
const HELD_UP: i64 = 20;
const HELD_UP_NS: i64 = 50_000;
/// Ops of one stream in flight from which the full queue is what held a launch up.
const FULL_QUEUE: u32 = 256;

/// A capture before it is known what is simulated.
pub struct Draft {
    issue: Issue,
    learned: Learned,
    /// Start of the capture, and its length.
    origin: i64,
    recorded: i64,
    ends: Ends,
    follows: FxHashMap<Rank, Rank>,
    handed: Vec<HandOver>,
    late: Vec<Late>,
    /// Whether calls of a name copy asynchronously.
    enqueues: TiVec<NameIx, bool>,
    /// Streams of one process on one device share a number.
    groups: FxHashMap<(GlobalPid, DeviceIx), GroupIx>,
}

impl Draft {
    pub fn new(profile: &Profile, devices: &Devices, waits: &Waits, assumed: &Assumed) -> Self {
        let origin = profile.bounds().map_or(0, |(origin, _)| origin);
        // The simulation ends with the last wait and operation: unloading and exit handlers come after it.
        let ends = profile.calls.times.iter().chain(profile.ops.times.iter()).map(|(_, end)| end);
        let recorded = ends.max().unwrap_or(origin).saturating_sub(origin);
        let issue = if holds(profile, recorded) { Issue::new(profile) } else { Issue::default() };
        let (ends, follows) = (Ends::new(profile, &issue), follow::recorded(profile, devices, &issue));
        let names = profile.calls.names.iter();
        let enqueues = names.map(|n| classify(&n.base) == Some(Blocking::CopyAsync)).collect();
        let mut groups = FxHashMap::default();
        for (key, &device) in profile.ops.streams.iter().zip(&devices.of_stream) {
            let next = GroupIx::from(groups.len());
            groups.entry((key.pid, device)).or_insert(next);
        }
        let (handed, late, learned) = (Vec::new(), Vec::new(), Learned::default());
        let mut draft =
            Self { issue, learned, origin, recorded, ends, follows, handed, late, enqueues, groups };
        let builder = Builder { profile, devices, draft: &draft };
        let mut learned = Learned::new(profile, waits, builder.sample(), assumed);
        let (depth, handed) = both(
            || builder.depth(&learned),
            || follow::hand_over(profile, &draft.issue, &follow::side_by_side(profile, &draft.issue)),
        );
        learned.depth = depth;
        (draft.learned, draft.handed) = (learned, handed);
        draft
    }

    /// Lets collectives wait for the ranks that they met (`Late`).
    pub fn meet(&mut self, profile: &Profile, collectives: &Collectives) {
        let (ops, order) = (&profile.ops, &self.issue.order);
        let late = |(op, last): (OpId, OpId)| {
            let tail = ops.end(op) - ops.start(last);
            (ops.start(op) < ops.start(last)).then(|| Late {
                rank: order.rank(op),
                last: order.rank(last),
                tail,
            })
        };
        self.late = collectives.met().filter_map(late).collect();
        self.late.sort_unstable_by_key(|late| late.rank);
    }

    /// The program: the simulated part of a loop, and all that lies outside it.
    pub fn place(
        self,
        profile: &Profile,
        devices: &Devices,
        waits: &Waits,
        repeats: Option<&Loop>,
    ) -> Program {
        let streams = &profile.ops.streams;
        let group =
            streams.iter().zip(&devices.of_stream).map(|(key, &device)| self.groups[&(key.pid, device)]);
        let (part, barriers) = legacy::parts(profile);
        let (calls, steps) = (&profile.calls, &self.issue.steps);
        let laps = repeats.and_then(|repeats| repeats.laps(calls, steps));
        // Collectives need all of their ranks' starts: nothing is left out.
        let sampled = repeats.zip(laps).filter(|_| self.late.is_empty());
        let sample = sampled.map(|(repeats, laps)| repeats.sample(calls, steps, laps)).unwrap_or_default();
        let kept: Vec<_> = sample.stretches(steps.len()).into_iter().map(|(steps, _)| steps).collect();
        let rank = |step: usize| self.issue.first_op(step).index();
        let kept_ops: Vec<_> = kept.iter().map(|steps| rank(steps.start)..rank(steps.end)).collect();
        let mut program = Program {
            steps: Packed::with_room(&kept),
            ops: Packed::with_room(&kept_ops),
            reach: streams.iter().map(|_| Reach::default()).collect(),
            group: group.collect(),
            groups: self.groups.len(),
            part,
            barriers,
            threads: calls.threads.len() + 1,
            origin: self.origin,
            recorded: self.recorded,
            learned: self.learned.clone(),
            iterations: repeats.is_some_and(|repeats| !repeats.iterations.spans.is_empty()),
            laps,
            sample,
            ..Program::default()
        };
        let builder = Builder { profile, devices, draft: &self };
        builder.place_ops(&kept_ops, &mut program);
        let spans = repeats.map_or(&[][..], |repeats| &repeats.iterations.spans);
        builder.place_steps(&kept, waits, spans, &mut program);
        for late in &self.late {
            // The end of a pass asks when the last ranks joined.
            let stream = profile.ops.stream(self.issue.order.op(late.last));
            program.looks_back(stream, Rank::from(profile.ops.len()), late.last);
        }
        program.steps.shrink();
        program.ops.shrink();
        Program { issue: self.issue, handed: self.handed, late: self.late, ..program }
    }
}

/// Whether the sum of all times stays far from overflow: false only for damaged captures.
fn holds(profile: &Profile, span: i64) -> bool {
    let (calls, ops) = (profile.calls.times.total_at_most(), profile.ops.times.total_at_most());
    span.saturating_add(calls).saturating_add(ops) < i64::MAX / 64
}

struct Builder<'a> {
    profile: &'a Profile,
    devices: &'a Devices,
    draft: &'a Draft,
}

impl Builder<'_> {
    fn sample(&self) -> OpSamples {
        let (ops, calls) = (&self.profile.ops, &self.profile.calls);
        let mut samples = OpSamples::default();
        let mut previous: TiVec<StreamIx, Option<i64>> = ops.streams.iter().map(|_| None).collect();
        for (rank, op, call) in self.draft.issue.ops() {
            let stream = ops.stream(op);
            if let Some(call) = call
                && !self.stays_in_call(op, call)
                && !self.held_by_another(rank, ops.start(op) - calls.end(call))
            {
                samples.see(ops.kind(op), ops.start(op), calls.end(call), previous[stream]);
            }
            previous[stream] = Some(ops.end(op));
        }
        samples
    }

    /// Whether an op that started late waited for another stream: its latency says nothing.
    fn held_by_another(&self, rank: Rank, latency: i64) -> bool {
        latency > UNEXPLAINED_NS
            && (self.draft.follows.contains_key(&rank)
                || self.draft.ends.followed(self.profile, &self.draft.issue, rank).is_some())
    }

    /// How many ops a stream's queue takes: the median in flight at launches that were held up, and no fewer
    /// than were in flight when another launch returned at once.
    ///
    /// ```text
    ///  host      [l0][l1] … [l1023][l1024, held up========]··[l1025=====]
    ///  stream 7    [k0~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~][k1~~~~~~~~~]      returns with k1 to k1024 in flight
    /// ```
    fn depth(&self, learned: &Learned) -> u32 {
        let ops = &self.profile.ops;
        let (mut held, mut free) = (Vec::new(), 0);
        // Ends of a stream's ops in issue order, from the first that had not ended when the last launch returned.
        let mut queues: TiVec<StreamIx, VecDeque<i64>> =
            ops.streams.iter().map(|_| VecDeque::new()).collect();
        for (_, op, call) in self.draft.issue.ops() {
            let ends = &mut queues[ops.stream(op)];
            ends.push_back(ops.end(op));
            let Some(call) = call else { continue };
            let returned = self.profile.calls.end(call);
            while ends.pop_front_if(|end| *end <= returned).is_some() {}
            let in_flight = ends.len() as u32;
            if !self.held_up(call, learned) {
                free = free.max(in_flight);
            } else if held.len() < 1_000 && in_flight >= FULL_QUEUE {
                held.push(i64::from(in_flight));
            }
        }
        super::learn::quantile(&mut held, 0.5).map_or(learned.depth, |n| n as u32).max(free)
    }

    fn held_up(&self, call: CallId, learned: &Learned) -> bool {
        let calls = &self.profile.calls;
        let (length, usual) = (calls.length(call), learned.usual[calls.name(call)]);
        length > HELD_UP_NS && length > HELD_UP * usual
    }

    /// Ops of the stream issued before `rank` that had not ended when `call` returned.
    fn in_flight(&self, rank: Rank, call: CallId) -> u32 {
        let ops = &self.profile.ops;
        let op = self.draft.issue.order.op(rank);
        let list = &self.devices.stream_ops[ops.stream(op)];
        let returned = self.profile.calls.end(call);
        let own = list.partition_point(|&o| ops.start(o) < ops.start(op));
        let ended = list[..own].partition_point(|&o| ops.end(o) <= returned);
        (own - ended) as u32
    }

    fn place_ops(&self, kept: &[Range<usize>], program: &mut Program) {
        let ops = &self.profile.ops;
        let mut barriers = TiVec::from(vec![legacy::Barrier::START; program.barriers]);
        let mut last: TiVec<StreamIx, Option<Rank>> = ops.streams.iter().map(|_| None).collect();
        let mut is_kept = sample::inside(kept);
        for (rank, id, call) in self.draft.issue.ops() {
            let stream = ops.stream(id);
            let (part, previous) = (program.part[stream], last[stream].replace(rank));
            if is_kept(rank.index()) {
                let (mut op, late) = self.op(id, call, previous, &program.learned);
                let usual = program.learned.after_previous[usize::from(op.kind)];
                let late = late & !legacy::bind(&mut op, ops.start(id), usual, part, &barriers, late);
                let followed = || self.draft.ends.followed(self.profile, &self.draft.issue, rank);
                let recorded = self.draft.follows.get(&rank).copied();
                if let Some(followed) = recorded.or_else(|| late.then(followed).flatten()) {
                    self.follow(&mut op, rank, followed);
                    let stream = ops.stream(self.draft.issue.order.op(followed));
                    program.looks_back(stream, rank, followed);
                }
                op.place = program.reach[stream].ops;
                program.ops.push(op);
            }
            legacy::note(&mut barriers, part, ops.end(id));
            program.reach[stream].ops += 1;
        }
    }

    fn follow(&self, op: &mut Op, rank: Rank, followed: Rank) {
        let (ops, order) = (&self.profile.ops, &self.draft.issue.order);
        op.follows = Some(followed);
        op.after_followed = (ops.start(order.op(rank)) - ops.end(order.op(followed))).min(UNEXPLAINED_NS);
    }

    /// The later of launch and stream counts as the cause of the op's start and keeps its recorded distance;
    /// the other gets the learned one. True if neither explains the start.
    fn op(&self, op: OpId, call: Option<CallId>, previous: Option<Rank>, learned: &Learned) -> (Op, bool) {
        let (ops, calls) = (&self.profile.ops, &self.profile.calls);
        let (start, kind) = (ops.start(op), kind_index(ops.kind(op)));
        let mut out = Op {
            duration: ops.length(op),
            after_call: 0,
            after_previous: 0,
            after_followed: 0,
            stream: ops.stream(op),
            kind: kind as u8,
            follows: None,
            place: 0,
            after_barrier: legacy::UNBOUND,
        };
        let distance = previous.map(|previous| start - ops.end(self.draft.issue.order.op(previous)));
        let Some(call) = call else {
            out.after_call = start - self.draft.origin;
            out.after_previous = distance.unwrap_or(0).min(learned.after_previous[kind]);
            return (out, false);
        };
        let (mut from, mut usual) = (calls.end(call), learned.after_call[kind]);
        let staged = self.stays_in_call(op, call);
        if staged {
            usual += self.staging(call, learned);
            from = calls.start(call);
        }
        let latency = start - from;
        let queued = distance.is_some_and(|d| start - d >= from + usual);
        // Time before a staged copy is the host's own copying.
        let late = !staged && latency.min(distance.unwrap_or(i64::MAX)) > usual.max(0) + UNEXPLAINED_NS;
        (out.after_call, out.after_previous) = match distance {
            _ if late => (usual.min(latency), learned.after_previous[kind].min(distance.unwrap_or(0))),
            Some(distance) if queued => (usual.min(latency), distance),
            Some(distance) => (latency, learned.after_previous[kind].min(distance)),
            None => (latency, 0),
        };
        (out, late)
    }

    fn staging(&self, call: CallId, learned: &Learned) -> i64 {
        learned.async_copy.min(self.profile.calls.length(call))
    }

    /// Whether the host stayed in the copy call while the copy ran: a blocking copy, or one staged piece by
    /// piece. An asynchronous pinned copy is only enqueued: it ends before its call returns only by chance.
    fn stays_in_call(&self, op: OpId, call: CallId) -> bool {
        let (ops, calls) = (&self.profile.ops, &self.profile.calls);
        let end = calls.end(call);
        if ops.kind(op) != OpKind::Memcpy || end <= ops.start(op) {
            return false;
        }
        let enqueued = || self.draft.enqueues[calls.name(call)];
        ops.copy(op).is_some_and(|copy| {
            let blocks = copy.host_memory != HostMemory::Pinned || (end >= ops.end(op) && !enqueued());
            blocks && copy.direction != Direction::DeviceToDevice
        })
    }

    fn place_steps(&self, kept: &[Range<usize>], waits: &Waits, spans: &[(i64, i64)], program: &mut Program) {
        let calls = &self.profile.calls;
        // By thread: end of its last call, and iterations that had ended when the call began.
        let (mut ended, mut passed) = (program.by_thread(self.draft.origin), program.by_thread(0));
        let mut until = Until::new(program);
        let (mut waits, mut handed) = (waits.iter().peekable(), self.draft.handed.iter().peekable());
        let mut is_kept = sample::inside(kept);
        let mut next_op = Rank::from(0);
        for (at, Entry { call, ops }) in self.draft.issue.entries().enumerate() {
            let (first_op, kept) = (next_op, is_kept(at));
            next_op = next_op + ops as usize;
            let mut step = Step::given(first_op, ops, program.unknown_thread());
            for op in step.ranks().map(|rank| self.draft.issue.order.op(rank)) {
                let stream = self.profile.ops.stream(op);
                until.see(stream, program.group[stream], self.profile.ops.end(op));
            }
            if let Some(call) = call {
                let (start, end, thread) = (calls.start(call), calls.end(call), calls.thread(call).into());
                (step.thread, step.after) = (thread, thread);
                step.gap = (start - ended[thread]).max(0);
                step.length = (end - start.max(ended[thread])).max(0);
                step.kind = StepKind::Launch(None);
                ended[thread] = end.max(ended[thread]);
                let before = passed[thread];
                seek(spans.len(), &mut passed[thread], |n| spans[n].1 <= start);
                step.flush = passed[thread] > before;
                if let Some(handed) = handed.next_if(|handed| handed.step.index() == at) {
                    (step.after, step.gap) = (handed.from.into(), handed.gap);
                }
                while waits.next_if(|w| w.call < call).is_some() {}
                let wait = waits.next_if(|w| w.call == call);
                if kept {
                    self.fill(&mut step, call, wait, &until, program);
                }
            }
            if kept {
                if let StepKind::Op(awaited) = step.kind {
                    let stream = self.profile.ops.stream(self.draft.issue.order.op(awaited));
                    program.looks_back(stream, step.next_op(), awaited);
                }
                program.steps.push(step);
            }
        }
    }

    fn fill(&self, step: &mut Step, call: CallId, wait: Option<&Wait>, until: &Until, program: &mut Program) {
        let (ops, learned) = (&self.profile.ops, &program.learned);
        let own = (step.ops == 1).then(|| self.draft.issue.order.op(step.first_op));
        if let Some(op) = own
            && self.stays_in_call(op, call)
        {
            step.kind = StepKind::Copy(None);
            step.back = self.profile.calls.end(call) - ops.end(op);
            step.length = self.staging(call, learned);
        } else if let Some(wait) = wait {
            self.wait(step, wait, until, program);
        } else if step.ops > 0
            && self.held_up(call, learned)
            && self.in_flight(step.first_op, call) >= FULL_QUEUE
        {
            step.length = learned.usual[self.profile.calls.name(call)];
        }
        if let StepKind::Launch(own_copy) | StepKind::Copy(own_copy) = &mut step.kind
            && let Some((op, copy)) = own.and_then(|op| Some((op, ops.copy(op)?)))
        {
            step.staged =
                copy.host_memory != HostMemory::Pinned && copy.direction != Direction::DeviceToDevice;
            let pinned = program.learned.pinned(copy.bytes, copy.direction);
            *own_copy = Some(program.pinned.push_and_get_key(pinned.min(ops.length(op))));
        }
    }

    /// A synchronisation: what it covers, and its own cost.
    ///
    /// ```text
    ///  GPU    [k---]                    a wait that found nothing to wait for returned this soon after k: sooner than
    ///  host       [wait]                usual, and no later than it did for what it waits for
    /// ```
    fn wait(&self, step: &mut Step, wait: &Wait, until: &Until, program: &Program) {
        let awaited = wait.awaited.filter(|_| wait.found == Found::Pending);
        step.kind = match self.target(wait, awaited, until, program) {
            // An op that is issued only later (another thread's, clocks apart) cannot be waited for.
            StepKind::Op(rank) if rank >= step.first_op => StepKind::Launch(None),
            kind => kind,
        };
        let ended = match step.kind {
            StepKind::Stream(stream) => until.stream[stream],
            StepKind::Device(group) => until.group[group],
            StepKind::Op(rank) => self.profile.ops.end(self.draft.issue.order.op(rank)),
            _ => return,
        };
        step.back = wait.end.saturating_sub(ended);
        if awaited.is_some() {
            step.length = step.length.min(program.learned.floor(wait.blocking));
        } else {
            step.back = step.back.min(program.learned.back(wait.blocking));
        }
    }

    fn target(&self, wait: &Wait, awaited: Option<OpId>, until: &Until, program: &Program) -> StepKind {
        let ops = &self.profile.ops;
        let group = match (awaited, wait.covers) {
            (Some(op), _) => Some(program.group[ops.stream(op)]),
            (None, Covers::Device(device)) => self.draft.groups.get(&(wait.pid, device)).copied(),
            _ => None,
        };
        let rank = |op: OpId| StepKind::Op(self.draft.issue.order.rank(op));
        // Work that outlasted the wait was not awaited.
        let outlasted = |ended: i64| ended > wait.end.saturating_add(UNEXPLAINED_NS);
        match (wait.blocking, wait.covers, awaited) {
            (Blocking::Stream, Covers::Stream(s), Some(op)) if outlasted(until.stream[s]) => rank(op),
            (Blocking::Stream, Covers::Stream(stream), _) => StepKind::Stream(stream),
            (Blocking::Context | Blocking::Free, _, _) => match (group, awaited) {
                (Some(g), Some(op)) if outlasted(until.group[g]) => rank(op),
                (Some(group), _) => StepKind::Device(group),
                (None, _) => StepKind::Launch(None),
            },
            (Blocking::Event, _, None) => wait.reaches.map_or(StepKind::Launch(None), rank),
            (_, _, Some(op)) => rank(op),
            _ => StepKind::Launch(None),
        }
    }
}

struct Until {
    stream: TiVec<StreamIx, i64>,
    group: TiVec<GroupIx, i64>,
}

impl Until {
    fn new(program: &Program) -> Self {
        Self {
            stream: program.group.iter().map(|_| i64::MIN).collect(),
            group: TiVec::from(vec![i64::MIN; program.groups]),
        }
    }

    fn see(&mut self, stream: StreamIx, group: GroupIx, end: i64) {
        self.stream[stream] = self.stream[stream].max(end);
        self.group[group] = self.group[group].max(end);
    }
}
