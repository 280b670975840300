//! Which change is simulated for a site.

use crate::catalogue;
use crate::vocabulary::{Change, Class, Copy, Direction, HostMemory, Kind, PatternId::*, Strategy, Verdict};

/// What to simulate for a site: what its verdict and the catalogue advise. An undecided site is priced as the
/// avoidable wait it may be; a needed one cannot go. `taken_over`: of each of its copies ([`Copy::is_taken_over`]).
pub fn advised(verdict: &Verdict, copy: Option<Copy>, taken_over: bool) -> Change {
    let strategy = verdict.pattern.map(|pattern| catalogue::entry(pattern).fix.strategy);
    // What is small is added to others on the GPU, or kept, until somebody looks at it; a large copy is still needed.
    let later = if copy.is_some_and(reads_little) { Change::OnGpu } else { Change::Delay };
    match verdict.kind {
        _ if verdict.class == Class::True => Change::Keep,
        // A kernel fills it, or it is there already: an index that is kept, a number that Python hands over.
        Kind::Upload if strategy == Some(Strategy::Fill) => Change::OnGpu,
        Kind::Upload if strategy == Some(Strategy::SyncFreeApi) => Change::Drop,
        // Pinning costs more than that.
        Kind::Upload if taken_over => Change::NonBlocking,
        Kind::Upload => match copy.map(|c| c.host_memory) {
            // Some of a site's copies may be pinned already: those gain nothing by it, and each is priced as it is.
            Some(HostMemory::Pageable | HostMemory::Unknown) => Change::Pinned,
            _ => Change::NonBlocking,
        },
        // The catalogue's advice there: let the GPU wait.
        Kind::Explicit if matches!(verdict.pattern, Some(F02 | F03)) => Change::GpuWait,
        Kind::Explicit | Kind::Redundant | Kind::Idle | Kind::Timing | Kind::Allocator => Change::Delete,
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

/// Reads up to this size, a number or one iteration's results, may stay on the GPU until the loop ends, as the catalogue
/// advises: copied then, all at once, each takes no longer (3 µs at 20 GB/s) than the op that stands for it.
const LITTLE: u64 = 64 << 10;

fn reads_little(copy: Copy) -> bool {
    copy.direction == Direction::DeviceToHost && copy.bytes <= LITTLE
}
