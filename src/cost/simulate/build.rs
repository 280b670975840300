//! From a capture to a program: which of launch, stream and other streams each op waited for, what each call cost the
//! host by itself, what each wait covers.

use super::NONE;
use super::follow::{self, Ends};
use super::issue::Issue;
use super::learn::{Assumed, Learned, OpSamples, kind_index};
use super::legacy;
use super::model::{Act, Op, Program, Role, Step};
use crate::profile::Profile;
use crate::profile::ops::OpKind;
use crate::vocabulary::{Direction, HostMemory};
use crate::waits::api::{Blocking, classify};
use crate::waits::device::Devices;
use crate::waits::{Covers, Found, Wait};
use rustc_hash::FxHashMap;

/// A launch longer than its usual length by this factor, and by this time, was held up.
const HELD_UP: i64 = 20;
const HELD_UP_NS: i64 = 50_000;
/// Ops of one stream in flight from which a launch that was held up counts as held up by the full queue.
const FULL_QUEUE: u32 = 256;
/// An op that starts later than its launch and its stream explain by more than this has another cause.
pub const UNEXPLAINED_NS: i64 = 20_000;

/// Builds a program from a capture; `waits`: all of them, sorted by call.
pub fn build(profile: &Profile, devices: &Devices, waits: &[Wait], assumed: &Assumed) -> Program {
    let (origin, recorded) = profile.bounds().unwrap_or((0, 0));
    if !holds(profile, recorded - origin) {
        return outline(profile, waits, assumed);
    }
    let issue = Issue::new(profile);
    let builder = Builder::new(profile, devices, &issue, origin);
    let learned = Learned::new(profile, waits, builder.sample(), assumed);
    builder.place(waits, learned, recorded - origin)
}

/// What the capture teaches, without steps: all that bounds need.
pub fn outline(profile: &Profile, waits: &[Wait], assumed: &Assumed) -> Program {
    let (origin, recorded) = profile.bounds().unwrap_or((0, 0));
    Program {
        recorded: recorded.saturating_sub(origin),
        ..Program::empty(Learned::new(profile, waits, OpSamples::default(), assumed))
    }
}

/// Whether all times together stay far from overflowing; only damaged captures do not.
fn holds(profile: &Profile, span: i64) -> bool {
    let length = |start: &[i64], end: &[i64]| {
        start.iter().zip(end).fold(0, |sum: i64, (s, e)| sum.saturating_add(e.saturating_sub(*s)))
    };
    let calls = length(&profile.calls.start, &profile.calls.end);
    let ops = length(&profile.ops.start, &profile.ops.end);
    span.saturating_add(calls).saturating_add(ops) < i64::MAX / 64
}

/// Places steps and ops.
struct Builder<'a> {
    profile: &'a Profile,
    devices: &'a Devices,
    issue: &'a Issue,
    origin: i64,
    /// By rank: call whose step issued it.
    call_of: Vec<u32>,
    ends: Ends,
    /// Ops that follow another by a recorded event.
    recorded: FxHashMap<u32, u32>,
    /// By name of calls: whether they copy asynchronously.
    enqueues: Vec<bool>,
}

impl<'a> Builder<'a> {
    fn new(profile: &'a Profile, devices: &'a Devices, issue: &'a Issue, origin: i64) -> Self {
        let mut call_of = vec![NONE; issue.order.len()];
        for &(call, first, ops) in &issue.entries {
            call_of[first as usize..(first + ops) as usize].fill(call);
        }
        let (ends, recorded) = (Ends::new(profile, issue), follow::recorded(profile, devices, issue));
        let names = profile.calls.names.iter();
        let enqueues = names.map(|n| classify(&n.base) == Some(Blocking::CopyAsync)).collect();
        Self { profile, devices, issue, origin, call_of, ends, recorded, enqueues }
    }

    fn sample(&self) -> OpSamples {
        let (ops, calls) = (&self.profile.ops, &self.profile.calls);
        let mut samples = OpSamples::default();
        let mut previous: Vec<Option<i64>> = vec![None; ops.streams.len()];
        for (rank, (&op, &call)) in (0u32..).zip(self.issue.order.iter().zip(&self.call_of)) {
            let (op, stream) = (op as usize, ops.stream[op as usize] as usize);
            if call != NONE
                && !self.stays_in_call(op, call)
                && !self.held_by_another(rank, ops.start[op] - calls.end[call as usize])
            {
                samples.see(ops.kind[op], ops.start[op], calls.end[call as usize], previous[stream]);
            }
            previous[stream] = Some(ops.end[op]);
        }
        samples
    }

    /// Whether an op that started this long after its launch waited for another stream: its latency says nothing.
    fn held_by_another(&self, rank: u32, latency: i64) -> bool {
        latency > UNEXPLAINED_NS
            && (self.recorded.contains_key(&rank)
                || self.ends.followed(self.profile, self.issue, rank).is_some())
    }

    fn place(self, waits: &[Wait], learned: Learned, recorded: i64) -> Program {
        let calls = &self.profile.calls;
        let (group, groups) = self.groups();
        let (part, barriers) = legacy::parts(self.profile);
        let mut program = Program {
            steps: Vec::with_capacity(self.issue.entries.len()),
            ops: Vec::with_capacity(self.issue.order.len()),
            started: Vec::with_capacity(self.issue.entries.len()),
            group,
            groups,
            part,
            barriers,
            threads: calls.threads.len() + 1,
            origin: self.origin,
            recorded,
            ..Program::empty(learned)
        };
        let mut learned = program.learned.clone();
        learned.depth = self.depth(&learned);
        program.learned = learned;
        self.place_ops(&mut program);
        self.place_steps(waits, &mut program);
        follow::hand_over(self.profile, self.issue, &mut program);
        program
    }

    /// Streams of one process on one device share a number.
    fn groups(&self) -> (Vec<u32>, usize) {
        let mut known: FxHashMap<(i64, u32), u32> = FxHashMap::default();
        let streams = self.profile.ops.streams.iter().zip(&self.devices.of_stream);
        let group = streams
            .map(|(key, &device)| {
                let next = known.len() as u32;
                *known.entry((key.pid, device)).or_insert(next)
            })
            .collect();
        (group, known.len())
    }

    /// How many ops a stream's queue takes: as many as were in flight when launches were held up, and no fewer than were
    /// when another launch returned at once.
    ///
    /// ```text
    ///  host      [l0][l1] … [l1023][l1024, held up========]··[l1025=====]
    ///  stream 7    [k0~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~][k1~~~~~~~~~]      returns with k1 to k1024 in flight
    /// ```
    fn depth(&self, learned: &Learned) -> u32 {
        let ops = &self.profile.ops;
        let (mut held, mut free) = (Vec::new(), 0);
        // By stream: ends of its ops in issue order, and how many had ended when the last launch returned.
        let mut queues: Vec<(Vec<i64>, usize)> = vec![(Vec::new(), 0); ops.streams.len()];
        for (&op, &call) in self.issue.order.iter().zip(&self.call_of) {
            let (ends, ended) = &mut queues[ops.stream[op as usize] as usize];
            ends.push(ops.end[op as usize]);
            if call == NONE {
                continue;
            }
            let returned = self.profile.calls.end[call as usize];
            *ended += ends[*ended..].iter().take_while(|&&end| end <= returned).count();
            let in_flight = (ends.len() - *ended) as u32;
            if !self.held_up(call, learned) {
                free = free.max(in_flight);
            } else if held.len() < 1_000 && in_flight >= FULL_QUEUE {
                held.push(i64::from(in_flight));
            }
        }
        super::learn::quantile(&mut held, 0.5).map_or(learned.depth, |n| n as u32).max(free)
    }

    fn held_up(&self, call: u32, learned: &Learned) -> bool {
        let calls = &self.profile.calls;
        let length = calls.end[call as usize] - calls.start[call as usize];
        let usual = learned.usual[calls.name[call as usize] as usize];
        length > HELD_UP_NS && length > HELD_UP * usual
    }

    /// Ops of the stream issued before `rank` that had not ended when `call` returned.
    fn in_flight(&self, rank: u32, call: u32) -> u32 {
        let ops = &self.profile.ops;
        let op = self.issue.order[rank as usize];
        let list = &self.devices.stream_ops[ops.stream[op as usize] as usize];
        let returned = self.profile.calls.end[call as usize];
        let own = list.partition_point(|&o| ops.start[o as usize] < ops.start[op as usize]);
        let ended = list[..own].partition_point(|&o| ops.end[o as usize] <= returned);
        (own - ended) as u32
    }

    fn place_ops(&self, program: &mut Program) {
        let ops = &self.profile.ops;
        let mut last = vec![NONE; ops.streams.len()];
        let mut barriers = vec![legacy::Barrier::START; program.barriers];
        let depth = program.learned.depth as usize;
        let mut by_stream: Vec<Vec<u32>> =
            self.devices.stream_ops.iter().map(|l| Vec::with_capacity(l.len())).collect();
        for rank in 0..self.issue.order.len() as u32 {
            let i = self.issue.order[rank as usize] as usize;
            let (stream, part) = (ops.stream[i], program.part[ops.stream[i] as usize]);
            let (mut op, mut late) = self.op(rank, last[stream as usize], &program.learned);
            let usual = program.learned.after_previous[kind_index(ops.kind[i])];
            late &= !legacy::bind(&mut op, ops.start[i], usual, part, &barriers, late);
            legacy::note(&mut barriers, part, ops.end[i]);
            if let Some(&followed) = self.recorded.get(&rank) {
                self.follow(&mut op, rank, followed);
            } else if late {
                match self.ends.followed(self.profile, self.issue, rank) {
                    Some(followed) => self.follow(&mut op, rank, followed),
                    None => program.unexplained += 1,
                }
            }
            let queue = &mut by_stream[stream as usize];
            op.behind = queue.len().checked_sub(depth).map_or(NONE, |i| queue[i]);
            queue.push(rank);
            last[stream as usize] = rank;
            program.ops.push(op);
            program.kind.push(kind_index(ops.kind[i]) as u8);
        }
    }

    fn follow(&self, op: &mut Op, rank: u32, followed: u32) {
        let ops = &self.profile.ops;
        let start = ops.start[self.issue.order[rank as usize] as usize];
        op.follows = followed;
        op.after_followed =
            (start - ops.end[self.issue.order[followed as usize] as usize]).min(UNEXPLAINED_NS);
    }

    /// When an op may start: of launch and stream the later one counts as the cause and keeps its recorded distance,
    /// the other gets the learned one. True if neither explains the start.
    fn op(&self, rank: u32, previous: u32, learned: &Learned) -> (Op, bool) {
        let (ops, calls) = (&self.profile.ops, &self.profile.calls);
        let op = self.issue.order[rank as usize] as usize;
        let (start, kind) = (ops.start[op], kind_index(ops.kind[op]));
        let mut out = Op {
            duration: ops.end[op] - start,
            after_call: 0,
            after_previous: 0,
            after_followed: 0,
            stream: ops.stream[op],
            follows: NONE,
            behind: NONE,
            after_barrier: legacy::UNBOUND,
        };
        let distance =
            (previous != NONE).then(|| start - ops.end[self.issue.order[previous as usize] as usize]);
        let call = self.call_of[rank as usize];
        if call == NONE {
            out.after_call = start - self.origin;
            out.after_previous = distance.unwrap_or(0).min(learned.after_previous[kind]);
            return (out, false);
        }
        let (mut from, mut usual) = (calls.end[call as usize], learned.after_call[kind]);
        let staged = self.stays_in_call(op, call);
        if staged {
            usual += self.staging(call, learned);
            from = calls.start[call as usize];
        }
        let latency = start - from;
        let queued = distance.is_some_and(|d| start - d >= from + usual);
        // What comes before a staged copy is the host's own copying.
        let late = !staged && latency.min(distance.unwrap_or(i64::MAX)) > usual.max(0) + UNEXPLAINED_NS;
        (out.after_call, out.after_previous) = match distance {
            _ if late => (usual.min(latency), learned.after_previous[kind].min(distance.unwrap_or(0))),
            Some(distance) if queued => (usual.min(latency), distance),
            Some(distance) => (latency, learned.after_previous[kind].min(distance)),
            None => (latency, 0),
        };
        (out, late)
    }

    /// How long a copy call takes before its op starts on an idle stream.
    fn staging(&self, call: u32, learned: &Learned) -> i64 {
        learned
            .async_copy
            .min(self.profile.calls.end[call as usize] - self.profile.calls.start[call as usize])
    }

    /// Whether the host was still in the copy call while the copy ran: a blocking copy, or one staged piece by piece. An
    /// asynchronous copy of pinned memory is only enqueued: that it was done before its call returned is chance.
    fn stays_in_call(&self, op: usize, call: u32) -> bool {
        let (ops, calls) = (&self.profile.ops, &self.profile.calls);
        let end = calls.end[call as usize];
        if ops.kind[op] != OpKind::Memcpy || end <= ops.start[op] {
            return false;
        }
        let enqueued = || self.enqueues[calls.name[call as usize] as usize];
        ops.copy(op as u32).is_some_and(|copy| {
            let blocks = copy.host_memory != HostMemory::Pinned || (end >= ops.end[op] && !enqueued());
            blocks && copy.direction != Direction::DeviceToDevice
        })
    }

    fn place_steps(&self, waits: &[Wait], program: &mut Program) {
        let calls = &self.profile.calls;
        let mut ended = vec![self.origin; program.threads];
        let mut until = Until::new(program);
        let mut waits = waits.iter().peekable();
        program.step_of_call = vec![NONE; calls.len()];
        for &(call, first_op, count) in &self.issue.entries {
            let mut step = Step {
                gap: 0,
                length: 0,
                back: 0,
                first_op,
                ops: count,
                target: NONE,
                site: NONE,
                overhead: 0,
                around: 0,
                traced: 0,
                thread: (program.threads - 1) as u16,
                after: (program.threads - 1) as u16,
                act: Act::Given,
                role: Role::None,
                flush: false,
                last: false,
                staged: false,
            };
            for &op in &self.issue.order[first_op as usize..(first_op + count) as usize] {
                let stream = self.profile.ops.stream[op as usize] as usize;
                until.see(stream, program.group[stream] as usize, self.profile.ops.end[op as usize]);
            }
            if call != NONE {
                let (start, end) = (calls.start[call as usize], calls.end[call as usize]);
                let thread = calls.thread[call as usize] as usize;
                (step.thread, step.after) = (thread as u16, thread as u16);
                step.gap = (start - ended[thread]).max(0);
                step.length = (end - start.max(ended[thread])).max(0);
                step.act = Act::Launch;
                ended[thread] = end.max(ended[thread]);
                while waits.next_if(|w| w.call < call).is_some() {}
                self.act(&mut step, call, waits.next_if(|w| w.call == call), &until, program);
                program.step_of_call[call as usize] = program.steps.len() as u32;
            }
            let start = match call {
                NONE => self.profile.ops.start[self.issue.order[first_op as usize] as usize],
                call => calls.start[call as usize],
            };
            program.started.push(start - self.origin);
            program.steps.push(step);
        }
    }

    /// What the host does in a call, and how long without the GPU.
    fn act(&self, step: &mut Step, call: u32, wait: Option<&Wait>, until: &Until, program: &mut Program) {
        let (ops, learned) = (&self.profile.ops, &program.learned);
        let own = (step.ops == 1).then(|| self.issue.order[step.first_op as usize]);
        if let Some(op) = own
            && self.stays_in_call(op as usize, call)
        {
            step.act = Act::Copy;
            step.back = self.profile.calls.end[call as usize] - ops.end[op as usize];
            step.length = self.staging(call, learned);
        } else if let Some(wait) = wait {
            self.wait(step, wait, until, program);
        } else if step.ops > 0
            && self.held_up(call, learned)
            && self.in_flight(step.first_op, call) >= FULL_QUEUE
        {
            step.length = learned.usual[self.profile.calls.name[call as usize] as usize];
        }
        if let Some(copy) = own.and_then(|op| ops.copy(op))
            && step.target == NONE
        {
            step.staged =
                copy.host_memory != HostMemory::Pinned && copy.direction != Direction::DeviceToDevice;
            step.target = program.pinned.len() as u32;
            let own = own.unwrap_or(0) as usize;
            let pinned = program.learned.pinned(copy.bytes, copy.direction);
            program.pinned.push(pinned.min(ops.end[own] - ops.start[own]));
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
        (step.act, step.target) = self.target(wait, awaited, until, program);
        // An op that is issued only later (another thread's, clocks apart) cannot be waited for.
        if step.act == Act::Op && step.target >= step.first_op {
            (step.act, step.target) = (Act::Launch, NONE);
        }
        let target = step.target as usize;
        let ended = match step.act {
            Act::Stream => until.stream[target],
            Act::Device => until.group[target],
            Act::Op => self.profile.ops.end[self.issue.order[target] as usize],
            _ => return,
        };
        step.back = wait.end.saturating_sub(ended);
        if awaited.is_some() {
            step.length = step.length.min(program.learned.floor(wait.blocking));
        } else {
            step.back = step.back.min(program.learned.back(wait.blocking));
        }
    }

    /// What a synchronisation waits for, in the simulation's terms.
    fn target(&self, wait: &Wait, awaited: Option<u32>, until: &Until, program: &Program) -> (Act, u32) {
        let ops = &self.profile.ops;
        let group = match (awaited, wait.covers) {
            (Some(op), _) => Some(program.group[ops.stream[op as usize] as usize]),
            (None, Covers::Device(device)) => {
                let mine = |(s, key): (usize, &crate::profile::ops::StreamKey)| {
                    key.pid == wait.pid && self.devices.of_stream[s] == device
                };
                let stream = ops.streams.iter().enumerate().position(mine);
                stream.map(|s| program.group[s])
            }
            _ => None,
        };
        let rank = |op: u32| (Act::Op, self.issue.rank[op as usize]);
        // Work that outlasted the wait was not awaited.
        let outlasted = |ended: i64| ended > wait.end.saturating_add(UNEXPLAINED_NS);
        match (wait.blocking, wait.covers, awaited) {
            (Blocking::Stream, Covers::Stream(s), Some(op)) if outlasted(until.stream[s as usize]) => {
                rank(op)
            }
            (Blocking::Stream, Covers::Stream(stream), _) => (Act::Stream, stream),
            (Blocking::Context | Blocking::Free, _, _) => match (group, awaited) {
                (Some(g), Some(op)) if outlasted(until.group[g as usize]) => rank(op),
                (Some(group), _) => (Act::Device, group),
                (None, _) => (Act::Launch, NONE),
            },
            (Blocking::Event, _, None) => wait.reaches.map_or((Act::Launch, NONE), rank),
            (_, _, Some(op)) => rank(op),
            _ => (Act::Launch, NONE),
        }
    }
}

/// When the ops issued so far ended, as recorded: by stream, and by process and device.
struct Until {
    stream: Vec<i64>,
    group: Vec<i64>,
}

impl Until {
    fn new(program: &Program) -> Self {
        Self { stream: vec![i64::MIN; program.group.len()], group: vec![i64::MIN; program.groups] }
    }

    fn see(&mut self, stream: usize, group: usize, end: i64) {
        self.stream[stream] = self.stream[stream].max(end);
        self.group[group] = self.group[group].max(end);
    }
}
