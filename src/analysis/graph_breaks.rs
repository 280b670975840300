//! Calls and operations besides waits that keep an NVTX range from being captured as a CUDA graph.
//!
//! ```text
//!  range   [forward                                                  ]
//!  host      [cudaMalloc]   [memcpy, pageable]   [query]   [launch]
//!  stream 7                     [copy]                                    most kernels of the range
//!  stream 13                                                 [kernel]     another stream
//! ```
//! Cost: one pass over the calls' rows, for the names, and one over the operations.

use super::filter;
use crate::error::InputError;
use crate::model::{Breaks, GraphBreak};
use crate::profile::Profile;
use crate::profile::elsewhere::{Asked, LastMarks, NamedCall, calls_named};
use crate::profile::ids::{CallId, GlobalPid, OpId, StreamIx};
use crate::profile::strings::{base_name, ids_of};
use crate::sites::context::Context;
use crate::sites::frames::PathRules;
use crate::vocabulary::{ApiFamily, Direction, HostMemory};
use crate::waits::Waits;
use crate::waits::api::family;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Longest time from a backtrace to its call. nsys begins a backtrace first: among 12,529 calls of three
/// captures (2025.3), 99 of 100 began 43 to 340 ns later. In a trace both begin at once.
const BEFORE_CALL_NS: i64 = 1_000;

struct Obstacle {
    kind: GraphBreak,
    call: NamedCall,
}

/// Obstacles in ranges of that name, by kind and line.
pub fn find(
    profile: &mut Profile,
    context: &mut Context,
    rules: &PathRules,
    waits: &Waits,
    range: &str,
) -> Result<Vec<Breaks>, InputError> {
    let Some(inside) = profile.nvtx.wanted.iter().find(|(name, _)| filter::is_of(name.as_bytes(), range))
    else {
        return Ok(Vec::new());
    };
    let inside = |pid: GlobalPid, time: i64| inside.1.hold(pid, time);
    let mut found = calls(profile, &inside)?;
    // A copy that a wait completes belongs to the wait.
    let waits: FxHashSet<CallId> =
        waits.iter().flat_map(|wait| [Some(wait.call), wait.copy_call]).flatten().collect();
    found.extend(operations(profile, &waits, &inside));
    let asked =
        |one: &Obstacle| Asked { process: one.call.tid.process(), time: one.call.start.saturating_add(1) };
    let marks = LastMarks::read(&profile.db, found.iter().map(asked).collect())?;
    let mark = |one: &Obstacle| {
        let near = |start: i64| start >= one.call.start.saturating_sub(BEFORE_CALL_NS);
        marks
            .before(asked(one))
            .iter()
            .find(|mark| mark.tid == one.call.tid && near(mark.start))
            .map(|mark| mark.rowid)
    };
    let marked: Vec<Option<i64>> = found.iter().map(mark).collect();
    let mut rowids: Vec<i64> = marked.iter().flatten().copied().collect();
    rowids.sort_unstable();
    rowids.dedup();
    let stacks = context.stacks.read(profile, &rowids)?;
    profile.strings.fetch(&profile.db, found.iter().map(|one| one.call.name))?;
    let mut by_line = BTreeMap::new();
    for (one, mark) in found.iter().zip(marked) {
        let stack = mark.and_then(|rowid| stacks.stack[rowids.binary_search(&rowid).ok()?]);
        let frame = stack.and_then(|stack| {
            let frames = &context.stacks.stacks[stack];
            Some(rules.frame(&frames[rules.user_index(frames)?]))
        });
        let api =
            profile.strings.get(one.call.name).map_or_else(String::new, |name| base_name(name).to_owned());
        let line = frame.as_ref().map(|f| (f.file.clone(), f.line, f.function.clone()));
        let row = by_line.entry((one.kind, line, api.clone())).or_insert_with(|| Breaks {
            kind: one.kind,
            api,
            calls: 0,
            user_frame: frame,
            fix: one.kind.fix().to_owned(),
        });
        row.calls += 1;
    }
    Ok(by_line.into_values().collect())
}

/// Calls that a capture forbids, or that do not become part of a graph.
fn calls(profile: &Profile, inside: &dyn Fn(GlobalPid, i64) -> bool) -> Result<Vec<Obstacle>, InputError> {
    let named = |wanted: fn(&str) -> bool| {
        move |text: &[u8]| std::str::from_utf8(text).is_ok_and(|name| wanted(base_name(name)))
    };
    let allocates =
        named(|name| family(name) == Some(ApiFamily::DeviceAllocation) && !name.ends_with("Async"));
    let asks =
        named(|name| matches!(name, "cudaEventQuery" | "cudaStreamQuery" | "cuEventQuery" | "cuStreamQuery"));
    let calls_back = named(|name| {
        matches!(
            name,
            "cudaLaunchHostFunc" | "cuLaunchHostFunc" | "cudaStreamAddCallback" | "cuStreamAddCallback"
        )
    });
    let ids = ids_of(&profile.db, &[&allocates, &asks, &calls_back])?;
    let kinds = [GraphBreak::Allocation, GraphBreak::Query, GraphBreak::Callback];
    let kind_of: FxHashMap<i64, GraphBreak> = ids
        .into_iter()
        .zip(kinds)
        .flat_map(|(ids, kind)| ids.into_iter().map(move |id| (id, kind)))
        .collect();
    let wanted: FxHashSet<i64> = kind_of.keys().copied().collect();
    let calls = calls_named(&profile.db, &wanted)?;
    let calls = calls.into_iter().filter(|call| inside(call.tid.process(), call.start));
    Ok(calls.filter_map(|call| Some(Obstacle { kind: *kind_of.get(&call.name)?, call })).collect())
}

/// Copies of host memory without a wait of their own, and kernels on another stream than most.
fn operations(
    profile: &Profile,
    waits: &FxHashSet<CallId>,
    inside: &dyn Fn(GlobalPid, i64) -> bool,
) -> Vec<Obstacle> {
    let (ops, calls) = (&profile.ops, &profile.calls);
    let issued = |op: OpId| {
        let call = profile.issuer(op).filter(|call| !waits.contains(call))?;
        let (tid, start) = (calls.tid(call), calls.start(call));
        inside(tid.process(), start).then(|| NamedCall { tid, start, name: calls.names[calls.name(call)].id })
    };
    let all: Vec<(OpId, NamedCall)> = ops.ids().filter_map(|op| Some((op, issued(op)?))).collect();
    let mut kernels: FxHashMap<StreamIx, usize> = FxHashMap::default();
    for (op, _) in all.iter().filter(|(op, _)| ops.is_kernel(*op)) {
        *kernels.entry(ops.stream(*op)).or_default() += 1;
    }
    // Each process has a main stream, the one with most kernels.
    let mut main: FxHashMap<GlobalPid, (usize, Reverse<StreamIx>)> = FxHashMap::default();
    for (&stream, &count) in &kernels {
        let most = main.entry(ops.streams[stream].pid).or_insert((count, Reverse(stream)));
        *most = (count, Reverse(stream)).max(*most);
    }
    let main = |pid: GlobalPid| main.get(&pid).map(|most| most.1.0);
    let kind = |op: OpId| match ops.copy(op) {
        Some(copy) if !matches!(copy.direction, Direction::HostToDevice | Direction::DeviceToHost) => None,
        Some(copy) if copy.host_memory == HostMemory::Pageable => Some(GraphBreak::PageableCopy),
        Some(copy) if copy.direction == Direction::HostToDevice => Some(GraphBreak::CpuTensor),
        Some(_) => None,
        None if ops.is_kernel(op) && main(ops.pid(op)) != Some(ops.stream(op)) => {
            Some(GraphBreak::OtherStream)
        }
        None => None,
    };
    all.into_iter().filter_map(|(op, call)| Some(Obstacle { kind: kind(op)?, call })).collect()
}
