//! Tries edits: times the program as it is and edited, in turn, without a profiler.
//!
//! ```text
//!  tree ─┬─ copy A, as it is      rounds   [A B B A A B B A] [B A A B B A A B] …     both start anew in each
//!        └─ copy B, edited        saved           +                 +                A − B: a drift of the machine cancels
//! ```
//! The saving is the mean over rounds, its interval ± t·s/√n with Student's t for 95 %. Rounds are run until half of the
//! interval is a hundredth of the unedited length, or the time is over. Programs that do not run at once, or end soon, run
//! one after the other.

mod printed;
mod run;
mod statistics;
pub mod tree;
mod turns;

use crate::capture::{Heard, steps::Hook};
use crate::model::trial::{TrialNumbers, TrialRun, TrialUnit};
use crate::text;
use anyhow::{Result, anyhow, bail};
use regex::Regex;
use run::{Measure, Sample, Wanted};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tree::Tree;
use turns::{Fell, Plan};

/// Rounds below which an interval says little: with three, a small scatter is often luck.
const FEWEST: usize = 5;
/// Half of the interval, as a share of the unedited length, at which a saving is resolved.
const EXACT: f64 = 0.01;
/// Units before the clock starts: allocations, autotuning, lazy loading.
const WARM: u32 = 10;
/// How long a step, or a run, may take besides ten times the first run: then it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a run is timed, at most: some hundred iterations, beside seconds of start.
const WINDOW: Duration = Duration::from_secs(5);
/// Runs for which the time should be enough.
const RUNS: u32 = 24;

/// A trial as it was asked for.
pub struct Request {
    pub program: Vec<OsString>,
    /// `MODULE:FUNCTION`, whose calls are timed; `None`: steps of the optimizer.
    pub calls: Option<String>,
    /// Finds the numbers to compare in what the program prints; its first group, if it has one.
    pub metric: Option<Regex>,
    pub time: Duration,
}

/// The outcome of a trial; times in ns.
pub struct Tried {
    pub unit: TrialUnit,
    pub timed: u64,
    pub runs: Vec<TrialRun>,
    pub unedited: i64,
    /// Mean saving, and the ends of its interval; `None` without two rounds.
    pub saved: Option<[i64; 3]>,
    pub resolved: bool,
    pub printed: Option<TrialNumbers>,
    /// The last lines of an edited program that failed.
    pub failed: Option<String>,
    /// Files of the edited tree that its runs imported; `None` where no Python says.
    pub loaded: Option<BTreeSet<PathBuf>>,
}

/// Runs both trees in turn.
///
/// # Errors
/// The unedited program fails, or other units are timed in one run than in another; a signal came.
pub fn run(request: &Request, trees: [&Tree; 2], heard: &Heard, say: &dyn Fn(&str)) -> Result<Tried> {
    let (start, hook) = (Instant::now(), Hook::new()?);
    let mut wanted = Wanted { request, patience: None, hook: &hook, heard };
    let fails = |said: String| {
        anyhow!("the program fails in a copy of the tree, where `..` and .git are not those of yours: {said}")
    };
    // The first run fills caches, and is not counted.
    say("the program runs once as it is: for some steps of its optimizer, without one to its end");
    let began = Instant::now();
    let first = wanted.run(trees[0], Measure { warm: 3, units: WARM })?.map_err(fails)?;
    let (unit, measure) = units(request, &first)?;
    say(&format!("as it is, {} takes {}", unit.one(), text::duration(first.length())));
    wanted.patience = Some(PATIENCE + 10 * began.elapsed());
    let mut way = match first.units >= u64::from(WARM) {
        true => Way::InTurn(Plan::of(first.length(), request.time)),
        false => Way::Apart(measure, Measure { warm: 3, units: WARM }),
    };
    let mut tried = Tries::default();
    let (mut began, mut why) = (Instant::now(), None);
    loop {
        let round = tried.samples[0].len();
        let done = match way {
            Way::InTurn(plan) => turns::round(&wanted, trees, plan, round)?,
            Way::Apart(measure, before) => apart(&wanted, trees, [measure, before], round, unit)?,
        };
        match done {
            Ok(pair) => tried.add(pair),
            // It may want what the other one has, or end before its turns do.
            Err(Fell { said, until, .. })
                if matches!(way, Way::InTurn(_)) && (round == 0 || said.is_none() && round < 2) =>
            {
                tried = Tries::default();
                // An edited program that failed may fail alone.
                let units = if said.is_some() { until.try_into().unwrap_or(u32::MAX) } else { WARM };
                way = Way::Apart(measure, Measure { warm: 1, units });
                why = Some(said.map_or_else(
                    || "the program ends before its turns do".to_owned(),
                    |said| {
                        format!(
                            "both programs cannot run at once ({})",
                            said.lines().last().unwrap_or_default()
                        )
                    },
                ));
                continue;
            }
            Err(Fell { said: None, .. }) => break,
            Err(Fell { which: 0, said: Some(said), .. }) => return Err(fails(said)),
            Err(Fell { said, .. }) => {
                tried.failed = said;
                break;
            }
        }
        if let Some(why) = why.take() {
            say(&format!("{why}: the two run one after the other"));
        }
        let ((mean, half), length) = (tried.interval(), tried.unedited());
        let share = |ns: f64| 100.0 * ns / length.max(1) as f64;
        let off = if half.is_finite() { format!(" ± {:.1}", share(half)) } else { String::new() };
        say(&format!("round {}: saves {:.1}{off} % of {}", round + 1, share(mean), text::duration(length)));
        let late = round >= 1 && start.elapsed() + began.elapsed() > request.time;
        if tried.resolved() || late {
            break;
        }
        began = Instant::now();
    }
    Ok(tried.result(unit))
}

/// How the programs of a round run.
#[derive(Clone, Copy)]
enum Way {
    /// Both alive, in turn.
    InTurn(Plan),
    /// One after the other; before, the edited one for so long.
    Apart(Measure, Measure),
}

/// Which program comes first, then which: they alternate.
fn order(turn: usize) -> [usize; 2] {
    if turn.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

/// A round of two runs, one after the other; before the first, the edited program fills its caches.
fn apart(
    wanted: &Wanted,
    trees: [&Tree; 2],
    [measure, before]: [Measure; 2],
    round: usize,
    unit: TrialUnit,
) -> Result<Result<[Sample; 2], Fell>> {
    let fell = |which| move |said| Fell { which, said: Some(said), until: 0 };
    if round == 0
        && let Err(said) = wanted.run(trees[1], before)?
    {
        return Ok(Err(fell(1)(said)));
    }
    let one = |which: usize| match wanted.run(trees[which], measure)? {
        Ok(sample) if (sample.units == 0) != (unit == TrialUnit::Run) => {
            let which = if which == 1 { "edited" } else { "unedited" };
            bail!(
                "an {which} run ended before its {}s were timed; time calls with --calls, or give a longer run",
                unit.as_str()
            );
        }
        done => Ok(done.map_err(fell(which))),
    };
    let mut pair = [None, None];
    for which in order(round) {
        match one(which)? {
            Ok(sample) => pair[which] = Some(sample),
            Err(failed) => return Ok(Err(failed)),
        }
    }
    let [Some(unedited), Some(edited)] = pair else { bail!("a run is missing") };
    Ok(Ok([unedited, edited]))
}

/// Runs so far.
#[derive(Default)]
struct Tries {
    /// Unedited, edited.
    samples: [Vec<Sample>; 2],
    runs: Vec<TrialRun>,
    failed: Option<String>,
}

impl Tries {
    fn add(&mut self, pair: [Sample; 2]) {
        for (which, sample) in pair.into_iter().enumerate() {
            self.runs.push(TrialRun { edited: which == 1, ns: sample.length() });
            self.samples[which].push(sample);
        }
    }

    /// The mean saving, and half of its interval.
    fn interval(&self) -> (f64, f64) {
        let pairs = self.samples[0].iter().zip(&self.samples[1]);
        statistics::interval(&pairs.map(|(a, b)| (a.length() - b.length()) as f64).collect::<Vec<_>>())
    }

    fn unedited(&self) -> i64 {
        let sum: i64 = self.samples[0].iter().map(Sample::length).sum();
        sum / (self.samples[0].len() as i64).max(1)
    }

    fn resolved(&self) -> bool {
        self.samples[0].len() >= FEWEST && self.interval().1 <= EXACT * self.unedited() as f64
    }

    fn result(self, unit: TrialUnit) -> Tried {
        let (mean, half) = self.interval();
        let numbers = self
            .samples
            .each_ref()
            .map(|all| all.iter().map(|sample| &sample.printed[..]).collect::<Vec<_>>());
        let loaded = self.samples[1].iter().filter_map(|sample| sample.loaded.as_ref());
        let loaded: Vec<&Vec<PathBuf>> = loaded.collect();
        Tried {
            unit,
            timed: self.samples[0].first().map_or(0, |sample| sample.units),
            unedited: self.unedited(),
            saved: half.is_finite().then_some([mean as i64, (mean - half) as i64, (mean + half) as i64]),
            resolved: self.resolved() && self.failed.is_none(),
            printed: printed::compared(&numbers[0], &numbers[1]),
            loaded: (!loaded.is_empty()).then(|| loaded.into_iter().flatten().cloned().collect()),
            failed: self.failed,
            runs: self.runs,
        }
    }
}

/// The unit to time in a program that did this, and how many of them.
///
/// # Errors
/// No call of the named function was seen.
fn units(request: &Request, first: &Sample) -> Result<(TrialUnit, Measure)> {
    if let (0, Some(calls)) = (first.units, &request.calls) {
        bail!(
            "no call of {calls} was seen; name a module as it is imported (not the script itself), and a function that is called more than 3 times"
        );
    }
    if first.units == 0 {
        return Ok((TrialUnit::Run, Measure { warm: 0, units: 0 }));
    }
    let unit = if request.calls.is_some() { TrialUnit::Call } else { TrialUnit::Iteration };
    if first.units < u64::from(WARM) {
        // The program ends by itself, so soon.
        return Ok((unit, Measure { warm: 3, units: first.units as u32 }));
    }
    let units = WINDOW.min(request.time / RUNS).as_nanos() as i64 / first.length().max(1);
    Ok((unit, Measure { warm: WARM, units: units.clamp(5, 5_000) as u32 }))
}
