//! What each weak rule looks for, and what it says where it fires.

use super::observe::Observed;
use crate::sites::Bundle;
use crate::sites::ranges::has_word;
use crate::text::Names;
use crate::vocabulary::{Attribution, Direction, NUMBER_BYTES, RuleId, ThreadRole};
use crate::waits::api::Blocking;
use std::sync::Arc;

/// What a rule says of a bundle, where it fires.
pub type Says = fn(&Bundle, &Observed) -> Option<String>;

/// All of them but X12, which is about how much a wait matters. What each weighs stands in [`crate::rules`].
pub const RULES: &[(RuleId, Says)] = &[
    (RuleId::X1, differs),
    (RuleId::X2, repeats),
    (RuleId::X3, size_differs),
    (RuleId::X4, truth_value),
    (RuleId::X5, step_end),
    (RuleId::X6, integer),
    (RuleId::X7, computes),
    (RuleId::X8, writes),
    (RuleId::X9, sent_back),
    (RuleId::X10, run),
    (RuleId::X11, names),
    (RuleId::X13, per_parameter),
    (RuleId::X14, per_layer),
    (RuleId::X15, backward),
    (RuleId::X17, clock),
    (RuleId::X18, beside),
];

/// Ops compared between waits.
const COMPARED: usize = 4;
/// Waits without which nothing is said of what repeats.
const FEW: usize = 3;
/// CPU work that is no accident, in ns.
const WORK_NS: i64 = 1_000_000;

fn bytes(b: &Bundle) -> Option<u64> {
    b.copy.filter(|c| c.direction == Direction::DeviceToHost && b.same_bytes).map(|c| c.bytes)
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
    b.attribution == Attribution::PythonBacktrace
}

fn differs(b: &Bundle, o: &Observed) -> Option<String> {
    let all = followers(b, o)?;
    all.iter()
        .any(|f| *f != all[0])
        .then(|| "the operations after it differ from one time to the next".into())
}

fn repeats(b: &Bundle, o: &Observed) -> Option<String> {
    let all = followers(b, o)?;
    all.iter().all(|f| *f == all[0]).then(|| "the same operations follow it every time".into())
}

fn size_differs(b: &Bundle, o: &Observed) -> Option<String> {
    let firsts = || o.seen.iter().filter_map(|s| Some((s.after.first()?, s.size_after?)));
    let (name, size) = firsts().next()?;
    let same_name = firsts().count() >= FEW && firsts().all(|f| f.0 == name);
    (one_line(b) && same_name && firsts().any(|f| f.1 != size))
        .then(|| "the same operation follows it, of another size from one time to the next".into())
}

fn truth_value(b: &Bundle, _: &Observed) -> Option<String> {
    (bytes(b)? == 1).then(|| "one byte is read: a truth value".into())
}

fn step_end(b: &Bundle, o: &Observed) -> Option<String> {
    let number = matches!(bytes(b)?, 2 | 4);
    let text =
        "a number is read when the optimizer's step is done and no layer follows: reporting stands there";
    (number && mostly(o, |s| s.step_done)).then(|| match o.in_iterations {
        Some(t) if t.with < t.all && t.with > 1 => format!("{text}; in {} of {} iterations", t.with, t.all),
        _ => text.into(),
    })
}

fn integer(b: &Bundle, o: &Observed) -> Option<String> {
    (bytes(b)? == 8 && !mostly(o, |s| s.step_done))
        .then(|| "eight bytes are read in mid-step: often a size or an index".into())
}

fn computes(b: &Bundle, o: &Observed) -> Option<String> {
    let mut gaps: Vec<i64> = o.seen.iter().filter_map(|s| s.until_call).collect();
    gaps.sort_unstable();
    let gap = *gaps.get(gaps.len() / 2)?;
    (bytes_any(b)? > NUMBER_BYTES && gap > WORK_NS)
        .then(|| format!("the host then works for {} before it calls CUDA again", crate::text::duration(gap)))
}

fn bytes_any(b: &Bundle) -> Option<u64> {
    b.copy.filter(|c| c.direction == Direction::DeviceToHost).map(|c| c.bytes)
}

fn writes(_: &Bundle, o: &Observed) -> Option<String> {
    mostly(o, |s| s.wrote).then(|| "the thread writes to a file or socket right after".into())
}

fn sent_back(b: &Bundle, o: &Observed) -> Option<String> {
    mostly(o, |s| s.sent_back).then(|| {
        let bytes = bytes_any(b).map_or_else(String::new, crate::text::bytes);
        format!("as many bytes ({bytes}) are uploaded again right after")
    })
}

fn run(_: &Bundle, o: &Observed) -> Option<String> {
    (o.run >= FEW).then(|| format!("{} reads follow one another: metrics, and one read would do", o.run))
}

/// Words of code that reports.
const REPORTING: &str = "log logs logger logging metric metrics meter meters progress report print display summary \
    postfix tensorboard wandb mlflow show";
/// Words beside which `log` is the logarithm.
const MATHS: &str = "softmax prob probs probability sum exp likelihood det sigmoid normal odds scale space ratio var \
    std mean";
/// User frames whose names are heard, from the innermost.
const HEARD: usize = 4;

/// Names that the program gave to the code around, innermost first.
fn code_names(b: &Bundle) -> impl Iterator<Item = &str> {
    let frames = b.user_stack().iter().take(HEARD).map(|f| &*f.function);
    frames.chain(b.ranges.iter().rev().map(|r| &**r).filter(|r| !r.contains("::")))
}

/// Whether one of the words, which have blanks between them, is in a name.
fn holds(name: &str, words: &'static str) -> bool {
    has_word(name, Names(words))
}

fn names(b: &Bundle, _: &Observed) -> Option<String> {
    let name = code_names(b).find(|n| holds(n, REPORTING) && !holds(n, MATHS))?;
    Some(format!("it happens in {name}, by its name code that reports"))
}

/// Words of code that measures time.
const TIMING: &str = "timed timer timing elapsed latency bench benchmark throughput";

/// The name of the code around, where it says that it measures time.
pub fn measuring(b: &Bundle) -> Option<&str> {
    code_names(b).find(|n| holds(n, TIMING))
}

/// Waits of one iteration that are as many as a model has layers, or parameters.
const LAYERS: usize = 4;
const PARAMETERS: usize = 8;

fn each(o: &Observed) -> Option<usize> {
    let counts = o.in_iterations?;
    counts.each.filter(|_| counts.with >= FEW)
}

fn inside(b: &Bundle, words: &[&str]) -> bool {
    let frames = b.frames.iter().any(|f| words.iter().any(|w| f.function.contains(w) || f.file.contains(w)));
    frames || b.ranges.iter().any(|r| words.iter().any(|w| r.contains(w)))
}

fn per_parameter(b: &Bundle, o: &Observed) -> Option<String> {
    let each = each(o).filter(|&n| n >= PARAMETERS)?;
    inside(b, &["optim", "Optimizer", "clip_grad"])
        .then(|| format!("{each} times in every iteration, in the optimizer's code: once a parameter"))
}

fn per_layer(b: &Bundle, o: &Observed) -> Option<String> {
    let each = each(o).filter(|&n| n >= LAYERS)?;
    b.frames
        .iter()
        .any(|f| &*f.function == "forward")
        .then(|| format!("{each} times in every iteration, in a forward pass: once a layer"))
}

fn backward(b: &Bundle, o: &Observed) -> Option<String> {
    let often = o.run >= FEW || each(o).is_some_and(|n| n >= PARAMETERS);
    (b.role == ThreadRole::Autograd && bytes(b) == Some(1) && often)
        .then(|| "one byte is read after one backward operation upon the other: anomaly detection".into())
}

fn clock(_: &Bundle, o: &Observed) -> Option<String> {
    mostly(o, |s| s.clocked).then(|| "the thread reads a clock right beside it".into())
}

fn beside(b: &Bundle, o: &Observed) -> Option<String> {
    (b.blocking == Blocking::Event && b.completes && o.beside)
        .then(|| "it waits by an event for a copy on a stream of its own: made to overlap".into())
}
