//! One pass over a program.

use super::learn::kind_index;
use super::legacy::{self, Barrier};
use super::model::Program;
use super::packed::Launch;
use super::step::{ContextIx, GroupIx, HostThread, Op, Rank, Role, Step, StepIx, StepKind, SubjectIx};
use crate::profile::database::Work;
use crate::profile::ids::StreamIx;
use crate::profile::ops::OpKind;
use crate::vocabulary::Change;
use crate::waits::api::Blocking;
use typed_index_collections::TiVec;

/// No more of a host segment or a launch is taken for the profiler's: the rest is the program's own.
const MOST_OF_GAP: f64 = 0.65;

/// What of a host segment the profiler takes at most.
pub fn most_of(gap: i64) -> i64 {
    (gap.max(0) as f64 * MOST_OF_GAP) as i64
}

/// What a run came to, in ns since the program's origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Last end of all threads and ops.
    pub end: i64,
    /// Busy time by process and device.
    pub busy: Vec<i64>,
    /// Host time inside the waits of each site.
    pub waited: Vec<i64>,
    /// From the first iteration to the last: from when all was done that came before the one, to the same of the other.
    pub laps: Option<i64>,
    /// Busy time in between, of the process and device that is busiest.
    pub busy_in_laps: i64,
}

/// Columns that a run needs; kept from run to run.
#[derive(Default)]
pub struct Scratch {
    /// When its last step ended.
    ended: TiVec<HostThread, i64>,
    /// What the profiler took of the host after its last step, which is gone with that step.
    spared: TiVec<HostThread, i64>,
    /// When the last of its delayed waits would return.
    delayed: TiVec<HostThread, i64>,
    /// The same, of a site's last wait.
    asked: TiVec<SubjectIx, i64>,
    /// Before which none of its ops starts, because of waits that the GPU took over.
    fence: TiVec<HostThread, i64>,
    /// End of its last op.
    stream: TiVec<StreamIx, i64>,
    /// End of all its ops; when it is busy until, and for how long it was.
    device: TiVec<GroupIx, i64>,
    busy: TiVec<GroupIx, (i64, i64)>,
    barriers: TiVec<ContextIx, Barrier>,
    finish: TiVec<Rank, i64>,
}

impl Scratch {
    fn reset(&mut self, program: &Program) {
        fn fill<I, T: Copy>(column: &mut TiVec<I, T>, length: usize, value: T) {
            column.raw.clear();
            column.raw.resize(length, value);
        }
        fill(&mut self.ended, program.threads, 0);
        fill(&mut self.spared, program.threads, 0);
        fill(&mut self.delayed, program.threads, i64::MIN);
        fill(&mut self.asked, program.sites, i64::MIN);
        fill(&mut self.fence, program.threads, i64::MIN);
        fill(&mut self.stream, program.group.len(), i64::MIN / 2);
        fill(&mut self.device, program.groups, i64::MIN / 2);
        fill(&mut self.busy, program.groups, (0, 0));
        fill(&mut self.barriers, program.barriers, Barrier::START);
        fill(&mut self.finish, program.ops.len(), 0);
    }
}

/// What is changed about a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// By site; sites past the end are kept.
    pub fixes: Vec<Change>,
    /// Percent of the host time that is estimated to be the profiler's ([`crate::cost::overhead`]) that is left out.
    pub left_out: i64,
    /// Percent of the host time around a removed call that goes with it.
    pub around: i64,
    /// Usual latencies instead of the recorded distances: ops start when what they depend on lets them, waits return
    /// when what they wait for has ended. Shows whether the dependencies are the right ones.
    pub usual: bool,
}

impl Variant {
    fn of(&self, step: &Step) -> Change {
        step.site.and_then(|site| self.fixes.get(site.index())).copied().unwrap_or_default()
    }
}

/// Passes for processes that wait for each other: from the third on, what changes is who of two that come almost
/// together comes first.
pub(in crate::cost) const PASSES: usize = 4;

/// Runs the program once. Linear in steps and ops.
///
/// Where processes wait for each other in collectives (`Late` of the model), a kernel ends only after one that may be
/// issued later in the order of steps: each pass takes its start from the pass before. The first keeps recorded lengths.
pub fn run(program: &Program, variant: &Variant, scratch: &mut Scratch) -> Outcome {
    let mut outcome = pass(program, variant, scratch, None);
    let (mut joined, mut passes) = (Vec::new(), 1);
    for _ in 1..PASSES {
        let start = |rank: Rank| scratch.finish[rank] - program.ops.get(rank).duration;
        let now: Vec<i64> = program.late.iter().map(|late| start(late.last)).collect();
        if now == joined {
            break;
        }
        joined = now;
        outcome = pass(program, variant, scratch, Some(&joined));
        passes += 1;
    }
    let steps = (program.steps.len() + program.ops.len()) as u64 * passes;
    program.progress.iter().for_each(|progress| progress.costs(Work::Steps, steps));
    outcome
}

/// `joined`: when the last rank joined in each of [`Program::late`].
fn pass(program: &Program, variant: &Variant, scratch: &mut Scratch, joined: Option<&[i64]>) -> Outcome {
    scratch.reset(program);
    let mut pass = Pass {
        program,
        s: scratch,
        waited: TiVec::from(vec![0; program.sites]),
        variant,
        ready: 0,
        fence: i64::MIN,
        joined: joined.unwrap_or_default(),
        met: 0,
    };
    let (mut end, mut lap) = (0, None);
    let (mut laps, mut busy, mut busy_in_laps) = (None, Vec::new(), 0);
    for at in program.steps.keys() {
        let is_lap = program.laps.is_some_and(|l| l.first == at || l.last == at);
        // Most steps.
        if let Some(launch) = program.steps.short(at).filter(|_| !is_lap).and_then(|row| row.launch()) {
            end = end.max(pass.launched(&launch));
            continue;
        }
        let mut step = program.steps.get(at);
        if let Some(known) = program.laps.filter(|l| l.first == at || l.last == at) {
            let done = pass.done(step.thread);
            let worked = || pass.s.busy.iter().map(|b| b.1);
            if known.first == at {
                busy = worked().collect();
            } else {
                busy_in_laps = worked().zip(&busy).map(|(now, before)| now - before).max().unwrap_or(0);
            }
            (lap, laps) =
                if known.first == at { (Some(done), None) } else { (None, lap.map(|from| done - from)) };
        }
        let (gap, length) = pass.host(step.after, (step.gap, step.length), step.overhead);
        if matches!(step.kind, StepKind::Launch(_)) {
            step.length = length;
        }
        let step = &step;
        let (thread, before) = (step.thread, pass.s.ended[step.after]);
        pass.ready = pass.s.ended[thread].max(before);
        if step.flush {
            pass.ready = pass.flush(step.thread, pass.ready);
        }
        let mut now = pass.ready.max(before + gap);
        pass.s.spared[thread] = 0;
        pass.fence = pass.s.fence[thread];
        now = match variant.of(step) {
            Change::Keep => pass.keep(step, now),
            Change::Narrow => pass.narrow(at, step, now),
            fix => pass.fixed(step, fix, now),
        };
        pass.s.ended[thread] = now;
        end = end.max(now);
    }
    let waited = pass.waited.raw;
    let end = scratch.device.iter().copied().fold(end, i64::max);
    Outcome { end, busy: scratch.busy.iter().map(|b| b.1).collect(), waited, laps, busy_in_laps }
}

struct Pass<'a> {
    program: &'a Program,
    s: &'a mut Scratch,
    waited: TiVec<SubjectIx, i64>,
    variant: &'a Variant,
    /// When the host segment before the step began: nothing of the step comes sooner.
    ready: i64,
    /// [`Scratch::fence`] of the step's thread.
    fence: i64,
    /// When the last rank joined in the collectives that waited for it; empty in the first pass.
    joined: &'a [i64],
    /// How many of those collectives have been placed.
    met: usize,
}

impl Pass<'_> {
    /// A launch, as [`Self::keep`] has it. Returns when its call ends.
    fn launched(&mut self, step: &Launch) -> i64 {
        let before = self.s.ended[step.thread];
        let (gap, length) = self.host(step.thread, (step.gap, step.length), step.overhead);
        let now = before + gap;
        self.s.spared[step.thread] = 0;
        (self.ready, self.fence) = (before, self.s.fence[step.thread]);
        let op = if self.variant.usual { self.usual(step.op) } else { self.program.ops.get(step.op) };
        let taken = op.behind.map_or(i64::MIN, |behind| self.s.finish[behind]);
        let end = (now + length).max(taken);
        self.place(step.op, &op, op.duration, end + op.after_call, end - length);
        self.s.ended[step.thread] = end;
        end
    }

    /// Host time before a launch and in it, without what the profiler took of both.
    fn host(&self, after: HostThread, (gap, launch): (i64, i64), overhead: u32) -> (i64, i64) {
        let spared = self.s.spared[after] + i64::from(overhead) * self.variant.left_out / 100;
        let before = spared.min(gap);
        (gap - before, launch - (spared - before).min(most_of(launch)))
    }

    /// When all is done that a thread has come to and that was issued to the GPUs until now.
    fn done(&self, thread: HostThread) -> i64 {
        self.s.device.iter().copied().fold(self.s.ended[thread], i64::max)
    }

    /// A step as it is. Returns when its call ends.
    fn keep(&mut self, step: &Step, now: i64) -> i64 {
        let own = now + step.length;
        if step.ops > 0 && step.kind.waits() {
            self.issue(step, own, now); // a call nested in the wait has issued something
        }
        let end = match step.kind {
            StepKind::Launch(_) => self.launch(step, own),
            StepKind::Given => {
                self.issue(step, 0, i64::MIN);
                return now;
            }
            StepKind::Copy(_) => {
                let ended = self.issue(step, now, now);
                own.max(ended + step.back)
            }
            StepKind::Stream(_) | StepKind::Device(_) | StepKind::Op(_) => {
                own.max(self.awaited(step) + self.back(step))
            }
        };
        // Enqueueing a copy is no waiting.
        if let Some(site) =
            step.site.filter(|_| step.role == Role::Wait || !matches!(step.kind, StepKind::Launch(_)))
        {
            self.waited[site] += end - now;
        }
        end
    }

    /// Enqueues the ops of a call, which waits where the queue is full.
    fn launch(&mut self, step: &Step, mut end: i64) -> i64 {
        if step.ops == 0 {
            return end;
        }
        end = end.max(self.accepted(step));
        self.issue(step, end, end - step.length);
        end
    }

    /// When the queue has a place for the step's first op.
    fn accepted(&self, step: &Step) -> i64 {
        self.program.ops.get(step.first_op).behind.map_or(i64::MIN, |behind| self.s.finish[behind])
    }

    /// Places the ops of a step, launched at `from`, none before `earliest`. Returns the last end.
    fn issue(&mut self, step: &Step, from: i64, earliest: i64) -> i64 {
        let mut last = from;
        let usual = self.variant.usual && matches!(step.kind, StepKind::Launch(_));
        for rank in step.ranks() {
            let op = if usual { self.usual(rank) } else { self.program.ops.get(rank) };
            last = last.max(self.place(rank, &op, op.duration, from + op.after_call, earliest));
        }
        last
    }

    /// An op with usual latencies.
    fn usual(&self, rank: Rank) -> Op {
        let (op, kind) = (self.program.ops.get(rank), usize::from(self.program.kind[rank]));
        let after = self.program.learned.after_previous[kind];
        Op {
            after_call: self.program.learned.after_call[kind],
            after_previous: after,
            after_followed: after,
            after_barrier: op.after_barrier.min(i32::try_from(after).unwrap_or(i32::MAX)),
            ..op
        }
    }

    fn place(&mut self, rank: Rank, op: &Op, duration: i64, ready: i64, earliest: i64) -> i64 {
        let program = self.program;
        let queued = self.s.stream[op.stream] + op.after_previous;
        let mut start = ready.max(earliest).max(self.fence).max(queued);
        if let Some(followed) = op.follows {
            start = start.max(self.s.finish[followed] + op.after_followed);
        }
        let part = program.part[op.stream];
        start = start.max(legacy::earliest(&self.s.barriers, part, op.after_barrier));
        let end = start + self.until_joined(rank, start, duration);
        legacy::note(&mut self.s.barriers, part, end);
        let stream = &mut self.s.stream[op.stream];
        *stream = (*stream).max(end); // rows of damaged exports overlap
        self.s.finish[rank] = end;
        let group = program.group[op.stream];
        self.s.device[group] = self.s.device[group].max(end);
        let (until, busy) = &mut self.s.busy[group];
        *busy += (end - start.max(*until)).max(0);
        *until = (*until).max(end);
        end
    }

    /// How long an op takes from `start`: of a collective, until the last rank has joined and it is done.
    fn until_joined(&mut self, rank: Rank, start: i64, duration: i64) -> i64 {
        if self.joined.is_empty() {
            return duration;
        }
        let left = self.joined.iter().zip(&self.program.late).skip(self.met);
        self.met += left.clone().take_while(|(_, late)| late.rank < rank).count();
        let own = self.program.late.get(self.met).zip(self.joined.get(self.met));
        own.filter(|(late, _)| late.rank == rank)
            .map_or(duration, |(late, &joined)| start.max(joined) + late.tail - start)
    }

    /// A wait for less: as it is, where nothing less is known.
    fn narrow(&mut self, at: StepIx, step: &Step, now: i64) -> i64 {
        let needed = self.program.narrower.get(&at).filter(|_| step.kind.waits());
        let back = step.back.min(self.program.learned.back(Blocking::Event));
        let less = needed.map(|&needed| Step { kind: StepKind::Op(needed), back, ..*step });
        self.keep(&less.unwrap_or(*step), now)
    }

    /// Whether the step's op is its own copy.
    fn copies(&self, step: &Step) -> bool {
        let copy = || usize::from(self.program.kind[step.first_op]) == kind_index(OpKind::Memcpy);
        step.ops == 1 && !step.kind.waits() && copy()
    }

    /// When the host goes on if a call that it would reach at `now` is gone, and what stood around it: of the time before
    /// it no more than there is.
    fn without(&mut self, step: &Step, now: i64) -> i64 {
        let still_traced = (100 - self.variant.left_out).max(0);
        self.s.spared[step.thread] = i64::from(step.traced) * still_traced / 100;
        (now - i64::from(step.around) * self.variant.around / 100).max(self.ready)
    }

    /// A step of a site that a fix changes.
    fn fixed(&mut self, step: &Step, fix: Change, now: i64) -> i64 {
        match (step.role, fix) {
            (Role::Count, Change::Drop) => return self.gone(step, now),
            (Role::Select, Change::Drop) => return self.gone(step, self.ready),
            (Role::Index, Change::Drop) => return self.keep(step, self.ready),
            (Role::Count | Role::Select | Role::Index, _) => return self.keep(step, now),
            _ => {}
        }
        let copies = self.copies(step);
        if step.ops > 0 && !copies {
            self.issue(step, now + step.length, now); // a call nested in the wait has issued something
        }
        match (fix, copies) {
            (Change::Drop, true) => {
                self.skip(step);
                self.without(step, now)
            }
            (Change::Drop | Change::Delete, false) => self.without(step, now),
            // The call of the copy stands for that of the op in its place.
            (Change::OnGpu, false) if step.role == Role::Wait => self.without(step, now),
            (Change::GpuWait, false) => {
                self.order(step, self.awaited(step));
                self.without(step, now)
            }
            // A blocking copy that is to stay without its wait.
            (Change::Delete | Change::GpuWait, true) if step.role == Role::Copy => self.keep(step, now),
            // Staging from pageable memory keeps the host, whatever is asked of the call.
            (Change::NonBlocking, true) if step.staged || step.role == Role::Copy => self.keep(step, now),
            (_, true) => {
                // A call that only enqueued its copy does so still.
                let blocks = step.kind.is_copy() || step.staged;
                let usual = if blocks { self.program.learned.async_copy } else { i64::MAX };
                let end = (now + step.length.min(usual)).max(self.accepted(step));
                let ended = self.enqueue(step, end, now);
                if fix.keeps_order() && step.kind.is_copy() {
                    self.order(step, ended);
                }
                if step.role == Role::Wait && step.kind.is_copy() {
                    let back = step.back.min(self.program.learned.back(Blocking::Stream));
                    return self.unwaited(step, fix, end, ended, back);
                }
                end
            }
            // The copy before the synchronisation, of which the export holds no op.
            (_, false) if step.role == Role::Copy => now + step.length.min(self.program.learned.async_copy),
            (_, false) => {
                let awaited = self.awaited(step);
                if fix.keeps_order() {
                    self.order(step, awaited);
                }
                self.unwaited(step, fix, now, awaited, step.back)
            }
        }
    }

    /// A launch that is not made.
    fn gone(&mut self, step: &Step, now: i64) -> i64 {
        self.skip(step);
        now
    }

    /// From the end of what a synchronisation waits for to its return.
    fn back(&self, step: &Step) -> i64 {
        let learned = &self.program.learned;
        match step.kind {
            _ if !self.variant.usual => step.back,
            StepKind::Stream(_) => learned.back(Blocking::Stream),
            StepKind::Device(_) => learned.back(Blocking::Context),
            _ => learned.back(Blocking::Event),
        }
    }

    /// When what a synchronisation waits for ends.
    fn awaited(&self, step: &Step) -> i64 {
        match step.kind {
            StepKind::Stream(stream) => self.s.stream[stream],
            StepKind::Device(group) => self.s.device[group],
            StepKind::Op(rank) => self.s.finish[rank],
            _ => i64::MIN / 2,
        }
    }

    /// Keeps what the thread issues from now on behind `ended`, or behind the wait's return where that came sooner.
    fn order(&mut self, step: &Step, ended: i64) {
        let fence = &mut self.s.fence[step.thread];
        *fence = (*fence).max(ended.saturating_add(step.back.min(0)));
    }

    /// Goes on without the wait for what ends at `awaited`, or remembers it for later.
    fn unwaited(&mut self, step: &Step, fix: Change, now: i64, awaited: i64, back: i64) -> i64 {
        let Some(site) = step.site else { return now };
        match fix {
            Change::Coalesce if step.last => {
                let end = now.max(awaited + back);
                self.waited[site] += end - now;
                end
            }
            Change::Delay => {
                let returns = awaited.saturating_add(back);
                if self.program.iterations {
                    let delayed = &mut self.s.delayed[step.thread];
                    *delayed = (*delayed).max(returns);
                    return now;
                }
                // Without iterations a site's value is read when it is asked for the next one.
                now.max(std::mem::replace(&mut self.s.asked[site], returns))
            }
            _ => now,
        }
    }

    fn flush(&mut self, thread: HostThread, now: i64) -> i64 {
        now.max(std::mem::replace(&mut self.s.delayed[thread], i64::MIN))
    }

    /// An asynchronous copy instead of the recorded one; pinned or not, it runs no longer than it did.
    fn enqueue(&mut self, step: &Step, from: i64, earliest: i64) -> i64 {
        let mut last = i64::MIN / 2;
        for rank in step.ranks() {
            let op = self.program.ops.get(rank);
            let pinned = match step.kind {
                StepKind::Launch(Some(copy)) | StepKind::Copy(Some(copy)) => self.program.pinned[copy],
                _ => op.duration,
            };
            let latency = op.after_call.min(self.program.learned.after_call[1]);
            // A blocking copy was counted from its call's start: without the wait it starts no later.
            let latest = if step.kind.is_copy() { earliest + op.after_call } else { i64::MAX };
            let ready = (from + latency).min(latest);
            last = last.max(self.place(rank, &op, pinned.min(op.duration), ready, earliest));
        }
        last
    }

    /// The ops of a step that is gone: they end where their stream stands.
    fn skip(&mut self, step: &Step) {
        for rank in step.ranks() {
            let stream = self.program.ops.get(rank).stream;
            self.s.finish[rank] = self.s.stream[stream].max(0);
        }
    }
}
