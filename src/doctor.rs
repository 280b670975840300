//! Checks a capture: what it lacks, the loss to the report, and the command that mends it.

use crate::analysis::Judged;
use crate::model::doctor::{Check, Examined};
use crate::model::{Code, Warning};
use crate::profile::ISSUE_UNKNOWN;
use crate::profile::ids::{GlobalPid, OpId};
use crate::profile::strings::base_name;
use crate::profile::target::Target;
use crate::profile::{commands, recapture};
use crate::sites::Bundle;
use crate::text::{self, count, counted, duration, shorten_end};
use crate::verdict::site::Site;
use crate::vocabulary::{Attribution, Class, Recorder, ThreadRole};
use crate::waits::api::Blocking;
use crate::waits::{Covers, Found, Wait};
use std::collections::{BTreeMap, BTreeSet};

/// From nsys 2024.4 on (schema 3.12), exports can hold payloads of Python marks; 2024.2 has no such flag.
const FIRST_WITH_PAYLOADS: (u32, u32) = (2024, 4);

/// A capture with fewer GPU ops than this shows start-up, not steady state.
const TINY_OPS: usize = 50;

/// Share of launches that block until their kernel ends above which CUDA_LAUNCH_BLOCKING is suspected.
const BLOCKING_SHARE: f64 = 0.9;

struct Limit {
    warning: Warning,
    /// Whether its command captures the program anew, with all backtraces.
    captures: bool,
}

/// All limits of a report on this export, most important first.
pub fn warnings(found: &Judged) -> Vec<Warning> {
    limits(found).into_iter().map(|limit| limit.warning).collect()
}

fn limits(found: &Judged) -> Vec<Limit> {
    let mut list = damage(found);
    list.extend(lacks(found));
    list.extend(failures(found));
    list.extend(gpu_work(found));
    list.extend(not_python(found));
    list.extend(lines(found));
    list.extend(chains(found, &list));
    list.extend(threshold(found));
    list.extend(lost_events(found));
    list.extend(graphs(found));
    list.extend(nesting(found));
    list.extend(blocking_mode(found));
    list.extend(unknown_devices(found));
    list.extend(sources(found));
    list.extend(size(found));
    list
}

/// Whether torch.profiler made the capture, which then has no settings of nsys.
fn is_trace(found: &Judged) -> bool {
    found.profile.target.recorder == Recorder::TorchProfiler
}

/// A limit that a new capture with the flags `more` mends; the command names the nsys it needs.
fn recapture(found: &Judged, more: &str, code: Code, message: impl Into<String>) -> Limit {
    let target = &found.profile.target;
    let mut command = recapture::capture(target, more);
    if !is_trace(found) && exporter(target).is_none_or(|version| version < FIRST_WITH_PAYLOADS) {
        command.push_str("   # needs nsys 2024.5 or later");
    }
    Limit { warning: Warning::new(code, message, command), captures: true }
}

/// A limit that a new export of the same report mends.
fn reexport(found: &Judged, code: Code, message: String) -> Limit {
    let warning = Warning::new(code, message, commands::export(found.profile.path()));
    Limit { warning, captures: false }
}

/// A limit that no other capture mends.
fn stays(code: Code, message: String) -> Limit {
    Limit { warning: Warning::new(code, message, ""), captures: false }
}

/// Rows that cannot be right. Each was left out; the rest is reported.
fn damage(found: &Judged) -> Vec<Limit> {
    const TIMES: &str = "rows with times out of range were left out";
    const NAMES: &str = "calls have a name id that stands for no string: waits among them are missing";
    const PAYLOADS: &str =
        "Python marks have a payload that cannot be understood: their waits have no Python line";
    const CHAINS: &str = "call chains have two frames at one depth";
    let (profile, context) = (&found.profile, &found.context);
    let kinds = [
        (profile.calls.out_of_range + profile.ops.out_of_range, Code::DamagedTimes, TIMES),
        (profile.calls.unnamed, Code::DamagedNames, NAMES),
        (context.broken, Code::DamagedPayloads, PAYLOADS),
        (context.chains.damaged, Code::DamagedChains, CHAINS),
    ];
    let path = profile.path().display();
    let said = |(n, code, what)| {
        reexport(found, code, format!("{path}: {} {what}; the export is damaged", count(n)))
    };
    kinds.into_iter().filter(|(count, ..)| *count > 0).map(said).collect()
}

/// Tables and columns that every nsys writes and this export lacks.
fn lacks(found: &Judged) -> Vec<Limit> {
    let code = |column: bool| if column { Code::MissingColumn } else { Code::UnreadableTable };
    let lacks = found.profile.lacks.iter();
    lacks.map(|l| reexport(found, code(l.column), format!("{}: {}", l.what, l.loss))).collect()
}

fn failures(found: &Judged) -> Option<Limit> {
    let (profile, failed) = (&found.profile, found.profile.calls.failed);
    let (start, name, error) = failed.first?;
    let api = profile.strings.get(name).map_or("a call", |s| base_name(s));
    let (calls, at) = (counted(failed.calls, "call"), text::timestamp(start));
    let message = format!(
        "{calls} that may wait returned an error, the first of them {api} at {at}: error {error} of CUDA; what follows is no run in which all goes well"
    );
    Some(stays(Code::CallsFailed, message))
}

/// NVTX ranges that say no place: left open, or nested deeper with each iteration.
fn nesting(found: &Judged) -> Vec<Limit> {
    let nvtx = &found.profile.nvtx;
    let (ended, left_out) = (nvtx.unclosed.ended, nvtx.unclosed.left_out + nvtx.ranges.too_deep);
    let [ranges, deep] = [ended, left_out].map(|n| counted(n, "NVTX range"));
    let name = shorten_end(&nvtx.unclosed.name, 60);
    let never_popped = format!(
        "never popped: {ranges}, most of them `{name}`; each counts as ended where the next of its name begins on its thread"
    );
    let too_deep = format!(
        "left out: {deep}, which nest deeper than a program's parts do, as ranges do that are pushed and never popped"
    );
    let ended = (ended > 0).then(|| stays(Code::RangesNeverPopped, never_popped));
    let left_out = (left_out > 0).then(|| stays(Code::RangesLeftOut, too_deep));
    ended.into_iter().chain(left_out).collect()
}

fn gpu_work(found: &Judged) -> Option<Limit> {
    let said = found.profile.target.profiler_messages(&["CUDA", "CUPTI", "driver"]);
    let quoted = said.first().map_or_else(String::new, |m| format!("; nsys says: {m}"));
    let message = format!("no kernel or copy is recorded: copies and idle time cannot be told{quoted}");
    found.profile.ops.is_empty().then(|| match recapture::cuda_failed(&found.profile.target) {
        Some(advice) => stays(Code::NoGpuWork, format!("{message}; {advice}")),
        None => recapture(found, "", Code::NoGpuWork, message),
    })
}

fn not_python(found: &Judged) -> Option<Limit> {
    let foreign = found.context.programs.foreign();
    let target = &found.profile.target;
    let name = |pid: GlobalPid| {
        let main = || target.thread_names.get(&pid.main_thread());
        let name =
            target.process_names.get(&pid).or_else(main).map(|name| shorten_end(name, 40).into_owned());
        name.unwrap_or_else(|| format!("process {}", pid.pid()))
    };
    let mut made: Vec<String> =
        foreign.iter().map(|(pid, toolkit)| format!("{} ({})", name(*pid), toolkit.name)).collect();
    made.dedup();
    let places = if target.without_python { "places are functions of native chains, and " } else { "" };
    let message = format!(
        "no PyTorch in {}: {places}fixes are in CUDA's terms: events, streams, pinned memory",
        text::first_of(&made, 3)
    );
    (!made.is_empty()).then(|| stays(Code::NotPython, message))
}

fn lines(found: &Judged) -> Option<Limit> {
    const SAMPLED: &str = "Python was sampled about once a millisecond: a wait shorter than that shows the function around it, not its line; backtraces on CUDA calls give exact lines";
    const OFF: &str = "Python backtraces were asked for, but not those of synchronisations: of several kinds given to --cudabacktrace, nsys 2025.3 keeps one or none";
    const ALONE: &str = "Python backtraces were asked for, but backtraces of CUDA calls were not (or CPU sampling was off): nsys then records no Python frame. `nsys status -e` says whether you may sample: as root, or with kernel.perf_event_paranoid at 2 or less. Without that, --python-sampling=true gives probable lines";
    const NONE: &str = "the capture holds no Python backtraces: waits are placed by native chains and NVTX ranges, not by line";
    let (profile, context) = (&found.profile, &found.context);
    if is_trace(found) {
        return lines_of_trace(found);
    }
    let none_wanted = profile.target.without_python;
    if found.waits.is_empty() || none_wanted || context.stack.iter().all(Option::is_some) {
        return None;
    }
    if context.missing > 0 {
        return Some(payload_missing(found));
    }
    let capture = &profile.target.capture;
    let domain = |name| profile.nvtx.has_domain(&profile.db, name).unwrap_or_default();
    let (code, message) = if !profile.nvtx.sample_marks.is_empty() {
        (Code::SamplingOnly, SAMPLED)
    } else if capture.python_backtrace == Some(true) && capture.cuda_backtrace == Some(false) {
        (Code::SyncBacktracesOff, OFF)
    } else if profile.calls.twins.is_empty() && domain("Python Backtrace on CUDA") {
        (Code::PythonWithoutCudabacktrace, ALONE)
    } else if profile.lacks.iter().any(|lack| lack.frames) {
        return None; // what is lacking says so
    } else if context.marked == 0 {
        return Some(recapture(found, "", Code::NoPythonBacktraces, format!("{NONE}{}", undecided(found))));
    } else {
        return None;
    };
    Some(recapture(found, "", code, message))
}

fn lines_of_trace(found: &Judged) -> Option<Limit> {
    const NONE: &str = "the trace holds no Python functions (with_stack was off): waits are placed by operators, not by line";
    if found.waits.is_empty() {
        return None;
    }
    if found.context.marked == 0 {
        return Some(recapture(found, "", Code::NoPythonBacktraces, format!("{NONE}{}", undecided(found))));
    }
    let of = |site: &&Site| site.bundle.attribution == Attribution::PythonFunction;
    let (functions, all) = (found.sites.iter().filter(of).count(), found.sites.len());
    let message = format!(
        "the trace names the function, not the line, at {functions} of {}. PyTorch 2.14 and later record lines. --source-root finds a line where only one of the function waits that way",
        counted(all as u64, "site")
    );
    (functions > 0).then(|| recapture(found, "", Code::FunctionsOnly, message))
}

/// Number of undecided sites, as a clause; empty for none.
fn undecided(found: &Judged) -> String {
    // As in the report's head: sites of several ranks with one key are one.
    let keys = |which: &dyn Fn(&Site) -> bool| {
        let keys: BTreeSet<&str> = found.sites.iter().filter(|s| which(s)).map(|s| &*s.key).collect();
        keys.len() as u64
    };
    let undecided = keys(&|s| s.verdict.class == Class::Unknown);
    let (open, all) = (count(undecided), counted(keys(&|_| true), "site"));
    let are = if undecided == 1 { "is" } else { "are" };
    if undecided > 0 { format!("; {open} of {all} {are} undecided") } else { String::new() }
}

fn payload_missing(found: &Judged) -> Limit {
    let (missing, marked) = (count(found.context.missing), count(found.context.marked));
    let mut message = format!(
        "{missing} of {marked} Python marks were exported without their frames: waits are placed natively, not by line"
    );
    let target = &found.profile.target;
    if exporter(target).is_some_and(|v| v < FIRST_WITH_PAYLOADS) {
        let version = target.export_version.as_deref().unwrap_or("");
        message +=
            &format!("; nsys {version} cannot export them: export the report with nsys 2024.5 or later");
    }
    reexport(found, Code::PythonPayloadMissing, message)
}

/// Year and release of the exporting nsys.
fn exporter(target: &Target) -> Option<(u32, u32)> {
    let version = target.export_version.as_deref()?;
    let mut parts = version.split('.').map(|p| p.parse::<u32>().ok());
    parts.next().flatten().zip(parts.next().flatten())
}

/// Needless if `said` has a limit about lines.
fn chains(found: &Judged, said: &[Limit]) -> Option<Limit> {
    const ADDRESSES: &str =
        "the native call chains hold addresses only: symbols were not resolved, so they name no operation";
    if is_trace(found) {
        return None; // a trace has operators in their place, and no others
    }
    let (calls, chains) = (&found.profile.calls, &found.context.chains);
    if chains.frames > 0 && chains.resolved == 0 {
        return Some(recapture(found, "--resolve-symbols=true", Code::ChainsUnresolved, ADDRESSES));
    }
    let none = calls.twins.is_empty()
        && calls.chain.is_empty()
        && found.context.stack.iter().all(Option::is_none)
        && !said.iter().filter_map(|limit| limit.warning.known()).any(Code::is_of_lines);
    let either = if found.profile.target.without_python { "" } else { " either" };
    let message = format!("CUDA calls carry no native call chains{either}");
    none.then(|| recapture(found, "", Code::NoChains, message))
}

/// Waits shorter than the capture's threshold have neither chain nor frames.
fn threshold(found: &Judged) -> Option<Limit> {
    let threshold = found.profile.target.capture.sync_threshold_ns.filter(|&t| t > 0)?;
    let waits = found.waits.iter().zip(&found.context.stack);
    let short = waits.filter(|(w, stack)| stack.is_none() && w.blocked < threshold).count();
    let (waits, least) = (count(short as u64), duration(threshold));
    let message = format!(
        "{waits} waits were shorter than the capture's backtrace threshold of {least}, so they have no line"
    );
    (short > 0).then(|| recapture(found, "", Code::BacktraceThreshold, message))
}

fn lost_events(found: &Judged) -> Option<Limit> {
    // Messages on OpenGL or the operating system do not concern this report.
    const ABOUT: &[&str] = &["CUDA", "CUPTI", "NVTX"];
    const LOST: &[&str] = &["Not all", "lost", "dropped", "overflow"];
    let mut said = found.profile.target.profiler_messages(ABOUT);
    // After a capture range nsys always says "Not all": the program ran on.
    let ranged = found.profile.target.capture.ranged;
    said.retain(|m| LOST.iter().any(|l| m.contains(l)) && !(ranged && m.starts_with("Not all")));
    let quoted: Vec<String> = said.iter().take(4).map(|m| format!("\"{m}\"")).collect();
    let message = format!("nsys says: {}; numbers may be low", quoted.join(" "));
    (!said.is_empty()).then(|| recapture(found, "--cuda-flush-interval=1000", Code::EventsLost, message))
}

fn graphs(found: &Judged) -> Option<Limit> {
    let launches = found.profile.ops.graph_launches;
    let message = format!(
        "{} CUDA graph launches were traced as a whole: their kernels are hidden, only their time is known",
        count(launches)
    );
    (launches > 0).then(|| recapture(found, "--cuda-graph-trace=node", Code::GraphLevelTrace, message))
}

/// `CUDA_LAUNCH_BLOCKING=1` makes each launch return with its kernel; debug modes put a wait after each launch.
fn blocking_mode(found: &Judged) -> Option<Limit> {
    let (ops, calls) = (&found.profile.ops, &found.profile.calls);
    let issued = |&op: &OpId| ops.is_kernel(op) && found.profile.issued(op) != ISSUE_UNKNOWN;
    let outlasts = |op: OpId| found.profile.issuer(op).is_some_and(|call| calls.end(call) >= ops.end(op));
    let (launches, blocking) = ops
        .ids()
        .filter(issued)
        .fold((0, 0), |(all, blocking), op| (all + 1, blocking + usize::from(outlasts(op))));
    if launches < TINY_OPS {
        return None;
    }
    let plain = |w: &&Wait| matches!(w.blocking, Blocking::Context | Blocking::Stream) && w.copy.is_none();
    let synced = found.waits.iter().filter(plain).count();
    let most = |n: usize| n as f64 / launches as f64 >= BLOCKING_SHARE;
    let [all, blocked, waits] = [launches, blocking, synced].map(|n| count(n as u64));
    if most(blocking) {
        let message = format!(
            "{blocked} of {all} kernel launches returned only when their kernel had ended: CUDA_LAUNCH_BLOCKING=1 was set, so this is not how the program runs"
        );
        let mut limit = recapture(found, "", Code::LaunchBlocking, message);
        if !is_trace(found) {
            limit.warning.fix.insert_str(0, "env -u CUDA_LAUNCH_BLOCKING ");
        }
        return Some(limit);
    }
    let message = format!(
        "a wait follows nearly every kernel launch ({waits} waits, {all} launches): a debug mode, or a loop that synchronises after each step"
    );
    most(synced).then(|| recapture(found, "", Code::WaitAfterEveryLaunch, message))
}

fn unknown_devices(found: &Judged) -> Option<Limit> {
    let unknown = |w: &&Wait| w.covers == Covers::AnyDevice && w.found != Found::Unknown;
    let waits = found.waits.iter().filter(unknown).count();
    if is_trace(found) {
        let message = format!(
            "{} waits do not record which device they were for (enable_cuda_sync_events was off): their device is inferred from what ended before they returned",
            count(waits as u64)
        );
        return (waits > 0).then(|| recapture(found, "", Code::SyncDeviceUnknown, message));
    }
    let message = format!(
        "{} waits do not record which device they were for (CUDA 13 leaves out most device synchronisations, and cudaSetDevice is not traced): their device is inferred from what ended before they returned",
        count(waits as u64)
    );
    (waits > 0).then(|| stays(Code::SyncDeviceUnknown, message))
}

fn sources(found: &Judged) -> Vec<Limit> {
    let stale: Vec<_> = found.sites.iter().filter(|s| s.stale).collect();
    let of_site = stale.first().map(|site| {
        let frame = site.bundle.user_frame();
        let at = frame.map_or_else(String::new, |f| format!(" (first: {}:{})", f.file, f.line));
        let sites = counted(stale.len() as u64, "site");
        let message = format!(
            "at {sites} the source at hand is not what ran{at}: it was not used; check out the revision that was profiled, or point --source-root at it"
        );
        stays(Code::StaleSource, message)
    });
    let refused = found.refused.iter().take(4).map(|refused| {
        stays(Code::SourceRefused, format!("{}, {}: it was not read", refused.path.display(), refused.reason))
    });
    of_site.into_iter().chain(refused).collect()
}

fn size(found: &Judged) -> Vec<Limit> {
    let (ops, open) = (&found.profile.ops, found.profile.calls.open + found.profile.ops.open);
    let tiny = (!ops.is_empty() && ops.len() < TINY_OPS).then(|| {
        let few = ops.len();
        let message =
            format!("only {few} GPU operations were captured: too few to tell start-up from steady state");
        recapture(found, "", Code::TinyCapture, message)
    });
    let open = (open > 0).then(|| {
        let message =
            format!("{} calls or operations have no end: the capture stopped inside them", count(open));
        stays(Code::OpenEvents, message)
    });
    tiny.into_iter().chain(open).collect()
}

/// `profile`: the path as typed.
pub fn examine(found: &Judged, profile: String) -> Examined {
    const BRACKET: &str = "Bracket the steps to look at with torch.cuda.profiler.start() and .stop(), and add --capture-range=cudaProfilerApi: backtraces slow every CUDA call.";
    let (limits, target) = (limits(found), &found.profile.target);
    let again = limits.iter().any(|limit| limit.captures) && !target.without_python && !is_trace(found);
    let limits = limits.into_iter().chain(slowed(found));
    let warnings: Vec<Warning> = limits.map(|limit| limit.warning).collect();
    Examined {
        profile,
        usable: !warnings.iter().any(Warning::is_damage),
        checks: checks(found),
        warnings,
        advice: (again && !target.capture.ranged).then(|| BRACKET.to_owned()),
        refused: None,
    }
}

/// A backtrace of each launch slows the program. The report itself says so, with the time lost.
fn slowed(found: &Judged) -> Option<Limit> {
    if is_trace(found) {
        return None;
    }
    const EVERY: &str = "launches carry backtraces too, which slow the program; backtraces at waits alone give the same lines";
    let calls = &found.profile.calls;
    let mut launches = calls.names.iter_enumerated().filter(|(_, name)| name.launches_kernel());
    let slow = launches.any(|(name, _)| calls.backtraced[name]);
    slow.then(|| recapture(found, "", Code::ProfilerOverhead, EVERY))
}

/// A capture without CUDA calls; `why` no report is made.
pub fn refuse(why: String, profile: String) -> Examined {
    let none = Check { good: false, question: "CUDA API calls".to_owned(), answer: "none".to_owned() };
    Examined { profile, checks: vec![none], refused: Some(why), ..Examined::default() }
}

/// Why some waits of a capture with backtraces have no line: ", 20 on autograd's threads, which run no Python".
fn without_line(found: &Judged) -> String {
    let (calls, context) = (&found.profile.calls, &found.context);
    if calls.twins.is_empty() {
        return String::new();
    }
    let (mut autograd, mut apis) = (0, BTreeMap::<&str, u64>::new());
    for (w, wait) in found.waits.iter_enumerated().filter(|(w, _)| context.stack[*w].is_none()) {
        if context.role[w] == ThreadRole::Autograd {
            autograd += 1;
        } else if calls.twin(wait.call).is_none() {
            *apis.entry(calls.base_name(wait.call)).or_default() += 1;
        }
    }
    let threads = format!(", {} on autograd's threads, which run no Python", count(autograd));
    let others = apis.iter().map(|(api, &n)| format!(", {} in {api}, which got no backtrace", count(n)));
    (autograd > 0).then_some(threads).into_iter().chain(others).collect()
}

fn checks(found: &Judged) -> Vec<Check> {
    let profile = &found.profile;
    let waits = found.waits.len();
    let native_only = profile.target.without_python;
    let waits_of = |of: &dyn Fn(&Bundle) -> bool| -> usize {
        found.sites.iter().map(|s| &s.bundle).filter(|b| of(b)).map(|b| b.waits.len()).sum()
    };
    let exact = waits_of(&Bundle::has_own_line);
    let native = waits_of(&|b| b.attribution == Attribution::Native);
    let number = |n: usize| count(n as u64);
    let check = |good, question: &str, answer| Check { good, question: question.to_owned(), answer };
    let chains = match profile.calls.twins.is_empty() {
        _ if waits == 0 || exact < waits => format!("{} waits placed by them", number(native)),
        true => "none".to_owned(),
        false => "recorded".to_owned(),
    };
    let range = if native_only { "nvtxRangePush(\"step\")" } else { "torch.cuda.nvtx.range(f\"step {i}\")" };
    let iterations = found.iterations.as_ref().map_or_else(
        || format!("none: wrap the loop's body in {range}"),
        |i| format!("{} by {}", text::iterations(i.spans.len() as u64, i.start_up as u64), i.source()),
    );
    let graphs = match profile.ops.graph_launches {
        0 => "nothing hidden".to_owned(),
        n => format!("hidden in {} graph launches", count(n)),
    };
    let lines = match native_only {
        true => "no Python in this program".to_owned(),
        false => format!("{} of {} waits{}", number(exact), number(waits), without_line(found)),
    };
    vec![
        check(!profile.calls.is_empty(), "CUDA API calls", count(profile.calls.total())),
        check(!profile.ops.is_empty(), "GPU operations", number(profile.ops.len())),
        check(waits > 0, "host waits", number(waits)),
        check((exact == waits || native_only) && waits > 0, "exact Python lines", lines),
        check(exact == waits || native + exact >= waits, "native call chains", chains),
        check(found.iterations.is_some(), "iterations", iterations),
        check(profile.ops.graph_launches == 0, "kernels inside CUDA graphs", graphs),
    ]
}
