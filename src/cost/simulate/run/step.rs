//! One step of one run.

use super::{Lanes, Lap, Variant, most_of};
use crate::cost::simulate::learn::kind_index;
use crate::cost::simulate::legacy;
use crate::cost::simulate::step::{HostThread, Op, Rank, Role, Step, StepIx, StepKind};
use crate::profile::ops::OpKind;
use crate::vocabulary::Change;
use crate::waits::api::Blocking;

impl<'a, const L: usize> Lanes<'a, L> {
    /// End of an op: long ago if the op is passed over.
    pub(super) fn finished(&self, rank: Rank) -> i64 {
        let Some(op) = self.program.ops.get(rank) else { return i64::MIN / 2 };
        let queue = &self.streams[op.stream];
        queue.ends[queue.at(op.place)][self.lane]
    }

    fn finish(&mut self, op: &Op, end: i64) {
        let queue = &mut self.streams[op.stream];
        let at = queue.at(op.place);
        queue.ends[at][self.lane] = end;
    }

    /// When the queue has a place for an op.
    fn accepted(&self, op: &Op) -> i64 {
        let (behind, queue) = (op.place.checked_sub(self.program.learned.depth), &self.streams[op.stream]);
        behind.map_or(i64::MIN, |behind| queue.ends[queue.at(behind)][self.lane])
    }

    fn variant(&self) -> &'a Variant {
        self.variants[self.lane]
    }

    fn change(&self, step: &Step) -> Change {
        step.site.and_then(|site| self.variant().fixes.get(site)).copied().unwrap_or_default()
    }

    pub(super) fn step(&mut self, at: StepIx, mut step: Step) {
        let lane = self.lane;
        let (gap, length) = self.host(step.after, (step.gap, step.length), step.overhead);
        if self.program.laps.is_some_and(|l| l.first == at || l.last == at) {
            // The host's way to the first iteration may hold the program's start: no part of the loop.
            let begins = self.threads[step.after].ended[lane] + gap;
            let done = self.done(step.thread).max(begins);
            self.laps[lane].push(Lap { done, busy: self.busy(), waited: self.waited() });
        }
        if matches!(step.kind, StepKind::Launch(_)) {
            step.length = length;
        }
        let step = &step;
        let before = self.threads[step.after].ended[lane];
        let thread = &mut self.threads[step.thread];
        self.ready = thread.ended[lane].max(before);
        if step.flush {
            self.ready = self.ready.max(std::mem::replace(&mut thread.delayed[lane], i64::MIN));
        }
        let now = self.ready.max(before + gap);
        thread.spared[lane] = 0;
        self.fence = thread.fence[lane];
        let now = match self.change(step) {
            Change::Keep => self.keep(step, now),
            Change::Narrow => self.narrow(at, step, now),
            fix => self.fixed(step, fix, self.unmade(at, fix, now)),
        };
        self.threads[step.thread].ended[lane] = now;
    }

    /// Host time before a launch and in it, without the profiler's part.
    fn host(&self, after: HostThread, (gap, launch): (i64, i64), overhead: u32) -> (i64, i64) {
        let taken = i64::from(overhead) * self.variant().left_out / 100;
        let spared = self.threads[after].spared[self.lane] + taken;
        let before = spared.min(gap);
        (gap - before, launch - (spared - before).min(most_of(launch)))
    }

    /// End of all that the thread has come to and that was issued to the GPUs until now.
    fn done(&self, thread: HostThread) -> i64 {
        self.groups
            .iter()
            .map(|group| group.end[self.lane])
            .fold(self.threads[thread].ended[self.lane], i64::max)
    }

    fn keep(&mut self, step: &Step, now: i64) -> i64 {
        let own = now + step.length;
        if step.ops > 0 && step.kind.waits() {
            self.issue(step, own, now); // a call nested in the wait has issued something
        }
        let end = match step.kind {
            StepKind::Launch(_) => self.launch(step, own),
            StepKind::Given => {
                self.issue(step, -self.left_out, i64::MIN);
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
            self.waited[site][self.lane] += end - now;
        }
        end
    }

    /// Enqueues the ops of a call, which waits while the queue is full.
    fn launch(&mut self, step: &Step, mut end: i64) -> i64 {
        if step.ops == 0 {
            return end;
        }
        end = end.max(self.accepted(&self.ops.get(step.first_op)));
        self.issue(step, end, end - step.length);
        end
    }

    /// Places a step's ops, launched at `from`, none before `earliest`. Returns the last end.
    fn issue(&mut self, step: &Step, from: i64, earliest: i64) -> i64 {
        let mut last = from;
        let usual = self.variant().usual && matches!(step.kind, StepKind::Launch(_));
        for rank in step.ranks() {
            let op = if usual { self.usual(rank) } else { self.ops.get(rank) };
            last = last.max(self.place(rank, &op, op.duration, from + op.after_call, earliest));
        }
        last
    }

    pub(super) fn usual(&self, rank: Rank) -> Op {
        let op = self.ops.get(rank);
        let kind = usize::from(op.kind);
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
        let (program, lane) = (self.program, self.lane);
        let queued = self.streams[op.stream].end[lane] + op.after_previous;
        let mut start = ready.max(earliest).max(self.fence).max(queued);
        if let Some(followed) = op.follows {
            start = start.max(self.finished(followed) + op.after_followed);
        }
        let part = program.part[op.stream];
        start = start.max(legacy::earliest(&self.barriers[lane], part, op.after_barrier));
        let end = start + self.until_joined(rank, start, duration);
        legacy::note(&mut self.barriers[lane], part, end);
        let queued = &mut self.streams[op.stream].end[lane];
        *queued = (*queued).max(end); // rows of damaged exports overlap
        self.finish(op, end);
        let group = &mut self.groups[program.group[op.stream]];
        group.busy[lane] += (end - start.max(group.end[lane])).max(0);
        group.end[lane] = group.end[lane].max(end);
        end
    }

    /// Duration from `start`; a collective runs until its last rank has joined and it is done.
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

    /// A wait for less; unchanged where nothing less is known.
    fn narrow(&mut self, at: StepIx, step: &Step, now: i64) -> i64 {
        let needed = self.program.narrower.get(&at).filter(|_| step.kind.waits());
        let back = step.back.min(self.program.learned.back(Blocking::Event));
        let less = needed.map(|&needed| Step { kind: StepKind::Op(needed), back, ..*step });
        self.keep(&less.unwrap_or(*step), now)
    }

    fn copies(&self, step: &Step) -> bool {
        let copy = || usize::from(self.ops.get(step.first_op).kind) == kind_index(OpKind::Memcpy);
        step.ops == 1 && !step.kind.waits() && copy()
    }

    /// When the host goes on without a call and the time around it, at most back to the gap's start.
    fn without(&mut self, step: &Step, now: i64) -> i64 {
        let still_traced = (100 - self.variant().left_out).max(0);
        self.threads[step.thread].spared[self.lane] = i64::from(step.traced) * still_traced / 100;
        (now - i64::from(step.around) * self.variant().around / 100).max(self.ready)
    }

    /// When the host reaches an upload that it need not make, or that it pins first.
    fn unmade(&self, at: StepIx, fix: Change, now: i64) -> i64 {
        (now - self.program.unmade(at, fix) * self.variant().around / 100).max(self.ready)
    }

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
            // The copy's call stands for the call of the op that replaces it.
            (Change::OnGpu, false) if step.role == Role::Wait => self.without(step, now),
            (Change::GpuWait, false) => {
                self.order(step, self.awaited(step));
                self.without(step, now)
            }
            // A blocking copy that stays, without its wait.
            (Change::Delete | Change::GpuWait, true) if step.role == Role::Copy => self.keep(step, now),
            // Staging from pageable memory blocks the host in any case.
            (Change::NonBlocking, true) if step.staged || step.role == Role::Copy => self.keep(step, now),
            (_, true) => {
                // A call that only enqueued its copy still does.
                let blocks = step.kind.is_copy() || step.staged;
                let usual = if blocks { self.program.learned.async_copy } else { i64::MAX };
                let accepted = self.accepted(&self.ops.get(step.first_op));
                let end = (now + step.length.min(usual)).max(accepted);
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
            // The copy before the synchronisation; the export holds no op of it.
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

    fn gone(&mut self, step: &Step, now: i64) -> i64 {
        self.skip(step);
        now
    }

    fn back(&self, step: &Step) -> i64 {
        let learned = &self.program.learned;
        match step.kind {
            _ if !self.variant().usual => step.back,
            StepKind::Stream(_) => learned.back(Blocking::Stream),
            StepKind::Device(_) => learned.back(Blocking::Context),
            _ => learned.back(Blocking::Event),
        }
    }

    fn awaited(&self, step: &Step) -> i64 {
        match step.kind {
            StepKind::Stream(stream) => self.streams[stream].end[self.lane],
            StepKind::Device(group) => self.groups[group].end[self.lane],
            StepKind::Op(rank) => self.finished(rank),
            _ => i64::MIN / 2,
        }
    }

    /// Keeps the thread's later ops behind `ended`, or behind the wait's return if sooner.
    fn order(&mut self, step: &Step, ended: i64) {
        let fence = &mut self.threads[step.thread].fence[self.lane];
        *fence = (*fence).max(ended.saturating_add(step.back.min(0)));
    }

    /// Goes on without the wait for what ends at `awaited`, or remembers the wait for later.
    fn unwaited(&mut self, step: &Step, fix: Change, now: i64, awaited: i64, back: i64) -> i64 {
        let Some(site) = step.site else { return now };
        match fix {
            Change::Coalesce if step.last => {
                let end = now.max(awaited + back);
                self.waited[site][self.lane] += end - now;
                end
            }
            Change::Delay => {
                let returns = awaited.saturating_add(back);
                if self.program.iterations {
                    let delayed = &mut self.threads[step.thread].delayed[self.lane];
                    *delayed = (*delayed).max(returns);
                    return now;
                }
                // Without iterations a site's value is read when its next one is asked for.
                now.max(std::mem::replace(&mut self.asked[site][self.lane], returns))
            }
            _ => now,
        }
    }

    /// An asynchronous copy instead of the recorded one; it takes no longer.
    fn enqueue(&mut self, step: &Step, from: i64, earliest: i64) -> i64 {
        let mut last = i64::MIN / 2;
        for rank in step.ranks() {
            let op = self.ops.get(rank);
            let pinned = match step.kind {
                StepKind::Launch(Some(copy)) | StepKind::Copy(Some(copy)) => self.program.pinned[copy],
                _ => op.duration,
            };
            let latency = op.after_call.min(self.program.learned.after_call[1]);
            // A blocking copy counts from its call's start: without the wait it starts no later.
            let latest = if step.kind.is_copy() { earliest + op.after_call } else { i64::MAX };
            let ready = (from + latency).min(latest);
            last = last.max(self.place(rank, &op, pinned.min(op.duration), ready, earliest));
        }
        last
    }

    /// Ops of a step that is gone end with their stream.
    fn skip(&mut self, step: &Step) {
        for rank in step.ranks() {
            let op = self.ops.get(rank);
            self.finish(&op, self.streams[op.stream].end[self.lane].max(0));
        }
    }
}
