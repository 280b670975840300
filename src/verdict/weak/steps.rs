//! Where the optimizer's step ends: what a loop reads after it, with no layer to come, it mostly reports.
//!
//! ```text
//!  iteration 3 ├─[gemm][gemm][adam]──── done ────┤    no product follows within the iteration
//!  no ranges     [gemm][gemm][adam] just done [gemm]  no product since the update
//! ```
//! Cost: one pass over the ops and their distinct names; without iterations, [`LOOK_BACK`] ops a wait.

use crate::error::InputError;
use crate::iterations::Iterations;
use crate::profile::Profile;
use crate::profile::ids::{GlobalPid, OpId};
use crate::profile::ops::{Ops, multiplies_matrices};
use crate::waits::Wait;
use crate::waits::device::Devices;
use rustc_hash::{FxHashMap, FxHashSet};

pub struct Steps {
    updates: FxHashSet<u32>,
    products: FxHashSet<u32>,
    /// One entry per iteration.
    last: FxHashMap<GlobalPid, Vec<Last>>,
}

#[derive(Clone, Copy, Default)]
struct Last {
    update: Option<i64>,
    product: Option<i64>,
}

/// Kernels over lists of tensors that update no parameters: gradient norms, unscaling, clipping.
const NO_UPDATE: &[&str] = &["LpNorm", "non_finite", "BinaryOpScalarTensor"];
const OPTIMIZERS: &[&str] = &["adam", "Adam", "sgd", "Sgd", "lamb_"];
/// Ops looked at before a wait, where no range marks iterations.
const LOOK_BACK: usize = 64;

impl Steps {
    /// # Errors
    /// Names could not be read.
    pub fn new(profile: &mut Profile, iterations: Option<&Iterations>) -> Result<Self, InputError> {
        let names = profile.kernel_names()?;
        let named = |test: fn(&str) -> bool| -> FxHashSet<u32> {
            names.iter().filter(|(_, name)| test(name)).map(|(id, _)| *id).collect()
        };
        let (updates, products) = (named(is_update), named(multiplies_matrices));
        let mut steps = Self { updates, products, last: FxHashMap::default() };
        if let Some(iterations) = iterations {
            steps.last = steps.of_each(profile, iterations);
        }
        Ok(steps)
    }

    fn of_each(&self, profile: &Profile, iterations: &Iterations) -> FxHashMap<GlobalPid, Vec<Last>> {
        let none = |own: &Iterations| (own.tid.process(), vec![Last::default(); own.spans.len()]);
        let mut last: FxHashMap<GlobalPid, Vec<Last>> = iterations.of_processes().map(none).collect();
        let ops = &profile.ops;
        let mut near = 0;
        for op in ops.ids() {
            let Some(update) = self.is_update(ops, op) else { continue };
            let pid = ops.pid(op);
            let Some((own, last)) = iterations.of(pid).zip(last.get_mut(&pid)) else { continue };
            let launched = profile.issued_by(op);
            if let Some(n) = own.near(launched, &mut near) {
                let slot = if update { &mut last[n].update } else { &mut last[n].product };
                *slot = (*slot).max(Some(launched));
            }
        }
        last
    }

    /// Whether an op updates parameters; `None` where it neither does nor multiplies matrices.
    fn is_update(&self, ops: &Ops, op: OpId) -> Option<bool> {
        let name = ops.kernel(op)?;
        let update = self.updates.contains(&name);
        (update || self.products.contains(&name)).then_some(update)
    }

    /// Whether the iteration's optimizer was launched before the wait, and no update or product after.
    pub fn done(&self, iterations: &Iterations, wait: &Wait) -> bool {
        let last = iterations.at(wait.start).and_then(|n| self.last.get(&wait.pid)?.get(n));
        last.is_some_and(|last| {
            let before = |time: i64| time < wait.start;
            last.update.is_some_and(before) && last.product.is_none_or(before)
        })
    }

    /// Whether an update came before the wait on its stream, and no product since.
    pub fn just_done(&self, profile: &Profile, devices: &Devices, wait: &Wait) -> bool {
        let Some(op) = wait.awaited else { return false };
        let ops = &profile.ops;
        let list = &devices.stream_ops[ops.stream(op)];
        let end = list.partition_point(|&o| (ops.start(o), o) < (ops.start(op), op));
        let mut before = list[..end].iter().rev().take(LOOK_BACK);
        before.find_map(|&o| self.is_update(ops, o)).unwrap_or(false)
    }
}

/// Fused and multi-tensor optimizers.
fn is_update(name: &str) -> bool {
    let over_lists = name.contains("multi_tensor_apply") && !NO_UPDATE.iter().any(|n| name.contains(n));
    over_lists || OPTIMIZERS.iter().any(|n| name.contains(n))
}
