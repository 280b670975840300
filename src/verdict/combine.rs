//! One verdict from what the trace and the source say.
//!
//! | the trace says | the source decides |
//! |---|---|
//! | allocator, library site, redundant, operator identity | nothing: these are proven; its line is shown |
//! | a truth test (`is_nonzero`) | what becomes of the answer, if it can tell |
//! | upload | nothing of the class; it adds the expression and the fix |
//! | bare synchronisation, idle or not | which kind it is: explicit, timing, a needed barrier |
//! | a copy completed | whether it is read; not that the wait is for nothing |
//! | a value read, nothing | everything |
//!
//! Where neither decides, or the more certain of the two is not certain enough, the verdict is unknown.

use super::source::{Finding, Reading};
use super::trace::UNDECIDED;
use crate::vocabulary::{Class, Evidence, Kind, Verdict};

/// Verdicts less certain than this are printed as unknown: the share of right ones among them would be too low.
pub const DECIDED: f64 = 0.65;

/// What is known of a bundle after both were asked.
pub struct Combined {
    pub verdict: Verdict,
    /// The reading that the verdict rests on or agrees with.
    pub reading: Option<Reading>,
    /// The line as it stands in the file, where it could be read.
    pub line_text: Option<String>,
    /// A file was there, but its line is not what ran.
    pub stale: bool,
}

/// Combines the trace's verdict with a finding in the source.
pub fn combine(trace: Verdict, finding: Finding) -> Combined {
    let mut combined = match finding {
        Finding::NoSource => Combined { verdict: trace, reading: None, line_text: None, stale: false },
        Finding::Stale { reason, .. } => {
            let mut verdict = trace;
            verdict.evidence.push(Evidence::new(
                "source",
                format!("the source at hand is not what ran ({reason}): not used"),
            ));
            Combined { verdict, reading: None, line_text: None, stale: true }
        }
        Finding::Read(reading) => {
            let line_text = Some(reading.line_text.clone());
            Combined { verdict: weigh(trace, &reading), reading: Some(reading), line_text, stale: false }
        }
    };
    undecide(&mut combined.verdict);
    combined
}

fn weigh(trace: Verdict, reading: &Reading) -> Verdict {
    let source = reading.verdict.clone();
    let undecided = source.class == Class::Unknown;
    match (trace.kind, trace.evidence.first().map_or("", |e| e.rule)) {
        (Kind::Allocator | Kind::Redundant, _) | (_, "R17") => trace,
        (Kind::ControlFlow, "4.5") if !undecided => merge(source, trace),
        // Python got the truth value, and what it did with it cannot be seen: most likely it branched.
        (Kind::ControlFlow, "4.5") => Verdict { confidence: 0.85, ..trace },
        (_, "4.5" | "R08" | "R09" | "R10" | "R11" | "R12" | "R14" | "R15") => trace,
        (Kind::Upload, _) if source.kind == Kind::Upload => merge(trace, source),
        (Kind::Upload, _) => trace,
        (Kind::Barrier, "collective") => trace,
        // Any copy to the host that it covers would have been its to complete (R03): there was none to make readable.
        (Kind::Idle, "R05") if source.kind == Kind::Barrier => trace,
        // The copy that the trace saw was started where the source does not look: what it says of the wait lacks that.
        (_, "R03") if source.kind == Kind::Explicit => trace,
        (Kind::Explicit | Kind::Idle, _) if !undecided => merge(source, trace),
        (Kind::Explicit | Kind::Idle, _) => trace,
        _ => merge(source, trace),
    }
}

/// The first verdict with the reasons of both; where they agree on the class, as sure as the surer.
fn merge(mut first: Verdict, second: Verdict) -> Verdict {
    if first.class == second.class {
        first.confidence = first.confidence.max(second.confidence);
    }
    first.pattern = first.pattern.or(second.pattern);
    let decided = first.class != Class::Unknown;
    for evidence in second.evidence {
        if decided && evidence.rule == UNDECIDED {
            continue;
        }
        if !first.evidence.contains(&evidence) {
            first.evidence.push(evidence);
        }
    }
    first
}

/// Below [`DECIDED`], the class is not printed; the reasons stay.
fn undecide(verdict: &mut Verdict) {
    if verdict.class != Class::Unknown && verdict.confidence < DECIDED {
        let text = format!("this would make it {} ({}), but not surely enough", verdict.class, verdict.kind);
        verdict.evidence.push(Evidence::new("4.4", text));
        verdict.class = Class::Unknown;
        verdict.kind = Kind::ValueRead;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(kind: Kind, confidence: f64, rule: &'static str) -> Verdict {
        Verdict {
            class: kind.class(),
            kind,
            confidence,
            pattern: None,
            evidence: vec![Evidence::new(rule, rule)],
        }
    }

    fn read(kind: Kind, confidence: f64) -> Finding {
        Finding::Read(Reading {
            line_text: "x".into(),
            expression: "x".into(),
            verdict: verdict(kind, confidence, "S00"),
            rewritten: None,
        })
    }

    #[test]
    fn each_side_decides_what_it_knows_best() {
        use Kind::*;
        for (trace, rule, source, confidence, kind) in [
            (ValueRead, "4.4", Logging, 0.93, Logging),
            (ValueRead, "4.4", ControlFlow, 0.95, ControlFlow),
            (ValueRead, "4.4", ValueRead, 0.5, ValueRead),
            (ValueRead, "4.4", Logging, 0.6, ValueRead),
            (Upload, "R01", RoundTrip, 0.9, Upload),
            (Redundant, "R04", Explicit, 0.9, Redundant),
            (Idle, "R05", Explicit, 0.9, Explicit),
            (Idle, "R05", Timing, 0.9, Timing),
            (Idle, "R05", ValueRead, 0.5, Idle),
            (Idle, "R05", Barrier, 0.8, Idle),
            (Idle, "R06", Barrier, 0.8, Barrier),
            (ValueRead, "R03", Barrier, 0.8, Barrier),
            (Explicit, "R02", Timing, 0.9, Timing),
            (Explicit, "R02", Barrier, 0.8, Barrier),
            (DynamicShape, "4.5", Logging, 0.9, DynamicShape),
            (ControlFlow, "4.5", Logging, 0.9, Logging),
            (ControlFlow, "4.5", ValueRead, 0.5, ControlFlow),
            (DebugPrint, "R17", ControlFlow, 0.9, DebugPrint),
            (Allocator, "R13", Logging, 0.9, Allocator),
        ] {
            let combined = combine(
                verdict(trace, if trace == ValueRead { 0.5 } else { 0.9 }, rule),
                read(source, confidence),
            );
            assert_eq!(combined.verdict.kind, kind, "{trace} {rule} + {source}");
            assert_eq!(combined.verdict.class, kind.class());
        }
    }

    #[test]
    fn a_stale_line_changes_nothing_but_says_so() {
        let finding = Finding::Stale { line_text: "pass".into(), reason: "nothing on the line waits".into() };
        let combined = combine(verdict(Kind::ValueRead, 0.5, "4.4"), finding);
        assert!(combined.stale && combined.line_text.is_none());
        assert_eq!(combined.verdict.evidence.len(), 2);
    }
}
