//! What the stretch holds: outermost calls of the process, the ops that each issued, kernels with grids and operators.

use super::stretch::{Chosen, Window};
use crate::analysis::Analysed;
use crate::error::InputError;
use crate::profile::details::{Details, GpuModel, LaunchSize};
use crate::profile::nvtx::{Nvtx, Ranges, process};
use crate::profile::ops::OpKind;
use crate::replay::gemm::estimate::Grid;
use crate::replay::gemm::{Launch, names, shapes};
use crate::replay::plan::{Footprint, RecordedGpu};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// How far outwards an operator's range is looked for: `aten::mm` in `aten::matmul` in `aten::linear` in modules.
const REACH: usize = 8;

/// One outermost call.
pub struct Call {
    /// Index into the calls.
    pub call: u32,
    /// Its ops on the replayed device, in start order.
    pub ops: Vec<u32>,
    /// It issued something on another device.
    pub elsewhere: bool,
}

/// The stretch, read.
pub struct Recording {
    pub gpu: RecordedGpu,
    /// Index into the devices.
    pub device: Option<u32>,
    pub calls: Vec<Call>,
    /// Kernels on the device in launch order: op, and what is known of its launch.
    pub launches: Vec<(u32, Launch)>,
    /// By op: what a kernel took of the GPU.
    pub footprints: FxHashMap<u32, Footprint>,
    /// By op: bytes set.
    pub memsets: FxHashMap<u32, u64>,
    /// Ops on other devices.
    pub elsewhere: u64,
}

impl Recording {
    pub fn read(found: &mut Analysed, chosen: &Chosen, window: &Window) -> Result<Self, InputError> {
        let (calls, elsewhere) = calls(found, chosen, window);
        let ops: Vec<u32> = calls.iter().flat_map(|c| c.ops.iter().copied()).collect();
        let kernels =
            || ops.iter().copied().filter(|&op| found.profile.ops.kind[op as usize] == OpKind::Kernel);
        let ids: Vec<i64> = kernels().map(|op| i64::from(found.profile.ops.detail[op as usize])).collect();
        found.profile.strings.fetch(&found.profile.db, ids)?;
        let details = Details::read(&found.profile, &ops)?;
        let launches = launches(found, &calls, &details)?;
        Ok(Self {
            gpu: gpu(found, chosen)?,
            device: chosen.device,
            calls,
            launches,
            footprints: details.launches.iter().map(|(&op, size)| (op, footprint(size))).collect(),
            memsets: details.memsets,
            elsewhere,
        })
    }

    /// Time within `from..to` in which the device worked.
    pub fn busy_within(&self, found: &Analysed, from: i64, to: i64) -> i64 {
        let device = self.device.and_then(|d| found.devices.list.get(d as usize));
        device.map_or(0, |d| d.timeline.busy_within(from, to))
    }
}

fn footprint(size: &LaunchSize) -> Footprint {
    Footprint {
        blocks: size.blocks.iter().fold(1, |all, &n| all.saturating_mul(n)),
        threads: u32::try_from(size.threads).unwrap_or(u32::MAX),
        registers: size.registers,
        shared: size.shared,
    }
}

fn gpu(found: &Analysed, chosen: &Chosen) -> Result<RecordedGpu, InputError> {
    let Some(device) = chosen.device.and_then(|d| found.devices.list.get(d as usize)) else {
        return Ok(RecordedGpu::default());
    };
    let model = GpuModel::read(&found.profile, device.id)?;
    Ok(RecordedGpu {
        name: model.name.or_else(|| device.name.clone()).map(|n| n.to_string()),
        compute_capability: model.compute_capability,
        multiprocessors: model.multiprocessors,
        clock_hz: model.clock_hz,
        memory_bandwidth: model.memory_bandwidth,
    })
}

/// Outermost calls that begin in the stretch, in start order. Linear in its calls and in all ops.
fn calls(found: &Analysed, chosen: &Chosen, window: &Window) -> (Vec<Call>, u64) {
    let (table, ops) = (&found.profile.calls, &found.profile.ops);
    let first = table.start.partition_point(|&s| s < window.from);
    let end = table.start.partition_point(|&s| s < window.to);
    let mut open: FxHashMap<u32, (i64, u32)> = FxHashMap::default();
    let mut outer: FxHashMap<u32, u32> = FxHashMap::default();
    let mut calls: Vec<Call> = Vec::new();
    let mut place: FxHashMap<u32, usize> = FxHashMap::default();
    for call in first..end {
        let thread = table.thread[call];
        if process(table.threads[thread as usize]) != chosen.pid {
            continue;
        }
        let (until, around) = open.entry(thread).or_insert((i64::MIN, call as u32));
        if table.end[call] > *until || table.start[call] >= *until {
            *around = call as u32;
            place.insert(call as u32, calls.len());
            calls.push(Call { call: call as u32, ops: Vec::new(), elsewhere: false });
        }
        *until = table.end[call].max(*until);
        outer.insert(call as u32, *around);
    }
    let mut elsewhere = 0;
    let issued = |op: &usize| (window.from..window.to).contains(&found.profile.issued[*op]);
    for op in (0..ops.len()).filter(issued) {
        let key = ops.streams[ops.stream[op] as usize];
        let call = found.profile.correlation.call(key.pid, ops.correlation[op]);
        let Some(&at) = call.and_then(|c| outer.get(&c)).and_then(|c| place.get(c)) else { continue };
        if Some(found.devices.of_stream[ops.stream[op] as usize]) == chosen.device {
            calls[at].ops.push(op as u32);
        } else {
            calls[at].elsewhere = true;
            elsewhere += 1;
        }
    }
    (calls, elsewhere)
}

/// Kernels in launch order, those that may be products with the operators around them.
fn launches(
    found: &mut Analysed,
    calls: &[Call],
    details: &Details,
) -> Result<Vec<(u32, Launch)>, InputError> {
    let profile = &mut found.profile;
    let mut launches: Vec<(u32, Launch)> = Vec::new();
    // Index of the launch, thread and time of its call.
    let mut products: Vec<(usize, i64, i64)> = Vec::new();
    let mut is_product: FxHashMap<u32, bool> = FxHashMap::default();
    for call in calls {
        for &op in call.ops.iter().filter(|&&op| profile.ops.kind[op as usize] == OpKind::Kernel) {
            let i = op as usize;
            let id = profile.ops.detail[i];
            let name: Arc<str> = profile.strings.get(i64::from(id)).cloned().unwrap_or_else(|| "".into());
            if *is_product.entry(id).or_insert_with(|| names::read(&name).is_some()) {
                let c = call.call as usize;
                let tid = profile.calls.threads[profile.calls.thread[c] as usize];
                products.push((launches.len(), tid, profile.calls.start[c]));
            }
            let grid = details.launches.get(&op).map(|l| Grid { blocks: l.blocks, threads: l.threads });
            let ns = profile.ops.end[i] - profile.ops.start[i];
            let stream = profile.ops.stream[i];
            launches.push((op, Launch { name, grid, ns, stream, operator: None, linear: false }));
        }
    }
    if products.is_empty() {
        return Ok(launches);
    }
    let times: Vec<(i64, i64)> = products.iter().map(|p| (p.1, p.2)).collect();
    let wider;
    // A capture without backtraces has its ranges around launches already.
    let ranges: &Ranges = if profile.calls.twins.is_empty() {
        &profile.nvtx.ranges
    } else {
        wider = Nvtx::around(&profile.db, &times)?;
        &wider
    };
    let around = |tid, time| ranges.outwards(ranges.innermost(tid, time)).take(REACH);
    let mut wanted: Vec<u32> = times.iter().flat_map(|&(tid, time)| around(tid, time)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let texts = ranges.texts(&profile.db, &mut profile.strings, &wanted)?;
    let text = |range: u32| wanted.binary_search(&range).ok().and_then(|i| texts[i].as_deref());
    for (launch, tid, time) in products {
        let mut outwards = around(tid, time).filter_map(|r| Some((r, text(r)?)));
        let operator = outwards.find_map(|(r, t)| Some((shapes::read(t)?, u64::from(r), t)));
        if let Some((operator, range, own)) = operator {
            let is_linear = |t: &str| t.starts_with("aten::linear");
            launches[launch].1.linear = is_linear(own) || outwards.any(|(_, t)| is_linear(t));
            launches[launch].1.operator = Some((operator, range));
        }
    }
    Ok(launches)
}
