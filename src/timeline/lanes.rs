//! Lanes: which there are, what they are called, and their spans.

use super::bins::Bins;
use super::encode::Packed;
use super::labels::Labels;
use super::names::Names;
use super::waits::{self, ByClass, Places};
use super::windows::{self, Touching};
use super::{Iterations, Lane, LaneKind, SiteRef, Timeline, Wanted, series};
use crate::analysis::Analysed;
use crate::profile::nvtx::process;
use crate::text::escape_terminal;
use crate::waits::device::pid_of;

/// Slices per lane: enough to look at a twentieth of the capture before single spans are needed.
const BINS: std::ops::RangeInclusive<usize> = 256..=1 << 15;

/// What a lane is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Idle(u32),
    Stream(u32),
    Thread(u32),
}

pub(super) fn draw(found: &Analysed, wanted: &Wanted) -> Timeline {
    let profile = &found.profile;
    let (from, to) = (wanted.from, wanted.to.max(wanted.from));
    let (sources, lanes_left_out) = sources(found, wanted.budget.lanes);
    let places = places(found, &sources);
    let names = Names::new(profile);
    let starts = (within(&profile.ops.start, from, to), within(&profile.calls.start, from, to));
    let windows = windows::choose(starts, wanted.examples, (from, to), wanted.budget.spans);
    let bins = slices(starts.0.len() + starts.1.len(), wanted.budget.bins / sources.len().max(1));
    let site_of = waits::site_of(found);
    let by_class = |source: &Source| {
        let has = !matches!(source, Source::Stream(_));
        has.then(|| std::array::from_fn(|_| Bins::new(from, to - from, bins)))
    };
    let mut classes: Vec<Option<ByClass>> = sources.iter().map(by_class).collect();
    let drained = waits::add_bins(found, &places, &site_of, &mut classes);
    let drawing = Drawing { found, names: &names, windows: &windows, from, to, bins };
    let lanes: Vec<Lane> = sources
        .iter()
        .zip(classes)
        .zip(drained)
        .map(|((&source, classes), drained)| drawing.lane(source, classes, drained))
        .collect();
    Timeline {
        profile: wanted.profile,
        start_ns: from,
        span_ns: to - from,
        bins,
        lanes_left_out,
        sites: sites(found, from, to),
        waits: waits::pack(found, wanted, &places, &windows, &site_of),
        iterations: iterations(found, from, to),
        windows: pairs(&windows, from),
        total_spans: lanes.iter().map(|l| l.total).sum(),
        kept_spans: lanes.iter().map(|l| l.kept).sum(),
        names: names.list.clone(),
        lanes,
    }
}

/// The part of ascending times within `from..=to`.
fn within(times: &[i64], from: i64, to: i64) -> &[i64] {
    let start = times.partition_point(|&t| t < from);
    let end = times.partition_point(|&t| t <= to);
    &times[start..end.max(start)]
}

/// Slices of a lane: a power of two, no more than a few per span.
fn slices(spans: usize, most: usize) -> usize {
    let wanted = spans.saturating_mul(4).min(most).clamp(*BINS.start(), *BINS.end());
    1 << wanted.ilog2()
}

/// GPU by GPU, the streams of each by process and number, below the idle time after waits; then the threads by process,
/// the main one first. At most `most`: streams and threads with fewest spans go.
fn sources(found: &Analysed, most: usize) -> (Vec<Source>, usize) {
    let streams = &found.devices.stream_ops;
    let threads = &found.profile.calls.by_thread;
    let mut ranked: Vec<(usize, Source)> = Vec::new();
    ranked.extend((0..).zip(streams).map(|(i, ops)| (ops.len(), Source::Stream(i))));
    ranked.extend((0..).zip(threads).map(|(i, calls)| (calls.len(), Source::Thread(i))));
    ranked.retain(|(spans, _)| *spans > 0);
    let all = ranked.len();
    ranked.sort_by_key(|&(spans, source)| (std::cmp::Reverse(spans), place(found, source)));
    ranked.truncate(most.saturating_sub(found.devices.list.len()).max(2));
    let left_out = all - ranked.len();
    let mut sources: Vec<Source> = ranked.into_iter().map(|(_, source)| source).collect();
    let mut devices: Vec<u32> =
        (0..found.waits.len()).filter_map(|w| waits::drain(found, w)).map(|d| d.0).collect();
    devices.sort_unstable();
    devices.dedup();
    sources.extend(devices.into_iter().take(most).map(Source::Idle));
    sources.sort_by_key(|&source| place(found, source));
    (sources, left_out)
}

/// Order of lanes: devices before threads.
fn place(found: &Analysed, source: Source) -> (bool, i64, u8, i64, u32) {
    match source {
        Source::Idle(device) => (false, i64::from(device), 0, 0, 0),
        Source::Stream(stream) => {
            let device = found.devices.of_stream[stream as usize];
            (false, i64::from(device), 1, found.profile.ops.streams[stream as usize].pid, stream)
        }
        Source::Thread(thread) => {
            let tid = found.profile.calls.threads[thread as usize];
            (true, process(tid), u8::from(!Labels(found).is_main(thread)), tid, thread)
        }
    }
}

fn places(found: &Analysed, sources: &[Source]) -> Places {
    let mut places = Places {
        of_stream: vec![None; found.devices.of_stream.len()],
        of_thread: vec![None; found.profile.calls.threads.len()],
        idle_of_device: vec![None; found.devices.list.len()],
    };
    for (lane, source) in (0u32..).zip(sources) {
        match *source {
            Source::Idle(device) => places.idle_of_device[device as usize] = Some(lane),
            Source::Stream(stream) => places.of_stream[stream as usize] = Some(lane),
            Source::Thread(thread) => places.of_thread[thread as usize] = Some(lane),
        }
    }
    places
}

fn sites(found: &Analysed, from: i64, to: i64) -> Vec<SiteRef> {
    let one = |site: &crate::sites::Site| SiteRef {
        pid: pid_of(site.bundle.pid),
        key: site.key.clone(),
        id: None,
        class: site.verdict.class,
        series: series::of(found, site, from, to),
    };
    found.sites.iter().map(one).collect()
}

/// Iterations that touch the drawing.
fn iterations(found: &Analysed, from: i64, to: i64) -> Option<Iterations> {
    let iterations = found.iterations.as_ref()?;
    let spans: Vec<(i64, i64)> =
        iterations.spans.iter().filter(|s| s.0 <= to && s.1 >= from).map(|s| (s.0.max(from), s.1)).collect();
    let name = escape_terminal(&iterations.name).into_owned();
    Some(Iterations { name, count: spans.len(), packed: pairs(&spans, from) })
}

/// Start after the start before, length.
fn pairs(spans: &[(i64, i64)], from: i64) -> Packed {
    let mut packed = Packed::default();
    let mut previous = from;
    for &(start, end) in spans {
        packed.push(start.saturating_sub(previous));
        packed.push(end.saturating_sub(start));
        previous = start;
    }
    packed
}

struct Drawing<'a> {
    found: &'a Analysed,
    names: &'a Names,
    windows: &'a [(i64, i64)],
    from: i64,
    to: i64,
    bins: usize,
}

/// Spans of a lane as they come.
struct Spans<'a> {
    touching: Touching<'a>,
    bins: Bins,
    packed: Packed,
    previous: i64,
    /// End of the last span: what starts before it is inside that one, or damaged.
    reached: i64,
    busy_ns: i64,
    total: usize,
    kept: usize,
}

impl Spans<'_> {
    fn add(&mut self, start: i64, end: i64, name: u32) {
        self.total += 1;
        self.bins.add(start, end);
        self.busy_ns = self.busy_ns.saturating_add(end.saturating_sub(start.max(self.reached)).max(0));
        self.reached = self.reached.max(end);
        if self.touching.touches(start, end) {
            self.packed.push(start.saturating_sub(self.previous));
            self.packed.push(end.saturating_sub(start));
            self.packed.push(i64::from(name));
            self.previous = start;
            self.kept += 1;
        }
    }
}

impl Drawing<'_> {
    fn lane(&self, source: Source, classes: Option<ByClass>, drained: i64) -> Lane {
        let mut spans = Spans {
            touching: Touching::new(self.windows),
            bins: Bins::new(self.from, self.to - self.from, self.bins),
            packed: Packed::default(),
            previous: self.from,
            reached: i64::MIN,
            busy_ns: 0,
            total: 0,
            kept: 0,
        };
        match source {
            Source::Idle(_) => {}
            Source::Stream(stream) => self.ops(stream, &mut spans),
            Source::Thread(thread) => self.calls(thread, &mut spans),
        }
        let (kind, group, label) = self.labels(source);
        Lane {
            kind,
            group,
            label,
            busy_ns: if kind == LaneKind::Idle { drained } else { spans.busy_ns },
            total: spans.total,
            kept: spans.kept,
            spans: spans.packed,
            busy: if kind == LaneKind::Idle { Packed::default() } else { spans.bins.pack() },
            by_class: classes.map_or_else(Default::default, |c| c.map(|bins| bins.pack())),
        }
    }

    /// The span's part within the drawing.
    fn clip(&self, start: i64, end: i64) -> Option<(i64, i64)> {
        (start <= self.to && end >= self.from).then(|| (start.max(self.from), end.min(self.to)))
    }

    fn ops(&self, stream: u32, spans: &mut Spans) {
        let ops = &self.found.profile.ops;
        for &op in &self.found.devices.stream_ops[stream as usize] {
            let op = op as usize;
            if let Some((start, end)) = self.clip(ops.start[op], ops.end[op]) {
                spans.add(start, end, self.names.op(&self.found.profile, op));
            }
        }
    }

    /// Calls that are not inside another: a driver call below a runtime call is the same call.
    fn calls(&self, thread: u32, spans: &mut Spans) {
        let calls = &self.found.profile.calls;
        for &call in &calls.by_thread[thread as usize] {
            let call = call as usize;
            if let Some((start, end)) = self.clip(calls.start[call], calls.end[call])
                && start >= spans.reached
            {
                spans.add(start, end, self.names.call(&self.found.profile, call));
            }
        }
    }

    fn labels(&self, source: Source) -> (LaneKind, String, String) {
        let labels = Labels(self.found);
        match source {
            Source::Idle(device) => (LaneKind::Idle, labels.gpu(device), "idle after waits".to_owned()),
            Source::Stream(stream) => {
                let device = self.found.devices.of_stream[stream as usize];
                (LaneKind::Stream, labels.gpu(device), labels.stream(stream))
            }
            Source::Thread(thread) => {
                let pid = process(self.found.profile.calls.threads[thread as usize]);
                let group = format!("{} {}", labels.program(pid), pid_of(pid));
                (LaneKind::Thread, group, labels.thread(thread))
            }
        }
    }
}
