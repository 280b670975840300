//! Writes the events as they come.

use super::select::Selection;
use super::tracks::{Lanes, Track, Tracks};
use crate::analysis::Priced;
use crate::model::{Frame, Report, Site};
use crate::profile::ids::{CallId, OpId};
use crate::profile::ops::OpKind;
use crate::render::phrase::{FileNames, SitePlace};
use crate::render::view::escaped;
use crate::sites::native;
use crate::sites::neighbours::op_name;
use crate::text::{self, escape_terminal};
use crate::timeline::waits::blocked;
use crate::vocabulary::{Class, SiteIx};
use crate::waits::WaitId;
use serde_json::{Value, json};
use std::io::{self, Write};
use typed_index_collections::TiVec;

const FRAMES: usize = 16;

/// A JSON array of events, one per line.
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

    fn event(&mut self, event: &Value) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.out.write_all(b",\n")?;
        }
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }

    fn named(&mut self, what: &str, Track { pid, tid }: Track, name: &str, order: usize) -> io::Result<()> {
        [("name", json!(name)), ("sort_index", json!(order))].into_iter().try_for_each(|(key, value)| {
            let (name, args) = (format!("{what}_{key}"), json!({ key: value }));
            self.event(&json!({ "ph": "M", "name": name, "pid": pid, "tid": tid, "args": args }))
        })
    }

    /// Writes times as microseconds with all nanoseconds.
    fn timed(&mut self, mut event: Value, start: i64, duration: Option<i64>) -> io::Result<()> {
        event["ts"] = microseconds(start);
        if let Some(duration) = duration {
            event["dur"] = microseconds(duration.max(0));
        }
        self.event(&event)
    }

    /// The id is a number: ui.perfetto.dev drops arrows with any other.
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

/// Nanoseconds as microseconds: a quotient of whole numbers prints with all of its decimals and no more.
fn microseconds(ns: i64) -> Value {
    json!(ns as f64 / 1e3)
}

type Rows = TiVec<OpId, Track>;

pub struct Capture<'a> {
    found: &'a Priced,
    tracks: Tracks,
    lanes: Lanes,
    files: FileNames<'a>,
    sites: TiVec<SiteIx, Option<&'a Site>>,
    issues: TiVec<CallId, bool>,
}

impl<'a> Capture<'a> {
    /// `number`: index of the export in the report.
    pub fn new(report: &'a Report, found: &'a Priced, number: usize, tracks: Tracks) -> Self {
        let mut sites = TiVec::from(vec![None; found.sites.len()]);
        for site in report.sites.iter().filter(|s| s.ix.profile.index() == number) {
            sites[site.ix.site] = Some(site);
        }
        let profile = &found.profile;
        let mut issues = TiVec::from(vec![false; profile.calls.len()]);
        profile.ops.ids().filter_map(|op| profile.issuer(op)).for_each(|call| issues[call] = true);
        Self { found, tracks, lanes: Lanes::default(), files: FileNames::of(report), sites, issues }
    }

    /// Metadata comes last: only then are the rows known.
    pub fn write(mut self, selection: &Selection, out: &mut Writer) -> io::Result<()> {
        self.calls(selection, out)?;
        let rows = self.ops(selection, out)?;
        self.waits(selection, &rows, out)?;
        self.rows(out)
    }

    fn rows(&self, out: &mut Writer) -> io::Result<()> {
        for (order, (pid, name)) in self.tracks.processes.iter().enumerate() {
            out.named("process", Track { pid: *pid, tid: 0 }, name, order)?;
        }
        for (track, name) in self.tracks.rows(&self.lanes) {
            out.named("thread", track, &name, track.tid as usize)?;
        }
        Ok(())
    }

    fn calls(&mut self, selection: &Selection, out: &mut Writer) -> io::Result<()> {
        let calls = &self.found.profile.calls;
        for call in calls.ids().filter(|&call| selection.calls[call]) {
            let track = self.tracks.threads[calls.thread(call)];
            self.lanes.touch(track);
            let event = slice(track, "call", &escape_terminal(calls.base_name(call)));
            out.timed(event, calls.start(call), Some(calls.length(call)))?;
        }
        Ok(())
    }

    fn ops(&mut self, selection: &Selection, out: &mut Writer) -> io::Result<Rows> {
        let ops = &self.found.profile.ops;
        let mut rows = TiVec::from(vec![Track::default(); ops.len()]);
        for op in ops.ids().filter(|&op| selection.ops[op]) {
            let stream = self.tracks.streams[ops.stream(op)];
            rows[op] = self.lanes.place(stream, ops.start(op), ops.end(op));
            let category = match ops.kind(op) {
                OpKind::Kernel => "kernel",
                OpKind::Memcpy => "memcpy",
                OpKind::Memset => "memset",
                OpKind::GraphLaunch => "graph",
            };
            let name = native::short(&op_name(&self.found.profile, op));
            let mut event = slice(rows[op], category, &escape_terminal(&name));
            if let Some(copy) = ops.copy(op) {
                event["args"] =
                    json!({ "bytes": copy.bytes, "direction": copy.direction, "host": copy.host_memory });
            }
            out.timed(event, ops.start(op), Some(ops.length(op)))?;
        }
        Ok(rows)
    }

    fn waits(&mut self, selection: &Selection, rows: &Rows, out: &mut Writer) -> io::Result<()> {
        let sites = self.found.site_of_waits();
        for ((w, wait), site) in self.found.waits.iter_enumerated().zip(sites) {
            let site = site.filter(|_| selection.waits[w]).and_then(|site| self.sites[site]);
            let Some(site) = site else { continue };
            // The gap between copy and call is not drawn as waiting: the thread may have done anything.
            let mut event = self.wait(w, site);
            let (mut track, mut began) = (Track::default(), wait.start);
            for (start, end) in blocked(self.found, wait) {
                let of_copy = start < self.found.profile.calls.start(wait.call);
                track = self.lanes.place(self.tracks.waits[wait.thread], start, end);
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

    fn wait(&self, w: WaitId, site: &Site) -> Value {
        let frame = |f: &Frame| escaped(&format!("{}:{} {}", f.file, f.line, f.function));
        let stack: Vec<String> = site.frames.iter().take(FRAMES).map(frame).collect();
        let wait = &self.found.waits[w];
        let (blocked, drain) = (wait.blocked, self.found.drains[w]);
        let op = |op: OpId| native::short(&op_name(&self.found.profile, op));
        // Colours of chrome://tracing that black text is legible on: orange, blue, green. ui.perfetto.dev has its own.
        let color = match site.class {
            Class::False => "thread_state_iowait",
            Class::Unknown => "thread_state_runnable",
            Class::True => "thread_state_running",
        };
        let place = SitePlace::of(site, &self.files).both();
        json!({
            "ph": "X", "cname": color, "cat": format!("wait,{}", site.class),
            "name": format!("{place} ({}, {})", site.class.in_words(), site.kind.in_words()),
            "args": {
                "site": site.id, "api": site.api, "class": site.class, "kind": site.kind,
                "blocked": text::duration(blocked), "drain": text::duration(drain),
                "blocked_ns": blocked, "drain_ns": drain,
                "awaited": wait.awaited.map(|o| escaped(&op(o))),
                "source": site.source.as_deref().map(escape_terminal), "stack": stack,
                "fix": site.fix.as_ref().map(|f| escape_terminal(&f.title)),
            },
        })
    }

    /// From the awaited op to the wait, and on to the next call of its thread that issues an op. An arrow needs a slice
    /// at either end.
    fn arrows(
        &self,
        w: WaitId,
        (track, began): (Track, i64),
        selection: &Selection,
        rows: &Rows,
        out: &mut Writer,
    ) -> io::Result<()> {
        let profile = &self.found.profile;
        let wait = &self.found.waits[w];
        if let Some(op) = wait.awaited.filter(|&op| selection.ops[op]) {
            // With clock jitter, the awaited op may seem to end after the wait.
            let ended = profile.ops.end(op).min(wait.end.saturating_sub(1));
            // ui.perfetto.dev reverses an arrow into a slice that began before the arrow, as most waits do.
            // So an inner slice begins where the arrow arrives.
            let to = ended.max(began);
            if ended > began {
                let done = slice(track, "done", "awaited work is done");
                out.timed(done, ended, Some(wait.end.saturating_sub(ended)))?;
            }
            // A slice's end is exclusive: an arrow from there would find nothing.
            let from = ended.saturating_sub(1).max(profile.ops.start(op));
            if from <= to {
                out.arrow((rows[op], from), (track, to))?;
            }
        }
        let list = &profile.calls.by_thread[wait.thread];
        let after = list.partition_point(|&c| profile.calls.start(c) < wait.end);
        let next = list[after..].iter().copied().find(|&c| self.issues[c]);
        if let Some(call) = next.filter(|&c| selection.calls[c]) {
            let host = self.tracks.threads[wait.thread];
            out.arrow((track, began), (host, profile.calls.start(call)))?;
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
