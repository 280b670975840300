//! From the uses of a value to a verdict: rules S01 to S07.

use crate::catalogue::{self, Reads};
use crate::rules::grade::{self, Grade};
use crate::rules::{says, says_of};
use crate::text::{distinct, first_of};
use crate::verdict::source::flow::{Sink, Use, conditions::Fork};
use crate::vocabulary::{Kind, PatternId, PatternId::*, Verdict};

pub const GUARD: PatternId = A35;

/// Numbers that are read one by one, and numbers that are what the program makes.
const READ: PatternId = A01;
const OUTPUT: PatternId = D08;

pub const VALIDATION: &str =
    "a validation, which `python -O` leaves out and `torch._assert_async` does without waiting";

/// The verdict on a value that the CPU read, from its uses; `subject` is the expression as written.
///
/// Definition: a use that decides what the CPU does next outweighs all others (needed). Without one, a use
/// that is not understood leaves the verdict undecided. If every use shows, records or hands the value back
/// to the GPU, the read can wait or go (avoidable). A value collected in a loop and shown after it could be
/// read once after the loop (S05); one that decides there is needed, but no sooner.
pub fn judge(subject: &str, pattern: PatternId, uses: &[Use]) -> Verdict {
    // Text in a file may be a result, unless the value is lost elsewhere.
    let text = |used: &Use| used.sink == Sink::Write && used.value.text;
    let lost = uses.iter().any(is_open);
    let at_once = uses.iter().filter(|used| !(used.can_wait() || lost && text(used)));
    let decisive = at_once.filter_map(|used| Some((decides(used)?, used)));
    if let Some(((_, grade), used)) = decisive.min_by_key(|((rank, _), _)| *rank) {
        let guard = matches!(used.sink, Sink::Branch { guard: true, .. });
        let pattern = match used.sink {
            _ if guard => GUARD,
            Sink::Write if pattern == READ => OUTPUT,
            _ if is_needed_once(used) && reads_number(pattern) => A14,
            _ if is_needed_once(used) => D08,
            Sink::Branch { .. } if reads_number(pattern) => way_on(used.fork).unwrap_or(pattern),
            _ => pattern,
        };
        let mut text = sentence(subject, "is", &[used]);
        if is_needed_once(used) {
            text += "; it is needed only once after the loop that collects it: collect on the GPU and read it there, in one wait";
        }
        let kind = grade.kind.unwrap_or(Kind::ValueRead);
        let grade = if is_needed_once(used) { grade::S06_ONCE } else { grade };
        return says_of(grade, kind, pattern, text);
    }
    let open: Vec<&Use> = uses.iter().filter(|used| is_open(used)).collect();
    if uses.is_empty() || !open.is_empty() {
        let text = match uses {
            [] => format!("the file does not show what becomes of `{subject}`"),
            _ => sentence(subject, "is", &open),
        };
        return says(grade::S06_OPEN, pattern, text);
    }
    let all: Vec<&Use> = uses.iter().collect();
    let rule = if uses.iter().any(Use::can_wait) { later } else { harmless };
    rule(subject, pattern, &all)
}

fn reads_number(pattern: PatternId) -> bool {
    catalogue::entry(pattern).reads == Some(Reads::Number)
}

/// The value is needed, but not at once.
fn later(subject: &str, pattern: PatternId, uses: &[&Use]) -> Verdict {
    let text = sentence(subject, "is", uses);
    let seldom = uses.iter().any(|used| used.seldom);
    let place = match seldom {
        true => "needed only every so many turns: keep it on the GPU and read it there",
        false => "outside the loop that collects it: collect on the GPU and read once",
    };
    let pattern = if seldom || reads_number(pattern) { pattern } else { D08 };
    says(grade::S05, pattern, format!("{text}, {place}"))
}

/// Every use is known and none needs the value at once.
fn harmless(subject: &str, pattern: PatternId, uses: &[&Use]) -> Verdict {
    let text = sentence(subject, "is only", uses);
    let any = |sink: Sink| uses.iter().any(|used| used.sink == sink);
    let direct = uses.iter().all(|used| used.name.is_none());
    if any(Sink::Device) {
        return says(grade::S07, pattern, text);
    }
    if uses.iter().all(|used| used.sink == Sink::Dropped) {
        return says(grade::S06_DROPPED, pattern, text);
    }
    says(if direct { grade::S04 } else { grade::S06_SHOWN }, pattern, text)
}

/// The lowest rank speaks for the site.
fn decides(used: &Use) -> Option<(u8, Grade)> {
    let direct = used.name.is_none();
    Some(match used.sink {
        Sink::Branch { guard: false, .. } => (0, if direct { grade::S01 } else { grade::S06_BRANCH }),
        Sink::Size => (1, grade::S06_SIZE),
        Sink::Index => (2, grade::S06_INDEX),
        Sink::Rate => (3, grade::S06_RATE),
        Sink::Compute => (4, grade::S06_COMPUTE),
        Sink::Write => (5, grade::S06_WRITE),
        Sink::Branch { assert: false, .. } => (6, grade::S02),
        Sink::Branch { assert: true, .. } => (7, grade::S03),
        _ => return None,
    })
}

pub const fn way_on(fork: Fork) -> Option<PatternId> {
    match fork {
        Fork::Stops => Some(A38),
        Fork::Chooses => Some(A03),
        Fork::Counts => Some(A07),
        Fork::Other => None,
    }
}

/// Whether a deciding use comes after the loop that collects the value. A method that the loop calls may use
/// what an attribute collects.
fn is_needed_once(used: &Use) -> bool {
    used.deferred && used.value.collected.is_some_and(|collected| !collected.attribute)
}

fn is_open(used: &Use) -> bool {
    matches!(used.sink, Sink::Unknown | Sink::Returned | Sink::Stored) && !used.can_wait()
}

/// "`lossf` is only an argument of logger.info (line 41), …", with what to do about guards.
fn sentence(subject: &str, verb: &str, uses: &[&Use]) -> String {
    let name = uses.first().and_then(|used| used.name.clone()).unwrap_or_else(|| subject.to_owned());
    let ways = distinct(uses.iter().map(|used| used.told()));
    let verb = if uses.iter().all(|used| used.sink == Sink::Dropped) { "is" } else { verb };
    let mut text = format!("`{name}` {verb} {}", first_of(&ways, 3));
    match uses.first().map(|used| &used.sink) {
        Some(Sink::Branch { assert: true, .. }) => text += &format!(": {VALIDATION}"),
        Some(Sink::Branch { guard: true, .. }) => {
            text += ": a guard that only stops or complains, checking every N steps is enough"
        }
        _ => {}
    }
    text
}
