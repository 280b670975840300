//! The events themselves, written as they come.

use super::select::Selection;
use crate::analysis::Analysed;
use crate::profile::ops::OpKind;
use crate::report::phrase::{FileNames, Place};
use crate::report::{Report, Site};
use crate::sites::native;
use crate::sites::neighbours::op_name;
use crate::text::escape_terminal;
use crate::vocabulary::Class;
use crate::waits::device::{pid_of, tid_of};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Process ids of the groups of tracks; those of real processes stay below.
const WAITS: u32 = 10_000_000;
const GPUS: u32 = 20_000_000;
const HOSTS: u32 = 30_000_000;
/// Groups of an export; rows of a thread or stream.
const PER_CAPTURE: u32 = 1_000;
const LANES: u32 = 16;
/// Frames of a stack that a slice shows.
const FRAMES: usize = 16;

/// A JSON array of events, one a line.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    first: bool,
}

impl<'a> Writer<'a> {
    pub fn begin(out: &'a mut dyn Write) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        Ok(Self { out, first: true })
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }

    /// `times` of a slice or arrow stand as microseconds with all nanoseconds.
    fn timed(&mut self, mut event: Value, start: i64, duration: Option<i64>) -> io::Result<()> {
        event["ts"] = microseconds(start);
        if let Some(duration) = duration {
            event["dur"] = microseconds(duration.max(0));
        }
        self.event(&event)
    }

    pub fn end(self, note: Option<&str>) -> io::Result<()> {
        let other = json!({ "tool": format!("sync-report {}", env!("CARGO_PKG_VERSION")), "note": note });
        write!(self.out, "\n],\"otherData\":{other}}}")?;
        writeln!(self.out)
    }
}

/// Nanoseconds as a decimal number of microseconds, without rounding by floating point.
fn microseconds(ns: i64) -> Value {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let text = format!("{sign}{}.{:03}", ns / 1_000, ns % 1_000);
    serde_json::from_str(&text).unwrap_or(Value::Null)
}

/// Rows for slices that overlap although they should not: each goes into the first row that is free.
#[derive(Default)]
struct Lanes(FxHashMap<(u32, u32), Vec<i64>>);

impl Lanes {
    fn place(&mut self, track: (u32, u32), start: i64, end: i64) -> u32 {
        let rows = self.0.entry(track).or_default();
        let free = rows.iter().position(|&until| until <= start).unwrap_or(rows.len());
        let lane = free.min(LANES as usize - 1);
        match rows.get_mut(lane) {
            Some(until) => *until = end.max(*until),
            None => rows.push(end),
        }
        lane as u32
    }
}

/// One export, ready to be written.
pub struct Capture<'a> {
    found: &'a Analysed,
    number: u32,
    several: bool,
    files: FileNames<'a>,
    /// The report's site of each site of the export.
    sites: Vec<Option<&'a Site>>,
    /// Of each call, whether it gave the GPU work.
    issues: Vec<bool>,
}

impl<'a> Capture<'a> {
    pub fn new(report: &'a Report, found: &'a Analysed, number: usize, several: bool) -> Self {
        let known: FxHashMap<(usize, u32, &str), &Site> =
            report.sites.iter().map(|s| ((s.process.profile, s.process.pid, s.key.as_str()), s)).collect();
        let sites = found
            .sites
            .iter()
            .map(|s| known.get(&(number, pid_of(s.bundle.pid), s.key.as_str())).copied())
            .collect();
        let profile = &found.profile;
        let mut issues = vec![false; profile.calls.len()];
        for (&stream, &id) in profile.ops.stream.iter().zip(&profile.ops.correlation) {
            let pid = profile.ops.streams[stream as usize].pid;
            if let Some(call) = profile.correlation.call(pid, id) {
                issues[call as usize] = true;
            }
        }
        Self { found, number: number as u32, several, files: FileNames::of(report), sites, issues }
    }

    pub fn write(&self, selection: &Selection, out: &mut Writer) -> io::Result<()> {
        self.names(out)?;
        self.calls(selection, out)?;
        let lanes = self.ops(selection, out)?;
        self.waits(selection, &lanes, out)
    }

    fn group(&self, kind: u32, index: u32) -> u32 {
        kind + self.number * PER_CAPTURE + index.min(PER_CAPTURE - 1)
    }

    /// The tracks and their order: waits above GPUs above threads.
    fn names(&self, out: &mut Writer) -> io::Result<()> {
        let profile = &self.found.profile;
        let of = |name: String| if self.several { format!("{name} ({})", self.file()) } else { name };
        let mut group = |pid: u32, name: String, order: u32| -> io::Result<()> {
            let name = escape_terminal(&name).into_owned();
            out.event(
                &json!({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}),
            )?;
            out.event(&json!({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": order}}))
        };
        group(self.group(WAITS, 0), of("Waits".to_owned()), 3 * self.number)?;
        for (i, device) in (0..).zip(&self.found.devices.list) {
            let name = device.name.as_deref().unwrap_or("");
            group(self.group(GPUS, i), of(format!("GPU {} {name}", device.id)), 3 * self.number + 1)?;
        }
        group(self.group(HOSTS, 0), of("Host threads".to_owned()), 3 * self.number + 2)?;
        for (i, &thread) in (0u32..).zip(&profile.calls.threads) {
            let name = profile.target.thread_names.get(&thread).map_or("", |n| n);
            let name = format!("{} {name}", tid_of(thread));
            let name = escape_terminal(name.trim()).into_owned();
            for pid in [self.group(WAITS, 0), self.group(HOSTS, 0)] {
                row(out, pid, i * LANES, &name)?;
            }
        }
        for (i, stream) in (0u32..).zip(&profile.ops.streams) {
            let device = self.found.devices.of_stream[i as usize];
            row(out, self.group(GPUS, device), i * LANES, &format!("stream {}", stream.stream))?;
        }
        Ok(())
    }

    fn file(&self) -> String {
        let path = self.found.profile.path();
        path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
    }

    fn calls(&self, selection: &Selection, out: &mut Writer) -> io::Result<()> {
        let calls = &self.found.profile.calls;
        for i in (0..calls.len()).filter(|&i| selection.calls[i]) {
            let event = json!({
                "ph": "X", "cat": "call", "name": &**calls.base_name(i as u32),
                "pid": self.group(HOSTS, 0), "tid": calls.thread[i] * LANES,
            });
            out.timed(event, calls.start[i], Some(calls.end[i].saturating_sub(calls.start[i])))?;
        }
        Ok(())
    }

    /// Writes the ops; returns the row of each.
    fn ops(&self, selection: &Selection, out: &mut Writer) -> io::Result<Vec<u8>> {
        let ops = &self.found.profile.ops;
        let mut lanes = Lanes::default();
        let mut rows = vec![0u8; ops.len()];
        for i in (0..ops.len()).filter(|&i| selection.ops[i]) {
            let stream = ops.stream[i];
            let lane = lanes.place((0, stream), ops.start[i], ops.end[i]);
            rows[i] = lane as u8;
            let category = match ops.kind[i] {
                OpKind::Kernel => "kernel",
                OpKind::Memcpy => "memcpy",
                OpKind::Memset => "memset",
                OpKind::GraphLaunch => "graph",
            };
            let mut event = json!({
                "ph": "X", "cat": category, "pid": self.gpu(stream), "tid": stream * LANES + lane,
                "name": escape_terminal(&native::short(&op_name(&self.found.profile, i as u32))),
            });
            if let Some(copy) = ops.copy(i as u32) {
                event["args"] =
                    json!({ "bytes": copy.bytes, "direction": copy.direction, "host": copy.host_memory });
            }
            out.timed(event, ops.start[i], Some(ops.end[i].saturating_sub(ops.start[i])))?;
        }
        Ok(rows)
    }

    fn gpu(&self, stream: u32) -> u32 {
        self.group(GPUS, self.found.devices.of_stream[stream as usize])
    }

    fn waits(&self, selection: &Selection, rows: &[u8], out: &mut Writer) -> io::Result<()> {
        let mut lanes = Lanes::default();
        let mut listed: Vec<(u32, usize)> = Vec::new();
        for (site, s) in self.found.sites.iter().enumerate() {
            listed.extend(s.bundle.waits.iter().map(|&w| (w, site)));
        }
        listed.sort_unstable();
        for (w, site) in listed {
            let Some(site) = self.sites[site].filter(|_| selection.waits[w as usize]) else { continue };
            let wait = &self.found.waits[w as usize];
            let lane = lanes.place((1, wait.thread), wait.start, wait.end);
            let track = (self.group(WAITS, 0), wait.thread * LANES + lane);
            out.timed(self.wait(w, site, track), wait.start, Some(wait.end.saturating_sub(wait.start)))?;
            self.arrows(w, track, selection, rows, out)?;
        }
        Ok(())
    }

    fn wait(&self, w: u32, site: &Site, (pid, tid): (u32, u32)) -> Value {
        let stack: Vec<String> = site
            .frames
            .iter()
            .take(FRAMES)
            .map(|f| escape_terminal(&format!("{}:{} {}", f.file, f.line, f.function)).into_owned())
            .collect();
        // Colours that both viewers know.
        let color = match site.class {
            Class::False => "terrible",
            Class::Unknown => "bad",
            Class::True => "good",
        };
        let place = Place::of(site, &self.files).fit(usize::MAX);
        json!({
            "ph": "X", "pid": pid, "tid": tid, "cname": color, "cat": format!("wait,{}", site.class),
            "name": format!("{place} ({} {})", site.class, site.kind),
            "args": {
                "site": site.id, "api": site.api, "class": site.class, "kind": site.kind,
                "blocked_ns": self.found.waits[w as usize].blocked, "drain_ns": self.found.drains[w as usize],
                "source": site.source.as_deref().map(escape_terminal), "stack": stack.join(" < "),
                "fix": site.fix.as_ref().map(|f| escape_terminal(&f.title)),
            },
        })
    }

    /// From the awaited op to the wait, and on to the next call of its thread that issues an op. An arrow needs a slice
    /// at either end.
    fn arrows(
        &self,
        w: u32,
        (pid, tid): (u32, u32),
        selection: &Selection,
        rows: &[u8],
        out: &mut Writer,
    ) -> io::Result<()> {
        let profile = &self.found.profile;
        let wait = &self.found.waits[w as usize];
        // A slice ends before its end: an arrow there would find nothing.
        let inside = |start: i64, end: i64| end.saturating_sub(1).max(start);
        let arrow = |phase: &str, id: String, pid: u32, tid: u32| json!({"ph": phase, "bp": "e", "cat": "wait", "name": "wait", "id": id, "pid": pid, "tid": tid});
        let at_wait = inside(wait.start, wait.end);
        if let Some(op) = wait.awaited.map(|op| op as usize).filter(|&op| selection.ops[op]) {
            let stream = profile.ops.stream[op];
            let row = stream * LANES + u32::from(rows[op]);
            let ended = inside(profile.ops.start[op], profile.ops.end[op]);
            let id = format!("{}.{w}.a", self.number);
            out.timed(arrow("s", id.clone(), self.gpu(stream), row), ended, None)?;
            out.timed(arrow("f", id, pid, tid), at_wait.max(ended), None)?;
        }
        let list = &profile.calls.by_thread[wait.thread as usize];
        let after = list.partition_point(|&c| profile.calls.start[c as usize] < wait.end);
        let next = list[after..].iter().map(|&c| c as usize).find(|&c| self.issues[c]);
        if let Some(call) = next.filter(|&c| selection.calls[c]) {
            let id = format!("{}.{w}.b", self.number);
            out.timed(arrow("s", id.clone(), pid, tid), at_wait, None)?;
            let host = arrow("f", id, self.group(HOSTS, 0), profile.calls.thread[call] * LANES);
            out.timed(host, profile.calls.start[call], None)?;
        }
        Ok(())
    }
}

fn row(out: &mut Writer, pid: u32, tid: u32, name: &str) -> io::Result<()> {
    out.event(&json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}))?;
    out.event(
        &json!({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_nanoseconds() {
        for (ns, text) in [(0, "0.0"), (1_234_567, "1234.567"), (-1_500, "-1.5"), (7, "0.007")] {
            assert_eq!(microseconds(ns).to_string(), text);
        }
    }

    #[test]
    fn overlapping_slices_get_rows_of_their_own() {
        let mut lanes = Lanes::default();
        let rows = [(0, 10), (10, 20), (15, 30), (20, 25), (31, 40)].map(|(s, e)| lanes.place((0, 0), s, e));
        assert_eq!(rows, [0, 0, 1, 0, 0]);
        assert_eq!(lanes.place((0, 1), 5, 6), 0);
    }
}
