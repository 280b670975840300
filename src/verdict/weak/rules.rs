//! The weak rules as data: what each looks at, how much it weighs, what it says.

use super::observe::{Observed, SCALAR};
use crate::sites::Bundle;
use crate::sites::ranges::has_word;
use crate::vocabulary::{Attribution, Direction, ThreadRole};
use crate::waits::api::Blocking;
use std::sync::Arc;

/// What a rule looks at. Two that look at the same are no two witnesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// How much is read.
    Size,
    /// Where in the step it happens.
    Place,
    /// What the GPU is given next.
    After,
    /// How often it happens.
    Number,
    /// What the host does next.
    Host,
    /// Where the value goes.
    Data,
    /// What the program calls the code.
    Names,
    /// On which thread or stream.
    Where,
}

/// One weak rule.
pub struct Rule {
    pub id: &'static str,
    pub about: About,
    /// Positive: the value is needed.
    pub weight: f64,
    /// What it says of this bundle, where it fires.
    pub says: fn(&Bundle, &Observed) -> Option<String>,
}

const fn rule(
    id: &'static str,
    about: About,
    weight: f64,
    says: fn(&Bundle, &Observed) -> Option<String>,
) -> Rule {
    Rule { id, about, weight, says }
}

/// All of them but X12 and X16, which are about how much a wait matters: what happens only at start-up is marked and ranked
/// last, and drain ranks the rest.
///
/// Beside each: on how many of the 28 false and 22 true sites it fired (the module's doc says which), and its prior in the
/// catalogue. `-`: it fired on none, and half of the prior or less is kept.
pub const RULES: &[Rule] = &[
    // 4 false, 4 true; prior 0.30. Evaluation phases change what follows a log line too; beside X5 alone, both are true.
    rule("X1", About::After, 0.12, differs),
    // 24, 18; prior -0.15: says next to nothing, most branches of a loop go the same way every time.
    rule("X2", About::After, -0.02, repeats),
    // -; prior 0.25.
    rule("X3", About::After, 0.12, size_differs),
    // 1, 1; prior 0.25. What is left of truth values are comparisons by equal and allclose.
    rule("X4", About::Size, 0.12, truth_value),
    // 18, 3; prior -0.20.
    rule("X5", About::Place, -0.15, step_end),
    // 1, 2; prior 0.25.
    rule("X6", About::Size, 0.05, integer),
    // -; prior 0.25.
    rule("X7", About::Host, 0.12, computes),
    // -, and the three prints of a program captured with operating-system calls, which are false; prior -0.30.
    rule("X8", About::Host, -0.15, writes),
    // -; prior -0.30.
    rule("X9", About::Data, -0.12, sent_back),
    // 25, 9; prior -0.25.
    rule("X10", About::Number, -0.10, run),
    // 17, 0; prior -0.25. All in one program.
    rule("X11", About::Names, -0.15, names),
    // -; prior -0.30.
    rule("X13", About::Number, -0.12, per_parameter),
    // -; prior 0.20.
    rule("X14", About::Number, 0.10, per_layer),
    // -; prior -0.40.
    rule("X15", About::Where, -0.15, backward),
    // -; prior -0.30.
    rule("X17", About::Host, -0.12, clock),
    // -; prior 0.20.
    rule("X18", About::Where, 0.10, beside),
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
    (number && mostly(o, |s| s.step_done)).then(|| match o.turns {
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
    (bytes_any(b)? > SCALAR && gap > WORK_NS)
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
const REPORTING: &[&str] = &[
    "log",
    "logs",
    "logger",
    "logging",
    "metric",
    "metrics",
    "meter",
    "meters",
    "progress",
    "report",
    "print",
    "display",
    "summary",
    "postfix",
    "tensorboard",
    "wandb",
    "mlflow",
    "show",
];
/// Words beside which `log` is the logarithm.
const MATHS: &[&str] = &[
    "softmax",
    "prob",
    "probs",
    "probability",
    "sum",
    "exp",
    "likelihood",
    "det",
    "sigmoid",
    "normal",
    "odds",
    "scale",
    "space",
    "ratio",
    "var",
    "std",
    "mean",
];
/// User frames whose names are heard, from the innermost.
const HEARD: usize = 4;

/// Names that the program gave to the code around, innermost first.
fn code_names(b: &Bundle) -> impl Iterator<Item = &str> {
    let frames = b.user_stack().iter().take(HEARD).map(|f| &*f.function);
    frames.chain(b.ranges.iter().rev().map(|r| &**r).filter(|r| !r.contains("::")))
}

fn names(b: &Bundle, _: &Observed) -> Option<String> {
    let name = code_names(b).find(|n| has_word(n, REPORTING) && !has_word(n, MATHS))?;
    Some(format!("it happens in {name}, by its name code that reports"))
}

/// Words of code that measures time.
const TIMING: &[&str] =
    &["timed", "timer", "timing", "elapsed", "latency", "bench", "benchmark", "throughput"];

/// The name of the code around, where it says that it measures time.
pub fn measuring(b: &Bundle) -> Option<&str> {
    code_names(b).find(|n| has_word(n, TIMING))
}

/// Waits of one iteration that are as many as a model has layers, or parameters.
const LAYERS: usize = 4;
const PARAMETERS: usize = 8;

fn each(o: &Observed) -> Option<usize> {
    let turns = o.turns?;
    turns.each.filter(|_| turns.with >= FEW)
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
