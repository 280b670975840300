//! The capture as a program that can be run again: steps of host threads and the ops that they issue.

use super::NONE;
use super::learn::{Assumed, Learned};
use super::legacy::Part;
use crate::profile::Profile;
use crate::waits::Wait;
use crate::waits::device::Devices;

/// What a step makes the host do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Goes on after its length, having enqueued its ops.
    Launch,
    /// A copy that returns when it is done, or has been staged: `back` after its op's end.
    Copy,
    /// Waits for all that was issued on stream `target`.
    Stream,
    /// Waits for all that was issued to device and process `target`.
    Device,
    /// Waits for op `target`.
    Op,
    /// No call: an op whose launch is not recorded, no earlier than it was.
    Given,
}

/// What a step is to the wait of its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    None,
    /// The copy before the synchronisation.
    Copy,
    /// The synchronisation, or the blocking copy or free.
    Wait,
}

/// One API call of a thread, outermost, in recorded order.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Host time since the step before it on thread `after`.
    pub gap: i64,
    /// Host time in the call that nothing on the GPU explains.
    pub length: i64,
    /// From the end of what a wait awaits to its return.
    pub back: i64,
    /// Its ops, consecutive in issue order.
    pub first_op: u32,
    pub ops: u32,
    /// Stream, device or op that is waited for; for a copy that a fix may change, index into [`Program::pinned`].
    pub target: u32,
    /// Site of the wait it belongs to.
    pub site: u32,
    /// Host time of `gap` that is estimated to be the profiler's.
    pub overhead: u32,
    /// Host time around the call that goes with it: the library's own, and the profiler's.
    pub around: u32,
    pub traced: u32,
    pub thread: u16,
    /// Thread whose last step it follows: its own, or the one that handed over to it.
    pub after: u16,
    pub act: Act,
    pub role: Role,
    /// Delayed waits end before it: an iteration has ended.
    pub flush: bool,
    /// Last of a run of waits of its site.
    pub last: bool,
    /// A copy from or to host memory that is not pinned: the call moves it, piece by piece.
    pub staged: bool,
}

/// One op, in issue order.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    pub duration: i64,
    /// No earlier than this after its call's end (its start for [`Act::Copy`]).
    pub after_call: i64,
    /// No earlier than this after the op before it on its stream.
    pub after_previous: i64,
    /// No earlier than this after op `follows`.
    pub after_followed: i64,
    pub stream: u32,
    /// Op of another stream that it follows.
    pub follows: u32,
    /// The op that must have ended before the queue takes this one.
    pub behind: u32,
    /// No earlier than this after the other side of the legacy default stream ([`super::legacy`]).
    pub after_barrier: i32,
}

/// A capture, ready to be simulated. Times are ns since its first event.
pub struct Program {
    pub steps: Vec<Step>,
    pub ops: Vec<Op>,
    /// Of each op: [`super::learn::kind_index`].
    pub kind: Vec<u8>,
    /// Of each stream: its process and device together.
    pub group: Vec<u32>,
    pub groups: usize,
    /// Of each stream: its part in the legacy default stream's ordering.
    pub part: Vec<Part>,
    /// Contexts in which that ordering means anything.
    pub barriers: usize,
    pub threads: usize,
    /// Recorded start of each step.
    pub started: Vec<i64>,
    /// Start of the capture on its own clock.
    pub origin: i64,
    /// Recorded last end.
    pub recorded: i64,
    /// Duration from or to pinned memory, of copies that a fix may change.
    pub pinned: Vec<i64>,
    pub learned: Learned,
    /// Step of each outermost call.
    pub(in crate::cost) step_of_call: Vec<u32>,
    /// Whether it is to be simulated.
    pub wanted: bool,
    /// Ops that started late for a reason that is not known.
    pub unexplained: u64,
    /// Sites that [`Program::mark`] was given.
    pub sites: usize,
    /// Whether iterations are marked.
    pub iterations: bool,
}

impl Program {
    pub(super) fn empty(learned: Learned) -> Self {
        Self {
            steps: Vec::new(),
            ops: Vec::new(),
            kind: Vec::new(),
            group: Vec::new(),
            groups: 0,
            part: Vec::new(),
            barriers: 0,
            threads: 1,
            started: Vec::new(),
            origin: 0,
            recorded: 0,
            pinned: Vec::new(),
            learned,
            step_of_call: Vec::new(),
            wanted: true,
            unexplained: 0,
            sites: 0,
            iterations: false,
        }
    }

    /// Builds a program from a capture; `waits`: all of them, sorted by call.
    pub fn new(profile: &Profile, devices: &Devices, waits: &[Wait], assumed: &Assumed) -> Self {
        super::build::build(profile, devices, waits, assumed)
    }

    /// Of a capture that is not to be simulated.
    pub fn outline(profile: &Profile, waits: &[Wait], assumed: &Assumed) -> Self {
        Self { wanted: false, ..super::build::outline(profile, waits, assumed) }
    }

    /// Step of a call.
    pub fn step_of(&self, call: u32) -> Option<u32> {
        self.step_of_call.get(call as usize).copied().filter(|&s| s != NONE)
    }

    /// Says which waits are one site's: site `i` has the waits `sites[i]`, by call and copy call.
    pub fn mark(&mut self, sites: &[Vec<(u32, Option<u32>)>]) {
        self.sites = sites.len();
        for (site, waits) in (0u32..).zip(sites) {
            for (call, copy) in waits {
                if let Some(step) = self.step_of(*call) {
                    (self.steps[step as usize].site, self.steps[step as usize].role) = (site, Role::Wait);
                }
                if let Some(step) = copy.and_then(|c| self.step_of(c)) {
                    (self.steps[step as usize].site, self.steps[step as usize].role) = (site, Role::Copy);
                }
            }
        }
        self.mark_runs();
    }

    /// The last of each run of waits of one site that nothing but the site's own copies parts.
    fn mark_runs(&mut self) {
        let mut next: Vec<u32> = vec![NONE; self.threads];
        for step in self.steps.iter_mut().rev().filter(|s| s.role == Role::Wait) {
            let following = &mut next[step.thread as usize];
            step.last = *following != step.site || step.flush;
            *following = step.site;
        }
    }

    /// Marks the first step of each thread after the end of each iteration; `ends`: on the capture's clock, ascending.
    pub fn mark_iterations(&mut self, ends: &[i64]) {
        self.iterations = !ends.is_empty();
        let mut at = vec![0usize; self.threads];
        for (step, &start) in self.steps.iter_mut().zip(&self.started) {
            let at = &mut at[step.thread as usize];
            let passed = ends[*at..].iter().take_while(|&&end| end - self.origin <= start).count();
            step.flush = passed > 0;
            *at += passed;
        }
    }
}
