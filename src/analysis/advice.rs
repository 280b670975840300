//! What to do about a site: the catalogue's entry that fits its verdict, which way to go, and the change that is simulated for it.

use super::CaptureAnalysis;
use crate::catalogue::{self, Case, Category, Pattern};
use crate::rules::{self, Role};
use crate::verdict::site::Site;
use crate::vocabulary::{
    Attribution, Change, Class, Copy, Direction, Evidence, HostMemory, Kind, Strategy, ThreadRole,
};
use crate::waits::api::Blocking;

/// What to do about a site.
#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// The entry that its reasons and code are of.
    pub entry: &'static Pattern,
    /// The way to go.
    pub strategy: Strategy,
    /// That in few words.
    pub title: &'static str,
    /// It is the way of the entry, to which its code and its other ways lead too.
    pub by_entry: bool,
    /// The wait is in a library's code that the catalogue does not know: nothing can be done at its line.
    pub outside: bool,
}

impl CaptureAnalysis {
    /// The catalogue's advice for the site's pattern. A wait that waits for nothing goes, whatever call it is.
    pub fn advice(&self, site: &Site) -> Option<Advice> {
        let kind = site.verdict.kind;
        let entry = catalogue::entry(site.verdict.pattern?).in_case(|case| self.holds(site, case));
        let outside = kind != Kind::Allocator
            && site.library_frame().is_some()
            && site.inside.is_some_and(|inside| !inside.advised);
        let other = self.way(site, entry, outside);
        let (strategy, title) = other.unwrap_or((entry.fix.strategy, entry.fix.title));
        Some(Advice { entry, strategy, title, by_entry: other.is_none(), outside })
    }

    fn holds(&self, site: &Site, case: Case) -> bool {
        let (kind, copy) = (site.verdict.kind, site.bundle.copy);
        let pageable = || copy.is_some_and(|copy| copy.host_memory == HostMemory::Pageable);
        match case {
            Case::Is(wanted) => kind == wanted,
            Case::NumberIs(wanted) => kind == wanted && copy.is_some_and(Copy::reads_number),
            Case::TakenOver => self.is_taken_over(site),
            Case::Staged => pageable() && !self.is_taken_over(site),
        }
    }

    /// Which way to go about a site of that entry, and that in few words; `None` is the entry's own.
    fn way(&self, site: &Site, entry: &Pattern, outside: bool) -> Option<(Strategy, &'static str)> {
        let kind = site.verdict.kind;
        let edited = || site.reading.as_ref().is_some_and(|reading| reading.outcome.edit().is_some());
        let pinned = site.bundle.copy.is_some_and(|copy| copy.host_memory == HostMemory::Pinned);
        let for_nothing = || self.waits_of(site).all(|wait| wait.found.is_nothing());
        let guard = |one: &Evidence| rules::row(one.rule).is_some_and(|rule| rule.role == Role::Guard);
        // Work that other streams are given next may rely on it, whatever it found.
        let orders = matches!(site.bundle.blocking, Blocking::Stream | Blocking::Event)
            && self.profile.ops.streams.iter().filter(|stream| stream.pid == site.bundle.pid).count() > 1;
        // Only a call that does nothing but wait can be deleted: a barrier or a load that found the GPU idle does its work.
        let plain = entry.category == Category::ExplicitSync;
        Some(match kind {
            Kind::Idle | Kind::Redundant | Kind::Explicit if outside && for_nothing() => {
                (Strategy::Leave, "leave it, it found nothing to wait for")
            }
            // The profiler's, NCCL's.
            _ if site.bundle.role == ThreadRole::Library && site.bundle.frames.is_empty() => {
                (Strategy::Leave, "leave it: a library waits on a thread of its own")
            }
            // Which says the same has better words.
            Kind::Upload
                if self.is_before_loop(site) && !edited() && entry.fix.strategy != Strategy::Leave =>
            {
                (Strategy::Leave, "nothing to do: once at start-up")
            }
            Kind::Explicit if entry.category == Category::Distributed && self.is_once(site) => {
                (Strategy::Leave, "nothing to do: it happens once")
            }
            _ if outside => (Strategy::Delay, "call it less often, or see its options"),
            Kind::Redundant | Kind::Idle | Kind::Explicit if plain && !is_by_name(site) => {
                (Strategy::Leave, "leave it: no call on this line is there to wait")
            }
            Kind::Redundant | Kind::Idle if !plain => {
                (Strategy::Leave, "leave it: it does more than wait, and found nothing to wait for")
            }
            Kind::Barrier if site.bundle.synchronises() && for_nothing() => {
                (Strategy::Leave, "needed here: it never had to wait")
            }
            Kind::Barrier if site.verdict.evidence.iter().any(guard) => {
                (entry.fix.strategy, "two buffers in turn, each with an event: then it seldom waits")
            }
            Kind::Timing if plain && entry.fix.strategy == Strategy::Remove => {
                (Strategy::Remove, "time with CUDA events, read after the loop")
            }
            Kind::Redundant => (Strategy::Remove, "delete it: the wait before has drained the GPU"),
            Kind::Idle if !orders => (Strategy::Remove, "delete it: it found nothing to wait for"),
            Kind::Explicit if plain && !entry.intended && !orders && for_nothing() => {
                (Strategy::Remove, "delete it: here it found nothing to wait for")
            }
            // A read whose value nothing is seen to take.
            Kind::Explicit if entry.reads.is_some() => {
                (Strategy::Remove, "leave it out, if nothing else reads the value")
            }
            Kind::Allocator if self.is_once(site) => (Strategy::Leave, "nothing to do: it happens once"),
            _ if entry.sets_up && self.is_once(site) => {
                (Strategy::Leave, "nothing to do: once, while the program starts or ends")
            }
            Kind::Upload if pinned && !entry.fix.of_pinned.is_empty() => {
                (Strategy::NonBlocking, entry.fix.of_pinned)
            }
            _ => return None,
        })
    }

    /// What the advice changes about the waits of a site, which is what is simulated. An undecided site is priced as the avoidable
    /// wait it may be; a needed one cannot go.
    pub(super) fn advised(&self, site: &Site) -> Change {
        let (verdict, copy) = (&site.verdict, site.bundle.copy);
        let advice = self.advice(site);
        let strategy = advice.map(|advice| advice.strategy);
        let own = advice.and_then(|advice| advice.entry.fix.change);
        // What is small is added to others on the GPU, or kept, until somebody looks at it; a large copy is still needed, and
        // one that is to be made early.
        let kept = copy.is_some_and(reads_little) && strategy != Some(Strategy::NonBlocking);
        let later = if kept { Change::OnGpu } else { Change::Delay };
        match verdict.kind {
            // Needed as written; what its entry says of another form counts.
            Kind::DynamicShape | Kind::ControlFlow => own.unwrap_or_default(),
            _ if verdict.class == Class::True || strategy == Some(Strategy::Leave) => Change::Keep,
            // A kernel fills it, or it is there already: an index that is kept, a number that Python hands over.
            Kind::Upload if strategy == Some(Strategy::Fill) => Change::OnGpu,
            Kind::Upload if strategy == Some(Strategy::SyncFreeApi) => Change::Drop,
            // Pinning costs more than that.
            Kind::Upload if self.is_taken_over(site) => Change::NonBlocking,
            Kind::Upload => match copy.map(|c| c.host_memory) {
                // Some of a site's copies may be pinned already: those gain nothing by it, and each is priced as it is.
                Some(HostMemory::Pageable | HostMemory::Unknown) => Change::Pinned,
                _ => Change::NonBlocking,
            },
            Kind::Explicit => own.unwrap_or(Change::Delete),
            Kind::Redundant | Kind::Idle | Kind::Timing | Kind::Allocator => Change::Delete,
            Kind::DebugPrint | Kind::ErrorCheck | Kind::RoundTrip | Kind::HostKnown => Change::Drop,
            Kind::Logging => match strategy {
                Some(Strategy::Remove | Strategy::SyncFreeApi | Strategy::Offload) => Change::Drop,
                Some(Strategy::Coalesce) => Change::Coalesce,
                _ => later,
            },
            Kind::Unattributed if copy.is_none() => Change::Delete,
            _ => later,
        }
    }

    /// Whether the driver takes each copy of a site over at once.
    fn is_taken_over(&self, site: &Site) -> bool {
        self.waits_of(site).all(|wait| wait.copy.is_some_and(Copy::is_taken_over))
    }
}

/// Reads up to this size, a number or one iteration's results, may stay on the GPU until the loop ends, as the catalogue
/// advises: copied then, all at once, each takes no longer (3 µs at 20 GB/s) than the op that stands for it.
const LITTLE: u64 = 64 << 10;

fn reads_little(copy: Copy) -> bool {
    copy.direction == Direction::DeviceToHost && copy.bytes <= LITTLE
}

/// Whether a bare synchronisation is a call of the user's line. PyTorch's own are Python functions, so that a stack shows
/// them; of others the line has the name.
fn is_by_name(site: &Site) -> bool {
    let named = |line: &str| ["sync", "wait", "block"].iter().any(|name| line.contains(name));
    let unseen = site.bundle.attribution == Attribution::PythonBacktrace && site.inside.is_none();
    !unseen || site.line_text().is_none_or(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::PatternId::*;

    /// Each kind of need has its own way out, which a read's own entry does not know.
    #[test]
    fn a_read_gets_the_advice_of_what_needs_it() {
        use Kind::*;
        for (pattern, kind, fits) in [
            (A01, Logging, A01),
            (D01, Logging, A01),
            (D08, Logging, A01),
            (A01, ControlFlow, A42),
            (A38, ControlFlow, A38),
            (D02, ControlFlow, A42),
            (A01, CpuCompute, A43),
            (D01, CpuCompute, D01),
            (A02, DynamicShape, A07),
            (A01, RoundTrip, A37),
            (A14, ControlFlow, A14),
            (A14, RoundTrip, A14),
            (F02, Timing, F01),
        ] {
            let holds = |case| matches!(case, Case::Is(wanted) | Case::NumberIs(wanted) if wanted == kind);
            assert_eq!(catalogue::entry(pattern).in_case(holds).id, fits, "{pattern} {kind}");
        }
    }
}
