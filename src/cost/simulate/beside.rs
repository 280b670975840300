//! What goes with a read that nobody asks for any more, besides the read.
//!
//! `x[mask]` and `nonzero()` count first, read the count to make room, then select and index. Where the shape is kept,
//! `torch.where(mask, a, b)`, one launch does it. A check of values compares, and reads whether all hold: switched off, it
//! compares nothing either.
//!
//! ```text
//!  x[mask]  ···gap···[count][count][copy][sync]··[init][select][indices]···gap···[index]      0.2 ms of launches
//!  where    ···gap···                                                            [index]      the one in their place
//!
//!  checked  ···gap···[compare]··[all]··[copy][sync]···[use]                                   as validate_args=True
//!  not      ···gap·································[use]
//! ```
//! The gap before the first of them is Python's, of what comes before too, and stays; the one before the index goes: both
//! lie inside one operator. Costs a look at some eight calls for each wait.
//!
//! An upload of what the host fills or joins right before, where the advice is to do that on the GPU:
//!
//! ```text
//!  host   [launch]··torch.cat, torch.ones~~~~~~~~~~~~[copy====][sync]      ~ : goes as well, FRESH_NS a byte of it at most
//! ```

use super::model::Program;
use super::step::{Role, StepIx, SubjectIx};
use crate::cost::range::ORDINARY_NS;
use crate::profile::Profile;
use crate::profile::ids::{CallId, OpId};
use crate::vocabulary::{Change, Direction};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What a kernel is to a read before or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It counts what a mask selects.
    Count,
    /// It selects.
    Select,
    /// It takes what was selected.
    Index,
    /// It compares values, or joins what comparisons gave.
    Test,
}

/// Parts of names of PyTorch's kernels.
const PARTS: [(&str, Part); 15] = [
    ("DeviceReduce", Part::Count),
    ("DeviceCompactInit", Part::Select),
    ("DeviceSelect", Part::Select),
    ("write_indices", Part::Select),
    ("index_elementwise_kernel", Part::Index),
    ("CompareEqFunctor", Part::Test),
    ("CompareFunctor", Part::Test),
    ("compare_scalar_kernel", Part::Test),
    ("BitwiseAndFunctor<bool", Part::Test),
    ("BitwiseOrFunctor<bool", Part::Test),
    ("logical_and_kernel", Part::Test),
    ("logical_or_kernel", Part::Test),
    ("logical_not_kernel", Part::Test),
    ("::and_kernel_cuda", Part::Test),
    ("::or_kernel_cuda", Part::Test),
];
/// Calls looked at on either side: two launches count and three select, getters and allocations between them.
const NEAR: usize = 8;
/// Host time for each byte of fresh memory that a thread faults in and fills: the two halves of simclr's batch, joined
/// before their upload, take 9.7 ms past [`ORDINARY_NS`] for 54 MiB; ones and zeros of retinanet, beside busy loaders, ten times that.
const FRESH_NS: f64 = 0.25;

/// The kernels of `PARTS` by the id of their name.
pub fn kernels(names: &[(u32, Arc<str>)]) -> FxHashMap<u32, Part> {
    let part = |name: &str| PARTS.iter().find(|(sign, _)| name.contains(sign)).map(|(_, part)| *part);
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
    /// Marks what goes with the waits of site `site` if they are dropped: calls of the waits, with their copies' calls.
    pub fn mark_beside(
        &mut self,
        profile: &Profile,
        kernels: &FxHashMap<u32, Part>,
        site: usize,
        waits: &[(CallId, Option<CallId>)],
    ) {
        for &(call, copy) in waits {
            let own = &profile.calls.by_thread[profile.calls.thread(call)];
            let place = |call: CallId| own.binary_search(&call).ok();
            let Some((first, last)) = place(copy.unwrap_or(call)).zip(place(call)) else { continue };
            let launch = |&c: &CallId| {
                let at = self.step_of(c)?;
                let step = self.steps.get(at);
                // What another read has taken along ends the run.
                let part = || part_of(profile, kernels, self.order.op(step.first_op));
                (step.ops == 1).then(|| (at, step.site.is_none().then(part).flatten()))
            };
            let before: Vec<_> = own[..first].iter().rev().take(NEAR).filter_map(launch).collect();
            let after: Vec<_> = own[last + 1..].iter().take(NEAR).filter_map(launch).collect();
            let goes = beside(&before, &after);
            let mut cost = (0i64, 0i64);
            for &(at, role) in &goes {
                let step = self.steps.get(at);
                cost.0 += if role == Role::Count { 0 } else { step.gap };
                if role != Role::Index {
                    cost.0 += step.length;
                    cost.1 += step.ranks().map(|rank| self.ops.get(rank).duration).sum::<i64>();
                }
                self.steps.change(at, |step| (step.site, step.role) = (Some(SubjectIx::from(site)), role));
            }
            if !goes.is_empty() {
                self.beside.insert(call, cost);
            }
        }
    }

    /// Marks how long the host makes what some calls upload, by calls of waits with their copies' calls: past what Python
    /// takes between two calls anyway, as long as that many bytes take that are faulted in and written.
    pub fn mark_made(&mut self, profile: &Profile, waits: &[(CallId, Option<CallId>)]) {
        for &(call, copy) in waits {
            let Some(at) = self.step_of(copy.unwrap_or(call)) else { continue };
            let step = self.steps.get(at);
            let copy = step.ranks().next().and_then(|rank| profile.ops.copy(self.order.op(rank)));
            let uploaded = copy.filter(|copy| step.staged && copy.direction == Direction::HostToDevice);
            let most = uploaded.map_or(0, |copy| (copy.bytes as f64 * FRESH_NS) as i64);
            let made = (step.gap - i64::from(step.overhead) - ORDINARY_NS).min(most);
            if made > 0 {
                self.made.insert(at, made);
            }
        }
    }

    /// What a fix spares of that.
    pub(in crate::cost) fn unmade(&self, at: StepIx, fix: Change) -> i64 {
        let elsewhere = matches!(fix, Change::Pinned | Change::OnGpu | Change::Drop);
        self.made.get(&at).copied().filter(|_| elsewhere).unwrap_or(0)
    }
}

/// Launches and their parts, from the read outwards.
type Launches<'a> = &'a [(StepIx, Option<Part>)];

/// What of the launches before and after a read goes with it.
fn beside(before: Launches, after: Launches) -> Vec<(StepIx, Role)> {
    let run = |launches: Launches, part: Part| -> Vec<StepIx> {
        launches.iter().take_while(|(_, own)| *own == Some(part)).map(|(at, _)| *at).collect()
    };
    let (counts, selects, tests) =
        (run(before, Part::Count), run(after, Part::Select), run(before, Part::Test));
    let with = |list: Vec<StepIx>, role: Role| list.into_iter().map(move |at| (at, role));
    if let Some((&compared, joined)) = tests.split_last() {
        return with(joined.to_vec(), Role::Select).chain([(compared, Role::Count)]).collect();
    }
    if counts.is_empty() || selects.is_empty() {
        return Vec::new();
    }
    let index = run(&after[selects.len()..], Part::Index).into_iter().take(1).collect();
    with(counts, Role::Count).chain(with(selects, Role::Select)).chain(with(index, Role::Index)).collect()
}
