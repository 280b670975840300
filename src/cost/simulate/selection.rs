//! What goes with a count of nonzero elements that nobody asks for any more.
//!
//! `x[mask]` and `nonzero()` count first, read the count to make room, then select and index. Where the shape is kept,
//! `torch.where(mask, a, b)`, one launch does it:
//!
//! ```text
//!  x[mask]  ···gap···[count][count][copy][sync]··[init][select][indices]···gap···[index]      0.2 ms of launches
//!  where    ···gap···                                                            [index]      the one in their place
//! ```
//! The gap before the count is Python's and stays, the one before the index goes: both lie inside one operator. Costs a
//! look at some eight calls for each wait.

use super::model::Program;
use super::step::{Role, StepIx, SubjectIx};
use crate::profile::Profile;
use crate::profile::ids::CallId;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Parts of names of PyTorch's kernels on either side of the read: what counts, what selects, what indexes.
const PARTS: [(&str, Role); 5] = [
    ("DeviceReduce", Role::Count),
    ("DeviceCompactInit", Role::Select),
    ("DeviceSelect", Role::Select),
    ("write_indices", Role::Select),
    ("index_elementwise_kernel", Role::Index),
];
/// Calls looked at on either side: two launches count and three select, getters and allocations between them.
const NEAR: usize = 8;

/// The kernels of `PARTS` by the id of their name.
pub fn kernels(names: &[(u32, Arc<str>)]) -> FxHashMap<u32, Role> {
    let role = |name: &str| PARTS.iter().find(|(part, _)| name.contains(part)).map(|(_, role)| *role);
    names.iter().filter_map(|(id, name)| Some((*id, role(name)?))).collect()
}

impl Program {
    /// Marks what goes with the waits of site `site` if they are dropped: calls of the waits, with their copies' calls.
    pub fn mark_selections(
        &mut self,
        profile: &Profile,
        kernels: &FxHashMap<u32, Role>,
        site: usize,
        waits: &[(CallId, Option<CallId>)],
    ) {
        for &(call, copy) in waits {
            let own = &profile.calls.by_thread[profile.calls.thread[call]];
            let place = |call: CallId| own.binary_search(&call).ok();
            let Some((first, last)) = place(copy.unwrap_or(call)).zip(place(call)) else { continue };
            let role = |&c: &CallId| {
                let at = self.step_of(c)?;
                let step = self.steps.get(at);
                let launches = step.ops == 1 && step.site.is_none();
                launches.then(|| {
                    (at, profile.ops.kernel(self.order[step.first_op]).and_then(|k| kernels.get(&k)))
                })
            };
            let before = own[..first].iter().rev().take(NEAR).filter_map(role);
            let after = own[last + 1..].iter().take(NEAR).filter_map(role);
            let is = |wanted: Role| move |(_, role): &(StepIx, Option<&Role>)| *role == Some(&wanted);
            let counts: Vec<StepIx> = before.take_while(is(Role::Count)).map(|(at, _)| at).collect();
            let selects: Vec<StepIx> = after.clone().take_while(is(Role::Select)).map(|(at, _)| at).collect();
            if counts.is_empty() || selects.is_empty() {
                continue;
            }
            let index = after.skip(selects.len()).take(1).filter(is(Role::Index)).map(|(at, _)| at).next();
            let parts =
                [(counts, Role::Count), (selects, Role::Select), (index.into_iter().collect(), Role::Index)];
            let mut beside = (0i64, 0i64);
            for (at, role) in parts.iter().flat_map(|(list, role)| list.iter().map(|at| (*at, *role))) {
                let step = self.steps.get(at);
                beside.0 += if role == Role::Count { 0 } else { step.gap };
                if role != Role::Index {
                    beside.0 += step.length;
                    beside.1 += step.ranks().map(|rank| self.ops.get(rank).duration).sum::<i64>();
                }
                self.steps.change(at, |step| (step.site, step.role) = (Some(SubjectIx::from(site)), role));
            }
            self.selections.insert(call, beside);
        }
    }
}
