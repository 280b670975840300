//! Labels of streams, threads and their groups in drawings.

use crate::analysis::Priced;
use crate::profile::ids::{ExportId, GlobalPid, StreamIx, ThreadIx};
use crate::text::escape_terminal;
use crate::waits::device::DeviceIx;
use rustc_hash::FxHashMap;

pub struct Labels<'a> {
    found: &'a Priced,
    /// By device and stream number: a process with it, and whether another has it too.
    processes: FxHashMap<(DeviceIx, ExportId), (GlobalPid, bool)>,
    /// Per process as well: a context with it, and whether there is another.
    contexts: FxHashMap<(DeviceIx, ExportId, GlobalPid), (ExportId, bool)>,
}

impl<'a> Labels<'a> {
    pub fn new(found: &'a Priced) -> Self {
        let (mut processes, mut contexts) = (FxHashMap::default(), FxHashMap::default());
        for (stream, key) in found.profile.ops.streams.iter_enumerated() {
            let device = found.devices.of_stream[stream];
            let of = processes.entry((device, key.stream)).or_insert((key.pid, false));
            of.1 |= of.0 != key.pid;
            let of = contexts.entry((device, key.stream, key.pid)).or_insert((key.context, false));
            of.1 |= of.0 != key.context;
        }
        Self { found, processes, contexts }
    }

    pub fn gpu(&self, device: DeviceIx) -> String {
        let device = &self.found.devices.list[device];
        let name = device.name.as_ref().map(|name| format!(" · {}", escape_terminal(name)));
        format!("GPU {}{}", device.id, name.unwrap_or_default())
    }

    /// "stream 7", with process and context where others have a stream 7 too.
    pub fn stream(&self, stream: StreamIx) -> String {
        let key = self.found.profile.ops.streams[stream];
        let device = self.found.devices.of_stream[stream];
        let mut label = format!("stream {}", key.stream.number());
        if self.processes.get(&(device, key.stream)).is_some_and(|of| of.1) {
            label.push_str(&format!(", pid {}", key.pid.pid()));
        }
        if self.contexts.get(&(device, key.stream, key.pid)).is_some_and(|of| of.1) {
            label.push_str(&format!(", context {}", key.context.number()));
        }
        label
    }

    pub fn program(&self, pid: GlobalPid) -> String {
        let name = self.found.profile.target.process_names.get(&pid);
        name.map_or_else(|| "process".into(), |n| escape_terminal(n).into_owned())
    }

    pub fn thread(&self, thread: ThreadIx) -> String {
        if Self::is_main(self.found, thread) {
            return "main thread".to_owned();
        }
        let tid = self.found.profile.calls.threads[thread];
        let name = self.found.profile.target.thread_names.get(&tid).map(|name| escape_terminal(name));
        format!("{} {}", name.unwrap_or("thread".into()), tid.tid())
    }

    pub fn is_main(found: &Priced, thread: ThreadIx) -> bool {
        found.context.main.get(thread) == Some(&true)
    }
}
