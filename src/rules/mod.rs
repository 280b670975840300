//! The rules of evidence: one table of what each looks at, what it proves and what it yields to.
//!
//! [`RuleId`] names a rule and has its title; [`row`] gives its row. Trace rules are in order of precedence:
//! the first that applies decides. Its row says whether it then yields to the Python source ([`Yields`]). The
//! cases of each rule are in [`grade`], their counts on labelled programs in [`calibration`].

pub mod calibration;
pub mod grade;
mod remarks;
mod source;
mod trace;
mod weak;
mod yields;

use crate::vocabulary::{Kind, PatternId, RuleId, Verdict};
use grade::Grade;
pub use yields::{To, Yields, ids};

#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub id: RuleId,
    pub looks_at: &'static str,
    pub proves: &'static str,
    pub role: Role,
    /// Its catalogue entry tells more than the trace's, where both say the same kind.
    pub finer: bool,
    /// It rests on work that happened to run around the wait, which varies from run to run.
    pub strays: bool,
    /// A drawn timeline; lines of Python for a rule of the source.
    pub example: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// Makes the verdict from the trace; `Yields` says which source findings replace it.
    Trace(Yields),
    /// Makes the verdict from the Python source, where the trace's rule yields.
    Source,
    /// Makes the verdict from the Python source, whatever one run has shown.
    Guard,
    /// Leans to the kind of its case; the verdict stays undecided.
    Weak,
    /// Adds to a verdict without changing it: rank, price and saving may follow the remark.
    Remark,
}

/// Trace rules in order of precedence, then source rules, weak rules, remarks.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [trace::RULES, source::RULES, weak::RULES, remarks::RULES].into_iter().flatten()
}

/// `None` for a rule of another version of the program.
pub fn row(id: RuleId) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

/// Ignores case and the zeros before the number.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    let plain = |id: &str| {
        let number = id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len());
        let (letter, number) = id.split_at(number);
        letter.to_ascii_lowercase() + number.trim_start_matches('0')
    };
    all().find(|rule| plain(rule.id.as_str()) == plain(id.trim()))
}

impl Rule {
    const fn of(id: RuleId, role: Role) -> Self {
        Self { id, looks_at: "", proves: "", role, finer: false, strays: false, example: "" }
    }

    const fn finer(self) -> Self {
        Self { finer: true, ..self }
    }

    const fn strays(self) -> Self {
        Self { strays: true, ..self }
    }

    pub fn has_number(&self) -> bool {
        self.id.as_str().ends_with(|c: char| c.is_ascii_digit())
    }

    /// Remarks have none.
    pub fn grades(&self) -> impl Iterator<Item = &'static Grade> {
        grade::ALL.iter().filter(|grade| grade.rule == self.id)
    }
}

crate::vocabulary::texts! {
    Rule:
    looks_at(&'static str) => looks_at;
    proves(&'static str) => proves;
    example(&'static str) => example;
}

/// The verdict of a case that fixes the kind.
pub fn says(grade: Grade, pattern: impl Into<Option<PatternId>>, text: impl Into<String>) -> Verdict {
    says_of(grade, Kind::ValueRead, pattern, text)
}

/// The verdict of a case; `kind` holds where the case fixes none.
pub fn says_of(
    grade: Grade,
    kind: Kind,
    pattern: impl Into<Option<PatternId>>,
    text: impl Into<String>,
) -> Verdict {
    let kind = grade.kind.unwrap_or(kind);
    Verdict {
        class: kind.class(),
        kind,
        confidence: grade.confidence(kind.class()),
        pattern: pattern.into(),
        evidence: vec![grade.reason(text)],
        made: None,
    }
}

#[cfg(test)]
mod tests;
