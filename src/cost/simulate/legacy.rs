//! The legacy default stream.
//!
//! Its work waits for all that was issued before to the *blocking* streams of its context (those created
//! without `cudaStreamNonBlocking`), and their later work waits for it:
//!
//! ```text
//!  blocking 13  [a-------]               [c--]       c was launched long ago, and waits for b
//!  default   7             [b-----------]            b waits for a
//!  free     20       [d--------------------]         neither
//! ```
//! nsys tells the kind of a stream (`TARGET_INFO_CUDA_STREAM.flag`); PyTorch's own streams are free. Where an
//! export does not tell, timing does, as between any streams ([`super::follow`]). Cost: one comparison an op.

use super::step::{ContextIx, Op, Part};
use crate::profile::Profile;
use crate::profile::ids::{ExportId, GlobalPid, StreamIx};
use crate::profile::ops::StreamKey;
use crate::profile::target::Ordering;
use crate::waits::awaited::CLOCK_SLOP_NS;
use crate::waits::held::FOLLOWS_NS;
use rustc_hash::FxHashMap;
use typed_index_collections::{TiSlice, TiVec};

/// An op that ran before the work it should have waited for: the rule did not hold.
pub const UNBOUND: i32 = i32::MIN;

/// Last ends of work on a context's default stream and on its blocking streams.
#[derive(Clone, Copy, Debug)]
pub struct Barrier {
    default: i64,
    blocking: i64,
}

impl Barrier {
    pub const START: Self = Self { default: i64::MIN / 2, blocking: i64::MIN / 2 };

    /// End of the work that an op waits for.
    fn awaited(self, part: Part) -> i64 {
        match part {
            Part::Default(_) => self.blocking,
            _ => self.default,
        }
    }
}

/// The earliest start that the rule allows an op of this part.
pub fn earliest(barriers: &TiSlice<ContextIx, Barrier>, part: Part, after: i32) -> i64 {
    match part {
        Part::Default(context) | Part::Blocking(context) if after != UNBOUND => {
            barriers[context].awaited(part) + i64::from(after)
        }
        _ => i64::MIN,
    }
}

pub fn note(barriers: &mut TiSlice<ContextIx, Barrier>, part: Part, end: i64) {
    let last = match part {
        Part::Free => return,
        Part::Default(context) => &mut barriers[context].default,
        Part::Blocking(context) => &mut barriers[context].blocking,
    };
    *last = (*last).max(end);
}

/// The part of each stream, and the number of contexts with both sides: a single side waits for nothing.
pub fn parts(profile: &Profile) -> (TiVec<StreamIx, Part>, usize) {
    let ordering = |s: &StreamKey| {
        profile.target.ordering.get(&(s.pid.pid(), s.context.number(), s.stream.number())).copied()
    };
    let mut sides: FxHashMap<(GlobalPid, ExportId), (bool, bool)> = FxHashMap::default();
    for key in &profile.ops.streams {
        let side = sides.entry((key.pid, key.context)).or_default();
        match ordering(key) {
            Some(Ordering::Default) => side.0 = true,
            Some(Ordering::Blocking) => side.1 = true,
            None => {}
        }
    }
    sides.retain(|_, side| side.0 && side.1);
    let mut contexts: Vec<(GlobalPid, ExportId)> = sides.into_keys().collect();
    contexts.sort_unstable();
    let parts = profile.ops.streams.iter().map(|key| {
        let context = contexts.binary_search(&(key.pid, key.context)).ok().map(ContextIx::from);
        match (context, ordering(key)) {
            (Some(context), Some(Ordering::Default)) => Part::Default(context),
            (Some(context), Some(Ordering::Blocking)) => Part::Blocking(context),
            _ => Part::Free,
        }
    });
    (parts.collect(), contexts.len())
}

/// Sets how long after its barrier an op may start: the recorded distance if nothing else explains its start
/// (`late`), else the usual one. Returns whether the barrier explains it.
pub fn bind(
    op: &mut Op,
    start: i64,
    usual: i64,
    part: Part,
    barriers: &TiSlice<ContextIx, Barrier>,
    late: bool,
) -> bool {
    let (Part::Default(context) | Part::Blocking(context)) = part else { return false };
    let distance = start.saturating_sub(barriers[context].awaited(part));
    if distance < -CLOCK_SLOP_NS {
        op.after_barrier = UNBOUND;
        return false;
    }
    let explains = late && distance <= FOLLOWS_NS;
    let after = if explains { distance } else { distance.min(usual) };
    op.after_barrier = i32::try_from(after).unwrap_or(i32::MAX);
    explains
}
