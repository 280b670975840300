//! Right and wrong verdicts of each rule and case on labelled programs (made by `scripts/calibrate.py`), and
//! the confidence that follows.
//!
//! A verdict counts for the case of the rule that decided its class. `own` is the program of synchronising
//! patterns, `real` are open programs labelled by hand, `adversarial` were written to be hard, `frameworks`
//! are drivers over installed libraries. `unseen` are 63 programs (docs/history/savings.md) labelled before
//! any verdict was seen; they count by rule alone. `snippets` are labelled pieces of Python with drawn
//! captures. The source rules were written against the snippets, so they only guard against regressions (a
//! test checks the counts).
//!
//! Definition: a case with `r` right verdicts of `n` of a class has the confidence `(r + 7 m) / (n + 7)`,
//! where `m` is the same figure of its rule. The rule's own `m` is the share of right verdicts of that class
//! on 217 programs (docs/accuracy.md). Few counts say little, many say all; the seven is [`PRIOR`]. Weak
//! rules decide nothing: they count by the class that they lean to, and their `m` is the share of all weak
//! rules.
//!
//! ```text
//!   called needed         rule S06          case S06_SIZE
//!    269 of 391  ──7──▶  85 of 100  ──7──▶  5 of 6              69 % → 84 % → 84 %
//! ```
//! A label belongs to a line: wrong verdicts of R01 are H2D copies on lines labelled for another wait. Most
//! wrong verdicts of R18 are sizes that values do decide, in code that the label says could do without: a
//! mask multiplied in place of a selection, which the line tells (S11) where it is at hand; a sparse matrix
//! coalesced once. Rules changed since a corpus was counted have no row of it: guards (S02), writes through a
//! mask (S11).

use crate::vocabulary::{Class, RuleId};
use std::sync::LazyLock;

const TABLE: &str = include_str!("calibration.csv");

/// Weight of the wider group's mean, in verdicts: one of the whole numbers that fit best (a test checks it).
pub const PRIOR: u32 = 7;

/// (right verdicts, all verdicts) of the class on 217 programs (docs/accuracy.md); `None` for undecided.
pub const fn of_class(class: Class) -> Option<(u32, u32)> {
    match class {
        Class::False => Some((1337, 1363)),
        Class::True => Some((269, 391)),
        Class::Unknown => None,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub rule: RuleId,
    /// Empty where only the rule was counted.
    pub case: &'static str,
    /// `None` where only the rule was counted, which covers both classes.
    pub said: Option<Class>,
    /// The labelled set: `own`, `real`, …
    pub corpus: &'static str,
    pub right: u32,
    pub wrong: u32,
}

pub fn counts() -> impl Iterator<Item = Count> {
    static COUNTS: LazyLock<Vec<Count>> = LazyLock::new(|| TABLE.lines().skip(1).filter_map(count).collect());
    COUNTS.iter().copied()
}

fn count(line: &'static str) -> Option<Count> {
    let mut cells = line.split(',');
    Some(Count {
        rule: RuleId::parse(cells.next()?)?,
        case: cells.next()?,
        said: Class::parse(cells.next()?),
        corpus: cells.next()?,
        right: cells.next()?.parse().ok()?,
        wrong: cells.next()?.parse().ok()?,
    })
}

/// (right verdicts, all verdicts) of the counts where `is` holds, without `snippets`.
pub fn on_programs(is: impl Fn(&Count) -> bool) -> (u32, u32) {
    let found = counts().filter(|count| count.corpus != "snippets" && is(count));
    found.fold((0, 0), |(right, all), count| (right + count.right, all + count.right + count.wrong))
}

/// Confidence of a verdict of that class, 0 to 1, by the definition above.
pub fn confidence(rule: RuleId, case: &str, class: Class) -> f64 {
    let weak = |rule: RuleId| rule.as_str().starts_with('X');
    let all = match of_class(class) {
        Some(all) if !weak(rule) => all,
        _ => on_programs(|count| weak(count.rule)),
    };
    let says = |count: &Count| count.said.is_none_or(|said| said == class);
    let mean = shrunk(on_programs(|count| count.rule == rule && says(count)), share(all));
    shrunk(on_programs(|count| count.case == case && says(count)), mean)
}

fn share((right, all): (u32, u32)) -> f64 {
    if all == 0 { 0.5 } else { f64::from(right) / f64::from(all) }
}

fn shrunk((right, all): (u32, u32), mean: f64) -> f64 {
    (f64::from(right) + f64::from(PRIOR) * mean) / f64::from(all + PRIOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_the_classes_are_those_of_the_docs() {
        let told = include_str!("../../docs/accuracy.md").replace(',', "");
        for (right, all) in [Class::False, Class::True].into_iter().filter_map(of_class) {
            assert!(told.contains(&format!("({right} of {all}")), "{right} of {all}");
        }
    }

    #[test]
    fn many_counts_say_all_and_few_say_little() {
        assert_eq!(shrunk((0, 0), 0.75), 0.75);
        assert_eq!(shrunk((7, 7), 0.5), 0.75);
        assert!(shrunk((1000, 1000), 0.5) > 0.99);
    }
}
