//! Launches and host work that go with a read that is dropped, or with an upload.
//!
//! `x[mask]` and `nonzero()` count first, read the count to make room, then select and index. Where the shape
//! is kept, one launch does it: `torch.where(mask, a, b)`. A check of values compares, and reads whether all
//! hold: switched off, it does neither.
//!
//! ```text
//!  x[mask]  ···gap···[count][count][copy][sync]··[init][select][indices]···gap···[index]      0.2 ms of launches
//!  where    ···gap···                                                            [index]      the one in their place
//!
//!  checked  ···gap···[compare]··[all]··[copy][sync]···[use]                                   as validate_args=True
//!  not      ···gap·································[use]
//! ```
//! The gap before the first of them stays: it is also Python's. The gap before the index goes: both lie
//! inside one operator. Cost: a look at some eight calls a wait.
//!
//! An upload that the host makes right before it, where the advice is to make it on the GPU, or once:
//!
//! ```text
//!  host   [launch]··torch.cat, torch.randn, a list~~~[copy====][sync]      ~ : goes as well, so many ns a byte at most
//! ```
//!
//! An upload that is pinned in its own line is copied by the CPU once more:
//!
//! ```text
//!  host   [launch]··[copy, staged=========][sync]···
//!  fixed  [launch]··pin_memory()~~~~[copy]···                             ~ : comes to it, no more than the staging took
//! ```

use super::model::Program;
use super::step::{Role, StepIx};
use crate::profile::Profile;
use crate::profile::ids::{CallId, OpId};
use crate::verdict::kernels::{COUNTING, SELECTING, TAKING, has_part};
use crate::vocabulary::{Change, Direction, HostMemory, Made, SiteIx};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Counts what a mask selects.
    Count,
    Select,
    /// Takes what was selected.
    Index,
    /// Compares values, or joins results of comparisons.
    Test,
}

const PARTS: [(&str, Part); 4] = [
    (COUNTING, Part::Count),
    (SELECTING, Part::Select),
    (TAKING, Part::Index),
    (
        "CompareEqFunctor|CompareFunctor|compare_scalar_kernel|BitwiseAndFunctor<bool|BitwiseOrFunctor<bool|logical_and_kernel\
         |logical_or_kernel|logical_not_kernel|::and_kernel_cuda|::or_kernel_cuda",
        Part::Test,
    ),
];
/// Calls looked at on either side: two launches count and three select, with getters and allocations between.
const NEAR: usize = 8;
/// Host time per byte of fresh memory that a thread faults in and fills: 5.7 ms to join 32 MiB on the host of
/// an H100, 3.8 for zeros; about 10 for the two halves of simclr's batch (54 MiB) on that of an H200.
const FRESH_NS: f64 = 0.17;
/// The same with random numbers: 4 MiB of `torch.randn` take 7.0 ms there, 256 KiB 0.46.
const DRAWN_NS: f64 = 1.7;
/// The same for a Python list made a tensor: 160 ns an element of 8 bytes (64 to 32,768 elements). Elements
/// of 4 bytes take as long, but count half.
const LISTED_NS: f64 = 20.0;
/// `pin_memory()` of a large tensor: 0.15 ms for 4 MiB there, 1.2 for 32 MiB, on 16 cores; 43 µs for 256 KiB, which two share.
const PIN_NS: i64 = 25_000;
const PIN_BYTE_NS: f64 = 0.036;

/// Host time per byte that is made this way; `None` if a fix spares none.
pub fn making(made: Made) -> Option<f64> {
    match made {
        Made::Filled => Some(FRESH_NS),
        Made::Drawn => Some(DRAWN_NS),
        Made::Listed => Some(LISTED_NS),
        Made::Elsewhere => None,
    }
}

pub fn kernels(names: &[(u32, Arc<str>)]) -> FxHashMap<u32, Part> {
    let part = |name: &str| PARTS.iter().find(|(parts, _)| has_part(name, parts)).map(|(_, part)| *part);
    names.iter().filter_map(|(id, name)| Some((*id, part(name)?))).collect()
}

/// The part of an op; `all` of one value is a copy of it.
fn part_of(profile: &Profile, kernels: &FxHashMap<u32, Part>, op: OpId) -> Option<Part> {
    let copies_one =
        |op| profile.ops.copy(op).is_some_and(|c| c.direction == Direction::DeviceToDevice && c.bytes == 1);
    let kernel = profile.ops.kernel(op).and_then(|name| kernels.get(&name).copied());
    kernel.or_else(|| copies_one(op).then_some(Part::Test))
}

impl Program {
    /// Marks what goes with dropped waits of some sites, given as calls of waits with their copies' calls.
    pub fn mark_beside(
        &mut self,
        profile: &Profile,
        kernels: &FxHashMap<u32, Part>,
        sites: impl Iterator<Item = (SiteIx, Vec<(CallId, Option<CallId>)>)>,
    ) {
        let mut taken = FxHashSet::default();
        for (site, (call, copy)) in sites.flat_map(|(site, waits)| waits.into_iter().map(move |w| (site, w)))
        {
            let own = &profile.calls.by_thread[profile.calls.thread(call)];
            let place = |call: CallId| own.binary_search(&call).ok();
            let Some((first, last)) = place(copy.unwrap_or(call)).zip(place(call)) else { continue };
            let launch = |&c: &CallId| {
                let at = self.step_of(c)?;
                let mut ops = self.issue.ops_of(at);
                let op = ops.next().filter(|_| ops.next().is_none())?;
                // A launch that goes with another read ends the run.
                let is_free = !taken.contains(&at) && self.steps.get(at).is_none_or(|s| s.site.is_none());
                Some(((at, c, op), is_free.then(|| part_of(profile, kernels, op)).flatten()))
            };
            let before: Vec<_> = own[..first].iter().rev().take(NEAR).filter_map(launch).collect();
            let after: Vec<_> = own[last + 1..].iter().take(NEAR).filter_map(launch).collect();
            let goes = beside(&before, &after);
            let mut cost = (0i64, 0i64);
            for &((at, launch, op), role) in &goes {
                let (before, inside) = self.host_time(&profile.calls, at, launch);
                cost.0 += if role == Role::Count { 0 } else { before };
                if role != Role::Index {
                    cost.0 += inside;
                    cost.1 += profile.ops.length(op);
                }
                taken.insert(at);
                self.steps.change(at, |step| (step.site, step.role) = (Some(site), role));
            }
            if !goes.is_empty() {
                self.beside.insert(call, cost);
            }
        }
    }

    /// Marks the host time that makes the uploads of some waits (their calls, with their copies' calls):
    /// `rate` ns per byte, at most the time before the call.
    pub fn mark_made(&mut self, profile: &Profile, waits: &[(CallId, Option<CallId>)], rate: f64) {
        self.mark_uploads(profile, waits, |before, bytes, _| {
            ((bytes as f64 * rate) as i64).min(before).max(0)
        });
    }

    /// Marks the host time for pinning these uploads first, as a loss: at most what the staging took.
    pub fn mark_pinned(&mut self, profile: &Profile, waits: &[(CallId, Option<CallId>)]) {
        let usual = self.learned.async_copy;
        self.mark_uploads(profile, waits, |_, bytes, call| {
            let pin = PIN_NS + (bytes as f64 * PIN_BYTE_NS) as i64;
            -pin.min(profile.calls.length(call) - usual).max(0)
        });
    }

    /// Marks pageable uploads. `of` gets the host time before the call, the bytes and the call.
    fn mark_uploads(
        &mut self,
        profile: &Profile,
        waits: &[(CallId, Option<CallId>)],
        of: impl Fn(i64, u64, CallId) -> i64,
    ) {
        for &(call, copy) in waits {
            let call = copy.unwrap_or(call);
            let Some(at) = self.step_of(call) else { continue };
            let copy = self.issue.ops_of(at).next().and_then(|op| profile.ops.copy(op));
            let uploaded = copy.filter(|copy| {
                copy.direction == Direction::HostToDevice && copy.host_memory != HostMemory::Pinned
            });
            if let Some(copy) = uploaded {
                let (before, _) = self.host_time(&profile.calls, at, call);
                self.made.insert(at, of(before, copy.bytes, call));
            }
        }
    }

    /// Host time that a fix spares; below 0 if it adds some.
    pub(in crate::cost) fn unmade(&self, at: StepIx, fix: Change) -> i64 {
        let made = self.made.get(&at).copied().unwrap_or(0);
        match fix {
            Change::Pinned => made,
            Change::OnGpu | Change::Drop => made.max(0),
            _ => 0,
        }
    }
}

type Launch = (StepIx, CallId, OpId);
/// Launches and their parts, from the read outwards.
type Launches<'a> = &'a [(Launch, Option<Part>)];

fn beside(before: Launches, after: Launches) -> Vec<(Launch, Role)> {
    let run = |launches: Launches, part: Part| -> Vec<Launch> {
        launches.iter().take_while(|(_, own)| *own == Some(part)).map(|(at, _)| *at).collect()
    };
    let (counts, selects, tests) =
        (run(before, Part::Count), run(after, Part::Select), run(before, Part::Test));
    let with = |list: Vec<Launch>, role: Role| list.into_iter().map(move |at| (at, role));
    if let Some((&compared, joined)) = tests.split_last() {
        return with(joined.to_vec(), Role::Select).chain([(compared, Role::Count)]).collect();
    }
    if counts.is_empty() || selects.is_empty() {
        return Vec::new();
    }
    let index = run(&after[selects.len()..], Part::Index).into_iter().take(1).collect();
    with(counts, Role::Count).chain(with(selects, Role::Select)).chain(with(index, Role::Index)).collect()
}
