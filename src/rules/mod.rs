//! The rules of evidence: one table of what each looks at, what it proves and what it yields to.
//!
//! [`RuleId`] names a rule and has its title; [`row`] gives its row. Rules of the trace stand in order of precedence: the first that applies
//! speaks. Whether it then yields to the Python source is in its row too ([`Yields`]). Cases of each rule stand in [`grade`], what labelled programs say of them in [`calibration`].

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

/// One rule of evidence.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Its name, as evidence cites it.
    pub id: RuleId,
    /// What it looks at, as a sentence.
    pub looks_at: &'static str,
    /// What it proves, as a sentence.
    pub proves: &'static str,
    /// What it does to a verdict.
    pub role: Role,
    /// Where the trace says the same kind, its entry of the catalogue is the one that tells more.
    pub finer: bool,
    /// It rests on what happened to run around the wait, which strays from run to run.
    pub strays: bool,
    /// A drawn timeline; of a rule of the source, lines of Python.
    pub example: &'static str,
}

/// What a rule does to a verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// It makes the verdict from the trace, and gives way to the source as said.
    Trace(Yields),
    /// It makes the verdict from the Python source, where the trace's rule gives way.
    Source,
    /// It makes the verdict from the Python source, whatever one run has shown.
    Guard,
    /// It leans to the kind of its case, and the verdict stays unknown.
    Weak,
    /// It says something of a verdict, which stays as it is: rank, price and saving may follow what it says.
    Remark,
}

/// Every rule: those of the trace in order of precedence, of the source, weak ones, remarks.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [trace::RULES, source::RULES, weak::RULES, remarks::RULES].into_iter().flatten()
}

/// The row of a rule; `None` for one of another version of the program.
pub fn row(id: RuleId) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}

/// The rule of that id, in any case, with or without the zeros before its number.
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

    /// Whether its id is a letter and a number, not a word.
    pub fn has_number(&self) -> bool {
        self.id.as_str().ends_with(|c: char| c.is_ascii_digit())
    }

    /// Its cases; remarks have none.
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

/// The verdict of a case that says the kind.
pub fn says(grade: Grade, pattern: impl Into<Option<PatternId>>, text: impl Into<String>) -> Verdict {
    says_of(grade, Kind::ValueRead, pattern, text)
}

/// The verdict of a case; it is of that kind where the case does not say.
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
