//! From what becomes of a value to a verdict: rules S01 to S07 of the catalogue.

use super::sinks::is_figure;
use super::value::{Fate, Sink};
use crate::vocabulary::{Class, Evidence, Kind, Verdict};

/// Below this a verdict is printed as unknown.
pub const DECIDED: f64 = 0.65;

/// The catalogue's entry for branches that only stop or complain.
pub const GUARD: &str = "A35";

/// What can be done about an `assert` (S03).
pub const VALIDATION: &str =
    "a validation, which `python -O` leaves out and `torch._assert_async` does without waiting";

/// A verdict of one kind with one reason; below [`DECIDED`] it is unknown.
pub fn verdict(kind: Kind, confidence: f64, pattern: &'static str, evidence: Evidence) -> Verdict {
    let kind = if confidence < DECIDED && kind.class() != Class::Unknown { Kind::ValueRead } else { kind };
    Verdict { class: kind.class(), kind, confidence, pattern: Some(pattern), evidence: vec![evidence] }
}

/// [`verdict`] from the rule's id and the sentence.
pub fn says(rule: &'static str, kind: Kind, confidence: f64, pattern: &'static str, text: String) -> Verdict {
    verdict(kind, confidence, pattern, Evidence::new(rule, text))
}

/// The verdict on a value that the CPU read, from its fates; `subject` is the expression as written.
///
/// Definition: a fate that decides what the CPU does next outweighs all others (true). Without one, a fate that is not
/// understood leaves the question open (unknown). If every fate shows, records or hands the value back to the GPU, the read can
/// wait or go (false). A value collected in a loop and shown outside of it could be read once after the loop (S05); one that
/// decides there is needed, but no sooner.
pub fn judge(subject: &str, pattern: &'static str, fates: &[Fate]) -> Verdict {
    let mut verdict = judge_all(subject, pattern, fates);
    if verdict.class == Class::False {
        verdict.confidence = fates.iter().map(|fate| fate.limit).fold(verdict.confidence, f64::min);
    }
    verdict
}

fn judge_all(subject: &str, pattern: &'static str, fates: &[Fate]) -> Verdict {
    let decisive = fates
        .iter()
        .filter(|fate| !can_wait(fate))
        .filter_map(|fate| decides(fate).map(|found| (found, fate)));
    if let Some(((_, kind, rule, confidence), fate)) = decisive.min_by_key(|((rank, ..), _)| *rank) {
        // Each further name or function on the way is one more guess.
        let confidence = confidence - 0.03 * f64::from(fate.value.hops.saturating_sub(2));
        let once = is_needed_once(fate);
        // Another reader may call the read one that can wait.
        let confidence = if once { confidence.min(0.8) } else { confidence };
        let guard = matches!(fate.sink, Sink::Branch { guard: true, .. }) && confidence >= DECIDED;
        let pattern = if guard { GUARD } else { pattern };
        let mut text = sentence(subject, "is", &[fate]);
        if once {
            text += "; it is needed only once after the loop that collects it: collect on the GPU and read it there, in one wait";
        }
        return verdict(kind, confidence, pattern, Evidence::new(rule, text));
    }
    let open: Vec<&Fate> = fates.iter().filter(|fate| is_open(fate)).collect();
    if fates.is_empty() {
        let text = format!("the file does not show what becomes of `{subject}`");
        return verdict(Kind::ValueRead, 0.5, pattern, Evidence::new("S06", text));
    }
    if !open.is_empty() {
        return verdict(Kind::ValueRead, 0.5, pattern, Evidence::new("S06", sentence(subject, "is", &open)));
    }
    let all: Vec<&Fate> = fates.iter().collect();
    if fates.iter().any(can_wait) {
        let used = sentence(subject, "is", &all);
        let certain = |fate: &Fate| match fate.sink {
            Sink::Log => true,
            Sink::Returned => fate.name.as_deref().is_some_and(is_figure),
            _ => false,
        };
        let certain = fates.iter().all(certain);
        let text = format!("{used}, outside the loop that collects it: collect on the GPU and read once");
        return verdict(Kind::Logging, if certain { 0.85 } else { 0.7 }, pattern, Evidence::new("S05", text));
    }
    harmless(subject, pattern, &all)
}

/// The verdict where every fate is known and none needs the value at once.
fn harmless(subject: &str, pattern: &'static str, fates: &[&Fate]) -> Verdict {
    let text = sentence(subject, "is only", fates);
    let any = |sink: Sink| fates.iter().any(|fate| fate.sink == sink);
    let direct = fates.iter().all(|fate| fate.name.is_none());
    if any(Sink::Device) {
        return verdict(
            Kind::RoundTrip,
            if any(Sink::Log) { 0.75 } else { 0.85 },
            pattern,
            Evidence::new("S07", text),
        );
    }
    if fates.iter().all(|fate| fate.sink == Sink::Dropped) {
        return verdict(Kind::Explicit, 0.75, pattern, Evidence::new("S06", text));
    }
    let attribute = fates.iter().any(|fate| fate.name.as_ref().is_some_and(|name| name.contains('.')));
    let kept = fates.iter().any(|fate| fate.what.starts_with("collected in"));
    let confidence = match (direct, kept || attribute) {
        (true, false) => 0.93,
        (false, false) => 0.88,
        (_, true) => 0.8,
    };
    verdict(Kind::Logging, confidence, pattern, Evidence::new(if direct { "S04" } else { "S06" }, text))
}

/// What a decisive fate amounts to: (rank, kind, rule, confidence), the lowest rank speaking for the site.
fn decides(fate: &Fate) -> Option<(u8, Kind, &'static str, f64)> {
    let direct = fate.name.is_none();
    let sure = if direct { 0.95 } else { 0.9 };
    Some(match fate.sink {
        Sink::Branch { guard: false, .. } => (0, Kind::ControlFlow, if direct { "S01" } else { "S06" }, sure),
        Sink::Size => (1, Kind::DynamicShape, "S06", 0.9),
        Sink::Index => (2, Kind::CpuCompute, "S06", 0.85),
        Sink::Rate => (3, Kind::CpuCompute, "S06", 0.9),
        Sink::Compute => (4, Kind::CpuCompute, "S06", 0.85),
        Sink::Write => (5, Kind::CpuCompute, "S06", 0.8),
        Sink::Branch { assert: false, .. } => (6, Kind::ControlFlow, "S02", 0.85),
        Sink::Branch { assert: true, .. } => (7, Kind::ControlFlow, "S03", 0.7),
        _ => return None,
    })
}

/// Whether a use comes after the loop that reads the value, so that one read there would do: of a sum (S05), of a list of
/// figures, and of arrays gathered batch by batch (D08), which need no look inside the loop. Other lists are what the program
/// makes, and how soon they are needed is not told.
pub fn can_wait(fate: &Fate) -> bool {
    let Some(collected) = fate.value.collected.filter(|_| fate.deferred) else { return false };
    let figures = fate.name.as_deref().is_some_and(is_figure);
    match fate.sink {
        Sink::Stored | Sink::Dropped => false,
        Sink::Unknown if fate.value.vague => false,
        Sink::Log => true,
        Sink::Branch { .. } | Sink::Rate | Sink::Size | Sink::Index => false,
        Sink::Compute => fate.value.tensor,
        Sink::Returned => collected.sum || figures || fate.value.tensor,
        _ => collected.sum || fate.value.tensor,
    }
}

/// Whether a use that decides comes after the loop that collects the value. What an attribute collects may be used by a method
/// that the loop calls.
fn is_needed_once(fate: &Fate) -> bool {
    fate.deferred
        && fate.value.collected.is_some()
        && fate.name.as_ref().is_none_or(|name| !name.contains('.'))
}

/// Whether a fate leaves the question open.
fn is_open(fate: &Fate) -> bool {
    matches!(fate.sink, Sink::Unknown | Sink::Returned | Sink::Stored) && !can_wait(fate)
}

/// "`lossf` is only an argument of logger.info (line 41), …", with what to do about guards.
fn sentence(subject: &str, verb: &str, fates: &[&Fate]) -> String {
    let name = fates.first().and_then(|fate| fate.name.clone()).unwrap_or_else(|| subject.to_owned());
    let mut uses: Vec<String> = Vec::new();
    for fate in fates {
        let text = if fate.what == "never read" {
            fate.what.clone()
        } else {
            format!("{} (line {})", fate.what, fate.line)
        };
        if !uses.contains(&text) {
            uses.push(text);
        }
    }
    let more = uses.len().saturating_sub(3);
    uses.truncate(3);
    let verb = if fates.iter().all(|fate| fate.sink == Sink::Dropped) { "is" } else { verb };
    let mut text = format!("`{name}` {verb} {}", uses.join(", "));
    if more > 0 {
        text += &format!(" and {more} more");
    }
    match fates.first().map(|fate| &fate.sink) {
        Some(Sink::Branch { assert: true, .. }) => text += &format!(": {VALIDATION}"),
        Some(Sink::Branch { guard: true, .. }) => {
            text += ": a guard that only stops or complains, checking every N steps is enough"
        }
        _ => {}
    }
    text
}
