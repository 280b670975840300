//! What each weak rule looks for, and what it says where it fires.

use super::observe::Observed;
use crate::python::facts::{self, Fact};
use crate::sites::Bundle;
use crate::sites::ranges::has_word;
use crate::vocabulary::{Direction, NUMBER_BYTES, RuleId, ThreadRole};
use crate::waits::api::Blocking;
use std::sync::Arc;

/// What a rule says of a bundle, where it fires.
pub type Says = fn(&Bundle, &Observed) -> Option<String>;

/// All of them but X12, which is about how much a wait matters. What each weighs stands in [`crate::rules`].
pub const RULES: &[(RuleId, Says)] = &[
    (RuleId::X1, |b, o| {
        let all = followers(b, o)?;
        let differ = all.iter().any(|f| *f != all[0]);
        differ.then(|| "the operations after it differ from one time to the next".into())
    }),
    (RuleId::X2, |b, o| {
        let all = followers(b, o)?;
        all.iter().all(|f| *f == all[0]).then(|| "the same operations follow it every time".into())
    }),
    (RuleId::X3, |b, o| {
        let firsts = || o.seen.iter().filter_map(|s| Some((s.after.first()?, s.size_after?)));
        let (name, size) = firsts().next()?;
        let same_name = firsts().count() >= FEW && firsts().all(|f| f.0 == name);
        (one_line(b) && same_name && firsts().any(|f| f.1 != size))
            .then(|| "the same operation follows it, of another size from one time to the next".into())
    }),
    (RuleId::X4, |b, _| (bytes(b)? == 1).then(|| "one byte is read: a truth value".into())),
    (RuleId::X5, |b, o| {
        let number = matches!(bytes(b)?, 2 | 4);
        let text =
            "a number is read when the optimizer's step is done and no layer follows: reporting stands there";
        (number && mostly(o, |s| s.step_done)).then(|| match o.in_iterations {
            Some(t) if t.with < t.all && t.with > 1 => {
                format!("{text}; in {} of {} iterations", t.with, t.all)
            }
            _ => text.into(),
        })
    }),
    (RuleId::X6, |b, o| {
        (bytes(b)? == 8 && !mostly(o, |s| s.step_done))
            .then(|| "eight bytes are read in mid-step: often a size or an index".into())
    }),
    (RuleId::X7, |b, o| {
        let mut gaps: Vec<i64> = o.seen.iter().filter_map(|s| s.until_call).collect();
        gaps.sort_unstable();
        let gap = *gaps.get(gaps.len() / 2)?;
        (bytes_any(b)? > NUMBER_BYTES && gap > WORK_NS).then(|| {
            format!("the host then works for {} before it calls CUDA again", crate::text::duration(gap))
        })
    }),
    (RuleId::X8, |_, o| {
        mostly(o, |s| s.wrote).then(|| "the thread writes to a file or socket right after".into())
    }),
    (RuleId::X9, |b, o| {
        mostly(o, |s| s.sent_back).then(|| {
            let bytes = bytes_any(b).map_or_else(String::new, crate::text::bytes);
            format!("as many bytes ({bytes}) are uploaded again right after")
        })
    }),
    (RuleId::X10, |_, o| {
        (o.run >= FEW).then(|| format!("{} reads follow one another: metrics, and one read would do", o.run))
    }),
    (RuleId::X11, |b, _| {
        let name =
            code_names(b).find(|n| has_word(n, &is(Fact::Reporting)) && !has_word(n, &is(Fact::Maths)))?;
        Some(format!("it happens in {name}, by its name code that reports"))
    }),
    (RuleId::X13, |b, o| {
        let each = each(o).filter(|&n| n >= PARAMETERS)?;
        inside(b, &["optim", "Optimizer", "clip_grad"])
            .then(|| format!("{each} times in every iteration, in the optimizer's code: once a parameter"))
    }),
    (RuleId::X14, |b, o| {
        let each = each(o).filter(|&n| n >= LAYERS)?;
        let forward = b.frames.iter().any(|f| &*f.function == "forward");
        forward.then(|| format!("{each} times in every iteration, in a forward pass: once a layer"))
    }),
    (RuleId::X15, |b, o| {
        let often = o.run >= FEW || each(o).is_some_and(|n| n >= PARAMETERS);
        (b.role == ThreadRole::Autograd && bytes(b) == Some(1) && often)
            .then(|| "one byte is read after one backward operation upon the other: anomaly detection".into())
    }),
    (RuleId::X17, |_, o| clocked(o).then(|| "the thread reads a clock right beside it".into())),
    (RuleId::X18, |b, o| {
        (b.blocking == Blocking::Event && b.completes && o.beside)
            .then(|| "it waits by an event for a copy on a stream of its own: made to overlap".into())
    }),
];

/// Ops compared between waits.
const COMPARED: usize = 4;
/// Waits without which nothing is said of what repeats.
const FEW: usize = 3;
/// CPU work that is no accident, in ns.
const WORK_NS: i64 = 1_000_000;

fn bytes(b: &Bundle) -> Option<u64> {
    bytes_any(b).filter(|_| b.same_bytes)
}

fn bytes_any(b: &Bundle) -> Option<u64> {
    b.copy.filter(|c| c.direction == Direction::DeviceToHost).map(|c| c.bytes)
}

/// Whether a fact holds for most of the waits looked at.
fn mostly(o: &Observed, fact: impl Fn(&super::observe::Seen) -> bool) -> bool {
    o.seen.iter().filter(|s| fact(s)).count() * 2 > o.seen.len()
}

/// What follows each wait: only of waits of one line. Without their frames, several lines share a bundle, and it is they
/// that differ.
fn followers(b: &Bundle, o: &Observed) -> Option<Vec<Vec<Arc<str>>>> {
    // The capture ends: what follows its last waits is cut.
    let whole = o.seen.iter().filter(|s| s.after.len() >= COMPARED);
    let all: Vec<_> = whole.map(|s| s.after[..COMPARED].to_vec()).collect();
    (one_line(b) && all.len() >= FEW).then_some(all)
}

fn one_line(b: &Bundle) -> bool {
    b.attribution.is_of_line()
}

/// User frames whose names are heard, from the innermost.
const HEARD: usize = 4;

/// Names that the program gave to the code around, innermost first.
fn code_names(b: &Bundle) -> impl Iterator<Item = &str> {
    let frames = b.user_stack().iter().take(HEARD).map(|f| &*f.function);
    frames.chain(b.ranges.iter().rev().map(|r| &**r).filter(|r| !r.contains("::")))
}

/// Whether a word is known to be that.
fn is(fact: Fact) -> impl Fn(&str) -> bool {
    move |word| facts::word(word).is(fact)
}

/// The name of the code around that says that it measures time: of functions, unless they were `read`, and of ranges.
pub fn measuring(b: &Bundle, read: bool) -> Option<&str> {
    let known = if read { b.user_stack().len().min(HEARD) } else { 0 };
    let says =
        |name: &&str| has_word(name, &is(Fact::Timing)) || name.to_ascii_lowercase().contains("warm-up");
    code_names(b).skip(known).find(says)
}

pub fn clocked(o: &Observed) -> bool {
    mostly(o, |s| s.clocked)
}

/// Waits of one iteration that are as many as a model has layers, or parameters.
const LAYERS: usize = 4;
const PARAMETERS: usize = 8;

fn each(o: &Observed) -> Option<usize> {
    let counts = o.in_iterations?;
    counts.each.filter(|_| counts.with >= FEW)
}

fn inside(b: &Bundle, words: &[&str]) -> bool {
    let frames = b.frames.iter().flat_map(|f| [&*f.function, &*f.file]);
    frames.chain(b.ranges.iter().map(|r| &**r)).any(|name| words.iter().any(|w| name.contains(w)))
}
