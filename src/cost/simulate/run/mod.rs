//! One pass over a program.

mod step;

use super::legacy::Barrier;
use super::model::{Program, Reach};
use super::packed::{Launch, OpRow, Stretch};
use super::step::{ContextIx, GroupIx, HostThread, Op, Part, Rank, StepIx};
use crate::profile::database::Work;
use crate::profile::ids::StreamIx;
use crate::vocabulary::{Change, SiteIx};
use std::ops::Range;
use typed_index_collections::TiVec;

/// Largest share of a host segment or launch that is the profiler's.
const MOST_OF_GAP: f64 = 0.65;

pub fn most_of(gap: i64) -> i64 {
    (gap.max(0) as f64 * MOST_OF_GAP) as i64
}

/// In ns since the program's origin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub end: i64,
    /// Busy time by process and device.
    pub busy: Vec<i64>,
    pub waited: TiVec<SiteIx, i64>,
    /// First iteration to last, each from when earlier work was done and the host had come to it.
    pub laps: Option<i64>,
    /// Busy time in between, of the busiest process and device.
    pub busy_in_laps: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// By site; sites past the end are kept.
    pub fixes: TiVec<SiteIx, Change>,
    /// Percent of the profiler's estimated host time ([`crate::cost::overhead`]) that is left out.
    pub left_out: i64,
    /// Percent of the host time around a removed call that goes with it.
    pub around: i64,
    /// Usual latencies instead of the recorded distances: shows whether the dependencies are right.
    pub usual: bool,
}

/// Passes for processes that wait for each other: from the third on, only near ties change.
pub(in crate::cost) const PASSES: usize = 4;

pub(in crate::cost) const LANES: usize = 6;

/// Runs the program once. Linear in steps and ops.
///
/// Where processes wait for each other in collectives (`Late`), a kernel may end after one that is issued
/// later. Each pass takes that one's start from the pass before; the first keeps recorded lengths.
pub fn run(program: &Program, variant: &Variant) -> Outcome {
    let mut last = Lanes::new(program, [variant], Vec::new()).pass();
    let mut passes = 1;
    for _ in 1..PASSES {
        let joined = last.starts();
        if joined == last.joined {
            break;
        }
        last = Lanes::new(program, [variant], joined).pass();
        passes += 1;
    }
    counts(program, passes);
    last.outcome()
}

/// Runs the program with each variant, `LANES` side by side, so that a step is looked up once for all. Where
/// processes wait for each other, variants run one by one.
pub fn run_all(program: &Program, variants: &[Variant]) -> Vec<Outcome> {
    if !program.late.is_empty() {
        return variants.iter().map(|variant| run(program, variant)).collect();
    }
    let batch = |batch: &[Variant]| match batch {
        [_, _, _, _, _, _, ..] => side_by_side::<6>(program, batch),
        [_, _, _, _, _] => side_by_side::<5>(program, batch),
        [_, _, _, _] => side_by_side::<4>(program, batch),
        [_, _, _] => side_by_side::<3>(program, batch),
        [_, _] => side_by_side::<2>(program, batch),
        _ => side_by_side::<1>(program, batch),
    };
    variants.chunks(LANES).flat_map(batch).collect()
}

fn side_by_side<const L: usize>(program: &Program, variants: &[Variant]) -> Vec<Outcome> {
    counts(program, L as u64);
    let mut lanes = Lanes::<L>::new(program, std::array::from_fn(|lane| &variants[lane]), Vec::new()).pass();
    let of = |lane| {
        lanes.lane = lane;
        lanes.outcome()
    };
    (0..L).map(of).collect()
}

fn counts(program: &Program, passes: u64) {
    let steps = program.size() as u64 * passes;
    program.progress.iter().for_each(|progress| progress.costs(Work::Steps, steps));
}

#[derive(Clone)]
struct Thread<const L: usize> {
    ended: [i64; L],
    /// Profiler time after its last step, which went with that step.
    spared: [i64; L],
    /// None of its ops starts earlier, because of waits that the GPU took over.
    fence: [i64; L],
    /// Return of the last of its delayed waits.
    delayed: [i64; L],
}

struct Queue<const L: usize> {
    end: [i64; L],
    /// Ends of its ops by place, in a ring of as many as are looked back at: a power of two.
    ends: Vec<[i64; L]>,
}

impl<const L: usize> Queue<L> {
    #[inline]
    fn at(&self, place: u32) -> usize {
        place as usize & (self.ends.len() - 1)
    }
}

#[derive(Clone)]
struct Group<const L: usize> {
    end: [i64; L],
    busy: [i64; L],
}

struct Lap {
    /// When all earlier work was done and the host had come to the iteration's first call.
    done: i64,
    busy: Vec<i64>,
    waited: TiVec<SiteIx, i64>,
}

struct Lanes<'a, const L: usize> {
    program: &'a Program,
    /// Of the stretch that is simulated.
    ops: Stretch<'a, Rank, OpRow>,
    variants: [&'a Variant; L],
    threads: TiVec<HostThread, Thread<L>>,
    /// Return of the last of a site's delayed waits.
    asked: TiVec<SiteIx, [i64; L]>,
    waited: TiVec<SiteIx, [i64; L]>,
    streams: TiVec<StreamIx, Queue<L>>,
    groups: TiVec<GroupIx, Group<L>>,
    barriers: [TiVec<ContextIx, Barrier>; L],
    /// Of the first iteration and of the last.
    laps: [Vec<Lap>; L],
    /// The run that a step is applied to.
    lane: usize,
    /// Start of the host segment before the step: nothing of the step comes sooner.
    ready: i64,
    /// [`Thread::fence`] of the step's thread.
    fence: i64,
    /// When the last rank joined each of [`Program::late`]; empty in the first pass.
    joined: Vec<i64>,
    met: usize,
    left_out: i64,
}

impl<'a, const L: usize> Lanes<'a, L> {
    fn new(program: &'a Program, variants: [&'a Variant; L], joined: Vec<i64>) -> Self {
        let (before, never) = ([i64::MIN / 2; L], [i64::MIN; L]);
        let queue = |reach: &Reach| Queue {
            end: before,
            ends: vec![
                [0; L];
                reach.back.max(program.learned.depth).min(reach.ops).next_power_of_two() as usize
            ],
        };
        Self {
            program,
            ops: program.ops.around(Rank::from(0)),
            variants,
            threads: program.by_thread(Thread {
                ended: [0; L],
                spared: [0; L],
                fence: never,
                delayed: never,
            }),
            asked: TiVec::from(vec![never; program.sites]),
            waited: TiVec::from(vec![[0; L]; program.sites]),
            streams: program.reach.iter().map(queue).collect(),
            groups: TiVec::from(vec![Group { end: before, busy: [0; L] }; program.groups]),
            barriers: std::array::from_fn(|_| TiVec::from(vec![Barrier::START; program.barriers])),
            laps: std::array::from_fn(|_| Vec::new()),
            lane: 0,
            ready: 0,
            fence: i64::MIN,
            joined,
            met: 0,
            left_out: 0,
        }
    }

    fn pass(mut self) -> Self {
        let program = self.program;
        for (steps, left_out) in program.stretches() {
            self.left_out += left_out;
            self.stretch(steps);
        }
        self.lane = 0;
        self
    }

    fn stretch(&mut self, steps: Range<usize>) {
        let program = self.program;
        let rows = program.steps.around(StepIx::from(steps.start));
        if steps.is_empty() {
            return;
        }
        let ops = program.ops.around(rows.get(StepIx::from(steps.start)).first_op);
        self.ops = ops;
        let usual = self.variants.iter().any(|variant| variant.usual);
        let plain = self.joined.is_empty() && (L == 1 || !usual);
        let left_out = self.variants.map(|variant| variant.left_out);
        let left_out = (left_out, left_out.iter().all(|share| *share == left_out[0]));
        for at in steps.map(StepIx::from) {
            let is_lap = program.laps.is_some_and(|l| l.first == at || l.last == at);
            // Most steps.
            if let Some(launch) = rows.short(at).filter(|_| plain && !is_lap).and_then(|row| row.launch()) {
                let op = if usual { self.usual(launch.op) } else { ops.get(launch.op) };
                if op.follows.is_none() && program.part[op.stream] == Part::Free {
                    self.launched(&launch, &op, left_out);
                    continue;
                }
            }
            let step = rows.get(at);
            for lane in 0..L {
                self.lane = lane;
                self.step(at, step);
            }
        }
    }

    /// A launch in all lanes, as [`Self::keep`] and [`Self::place`] have it. `left_out`: shares of the
    /// profiler's time, and whether all are equal.
    #[inline]
    fn launched(&mut self, step: &Launch, op: &Op, (left_out, alike): ([i64; L], bool)) {
        let most = most_of(step.length);
        let taken = |share| i64::from(step.overhead) * share / 100;
        let taken = if alike { [taken(left_out[0]); L] } else { left_out.map(taken) };
        let thread = &mut self.threads[step.thread];
        let queue = &mut self.streams[op.stream];
        let group = &mut self.groups[self.program.group[op.stream]];
        let behind = op.place.checked_sub(self.program.learned.depth);
        let accepted = behind.map_or([i64::MIN; L], |behind| queue.ends[queue.at(behind)]);
        let at = queue.at(op.place);
        let ends = &mut queue.ends[at];
        for (lane, taken) in taken.into_iter().enumerate() {
            let spared = thread.spared[lane] + taken;
            let before = spared.min(step.gap);
            let length = step.length - (spared - before).min(most);
            let ended = (thread.ended[lane] + step.gap - before + length).max(accepted[lane]);
            let ready = (ended + op.after_call).max(ended - length).max(thread.fence[lane]);
            let start = ready.max(queue.end[lane] + op.after_previous);
            let end = start + op.duration;
            (thread.ended[lane], thread.spared[lane]) = (ended, 0);
            (queue.end[lane], ends[lane]) = (queue.end[lane].max(end), end);
            group.busy[lane] += (end - start.max(group.end[lane])).max(0);
            group.end[lane] = group.end[lane].max(end);
        }
    }

    fn outcome(&self) -> Outcome {
        let lane = self.lane;
        let ends = self.threads.iter().map(|thread| thread.ended[lane]);
        let end = ends.chain(self.groups.iter().map(|group| group.end[lane])).fold(0, i64::max);
        let mut outcome = Outcome { end, busy: self.busy(), waited: self.waited(), ..Outcome::default() };
        if let [first, last] = &self.laps[lane][..] {
            let whole = |first: i64, last: i64| self.program.sample.whole(last - first);
            let laps = whole(first.done, last.done);
            outcome.end += laps - (last.done - first.done);
            outcome.laps = Some(laps);
            let busy = first.busy.iter().zip(&last.busy).map(|(first, last)| whole(*first, *last));
            outcome.busy_in_laps = busy.max().unwrap_or(0);
            for (all, (first, last)) in outcome.waited.iter_mut().zip(first.waited.iter().zip(&last.waited)) {
                *all += whole(*first, *last) - (last - first);
            }
        }
        outcome
    }

    fn busy(&self) -> Vec<i64> {
        self.groups.iter().map(|group| group.busy[self.lane]).collect()
    }

    fn waited(&self) -> TiVec<SiteIx, i64> {
        self.waited.iter().map(|site| site[self.lane]).collect()
    }

    fn starts(&self) -> Vec<i64> {
        let start = |rank: Rank| self.finished(rank) - self.program.ops.get(rank).map_or(0, |op| op.duration);
        self.program.late.iter().map(|late| start(late.last)).collect()
    }
}
