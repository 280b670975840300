//! Reading the Python source of a call site: which expression waits, and where its value goes.
//!
//! The modules depend in this order: `infer` (what the text says of values, without following them) →
//! `locate` (the expression that waits) and `flow` (what becomes of its value) → `judge` (the verdict) →
//! `scan` (all lines of a file that was never captured).

mod files;
mod flow;
mod infer;
mod judge;
mod locate;
mod mend;
pub mod scan;

pub use crate::python::parse::{Recorded, Refused, SourceFiles, SourceRoot, SourceTree};
pub use files::{editable, snippet};

pub use judge::reader::Reading;
pub use locate::{Beside, Observed};
pub use mend::text::apply;

use crate::model::Frame;
use crate::model::edit::{Outcome, Refusal};
use crate::python::parse::{Source, last};
use crate::rules::grade::EVEN;
use crate::text::distinct;
use crate::vocabulary::{Class, Evidence, Kind, RuleId};
use infer::{Here, Placements};
use judge::reader::{Case, SiteReader};
use std::mem::discriminant;

#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    NoSource,
    /// A file was read, but its line does not hold what the trace saw.
    Stale {
        /// What does not fit, as a clause.
        reason: String,
    },
    Read(Reading),
}

impl Finding {
    /// The user's finding with the verdict on the line of a library below it, in `file`, which waits. No edit
    /// is made there. Where only the user's line decides, its verdict stays.
    #[must_use]
    pub fn below(self, library: Self, file: &str) -> Self {
        let Self::Read(Reading { mut verdict, .. }) = library else { return self };
        let (line_text, expression) = match self {
            Self::Stale { .. } => return self,
            Self::Read(own) if verdict.class == Class::Unknown && own.verdict.class != Class::Unknown => {
                return Self::Read(own);
            }
            Self::Read(own) => (own.line_text, own.expression),
            Self::NoSource => (None, String::new()),
        };
        for evidence in &mut verdict.evidence {
            evidence.text = format!("in {}, {}", crate::text::path_end(file, 1), evidence.text);
        }
        let outcome = Outcome::refused(None, Refusal::Library);
        Self::Read(Reading { line_text, expression, verdict, rewritten: None, outcome })
    }
}

/// The text of a line that runs in the function; `None` where there is no such file, or it is not what ran.
pub fn line(tree: &SourceTree, recorded: &str, line: u32, function: &str) -> Option<String> {
    let file = tree.open(recorded)?;
    locate::line::holds(&file, line, function).then(|| file.line_text(line).to_owned())
}

pub fn parses(text: &str) -> bool {
    Source::parse(text.as_bytes().to_vec()).is_ok_and(|file| file.is_valid())
}

/// The only line of a function that waits in the way the trace saw: the trace names the method, or the line
/// waits plainly. `first`: the line where the function begins.
pub fn found_line(tree: &SourceTree, frame: &Frame, first: u32, observed: &Observed<'_>) -> Option<u32> {
    let file = tree.open(&frame.file)?;
    let placements = Placements::new(&file);
    let waits = |&line: &u32| {
        let found = locate::line::locate(&Frame { line, ..frame.clone() }, observed, &placements);
        // A call into C would have been recorded: an unrecorded wait is no such call.
        let seen = |one: &locate::line::Candidate<'_>| {
            observed.method.is_some() || observed.through.is_some() || !one.calls_c()
        };
        found.is_ok_and(|found| found.iter().any(|one| one.is_plain_at_its_line() && seen(one)))
    };
    // The first line of a decorated function is its decorator's.
    let last = locate::line::last_of(&file, first, &frame.function)?;
    let mut lines = (first..=last).filter(waits);
    let line = lines.next()?;
    lines.next().is_none().then_some(line)
}

/// Reads the call site of `frames` (the stack from the user's line outwards, libraries' frames included):
/// finds the expression on the first frame's line that waits in the way the trace saw, and follows its value
/// to a verdict.
///
/// Several expressions of the line may fit alike. If their verdicts agree, the site gets that verdict. If
/// they disagree about the class, the site is undecided, and the evidence has both.
pub fn read_site(tree: &SourceTree, frames: &[Frame], observed: &Observed<'_>) -> Finding {
    let Some(frame) = frames.first() else { return Finding::NoSource };
    let Some(file) = tree.open(&frame.file) else { return Finding::NoSource };
    let placements = Placements::new(&file);
    let candidates = match locate::line::locate(frame, observed, &placements) {
        Ok(candidates) => candidates,
        Err(reason) => return Finding::Stale { reason },
    };
    let site = SiteReader { tree, frames, observed };
    let alike =
        candidates.array_windows().all(|[one, other]| discriminant(&one.sync) == discriminant(&other.sync));
    let judged = candidates.iter().map(|candidate| {
        let here = Here { placements: &placements, path: &candidate.path };
        let text = last(here.path).map(|node| file.text(node)).unwrap_or_default();
        Case { site, here, sync: candidate.sync, text: &text }.judge()
    });
    let line_text = Some(file.line_text(frame.line).to_owned());
    let reading = combine(&file, judged.collect(), alike);
    reading.map_or(Finding::NoSource, |reading| Finding::Read(Reading { line_text, ..reading }))
}

/// One verdict from those of all expressions that fit: theirs where they agree. Needed, where one is and all
/// read `alike`, or none is avoidable. Else undecided.
fn combine(file: &Source, judged: Vec<Reading>, alike: bool) -> Option<Reading> {
    let expressions = distinct(judged.iter().map(|one| one.expression.clone()));
    let rewritten = distinct(judged.iter().filter_map(|one| one.rewritten.clone()));
    let needed = alike || judged.iter().all(|one| one.verdict.class != Class::False);
    let mut all = judged.into_iter();
    let mut whole = all.next()?;
    for other in all {
        let (mine, mut theirs) = (&mut whole.verdict, other.verdict);
        let classes = [mine.class, theirs.class];
        if needed && classes.contains(&Class::True) && mine.class != theirs.class {
            // A line that is needed for one thing is needed, whatever else it reads.
            if theirs.class == Class::True {
                std::mem::swap(mine, &mut theirs);
            }
        } else if mine.class != theirs.class {
            let text = format!("`{}` alone would be {} ({})", other.expression, theirs.class, theirs.kind);
            let text = format!("the expressions of the line disagree: {text}");
            mine.evidence.insert(0, Evidence::new(RuleId::S06, text));
            (mine.class, mine.kind) = (Class::Unknown, Kind::ValueRead);
            mine.confidence = EVEN;
        } else {
            // The less certain one speaks first.
            if theirs.confidence < mine.confidence {
                mine.confidence = theirs.confidence;
                mine.evidence.splice(0..0, theirs.evidence.first().cloned());
            }
        }
        whole.outcome = together(file, whole.outcome, other.outcome);
        mine.made = mine.made.or(theirs.made);
        for evidence in theirs.evidence {
            if !mine.evidence.contains(&evidence) {
                mine.evidence.push(evidence);
            }
        }
    }
    whole.expression = expressions.join(", ");
    whole.rewritten = (!rewritten.is_empty()).then(|| rewritten.join(", "));
    Some(whole)
}

/// The edit of two expressions that fit alike: both edits, if they are of one kind.
fn together(file: &Source, one: Outcome, other: Outcome) -> Outcome {
    match (one, other) {
        (Outcome::Edit(mut one), Outcome::Edit(other)) if one.kind == other.kind => {
            one.replacements.extend(other.replacements);
            one.replacements.sort();
            one.replacements.dedup();
            one.blocks = mend::text::blocks(file, &one.replacements);
            (one.safety, one.mind) = (one.safety.max(other.safety), one.mind.or(other.mind));
            Outcome::Edit(one)
        }
        (one @ Outcome::Refused { .. }, other) if one == other => one,
        (Outcome::Refused { kind, .. }, _) | (_, Outcome::Refused { kind, .. }) => {
            Outcome::refused(kind, Refusal::Several)
        }
        (Outcome::Edit(one), Outcome::Edit(_)) => Outcome::refused(Some(one.kind), Refusal::Several),
    }
}
