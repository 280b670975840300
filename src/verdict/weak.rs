//! Weak evidence: what leans one way without deciding (rules X1 to X15 of the catalogue).
//!
//! Used for reads that nothing else decides. The weights are the catalogue's priors, not calibrated; they are shown
//! as a leaning with its reasons and never make a verdict.

use crate::profile::Profile;
use crate::sites::Bundle;
use crate::sites::neighbours::Neighbours;
use crate::vocabulary::{Direction, Evidence, ThreadRole};
use crate::waits::Wait;

/// What repetition shows of a bundle: computed from a few of its waits.
pub struct Behaviour {
    /// Ops after each looked-at wait, nearest first.
    pub after: Vec<Neighbours>,
    /// Iterations that hold waits of the bundle, of all iterations; `None` without iterations.
    pub iterations: Option<(usize, usize)>,
}

/// Sum of weights beyond which a leaning is worth telling.
const WORTH_TELLING: f64 = 0.15;
/// Ops compared between waits.
const COMPARED: usize = 4;

/// The leaning of a read, if any: one piece of evidence per reason, the sum first.
pub fn lean(bundle: &Bundle, behaviour: &Behaviour, run_of_reads: usize) -> Vec<Evidence> {
    let Some(copy) = bundle.copy.filter(|c| c.direction == Direction::DeviceToHost) else {
        return Vec::new();
    };
    // Positive leans to true.
    let mut reasons: Vec<(f64, &'static str, String)> = Vec::new();
    match copy.bytes {
        1 => reasons.push((0.25, "X4", "one byte is read: a truth value".into())),
        8 if bundle.same_bytes => {
            reasons.push((0.10, "X6", "eight bytes are read: often a size or an index".into()))
        }
        _ => {}
    }
    if behaviour.after.len() >= 3 {
        let key = |n: &Neighbours| n.after.iter().take(COMPARED).cloned().collect::<Vec<_>>();
        let first = key(&behaviour.after[0]);
        if behaviour.after.iter().all(|n| key(n) == first) {
            reasons.push((-0.15, "X2", "the same operations follow it every time".into()));
        } else {
            reasons.push((0.30, "X1", "the operations after it differ from one time to the next".into()));
        }
    }
    if run_of_reads >= 3 {
        reasons.push((
            -0.25,
            "X10",
            format!("{run_of_reads} reads follow one another: metrics, and one read would do"),
        ));
    }
    if let Some((with, all)) = behaviour.iterations
        && all >= 5
        && with > 0
        && with * 2 < all
    {
        reasons.push((
            -0.20,
            "X5",
            format!("it happens in {with} of {all} iterations only, as logging does"),
        ));
    }
    if bundle.role == ThreadRole::Autograd && copy.bytes == 1 {
        reasons.push((
            -0.40,
            "X15",
            "one byte is read after backward operations: anomaly detection looks so".into(),
        ));
    }
    let sum: f64 = reasons.iter().map(|r| r.0).sum();
    if reasons.is_empty() || sum.abs() < WORTH_TELLING {
        return Vec::new();
    }
    let toward = if sum > 0.0 { "true (needed)" } else { "false (avoidable)" };
    let texts: Vec<String> = reasons.iter().map(|(_, rule, text)| format!("{text} [{rule}]")).collect();
    vec![Evidence::new("X", format!("leans to {toward}, which alone decides nothing: {}", texts.join("; ")))]
}

/// How many reads to the host in a row, on its thread, hold the wait `at` (index into all waits, sorted by call).
pub fn run_of_reads(profile: &Profile, waits: &[Wait], at: u32) -> usize {
    /// Host time between two reads of one run.
    const GAP_NS: i64 = 1_000_000;
    let is_read = |w: &Wait| w.copy.is_some_and(|c| c.direction == Direction::DeviceToHost && c.bytes <= 16);
    let same = |a: &Wait, b: &Wait| a.thread == b.thread && is_read(b) && b.start - a.end < GAP_NS;
    let at = at as usize;
    if !is_read(&waits[at]) || profile.calls.is_empty() {
        return 0;
    }
    let (mut first, mut last) = (at, at);
    while first > 0 && is_read(&waits[first - 1]) && same(&waits[first - 1], &waits[first]) {
        first -= 1;
    }
    while last + 1 < waits.len() && same(&waits[last], &waits[last + 1]) {
        last += 1;
    }
    last - first + 1
}
