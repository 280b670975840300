//! Result structs of one export's sites, as every renderer prints them.

use super::awaited::{self, Look};
use super::{edits, host_calls, launches};
use crate::analysis::advice::Advice;
use crate::analysis::{Options, Priced};
use crate::cost::statistics::{histogram, percent, quartiles};
use crate::frame::{PathSums, SiteWaits, Sums, WaitTable};
use crate::model::ranks::find_the_late;
use crate::model::*;
use crate::profile::communicators;
use crate::profile::ids::{GlobalPid, GlobalTid, OpId, ThreadIx};
use crate::profile::parallel::divided;
use crate::profile::payload::PyFrame;
use crate::profile::recapture;
use crate::sites::native;
use crate::sites::neighbours::op_name;
use crate::sites::ranges::stable_name;
use crate::text;
use crate::verdict::site::{Path, Site as FoundSite};
use crate::verdict::source::Reading;
use crate::vocabulary::{
    Attribution, Backtraces, Class, Copy, Evidence, Kind, ProfileIx, RuleId, SiteId, SiteIx, Strategy,
    ThreadRole,
};
use crate::waits::WaitId;
use crate::waits::api::Blocking;
use crate::waits::device::{Device, DeviceIx};
use indexmap::IndexMap;
use std::collections::BTreeSet;
use typed_index_collections::TiVec;

const EXAMPLES: usize = 4;

fn sum(times: impl Iterator<Item = i64>) -> i64 {
    times.fold(0, i64::saturating_add)
}

/// Lengths that percentages refer to, in ns.
struct Spans {
    /// First call to last.
    thread: TiVec<ThreadIx, i64>,
    /// First op to last, and the busy part.
    device: TiVec<DeviceIx, (i64, i64)>,
    /// Bounds of `device`.
    windows: TiVec<DeviceIx, (i64, i64)>,
}

impl Spans {
    fn new(found: &Priced, options: &Options) -> Self {
        let clip = |from, to| options.filter.clip(from, to);
        let length = |(from, to): (i64, i64)| to - from;
        let window = |device: &Device| {
            let (from, to) = device.timeline.span().unwrap_or((0, 0));
            clip(from, to)
        };
        let devices = &found.devices.list;
        let windows: TiVec<DeviceIx, (i64, i64)> = devices.iter().map(window).collect();
        let device = |(device, &(from, to)): (&Device, &(i64, i64))| {
            (to - from, device.timeline.busy_within(from, to))
        };
        let threads = found.profile.calls.spans.iter();
        let thread = threads.map(|s| length(clip(s.start, s.end))).collect();
        Self { thread, device: devices.iter().zip(&windows).map(device).collect(), windows }
    }

    fn of_threads(&self, threads: &[ThreadIx]) -> i64 {
        sum(threads.iter().map(|&t| self.thread[t]))
    }

    /// All devices if the site's are not known.
    fn of_devices(&self, devices: &[DeviceIx]) -> i64 {
        match devices {
            [] => sum(self.device.iter().map(|length| length.0)),
            own => sum(own.iter().map(|&ix| self.device[ix].0)),
        }
    }
}

pub struct Sites<'a> {
    pub(super) found: &'a Priced,
    options: &'a Options,
    number: ProfileIx,
    spans: Spans,
    waits: &'a WaitTable,
    /// `None` if awaited work is not reported.
    look: Option<Look<'a>>,
}

impl<'a> Sites<'a> {
    pub fn new(found: &'a Priced, waits: &'a WaitTable, options: &'a Options, number: ProfileIx) -> Self {
        let looks = options.awaited || !found.collectives.is_empty();
        let look = looks.then(|| Look::new(found, number));
        Self { found, options, number, spans: Spans::new(found, options), waits, look }
    }

    /// In the export's order.
    pub fn all(&self) -> Vec<Site> {
        let spread = !self.options.without_spread;
        let site = |ix: SiteIx| self.site(ix, &self.waits.of_site(&self.found.sites[ix], spread));
        divided(self.found.sites.len(), self.options.threads, |number| site(number.into()))
    }

    fn site(&self, number: SiteIx, waits: &SiteWaits) -> Site {
        let found = self.found;
        let site = &found.sites[number];
        let (b, v, sums) = (&site.bundle, &site.verdict, &waits.sums);
        let frame = |f: &PyFrame| self.options.rules.frame(f);
        let copy = b.copy.filter(|_| sums.copies > 0);
        let iterations = found.loop_of(site).map(|i| i.spans.len() as f64);
        let each = |inside: i64| iterations.map(|count| inside as f64 / count);
        let each_ns = |inside: i64| each(inside).map(|ns| ns.round() as i64);
        let start_up = self.start_up(site, sums);
        let behind = self.look.as_ref().and_then(|look| look.behind(site));
        let late = behind.as_ref().and_then(|behind| awaited::latest(behind, sums.blocked_ns));
        let collective = behind.as_ref().and_then(|behind| awaited::said(behind, sums.blocked_ns));
        let said = start_up.as_ref().map(said_of_start_up).into_iter().chain(collective);
        let library = site.unnamed_library_frame();
        Site {
            ix: SiteId { profile: self.number, site: number },
            id: String::new(),
            key: site.key.clone(),
            api: b.api.to_string(),
            driver_api: b.blocking.driver_api(),
            class: v.class,
            kind: v.kind,
            confidence: v.confidence,
            pattern: v.pattern,
            evidence: v.evidence.iter().cloned().chain(said).collect(),
            attribution: b.attribution,
            attribution_note: b.note.clone(),
            frames: b.frames.iter().map(frame).collect(),
            user_frame: b.user_frame().map(frame),
            library: library.map(|f| package(&f.file).to_owned()),
            library_frame: library.map(frame),
            caller: None,
            call_paths: self.call_paths(site, &waits.paths),
            backward: self.backward(site),
            native: native::readable(&b.chain),
            nvtx: b.ranges.iter().map(|r| stable_name(r)).collect(),
            operand: b.operand(),
            source: site.line_text().map(str::to_owned),
            snippet: site.snippet.clone(),
            thread: self.thread(&waits.threads, b.role),
            process: awaited::process(found, self.number, b.pid),
            device: if let [only] = waits.devices[..] { Some(found.devices.list[only].id) } else { None },
            stream: waits.stream,
            copy: copy.map(|c| Copy { bytes: sums.bytes_min.unsigned_abs(), ..c }),
            copy_bytes_max: copy
                .and((sums.bytes_max > sums.bytes_min).then(|| sums.bytes_max.unsigned_abs())),
            waits: sums.waits.unsigned_abs(),
            per_iteration: each(sums.waits_inside),
            blocked_per_iteration_ns: each_ns(sums.blocked_inside_ns),
            drain_per_iteration_ns: each_ns(sums.drain_inside_ns),
            offset_ns: (sums.waits_inside > 0).then_some(sums.offset_p50_ns),
            spread: waits.spread.clone(),
            blocked_ns: sums.blocked_ns,
            blocked_p50_ns: sums.blocked_p50_ns,
            blocked_p99_ns: sums.blocked_p99_ns,
            blocked_max_ns: sums.blocked_max_ns,
            blocked_percent: percent(sums.blocked_ns, self.spans.of_threads(&waits.threads)),
            drain_ns: sums.drain_ns,
            drain_p50_ns: sums.drain_p50_ns,
            drain_max_ns: sums.drain_max_ns,
            drain_percent: percent(sums.drain_ns, self.spans.of_devices(&waits.devices)),
            found_idle: sums.found_nothing.unsigned_abs(),
            start_up,
            once: found.is_once(site),
            after_loop: found.is_after_loop(site),
            blocks_capture: b.blocking != Blocking::HostAlloc && b.role != ThreadRole::Library,
            recoverable: None,
            replayed: None,
            allowed: site.allowed.clone(),
            elsewhere: None,
            fix: advice_on(late, v.class, self.fix(site)),
            proposal: edits::proposal(site),
            histogram: histogram(b.waits.iter().map(|&w| found.waits[w].blocked)),
            awaited: self.look.as_ref().filter(|_| self.options.awaited).map(|look| look.whole(site, behind)),
            examples: self.examples(site),
        }
    }

    /// Paths to the site's line that differ in user or library frames; empty if there is only one.
    fn call_paths(&self, site: &FoundSite, sums: &[PathSums]) -> Vec<CallPath> {
        let frame = |f: &PyFrame| self.options.rules.frame(f);
        let mut paths: IndexMap<[Vec<Frame>; 2], PathSums> = IndexMap::new();
        for (Path { way, .. }, sums) in site.paths.iter().zip(sums) {
            let callers = way.callers.iter().map(frame).filter(|f| f.user);
            let to = paths.entry([callers.collect(), way.library.iter().map(frame).collect()]).or_default();
            to.waits += sums.waits;
            to.blocked_ns = to.blocked_ns.saturating_add(sums.blocked_ns);
            to.drain_ns = to.drain_ns.saturating_add(sums.drain_ns);
        }
        let path = |([callers, library], sums): ([_; 2], PathSums)| {
            let PathSums { waits, blocked_ns, drain_ns } = sums;
            CallPath { callers, library, waits: waits.unsigned_abs(), blocked_ns, drain_ns }
        };
        let mut paths: Vec<CallPath> = paths.into_iter().map(path).collect();
        // Stable: of equals, the one with most waits, then the first.
        paths.sort_by_key(|path| std::cmp::Reverse(path.blocked_ns));
        if paths.len() > 1 { paths } else { Vec::new() }
    }

    fn backward(&self, site: &FoundSite) -> Option<Backward> {
        let (node, forward) = (site.bundle.node(), site.bundle.forward.as_ref());
        let backward =
            Backward { node: node.map(str::to_owned), forward: forward.map(|f| self.options.rules.frame(f)) };
        (node.is_some() || forward.is_some()).then_some(backward)
    }

    fn fix(&self, site: &FoundSite) -> Option<Fix> {
        let advice = self.found.advice(site)?;
        let Advice { entry, strategy, title, by_entry, outside, maintainers } = advice;
        let confirm = if strategy == Strategy::Leave { String::new() } else { self.confirm(site) };
        if let Some(frame) = site.library_frame().filter(|_| outside) {
            return Some(Fix { confirm, ..fix_from_outside(frame, &advice) });
        }
        let rewrite =
            |r: &Reading| Some(Rewrite { before: r.expression.clone(), after: r.rewritten.clone()? });
        let proven = site.reading.as_ref().filter(|reading| reading.outcome.edit().is_some());
        // An installed library's line is not the user's to rewrite.
        let proven = proven.filter(|_| maintainers.is_none());
        let here = proven.and_then(rewrite);
        let operator = site.bundle.attribution == Attribution::Backward && site.inside.is_none();
        // A check of gradients is switched off where it was switched on.
        let forward = operator && strategy != Strategy::Leave && site.verdict.kind != Kind::ErrorCheck;
        // The catalogue's code and alternatives serve the catalogue's own strategy.
        let alternatives = if by_entry { entry.fix.alternatives } else { &[] };
        let library = site.library_frame().map_or("the library", |frame| package(&frame.file));
        let for_maintainers = maintainers.map(|title| format!("for the maintainers of {library}: {title}"));
        let same_code = by_entry || strategy == Strategy::NonBlocking || site.verdict.kind == Kind::Timing;
        let same_code = same_code && maintainers.is_none();
        let code = |text: &str| if same_code { text.to_owned() } else { String::new() };
        let title = if forward { format!("in the forward pass: {title}") } else { title.to_owned() };
        Some(Fix {
            title: with_own_words(&title, here.as_ref()),
            why: entry.why.to_owned(),
            before: code(entry.fix.before),
            after: code(entry.fix.after),
            caveat: entry.fix.caveat.to_owned(),
            alternatives: alternatives.iter().map(|&way| way.to_owned()).chain(for_maintainers).collect(),
            here,
            confirm,
            ..by(strategy)
        })
    }

    /// Ways to see that the wait is gone: PyTorch's own warning where it covers the call, and a new capture.
    fn confirm(&self, site: &FoundSite) -> String {
        let command = recapture::capture_again(&self.found.profile.target);
        let python = site.bundle.attribution != Attribution::None
            && site.verdict.class != Class::True
            && self.found.context.programs.toolkit(site.bundle.pid).is_none();
        match site.bundle.blocking {
            // set_sync_debug_mode sees PyTorch's stream synchronisations only: not events, devices, frees.
            Blocking::Stream if python => format!(
                "torch.cuda.set_sync_debug_mode(\"warn\")   # before the line: it must not warn\n\
                 torch.cuda.set_sync_debug_mode(0)        # after it\n{command}"
            ),
            _ => command,
        }
    }

    fn thread(&self, threads: &[ThreadIx], role: ThreadRole) -> Thread {
        let first = threads.first().map_or(GlobalTid::NONE, |&t| self.found.profile.calls.threads[t]);
        let name = self.found.profile.target.thread_names.get(&first).map(|n| n.to_string());
        let main = threads.iter().all(|&t| self.found.context.main[t]);
        Thread { tid: first.tid(), name, role, main, count: threads.len() }
    }

    /// Iterations with a wait, if all waits come before the loop or in its first iterations (X12).
    fn start_up(&self, site: &FoundSite, sums: &Sums) -> Option<StartUp> {
        let iterations = self.found.loop_of(site)?;
        let last = self.found.waits[*site.bundle.waits.last()?].start;
        let early = self.found.paid_once(site).is_some() && iterations.only_at_start(last);
        early.then_some(StartUp { with: sums.iterations as usize, iterations: iterations.spans.len() })
    }

    pub fn iterations(&self) -> Option<Iterations> {
        let found = self.found.iterations.as_ref()?;
        let count = found.spans.len();
        // Only iterations in which a device worked: there may be many of both.
        let busy = sum(self.found.devices.list.iter().flat_map(|device| {
            let (from, to) = device.timeline.span().unwrap_or_default();
            let first = found.spans.partition_point(|s| s.1 <= from);
            let spans = found.spans[first..].iter().take_while(move |s| s.0 < to);
            spans.map(|s| device.timeline.busy_within(s.0, s.1))
        }));
        let (gpu_time, busiest) = self.gpu_time_of_loop(found);
        Some(Iterations {
            profile: self.number,
            source: found.source(),
            confidence: found.confidence,
            count: count as u64,
            start_up: found.start_up as u64,
            median_ns: found.median_ns(),
            mean_ns: sum(found.spans.iter().map(|s| s.1 - s.0)) / count.max(1) as i64,
            start_to_start_ns: found.start_to_start_ns(),
            quartiles_ns: quartiles(found.spans.iter().map(|s| s.1 - s.0).collect()),
            gpu_busy_ns: busy / count.max(1) as i64,
            gpu_time,
            busiest_stream_ns: busiest / count.max(1) as i64,
            waits_per_iteration: self.waits.inside() as f64 / (count * found.of_processes().count()) as f64,
        })
    }

    /// The longest waits, then the first.
    fn examples(&self, site: &FoundSite) -> Vec<Example> {
        let mut longest = site.bundle.waits.clone();
        let order = |&w: &WaitId| (std::cmp::Reverse(self.found.waits[w].blocked), w);
        if longest.len() >= EXAMPLES {
            longest.select_nth_unstable_by_key(EXAMPLES - 1, order);
            longest.truncate(EXAMPLES - 1);
        }
        longest.sort_unstable_by_key(order);
        let first = site.bundle.waits[0];
        if !longest.contains(&first) {
            longest.push(first);
        }
        let example = |w: WaitId| {
            let wait = &self.found.waits[w];
            Example {
                start_ns: wait.start,
                end_ns: wait.end,
                blocked_ns: wait.blocked,
                drain_ns: self.found.drains[w],
                awaited: wait.awaited.map(|op| self.awaited(op)),
            }
        };
        longest.into_iter().map(example).collect()
    }

    fn awaited(&self, op: OpId) -> String {
        let profile = &self.found.profile;
        let stream = profile.ops.streams[profile.ops.stream(op)].stream.number();
        format!("{} on stream {stream}", native::short(&op_name(profile, op)))
    }

    pub fn profile(&self) -> ProfileInfo {
        let profile = &self.found.profile;
        let drained = self.waits.drain_of_devices();
        let devices = self.found.devices.list.iter().zip(&self.spans.device).zip(drained);
        let times = self.gpu_time(&self.spans.windows);
        let gpus = devices.zip(times).map(|(((d, &(span_ns, busy_ns)), drain_ns), time)| Gpu {
            id: d.id,
            name: d.name.as_ref().map(|n| n.to_string()),
            span_ns,
            busy_ns,
            idle_ns: span_ns - busy_ns,
            drain_ns,
            time,
        });
        let pids: BTreeSet<GlobalPid> = profile.calls.threads.iter().map(|t| t.process()).collect();
        let (from, to) = profile.bounds().unwrap_or((0, 0));
        let (from, to) = self.options.filter.clip(from, to);
        ProfileInfo {
            path: profile.path().display().to_string(),
            recorder: profile.target.recorder,
            export_version: profile.target.export_version.clone(),
            started_utc_ns: profile.target.started_utc_ns,
            host: profile.target.host.clone(),
            rank: profile.target.rank,
            members: self.members(),
            iterations: self.found.iterations.as_ref().map_or(0, |i| i.spans.len() as u64),
            start_up: self.found.iterations.as_ref().map_or(0, |i| i.start_up as u64),
            iteration_ns: self.found.iterations.as_ref().map(crate::iterations::Iterations::median_ns),
            schema: profile.target.schema_version.clone(),
            span_ns: to - from,
            gpus: gpus.collect(),
            processes: pids.into_iter().map(|p| awaited::process(self.found, self.number, p)).collect(),
            command: profile.target.command.clone(),
            backtraces: self.backtraces(),
            slowed: self.found.prices.backtraces,
            launch_ns: launches::duration(profile),
            host_calls: host_calls::all(self.found, (from, to)),
        }
    }

    fn members(&self) -> Vec<Member> {
        let members = self.found.collectives.members.iter();
        let member = |(&pid, member): (&GlobalPid, &communicators::Member)| Member {
            pid: pid.pid(),
            communicator: format!("{:#x}", member.communicator),
            ranks: member.ranks,
            rank: member.rank,
        };
        members.map(member).collect()
    }

    /// From the data, not from the flags, which old exports lack.
    fn backtraces(&self) -> Backtraces {
        let (profile, context) = (&self.found.profile, &self.found.context);
        let twins = !profile.calls.twins.is_empty();
        match () {
            () if context.marked > context.missing && twins => Backtraces::Python,
            () if !profile.nvtx.sample_marks.is_empty() => Backtraces::Sampled,
            () if twins || !profile.calls.chain.is_empty() => Backtraces::Native,
            () => Backtraces::None,
        }
    }
}

/// A wait mostly for a late rank is advised about that rank; an avoidable one keeps its advice.
pub(super) fn advice_on(late: Option<String>, class: Class, fix: Option<Fix>) -> Option<Fix> {
    let Some(late) = late else { return fix };
    let why = format!("Most of this wait is for {late}, which comes late to a collective");
    if class == Class::False {
        let mind = |fix: Fix| Fix { caveat: format!("{why}: that time stays. {}", fix.caveat), ..fix };
        return fix.map(mind);
    }
    Some(Fix {
        title: find_the_late(&late),
        why: format!(
            "{why}. Without the wait the GPU would stand in the collective as long: look at what that rank does before it."
        ),
        caveat: "A rank with more work (longer sequences, a slower input pipeline, logging on one rank only) is late each time; where ranks take turns, their load varies.".to_owned(),
        confirm: fix.map_or_else(String::new, |fix| fix.confirm),
        ..by(Strategy::Leave)
    })
}

fn by(strategy: Strategy) -> Fix {
    Fix { order: strategy as u8 + 1, strategy, ..Fix::default() }
}

fn said_of_start_up(at: &StartUp) -> Evidence {
    let StartUp { with, iterations } = at;
    let text = match with {
        0 => format!("before the first of {iterations} iterations"),
        n => format!("in {n} of {iterations} iterations, at the beginning and never later"),
    };
    Evidence::new(RuleId::X12, format!("only at start-up: {text}"))
}

fn package(file: &str) -> &str {
    text::package(file).unwrap_or("the library")
}

/// Advice for a wait in library code that the catalogue does not know: nothing can be done at its line.
fn fix_from_outside(frame: &PyFrame, advice: &Advice) -> Fix {
    let Advice { entry, strategy, title, .. } = advice;
    let package = package(&frame.file);
    let file = text::path_end(&frame.file, 1);
    // A trace may name the function alone.
    let at = if frame.line == 0 { file.to_owned() } else { format!("{file}:{}", frame.line) };
    Fix {
        title: format!("inside {package}: {title}"),
        why: format!(
            "The wait is in code of {package} ({at} {}). What waits there: {}. {}",
            frame.function, entry.title, entry.why
        ),
        ..by(*strategy)
    }
}

/// The fix's title with the site's own rewritten expression, if short enough for a column.
fn with_own_words(title: &str, here: Option<&Rewrite>) -> String {
    const LONGEST: usize = 56;
    let short = |after: &&str| after.chars().count() <= LONGEST && !after.contains('\n');
    let own = here.map(|here| here.after.as_str()).filter(short);
    own.map_or_else(|| title.to_owned(), |after| format!("{title}: {after}"))
}
