//! The head of a report: what was run, what avoidable waits cost, and where the GPU's time goes.

use super::answer;
use super::phrase;
use super::saving::{self, Finding};
use super::view;
use crate::model::gpu_time::{BlockedTime, CopyTime, GpuTime};
use crate::model::{Gpu, HostMemory, Report};
use crate::text;

/// The share from which a kind of copies is named.
const NAMED: f64 = 0.1;

pub(crate) const GPU_TIME: &str = "GPU time";

/// A line: its label, or none for a sentence of its own, and the words.
pub(crate) type Line = (&'static str, String);

/// "train_mlp.py · NVIDIA H200 · 30 iterations of about 1.80 ms (2.74 ms under the profiler)".
pub(crate) fn title(report: &Report) -> String {
    let gpus: Vec<&Gpu> = report.profiles.iter().flat_map(|profile| &profile.gpus).collect();
    let names = text::distinct(gpus.iter().filter_map(|gpu| gpu.name.as_deref()));
    let counted = |name: &&str| match gpus.iter().filter(|gpu| gpu.name.as_deref() == Some(name)).count() {
        1 => view::escaped(name),
        n => format!("{n} × {}", view::escaped(name)),
    };
    let exports = report.profiles.len() as u64;
    let several = match &report.ranks {
        Some(ranks) => Some(text::counted(ranks.list.len() as u64, "rank")),
        None => (exports > 1).then(|| text::counted(exports, "capture")),
    };
    let program = view::escaped(text::path_end(report.program(), 1));
    let parts =
        std::iter::once(program).chain(several).chain(names.iter().map(counted)).chain(length(report));
    parts.collect::<Vec<_>>().join(" · ")
}

/// How many iterations there are, and how long one is; without a loop the length of the capture.
fn length(report: &Report) -> Option<String> {
    let Some(iterations) = &report.iterations else {
        let longest = text::duration(report.profiles.iter().map(|profile| profile.span_ns).max()?);
        let alone = report.totals.without_profiler.filter(|_| report.profiles.len() == 1);
        let alone = alone.map(|run| text::duration(run.run_ns)).filter(|alone| *alone != longest);
        return Some(match alone {
            Some(alone) => format!("run of about {alone} ({longest} under the profiler)"),
            None => format!("{longest} captured"),
        });
    };
    let count = text::counted(iterations.count, "iteration");
    Some(match report.totals.iteration {
        Some(one) if text::duration(one.ns) != text::duration(one.captured_ns) => {
            let (own, slowed) = (text::duration(one.ns), text::duration(one.captured_ns));
            format!("{count} of about {own} ({slowed} under the profiler)")
        }
        one => {
            // A loop's launches may take less time than its work.
            let captured = one.map_or(iterations.start_to_start_ns, |one| one.captured_ns);
            format!("{count} of {}", text::duration(captured))
        }
    })
}

pub(crate) fn lines(report: &Report) -> Vec<Line> {
    let Finding { late, lead, rest, rewriting, undecided, limit, once } =
        answer::finding(report).unwrap_or_else(|| answer::without_waits(report));
    let saves = Some(lead + &rest).filter(|words| !words.is_empty());
    let findings = late.into_iter().flatten().chain([saves, rewriting, undecided].into_iter().flatten());
    let mut lines: Vec<Line> = findings.map(|words| ("", words)).collect();
    lines.extend(report.together.first().map(|set| ("together", saving::together(set))));
    lines.extend(gpu_time(report).map(|words| (GPU_TIME, words)));
    lines.extend(limit.map(|words| ("next", words)));
    lines.extend(once.map(|words| ("once", words)));
    lines
}

pub(crate) fn parted(report: &Report) -> (Option<String>, Vec<Line>) {
    let mut lines = lines(report).into_iter().peekable();
    let finding = lines.next_if(|(label, _)| label.is_empty()).map(|(_, words)| words);
    (finding, lines.collect())
}

/// `kind` is the drawing's name of the part; `share` is 0 to 1.
#[derive(serde::Serialize)]
pub(crate) struct Part {
    pub kind: &'static str,
    pub words: String,
    pub share: f64,
}

/// GPU time of the loop, else of the whole capture. Parts that round to 0 % are left out.
pub(crate) fn gpu_time_parts(report: &Report) -> Vec<Part> {
    let time = report.gpu_time();
    let GpuTime { kernels_ns, collectives_ns, memsets_ns, idle_after_waits_ns, .. } = time;
    let (blocked, idle) = time.idle_told_ns();
    let most = time.copies.iter().max_by_key(|copy| copy.ns).filter(|copy| time.share(copy.ns) >= NAMED);
    let copies = most.map(|copy| format!("copies ({})", named(copy, time.share(copy.ns))));
    let parts = [
        ("kernel", kernels_ns, "kernels".to_owned()),
        ("collective", collectives_ns, "collectives".to_owned()),
        ("copy", time.copies_ns(), copies.unwrap_or_else(|| "copies".to_owned())),
        ("memset", memsets_ns, "memsets".to_owned()),
        ("drained", idle_after_waits_ns, "idle after these waits".to_owned()),
        ("blocked", blocked, format!("idle, CPU blocked{}", blocked_in(&time.blocked_in))),
        ("idle", idle, "idle, waiting for the CPU".to_owned()),
    ];
    let percents = text::percents(&parts.each_ref().map(|part| part.1));
    let shown = parts.into_iter().zip(percents).filter(|(_, percent)| *percent > 0);
    let part = |((kind, ns, what), percent): ((_, _, String), i64)| Part {
        kind,
        words: format!("{percent} % {what}"),
        share: time.share(ns),
    };
    shown.map(part).collect()
}

pub(crate) fn gpu_time(report: &Report) -> Option<String> {
    let parts: Vec<String> = gpu_time_parts(report).into_iter().map(|part| part.words).collect();
    // The export with the longest iterations represents all.
    let of = report.iterations.as_ref().map(|found| phrase::looping(report, found)).unwrap_or_default();
    (!parts.is_empty()).then(|| parts.join(" · ") + &of)
}

/// "95 % H2D pageable".
fn named(copy: &CopyTime, share: f64) -> String {
    let (direction, percent) = (phrase::direction(copy.direction), 100.0 * share);
    match copy.host_memory {
        HostMemory::Unknown => format!("{percent:.0} % {direction}"),
        memory => format!("{percent:.0} % {direction} {memory}"),
    }
}

/// " in poll (train.py:12)": the function that takes most.
fn blocked_in(times: &[BlockedTime]) -> String {
    let Some((BlockedTime { call, at, ns }, others)) = times.split_first() else { return String::new() };
    let call = call.as_ref().map(|call| format!(" in {}", view::escaped(call))).unwrap_or_default();
    let at = at.as_ref().map(|at| format!(" ({})", view::escaped(at))).unwrap_or_default();
    let elsewhere = if others.iter().any(|other| 2 * other.ns > *ns) { " and elsewhere" } else { "" };
    call + &at + elsewhere
}
