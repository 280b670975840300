//! What a fix changes about a wait and its copy.

use crate::catalogue::{self, Strategy};
use crate::vocabulary::{Class, Copy, HostMemory, Kind, Verdict};

/// A change that can be simulated.
///
/// ```text
///                     [copy call][wait-------------]
///  Delete             [copy call]                       the synchronisation is gone
///  GpuWait            [copy call]                       likewise, but what this thread launches next waits on the GPU
///  NonBlocking        [floor]                           the copy is only enqueued; the host goes on, later ops wait
///  Pinned             [floor]                           likewise, and the copy runs at the speed of pinned memory
///  Drop                                                 copy and wait are gone
///  Delay              [floor]            … [wait]       one wait at the iteration's end for all of it
///  Coalesce           [floor]  [floor]  [floor][wait]   the last of several in a row waits for all
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fix {
    #[default]
    Keep,
    Delete,
    GpuWait,
    NonBlocking,
    Pinned,
    Drop,
    Delay,
    Coalesce,
}

impl Fix {
    /// Every change, by the word that the command line and JSON use.
    pub const ALL: [(&'static str, Self); 8] = [
        ("keep", Self::Keep),
        ("delete", Self::Delete),
        ("gpu-wait", Self::GpuWait),
        ("non-blocking", Self::NonBlocking),
        ("pinned", Self::Pinned),
        ("drop", Self::Drop),
        ("delay", Self::Delay),
        ("coalesce", Self::Coalesce),
    ];

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, f)| *f == self).map_or("keep", |(word, _)| word)
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(w, _)| *w == word).map(|(_, fix)| *fix)
    }

    /// Whether later ops of the thread stay behind what was awaited, on whichever stream: they use its result.
    pub fn keeps_order(self) -> bool {
        matches!(self, Self::GpuWait | Self::NonBlocking | Self::Pinned)
    }

    /// What to simulate for a site: what its verdict and the catalogue advise. An undecided site is priced as the
    /// avoidable wait it may be; a needed one cannot go.
    pub fn advised(verdict: &Verdict, copy: Option<Copy>) -> Self {
        let strategy = verdict.pattern.and_then(catalogue::by_id).map(|p| p.fix.strategy);
        match verdict.kind {
            _ if verdict.class == Class::True => Self::Keep,
            Kind::Upload => match copy.map(|c| c.host_memory) {
                Some(HostMemory::Pageable) => Self::Pinned,
                _ => Self::NonBlocking,
            },
            // The catalogue's advice there: let the GPU wait.
            Kind::Explicit if matches!(verdict.pattern, Some("F02" | "F03")) => Self::GpuWait,
            Kind::Explicit | Kind::Redundant | Kind::Idle | Kind::Timing | Kind::Allocator => Self::Delete,
            Kind::DebugPrint | Kind::ErrorCheck | Kind::RoundTrip => Self::Drop,
            Kind::Logging => match strategy {
                Some(Strategy::Remove | Strategy::SyncFreeApi | Strategy::Offload) => Self::Drop,
                Some(Strategy::Coalesce) => Self::Coalesce,
                _ => Self::Delay,
            },
            Kind::Unattributed if copy.is_none() => Self::Delete,
            _ => Self::Delay,
        }
    }
}
