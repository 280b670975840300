//! Is this capture good enough? What it lacks, what that costs the report, and the command that mends it.

use crate::analysis::Analysed;
use crate::profile::commands;
use crate::profile::target::Target;
use crate::profile::{ISSUE_UNKNOWN, Profile};
use crate::report::Warning;
use crate::sites::context::Context;
use crate::vocabulary::Attribution;
use crate::waits::api::Blocking;
use crate::waits::{Covers, Found};

/// Code prefix of warnings about damaged rows: what could be read is reported, but the program exits with 2.
pub const DAMAGED: &str = "damaged-";

/// From nsys 2024.4 on (schema 3.12), exports can hold payloads of Python marks; 2024.2 has no such flag.
const FIRST_WITH_PAYLOADS: (u32, u32) = (2024, 4);

/// A capture with fewer GPU ops than this shows start-up, not steady state.
const TINY_OPS: usize = 50;

/// Share of launches that block until their kernel ends before CUDA_LAUNCH_BLOCKING is suspected.
const BLOCKING_SHARE: f64 = 0.9;

/// Everything that limits what a report on this export can say, most important first.
pub fn warnings(found: &Analysed) -> Vec<Warning> {
    let mut list = Vec::new();
    let profile = &found.profile;
    damage(found, &mut list);
    gpu_work(profile, &mut list);
    lines(found, &mut list);
    chains(found, &mut list);
    threshold(found, &mut list);
    lost_events(profile, &mut list);
    graphs(profile, &mut list);
    blocking_mode(found, &mut list);
    unknown_devices(found, &mut list);
    sources(found, &mut list);
    size(profile, &mut list);
    list
}

fn warn(list: &mut Vec<Warning>, code: &'static str, message: impl Into<String>, fix: impl Into<String>) {
    list.push(Warning { code, message: message.into(), fix: fix.into() });
}

fn capture_command(profile: &Profile) -> String {
    capture_with(profile, "")
}

/// The capture command with further flags; where the nsys that made this file cannot export frames, with a word on that.
fn capture_with(profile: &Profile, more: &str) -> String {
    let command = commands::capture(profile.target.command.as_deref(), more);
    match exporter(&profile.target) {
        Some(version) if version >= FIRST_WITH_PAYLOADS => command,
        _ => format!("{command}   # needs nsys 2024.5 or later"),
    }
}

fn export_command(profile: &Profile) -> String {
    commands::export(profile.path())
}

/// Rows that cannot be right. Each was left out; the rest is reported.
fn damage(found: &Analysed, list: &mut Vec<Warning>) {
    let profile = &found.profile;
    let again = export_command(profile);
    let times = profile.calls.out_of_range + profile.ops.out_of_range;
    let mut add = |count: u64, code, what: &str| {
        if count > 0 {
            let message = format!(
                "{}: {} {what}; the export is damaged",
                profile.path().display(),
                crate::text::count(count)
            );
            warn(list, code, message, again.clone());
        }
    };
    add(times, "damaged-times", "rows with times out of range were left out");
    add(
        profile.calls.unnamed,
        "damaged-names",
        "calls have a name id that stands for no string: waits among them are missing",
    );
    add(
        found.context.broken,
        "damaged-payloads",
        "Python marks have a payload that cannot be understood: their waits have no Python line",
    );
    add(found.context.chains.damaged, "damaged-chains", "call chains have two frames at one depth");
}

fn gpu_work(profile: &Profile, list: &mut Vec<Warning>) {
    if profile.ops.is_empty() {
        let said = profiler_messages(&profile.target, &["CUDA", "CUPTI", "driver"]);
        let quoted = said.first().map_or_else(String::new, |m| format!("; nsys says: {m}"));
        warn(
            list,
            "no-gpu-work",
            format!("no kernel or copy is recorded: copies, drain and idle waits cannot be told{quoted}"),
            capture_command(profile),
        );
    }
}

/// Why waits have no Python line.
fn lines(found: &Analysed, list: &mut Vec<Warning>) {
    let (profile, context) = (&found.profile, &found.context);
    let unplaced = context.stack.iter().filter(|s| s.is_none()).count();
    if unplaced == 0 || found.waits.is_empty() {
        return;
    }
    if context.missing > 0 {
        return payload_missing(profile, context, list);
    }
    if !profile.nvtx.sample_marks.is_empty() {
        return warn(
            list,
            "sampling-only",
            "Python was sampled about once a millisecond: a wait shorter than that shows the function around it, not its line; backtraces on CUDA calls give exact lines",
            capture_command(profile),
        );
    }
    let capture = &profile.target.capture;
    if capture.python_backtrace == Some(true) && capture.cuda_backtrace == Some(false) {
        return warn(
            list,
            "sync-backtraces-off",
            "Python backtraces were asked for, but not those of synchronisations: of several kinds given to --cudabacktrace, nsys 2025.3 keeps only the last",
            capture_command(profile),
        );
    }
    let domains = crate::profile::nvtx::Nvtx::domains(&profile.db).unwrap_or_default();
    if profile.calls.twins.is_empty() && domains.iter().any(|d| &**d == "Python Backtrace on CUDA") {
        return warn(
            list,
            "python-without-cudabacktrace",
            "Python backtraces were asked for, but backtraces of CUDA calls were not (or CPU sampling was off): nsys then records no Python frame",
            capture_command(profile),
        );
    }
    if context.marked == 0 {
        warn(
            list,
            "no-python-backtraces",
            "the capture holds no Python backtraces: waits are placed by native chains and NVTX ranges, not by line",
            capture_command(profile),
        );
    }
}

fn payload_missing(profile: &Profile, context: &Context, list: &mut Vec<Warning>) {
    let message = format!(
        "{} of {} Python marks were exported without their frames: waits are placed natively, not by line",
        crate::text::count(context.missing),
        crate::text::count(context.marked)
    );
    if exporter(&profile.target).is_some_and(|v| v < FIRST_WITH_PAYLOADS) {
        let version = profile.target.export_version.as_deref().unwrap_or("");
        let message = format!(
            "{message}; nsys {version} cannot export them: export the report with nsys 2024.5 or later"
        );
        return warn(list, "python-payload-missing", message, export_command(profile));
    }
    warn(list, "python-payload-missing", message, export_command(profile));
}

/// Year and release of the exporting nsys.
fn exporter(target: &Target) -> Option<(u32, u32)> {
    let version = target.export_version.as_deref()?;
    let mut parts = version.split('.').map(|p| p.parse::<u32>().ok());
    parts.next().flatten().zip(parts.next().flatten())
}

fn chains(found: &Analysed, list: &mut Vec<Warning>) {
    let (profile, chains) = (&found.profile, &found.context.chains);
    if chains.frames > 0 && chains.resolved == 0 {
        let command = capture_with(profile, "--resolve-symbols=true");
        warn(
            list,
            "chains-unresolved",
            "the native call chains hold addresses only: symbols were not resolved, so they name no operation",
            command,
        );
    } else if profile.calls.twins.is_empty()
        && profile.calls.chain.iter().all(|&c| c == crate::profile::calls::NO_CHAIN)
    {
        let placed = found.context.stack.iter().any(Option::is_some);
        if !placed && !list.iter().any(|w| w.code.contains("python") || w.code == "sampling-only") {
            warn(
                list,
                "no-chains",
                "CUDA calls carry no native call chains either",
                capture_command(profile),
            );
        }
    }
}

/// Waits shorter than the capture's threshold have neither chain nor frames.
fn threshold(found: &Analysed, list: &mut Vec<Warning>) {
    let Some(threshold) = found.profile.target.capture.sync_threshold_ns.filter(|&t| t > 0) else { return };
    let short = found
        .waits
        .iter()
        .zip(&found.context.stack)
        .filter(|(w, s)| s.is_none() && w.blocked < threshold)
        .count();
    if short > 0 {
        warn(
            list,
            "backtrace-threshold",
            format!(
                "{} waits were shorter than the capture's backtrace threshold of {}, so they have no line",
                crate::text::count(short as u64),
                crate::text::duration(threshold)
            ),
            capture_command(&found.profile),
        );
    }
}

/// The profiler's own warnings and errors about what it missed.
fn lost_events(profile: &Profile, list: &mut Vec<Warning>) {
    // What it says of OpenGL or the operating system does not touch this report.
    const ABOUT: &[&str] = &["CUDA", "CUPTI", "NVTX"];
    const LOST: &[&str] = &["Not all", "lost", "dropped", "overflow"];
    let mut said = profiler_messages(&profile.target, ABOUT);
    said.retain(|m| LOST.iter().any(|l| m.contains(l)));
    if !said.is_empty() {
        let quoted: Vec<String> = said.iter().take(4).map(|m| format!("\"{m}\"")).collect();
        let message = format!("nsys says: {}; numbers may be low", quoted.join(" "));
        warn(list, "events-lost", message, capture_with(profile, "--cuda-flush-interval=1000"));
    }
}

/// Warnings and errors (not information) of the profiler that contain one of `about`, shortened to their first line.
pub fn profiler_messages(target: &Target, about: &[&str]) -> Vec<String> {
    let mut said: Vec<String> = target
        .diagnostics
        .iter()
        .filter(|d| matches!(d.severity, 2 | 3) && about.iter().any(|a| d.text.contains(a)))
        .map(|d| crate::text::shorten_end(d.text.lines().next().unwrap_or("").trim(), 160).into_owned())
        .collect();
    said.dedup();
    said
}

fn graphs(profile: &Profile, list: &mut Vec<Warning>) {
    if profile.ops.graph_launches > 0 {
        warn(
            list,
            "graph-level-trace",
            format!(
                "{} CUDA graph launches were traced as a whole: their kernels are hidden, only their time is known",
                crate::text::count(profile.ops.graph_launches)
            ),
            capture_with(profile, "--cuda-graph-trace=node"),
        );
    }
}

/// `CUDA_LAUNCH_BLOCKING=1` makes each launch return with its kernel; debug modes put a wait after each launch.
fn blocking_mode(found: &Analysed, list: &mut Vec<Warning>) {
    let profile = &found.profile;
    let launches: Vec<usize> = (0..profile.ops.len())
        .filter(|&i| {
            profile.ops.kind[i] == crate::profile::ops::OpKind::Kernel && profile.issued[i] != ISSUE_UNKNOWN
        })
        .collect();
    if launches.len() < TINY_OPS {
        return;
    }
    let outlasts = |&&i: &&usize| {
        let pid = profile.ops.streams[profile.ops.stream[i] as usize].pid;
        let call = profile.correlation.call(pid, profile.ops.correlation[i]);
        call.is_some_and(|c| profile.calls.end[c as usize] >= profile.ops.end[i])
    };
    let blocking = launches.iter().filter(outlasts).count();
    let synced = found
        .waits
        .iter()
        .filter(|w| matches!(w.blocking, Blocking::Context | Blocking::Stream) && w.copy.is_none())
        .count();
    let share = |n: usize| n as f64 / launches.len() as f64;
    if share(blocking) >= BLOCKING_SHARE {
        warn(
            list,
            "launch-blocking",
            format!(
                "{} of {} kernel launches returned only when their kernel had ended: CUDA_LAUNCH_BLOCKING=1 was set, so this is not how the program runs",
                crate::text::count(blocking as u64),
                crate::text::count(launches.len() as u64)
            ),
            format!("env -u CUDA_LAUNCH_BLOCKING {}", capture_command(profile)),
        );
    } else if share(synced) >= BLOCKING_SHARE {
        warn(
            list,
            "wait-after-every-launch",
            format!(
                "a wait follows nearly every kernel launch ({} waits, {} launches): a debug mode, or a loop that synchronises after each step",
                crate::text::count(synced as u64),
                crate::text::count(launches.len() as u64)
            ),
            capture_command(profile),
        );
    }
}

/// Device synchronisations without a record of the device, in a process that uses several.
fn unknown_devices(found: &Analysed, list: &mut Vec<Warning>) {
    let unknown =
        found.waits.iter().filter(|w| w.covers == Covers::AnyDevice && w.found != Found::Unknown).count();
    if unknown > 0 {
        warn(
            list,
            "sync-device-unknown",
            format!(
                "{} waits do not record which device they were for (CUDA 13 leaves out most device synchronisations, and cudaSetDevice is not traced): their device is inferred from what ended before they returned",
                crate::text::count(unknown as u64)
            ),
            String::new(),
        );
    }
}

/// Sources that were there but could not be used.
fn sources(found: &Analysed, list: &mut Vec<Warning>) {
    let stale: Vec<&crate::sites::Site> = found.sites.iter().filter(|s| s.stale).collect();
    if let Some(site) = stale.first() {
        let at =
            site.bundle.user_frame().map_or_else(String::new, |f| format!(" (first: {}:{})", f.file, f.line));
        warn(
            list,
            "stale-source",
            format!(
                "at {} the source at hand is not what ran{at}: it was not used; check out the revision that was profiled, or point --source-root at it",
                crate::text::counted(stale.len() as u64, "site")
            ),
            String::new(),
        );
    }
    for refused in found.refused.iter().take(4) {
        warn(
            list,
            "source-refused",
            format!("{}, {}: it was not read", refused.path.display(), refused.reason),
            String::new(),
        );
    }
}

fn size(profile: &Profile, list: &mut Vec<Warning>) {
    if !profile.ops.is_empty() && profile.ops.len() < TINY_OPS {
        warn(
            list,
            "tiny-capture",
            format!(
                "only {} GPU operations were captured: too few to tell start-up from steady state",
                profile.ops.len()
            ),
            capture_command(profile),
        );
    }
    if profile.calls.open + profile.ops.open > 0 {
        warn(
            list,
            "open-events",
            format!(
                "{} calls or operations have no end: the capture stopped inside them",
                crate::text::count(profile.calls.open + profile.ops.open)
            ),
            String::new(),
        );
    }
}

/// One line of `sync-report doctor`: a question about the capture and its answer.
pub struct Check {
    pub good: bool,
    pub question: &'static str,
    pub answer: String,
}

/// What a capture should have, and whether this one has it.
pub fn checks(found: &Analysed) -> Vec<Check> {
    let (profile, context) = (&found.profile, &found.context);
    let waits = found.waits.len();
    let exact = context.stack.iter().filter(|s| s.is_some()).count();
    let native = found
        .sites
        .iter()
        .filter(|s| s.bundle.attribution == Attribution::Native)
        .map(|s| s.bundle.waits.len())
        .sum::<usize>();
    let number = |n: usize| crate::text::count(n as u64);
    let check = |good, question, answer| Check { good, question, answer };
    vec![
        check(!profile.calls.is_empty(), "CUDA API calls", crate::text::count(profile.calls.total())),
        check(!profile.ops.is_empty(), "GPU operations", number(profile.ops.len())),
        check(waits > 0, "host waits", number(waits)),
        check(
            exact == waits && waits > 0,
            "exact Python lines",
            format!("{} of {} waits", number(exact), number(waits)),
        ),
        check(
            exact == waits || native + exact >= waits,
            "native call chains",
            if exact > 0 && exact == waits {
                if profile.calls.twins.is_empty() { "none".into() } else { "recorded".to_owned() }
            } else {
                format!("{} waits placed by them", number(native))
            },
        ),
        check(
            found.iterations.is_some(),
            "iterations marked by NVTX",
            found.iterations.as_ref().map_or_else(
                || "none: wrap the loop's body in torch.cuda.nvtx.range(f\"step {i}\")".to_owned(),
                |i| format!("{} ranges `{}`", number(i.spans.len()), i.name),
            ),
        ),
        check(
            profile.ops.graph_launches == 0,
            "kernels inside CUDA graphs",
            if profile.ops.graph_launches == 0 {
                "nothing hidden".into()
            } else {
                format!("hidden in {} graph launches", crate::text::count(profile.ops.graph_launches))
            },
        ),
    ]
}
