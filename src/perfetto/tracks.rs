//! The rows of a trace, their names and order.
//!
//! ui.perfetto.dev orders processes by number of slices, whatever a trace asks for. It orders the threads of
//! a process by id, but a thread with the process's id first. So each process of the capture is a process of
//! the trace, and its rows are numbered from the top, below the process's id:
//!
//! ```text
//!  python3 435    1  waits · main thread
//!                17  stream 7 · GPU 0 · NVIDIA H200
//!                33  main thread
//! ```

use crate::analysis::Priced;
use crate::profile::ids::{GlobalPid, StreamIx, ThreadIx};
use crate::timeline::labels::Labels;
use crate::waits::device::DeviceIx;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use typed_index_collections::TiVec;

/// Most rows of one track, as its slices may overlap.
const LANES: u32 = 16;
/// Offset of the next process with an id that another capture already has.
const NEXT_PID: u32 = 1_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Track {
    pub pid: u32,
    pub tid: u32,
}

/// Content of a row, in the order of rows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Row {
    Waits { other: bool, thread: ThreadIx },
    Stream { device: DeviceIx, stream: StreamIx },
    Thread { other: bool, thread: ThreadIx },
}

pub struct Tracks {
    pub waits: TiVec<ThreadIx, Track>,
    pub threads: TiVec<ThreadIx, Track>,
    pub streams: TiVec<StreamIx, Track>,
    /// Ids and names, in order.
    pub processes: Vec<(u32, String)>,
    names: BTreeMap<Track, String>,
}

impl Tracks {
    /// `suffix`: distinguishes this export; `taken`: process ids of other exports.
    pub fn new(found: &Priced, suffix: &str, taken: &mut FxHashSet<u32>) -> Self {
        let labels = Labels::new(found);
        let (threads, streams) = (&found.profile.calls.threads, &found.profile.ops.streams);
        let mut rows: BTreeMap<GlobalPid, Vec<Row>> = BTreeMap::new();
        let waiting: FxHashSet<ThreadIx> = found.waits.iter().map(|w| w.thread).collect();
        for (thread, &tid) in threads.iter_enumerated() {
            let other = !Labels::is_main(found, thread);
            let own = rows.entry(tid.process()).or_default();
            own.push(Row::Thread { other, thread });
            own.extend(waiting.contains(&thread).then_some(Row::Waits { other, thread }));
        }
        for (stream, key) in streams.iter_enumerated() {
            let device = found.devices.of_stream[stream];
            rows.entry(key.pid).or_default().push(Row::Stream { device, stream });
        }
        let mut tracks = Self {
            waits: vec![Track::default(); threads.len()].into(),
            threads: vec![Track::default(); threads.len()].into(),
            streams: vec![Track::default(); streams.len()].into(),
            processes: Vec::new(),
            names: BTreeMap::new(),
        };
        for (global, mut rows) in rows {
            rows.sort_unstable();
            let last = rows.len() as u32 * LANES;
            let free = |pid: &u32| *pid > last && !taken.contains(pid);
            let pid = (0..1_000).map(|n| global.pid() + n * NEXT_PID).find(free).unwrap_or(u32::MAX);
            taken.insert(pid);
            tracks.processes.push((pid, format!("{}{suffix}", labels.program(global))));
            for (i, row) in (0u32..).zip(rows) {
                tracks.add(row, Track { pid, tid: 1 + i * LANES }, &labels);
            }
        }
        tracks
    }

    fn add(&mut self, row: Row, track: Track, labels: &Labels) {
        let name = match row {
            Row::Waits { thread, .. } => {
                self.waits[thread] = track;
                format!("waits · {}", labels.thread(thread))
            }
            Row::Stream { device, stream } => {
                self.streams[stream] = track;
                format!("{} · {}", labels.stream(stream), labels.gpu(device))
            }
            Row::Thread { thread, .. } => {
                self.threads[thread] = track;
                labels.thread(thread)
            }
        };
        self.names.insert(track, name);
    }

    /// Rows that slices were placed in, with their names, in order.
    pub fn rows(&self, lanes: &Lanes) -> Vec<(Track, String)> {
        let of_track = |(&track, name): (&Track, &String)| {
            let name = name.clone();
            (0..lanes.of(track)).map(move |lane| {
                let name = if lane == 0 { name.clone() } else { format!("{name}, overlapping") };
                (Track { tid: track.tid + lane, ..track }, name)
            })
        };
        self.names.iter().flat_map(of_track).collect()
    }
}

/// Rows for slices that overlap although they should not: each goes into the first free row.
#[derive(Default)]
pub struct Lanes(FxHashMap<Track, Vec<i64>>);

impl Lanes {
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
