//! The ops before and after a wait on its stream.

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ids::{OpId, StreamIx};
use crate::profile::ops::OpKind;
use crate::waits::Wait;
use crate::waits::device::Devices;
use std::sync::Arc;

/// Names of ops on the wait's stream; kernels by name, other ops as `[memcpy]`, `[memset]`, `[graph]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Before the wait's own copy, nearest first.
    pub before: Vec<Arc<str>>,
    /// Issued after the wait, nearest first.
    pub after: Vec<Arc<str>>,
    pub awaited: Option<Arc<str>>,
}

/// Most ops in either direction that a rule may look at.
const REACH: usize = 8;

/// Ids of the ops in [`Neighbours`].
#[derive(Default)]
pub struct Around {
    pub before: Vec<OpId>,
    pub after: Vec<OpId>,
    awaited: Option<OpId>,
}

/// Cost: two binary searches.
pub fn around(profile: &Profile, devices: &Devices, wait: &Wait) -> Around {
    let ops = &profile.ops;
    let own = if wait.copy.is_some() { wait.awaited } else { None };
    let stream = wait.awaited.map(|op| ops.stream(op)).or_else(|| only_stream(profile, devices, wait));
    let Some(stream) = stream else { return Around { awaited: wait.awaited, ..Around::default() } };
    let list = &devices.stream_ops[stream];
    let from = match own {
        Some(op) => list.partition_point(|&o| (ops.start(o), o) < (ops.start(op), op)),
        None => list.partition_point(|&o| ops.start(o) < wait.end),
    };
    let issued_before = |o: &OpId| profile.issued(*o) < wait.end;
    let before = list[..from].iter().rev().copied().filter(issued_before).take(REACH).collect();
    let later = list[from..].iter().copied().filter(|o| Some(*o) != own);
    Around { before, after: later.take(REACH).collect(), awaited: wait.awaited }
}

/// The stream that a wait names, or the only one of its process.
fn only_stream(profile: &Profile, devices: &Devices, wait: &Wait) -> Option<StreamIx> {
    let mut mine = profile.ops.streams.iter_enumerated().filter(|(stream, key)| {
        key.pid == wait.pid
            && wait.stream.may_be(key.stream)
            && wait.device.is_none_or(|d| d == devices.of_stream[*stream])
    });
    let first = mine.next()?.0;
    mine.next().is_none().then_some(first)
}

/// Fetches the strings of all waits at once.
pub fn names(profile: &mut Profile, around: &[Around]) -> Result<Vec<Neighbours>, InputError> {
    let all = around.iter().flat_map(|a| a.before.iter().chain(&a.after).chain(&a.awaited));
    let ids: Vec<i64> = all.filter_map(|&op| profile.ops.kernel(op)).map(i64::from).collect();
    profile.strings.fetch(&profile.db, ids)?;
    let name = |&op: &OpId| op_name(profile, op);
    let named = |a: &Around| Neighbours {
        before: a.before.iter().map(name).collect(),
        after: a.after.iter().map(name).collect(),
        awaited: a.awaited.as_ref().map(name),
    };
    Ok(around.iter().map(named).collect())
}

/// Requires that the op's strings were fetched.
pub fn op_name(profile: &Profile, op: OpId) -> Arc<str> {
    match profile.ops.kind(op) {
        OpKind::Kernel => profile.kernel_name(op).cloned().unwrap_or_else(|| "[kernel]".into()),
        OpKind::Memcpy => "[memcpy]".into(),
        OpKind::Memset => "[memset]".into(),
        OpKind::GraphLaunch => "[graph]".into(),
    }
}
