//! What was captured: exports, GPUs, iterations, waits.

use super::{phrase, ranks, saving, view};
use crate::model::{Gpu, ProfileInfo, Recorder, Report};
use crate::text::{self, escape_terminal};

/// Exports and GPUs named one by one; more are summed up.
const MOST_NAMED: usize = 2;

pub(crate) fn facts(report: &Report) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut previous = None;
    for profile in report.profiles.iter().take(MOST_NAMED) {
        let label = if previous.is_none() { "profile" } else { "" };
        lines.push((label.to_owned(), profile_line(profile, previous)));
        previous = Some(profile);
    }
    let more = report.profiles.len().saturating_sub(MOST_NAMED);
    lines.extend((more > 0).then(|| (String::new(), format!("and {more} more"))));
    lines.extend(report.ranks.iter().flat_map(ranks::facts));
    lines.extend(gpu_lines(report));
    lines.extend(iterations_line(report).map(|line| ("iterations".to_owned(), line)));
    let totals = &report.totals;
    if totals.waits > 0 {
        let waits = format!("{} at {}", text::count(totals.waits), text::counted(totals.sites, "site"));
        lines.push(("waits".to_owned(), waits));
    }
    lines.extend(report.together.iter().skip(1).map(|set| ("together".to_owned(), saving::together(set))));
    lines
}

/// Omits a version or command that equals the export before's.
fn profile_line(profile: &ProfileInfo, previous: Option<&ProfileInfo>) -> String {
    let mut parts = vec![view::escaped(&profile.path), text::duration(profile.span_ns)];
    let version = profile.export_version.as_deref();
    if previous.is_none_or(|previous| previous.export_version.as_deref() != version) {
        let nsys = version.map(|version| format!("nsys {}", escape_terminal(version)));
        let torch = (profile.recorder == Recorder::TorchProfiler).then(|| profile.recorder.to_string());
        parts.extend(nsys.or(torch));
    }
    let command = profile.command.as_deref().filter(|command| !command.is_empty());
    if previous.is_none_or(|previous| previous.command.as_deref() != command) {
        const LONG_ENOUGH: usize = 120;
        let short = |command| text::shorten_end(&escape_terminal(command), LONG_ENOUGH).into_owned();
        parts.extend(command.map(short));
    }
    parts.join(", ")
}

fn gpu_lines(report: &Report) -> Vec<(String, String)> {
    let gpus: Vec<&Gpu> = report.profiles.iter().flat_map(|profile| &profile.gpus).collect();
    if gpus.len() <= MOST_NAMED {
        let line =
            |gpu: &&Gpu| (format!("GPU {}", gpu.id), format!("{}: {}", gpu_name(gpu), phrase::busy(gpu)));
        return gpus.iter().map(line).collect();
    }
    let all: Vec<String> = gpus.iter().map(|gpu| gpu_name(gpu)).collect();
    let count = |name: &String| all.iter().filter(|other| *other == name).count();
    let names = text::distinct(all.iter()).into_iter().map(|name| format!("{} × {name}", count(name)));
    let names: Vec<String> = names.collect();
    vec![("GPUs".to_owned(), format!("{}: {}", names.join(", "), phrase::busy(&report.totals.gpus())))]
}

fn gpu_name(gpu: &Gpu) -> String {
    gpu.name.as_deref().map_or_else(|| "name not recorded".to_owned(), view::escaped)
}

fn iterations_line(report: &Report) -> Option<String> {
    let iterations = report.iterations.as_ref()?;
    let share = iterations.confidence.map(|share| format!(", {} alike", text::confidence(share)));
    let (count, share) = (text::iterations(iterations.count, iterations.start_up), share.unwrap_or_default());
    let source = escape_terminal(&iterations.source);
    let (waits, of) = (phrase::waits(iterations.waits_per_iteration), phrase::looping(report, iterations));
    Some(format!("{count} by {source}{share}{of}, {waits} each"))
}
