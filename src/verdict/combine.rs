//! One verdict from what the trace and the source say.
//!
//! The rule that made the trace's verdict says which of the two decides (see [`crate::rules`]):
//!
//! | it yields to | the source |
//! |---|---|
//! | nothing | changes nothing: what the trace shows is proven |
//! | the same kind | adds the expression and the fix, and nothing of the class |
//! | a decision | decides if it can; one that leaves the question open changes nothing |
//! | anything | decides, also that it cannot be told |
//!
//! Kinds that say where a needed value came from contradict nothing that the trace shows; the rule's row
//! names them.
//!
//! A wait that guards a buffer does so for the time when the GPU is late: finding nothing to wait for once
//! proves nothing.
//!
//! Where neither decides, or the more certain of the two is not certain enough, the verdict is undecided.

use super::source::{Finding, Reading};
use crate::catalogue;
use crate::model::edit::{Outcome, Refusal};
use crate::rules::grade::DECIDED;
use crate::rules::{self, Role, Rule, To};
use crate::vocabulary::{Class, Evidence, Kind, PatternId, RuleId, Verdict};

pub struct Combined {
    pub verdict: Verdict,
    /// The reading that the verdict rests on or agrees with.
    pub reading: Option<Reading>,
    /// A file was found, but its line is not what ran.
    pub stale: bool,
}

impl Combined {
    /// The trace shows that the wait measures: deleting the wait loses the times.
    pub fn measure(&mut self, timing: Verdict) {
        let verdict = self.verdict.clone();
        self.verdict = merge(timing, verdict);
        if let Some(reading) = &mut self.reading {
            reading.outcome = Outcome::refused(None, Refusal::Measured);
        }
    }
}

pub fn combine(trace: Verdict, finding: Finding) -> Combined {
    let mut combined = Combined { verdict: trace, reading: None, stale: false };
    match finding {
        Finding::NoSource => {}
        Finding::Stale { reason } => {
            let text = format!("the source at hand is not what ran ({reason}): not used");
            combined.verdict.evidence.push(Evidence::new(RuleId::Source, text));
            combined.stale = true;
        }
        Finding::Read(reading) => {
            combined.verdict = weigh(combined.verdict, reading.verdict.clone());
            combined.reading = Some(reading);
        }
    }
    undecide(&mut combined.verdict);
    combined
}

/// The row of the trace's rule says what it yields to.
pub fn weigh(trace: Verdict, source: Verdict) -> Verdict {
    let rule = |verdict: &Verdict| verdict.evidence.first().and_then(|evidence| rules::row(evidence.rule));
    let guards = rule(&source).is_some_and(|rule| rule.role == Role::Guard);
    let Some(Rule { role: Role::Trace(yields), .. }) = rule(&trace).filter(|_| !guards) else {
        return merge(source, trace);
    };
    match yields.before(&trace, source.kind) {
        To::Nothing => Verdict { pattern: finer(&trace, &source).or(trace.pattern), ..trace },
        To::SameKind if source.kind == trace.kind => {
            // The line shows what is moved; the chain tells more of indices, and the catalogue of a library.
            let known = trace.pattern.is_some_and(|pattern| catalogue::entry(pattern).library().is_some());
            let pattern = match rule(&source).is_some_and(|rule| rule.finer) && !known {
                true => source.pattern.or(trace.pattern),
                false => finer(&trace, &source).or(trace.pattern).or(source.pattern),
            };
            merge(Verdict { pattern, ..trace }, source)
        }
        To::SameKind => trace,
        To::Decided if source.class != Class::Unknown => merge(source, trace),
        To::Decided => trace,
        To::Anything => merge(source, trace),
    }
}

/// The source's entry, where it is a case of the trace's. Only the line shows what an index stores, or what
/// becomes of a mask's selection.
fn finer(trace: &Verdict, source: &Verdict) -> Option<PatternId> {
    let (of, case) = (trace.pattern?, source.pattern?);
    (catalogue::entry(case).case_of.contains(&of) && trace.kind == source.kind).then_some(case)
}

/// The first verdict with its confidence, and the reasons of both.
pub fn merge(mut first: Verdict, second: Verdict) -> Verdict {
    first.pattern = first.pattern.or(second.pattern);
    first.made = first.made.or(second.made);
    let decided = first.class != Class::Unknown;
    for evidence in second.evidence {
        let settled = decided && evidence.rule == RuleId::Undecided;
        if !settled && !first.evidence.contains(&evidence) {
            first.evidence.push(evidence);
        }
    }
    first
}

/// Below [`DECIDED`], the class is not printed; the reasons stay.
pub fn undecide(verdict: &mut Verdict) {
    if verdict.class != Class::Unknown && verdict.confidence < DECIDED {
        let text = format!("this would make it {} ({}), but not surely enough", verdict.class, verdict.kind);
        verdict.evidence.push(Evidence::new(RuleId::Unsure, text));
        verdict.class = Class::Unknown;
        verdict.kind = Kind::ValueRead;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::grade::EVEN;

    const SURE: f64 = 0.9;

    fn verdict(kind: Kind, confidence: f64, rule: RuleId) -> Verdict {
        let evidence = vec![Evidence::new(rule, rule.as_str())];
        Verdict { class: kind.class(), kind, confidence, pattern: None, evidence, made: None }
    }

    fn read(kind: Kind, confidence: f64) -> Finding {
        Finding::Read(Reading {
            line_text: Some("x".into()),
            expression: "x".into(),
            verdict: verdict(kind, confidence, RuleId::S04),
            rewritten: None,
            outcome: Outcome::refused(None, Refusal::NoEdit),
        })
    }

    #[test]
    fn each_side_decides_what_it_knows_best() {
        use Kind::*;
        for (trace, rule, source, confidence, kind) in [
            (ValueRead, RuleId::R20, Logging, 0.93, Logging),
            (ValueRead, RuleId::R20, ControlFlow, 0.95, ControlFlow),
            (ValueRead, RuleId::R20, ValueRead, 0.5, ValueRead),
            (ValueRead, RuleId::R20, Logging, 0.6, ValueRead),
            (Upload, RuleId::R01, RoundTrip, 0.9, Upload),
            (Redundant, RuleId::R04, Explicit, 0.9, Redundant),
            (Idle, RuleId::R05, Explicit, 0.9, Explicit),
            (Idle, RuleId::R05, Timing, 0.9, Timing),
            (Idle, RuleId::R05, ValueRead, 0.5, Idle),
            (Idle, RuleId::R05, Barrier, 0.8, Idle),
            (Idle, RuleId::R06, Barrier, 0.8, Barrier),
            (ValueRead, RuleId::R03, Barrier, 0.8, Barrier),
            (Explicit, RuleId::R02, Timing, 0.9, Timing),
            (Explicit, RuleId::R02, Barrier, 0.8, Barrier),
            (DynamicShape, RuleId::R18, Logging, 0.9, DynamicShape),
            (ControlFlow, RuleId::R19, Logging, 0.9, Logging),
            (ControlFlow, RuleId::R19, ValueRead, 0.5, ControlFlow),
            (DebugPrint, RuleId::R16, ValueRead, 0.5, DebugPrint),
            (DebugPrint, RuleId::R16, Logging, 0.9, Logging),
            (DebugPrint, RuleId::R17, ControlFlow, 0.9, DebugPrint),
            (Allocator, RuleId::R13, Logging, 0.9, Allocator),
            (DynamicShape, RuleId::R18, HostKnown, 0.75, HostKnown),
            (DynamicShape, RuleId::R18, RoundTrip, 0.8, RoundTrip),
            (Upload, RuleId::R01, HostKnown, 0.75, Upload),
        ] {
            let sure = if trace == ValueRead { 0.5 } else { 0.9 };
            let combined = combine(verdict(trace, sure, rule), read(source, confidence));
            assert_eq!(combined.verdict.kind, kind, "{trace} {rule} + {source}");
            assert_eq!(combined.verdict.class, kind.class());
        }
    }

    #[test]
    fn what_is_told_of_a_rule_is_what_it_does() {
        let told_by_source = rules::row(RuleId::S01).expect("a row").yields_to();
        let proven = told_by_source.split(';').next().expect("text");
        for rule in rules::all().filter(|rule| matches!(rule.role, Role::Trace(_))) {
            let told = rule.yields_to();
            let goes_first = |confidence: f64, says: Kind, kind: Kind, by: RuleId| {
                let said = weigh(verdict(says, confidence, rule.id), verdict(kind, 0.9, by));
                said.evidence[0].rule == by
            };
            let first = |says, kind| goes_first(SURE, says, kind, RuleId::S04);
            let (decided, open) = (first(Kind::Idle, Kind::Logging), first(Kind::Idle, Kind::ValueRead));
            let begins = match (decided, open) {
                (true, true) => "the source, whatever it says",
                (true, false) => "a source that decides",
                _ if proven.ends_with(rule.id.as_str()) || proven.contains(&format!("{},", rule.id)) => {
                    "nothing but S21"
                }
                _ => "S21, and a source that says the same kind",
            };
            assert!(told.starts_with(begins), "{}: {told}", rule.id);
            for &kind in Kind::ALL.iter().filter(|kind| kind.class() != Class::Unknown) {
                let vain = decided && !first(Kind::Idle, kind);
                assert_eq!(told.contains(&format!("unless it says {kind}")), vain, "{}: {told}", rule.id);
                let those = told_by_source.split(&format!("; with a verdict of {kind}, ")).nth(1);
                let those = those.and_then(|rest| rest.split([';', '.']).next()).unwrap_or("");
                let vain = vain && those.split(", ").any(|id| id == rule.id.as_str());
                assert_eq!(vain, decided && !first(Kind::Idle, kind), "{}: {told_by_source}", rule.id);
                let over = Kind::ALL.iter().filter(|&&says| says != kind && !decided && first(says, kind));
                let clause = over.map(|says| says.as_str()).collect::<Vec<_>>().join(" or ");
                let clause = format!("where {} says {clause}, a source that says {kind}", rule.id);
                let none = clause.contains("says ,");
                assert_eq!(
                    told.contains(&format!("a source that says {kind}")),
                    !none,
                    "{}: {told}",
                    rule.id
                );
                assert!(none || told.contains(&clause), "{}: {clause}: {told}", rule.id);
            }
            let open_case = !rule.grades().all(|grade| grade.decides());
            let gives_way = !open && goes_first(EVEN, Kind::ValueRead, Kind::ValueRead, RuleId::S04);
            let open_case = open_case && gives_way;
            assert_eq!(
                told.contains("in a case that leaves the class open"),
                open_case,
                "{}: {told}",
                rule.id
            );
            assert!(goes_first(SURE, Kind::Idle, Kind::Barrier, RuleId::S21), "{}", rule.id);
            let by_guard = first(Kind::Idle, Kind::Barrier) || told.contains("S21");
            assert!(by_guard, "{}: {told}", rule.id);
        }
    }

    /// Deleted, the wait that found nothing in one iteration would be gone in the others too.
    #[test]
    fn what_guards_a_buffer_stays() {
        for rule in [RuleId::R04, RuleId::R05] {
            let mut finding = read(Kind::Barrier, 0.8);
            let Finding::Read(reading) = &mut finding else { unreachable!() };
            reading.verdict.evidence = vec![Evidence::new(RuleId::S21, "the buffer is written on line 3")];
            assert_eq!(combine(verdict(Kind::Redundant, 0.97, rule), finding).verdict.kind, Kind::Barrier);
        }
    }

    #[test]
    fn a_stale_line_changes_nothing_but_says_so() {
        let finding = Finding::Stale { reason: "nothing on the line waits".into() };
        let combined = combine(verdict(Kind::ValueRead, 0.5, RuleId::R20), finding);
        assert!(combined.stale && combined.reading.is_none());
        assert_eq!(combined.verdict.evidence.len(), 2);
    }
}
