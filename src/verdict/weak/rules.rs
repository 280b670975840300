//! What each weak rule looks for, and its text where it fires.

use super::observe::{Observed, Seen};
use crate::python::facts::{self, Fact};
use crate::rules::grade::{self, Grade};
use crate::sites::Bundle;
use crate::sites::ranges::has_word;
use crate::vocabulary::Direction;

/// `Some` where the rule fires.
pub type Says = fn(&Bundle, &Observed) -> Option<String>;

pub const RULES: &[(Grade, Says)] = &[
    (grade::X4, |b, _| (bytes(b)? == 1).then(|| "one byte is read: a truth value".into())),
    (grade::X5, |b, o| {
        (matches!(bytes(b)?, 2 | 4) && mostly(o, |s| s.step_done)).then(|| {
            "a number is read when the optimizer's step is done and no layer follows: reporting stands there"
                .into()
        })
    }),
    (grade::X6, |b, o| {
        (bytes(b)? == 8 && !mostly(o, |s| s.step_done))
            .then(|| "eight bytes are read in mid-step: often a size or an index".into())
    }),
    (grade::X11, |b, _| {
        let name =
            code_names(b).find(|n| has_word(n, &is(Fact::Reporting)) && !has_word(n, &is(Fact::Maths)))?;
        Some(format!("it happens in {name}, by its name code that reports"))
    }),
];

/// Bytes that each of its waits reads; `None` where they differ.
fn bytes(b: &Bundle) -> Option<u64> {
    let read = b.copy.filter(|copy| copy.direction == Direction::DeviceToHost && b.same_bytes);
    read.map(|copy| copy.bytes)
}

fn mostly(o: &Observed, fact: impl Fn(&Seen) -> bool) -> bool {
    o.seen.iter().filter(|s| fact(s)).count() * 2 > o.seen.len()
}

/// User frames whose names count, from the innermost.
const HEARD: usize = 4;

/// Names that the program gave to the code around, innermost first.
fn code_names(b: &Bundle) -> impl Iterator<Item = &str> {
    let frames = b.user_stack().iter().take(HEARD).map(|f| &*f.function);
    frames.chain(b.ranges.iter().rev().map(|r| &**r).filter(|r| !r.contains("::")))
}

fn is(fact: Fact) -> impl Fn(&str) -> bool {
    move |word| facts::word(word).is(fact)
}

/// The name around that says that it measures time: of functions, unless they were `read`, or of ranges.
pub fn measuring(b: &Bundle, read: bool) -> Option<&str> {
    let known = if read { b.user_stack().len().min(HEARD) } else { 0 };
    let says =
        |name: &&str| has_word(name, &is(Fact::Timing)) || name.to_ascii_lowercase().contains("warm-up");
    code_names(b).skip(known).find(says)
}

pub fn clocked(o: &Observed) -> bool {
    mostly(o, |s| s.clocked)
}
