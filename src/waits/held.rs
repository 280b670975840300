//! The streams that held a wait, and the ops that ran while it blocked.
//!
//! ```text
//!  host     [launch k, m][copy c]  [device sync==============================]
//!  s7           [k~~~~~~~~~~~~~~~~~~~~~~~][c]                                       c: a copy to the host
//!  s13            [m~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~]
//!  pending                         |--------| s7
//!                                  |--------------------------------------| s13     issued before, and not done yet
//!  narrower                                 |-----------------------------|         a wait for c alone is that much shorter
//! ```
//! **The path** is the chain of ops that ran while the host was blocked, followed backwards from the awaited
//! op. Each op was behind the one before it on its stream. Where the stream was idle before, the op was
//! behind the op of another stream that ended last (`cudaStreamWaitEvent`, whose event most captures do not
//! record):
//!
//! ```text
//!  host     ···[read=================================================]
//!  s20      [all-reduce~~~~~~~~~~~~~~~~~~~~~~~~~]
//!  s7       ~~]                                  [scale~~~~][copy~~]
//!  path        |--all-reduce--------------------||--scale--||-copy-|
//! ```
//! Cost: a search per wait and a step per op; where a stream was idle, a search in each other stream. The
//! waits of a thread do not overlap, so each op is visited at most once per thread.

use super::Wait;
use super::api::Blocking;
use super::awaited::CLOCK_SLOP_NS;
use super::device::Devices;
use super::streams::{FEW_STREAMS, Streams};
use crate::profile::Profile;
use crate::profile::ids::{GlobalPid, OpId, StreamIx};
use crate::profile::seek::Remembered;

/// Ops of one stream follow each other within 1 to 3 µs: an op that starts later waited for something.
const BACK_TO_BACK_NS: i64 = 4_000;

/// How soon after another op's end an op must start to count as its follower.
pub const FOLLOWS_NS: i64 = 10_000;

pub struct Held<'a> {
    pub(super) streams: Streams<'a>,
    place: Remembered,
}

/// An op of a wait's path, and when it held the host, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub op: OpId,
    pub from: i64,
    pub to: i64,
}

/// A smaller wait that would suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Narrower {
    pub op: OpId,
    /// Whether `op` is the D2H copy that the wait completes; else `op` is the waiting thread's last launch.
    pub copy: bool,
}

impl<'a> Held<'a> {
    /// Linear in the streams; also in the ops, where a process has many streams.
    pub fn new(profile: &'a Profile, devices: &'a Devices) -> Self {
        Self { streams: Streams::new(profile, devices), place: Remembered::default() }
    }

    pub fn began(&self, wait: &Wait) -> i64 {
        if wait.copy_blocked > 0 { wait.start } else { self.streams.profile.calls.start(wait.call) }
    }

    /// The last op of each stream with pending work; latest end first.
    pub fn pending(&self, wait: &Wait) -> Vec<(StreamIx, OpId)> {
        let (ops, devices) = (&self.streams.profile.ops, self.streams.devices);
        let Some(awaited) = wait.awaited.filter(|&op| ops.end(op) > self.began(wait)) else {
            return Vec::new();
        };
        // One stream only, recorded or not.
        if !wait.blocking.is_of_device() {
            return vec![(ops.stream(awaited), awaited)];
        }
        let (device, ended_by) = (devices.of_op(ops, awaited), wait.end.saturating_add(CLOCK_SLOP_NS));
        let pending = self.streams.pending(wait, Some(device), ended_by);
        let mut pending: Vec<_> = pending.map(|op| (ops.stream(op), op)).collect();
        pending.sort_unstable_by_key(|&(_, op)| (std::cmp::Reverse(ops.end(op)), op));
        pending
    }

    /// The smaller wait that the trace shows to suffice: for the D2H copy that the wait completes, else
    /// (device-wide waits only) for the stream the thread last launched to. `None`: nothing less is known.
    pub fn narrower(&self, wait: &Wait) -> Option<Narrower> {
        if wait.copy_call.is_some() || wait.copy.is_some() {
            return None;
        }
        if let Some(op) = wait.completes {
            return Some(Narrower { op, copy: true });
        }
        let (profile, streams) = (self.streams.profile, self.streams.of(wait.pid));
        if wait.blocking != Blocking::Context || streams.len() > FEW_STREAMS {
            return None;
        }
        let own =
            |op: &OpId| profile.issuer(*op).is_some_and(|call| profile.calls.thread(call) == wait.thread);
        let last = streams.iter().filter_map(|&s| self.streams.last_issued(s, wait.start, wait.end));
        let op = last.filter(own).max_by_key(|&op| (profile.issued(op), op))?;
        Some(Narrower { op, copy: false })
    }

    pub fn shorter(&self, wait: &Wait, narrower: Narrower) -> i64 {
        let Some(awaited) = wait.awaited else { return 0 };
        let end = |op: OpId| self.streams.profile.ops.end(op);
        let most = wait.end.saturating_sub(self.began(wait));
        end(awaited).saturating_sub(end(narrower.op).max(self.began(wait))).clamp(0, most.max(0))
    }

    /// The last op first.
    pub fn path(&self, wait: &Wait) -> Vec<Stretch> {
        let (ops, devices) = (&self.streams.profile.ops, self.streams.devices);
        let mut path = Vec::new();
        let Some(mut op) = wait.awaited else { return path };
        let place = |op: OpId| {
            let list = &devices.stream_ops[ops.stream(op)];
            self.place.seek(list.len(), |at| list[at] < op)
        };
        let (from, mut to, mut at) = (self.began(wait), wait.end, place(op));
        while ops.end(op) > from {
            let (start, end) = (ops.start(op), ops.end(op).min(to));
            if end > start.max(from) {
                path.push(Stretch { op, from: start.max(from), to: end });
            }
            if start <= from {
                break;
            }
            to = start;
            let before = at.checked_sub(1).map(|at| devices.stream_ops[ops.stream(op)][at]);
            let other = self.behind(wait.pid, op, before.map_or(i64::MIN, |before| ops.end(before)));
            (op, at) = match (other, before) {
                (Some(other), _) => (other, place(other)),
                (None, Some(before)) => (before, at - 1),
                (None, None) => break,
            };
        }
        path
    }

    /// The op of another stream that `op` waited for: the last to end before `op` starts, but after `before`,
    /// the end of the preceding op on its own stream.
    fn behind(&self, pid: GlobalPid, op: OpId, before: i64) -> Option<OpId> {
        let ops = &self.streams.profile.ops;
        let (start, issued) = (ops.start(op), self.streams.profile.issued(op));
        if start.saturating_sub(before) <= BACK_TO_BACK_NS {
            return None;
        }
        let soon = start.saturating_sub(FOLLOWS_NS).max(before);
        let others = self.streams.working(pid, soon, start).into_iter().filter(|&s| s != ops.stream(op));
        let ended = others.filter_map(|s| self.streams.last_ended(s, start, start, start));
        // `op` was launched before `other` ended: it waited on the GPU.
        let fits = |other: &OpId| ops.end(*other) > soon && *other < op && issued < ops.end(*other);
        ended.filter(fits).max_by_key(|&other| (ops.end(other), other))
    }
}
