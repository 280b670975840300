//! What streams, threads and their groups are called where they are drawn.

use crate::analysis::CaptureAnalysis;
use crate::profile::ids::{StreamIx, ThreadIx, pid_of, tid_of};
use crate::text::escape_terminal;
use crate::waits::device::DeviceIx;

/// Names of the parts of an export.
#[derive(Clone, Copy)]
pub struct Labels<'a>(pub &'a CaptureAnalysis);

impl Labels<'_> {
    pub fn gpu(&self, device: DeviceIx) -> String {
        let device = &self.0.devices.list[device];
        let name = device.name.as_ref().map(|name| format!(" · {}", escape_terminal(name)));
        format!("GPU {}{}", device.id, name.unwrap_or_default())
    }

    /// "stream 7", with process and context where others have a stream 7 too.
    pub fn stream(&self, stream: StreamIx) -> String {
        let streams = &self.0.profile.ops.streams;
        let key = streams[stream];
        let device = self.0.devices.of_stream[stream];
        let alike = || {
            let same =
                |s: &StreamIx| self.0.devices.of_stream[*s] == device && streams[*s].stream == key.stream;
            streams.keys().filter(same).map(|s| streams[s])
        };
        let mut label = format!("stream {}", key.stream.number());
        if alike().any(|s| s.pid != key.pid) {
            label.push_str(&format!(", pid {}", pid_of(key.pid)));
        }
        if alike().any(|s| s.pid == key.pid && s.context != key.context) {
            label.push_str(&format!(", context {}", key.context.number()));
        }
        label
    }

    /// The program's name, without its id.
    pub fn program(&self, pid: i64) -> String {
        let name = self.0.profile.target.process_names.get(&pid);
        name.map_or_else(|| "process".into(), |n| escape_terminal(n).into_owned())
    }

    pub fn thread(&self, thread: ThreadIx) -> String {
        if self.is_main(thread) {
            return "main thread".to_owned();
        }
        let tid = self.0.profile.calls.threads[thread];
        let name = self.0.profile.target.thread_names.get(&tid).map(|name| escape_terminal(name));
        format!("{} {}", name.unwrap_or("thread".into()), tid_of(tid))
    }

    pub fn is_main(&self, thread: ThreadIx) -> bool {
        self.0.context.main.get(thread) == Some(&true)
    }
}
