//! Names of spans: each once, the most frequent first, so that most indices take one byte.

use crate::profile::Profile;
use crate::profile::ids::{CallId, NameIx, OpId};
use crate::profile::ops::OpKind;
use crate::sites::native;
use crate::text::{escape_terminal, shorten_symbol};
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

/// Columns that a tooltip can show.
const LONGEST: usize = 100;
/// Names kept; the rarest beyond are "other".
const MOST: usize = 4_000;

pub(super) struct Names {
    pub list: Vec<String>,
    ops: FxHashMap<(u8, u32), u32>,
    calls: TiVec<NameIx, u32>,
}

/// Key of an op's name: its kind, and for kernels the name id.
fn op_key(profile: &Profile, op: OpId) -> (u8, u32) {
    let ops = &profile.ops;
    match ops.kind(op) {
        OpKind::Kernel => (0, ops.kernel(op).unwrap_or(0)),
        // Copies differ by direction and host memory: few kinds.
        OpKind::Memcpy => {
            let copy = ops.copy(op);
            (1, copy.map_or(u32::MAX, |c| c.direction as u32 * 16 + c.host_memory as u32))
        }
        OpKind::Memset => (2, 0),
        OpKind::GraphLaunch => (3, 0),
    }
}

fn op_name(profile: &Profile, op: OpId) -> String {
    match profile.ops.kind(op) {
        OpKind::Kernel => {
            let name = profile.kernel_name(op);
            name.map_or_else(|| "kernel without a name".to_owned(), |n| native::short(n))
        }
        OpKind::Memcpy => {
            let copy = profile.ops.copy(op).map(|c| format!(" {} {}", c.direction, c.host_memory));
            format!("memcpy{}", copy.unwrap_or_default())
        }
        OpKind::Memset => "memset".to_owned(),
        OpKind::GraphLaunch => "CUDA graph".to_owned(),
    }
}

impl Names {
    pub fn new(profile: &Profile) -> Self {
        let mut count: FxHashMap<(u8, u32), (usize, OpId)> = FxHashMap::default();
        for op in profile.ops.ids() {
            count.entry(op_key(profile, op)).or_insert((0, op)).0 += 1;
        }
        let mut calls: TiVec<NameIx, usize> = profile.calls.names.iter().map(|_| 0).collect();
        profile.calls.ids().for_each(|call| calls[profile.calls.name(call)] += 1);
        // By text, since several ids may read the same.
        let mut by_text: FxHashMap<String, usize> = FxHashMap::default();
        let shown = |text: &str| shorten_symbol(&escape_terminal(text), LONGEST).into_owned();
        let op_texts: Vec<((u8, u32), String, usize)> =
            count.into_iter().map(|(key, (n, op))| (key, shown(&op_name(profile, op)), n)).collect();
        let call = |base: &str| shown(if base.is_empty() { "call without a name" } else { base });
        let call_texts: Vec<String> = profile.calls.names.iter().map(|n| call(&n.base)).collect();
        op_texts.iter().for_each(|(_, text, n)| *by_text.entry(text.clone()).or_default() += n);
        call_texts.iter().zip(&calls).for_each(|(text, n)| *by_text.entry(text.clone()).or_default() += n);
        let mut ranked: Vec<(String, usize)> = by_text.into_iter().collect();
        ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut list: Vec<String> = ranked.into_iter().take(MOST).map(|(text, _)| text).collect();
        let index: FxHashMap<String, u32> = list.iter().cloned().zip(0..).collect();
        let other = list.len() as u32;
        list.push("other".to_owned());
        let at = |text: &String| index.get(text).copied().unwrap_or(other);
        let ops = op_texts.iter().map(|(key, text, _)| (*key, at(text))).collect();
        let calls = call_texts.iter().map(at).collect();
        Self { list, ops, calls }
    }

    pub fn op(&self, profile: &Profile, op: OpId) -> u32 {
        self.ops.get(&op_key(profile, op)).copied().unwrap_or(0)
    }

    pub fn call(&self, profile: &Profile, call: CallId) -> u32 {
        self.calls[profile.calls.name(call)]
    }
}
