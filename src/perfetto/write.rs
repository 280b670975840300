//! The events themselves, written as they come.

use super::select::Selection;
use super::tracks::{Lanes, Track, Tracks};
use crate::analysis::Analysed;
use crate::profile::ops::OpKind;
use crate::report::phrase::{FileNames, Place};
use crate::report::{Frame, Report, Site};
use crate::sites::native;
use crate::sites::neighbours::op_name;
use crate::text::{self, escape_terminal};
use crate::timeline::waits::blocked;
use crate::vocabulary::Class;
use crate::waits::device::pid_of;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Frames of a stack that a slice shows.
const FRAMES: usize = 16;

/// A JSON array of events, one a line.
pub struct Writer<'a> {
    out: &'a mut dyn Write,
    first: bool,
    arrows: u64,
}

impl<'a> Writer<'a> {
    pub fn begin(out: &'a mut dyn Write) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
        Ok(Self { out, first: true, arrows: 0 })
    }

    pub fn event(&mut self, event: &Value) -> io::Result<()> {
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

    /// From one place to another. Its id is a number: ui.perfetto.dev drops arrows with any other.
    fn arrow(&mut self, from: (Track, i64), to: (Track, i64)) -> io::Result<()> {
        self.arrows += 1;
        for (phase, (Track { pid, tid }, time)) in [("s", from), ("f", to)] {
            let event = json!({
                "ph": phase, "bp": "e", "cat": "wait", "name": "wait", "id": self.arrows, "pid": pid, "tid": tid,
            });
            self.timed(event, time, None)?;
        }
        Ok(())
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

/// One export, ready to be written.
pub struct Capture<'a> {
    found: &'a Analysed,
    tracks: Tracks,
    lanes: Lanes,
    files: FileNames<'a>,
    /// The report's site of each site of the export.
    sites: Vec<Option<&'a Site>>,
    /// Of each call, whether it gave the GPU work.
    issues: Vec<bool>,
}

impl<'a> Capture<'a> {
    /// `number` of the export among those of the report.
    pub fn new(report: &'a Report, found: &'a Analysed, number: usize, tracks: Tracks) -> Self {
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
        Self { found, tracks, lanes: Lanes::default(), files: FileNames::of(report), sites, issues }
    }

    /// Metadata come last: only then is known which rows there are.
    pub fn write(mut self, selection: &Selection, out: &mut Writer) -> io::Result<()> {
        self.calls(selection, out)?;
        let rows = self.ops(selection, out)?;
        self.waits(selection, &rows, out)?;
        self.tracks.write(&self.lanes, out)
    }

    fn calls(&mut self, selection: &Selection, out: &mut Writer) -> io::Result<()> {
        let calls = &self.found.profile.calls;
        for i in (0..calls.len()).filter(|&i| selection.calls[i]) {
            let track = self.tracks.threads[calls.thread[i] as usize];
            self.lanes.touch(track);
            let name = escape_terminal(calls.base_name(i as u32));
            let event = slice(track, "call", &name);
            out.timed(event, calls.start[i], Some(calls.end[i].saturating_sub(calls.start[i])))?;
        }
        Ok(())
    }

    /// Writes the ops; returns the row of each.
    fn ops(&mut self, selection: &Selection, out: &mut Writer) -> io::Result<Vec<Track>> {
        let ops = &self.found.profile.ops;
        let mut rows = vec![Track::default(); ops.len()];
        for i in (0..ops.len()).filter(|&i| selection.ops[i]) {
            let stream = self.tracks.streams[ops.stream[i] as usize];
            rows[i] = self.lanes.place(stream, ops.start[i], ops.end[i]);
            let category = match ops.kind[i] {
                OpKind::Kernel => "kernel",
                OpKind::Memcpy => "memcpy",
                OpKind::Memset => "memset",
                OpKind::GraphLaunch => "graph",
            };
            let name = native::short(&op_name(&self.found.profile, i as u32));
            let mut event = slice(rows[i], category, &escape_terminal(&name));
            if let Some(copy) = ops.copy(i as u32) {
                event["args"] =
                    json!({ "bytes": copy.bytes, "direction": copy.direction, "host": copy.host_memory });
            }
            out.timed(event, ops.start[i], Some(ops.end[i].saturating_sub(ops.start[i])))?;
        }
        Ok(rows)
    }

    fn waits(&mut self, selection: &Selection, rows: &[Track], out: &mut Writer) -> io::Result<()> {
        let mut listed: Vec<(u32, usize)> = Vec::new();
        for (site, s) in self.found.sites.iter().enumerate() {
            listed.extend(s.bundle.waits.iter().map(|&w| (w, site)));
        }
        listed.sort_unstable();
        for (w, site) in listed {
            let Some(site) = self.sites[site].filter(|_| selection.waits[w as usize]) else { continue };
            let wait = &self.found.waits[w as usize];
            // Between its copy and its call the thread may have done anything: that is not drawn as waiting.
            let mut event = self.wait(w, site);
            let (mut track, mut began) = (Track::default(), wait.start);
            for (start, end) in blocked(self.found, wait) {
                let of_copy = start < self.found.profile.calls.start[wait.call as usize];
                track = self.lanes.place(self.tracks.waits[wait.thread as usize], start, end);
                began = start;
                (event["pid"], event["tid"]) = (track.pid.into(), track.tid.into());
                let mut event = event.clone();
                if of_copy {
                    event["cat"] = format!("copy,{}", site.class).into();
                    event["name"] = format!("{}: its copy", event["name"].as_str().unwrap_or("")).into();
                }
                out.timed(event, start, Some(end.saturating_sub(start)))?;
            }
            self.arrows(w, (track, began), selection, rows, out)?;
        }
        Ok(())
    }

    fn wait(&self, w: u32, site: &Site) -> Value {
        let frame =
            |f: &Frame| escape_terminal(&format!("{}:{} {}", f.file, f.line, f.function)).into_owned();
        let stack: Vec<String> = site.frames.iter().take(FRAMES).map(frame).collect();
        let wait = &self.found.waits[w as usize];
        let (blocked, drain) = (wait.blocked, self.found.drains[w as usize]);
        let op = |op: u32| native::short(&op_name(&self.found.profile, op));
        // Colours of chrome://tracing that black text is legible on: orange, blue, green. ui.perfetto.dev has its own.
        let color = match site.class {
            Class::False => "thread_state_iowait",
            Class::Unknown => "thread_state_runnable",
            Class::True => "thread_state_running",
        };
        let place = Place::of(site, &self.files).fit(usize::MAX);
        json!({
            "ph": "X", "cname": color, "cat": format!("wait,{}", site.class),
            "name": format!("{place} ({} {})", site.class, site.kind),
            "args": {
                "site": site.id, "api": site.api, "class": site.class, "kind": site.kind,
                "blocked": text::duration(blocked), "drain": text::duration(drain),
                "blocked_ns": blocked, "drain_ns": drain,
                "awaited": wait.awaited.map(|o| escape_terminal(&op(o)).into_owned()),
                "source": site.source.as_deref().map(escape_terminal), "stack": stack,
                "fix": site.fix.as_ref().map(|f| escape_terminal(&f.title)),
            },
        })
    }

    /// From the awaited op to the wait, and on to the next call of its thread that issues an op. An arrow needs a slice
    /// at either end.
    fn arrows(
        &self,
        w: u32,
        (track, began): (Track, i64),
        selection: &Selection,
        rows: &[Track],
        out: &mut Writer,
    ) -> io::Result<()> {
        let profile = &self.found.profile;
        let wait = &self.found.waits[w as usize];
        if let Some(op) = wait.awaited.map(|op| op as usize).filter(|&op| selection.ops[op]) {
            // By the clocks' jitter, what was awaited may seem to end after the wait.
            let ended = profile.ops.end[op].min(wait.end.saturating_sub(1));
            // ui.perfetto.dev turns an arrow around that ends at a slice which began earlier, as a wait does that works:
            // a slice inside of it begins where the arrow comes in.
            let to = ended.max(began);
            if ended > began {
                let done = slice(track, "done", "awaited work is done");
                out.timed(done, ended, Some(wait.end.saturating_sub(ended)))?;
            }
            // A slice ends before its end: an arrow from there would find nothing.
            let from = ended.saturating_sub(1).max(profile.ops.start[op]);
            if from <= to {
                out.arrow((rows[op], from), (track, to))?;
            }
        }
        let list = &profile.calls.by_thread[wait.thread as usize];
        let after = list.partition_point(|&c| profile.calls.start[c as usize] < wait.end);
        let next = list[after..].iter().map(|&c| c as usize).find(|&c| self.issues[c]);
        if let Some(call) = next.filter(|&c| selection.calls[c]) {
            let host = self.tracks.threads[wait.thread as usize];
            out.arrow((track, began), (host, profile.calls.start[call]))?;
        }
        Ok(())
    }
}

fn slice(track: Track, category: &str, name: &str) -> Value {
    json!({ "ph": "X", "cat": category, "name": name, "pid": track.pid, "tid": track.tid })
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
}
