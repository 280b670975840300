//! GPU idle time in which each thread that launches on the GPU was blocked by something other than CUDA.
//!
//! ```text
//!  main      [launch a] [read-----------------]   [launch b]
//!  autograd  ··[pthread_cond_wait-------------------------------]  [launch c]
//!  GPU          [a---]                               [b---]            [c---]
//!  counted           |---- blocked in read ---|
//! ```
//! A thread counts from its first launch on that GPU to its last. The call that ends first names the stretch:
//! the other threads wait for that call's thread. Cost: a pass over the ops, and merges of sorted stretches.

use crate::profile::Profile;
use crate::profile::blocked::Blocked;
use crate::profile::ids::{CallId, ThreadIx};
use crate::waits::device::{DeviceIx, Devices};
use typed_index_collections::TiVec;

/// A stretch in which a GPU was idle and the threads that launch on it were blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    pub start: i64,
    pub end: i64,
    /// Thread whose call ended first, and its function's StringIds id. `None`: no thread launches.
    pub by: Option<(ThreadIx, Option<i64>)>,
}

pub struct IdleBlocked {
    /// Disjoint and ascending.
    pub of_device: TiVec<DeviceIx, Vec<Idle>>,
    /// Function that blocks longest (a StringIds id), and its Python line or NVTX range if known.
    pub at: Option<(Option<i64>, String)>,
}

impl Idle {
    pub fn call(&self) -> Option<i64> {
        self.by.and_then(|by| by.1)
    }
}

type Launches = TiVec<ThreadIx, Option<(CallId, CallId)>>;

pub fn find(profile: &Profile, devices: &Devices, blocked: &Blocked) -> TiVec<DeviceIx, Vec<Idle>> {
    let calls = &profile.calls;
    let none = || calls.threads.iter().map(|_| None).collect();
    let mut launches: TiVec<DeviceIx, Launches> = devices.list.iter().map(|_| none()).collect();
    for op in profile.ops.ids() {
        if let Some(call) = profile.issuer(op) {
            let known = &mut launches[devices.of_op(&profile.ops, op)][calls.thread(call)];
            *known = Some(known.map_or((call, call), |(first, last)| (first.min(call), last.max(call))));
        }
    }
    let of_device = |(device, launches): (DeviceIx, &Launches)| {
        let own = launches.iter_enumerated().filter_map(|(thread, known)| Some((thread, (*known)?)));
        let waits = own.map(|(thread, (first, last))| {
            waits_of(blocked, thread, (calls.start(first), calls.start(last)))
        });
        let all = waits.reduce(|a, b| both(&a, &b)).unwrap_or_default();
        let timeline = &devices.list[device].timeline;
        let idle = |one: Idle| {
            timeline.idle_within(one.start, one.end).map(move |(start, end)| Idle { start, end, ..one })
        };
        all.into_iter().filter(|one| one.by.is_some()).flat_map(idle).collect()
    };
    launches.iter_enumerated().map(of_device).collect()
}

fn waits_of(blocked: &Blocked, thread: ThreadIx, (first, last): (i64, i64)) -> Vec<Idle> {
    let outside = |start, end| Idle { start, end, by: None };
    let inside = blocked.of(thread).iter().map(|stretch| Idle {
        start: stretch.start.max(first),
        end: stretch.end.min(last),
        by: Some((thread, stretch.call)),
    });
    let inside = inside.filter(|idle| idle.start < idle.end);
    std::iter::once(outside(i64::MIN, first)).chain(inside).chain([outside(last, i64::MAX)]).collect()
}

fn both(a: &[Idle], b: &[Idle]) -> Vec<Idle> {
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (start, end) = (x.start.max(y.start), x.end.min(y.end));
        if start < end {
            let first = if x.end <= y.end { x.by.or(y.by) } else { y.by.or(x.by) };
            out.push(Idle { start, end, by: first });
        }
        if x.end <= y.end {
            i += 1;
        } else {
            j += 1;
        }
    }
    out
}
