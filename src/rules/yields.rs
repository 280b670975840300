//! How the Python source may change a verdict of a trace rule: as the table has it, and in words.

use super::grade::{DECIDED, Grade};
use super::{Role, Rule, all};
use crate::text;
use crate::vocabulary::{Kind, Kind::*, Verdict};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yields {
    /// Source findings that replace the trace's verdict.
    pub to: To,
    /// A kind of the source that replaces nothing.
    pub except: Option<Kind>,
    /// Kinds of the source that replace the trace's verdict anyway, each with the trace's kinds.
    pub unless: &'static [(Kind, &'static [Kind])],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// None: what the trace shows is proven.
    Nothing,
    /// A source that says the same kind adds its reasons.
    SameKind,
    /// A source that decides; an undecided one changes nothing.
    Decided,
    /// Whatever the source says, even undecided.
    Anything,
}

impl Yields {
    pub(super) const NOTHING: Self = Self::to(To::Nothing);
    /// A value shown needed may still be known to the host, or be a size that only the GPU needs.
    pub(super) const NEEDED: Self =
        Self::unless(&[(HostKnown, &[ControlFlow, DynamicShape, CpuCompute]), (RoundTrip, &[DynamicShape])]);
    /// As `NEEDED`, where the trace shows only a size needed.
    pub(super) const SIZE: Self = Self::unless(&[(HostKnown, &[DynamicShape]), (RoundTrip, &[DynamicShape])]);

    /// An earlier wait made this one needless. Once the earlier one goes, this one measures.
    pub(super) const MEASURED: Self = Self::unless(&[(Timing, &[Redundant])]);

    pub(super) const fn to(to: To) -> Self {
        Self { to, except: None, unless: &[] }
    }

    pub(super) const fn except(to: To, kind: Kind) -> Self {
        Self { except: Some(kind), ..Self::to(to) }
    }

    pub(super) const fn unless(unless: &'static [(Kind, &'static [Kind])]) -> Self {
        Self { unless, ..Self::NOTHING }
    }

    pub fn before(&self, trace: &Verdict, source: Kind) -> To {
        let told = |(kind, over): &(Kind, &[Kind])| *kind == source && over.contains(&trace.kind);
        match self.to {
            _ if self.except == Some(source) => To::Nothing,
            _ if self.unless.iter().any(told) => To::Anything,
            // The source may tell what the trace alone does not prove.
            To::Nothing if trace.confidence < DECIDED => To::Anything,
            to => to,
        }
    }

    fn words(&self, rule: &Rule) -> String {
        let guard = ids(all().filter(|rule| rule.role == Role::Guard));
        let mut to = match self.to {
            To::Nothing => format!("nothing but {guard}"),
            To::SameKind => {
                format!("{guard}, and a source that says the same kind, which only adds its reasons")
            }
            To::Decided => "a source that decides".to_owned(),
            To::Anything => "the source, whatever it says".to_owned(),
        };
        if let Some(kind) = self.except {
            to += &format!(", unless it says {kind}");
            to += &if kind == Barrier { format!(" (by another rule than {guard})") } else { String::new() };
        }
        if self.to == To::Decided {
            to += "; one that leaves the question open changes nothing";
        }
        for (kind, over) in self.unless {
            to += &format!("; where {} says {}, a source that says {kind}", rule.id, kinds(over));
        }
        if self.to == To::Nothing && !rule.grades().all(Grade::decides) {
            to += "; in a case that leaves the class open, the source, whatever it says";
        }
        if rule.grades().any(|grade| grade.by_line) {
            to += ". A case that the line shows gives way as rules of the source do";
        }
        to
    }
}

impl Rule {
    /// Empty for remarks.
    pub fn yields_to(&self) -> String {
        match self.role {
            Role::Trace(yields) => yields.words(self),
            Role::Source => before_source(),
            Role::Guard => "nothing".to_owned(),
            Role::Weak => {
                "every rule that decides, and a source that was read: where that leaves the question open, weak ones only say how they lean. They tell what is probable only of values that are read, in programs of PyTorch, and not where an operator is known that needs a size".to_owned()
            }
            Role::Remark => String::new(),
        }
    }
}

/// What rules of the source yield to: the other side of each row of the trace.
fn before_source() -> String {
    let those = |is: &dyn Fn(&Yields) -> bool| {
        ids(all().filter(|rule| matches!(rule.role, Role::Trace(yields) if is(&yields))))
    };
    let mut to = format!(
        "what the trace proves, in cases of {} and more: {}; {}, unless both say the same kind",
        text::confidence(DECIDED),
        those(&|yields| yields.to == To::Nothing),
        those(&|yields| yields.to == To::SameKind)
    );
    for &kind in Kind::ALL {
        let vain = those(&|yields| yields.except == Some(kind));
        if !vain.is_empty() {
            to += &format!("; with a verdict of {kind}, {vain}");
        }
    }
    for (source, over) in Yields::NEEDED.unless.iter().chain(Yields::MEASURED.unless) {
        let first = those(&|yields| yields.unless.iter().any(|(kind, _)| kind == source));
        to +=
            &format!(". With a verdict of {source} it goes before {first}, where these say {}", kinds(over));
    }
    to
}

fn kinds(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" or ")
}

pub fn ids<'a>(rules: impl Iterator<Item = &'a Rule>) -> String {
    rules.map(|rule| rule.id.as_str()).collect::<Vec<_>>().join(", ")
}
