//! Weak evidence (the `X` rules): leanings, for reads that nothing decisive decides.
//!
//! Weak rules decide nothing: the verdict stays undecided. If all that fire lean to one class, it says which
//! kind is probable. The figure is the share of labelled reads on which the surest rule was right
//! ([`crate::rules::calibration`]). If the source was read and left the use open, the hard cases remain, and
//! nothing is called probable.
//!
//! Eleven more (what follows, reads in a row, clocks, …) tell nothing on labelled programs.

mod closing;
pub mod observe;
mod rules;
pub mod sizes;
mod steps;

use crate::rules::grade::{self, Grade};
use crate::rules::says;
use crate::sites::Bundle;
use crate::text::confidence;
use crate::vocabulary::{Direction, Kind, Verdict};
use crate::waits::Found;
use observe::Observed;

/// Adds the probable kind and all that fired. `read`: the source was read and left the verdict open.
pub fn lean(bundle: &Bundle, observed: &Observed, read: bool, verdict: &mut Verdict) {
    let fired = |&(grade, says): &(Grade, rules::Says)| Some((grade, grade.kind?, says(bundle, observed)?));
    let mut fired: Vec<(Grade, Kind, String)> = rules::RULES.iter().filter_map(fired).collect();
    let sure = |(grade, kind, _): &(Grade, Kind, String)| grade.confidence(kind.class());
    fired.sort_by(|one, other| sure(other).total_cmp(&sure(one)));
    let one_way = fired.array_windows().all(|[one, other]| one.1.class() == other.1.class());
    let probable = one_way && !read && is_read(bundle);
    for (at, one @ (grade, kind, text)) in fired.iter().enumerate() {
        let (class, sure) = (kind.class().in_words(), confidence(sure(one)));
        let text = match probable && at == 0 {
            true => format!("probably {}, so {class} ({sure}): {text}", kind.in_words()),
            false => format!("leans to {class} ({sure}): {text}"),
        };
        verdict.evidence.push(grade.reason(text));
    }
}

/// R25: a bare synchronisation that ends a measurement. `read`: the source was read, and knows better.
pub fn timing(bundle: &Bundle, observed: &Observed, read: bool) -> Option<Verdict> {
    let text = if observed.timed {
        "two events around the work take its time: nothing waits for the first one, and this is the wait for the second".to_owned()
    } else if let Some(name) = rules::measuring(bundle, read) {
        match rules::clocked(observed) {
            true => format!(
                "the thread reads a clock right beside it, in {name}, by its name code that measures time"
            ),
            false => format!("it is in {name}, by its name code that measures time"),
        }
    } else {
        // A second wait at the end of a range adds nothing to it.
        let name = observed.closes.as_ref().filter(|_| bundle.found != Found::Drained)?;
        format!("it is the last call of most ranges {name}: they measure what the GPU does")
    };
    Some(says(grade::R25, None, text))
}

/// Whether the wait is for a value: weak evidence says nothing of others.
fn is_read(bundle: &Bundle) -> bool {
    bundle.completes || bundle.copy.is_some_and(|c| c.direction == Direction::DeviceToHost)
}
