//! Tries edits: times the program as it is and edited, in turn, without a profiler.
//!
//! ```text
//!  tree ─┬─ copy A, as it is      runs   [A B] [B A] [A B] …      each: start, warm-up, timed units, end
//!        └─ copy B, edited        saved    +     +     +          A − B of neighbours: a drift of the clock cancels
//! ```
//! The saving is the mean over pairs, its interval ± t·s/√n with Student's t for 95 %. Pairs are run until half of the interval is
//! a hundredth of the unedited length, or the time is over.

mod printed;
mod run;
mod statistics;
pub mod tree;

use crate::capture::{Heard, steps::Hook};
use crate::model::trial::{TrialNumbers, TrialRun, TrialUnit};
use crate::text;
use anyhow::{Result, anyhow};
use regex::Regex;
use run::{Measure, Sample, Wanted};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tree::Tree;

/// Pairs below which an interval says little.
const FEWEST: usize = 3;
/// Half of the interval, as a share of the unedited length, at which a saving is resolved.
const EXACT: f64 = 0.01;
/// Units before the clock starts: allocations, autotuning, lazy loading.
const WARM: u32 = 10;
/// How long a run is timed, at most: some hundred iterations, beside seconds of start.
const WINDOW: Duration = Duration::from_secs(5);
/// Runs for which the time should be enough.
const RUNS: u32 = 24;

/// What is tried, and how long.
pub struct Request {
    pub program: Vec<OsString>,
    /// `MODULE:FUNCTION`, whose calls are timed; `None`: steps of the optimizer.
    pub calls: Option<String>,
    /// Finds the numbers to compare in what the program prints; its first group, if it has one.
    pub metric: Option<Regex>,
    pub time: Duration,
}

/// What came of it; times in ns.
pub struct Tried {
    pub unit: TrialUnit,
    pub timed: u64,
    pub runs: Vec<TrialRun>,
    pub unedited: i64,
    pub saved: i64,
    pub low: i64,
    pub high: i64,
    pub resolved: bool,
    pub printed: Option<TrialNumbers>,
    /// The last lines of an edited program that failed.
    pub failed: Option<String>,
    /// Files of the edited tree that its runs loaded.
    pub loaded: BTreeSet<PathBuf>,
}

/// Runs both trees in turn.
///
/// # Errors
/// The unedited program fails, or nothing of it can be timed; a signal came.
pub fn run(request: &Request, [as_it_is, edited]: [&Tree; 2], say: &dyn Fn(&str)) -> Result<Tried> {
    let (start, heard, hook) = (Instant::now(), Heard::listen()?, Hook::new()?);
    let wanted = Wanted { request, hook: &hook, heard: &heard };
    let fails = |said: String| anyhow!("the program fails as it is: {said}");
    let first = wanted.run(as_it_is, Measure { warm: 3, units: WARM })?.map_err(fails)?;
    let (unit, measure) = units(request, &first);
    say(&format!("as it is, {} takes {}", unit.one(), text::duration(first.length())));
    let mut samples: [Vec<Sample>; 2] = Default::default();
    let mut runs = Vec::new();
    let mut failed = None;
    'pairs: for pair in 0.. {
        let began = Instant::now();
        for which in if pair % 2 == 0 { [0, 1] } else { [1, 0] } {
            let sample = match wanted.run([as_it_is, edited][which], measure)? {
                Ok(sample) => sample,
                Err(said) if which == 1 => {
                    failed = Some(said);
                    break 'pairs;
                }
                Err(said) => return Err(fails(said)),
            };
            runs.push(TrialRun { edited: which == 1, ns: sample.length() });
            samples[which].push(sample);
        }
        let (mean, half) = statistics::interval(&differences(&samples));
        let length = mean_of(&samples[0]);
        let share = |ns: f64| 100.0 * ns / length.max(1) as f64;
        let off = if half.is_finite() { format!(" ± {:.1}", share(half)) } else { String::new() };
        say(&format!("pair {}: saves {:.1}{off} % of {}", pair + 1, share(mean), text::duration(length)));
        let enough = pair + 1 >= FEWEST && half <= EXACT * length as f64;
        let late = pair >= 1 && start.elapsed() + began.elapsed() > request.time;
        if enough || late {
            break;
        }
    }
    let differences = differences(&samples);
    let (mean, half) = statistics::interval(&differences);
    let unedited = mean_of(&samples[0]);
    let (low, high) = ((mean - half) as i64, (mean + half) as i64);
    let resolved = differences.len() >= FEWEST && half <= EXACT * unedited as f64;
    let numbers =
        samples.each_ref().map(|all| all.iter().map(|sample| &sample.printed[..]).collect::<Vec<_>>());
    Ok(Tried {
        unit,
        timed: samples[0].first().map_or(0, |sample| sample.units),
        runs,
        unedited,
        saved: mean as i64,
        low,
        high,
        resolved,
        printed: printed::compared(&numbers[0], &numbers[1]),
        failed,
        loaded: samples[1].iter().flat_map(|sample| sample.files.iter().cloned()).collect(),
    })
}

/// What is timed of a program that did this, and how much of it.
fn units(request: &Request, first: &Sample) -> (TrialUnit, Measure) {
    if first.units == 0 {
        return (TrialUnit::Run, Measure { warm: 0, units: 0 });
    }
    let unit = if request.calls.is_some() { TrialUnit::Call } else { TrialUnit::Iteration };
    let units = WINDOW.min(request.time / RUNS).as_nanos() as i64 / first.length().max(1);
    (unit, Measure { warm: WARM, units: units.clamp(5, 5_000) as u32 })
}

/// Unedited less edited, of each pair.
fn differences(samples: &[Vec<Sample>; 2]) -> Vec<f64> {
    samples[0].iter().zip(&samples[1]).map(|(a, b)| (a.length() - b.length()) as f64).collect()
}

fn mean_of(samples: &[Sample]) -> i64 {
    let sum: i64 = samples.iter().map(Sample::length).sum();
    sum / (samples.len() as i64).max(1)
}
