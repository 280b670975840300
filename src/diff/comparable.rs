//! Checks which aspects of two captures are comparable.

use super::matching::Roots;
use super::snapshot::Snapshot;
use crate::model::diff::Granularity;
use crate::model::{Code, Warning};
use crate::text;
use crate::vocabulary::Backtraces;
use std::collections::BTreeSet;

/// Aspects that may be compared; the others are shown without being judged.
pub struct Comparable {
    /// Times: they need the same GPU and a capture that slows the host alike.
    pub costs: bool,
    /// Numbers of waits: they need the same iterations, or whole runs of one length.
    pub counts: bool,
    /// Lines and files of pairs, and verdicts: both captures must record lines.
    pub lines: bool,
    pub warnings: Vec<Warning>,
}

/// Largest relative difference of equal runs.
const SAME_LENGTH: f64 = 0.2;

/// Largest ratio of launch times on one host: captured twice in a row it was up to 1.06; on another machine
/// with the same GPU, or a busy one, 1.2 to 1.95, and iterations slowed alike.
const SAME_HOST: f64 = 1.15;

const CAPTURE_ALIKE: &str =
    "capture both alike (sync-report run, or the command that `sync-report doctor` prints)";
const ONE_MACHINE: &str = "capture both on one machine, one after the other";
const SAME_RANGES: &str = "capture both with the same NVTX ranges";

pub fn check(before: &Snapshot, after: &Snapshot, grain: Granularity, roots: &Roots) -> Comparable {
    let mut warnings = Vec::new();
    let mut costs = true;
    let (b, a) = (before.gpus(), after.gpus());
    if b != a && !b.is_empty() && !a.is_empty() {
        costs = false;
        let [b, a] = [b, a].map(|names| names.into_iter().cloned().collect::<Vec<_>>().join(", "));
        let message = format!("other GPUs: {b} before, {a} after; times are shown but not judged");
        warnings.push(Warning::new(Code::OtherGpu, message, "capture both on the same kind of GPU"));
    }
    if let Some(message) = other_flags(before, after) {
        costs = false;
        warnings.push(Warning::new(Code::OtherFlags, message, CAPTURE_ALIKE));
    }
    if let Some(message) = other_host(before, after).filter(|_| costs) {
        costs = false;
        warnings.push(Warning::new(Code::OtherHost, message, ONE_MACHINE));
    }
    let coarse = match grain {
        Granularity::Line => None,
        Granularity::Function => Some((
            Code::SampledLines,
            "lines of a sampled capture are only probable: sites are compared by function",
        )),
        Granularity::Call => Some((
            Code::NoLines,
            "only one of the captures has Python frames: waits are compared by call and copy, not by line",
        )),
    };
    warnings.extend(coarse.map(|(code, message)| Warning::new(code, message, CAPTURE_ALIKE)));
    let counts = iterations(before, after, &mut warnings);
    // Costs need a common base.
    costs &= counts;
    others(before, after, roots, &mut warnings);
    Comparable { costs, counts, lines: grain == Granularity::Line, warnings }
}

/// Backtraces slow the host several times: comparing a capture with and one without compares the profiler.
fn other_flags(before: &Snapshot, after: &Snapshot) -> Option<String> {
    let kinds = |side: &Snapshot| side.profiles.iter().map(|p| p.backtraces).collect::<BTreeSet<_>>();
    let words = |kinds: BTreeSet<Backtraces>| {
        let word = |kind| match kind {
            Backtraces::Python => "Python backtraces",
            Backtraces::Native => "native backtraces",
            Backtraces::Sampled => "Python samples",
            Backtraces::None => "no backtraces",
        };
        kinds.into_iter().map(word).collect::<Vec<_>>().join(" and ")
    };
    let [b, a] = [before, after].map(kinds);
    (b != a).then(|| {
        let (b, a) = (words(b), words(a));
        format!(
            "captured with other flags: {b} before, {a} after; backtraces slow the host, so times are shown but not judged"
        )
    })
}

/// On a slower host everything takes longer: the captures then differ by machine, not by the change.
fn other_host(before: &Snapshot, after: &Snapshot) -> Option<String> {
    let launch =
        |side: &Snapshot| side.profiles.iter().filter_map(|p| p.launch_ns).max().filter(|&ns| ns > 0);
    let (b, a) = (launch(before)?, launch(after)?);
    let slower = if a > b { "slower" } else { "faster" };
    let [took, takes] = [b, a].map(text::duration);
    (b.max(a) as f64 > SAME_HOST * b.min(a) as f64).then(|| {
        format!(
            "the host was {slower} at calls: launching a kernel took {took} before, {takes} after; times are shown but not judged"
        )
    })
}

/// Warns about the base of amounts; whether both sides share it.
fn iterations(before: &Snapshot, after: &Snapshot, warnings: &mut Vec<Warning>) -> bool {
    let span = |side: &Snapshot| side.profiles.iter().map(|p| p.span_ns).max().unwrap_or(0) as f64;
    let (b, a) = (span(before), span(after));
    let alike = (b - a).abs() <= SAME_LENGTH * b.max(a);
    match (&before.iterations, &after.iterations) {
        (Some(old), Some(new)) => {
            // Found iterations need no common source: it names other loops, which change with every fix.
            let found = old.confidence.is_some() && new.confidence.is_some();
            let alike = found || old.source == new.source;
            if !alike {
                let (b, a) = (&old.source, &new.source);
                let message =
                    format!("other iterations: {b} before, {a} after; amounts are shown but not judged");
                warnings.push(Warning::new(Code::OtherIterations, message, SAME_RANGES));
            }
            // Work outside iterations happens once per run in any case.
            alike
        }
        (None, None) => {
            let advice = "wrap the loop's body in NVTX ranges `step N`";
            let message = if alike {
                "no iterations in either capture: amounts are per run".to_owned()
            } else {
                let (b, a) = (text::duration(b as i64), text::duration(a as i64));
                format!(
                    "no iterations in either capture: amounts are per run, and the runs differ in length ({b} before, {a} after), so they are shown but not judged"
                )
            };
            warnings.push(Warning::new(Code::NoIterations, message, advice));
            alike
        }
        (old, _) => {
            let side = if old.is_none() { "BEFORE" } else { "AFTER" };
            let message =
                format!("no common iterations: {side} has none; amounts are per run and not judged");
            warnings.push(Warning::new(Code::NoCommonIterations, message, SAME_RANGES));
            false
        }
    }
}

fn others(before: &Snapshot, after: &Snapshot, roots: &Roots, warnings: &mut Vec<Warning>) {
    let (b, a) = (before.ranks(), after.ranks());
    if b != a && b > 0 && a > 0 {
        let [b, a] = [b, a].map(|n| text::counted(n as u64, "rank"));
        let message = format!("{b} waited before, {a} after: amounts are means over ranks");
        warnings.push(Warning::new(Code::OtherRanks, message, ""));
    }
    let command = |side: &Snapshot| side.profiles.first().and_then(|p| p.command.clone());
    if let (Some(b), Some(a)) = (command(before), command(after))
        && b != a
    {
        let message = format!("other commands: `{b}` before, `{a}` after");
        warnings.push(Warning::new(Code::OtherCommand, message, ""));
    }
    if !roots.is_empty() {
        let message =
            format!("files under {}/ before are taken for those under {}/ after", roots.old, roots.new);
        warnings.push(Warning::new(Code::OtherRoot, message, ""));
    }
    if (before.waits_filtered_out == 0) != (after.waits_filtered_out == 0) {
        let message = "one side leaves waits out by filters, the other does not".to_owned();
        warnings.push(Warning::new(Code::OtherFilters, message, "use the same filters for both"));
    }
}
