//! A round: both programs alive, one stopped while the other is timed.
//!
//! ```text
//!  A  start, warm-up │·[ 1 s ]│         │·[ 1 s ]·[ 1 s ]│         │ …  end
//!  B  start, warm-up │        │·[ 1 s ]·[ 1 s ]│         │·[ 1 s ]·│ …  end      · untimed: queues of loaders, caches
//! ```
//! Neighbouring turns see the same machine, and both programs start at once, each first in every other round. What differs
//! from start to start, such as addresses, stays in the round: rounds are what the interval is of.

use super::order;
use super::run::{Running, Sample, Wanted};
use super::tree::Tree;
use crate::capture::{Failed, Family};
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

/// How often a program is looked at: the hook measures, and a look must not slow the program down.
const LOOK: Duration = Duration::from_millis(10);

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

/// A program that did not come to the end of its round.
pub struct Fell {
    /// 0: as it is, 1: edited.
    pub which: usize,
    /// Its last lines where it failed or hung; `None` where it ended well.
    pub said: Option<String>,
    /// The unit that it was to come to.
    pub until: u64,
}

/// Runs both programs in turn: a sample of each, or the one that did not come so far.
///
/// # Errors
/// A program cannot be started; a signal came.
pub fn round(
    wanted: &Wanted,
    trees: [&Tree; 2],
    plan: Plan,
    first: usize,
) -> Result<Result<[Sample; 2], Fell>> {
    let start = |which: usize| Live::start(wanted, trees[which], plan.warm);
    let [earlier, later] = order(first);
    let mut live = [start(earlier)?, start(later)?];
    if earlier == 1 {
        live.swap(0, 1);
    }
    if let Some(which) = warm_up(wanted, &mut live)? {
        return live[which].fell(wanted, trees, which).map(Err);
    }
    // A first run is slower than a warm one.
    let plan = Plan::of(live[0].warm_length(), wanted.request.time);
    let mut sums = [(0, 0); 2];
    for pair in 0..plan.turns {
        for which in order(first + pair) {
            let Some((units, ns)) = live[which].turn(plan.units, wanted)? else {
                return live[which].fell(wanted, trees, which).map(Err);
            };
            sums[which] = (sums[which].0 + units, sums[which].1 + ns);
        }
    }
    let mut ends = [None, None];
    for (which, live) in live.iter_mut().enumerate() {
        match live.end(wanted, trees[which])? {
            Ok(sample) => ends[which] = Some(Sample { units: sums[which].0, ns: sums[which].1, ..sample }),
            Err(said) => return Ok(Err(Fell { which, said: Some(said), until: live.until })),
        }
    }
    match ends {
        [Some(unedited), Some(edited)] => Ok(Ok([unedited, edited])),
        _ => bail!("a program is missing"),
    }
}

/// Waits until both have warmed up, stopping the first, whose loader would fill its queue; the one that did not come so far.
fn warm_up(wanted: &Wanted, live: &mut [Live; 2]) -> Result<Option<usize>> {
    let (start, mut here) = (Instant::now(), [false; 2]);
    while here != [true; 2] {
        for which in [0, 1] {
            if !here[which] {
                match live[which].came(0, start, wanted)? {
                    Some(true) => here[which] = true,
                    Some(false) => return Ok(Some(which)),
                    None => {}
                }
            }
        }
        std::thread::sleep(LOOK);
    }
    Ok(None)
}

/// A program that runs when it is told.
struct Live {
    running: Running,
    child: Child,
    family: Family,
    /// Units up to which it may run.
    until: u64,
    /// It took too long, and was ended.
    hung: bool,
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
        let family = running.family(&child);
        Ok(Self { running, child, family, until: warm, hung: false })
    }

    /// Whether the hook has written more than so many lines: then the program is stopped. `None` where neither that nor its end
    /// has come; a program that takes too long is ended.
    fn came(&mut self, lines: usize, since: Instant, wanted: &Wanted) -> Result<Option<bool>> {
        if wanted.heard.any() {
            return Err(Failed::interrupted().into());
        }
        if self.running.times().len() > lines {
            self.family.hold();
            return Ok(Some(true));
        }
        self.hung = wanted.patience.is_some_and(|patience| since.elapsed() > patience);
        if self.hung {
            self.family.kill();
        }
        Ok((self.child.try_wait()?.is_some() || self.hung).then_some(false))
    }

    /// Mean of a unit in the second half of the warm-up, in ns.
    fn warm_length(&self) -> i64 {
        let line = self.running.times().into_iter().next().unwrap_or_default();
        line.ns / line.units.max(1) as i64
    }

    /// One turn: units and ns; `None` where the program ended before.
    fn turn(&mut self, units: u64, wanted: &Wanted) -> Result<Option<(u64, i64)>> {
        let lines = self.running.times();
        let queue = lines.last().map_or(0, |line| line.queue);
        let mark = self.until + (units / UNTIMED).max(1).max(queue);
        // Workers of a loader deliver in bursts, of a queue at most.
        self.until = mark + units.max(queue);
        allow(&self.running.path(""), self.until, mark)?;
        self.family.resume();
        let start = Instant::now();
        loop {
            match self.came(lines.len(), start, wanted)? {
                Some(true) => return Ok(self.running.times().pop().map(|line| (line.units, line.ns))),
                Some(false) => return Ok(None),
                None => std::thread::sleep(LOOK),
            }
        }
    }

    /// Ends the program: what it printed and loaded.
    fn end(&mut self, wanted: &Wanted, tree: &Tree) -> Result<Result<Sample, String>> {
        allow(&self.running.path(""), 0, 0)?;
        self.family.resume();
        let start = Instant::now();
        while self.child.try_wait()?.is_none() && start.elapsed() < END {
            std::thread::sleep(LOOK);
        }
        self.family.end();
        self.running.ended(self.child.wait()?, tree, wanted.request)
    }

    /// Why this program did not come so far.
    fn fell(&mut self, wanted: &Wanted, trees: [&Tree; 2], which: usize) -> Result<Fell> {
        let ended = self.running.ended(self.child.wait()?, trees[which], wanted.request)?;
        let until = self.until;
        let hung = self.hung.then(|| format!("it did not come to step {until}"));
        Ok(Fell { which, said: hung.or(ended.err()), until })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.family.kill();
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
