//! Host work of the loop that may go with some waits, past ordinary and simulated work.
//!
//! ```text
//!  upload   [launch]··NumPy, a list~~~~~~[copy, wait]     what is made there a fix may make elsewhere, or once;
//!                                                         memory that is pinned already was filled by a loader
//!  reads    [copy, wait][copy, wait]··a metric~~~[launch]      without their values it is not computed either
//! ```
//! Before an upload a share of the work counts, unless a loop yields the data. Behind a row of reads all of
//! it counts up to the thread's next call, if `--fix` names a read that nothing shows to be avoidable. Single
//! numbers are excluded: a program branches or counts with them. A NumPy accuracy took a fifth of
//! human-pose-estimation's iteration, but a game's next step is as long and stays: nothing is reported
//! unasked. Only the upper end of ranges holds this work. Outside a loop it may be anything. Cost: a few
//! looks a wait.

use super::most::Capture;
use super::prices::PricedSite;
use super::simulate::step::StepIx;
use super::statistics::share;
use crate::vocabulary::{Change, Direction, NUMBER_BYTES, SiteIx};
use crate::waits::WaitId;
use typed_index_collections::TiSlice;

/// Ignored host time: Python between two calls takes 0.05 to 0.3 ms (TD3, Informer, Rainbow). Joining 54 MB,
/// or NumPy on boxes and sentences, takes 2 to 6 ms (simclr, retinanet, ncrfpp).
const ORDINARY_NS: i64 = 1_000_000;
/// Share of the excess before uploads that a fix may spare: the three's savings lacked 0.35 to 0.6 of it.
const BUILT: f64 = 0.4;
/// Its largest share of the iteration: loaders cannot be told apart.
const MOST_BUILT: f64 = 0.1;

/// In ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostWork {
    /// Before uploads.
    pub before: i64,
    /// Behind reads.
    pub behind: i64,
}

impl HostWork {
    pub fn of(all: &Capture, subjects: &TiSlice<SiteIx, PricedSite>, site: SiteIx) -> Self {
        let (subject, program) = (&subjects[site], all.program);
        let mut work = Self::default();
        if !subject.works || !matches!(subject.fix, Change::Pinned | Change::OnGpu | Change::Drop) {
            return work;
        }
        let laps = program.laps.map(|laps| laps.first..laps.last);
        let looked_at = |at: &StepIx| laps.as_ref().is_some_and(|laps| laps.contains(at));
        let past = |at: Option<StepIx>, made: i64| {
            let step = program.steps.get(at.filter(looked_at)?)?;
            Some((step.gap - i64::from(step.overhead) - ORDINARY_NS - made).max(0))
        };
        for &w in &subject.waits {
            let wait = &all.waits[w];
            let more = match wait.copy.map(|copy| (copy.direction, copy.bytes)) {
                Some((Direction::HostToDevice, _)) => {
                    let at = program.step_of(wait.copy_call.unwrap_or(wait.call));
                    let made = at.map_or(0, |at| program.unmade(at, subject.fix).max(0));
                    Self { before: past(at, made).unwrap_or(0), behind: 0 }
                }
                Some((Direction::DeviceToHost, bytes)) if bytes > NUMBER_BYTES => {
                    let Some(last) = last_of_row(all, subjects, w) else { continue };
                    let own = &all.profile.calls.by_thread[wait.thread];
                    let next = own.get(own.partition_point(|&call| call <= all.waits[last].call));
                    let at = next.and_then(|&call| program.step_of(call));
                    Self { before: 0, behind: past(at, 0).unwrap_or(0) }
                }
                _ => continue,
            };
            work = work.plus(more);
        }
        Self { before: program.sample.whole(work.before), behind: program.sample.whole(work.behind) }
    }

    pub fn plus(self, other: Self) -> Self {
        let before = self.before.saturating_add(other.before);
        Self { before, behind: self.behind.saturating_add(other.behind) }
    }

    pub fn each(self, count: i64) -> Self {
        Self { before: self.before / count, behind: self.behind / count }
    }

    /// The part that a fix may spare, in `length` ns of run or iteration.
    pub fn spared(self, length: i64) -> i64 {
        share(self.before, BUILT).min(share(length, MOST_BUILT)).saturating_add(self.behind)
    }
}

/// The last of a row of reads that begins at `first` and whose values the CPU uses together. `None` where a
/// later read of the row has its own work counted.
///
/// ```text
///  accuracy(output.cpu(), target.cpu())     [copy, wait][copy, wait]··NumPy~~~~~~[launch]
/// ```
fn last_of_row(all: &Capture, subjects: &TiSlice<SiteIx, PricedSite>, first: WaitId) -> Option<WaitId> {
    let reads = |w: WaitId| all.waits[w].copy.is_some_and(|copy| copy.direction == Direction::DeviceToHost);
    let following = |last: WaitId| {
        let own = &all.waits[last];
        let mut later = (usize::from(last) + 1..all.waits.len()).map(WaitId::from);
        let next = later.find(|&w| all.waits[w].thread == own.thread)?;
        let pause = all.waits[next].start.saturating_sub(own.end);
        (pause < ORDINARY_NS && reads(next)).then_some(next)
    };
    let mut last = first;
    while let Some(next) = following(last) {
        if subjects.iter().any(|s| s.works && s.waits.binary_search(&next).is_ok()) {
            return None;
        }
        last = next;
    }
    Some(last)
}
