//! How often each rule was right on labelled captures, case by case: counts, made by `scripts/calibrate.py`, and how sure a verdict
//! is by them.
//!
//! A verdict counts for the case of the rule that decided its class. `own` is the program of synchronising patterns, `real` are
//! open programs labelled by hand, `adversarial` were written to be hard, `frameworks` are drivers over installed libraries, `unseen` are
//! 63 more programs (docs/history/savings.md) whose labels were fixed before a verdict was looked at; of these only the rule is known,
//! not the case. `snippets` are labelled pieces of Python with drawn captures, which the rules of the source were written
//! against: they show that nothing regressed (a test holds the committed counts to them), and make nothing surer.
//!
//! Definition: a case that was right `r` of the `n` times that it said a class is `(r + 7 m) / (n + 7)` sure. There `m` is the same figure
//! of its rule, whose own `m` is the share of right verdicts of that class on 217 programs (docs/accuracy.md). Few counts say little,
//! many say all; the seven is [`PRIOR`]. Weak rules decide nothing: they count by the class that they lean to, and their `m` is the
//! share of all weak rules.
//!
//! ```text
//!   called needed         rule S06          case S06_SIZE
//!    269 of 391  ──7──▶  85 of 100  ──7──▶  5 of 6              69 % → 84 % → 84 %
//! ```
//! A label is of a line: wrong verdicts of R01 are uploads on lines that are labelled for another wait of theirs. Most wrong ones of
//! R18 are sizes that values do decide, of code that the label says could do without: a mask multiplied in place of a selection,
//! which the line tells (S11) where it is at hand; a sparse matrix coalesced once. Rules that changed since a corpus was counted
//! have no row of it: guards (S02), writes through a mask (S11).

use crate::vocabulary::{Class, RuleId};
use std::sync::LazyLock;

const TABLE: &str = include_str!("calibration.csv");

/// How many verdicts the mean of the wider group is worth: of whole numbers, one with which the counts of the cases are likeliest (a
/// test holds it to that).
pub const PRIOR: u32 = 7;

/// Right verdicts of all that said so, on 217 programs (docs/accuracy.md); `None` of those that leave the class open.
pub const fn of_class(class: Class) -> Option<(u32, u32)> {
    match class {
        Class::False => Some((1337, 1363)),
        Class::True => Some((269, 391)),
        Class::Unknown => None,
    }
}

/// Verdicts of one rule, or of one of its cases, on one corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The rule that decided the class.
    pub rule: RuleId,
    /// Which of its cases; empty where only the rule was counted.
    pub case: &'static str,
    /// The class that they said; `None` where only the rule was counted, which says both.
    pub said: Option<Class>,
    /// The labelled set: `own`, `real`, …
    pub corpus: &'static str,
    /// Verdicts whose class is that of the label.
    pub right: u32,
    /// Verdicts whose class is another.
    pub wrong: u32,
}

/// All counts, by rule.
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

/// Right verdicts of all, where `is` holds, on programs.
pub fn on_programs(is: impl Fn(&Count) -> bool) -> (u32, u32) {
    let found = counts().filter(|count| count.corpus != "snippets" && is(count));
    found.fold((0, 0), |(right, all), count| (right + count.right, all + count.right + count.wrong))
}

/// How sure a verdict of that class is, 0 to 1, by the definition above.
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
