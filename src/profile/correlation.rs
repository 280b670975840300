//! From a correlation id to the call that used it.

use crate::profile::calls::Calls;
use crate::profile::ids::{CallId, ExportId, GlobalPid, GlobalTid, OpId, StreamIx, ThreadIx};
use crate::profile::ops::Ops;
use crate::profile::seek::seek;
use rustc_hash::FxHashMap;
use typed_index_collections::TiVec;

/// Calls by (process, correlation id). Ids are unique per process only: another rank uses the same numbers.
pub struct Correlation {
    /// Index into `lists`.
    place: FxHashMap<GlobalPid, usize>,
    /// One a process, by ascending correlation id.
    lists: Vec<Vec<(u32, CallId)>>,
}

impl Correlation {
    /// The first call of each id wins: calls are sorted outermost first, so a nested driver row that shares
    /// its runtime call's id is dropped. Ids count up with time: the lists are mostly sorted as they come.
    pub fn new(calls: &Calls) -> Self {
        let mut place: FxHashMap<GlobalPid, usize> = FxHashMap::default();
        let mut of_thread = |tid: &GlobalTid| {
            let next = place.len();
            *place.entry(tid.process()).or_insert(next)
        };
        let of_thread: TiVec<ThreadIx, usize> = calls.threads.iter().map(&mut of_thread).collect();
        let mut lists = vec![Vec::new(); place.len()];
        for call in calls.ids() {
            if let Some(id) = calls.correlation[call].known() {
                lists[of_thread[calls.thread(call)]].push((id, call));
            }
        }
        for list in &mut lists {
            if !list.is_sorted() {
                list.sort_unstable();
            }
            list.dedup_by_key(|(id, _)| *id);
        }
        Self { place, lists }
    }

    /// The call that issued each op: mostly one step further in the process's list than for the op before.
    pub fn issuers(&self, ops: &Ops) -> TiVec<OpId, Option<CallId>> {
        let of_stream: TiVec<StreamIx, Option<usize>> =
            ops.streams.iter().map(|stream| self.place.get(&stream.pid).copied()).collect();
        let mut at = vec![0; self.lists.len()];
        let mut issuer = |op: OpId| {
            let place = of_stream[ops.stream(op)]?;
            find(&self.lists[place], &mut at[place], ops.correlation[op])
        };
        ops.ids().map(&mut issuer).collect()
    }

    pub fn call(&self, pid: GlobalPid, correlation: ExportId) -> Option<CallId> {
        let list = &self.lists[*self.place.get(&pid)?];
        find(list, &mut (list.len() / 2), correlation)
    }
}

/// Searches outwards from `at`.
fn find(list: &[(u32, CallId)], at: &mut usize, id: ExportId) -> Option<CallId> {
    let id = id.known()?;
    let found = seek(list.len(), at, |i| list[i].0 < id);
    list.get(found).filter(|(known, _)| *known == id).map(|(_, call)| *call)
}
