//! How often each rule was right on labelled captures: counts, made by `scripts/calibrate.py`.
//!
//! A verdict counts for the rule that decided its class. `own` is the program of synchronising patterns, `real` are open
//! programs labelled by hand, `unseen` are 63 more (docs/history/savings.md) whose labels were fixed before a verdict was looked at,
//! `snippets` are labelled pieces of Python with drawn captures (which the rules of the source were written against: right there
//! means that nothing regressed, not that it holds elsewhere; a test holds the committed counts to it). After the first measurement
//! the rules of the source were mended on half of the open programs, which the counts of `real` are of.
//!
//! A label is of a line. Both wrong verdicts of R01 are uploads on lines that are labelled for another wait of theirs. Those of
//! R18 are sizes that values do decide, most in its surest case, of code that the label says could do without: a mask multiplied
//! in place of a selection, which the line tells (S11) where it is at hand; a sparse matrix coalesced once. Those of S01, S02
//! and S06 are tests that only a warning, or a figure printed now and then, hangs on, of lengths and counts that the host had,
//! and arithmetic on the CPU that the GPU could do; those of S11 to S13 are one program's (vits): reads and writes through a
//! mask that `torch.where` can do, slices that a gather can. Of all `unseen` verdicts that said to be sure from 0.9 on, 246 of
//! 263 are right; from 0.8, 71 of 90; from 0.65, 51 of 57. Losses of distances (S11) were told in sight of the last eleven but
//! ten.

use crate::vocabulary::RuleId;

const TABLE: &str = include_str!("calibration.csv");

/// Verdicts of one rule on one corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The rule that decided the class.
    pub rule: RuleId,
    /// `own`, `real`, `unseen` or `snippets`.
    pub corpus: &'static str,
    /// Verdicts whose class is that of the label.
    pub right: u32,
    /// Verdicts whose class is another.
    pub wrong: u32,
}

/// All counts, by rule.
pub fn counts() -> impl Iterator<Item = Count> {
    TABLE.lines().skip(1).filter_map(count)
}

fn count(line: &'static str) -> Option<Count> {
    let mut cells = line.split(',');
    Some(Count {
        rule: RuleId::parse(cells.next()?)?,
        corpus: cells.next()?,
        right: cells.next()?.parse().ok()?,
        wrong: cells.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verdicts from which on a share says something.
    const MANY: u32 = 20;

    /// What its counts do not bear out, and why it stands all the same.
    const EXCEPT: &[(RuleId, &str)] = &[(
        RuleId::R18,
        "values do decide those sizes; the labels count that the code could do without them",
    )];

    /// The highest share with which so few right ones are no surprise: the end of Wilson's interval of 90 %.
    fn allowed(right: u32, all: u32) -> f64 {
        const Z: f64 = 1.645;
        let (n, share) = (f64::from(all), f64::from(right) / f64::from(all));
        let middle = share + Z * Z / (2.0 * n);
        let half = Z * (share * (1.0 - share) / n + (Z / (2.0 * n)).powi(2)).sqrt();
        (middle + half) / (1.0 + Z * Z / n)
    }

    /// Of a rule that was counted often on programs, the surest case is no surer than the share of right verdicts allows. Cases are
    /// not counted apart: less sure ones may be right less often. Snippets do not count: rules were written against them.
    #[test]
    fn rules_are_no_surer_than_their_counts_allow() {
        let mut outside = Vec::new();
        for rule in crate::rules::all() {
            let own = counts().filter(|count| count.rule == rule.id && count.corpus != "snippets");
            let (right, wrong) = own.fold((0, 0), |sum, count| (sum.0 + count.right, sum.1 + count.wrong));
            let surest = rule.grades().map(|grade| grade.confidence).fold(0.0, f64::max);
            if right + wrong >= MANY && surest > allowed(right, right + wrong) {
                outside.push(rule.id);
            }
        }
        assert!(outside.iter().eq(EXCEPT.iter().map(|(id, _)| id)), "{outside:?}");
    }

    #[test]
    fn every_line_is_a_count_of_a_known_rule() {
        assert_eq!(counts().count(), TABLE.lines().count() - 1);
        assert!(counts().all(|count| crate::rules::row(count.rule).is_some()));
    }
}
