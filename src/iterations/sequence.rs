//! A process's work as one sequence: each launch, copy, memset and wait of all threads, in order of calls.
//!
//! ```text
//!  main       [copy]  [gemm] [gelu] [gemm]                        [adam] [sync]
//!  autograd                                [gemm'] [gelu'] [gemm']
//!  sequence    copy    gemm   gelu   gemm   gemm'   gelu'   gemm'  adam   sync
//! ```
//! An event's symbol is the kernel's name, the copy's direction or the waiting call: these stay the same from
//! iteration to iteration, in any order of the rows. If nothing repeats, kernels that multiply matrices
//! become one symbol, since libraries pick another per batch length. That says less, so more must repeat
//! ([`SURE_OF_LESS`]). If still nothing repeats, iterations may differ in length, as in a decoder that goes
//! from word to word: between two waits or reads only the first of each symbol counts, and nine in ten
//! iterations must hold a wait or read. Threads are joined, since the backward pass has a thread of its own:
//! on the main thread alone a training step and a validation step look alike.

use super::found::{self, Kind, Loop, Loops, Turn};
use super::{Iterations, Other};
use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::coded::Dictionary;
use crate::profile::ids::{CallId, GlobalPid, OpId};
use crate::profile::ops::{OpKind, is_of_optimizer, multiplies_matrices};
use crate::vocabulary::Direction;
use rustc_hash::{FxHashMap, FxHashSet};
use typed_index_collections::TiVec;

/// An event: class in the upper half, number within the class in the lower.
type Key = u64;

const KERNEL: Key = 1 << 32;
const COPY: Key = 2 << 32;
const MEMSET: Key = 3 << 32;
const GRAPH: Key = 4 << 32;
const WAIT: Key = 5 << 32;
const UPLOAD: Key = 6 << 32;
const DOWNLOAD: Key = 7 << 32;
/// Any kernel that multiplies matrices.
const PRODUCT: Key = KERNEL | u32::MAX as Key;

/// Least confidence if products share a symbol. Captures whose batches differ in length reach 0.96 and 0.99;
/// layers of a pass with half of its launches outside the capture reach 0.87.
const SURE_OF_LESS: f64 = 0.9;

/// Iterations in the processes' sequences, the busiest process first; `None` where nothing surely repeats.
/// The longest of several loops counts, and one inside `warm_up` only if there is no other.
pub fn find(
    profile: &mut Profile,
    waiting: &[CallId],
    warm_up: Option<(i64, i64)>,
) -> Result<Option<Iterations>, InputError> {
    let mut keys = Keys::new(profile, waiting);
    let names = profile.kernel_names()?;
    let kernels = |is: fn(&str) -> bool| -> FxHashSet<Key> {
        names.iter().filter(|(_, name)| is(name)).map(|(id, _)| KERNEL | Key::from(*id)).collect()
    };
    keys.steps = kernels(is_of_optimizer);
    let mut events: FxHashMap<GlobalPid, Vec<CallId>> = FxHashMap::default();
    for call in profile.calls.ids().filter(|&call| keys.of(call) != 0) {
        events.entry(profile.calls.tid(call).process()).or_default().push(call);
    }
    let mut processes: Vec<(GlobalPid, Vec<CallId>)> = events.into_iter().collect();
    processes.sort_unstable_by_key(|(pid, calls)| (std::cmp::Reverse(calls.len()), *pid));
    let found = |profile: &Profile, keys: &Keys, sure| {
        let each =
            processes.iter().filter_map(|(_, calls)| of_process(profile, keys, calls, (sure, warm_up)));
        Iterations::of_job(each)
    };
    if let Some(exactly) = found(profile, &keys, Some(found::SURE)) {
        return Ok(Some(exactly));
    }
    let products = kernels(multiplies_matrices);
    keys.all.iter_mut().filter(|key| products.contains(key)).for_each(|key| *key = PRODUCT);
    if let Some(alike) = found(profile, &keys, Some(SURE_OF_LESS)) {
        return Ok(Some(alike));
    }
    processes.iter_mut().for_each(|(_, calls)| keys.once(calls));
    let waits = |found: &Iterations, calls: &[CallId]| {
        let events = calls.iter().filter(|&&call| keys.is_waited_for(call));
        let counts = found.counts(events.map(|&call| profile.calls.start(call)));
        counts.with * 10 >= counts.all * 9
    };
    let of = |calls: &[CallId], sure| of_process(profile, &keys, calls, (sure, warm_up));
    let varying = |calls: &[CallId]| of(calls, Some(SURE_OF_LESS)).filter(|found| waits(found, calls));
    let varying = Iterations::of_job(processes.iter().filter_map(|(_, calls)| varying(calls)));
    Ok(varying.or_else(|| Iterations::of_job(processes.iter().filter_map(|(_, calls)| of(calls, None)))))
}

struct Keys {
    /// Index into `all`.
    number: TiVec<CallId, u32>,
    /// The first is 0: no event.
    all: Vec<Key>,
    steps: FxHashSet<Key>,
}

impl Keys {
    fn new(profile: &Profile, waiting: &[CallId]) -> Self {
        let mut number: TiVec<CallId, u32> = vec![0; profile.calls.len()].into();
        let mut all = Dictionary::from_iter([0]);
        for op in profile.ops.ids() {
            let key = key(profile, op);
            // All nodes of a graph share one call.
            if let Some(call) = profile.issuer(op).filter(|&call| all[number[call] as usize] < key) {
                number[call] = all.insert_full(key).0 as u32;
            }
        }
        for &call in waiting {
            if number[call] == 0 {
                let key = WAIT | profile.calls.name(call).index() as Key;
                number[call] = all.insert_full(key).0 as u32;
            }
        }
        Self { number, all: all.into_iter().collect(), steps: FxHashSet::default() }
    }

    fn of(&self, call: CallId) -> Key {
        self.all[self.number[call] as usize]
    }

    /// Keeps the first of each event between two waits.
    fn once(&self, calls: &mut Vec<CallId>) {
        let mut seen = FxHashSet::default();
        calls.retain(|&call| {
            if self.is_waited_for(call) {
                seen.clear();
            }
            seen.insert(self.of(call))
        });
    }

    fn is_waited_for(&self, call: CallId) -> bool {
        matches!(self.of(call) >> 32 << 32, WAIT | DOWNLOAD)
    }
}

fn key(profile: &Profile, op: OpId) -> Key {
    match profile.ops.kind(op) {
        OpKind::Kernel => KERNEL | Key::from(profile.ops.kernel(op).unwrap_or(0)),
        OpKind::Memset => MEMSET,
        OpKind::GraphLaunch => GRAPH,
        OpKind::Memcpy => match profile.ops.copy(op).map(|copy| copy.direction) {
            Some(Direction::HostToDevice) => UPLOAD,
            Some(Direction::DeviceToHost) => DOWNLOAD,
            _ => COPY,
        },
    }
}

fn of_process(
    profile: &Profile,
    keys: &Keys,
    calls: &[CallId],
    (sure, warm_up): (Option<f64>, Option<(i64, i64)>),
) -> Option<Iterations> {
    let mut numbers: FxHashMap<Key, u32> = FxHashMap::default();
    let mut kinds = Vec::new();
    let mut symbols = Vec::with_capacity(calls.len());
    for &call in calls {
        let next = numbers.len() as u32;
        let key = keys.of(call);
        let number = *numbers.entry(key).or_insert(next);
        if number == next {
            kinds.push(match key >> 32 << 32 {
                KERNEL if keys.steps.contains(&key) => Kind::Step,
                KERNEL => Kind::Launch,
                GRAPH => Kind::Graph,
                UPLOAD => Kind::Upload,
                DOWNLOAD => Kind::Download,
                WAIT => Kind::Wait,
                _ => Kind::Other,
            });
        }
        symbols.push(number);
    }
    let Loops { loops, inner } = found::find(&symbols, &kinds, sure);
    let mut timed: Vec<(Vec<(i64, i64)>, &Loop)> =
        loops.iter().map(|found| (spans(profile, calls, &found.turns), found)).collect();
    let total =
        |spans: &[(i64, i64)]| spans.iter().map(|s| s.1.saturating_sub(s.0)).fold(0, i64::saturating_add);
    let warms_up = |spans: &[(i64, i64)]| {
        warm_up.is_some_and(|(from, to)| spans.iter().all(|span| from <= span.1 && span.0 <= to))
    };
    timed.sort_by_key(|(spans, _)| (warms_up(spans), std::cmp::Reverse(total(spans)), spans[0].0));
    let others =
        timed.iter().skip(1).map(|(spans, _)| Other { count: spans.len(), start: spans[0].0 }).collect();
    let (spans, main) = timed.into_iter().next()?;
    Some(Iterations {
        name: "iteration #".to_owned(),
        tid: profile.calls.tid(calls[main.turns[0].from]),
        spans,
        confidence: Some(main.confidence),
        others,
        inner,
        start_up: 0,
        ranks: Vec::new(),
    })
}

/// Spans from start to start; the last before a break ends with its calls.
fn spans(profile: &Profile, calls: &[CallId], turns: &[Turn]) -> Vec<(i64, i64)> {
    let start = |at: usize| profile.calls.start(calls[at]);
    let span = |i: usize| {
        let Turn { from, to, .. } = turns[i];
        let until = if turns.get(i + 1).is_some_and(|next| next.from == to) {
            start(to)
        } else {
            // The next event, on any thread, is outside.
            let end = (from..to).map(|at| profile.calls.end(calls[at])).max();
            end.unwrap_or(0).min(if to < calls.len() { start(to) - 1 } else { i64::MAX })
        };
        (start(from), until.max(start(from)))
    };
    (0..turns.len()).map(span).collect()
}
