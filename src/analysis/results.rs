//! Result structs of one export's sites: what every renderer prints.

use super::{Analysed, Options, spread};
use crate::catalogue::{self, Pattern, Strategy};
use crate::cost::statistics::{Summary, histogram, quartiles, summarise};
use crate::profile::commands;
use crate::report::*;
use crate::sites::native;
use crate::sites::neighbours::op_name;
use crate::sites::ranges::stable_name;
use crate::sites::{Site as FoundSite, frames::PathRules};
use crate::verdict::source::Reading;
use crate::vocabulary::{Attribution, Class, Evidence, Kind, ThreadRole};
use crate::waits::Wait;
use crate::waits::api::Blocking;
use crate::waits::device::{pid_of, tid_of};
use std::collections::BTreeSet;

/// Waits listed as examples of a site.
const EXAMPLES: usize = 4;

fn sum(times: impl Iterator<Item = i64>) -> i64 {
    times.fold(0, i64::saturating_add)
}

/// Lengths that percentages refer to, in ns.
struct Spans {
    /// By thread index: first call to last.
    thread: Vec<i64>,
    /// By device index: first op to last, and the busy part of it.
    device: Vec<(i64, i64)>,
}

impl Spans {
    fn new(found: &Analysed, options: &Options) -> Self {
        let calls = &found.profile.calls;
        let clip = |from, to| options.filter.clip(from, to);
        let length = |(from, to): (i64, i64)| to - from;
        let thread = calls.spans.iter().map(|s| length(clip(s.start, s.end))).collect();
        let device = found
            .devices
            .list
            .iter()
            .map(|d| {
                let (from, to) = d.timeline.span().unwrap_or((0, 0));
                let (from, to) = clip(from, to);
                (to - from, d.timeline.busy_within(from, to))
            })
            .collect();
        Self { thread, device }
    }
}

/// `part` of `whole` in percent; 0 of nothing. Never over 100: parts are disjoint pieces of the whole.
fn percent(part: i64, whole: i64) -> f64 {
    if whole <= 0 { 0.0 } else { (part as f64 / whole as f64 * 100.0).clamp(0.0, 100.0) }
}

/// Turns one export's sites into result structs.
pub struct Sites<'a> {
    found: &'a Analysed,
    options: &'a Options,
    /// Index of the export in the report.
    number: usize,
    spans: Spans,
}

impl<'a> Sites<'a> {
    pub fn new(found: &'a Analysed, options: &'a Options, number: usize) -> Self {
        Self { found, options, number, spans: Spans::new(found, options) }
    }

    pub fn summaries(&self) -> anyhow::Result<Vec<Summary>> {
        let (mut group, mut blocked, mut drain) = (Vec::new(), Vec::new(), Vec::new());
        // No sum of them overflows; only damaged times come near.
        let longest = i64::MAX / self.found.waits.len().max(1) as i64;
        for (i, site) in (0u32..).zip(&self.found.sites) {
            for &w in &site.bundle.waits {
                group.push(i);
                blocked.push(self.found.waits[w as usize].blocked.min(longest));
                drain.push(self.found.drains[w as usize].min(longest));
            }
        }
        summarise(group, blocked, drain, self.found.sites.len())
    }

    fn waits<'s>(&'s self, site: &'s FoundSite) -> impl Iterator<Item = (u32, &'s Wait)> {
        site.bundle.waits.iter().map(|&w| (w, &self.found.waits[w as usize]))
    }

    pub fn site(&self, site: &FoundSite, summary: &Summary) -> Site {
        let b = &site.bundle;
        let v = &site.verdict;
        let frames: Vec<Frame> = b.frames.iter().map(|f| frame(f, &self.options.rules)).collect();
        let threads: BTreeSet<u32> = self.waits(site).map(|(_, w)| w.thread).collect();
        let devices: BTreeSet<u32> = self.waits(site).filter_map(|(_, w)| self.device_of(w)).collect();
        let streams: BTreeSet<Option<u32>> = self.waits(site).map(|(_, w)| w.stream).collect();
        let thread_span = sum(threads.iter().map(|&t| self.spans.thread[t as usize]));
        let device_span = match devices.len() {
            0 => sum(self.spans.device.iter().map(|d| d.0)),
            _ => sum(devices.iter().map(|&d| self.spans.device[d as usize].0)),
        };
        let start_up = self.start_up(site);
        Site {
            id: String::new(),
            key: site.key.clone(),
            api: b.api.to_string(),
            driver_api: b.blocking.driver_api(),
            class: v.class,
            kind: v.kind,
            confidence: v.confidence,
            pattern: v.pattern.map(str::to_owned),
            evidence: v.evidence.iter().cloned().chain(start_up.as_ref().map(said_of_start_up)).collect(),
            attribution: b.attribution,
            attribution_note: b.note.clone(),
            user_frame: b.user.and_then(|u| frames.get(u)).cloned(),
            frames,
            native: native::readable(&b.chain),
            caller: None,
            nvtx: b.ranges.iter().map(|r| stable_name(r)).collect(),
            source: site.line_text.clone(),
            snippet: site.snippet.clone(),
            thread: self.thread(&threads, b.role),
            process: self.process(b.pid),
            device: only(&devices).map(|d| self.found.devices.list[d as usize].id),
            stream: only(&streams).flatten(),
            copy: self.copy(site),
            copy_bytes_max: self.largest_copy(site),
            waits: summary.count,
            per_iteration: self.per_iteration(site, |_| 1),
            blocked_per_iteration_ns: self.cost_per_iteration(site, |w| self.found.waits[w].blocked),
            drain_per_iteration_ns: self.cost_per_iteration(site, |w| self.found.drains[w]),
            spread: (!self.options.without_spread).then(|| self.spread(site)),
            blocked_ns: summary.sum,
            blocked_p50_ns: summary.p50,
            blocked_p99_ns: summary.p99,
            blocked_max_ns: summary.max,
            blocked_percent: percent(summary.sum, thread_span),
            drain_ns: summary.drain,
            drain_p50_ns: summary.drain_p50,
            drain_max_ns: summary.drain_max,
            drain_percent: percent(summary.drain, device_span),
            found_idle: self.waits(site).filter(|(_, w)| w.found.is_nothing()).count() as u64,
            start_up,
            blocks_capture: b.blocking != Blocking::HostAlloc && b.role != ThreadRole::Library,
            recoverable: None,
            replayed: None,
            fix: self.fix(site),
            histogram: histogram(self.waits(site).map(|(_, w)| w.blocked)),
            examples: self.examples(site),
        }
    }

    fn copy_bytes<'s>(&'s self, site: &'s FoundSite) -> impl Iterator<Item = u64> + 's {
        self.waits(site).filter_map(|(_, w)| w.copy.map(|c| c.bytes))
    }

    fn copy(&self, site: &FoundSite) -> Option<crate::vocabulary::Copy> {
        let bytes = self.copy_bytes(site).min()?;
        site.bundle.copy.map(|c| crate::vocabulary::Copy { bytes, ..c })
    }

    fn largest_copy(&self, site: &FoundSite) -> Option<u64> {
        let largest = self.copy_bytes(site).max()?;
        (site.bundle.copy.is_some() && self.copy_bytes(site).min() != Some(largest)).then_some(largest)
    }

    /// The device a wait is known to be for, else that of the work it awaited.
    fn device_of(&self, wait: &Wait) -> Option<u32> {
        let of = |op: u32| self.found.devices.of_stream[self.found.profile.ops.stream[op as usize] as usize];
        wait.device.or_else(|| wait.awaited.map(of))
    }

    /// The catalogue's fix for the site's pattern, with the site's own expression. A wait that waits for nothing goes,
    /// whatever call it is.
    fn fix(&self, site: &FoundSite) -> Option<Fix> {
        let entry = fitting(catalogue::by_id(site.verdict.pattern?)?, site.verdict.kind)?;
        let (strategy, title) = match site.verdict.kind {
            Kind::Redundant => (Strategy::Remove, "delete it: the wait before has drained the GPU"),
            Kind::Idle => (Strategy::Remove, "delete it: it found nothing to wait for"),
            Kind::Explicit if self.all_idle(site) => {
                (Strategy::Remove, "delete it: here it found nothing to wait for")
            }
            Kind::Allocator if site.bundle.waits.len() == 1 => {
                (Strategy::Leave, "nothing to do: it happens once")
            }
            _ => (entry.fix.strategy, entry.fix.title),
        };
        let rewrite =
            |r: &Reading| Some(Rewrite { before: r.expression.clone(), after: r.rewritten.clone()? });
        let here = site.reading.as_ref().and_then(rewrite);
        Some(Fix {
            order: strategy as u8 + 1,
            strategy: strategy.name().to_owned(),
            title: with_own_words(title, here.as_ref()),
            why: entry.why.to_owned(),
            before: entry.fix.before.to_owned(),
            after: entry.fix.after.to_owned(),
            caveat: entry.fix.caveat.to_owned(),
            here,
            confirm: self.confirm(site),
        })
    }

    /// How to see that the wait is gone: PyTorch's own warning where it covers the call, and a new capture.
    fn confirm(&self, site: &FoundSite) -> String {
        let command = commands::capture(self.found.profile.target.command.as_deref(), "");
        let python = site.bundle.attribution != Attribution::None && site.verdict.class != Class::True;
        match site.bundle.blocking {
            // set_sync_debug_mode sees PyTorch's stream synchronisations only: not events, devices, frees.
            Blocking::Stream if python => format!(
                "torch.cuda.set_sync_debug_mode(\"warn\")   # before the line: it must not warn\n\
                 torch.cuda.set_sync_debug_mode(0)        # after it\n{command}"
            ),
            _ => command,
        }
    }

    fn all_idle(&self, site: &FoundSite) -> bool {
        self.waits(site).all(|(_, w)| w.found.is_nothing())
    }

    fn thread(&self, threads: &BTreeSet<u32>, role: ThreadRole) -> Thread {
        let first = threads.first().map_or(0, |&t| self.found.profile.calls.threads[t as usize]);
        let name = self.found.profile.target.thread_names.get(&first).map(|n| n.to_string());
        let main = threads.iter().all(|&t| self.found.context.main[t as usize]);
        Thread { tid: tid_of(first), name, role, main, count: threads.len() }
    }

    fn process(&self, pid: i64) -> Process {
        let name = self.found.profile.target.process_names.get(&pid).map(|n| n.to_string());
        Process { pid: pid_of(pid), name, profile: self.number }
    }

    /// How a site's waits spread over iterations, where all of them come before the loop or in its first iterations (X12).
    fn start_up(&self, site: &FoundSite) -> Option<StartUp> {
        let iterations = self.found.iterations.as_ref()?;
        let last = self.found.waits[*site.bundle.waits.last()? as usize].start;
        if pid_of(iterations.tid) != pid_of(site.bundle.pid) || !iterations.only_at_start(last) {
            return None;
        }
        let turns = iterations.turns(self.waits(site).map(|(_, w)| w.start));
        Some(StartUp { with: turns.with, iterations: turns.all })
    }

    /// The iterations, if they are the site's: those of another process say nothing about this one.
    fn own_iterations(&self, site: &FoundSite) -> Option<&crate::cost::iterations::Iterations> {
        self.found.iterations.as_ref().filter(|i| pid_of(i.tid) == pid_of(site.bundle.pid))
    }

    /// What the waits inside iterations add up to, per iteration.
    fn per_iteration(&self, site: &FoundSite, amount: impl Fn(usize) -> i64) -> Option<f64> {
        let iterations = self.own_iterations(site)?;
        let inside = sum(self
            .waits(site)
            .filter(|(_, w)| iterations.at(w.start).is_some())
            .map(|(i, _)| amount(i as usize)));
        Some(inside as f64 / iterations.spans.len() as f64)
    }

    fn cost_per_iteration(&self, site: &FoundSite, cost: impl Fn(usize) -> i64) -> Option<i64> {
        self.per_iteration(site, cost).map(|ns| ns.round() as i64)
    }

    fn spread(&self, site: &FoundSite) -> Spread {
        let sample = |(i, w): (u32, &Wait)| (w.start, w.blocked, self.found.drains[i as usize]);
        let mut samples: Vec<spread::Sample> = self.waits(site).map(sample).collect();
        samples.sort_unstable();
        spread::of(&samples, self.own_iterations(site))
    }

    pub fn iterations(&self) -> Option<Iterations> {
        let found = self.found.iterations.as_ref()?;
        let mine = |w: &&Wait| pid_of(w.pid) == pid_of(found.tid) && found.at(w.start).is_some();
        let inside = self.found.waits.iter().filter(mine).count();
        let count = found.spans.len();
        let timelines = self.found.devices.list.iter().map(|d| &d.timeline);
        let busy = sum(timelines.flat_map(|t| found.spans.iter().map(|s| t.busy_within(s.0, s.1))));
        Some(Iterations {
            source: format!("NVTX ranges `{}`", found.name),
            count: count as u64,
            median_ns: found.median_ns(),
            mean_ns: sum(found.spans.iter().map(|s| s.1 - s.0)) / count.max(1) as i64,
            quartiles_ns: quartiles(found.spans.iter().map(|s| s.1 - s.0).collect()),
            gpu_busy_ns: busy / count.max(1) as i64,
            waits_per_iteration: inside as f64 / count as f64,
        })
    }

    /// The longest waits, then the first.
    fn examples(&self, site: &FoundSite) -> Vec<Example> {
        let mut longest = site.bundle.waits.clone();
        longest.sort_by_key(|&w| (std::cmp::Reverse(self.found.waits[w as usize].blocked), w));
        longest.truncate(EXAMPLES - 1);
        let first = site.bundle.waits[0];
        if !longest.contains(&first) {
            longest.push(first);
        }
        longest
            .into_iter()
            .map(|w| {
                let wait = &self.found.waits[w as usize];
                Example {
                    start_ns: wait.start,
                    end_ns: wait.end,
                    blocked_ns: wait.blocked,
                    drain_ns: self.found.drains[w as usize],
                    awaited: wait.awaited.map(|op| self.awaited(op)),
                }
            })
            .collect()
    }

    fn awaited(&self, op: u32) -> String {
        let profile = &self.found.profile;
        let stream = profile.ops.streams[profile.ops.stream[op as usize] as usize].stream;
        format!("{} on stream {stream}", native::short(&op_name(profile, op)))
    }

    pub fn profile(&self) -> ProfileInfo {
        let profile = &self.found.profile;
        let drained = |device: u32| -> i64 {
            let pairs = self.found.waits.iter().zip(&self.found.drains);
            sum(pairs.filter(|(w, _)| self.device_of(w) == Some(device)).map(|(_, d)| *d))
        };
        let gpus = (0..)
            .zip(&self.found.devices.list)
            .map(|(i, d)| {
                let (span_ns, busy_ns) = self.spans.device[i as usize];
                Gpu {
                    id: d.id,
                    name: d.name.as_ref().map(|n| n.to_string()),
                    span_ns,
                    busy_ns,
                    idle_ns: span_ns - busy_ns,
                    drain_ns: drained(i),
                }
            })
            .collect();
        let pids: BTreeSet<i64> =
            profile.calls.threads.iter().map(|&t| crate::profile::nvtx::process(t)).collect();
        let (from, to) = profile.bounds().unwrap_or((0, 0));
        let (from, to) = self.options.filter.clip(from, to);
        ProfileInfo {
            path: profile.path().display().to_string(),
            export_version: profile.target.export_version.clone(),
            schema: profile.target.schema_version.clone(),
            span_ns: to - from,
            gpus,
            processes: pids.into_iter().map(|p| self.process(p)).collect(),
            command: profile.target.command.clone(),
            backtraces: self.backtraces(),
            launch_ns: spread::launch(profile),
        }
    }

    /// By what is there, not by the flags: old exports do not tell those.
    fn backtraces(&self) -> &'static str {
        let Analysed { profile, context, .. } = self.found;
        let chained = |&c: &u32| c != crate::profile::calls::NO_CHAIN;
        if context.marked > context.missing && !profile.calls.twins.is_empty() {
            "python"
        } else if !profile.nvtx.sample_marks.is_empty() {
            "sampled"
        } else if !profile.calls.twins.is_empty() || profile.calls.chain.iter().any(chained) {
            "native"
        } else {
            "none"
        }
    }
}

fn frame(f: &crate::profile::payload::PyFrame, rules: &PathRules) -> Frame {
    Frame {
        function: f.function.to_string(),
        file: f.file.to_string(),
        line: f.line,
        user: rules.is_user(&f.file),
    }
}

fn said_of_start_up(at: &StartUp) -> Evidence {
    let text = match at.with {
        0 => format!("only at start-up: before the first of {} iterations", at.iterations),
        n => format!(
            "only at start-up: in {n} of {} iterations, at the beginning and never later",
            at.iterations
        ),
    };
    Evidence::new("X12", text)
}

/// The fix's title with the site's own expression rewritten, where that is short enough for a column.
fn with_own_words(title: &str, here: Option<&Rewrite>) -> String {
    /// Longer expressions are read in the details.
    const LONGEST: usize = 56;
    match here.map(|h| h.after.as_str()) {
        Some(after) if after.chars().count() <= LONGEST && !after.contains('\n') => {
            format!("{title}: {after}")
        }
        _ => title.to_owned(),
    }
}

/// The entry whose fix fits the verdict: a read that turned out to steer the program wants another one than a read in
/// a log.
fn fitting(entry: &'static Pattern, kind: Kind) -> Option<&'static Pattern> {
    if entry.kind.is_some() {
        return Some(entry);
    }
    let reads_scalar = entry.id.starts_with('A');
    match kind {
        Kind::ControlFlow => catalogue::by_id("A03"),
        Kind::DynamicShape if reads_scalar => catalogue::by_id("A07"),
        Kind::RoundTrip if reads_scalar => catalogue::by_id("A11"),
        _ => Some(entry),
    }
}

/// The only element of a set.
fn only<T: Copy + Ord>(set: &BTreeSet<T>) -> Option<T> {
    (set.len() == 1).then(|| set.first().copied()).flatten()
}
