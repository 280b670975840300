//! The rows of a trace: which there are, their names and their order.
//!
//! ui.perfetto.dev orders processes by how many slices they hold, whatever a trace asks for, and the threads of a process
//! by their number, but for one that has its process's number: that comes first. So each process of the capture is one of
//! the trace, and its rows are numbered from the top, below its own number:
//!
//! ```text
//!  python3 435    1  waits · main thread
//!                17  stream 7 · GPU 0 · NVIDIA H200
//!                33  main thread
//! ```

use super::write::Writer;
use crate::analysis::Analysed;
use crate::profile::nvtx::process;
use crate::timeline::labels::Labels;
use crate::waits::device::pid_of;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;

/// Rows that one track may need, as its slices may overlap.
const LANES: u32 = 16;
/// Processes of several captures may have the same id: the next one is this much higher.
const NEXT_PID: u32 = 1_000_000;

/// A row: process and thread id in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Track {
    pub pid: u32,
    pub tid: u32,
}

/// What a row is of, in the order of rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Waits { other: bool, thread: u32 },
    Stream { device: u32, stream: u32 },
    Thread { other: bool, thread: u32 },
}

/// The rows of one export.
pub struct Tracks {
    /// By thread: of its waits, and of its calls.
    pub waits: Vec<Track>,
    pub threads: Vec<Track>,
    pub streams: Vec<Track>,
    processes: Vec<(u32, String)>,
    names: FxHashMap<Track, String>,
}

impl Tracks {
    /// `suffix`: what tells this export from others; `taken`: ids of processes of other exports.
    pub fn new(found: &Analysed, suffix: &str, taken: &mut FxHashSet<u32>) -> Self {
        let labels = Labels(found);
        let (threads, streams) = (&found.profile.calls.threads, &found.profile.ops.streams);
        let mut rows: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
        let waiting: FxHashSet<u32> = found.waits.iter().map(|w| w.thread).collect();
        for (thread, &tid) in (0u32..).zip(threads) {
            let other = !labels.is_main(thread);
            rows.entry(process(tid)).or_default().push(Row::Thread { other, thread });
            if waiting.contains(&thread) {
                rows.entry(process(tid)).or_default().push(Row::Waits { other, thread });
            }
        }
        for (stream, key) in (0u32..).zip(streams) {
            let device = found.devices.of_stream[stream as usize];
            rows.entry(key.pid).or_default().push(Row::Stream { device, stream });
        }
        let mut tracks = Self {
            waits: vec![Track::default(); threads.len()],
            threads: vec![Track::default(); threads.len()],
            streams: vec![Track::default(); streams.len()],
            processes: Vec::new(),
            names: FxHashMap::default(),
        };
        for (global, mut rows) in rows {
            rows.sort_unstable();
            let last = rows.len() as u32 * LANES;
            let free = |pid: &u32| *pid > last && !taken.contains(pid);
            let pid = (0..1_000).map(|n| pid_of(global) + n * NEXT_PID).find(free).unwrap_or(u32::MAX);
            taken.insert(pid);
            tracks.processes.push((pid, format!("{}{suffix}", labels.program(global))));
            for (i, row) in (0u32..).zip(rows) {
                tracks.add(row, Track { pid, tid: 1 + i * LANES }, labels);
            }
        }
        tracks
    }

    fn add(&mut self, row: Row, track: Track, labels: Labels) {
        let name = match row {
            Row::Waits { thread, .. } => {
                self.waits[thread as usize] = track;
                format!("waits · {}", labels.thread(thread))
            }
            Row::Stream { device, stream } => {
                self.streams[stream as usize] = track;
                format!("{} · {}", labels.stream(stream), labels.gpu(device))
            }
            Row::Thread { thread, .. } => {
                self.threads[thread as usize] = track;
                labels.thread(thread)
            }
        };
        self.names.insert(track, name);
    }

    /// Names and order, for `lanes` rows of each track.
    pub fn write(&self, lanes: &Lanes, out: &mut Writer) -> io::Result<()> {
        for (order, (pid, name)) in self.processes.iter().enumerate() {
            out.event(
                &json!({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}),
            )?;
            out.event(&json!({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": order}}))?;
        }
        let mut tracks: Vec<(&Track, &String)> = self.names.iter().collect();
        tracks.sort_by_key(|(track, _)| (track.pid, track.tid));
        for (&Track { pid, tid }, name) in tracks {
            for lane in 0..lanes.of(Track { pid, tid }) {
                let (tid, name) =
                    (tid + lane, if lane == 0 { name } else { &format!("{name}, overlapping") });
                out.event(&json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}))?;
                out.event(&json!({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}))?;
            }
        }
        Ok(())
    }
}

/// Rows for slices that overlap although they should not: each goes into the first row that is free.
#[derive(Default)]
pub struct Lanes(FxHashMap<Track, Vec<i64>>);

impl Lanes {
    /// The row of a slice.
    pub fn place(&mut self, track: Track, start: i64, end: i64) -> Track {
        let rows = self.0.entry(track).or_default();
        let free = rows.iter().position(|&until| until <= start).unwrap_or(rows.len());
        let lane = free.min(LANES as usize - 1);
        match rows.get_mut(lane) {
            Some(until) => *until = end.max(*until),
            None => rows.push(end),
        }
        Track { tid: track.tid + lane as u32, ..track }
    }

    /// A track whose slices nest by themselves.
    pub fn touch(&mut self, track: Track) {
        self.0.entry(track).or_insert_with(|| vec![i64::MIN]);
    }

    fn of(&self, track: Track) -> u32 {
        self.0.get(&track).map_or(0, |rows| rows.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_slices_get_rows_of_their_own() {
        let mut lanes = Lanes::default();
        let track = Track { pid: 9, tid: 1 };
        let rows =
            [(0, 10), (10, 20), (15, 30), (20, 25), (31, 40)].map(|(s, e)| lanes.place(track, s, e).tid);
        assert_eq!(rows, [1, 1, 2, 1, 1]);
        assert_eq!(lanes.of(track), 2);
        assert_eq!(lanes.place(Track { pid: 9, tid: 17 }, 5, 6).tid, 17);
    }
}
