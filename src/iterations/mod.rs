//! Iterations of the loop: by NVTX ranges, else by repeated launches, copies and waits around optimizer
//! steps.

mod found;
pub mod marked;
mod sequence;
mod starts;
mod steps;

use crate::error::InputError;
use crate::profile::Profile;
use crate::profile::ids::{CallId, GlobalPid, GlobalTid};
use crate::profile::seek::seek;
use marked::Fit;

/// One iteration per this many may be start-up: one of ten, two of twenty.
pub(crate) const WARM_UP: usize = 10;
/// Iterations left at least.
const LEFT: usize = 3;
/// With fewer iterations, waits only in the first may still recur.
const MIN_ITERATIONS: usize = 8;
/// A first iteration is start-up above this many times the length of any later one. In captures from the
/// start of the process it took 5 to 400 times as long, after a warm-up at most 3.5 (133 captures with a
/// loop).
const START_UP: i64 = 4;

pub struct Iterations {
    /// Name that the ranges share, `#` for the number.
    pub name: String,
    pub tid: GlobalTid,
    /// Start and end of each, disjoint, ascending, in ns.
    pub spans: Vec<(i64, i64)>,
    /// `None` for NVTX ranges. Else the share of launches, copies and waits, from the first iteration to the
    /// last, that every iteration has.
    pub confidence: Option<f64>,
    /// Loops of other phases of the program; empty for ranges.
    pub others: Vec<Other>,
    /// Iterations of an inner loop that repeats as surely; `None` for ranges.
    pub inner: Option<usize>,
    /// Number of iterations left out at the front as start-up.
    pub start_up: usize,
    /// The same loop in other ranks of the job, with as many iterations each once start-up is left out.
    ranks: Vec<Iterations>,
}

/// A loop of another phase: a validation, the second stage of a generation.
pub struct Other {
    pub count: usize,
    /// Start of the first, in ns.
    pub start: i64,
}

/// Number of start-up times: of the first `may`, up to the last above `START_UP` times all later ones.
pub(crate) fn start_up(times: &[i64], may: usize) -> usize {
    let (first, later) = times.split_at(may);
    let longest = later.iter().copied().max().unwrap_or(0);
    first.iter().rposition(|&time| time > longest.saturating_mul(START_UP)).map_or(0, |last| last + 1)
}

impl Iterations {
    pub fn marked(name: String, tid: GlobalTid, spans: Vec<(i64, i64)>) -> Self {
        Self {
            name,
            tid,
            spans,
            confidence: None,
            others: Vec::new(),
            inner: None,
            start_up: 0,
            ranks: Vec::new(),
        }
    }

    /// The first of these loops, with the same loop of other processes as ranks. A process whose iteration
    /// count differs by more than start-up is no rank of the job.
    fn of_job(found: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut found = found.into_iter();
        let mut main = found.next()?;
        let (count, apart) = (main.spans.len(), main.may_be_start_up());
        main.ranks = found.filter(|rank| rank.spans.len().abs_diff(count) <= apart).collect();
        Some(main)
    }

    pub fn of(&self, pid: GlobalPid) -> Option<&Self> {
        self.of_processes().find(|own| own.tid.process() == pid)
    }

    /// The iterations of every rank, this process's first.
    pub fn of_processes(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.ranks)
    }

    /// Leaves out first iterations that take several times as long as any later one: these load libraries,
    /// tune kernels and allocate memory. Ranks end together: each keeps as many iterations.
    ///
    /// ```text
    /// rank 0   |-------------- start-up --------------|---1---|---2---|---3---| ...
    /// rank 1   |-- start-up --|------- start-up ------|---1---|---2---|---3---| ...
    /// ```
    fn settled(mut self) -> Self {
        let left = self.of_processes().map(|own| own.spans.len() - own.slow_at_first()).min().unwrap_or(0);
        self.change_each(|own| {
            own.start_up = own.spans.len() - left;
            own.spans.drain(..own.start_up);
        });
        self
    }

    fn may_be_start_up(&self) -> usize {
        let all = self.spans.len();
        all.div_ceil(WARM_UP).min(all.saturating_sub(LEFT))
    }

    fn change_each(&mut self, mut change: impl FnMut(&mut Self)) {
        change(self);
        self.ranks.iter_mut().for_each(change);
    }

    fn slow_at_first(&self) -> usize {
        let lengths: Vec<i64> = self.spans.iter().map(|s| s.1 - s.0).collect();
        start_up(&lengths, self.may_be_start_up())
    }

    /// Keeps the iterations for which `lies` holds; `None` where none is left.
    pub fn within(mut self, lies: impl Fn((i64, i64)) -> bool) -> Option<Self> {
        self.change_each(|own| {
            let first = own.spans.first().copied();
            own.spans.retain(|&span| lies(span));
            if own.spans.first().copied() != first {
                own.start_up = 0;
            }
        });
        Some(self).filter(|found| !found.spans.is_empty())
    }

    pub fn at(&self, time: i64) -> Option<usize> {
        self.near(time, &mut (self.spans.len() / 2))
    }

    /// As [`Self::at`]; the search starts where the last one ended.
    pub fn near(&self, time: i64, last: &mut usize) -> Option<usize> {
        let next = seek(self.spans.len(), last, |i| self.spans[i].0 <= time);
        next.checked_sub(1).filter(|&i| time <= self.spans[i].1)
    }

    pub fn counts(&self, times: impl Iterator<Item = i64>) -> IterationCounts {
        let mut counts = vec![0; self.spans.len()];
        times.filter_map(|time| self.at(time)).for_each(|n| counts[n] += 1);
        let some = || counts.iter().copied().filter(|&n| n > 0);
        let first = some().next();
        IterationCounts {
            with: some().count(),
            all: counts.len(),
            each: first.filter(|n| some().all(|m| m == *n)),
        }
    }

    /// Whether events last seen at `time` are start-up: before the loop, or only in its first iterations.
    /// `false` for few iterations, and after the start of an earlier loop (a phase of its own).
    pub fn only_at_start(&self, time: i64) -> bool {
        let all = self.spans.len();
        let later = self.spans.get(all.div_ceil(WARM_UP));
        all >= MIN_ITERATIONS
            && later.is_some_and(|later| time < later.0)
            && self.others.iter().all(|other| time < other.start || other.start > self.spans[0].0)
    }

    /// From the start of the first to the end of the last; `None` where the program has other loops, which are its work too.
    pub fn whole(&self) -> Option<(i64, i64)> {
        let (first, last) = self.spans.first().zip(self.spans.last())?;
        self.others.is_empty().then_some((first.0, last.1))
    }

    pub fn median_ns(&self) -> i64 {
        let mut lengths: Vec<i64> = self.spans.iter().map(|s| s.1 - s.0).collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or(0)
    }

    /// Mean time from start to start, in ns; 0 for a single iteration. Above the median if some iterations
    /// are longer, as the first, or other work lies between.
    pub fn start_to_start_ns(&self) -> i64 {
        let ends = self.spans.first().zip(self.spans.last());
        let between = ends.map_or(0, |(first, last)| last.0.saturating_sub(first.0));
        between / (self.spans.len() as i64 - 1).max(1)
    }

    pub fn source(&self) -> String {
        if self.confidence.is_none() {
            return format!("NVTX ranges `{}`", self.name);
        }
        let inner = self.inner.map_or_else(String::new, |turns| format!(" around an inner loop of {turns}"));
        let counts: Vec<String> = self.others.iter().map(|o| o.count.to_string()).collect();
        let beside = match counts.len() {
            0 => "",
            1 => " beside another loop of ",
            _ => " beside loops of ",
        };
        format!("repeating launches{inner}{beside}{}", counts.join(" and "))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IterationCounts {
    /// Iterations with at least one event.
    pub with: usize,
    pub all: usize,
    /// Events per such iteration, if all have the same number.
    pub each: Option<usize>,
}

/// The loop: ranges named `marker`, else ranges with names of iterations, else a repeating sequence that is
/// longer than a layer or two. Warm-up ranges say nothing about the run: they count only if nothing else
/// does. `waiting`: calls that waited.
///
/// # Errors
/// [`InputError::NoRange`] where no range is named `marker`; others where the export cannot be read.
pub fn detect(
    profile: &mut Profile,
    waiting: &[CallId],
    marker: Option<&str>,
) -> Result<Option<Iterations>, InputError> {
    let found = match marker {
        Some(marker) => Some(marked::named(profile, marker)?),
        None => match marked::detect(profile, waiting)? {
            Some((Fit::BeforeTheLoop, marked)) => {
                sequence::find(profile, waiting, marked.whole())?.or(Some(marked))
            }
            Some((Fit::Layers, layers)) => {
                let as_layers = |found: &Iterations| {
                    found.median_ns() <= 2 * layers.median_ns() && found.spans.len() <= 2 * layers.spans.len()
                };
                sequence::find(profile, waiting, None)?.filter(|found| !as_layers(found))
            }
            Some((_, marked)) => Some(marked),
            None => sequence::find(profile, waiting, None)?,
        },
    };
    Ok(found.map(Iterations::settled))
}

#[cfg(test)]
mod tests {
    use super::{GlobalTid, Iterations};

    #[test]
    fn an_iteration_holds_what_lies_inside_of_it() {
        let spans = vec![(0, 100), (110, 210), (300, 400), (450, 460)];
        let iterations = Iterations::marked(String::new(), GlobalTid::NONE, spans);
        assert_eq!([0, 105, 460, 470].map(|time| iterations.at(time)), [Some(0), None, Some(3), None]);
    }
}
