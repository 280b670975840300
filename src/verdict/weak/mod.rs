//! Weak evidence (the `X` rules): what leans one way, for reads that nothing decisive decides.
//!
//! A score starts at even odds, each rule that fires moves it by its weight, and
//!
//! ```text
//!   probably false        nothing is said         probably true
//!   0 ├──────────── 0.35 ┤───── 0.5 ─────├ 0.65 ────────────┤ 1
//!       needs two rules                       needs two rules
//!       for false                             for true
//! ```
//! Weak rules decide nothing: the verdict stays unknown, and says which kind is probable. They did decide once, and five reads
//! of one program that its branches and its state need came out as "logging". Even for that, two rules that look at
//! different things must point the same way, each with a weight of at least [`grade::WITNESS`]. How probable the kind is follows
//! from the score's distance from even odds, [`grade::WEAK_CAP`] at most. Where the source was read and left the use open, the
//! hard cases remain, and nothing is called probable.
//!
//! The weights stand in [`crate::rules`]: priors, fitted to the reads that two labelled programs (a trainer and an inference
//! server) and the pattern catalogue's own leave open without the source: 59 sites, of which 28 are false, 22 true, and 9 no
//! one can decide from a line. The table says of each on how many it fired; one that fired on none keeps half of its prior
//! or less, so that two of those come to 0.77 at most. Of the 59, these rules call 21 probable: 14 of 14 right at 0.8 and
//! above, 6 of 7 below.

mod closing;
pub mod observe;
mod rules;
pub mod sizes;
mod steps;

use crate::rules::{Lean, Role, grade, says};
use crate::sites::Bundle;
use crate::text::distinct;
use crate::vocabulary::{Class, Direction, Evidence, Kind, NUMBER_BYTES, RuleId, Verdict};
use crate::waits::Found;
use observe::Observed;
use rules::RULES;

/// A rule that fired, and what it says.
struct Fired {
    rule: RuleId,
    lean: Lean,
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
    let fired = |&(rule, says): &(RuleId, rules::Says)| {
        let Role::Weak(lean) = crate::rules::row(rule)?.role else { return None };
        Some(Fired { rule, lean, text: says(bundle, observed)? })
    };
    let fired: Vec<Fired> = RULES.iter().filter_map(fired).collect();
    let sum: f64 = fired.iter().map(|f| f.lean.weight).sum();
    Leaning { score: (0.5 + sum).clamp(0.0, 1.0), fired }
}

impl Leaning {
    /// The class that the rules add up to, and how probable it is, where two agree.
    fn class(&self) -> Option<(Class, f64)> {
        // Weights have two digits: what is exactly on the line counts.
        const ROUNDING: f64 = 1e-9;
        let toward = if self.score < 0.5 { -1.0 } else { 1.0 };
        let telling = self.fired.iter().filter(|fired| fired.lean.weight * toward >= grade::WITNESS);
        let witnesses = distinct(telling.map(|fired| fired.lean.about));
        let sure = (self.score - 0.5).abs() + ROUNDING >= grade::WEAK_DECIDES;
        let class = if toward < 0.0 { Class::False } else { Class::True };
        (sure && witnesses.len() >= 2)
            .then(|| (class, (0.5 + (self.score - 0.5).abs()).min(grade::WEAK_CAP.confidence)))
    }

    fn kind(&self, class: Class, bundle: &Bundle) -> Kind {
        let bytes = bundle.copy.map_or(0, |c| c.bytes);
        let told = || self.fired.iter().filter_map(|f| f.lean.kind).find(|kind| kind.class() == class);
        match class {
            Class::False => told().unwrap_or(Kind::Logging),
            _ if bundle.completes => Kind::Barrier,
            _ if bytes == 1 => Kind::ControlFlow,
            // All that X7 fires on, too.
            _ if bytes > NUMBER_BYTES => Kind::CpuCompute,
            _ => told().unwrap_or(Kind::ControlFlow),
        }
    }

    /// Tells of an open verdict which kind is probable, and all that fired. `over_source`: the source was read and left it open.
    pub fn apply(&self, bundle: &Bundle, over_source: bool, verdict: &mut Verdict) {
        let probable = self.class().filter(|_| !over_source && is_read(bundle));
        if let Some((class, confidence)) = probable {
            let (kind, sure) = (self.kind(class, bundle), crate::text::confidence(confidence));
            let text = format!(
                "probably {kind} ({sure}): no decisive rule holds, but several weak ones lean that way"
            );
            verdict.evidence.insert(0, Evidence::new(RuleId::Weak, text));
        }
        let class = probable.map(|(class, _)| class);
        verdict.evidence.extend(self.fired.iter().map(|f| Evidence::new(f.rule, f.words(class))));
    }
}

/// R25: what a bare synchronisation is for, where it ends what is measured. `read`: the source was, which knows its functions better.
pub fn timing(bundle: &Bundle, observed: &Observed, read: bool) -> Option<Verdict> {
    let (grade, text) = if observed.timed {
        let text = "two events around the work take its time: nothing waits for the first one, and this is the wait for the second";
        (grade::R25_EVENTS, text.to_owned())
    } else if let Some(name) = rules::measuring(bundle, read) {
        match rules::clocked(observed) {
            true => (
                grade::R25,
                format!(
                    "the thread reads a clock right beside it, in {name}, by its name code that measures time"
                ),
            ),
            false => (grade::R25_NAMED, format!("it is in {name}, by its name code that measures time")),
        }
    } else {
        // A second wait at the end of a range adds nothing to it.
        let name = observed.closes.as_ref().filter(|_| bundle.found != Found::Drained)?;
        let text = format!("it is the last call of most ranges {name}: they measure what the GPU does");
        (grade::R25_CLOSES, text)
    };
    Some(says(grade, Kind::Timing, None, text))
}

/// Whether the wait is for a value: only of those weak evidence tells.
fn is_read(bundle: &Bundle) -> bool {
    bundle.completes || bundle.copy.is_some_and(|c| c.direction == Direction::DeviceToHost)
}

impl Fired {
    /// The sentence with its weight, for or against the probable class.
    fn words(&self, probable: Option<Class>) -> String {
        let weight = self.lean.weight;
        let class = if weight < 0.0 { Class::False } else { Class::True };
        let against = probable.is_some_and(|probable| probable != class);
        let part = if against { "speaks against it".to_owned() } else { format!("leans to {class}") };
        format!("{part} ({:.2}): {}", weight.abs(), self.text)
    }
}
