//! Repetitions of the program's work: iterations, or ranges inside iterations too long to replay.
//!
//! ```text
//!  iterations   [window 0                 ][window 1                 ]     80 ms each, 40 waits of the site
//!  nested       [step 0][step 1][step 2]…  [step 0][step 1]…               2 ms, one wait: these are replayed
//! ```

use crate::analysis::Priced;
use crate::error::InputError;
use crate::iterations::Iterations;
use crate::profile::ids::RangeId;
use crate::sites::ranges::is_of_torch;
use crate::sites::ranges::{numbered, says_iteration, stable_name};
use crate::waits::Wait;

/// Ranges of one name read; loops longer than this are not profiled.
const MOST_RANGES: usize = 200_000;
const FEWEST: usize = 3;

/// Ranges around a wait that have a number or name an iteration, the outermost first; PyTorch's own are parts
/// of one. The loop's thread counts too: a wait of the autograd thread is in the main thread's step.
pub fn around(found: &mut Priced, wait: &Wait) -> Result<Vec<Iterations>, InputError> {
    let own = found.profile.calls.threads[wait.thread];
    let threads = std::iter::once(own).chain(found.iterations.as_ref().map(|i| i.tid).filter(|t| *t != own));
    let mut all = Vec::new();
    for tid in threads {
        let profile = &mut found.profile;
        let ranges = &profile.nvtx.ranges;
        let mut chain: Vec<RangeId> = ranges.outwards(ranges.innermost(tid, wait.start)).collect();
        chain.retain(|&r| ranges.end(r) >= wait.end);
        chain.reverse();
        let texts = profile.nvtx.ranges.texts(&profile.db, &mut profile.strings, &chain)?;
        let counts = |t: &str| !is_of_torch(t) && (numbered(t).is_some() || says_iteration(t));
        for (range, text) in chain.into_iter().zip(texts) {
            if let Some(text) = text.filter(|t| counts(t)) {
                all.extend(family(found, range, stable_name(&text))?);
            }
        }
    }
    Ok(all)
}

/// All ranges of a thread with the depth and the name of one.
fn family(found: &mut Priced, range: RangeId, name: String) -> Result<Option<Iterations>, InputError> {
    let profile = &mut found.profile;
    let ranges = &profile.nvtx.ranges;
    let (tid, depth) = (ranges.tid(range), ranges.depth[range]);
    let beside: Vec<RangeId> =
        ranges.closed_at(depth).filter(|&r| ranges.tid(r) == tid).take(MOST_RANGES).collect();
    let texts = profile.nvtx.ranges.texts(&profile.db, &mut profile.strings, &beside)?;
    let ranges = &profile.nvtx.ranges;
    let is_one = |text: &Option<std::sync::Arc<str>>| text.as_deref().is_some_and(|t| stable_name(t) == name);
    let spans: Vec<(i64, i64)> = beside
        .iter()
        .zip(&texts)
        .filter(|(_, text)| is_one(text))
        .map(|(&r, _)| (ranges.start(r), ranges.end(r)))
        .collect();
    let apart = spans.windows(2).all(|w| w[0].1 <= w[1].0);
    Ok((apart && spans.len() >= FEWEST).then_some(Iterations::marked(name, tid, spans)))
}
