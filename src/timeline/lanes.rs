//! Lanes: their choice, labels and spans.

use super::bins::Bins;
use super::labels::Labels;
use super::names::Names;
use super::waits::{self, ByClass};
use super::windows::{self, Touching};
use super::{Drawn, Places, Source, series};
use crate::analysis::Priced;
use crate::model::timeline::{Iterations, Lane, LaneKind, Packed, SiteRef, Timeline};
use crate::profile::ids::{GlobalPid, StreamIx, ThreadIx};
use crate::profile::times::Times;
use crate::text::escape_terminal;
use crate::vocabulary::{ProfileIx, SiteId, SiteIx};
use crate::waits::device::DeviceIx;
use std::collections::BTreeSet;

/// Slices per lane: enough to look at a twentieth of the capture before single spans are needed.
const BINS: std::ops::RangeInclusive<usize> = 256..=1 << 15;

pub(super) fn draw(found: &Priced, wanted: &Drawn) -> Timeline {
    let profile = &found.profile;
    let (from, to) = (wanted.from, wanted.to.max(wanted.from));
    let (sources, lanes_left_out) = sources(found, wanted.budget.lanes);
    let places: Places = sources.iter().copied().zip(0..).collect();
    let names = Names::new(profile);
    let starts = (within(&profile.ops.times, from, to), within(&profile.calls.times, from, to));
    let windows = windows::choose((&starts.0, &starts.1), wanted.examples, (from, to), wanted.budget.spans);
    let bins = slices(starts.0.len() + starts.1.len(), wanted.budget.bins / sources.len().max(1));
    let site_of = found.site_of_waits();
    let labels = Labels::new(found);
    let drawing = Drawing { found, labels, names: &names, windows: &windows, from, to, bins };
    let by_class = |source: &Source| match source {
        Source::Stream(_) => None,
        _ => Some(std::array::from_fn(|_| drawing.bins())),
    };
    let mut classes: Vec<Option<ByClass>> = sources.iter().map(by_class).collect();
    waits::add_bins(found, &places, &site_of, &mut classes);
    let lanes = sources.iter().zip(classes).map(|(&source, classes)| drawing.lane(source, classes));
    Timeline {
        profile: wanted.profile,
        start_ns: from,
        span_ns: to - from,
        bins,
        lanes_left_out,
        sites: sites(found, wanted.profile, from, to),
        waits: waits::pack(found, wanted, &places, &windows, &site_of),
        iterations: iterations(found, from, to),
        windows: pairs(&windows, from),
        lanes: lanes.collect(),
        names: names.list.clone(),
    }
}

fn within<I: From<usize>>(times: &Times<I>, from: i64, to: i64) -> Vec<i64>
where
    usize: From<I>,
{
    let places = times.first_from(from)..times.first_from(to.saturating_add(1));
    places.map(|at| times.start(I::from(at))).collect()
}

/// Slices of a lane: a power of two, no more than a few per span.
fn slices(spans: usize, most: usize) -> usize {
    let wanted = spans.saturating_mul(4).min(most).clamp(*BINS.start(), *BINS.end());
    1 << wanted.ilog2()
}

/// GPU by GPU: idle time after waits, then streams by process and number. Then threads by process, the main
/// one first. Beyond `most`, streams and threads with fewest spans are left out.
fn sources(found: &Priced, most: usize) -> (Vec<Source>, usize) {
    let streams = &found.devices.stream_ops;
    let threads = &found.profile.calls.by_thread;
    let mut ranked: Vec<(usize, Source)> = Vec::new();
    ranked.extend(streams.iter_enumerated().map(|(i, ops)| (ops.len(), Source::Stream(i))));
    ranked.extend(threads.iter_enumerated().map(|(i, calls)| (calls.len(), Source::Thread(i))));
    ranked.retain(|(spans, _)| *spans > 0);
    let all = ranked.len();
    ranked.sort_by_key(|&(spans, source)| (std::cmp::Reverse(spans), place(found, source)));
    ranked.truncate(most.saturating_sub(found.devices.list.len()).max(2));
    let left_out = all - ranked.len();
    let mut sources: Vec<Source> = ranked.into_iter().map(|(_, source)| source).collect();
    let devices: BTreeSet<DeviceIx> =
        found.waits.keys().filter_map(|w| waits::drain(found, w)).map(|d| d.0).collect();
    sources.extend(devices.into_iter().take(most).map(Source::Idle));
    sources.sort_by_key(|&source| place(found, source));
    (sources, left_out)
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum LaneOrder {
    Device(DeviceIx, Option<StreamIx>),
    /// Process, and whether the thread is not its main one.
    Thread(GlobalPid, bool, ThreadIx),
}

fn place(found: &Priced, source: Source) -> LaneOrder {
    match source {
        Source::Idle(device) => LaneOrder::Device(device, None),
        Source::Stream(stream) => LaneOrder::Device(found.devices.of_stream[stream], Some(stream)),
        Source::Thread(thread) => {
            let process = found.profile.calls.threads[thread].process();
            LaneOrder::Thread(process, !Labels::is_main(found, thread), thread)
        }
    }
}

fn sites(found: &Priced, profile: ProfileIx, from: i64, to: i64) -> Vec<SiteRef> {
    let one = |(number, site): (SiteIx, &crate::verdict::site::Site)| SiteRef {
        ix: SiteId { profile, site: number },
        id: None,
        class: site.verdict.class,
        series: series::series(found, site, from, to),
    };
    found.sites.iter_enumerated().map(one).collect()
}

fn iterations(found: &Priced, from: i64, to: i64) -> Option<Iterations> {
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
    found: &'a Priced,
    labels: Labels<'a>,
    names: &'a Names,
    windows: &'a [(i64, i64)],
    from: i64,
    to: i64,
    bins: usize,
}

/// The spans of a lane, which come one after another.
struct Spans<'a> {
    kept: usize,
    packed: Packed,
    drawing: &'a Drawing<'a>,
    touching: Touching<'a>,
    bins: Bins,
    previous: i64,
    /// End of the last span: a span that starts earlier is inside it, or damaged.
    reached: i64,
}

impl Spans<'_> {
    fn add(&mut self, start: i64, end: i64, name: impl FnOnce(&Names) -> u32) {
        let (from, to) = (self.drawing.from, self.drawing.to);
        if start > to || end < from {
            return;
        }
        let (start, end) = (start.max(from), end.min(to));
        self.bins.add(start, end);
        self.reached = self.reached.max(end);
        if self.touching.touches(start, end) {
            self.packed.push(start.saturating_sub(self.previous));
            self.packed.push(end.saturating_sub(start));
            self.packed.push(i64::from(name(self.drawing.names)));
            self.previous = start;
            self.kept += 1;
        }
    }
}

impl Drawing<'_> {
    fn bins(&self) -> Bins {
        Bins::new(self.from, self.to - self.from, self.bins)
    }

    fn lane(&self, source: Source, classes: Option<ByClass>) -> Lane {
        let (labels, profile) = (&self.labels, &self.found.profile);
        let by_class = classes.map_or_else(Default::default, |c| c.map(|bins| bins.pack()));
        let mut spans = Spans {
            kept: 0,
            packed: Packed::default(),
            drawing: self,
            touching: Touching::new(self.windows),
            bins: self.bins(),
            previous: self.from,
            reached: i64::MIN,
        };
        let (kind, group, label) = match source {
            Source::Idle(device) => (LaneKind::Idle, labels.gpu(device), "idle after waits".to_owned()),
            Source::Stream(stream) => {
                for &op in &self.found.devices.stream_ops[stream] {
                    spans.add(profile.ops.start(op), profile.ops.end(op), |names| names.op(profile, op));
                }
                let device = self.found.devices.of_stream[stream];
                (LaneKind::Stream, labels.gpu(device), labels.stream(stream))
            }
            // Outermost calls only: a driver call below a runtime call is the same call.
            Source::Thread(thread) => {
                for &call in &profile.calls.by_thread[thread] {
                    let (start, end) = (profile.calls.start(call), profile.calls.end(call));
                    if start.max(self.from) >= spans.reached {
                        spans.add(start, end, |names| names.call(profile, call));
                    }
                }
                let pid = profile.calls.threads[thread].process();
                (LaneKind::Thread, format!("{} {}", labels.program(pid), pid.pid()), labels.thread(thread))
            }
        };
        let busy = if kind == LaneKind::Idle { Packed::default() } else { spans.bins.pack() };
        Lane { kind, group, label, kept: spans.kept, spans: spans.packed, busy, by_class }
    }
}
