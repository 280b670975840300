//! A round: both programs alive, one stopped while the other is timed.
//!
//! ```text
//!  A  start, warm-up │·[ 1 s ]│         │·[ 1 s ]·[ 1 s ]│         │ …  end
//!  B  start, warm-up │        │·[ 1 s ]·[ 1 s ]│         │·[ 1 s ]·│ …  end      · untimed: queues of loaders, caches
//! ```
//! Neighbouring turns see the same machine, and both programs start at once. What differs from start to start, such as
//! addresses, stays in the round: rounds are what the interval is of.

use super::run::{LOOK, Running, Sample, Wanted};
use super::tree::Tree;
use crate::capture::{Failed, Heard, end_group, hold, resume};
use anyhow::{Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

/// How long a turn is timed, at most.
const TURN: Duration = Duration::from_secs(1);
/// Turns, with what is not timed, for which the time should be enough: five rounds of eight.
const TURNS: u32 = 60;
/// The part of a turn that comes before, by units.
const UNTIMED: u64 = 4;
/// How long a program may take from the end of its last turn to its own.
const END: Duration = Duration::from_secs(20);

/// How a round goes.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Units before the first turn.
    warm: u64,
    /// Units of a turn that are timed.
    units: u64,
    /// Turns of each program.
    turns: usize,
}

impl Plan {
    /// For units of this length, in ns: three seconds of warm-up, then ten of turns, where units are short and there is time.
    pub fn of(length: i64, time: Duration) -> Self {
        let turn = TURN.min(time / TURNS);
        let fit = |time: Duration| time.as_nanos() as u64 / length.max(1).cast_unsigned();
        let turns = if fit(turn) >= 2 { 4 } else { 2 };
        Self { warm: fit(3 * turn).clamp(3, 5_000), units: fit(turn).clamp(2, 5_000), turns }
    }
}

/// Runs both programs in turn: a sample of each, or the last lines of the one that did not come so far.
///
/// # Errors
/// A program cannot be started; a signal came.
pub fn round(
    wanted: &Wanted,
    trees: [&Tree; 2],
    plan: Plan,
    first: usize,
) -> Result<Result<[Sample; 2], (usize, String)>> {
    let start = |tree| Live::start(wanted, tree, plan.warm);
    let mut live = [start(trees[0])?, start(trees[1])?];
    for which in [0, 1] {
        if !live[which].waited(0, wanted.heard)? {
            return Ok(Err((which, live[which].said(wanted, trees[which])?)));
        }
    }
    // A first run is slower than a warm one.
    let plan = Plan::of(live[0].warm_length(), wanted.request.time);
    let mut sums = [(0, 0); 2];
    for pair in 0..plan.turns {
        for which in if pair % 2 == first % 2 { [0, 1] } else { [1, 0] } {
            let Some((units, ns)) = live[which].turn(plan.units, wanted.heard)? else {
                return Ok(Err((which, live[which].said(wanted, trees[which])?)));
            };
            sums[which] = (sums[which].0 + units, sums[which].1 + ns);
        }
    }
    let mut samples = Vec::new();
    for (which, live) in live.iter_mut().enumerate() {
        match live.end(wanted, trees[which])? {
            Ok(sample) => samples.push(Sample { units: sums[which].0, ns: sums[which].1, ..sample }),
            Err(said) => return Ok(Err((which, said))),
        }
    }
    match <[Sample; 2]>::try_from(samples) {
        Ok(samples) => Ok(Ok(samples)),
        Err(_) => bail!("a program is missing"),
    }
}

/// A program that runs when it is told.
struct Live {
    running: Running,
    child: Child,
    /// Units up to which it may run.
    until: u64,
}

/// The file with the unit up to which a program may run, and the one at which the clock starts.
fn allow(folder: &Path, until: u64, mark: u64) -> Result<PathBuf> {
    let (new, file) = (folder.join("turns.new"), folder.join("turns"));
    fs::write(&new, format!("{until} {mark}"))?;
    // A program that reads meanwhile must not see half of it.
    fs::rename(&new, &file)?;
    Ok(file)
}

impl Live {
    fn start(wanted: &Wanted, tree: &Tree, warm: u64) -> Result<Self> {
        let file = |folder: &Path| Ok(("SYNC_REPORT_TURNS", allow(folder, warm, warm / 2)?.into()));
        let (running, child) = wanted.start(tree, file)?;
        Ok(Self { running, child, until: warm })
    }

    /// Waits until the hook has written more than so many lines, then stops the program; whether it came so far.
    fn waited(&mut self, lines: usize, heard: &Heard) -> Result<bool> {
        while self.running.times().len() <= lines {
            if heard.any() {
                return Err(Failed::interrupted().into());
            }
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
            std::thread::sleep(LOOK);
        }
        hold(self.child.id());
        Ok(true)
    }

    /// Mean of a unit in the second half of the warm-up, in ns.
    fn warm_length(&self) -> i64 {
        let line = self.running.times().into_iter().next().unwrap_or_default();
        line.ns / line.units.max(1) as i64
    }

    /// One turn: units and ns; `None` where the program ended before.
    fn turn(&mut self, units: u64, heard: &Heard) -> Result<Option<(u64, i64)>> {
        let before = self.running.times().len();
        let mark = self.until + (units / UNTIMED).max(1);
        self.until = mark + units;
        allow(&self.running.path(""), self.until, mark)?;
        resume(self.child.id());
        let came = self.waited(before, heard)?;
        Ok(self.running.times().pop().filter(|_| came).map(|line| (line.units, line.ns)))
    }

    /// Ends the program: what it printed and loaded.
    fn end(&mut self, wanted: &Wanted, tree: &Tree) -> Result<Result<Sample, String>> {
        allow(&self.running.path(""), 0, 0)?;
        resume(self.child.id());
        let start = Instant::now();
        while self.child.try_wait()?.is_none() && start.elapsed() < END {
            std::thread::sleep(LOOK);
        }
        end_group(self.child.id());
        self.running.ended(self.child.wait()?, tree, wanted.request)
    }

    /// Why a program did not come so far.
    fn said(&mut self, wanted: &Wanted, tree: &Tree) -> Result<String> {
        let ended = self.running.ended(self.child.wait()?, tree, wanted.request)?;
        Ok(ended.err().unwrap_or_else(|| "it ended early".to_owned()))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        end_group(self.child.id());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_takes_some_seconds_or_few_units() {
        let plan = |ms: i64| {
            let Plan { warm, units, turns } = Plan::of(ms * 1_000_000, Duration::from_secs(180));
            (warm, units, turns)
        };
        assert_eq!(plan(2), (1_500, 500, 4));
        assert_eq!(plan(400), (7, 2, 4));
        assert_eq!(plan(3_000), (3, 2, 2));
        assert_eq!(plan(0), (5_000, 5_000, 4));
    }
}
