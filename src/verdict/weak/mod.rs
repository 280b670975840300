//! Weak evidence (rules X1 to X18 of the catalogue): what leans one way, for reads that nothing decisive decides.
//!
//! A score starts at even odds, each rule that fires moves it by its weight, and
//!
//! ```text
//!   false                    unknown                    true
//!   0 ├──────────── 0.35 ┤───── 0.5 ─────├ 0.65 ────────────┤ 1
//!       needs two rules                       needs two rules
//!       for false                             for true
//! ```
//! Weak rules never decide alone: two that look at different things must point the same way, each with a weight of at
//! least [`WITNESS`]. The confidence is the score's distance from even odds, [`CAP`] at most. Where the source was read and
//! left the use open, the hard cases remain: there it takes [`OVER_SOURCE`].
//!
//! The weights are the catalogue's priors, fitted to the reads that two labelled programs (a trainer and an inference
//! server) and the pattern catalogue's own leave open without the source: 59 sites, of which 28 are false, 22 true, and 9 no
//! one can decide from a line. [`RULES`] says beside each rule on how many it fired; one that fired on none keeps half of
//! its prior or less, so that two of those come to 0.77 at most. Of the 59, these rules decide 21: 14 of 14 right at 0.8 and above,
//! 6 of 7 below; with the source, 3 of the 17 that it leaves open, all right.

pub mod observe;
pub mod rules;
pub mod steps;

use crate::sites::Bundle;
use crate::vocabulary::{Class, Direction, Evidence, Kind, Verdict};
use observe::{Observed, SCALAR};
use rules::{About, RULES, Rule};

/// Distance from even odds that a verdict needs.
const DECIDES: f64 = 0.15;
/// Least weight of a rule that counts as one of the two.
const WITNESS: f64 = 0.10;
/// Highest confidence: 14 of 14 right, all in one program, leave room for one in seven to be wrong in another.
const CAP: f64 = 0.85;
/// Confidence that it takes where the source was read and left the use open: 3 of 3 right there, 1 of 2 below.
const OVER_SOURCE: f64 = 0.8;

/// A rule that fired, and what it says.
struct Fired {
    rule: &'static Rule,
    text: String,
}

/// What all weak rules add up to.
pub struct Leaning {
    fired: Vec<Fired>,
    /// Likelihood that the value is needed.
    score: f64,
}

/// Weighs a bundle.
pub fn lean(bundle: &Bundle, observed: &Observed) -> Leaning {
    let fired = |rule: &'static Rule| Some(Fired { rule, text: (rule.says)(bundle, observed)? });
    let fired: Vec<Fired> = RULES.iter().filter_map(fired).collect();
    let sum: f64 = fired.iter().map(|f| f.rule.weight).sum();
    Leaning { score: (0.5 + sum).clamp(0.0, 1.0), fired }
}

impl Leaning {
    /// The class and confidence that the rules add up to, where they may decide.
    fn class(&self) -> Option<(Class, f64)> {
        // Weights have two digits: what is exactly on the line counts.
        const ROUNDING: f64 = 1e-9;
        let toward = if self.score < 0.5 { -1.0 } else { 1.0 };
        let mut witnesses: Vec<About> = Vec::new();
        for fired in &self.fired {
            if fired.rule.weight * toward >= WITNESS && !witnesses.contains(&fired.rule.about) {
                witnesses.push(fired.rule.about);
            }
        }
        let sure = (self.score - 0.5).abs() + ROUNDING >= DECIDES;
        let class = if toward < 0.0 { Class::False } else { Class::True };
        (sure && witnesses.len() >= 2).then(|| (class, (0.5 + (self.score - 0.5).abs()).min(CAP)))
    }

    fn has(&self, id: &str) -> bool {
        self.fired.iter().any(|f| f.rule.id == id)
    }

    fn kind(&self, class: Class, bundle: &Bundle) -> Kind {
        let bytes = bundle.copy.map_or(0, |c| c.bytes);
        match class {
            Class::False if self.has("X9") => Kind::RoundTrip,
            Class::False if self.has("X17") => Kind::Timing,
            Class::False => Kind::Logging,
            _ if bundle.completes => Kind::Barrier,
            _ if bytes == 1 => Kind::ControlFlow,
            _ if self.has("X7") || bytes > SCALAR => Kind::CpuCompute,
            _ if ["X3", "X6", "X14"].iter().any(|id| self.has(id)) => Kind::DynamicShape,
            _ => Kind::ControlFlow,
        }
    }

    /// Decides an open verdict where the rules may, and tells all that fired either way. `over_source`: the source was
    /// read and left it open.
    pub fn apply(&self, bundle: &Bundle, over_source: bool, verdict: &mut Verdict) {
        let bar = if over_source { OVER_SOURCE } else { 0.0 };
        let decided = self.class().filter(|d| d.1 >= bar && is_read(bundle));
        if let Some((class, confidence)) = decided {
            verdict.class = class;
            verdict.kind = self.kind(class, bundle);
            verdict.confidence = if over_source { OVER_SOURCE } else { confidence };
            verdict.evidence.retain(|e| e.rule != super::trace::UNDECIDED);
            let text = "no decisive rule holds; several weak ones together make it likely:";
            verdict.evidence.push(Evidence::new("4.4", text));
        }
        let class = decided.map(|d| d.0);
        verdict.evidence.extend(self.fired.iter().map(|f| Evidence::new(f.rule.id, f.words(class))));
    }
}

impl Leaning {
    /// What a bare synchronisation is for, where a clock is read beside it and its code says that it measures: false as
    /// before, but timing.
    pub fn measures(&self, bundle: &Bundle, verdict: &mut Verdict) {
        let (Some(clock), Some(name)) =
            (self.fired.iter().find(|f| f.rule.id == "X17"), rules::measuring(bundle))
        else {
            return;
        };
        verdict.kind = Kind::Timing;
        verdict.evidence.push(Evidence::new("X17", clock.text.clone()));
        verdict
            .evidence
            .push(Evidence::new("X11", format!("it happens in {name}, by its name code that measures time")));
    }
}

/// Whether the wait is for a value: only then weak evidence may decide.
fn is_read(bundle: &Bundle) -> bool {
    bundle.completes || bundle.copy.is_some_and(|c| c.direction == Direction::DeviceToHost)
}

impl Fired {
    /// The sentence with its weight, for or against the class decided on.
    fn words(&self, decided: Option<Class>) -> String {
        let Rule { weight, .. } = *self.rule;
        let class = if weight < 0.0 { Class::False } else { Class::True };
        let part = if decided.is_some_and(|d| d != class) { "speaks against it" } else { "leans to" };
        match decided {
            Some(d) if d != class => format!("{part} ({:.2}): {}", weight.abs(), self.text),
            _ => format!("{part} {class} ({:.2}): {}", weight.abs(), self.text),
        }
    }
}
