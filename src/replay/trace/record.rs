//! Content of the stretch: the process' outermost calls, their ops, kernels with grids and operators.

use super::stretch::Chosen;
use crate::analysis::Priced;
use crate::error::InputError;
use crate::profile::details::{Details, GpuModel};
use crate::profile::ids::{CallId, GlobalTid, OpId, RangeId, ThreadIx};
use crate::profile::nvtx::Ranges;
use crate::replay::gemm::estimate::Grid;
use crate::replay::gemm::{Launch, names, shapes};
use crate::replay::plan::Stretch;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How far outwards an operator is looked for: `aten::mm` in `aten::matmul` in `aten::linear` in modules.
const REACH: usize = 8;

pub struct Call {
    pub call: CallId,
    /// Its ops on the replayed device, in start order.
    pub ops: Vec<OpId>,
    /// It issued something on another device.
    pub elsewhere: bool,
}

pub struct Recording {
    pub gpu: GpuModel,
    pub calls: Vec<Call>,
    /// On the device, in launch order.
    pub launches: Vec<Launch>,
    pub details: Details,
}

impl Recording {
    pub fn read(found: &mut Priced, chosen: &Chosen, stretch: &Stretch) -> Result<Self, InputError> {
        let calls = calls(found, chosen, stretch);
        let ops: Vec<OpId> = calls.iter().flat_map(|c| c.ops.iter().copied()).collect();
        let names = ops.iter().filter_map(|&op| found.profile.ops.kernel(op));
        let ids: Vec<i64> = names.map(i64::from).collect();
        let profile = &mut found.profile;
        profile.strings.fetch(&profile.db, ids)?;
        let details = Details::read(&found.profile, &ops)?;
        let launches = launches(found, &calls, &details)?;
        let device = &found.devices.list[chosen.device];
        let mut gpu = GpuModel::read(&found.profile, device.id)?;
        gpu.name = gpu.name.or_else(|| device.name.as_ref().map(ToString::to_string));
        Ok(Self { gpu, calls, launches, details })
    }

    pub fn ops(&self) -> impl Iterator<Item = OpId> {
        self.calls.iter().flat_map(|c| c.ops.iter().copied())
    }
}

/// Outermost calls that begin in the stretch, in start order. Linear in its calls and in all ops.
fn calls(found: &Priced, chosen: &Chosen, stretch: &Stretch) -> Vec<Call> {
    let (table, ops) = (&found.profile.calls, &found.profile.ops);
    // The open outermost call: its end, and its index in `calls`.
    let mut open: FxHashMap<ThreadIx, (i64, usize)> = FxHashMap::default();
    let mut calls: Vec<Call> = Vec::new();
    let mut place: FxHashMap<CallId, usize> = FxHashMap::default();
    for call in
        table.starting(stretch.from_ns, stretch.to_ns).filter(|&c| table.tid(c).process() == chosen.pid)
    {
        let (until, around) = open.entry(table.thread(call)).or_insert((i64::MIN, 0));
        if table.end(call) > *until || table.start(call) >= *until {
            *around = calls.len();
            calls.push(Call { call, ops: Vec::new(), elsewhere: false });
        }
        *until = table.end(call).max(*until);
        place.insert(call, *around);
    }
    let issued = |op: &OpId| (stretch.from_ns..stretch.to_ns).contains(&found.profile.issued(*op));
    for op in ops.ids().filter(issued) {
        let Some(&at) = found.profile.issuer(op).and_then(|call| place.get(&call)) else { continue };
        if found.devices.of_op(ops, op) == chosen.device {
            calls[at].ops.push(op);
        } else {
            calls[at].elsewhere = true;
        }
    }
    calls
}

/// Kernels in launch order; possible products with the operators around them.
fn launches(found: &mut Priced, calls: &[Call], details: &Details) -> Result<Vec<Launch>, InputError> {
    let profile = &mut found.profile;
    let mut launches = Vec::new();
    // Index of the launch, thread and time of its call.
    let mut products: Vec<(usize, GlobalTid, i64)> = Vec::new();
    let mut is_product: FxHashMap<u32, bool> = FxHashMap::default();
    for call in calls {
        for (op, id) in call.ops.iter().filter_map(|&op| Some((op, profile.ops.kernel(op)?))) {
            let name: Arc<str> = profile.kernel_name(op).cloned().unwrap_or_else(|| "".into());
            if *is_product.entry(id).or_insert_with(|| names::read(&name).is_some()) {
                products.push((launches.len(), profile.calls.tid(call.call), profile.calls.start(call.call)));
            }
            let grid = details.launches.get(&op).map(|l| Grid { blocks: l.blocks, threads: l.threads });
            let (ns, stream) = (profile.ops.length(op), profile.ops.stream(op));
            launches.push(Launch { op, name, grid, ns, stream, operator: None, linear: false });
        }
    }
    if products.is_empty() {
        return Ok(launches);
    }
    let times: Vec<(GlobalTid, i64)> = products.iter().map(|p| (p.1, p.2)).collect();
    let wider;
    // A capture without backtraces has its ranges around launches already.
    let ranges: &Ranges = if profile.calls.twins.is_empty() {
        &profile.nvtx.ranges
    } else {
        wider = profile.nvtx.around(&profile.db, &times)?;
        &wider
    };
    let around = |tid, time| ranges.outwards(ranges.innermost(tid, time)).take(REACH);
    let wanted: BTreeSet<RangeId> = times.iter().flat_map(|&(tid, time)| around(tid, time)).collect();
    let wanted: Vec<RangeId> = wanted.into_iter().collect();
    let texts = ranges.texts(&profile.db, &mut profile.strings, &wanted)?;
    let text = |range: RangeId| wanted.binary_search(&range).ok().and_then(|i| texts[i].as_deref());
    for (launch, tid, time) in products {
        let mut outwards = around(tid, time).filter_map(|r| Some((r, text(r)?)));
        let operator = outwards.find_map(|(r, t)| Some((shapes::read(t)?, r.index() as u64, t)));
        if let Some((operator, range, own)) = operator {
            let is_linear = |t: &str| t.starts_with("aten::linear");
            launches[launch].linear = is_linear(own) || outwards.any(|(_, t)| is_linear(t));
            launches[launch].operator = Some((operator, range));
        }
    }
    Ok(launches)
}
