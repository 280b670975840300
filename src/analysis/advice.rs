//! Advice for a site: the catalogue's entry for its verdict, the strategy, and the change to simulate.

use super::Judged;
use crate::catalogue::{self, Case, Category, Pattern};
use crate::model::Snippet;
use crate::model::edit::EditKind;
use crate::profile::payload::PyFrame;
use crate::rules::{self, Role};
use crate::text;
use crate::verdict::library;
use crate::verdict::site::Site;
use crate::vocabulary::{
    Change, Class, Copy, Direction, Evidence, HostMemory, Kind, PatternId, Strategy, ThreadRole,
};
use crate::waits::api::Blocking;

#[derive(Clone, Copy, Debug)]
pub struct Advice {
    /// Source of the reasons and the code.
    pub entry: &'static Pattern,
    pub strategy: Strategy,
    pub title: &'static str,
    /// The strategy is the entry's: its code and alternatives apply.
    pub by_entry: bool,
    /// The wait is in a library's code that the catalogue does not know: nothing can be done at its line.
    pub outside: bool,
    /// The entry's own title, for maintainers of an installed library.
    pub maintainers: Option<&'static str>,
}

impl Judged {
    /// `None` without a pattern.
    pub fn advice(&self, site: &Site) -> Option<Advice> {
        let kind = site.verdict.kind;
        let entry = catalogue::entry(site.verdict.pattern?).in_case(|case| self.holds(site, case));
        let outside = kind != Kind::Allocator
            && site.library_frame().is_some()
            && site.inside.is_some_and(|inside| !inside.advised);
        // The verdict's entry says what the line does; the library's entry says what its user can set.
        let option = outside.then(|| option(site)).flatten();
        let option = option.map(|option| option.in_case(|case| self.holds(site, case)));
        let (entry, outside) = option.map_or((entry, outside), |option| (option, false));
        let other = self.way(site, entry, outside);
        let (strategy, title) = other.unwrap_or((entry.fix.strategy, entry.fix.title));
        let for_user = !entry.fix.installed.is_empty() && other.is_none() && is_installed(site);
        let edited = if for_user { None } else { edited_way(site, strategy) };
        let by_entry = other.is_none() && edited.is_none_or(|(way, _)| way == strategy);
        let (strategy, title) = edited.unwrap_or((strategy, title));
        Some(Advice {
            entry,
            strategy,
            title: if for_user { entry.fix.installed } else { title },
            by_entry,
            outside,
            maintainers: for_user.then_some(title),
        })
    }

    fn holds(&self, site: &Site, case: Case) -> bool {
        let (kind, copy) = (site.verdict.kind, site.bundle.copy);
        let pageable = || copy.is_some_and(|copy| copy.host_memory == HostMemory::Pageable);
        match case {
            Case::Is(wanted) => kind == wanted,
            Case::NumberIs(wanted) => kind == wanted && copy.is_some_and(Copy::reads_number),
            Case::TakenOver => self.is_taken_over(site),
            Case::Staged => pageable() && !self.is_taken_over(site),
            Case::Through(place, functions) => {
                let at = |frame: &PyFrame| catalogue::is_at(&frame.file, &frame.function, place, functions);
                site.bundle.frames.iter().any(at)
            }
            Case::Native(part) => site.bundle.chain.iter().any(|symbol| symbol.contains(part)),
            Case::LoopOver(part) => site.snippet.as_ref().is_some_and(|snippet| {
                // The snippet shows the user's line, which does not wait where a library's line does.
                let frame = site.bundle.user_frame().filter(|_| library::line(&site.bundle).is_none());
                frame.is_some_and(|frame| is_in_loop_over(snippet, frame.line, part))
            }),
        }
    }

    /// Strategy and title for a site of that entry; `None`: the entry's own.
    fn way(&self, site: &Site, entry: &Pattern, outside: bool) -> Option<(Strategy, &'static str)> {
        let kind = site.verdict.kind;
        let edited = || site.reading.as_ref().is_some_and(|reading| reading.outcome.edit().is_some());
        let pinned = site.bundle.copy.is_some_and(|copy| copy.host_memory == HostMemory::Pinned);
        let passed = || site.bundle.operand().is_some_and(|operand| operand.non_blocking == Some(true));
        let for_nothing = || self.waits_of(site).all(|wait| wait.found.is_nothing());
        let guard = |one: &Evidence| rules::row(one.rule).is_some_and(|rule| rule.role == Role::Guard);
        // Work issued next to other streams may rely on the wait, whatever it found.
        let streams = self.profile.ops.streams.iter().filter(|stream| stream.pid == site.bundle.pid).count();
        let orders = matches!(site.bundle.blocking, Blocking::Stream | Blocking::Event) && streams > 1;
        // Only a call that does nothing but wait can be deleted: a barrier or load works on an idle GPU too.
        let plain = entry.category == Category::ExplicitSync;
        Some(match kind {
            Kind::Idle | Kind::Redundant | Kind::Explicit if outside && for_nothing() => {
                (Strategy::Leave, "leave it, it found nothing to wait for")
            }
            // Threads of the profiler or NCCL.
            _ if site.bundle.role == ThreadRole::Library && site.bundle.frames.is_empty() => {
                (Strategy::Leave, "leave it: a library waits on a thread of its own")
            }
            // An entry that leaves it has better words.
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
            // There is no other stream that could wait.
            Kind::Explicit if plain && streams == 1 && entry.fix.change == Some(Change::GpuWait) => {
                (Strategy::Remove, catalogue::entry(PatternId::F01).fix.title)
            }
            // A read whose value is not seen to be used.
            Kind::Explicit if entry.reads.is_some() => {
                (Strategy::Remove, "leave it out, if nothing else reads the value")
            }
            Kind::Allocator if self.is_once(site) => (Strategy::Leave, "nothing to do: it happens once"),
            _ if entry.sets_up && self.is_once(site) => {
                (Strategy::Leave, "nothing to do: once, while the program starts or ends")
            }
            Kind::Upload if !pinned && entry.fix.strategy == Strategy::NonBlocking && passed() => {
                (Strategy::NonBlocking, "pin the tensor it copies: non_blocking=True is there")
            }
            Kind::Upload if pinned && !entry.fix.of_pinned.is_empty() => {
                (Strategy::NonBlocking, entry.fix.of_pinned)
            }
            _ => return None,
        })
    }

    /// The change that the advice makes to a site's waits, for the simulation. An undecided site is priced as
    /// avoidable; a needed wait cannot go.
    pub(super) fn advised(&self, site: &Site) -> Change {
        let (verdict, copy) = (&site.verdict, site.bundle.copy);
        let advice = self.advice(site);
        let strategy = advice.map(|advice| advice.strategy);
        let own = advice.and_then(|advice| advice.entry.fix.change);
        // Small reads stay on the GPU until somebody looks. Large or early copies are still needed.
        let kept = copy.is_some_and(reads_little) && strategy != Some(Strategy::NonBlocking);
        let later = if kept { Change::OnGpu } else { Change::Delay };
        match verdict.kind {
            // Needed as written; the entry's other form counts.
            Kind::DynamicShape | Kind::ControlFlow => own.unwrap_or_default(),
            _ if verdict.class == Class::True || strategy == Some(Strategy::Leave) => Change::Keep,
            // A kernel fills it, or the GPU has it: an index that is kept, a number that Python hands over.
            Kind::Upload if strategy == Some(Strategy::Fill) => Change::OnGpu,
            Kind::Upload if matches!(strategy, Some(Strategy::SyncFreeApi | Strategy::Remove)) => {
                Change::Drop
            }
            // Pinning would cost more.
            Kind::Upload if self.is_taken_over(site) => Change::NonBlocking,
            Kind::Upload => match copy.map(|c| c.host_memory) {
                // Copies that are pinned already gain nothing; each is priced as it is.
                Some(HostMemory::Pageable | HostMemory::Unknown) => Change::Pinned,
                _ => Change::NonBlocking,
            },
            Kind::Explicit => own.unwrap_or(Change::Delete),
            Kind::Redundant | Kind::Idle | Kind::Timing | Kind::Allocator => Change::Delete,
            Kind::DebugPrint | Kind::ErrorCheck | Kind::RoundTrip | Kind::HostKnown => Change::Drop,
            _ if strategy == Some(Strategy::Coalesce) => Change::Coalesce,
            Kind::Logging => match strategy {
                Some(Strategy::Remove | Strategy::SyncFreeApi | Strategy::Offload) => Change::Drop,
                _ => later,
            },
            Kind::Unattributed if copy.is_none() => Change::Delete,
            _ => later,
        }
    }

    fn is_taken_over(&self, site: &Site) -> bool {
        self.waits_of(site).all(|wait| wait.copy.is_some_and(Copy::is_taken_over))
    }
}

/// Reads up to this size (a number, one iteration's results) may stay on the GPU until the loop ends, as the
/// catalogue advises. Copied together then, each takes no longer (3 µs at 20 GB/s) than the op in its place.
const LITTLE: u64 = 64 << 10;

fn reads_little(copy: Copy) -> bool {
    copy.direction == Direction::DeviceToHost && copy.bytes <= LITTLE
}

/// The entry with an option for the library code around a wait.
fn option(site: &Site) -> Option<&'static Pattern> {
    let read = library::line(&site.bundle);
    let line = |depth| site.line_text().filter(|_| read == Some(depth)).map(str::to_owned);
    let (uploads, copies) = (site.bundle.uploads(), site.bundle.copy.is_some());
    catalogue::option(&library::places(&site.bundle), &line, |entry| match entry.kind {
        None => true,
        Some(Kind::Upload) => uploads,
        Some(Kind::Explicit | Kind::Timing) => !copies,
        Some(_) => copies && !uploads,
    })
}

/// Strategy and title of an edit proven for the site's line, where the entry's strategy differs. Advice,
/// price and shown line then agree.
fn edited_way(site: &Site, strategy: Strategy) -> Option<(Strategy, &'static str)> {
    let reading = site.reading.as_ref().filter(|reading| reading.rewritten.is_some())?;
    let kind = reading.outcome.edit()?.kind;
    match (kind, strategy) {
        (EditKind::NonBlocking | EditKind::OnDevice, Strategy::NonBlocking) => Some((strategy, kind.help())),
        (EditKind::ReadTogether, way) if ![Strategy::Coalesce, Strategy::Leave].contains(&way) => {
            Some((Strategy::Coalesce, kind.help()))
        }
        _ => None,
    }
}

/// Whether the library's line that waits is in an installed package, which its user does not edit.
fn is_installed(site: &Site) -> bool {
    let package = |frame: &PyFrame| text::package(&frame.file).is_some();
    site.library_frame().is_some_and(package)
}

/// Whether the line with that number is in a `for` loop whose head contains `part`.
fn is_in_loop_over(snippet: &Snippet, line: u32, part: &str) -> bool {
    let indent = |text: &str| text.len() - text.trim_start().len();
    let at = line.saturating_sub(snippet.first_line) as usize;
    let Some(own) = snippet.lines.get(at) else { return false };
    // The nearest line above with less indentation encloses the line; branches in between are passed.
    let mut outer = indent(own);
    snippet.lines[..at].iter().rev().filter(|text| !text.trim().is_empty()).any(|text| {
        let encloses = indent(text) < outer;
        outer = outer.min(indent(text));
        encloses && text.trim_start().starts_with("for ") && text.contains(part)
    })
}

/// Whether a bare synchronisation is called on the user's line. PyTorch's own are Python functions, which a
/// stack shows; others are named on the line.
fn is_by_name(site: &Site) -> bool {
    let named = |line: &str| ["sync", "wait", "block"].iter().any(|name| line.contains(name));
    let unseen = site.bundle.attribution.is_of_line() && site.inside.is_none();
    !unseen || site.line_text().is_none_or(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::PatternId::*;

    #[test]
    fn a_line_is_in_the_loops_that_enclose_it() {
        let lines = [
            "for expert in experts:",
            "    if any:",
            "",
            "        a()",
            "    for x in xs:",
            "        b()",
            "c()",
        ];
        let snippet = Snippet { first_line: 10, lines: lines.map(str::to_owned).to_vec() };
        for (line, inside) in [(10, false), (11, true), (13, true), (15, true), (16, false), (99, false)] {
            assert_eq!(is_in_loop_over(&snippet, line, "expert"), inside, "{line}");
        }
    }

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
            (A03, RoundTrip, A37),
            (A21, ControlFlow, A48),
            (A21, Logging, A21),
        ] {
            let holds = |case| matches!(case, Case::Is(wanted) | Case::NumberIs(wanted) if wanted == kind);
            assert_eq!(catalogue::entry(pattern).in_case(holds).id, fits, "{pattern} {kind}");
        }
    }
}
