//! Repetitions of the program's work: its iterations, or ranges inside them where an iteration is too much to replay.
//!
//! ```text
//!  iterations   [window 0                 ][window 1                 ]     80 ms each, 40 waits of the site
//!  nested       [step 0][step 1][step 2]…  [step 0][step 1]…               2 ms, one wait: these are replayed
//! ```

use crate::analysis::Analysed;
use crate::cost::iterations::Iterations;
use crate::error::InputError;
use crate::profile::nvtx::Ranges;
use crate::sites::ranges::{numbered, says_iteration, stable_name};
use crate::waits::Wait;

/// Ranges of one name read; loops longer than this are not profiled.
const MOST_RANGES: usize = 200_000;
/// Repetitions that make a loop.
const FEWEST: usize = 3;

/// A repetition with what the loop does before the next one, unless that is something else of its own.
///
/// ```text
///  ranges     [step 3    ]··[step 4    ]··[step 5    ]················[step 6    ]
///  turns      [3           ][4           ][5         ]                [6         ]
/// ```
pub fn turn(spans: &[(i64, i64)], i: usize) -> (i64, i64) {
    let (from, to) = spans[i];
    match spans.get(i + 1) {
        Some(next) if next.0 - to <= (to - from) / 2 => (from, next.0),
        _ => (from, to),
    }
}

/// Ranges around a wait that count something or speak of iterations, the outermost first; PyTorch's own are parts of
/// one. Those of the loop's thread count too: a wait of the autograd thread is in the step of the main thread.
pub fn around(found: &mut Analysed, wait: &Wait) -> Result<Vec<Iterations>, InputError> {
    let own = found.profile.calls.threads[wait.thread as usize];
    let threads = std::iter::once(own).chain(found.iterations.as_ref().map(|i| i.tid).filter(|t| *t != own));
    let mut all = Vec::new();
    for tid in threads {
        let profile = &mut found.profile;
        let ranges = &profile.nvtx.ranges;
        let mut chain: Vec<u32> = ranges.outwards(ranges.innermost(tid, wait.start)).collect();
        chain.retain(|&r| ranges.end[r as usize] >= wait.end);
        chain.reverse();
        let texts = profile.nvtx.texts(&profile.db, &mut profile.strings, &chain)?;
        let counts = |t: &str| !t.contains("::") && (numbered(t).is_some() || says_iteration(t));
        for (range, text) in chain.into_iter().zip(texts) {
            if let Some(text) = text.filter(|t| counts(t)) {
                all.extend(family(found, range, stable_name(&text))?);
            }
        }
    }
    Ok(all)
}

/// All ranges of a thread that stand as deep as one and share its name.
fn family(found: &mut Analysed, range: u32, name: String) -> Result<Option<Iterations>, InputError> {
    let profile = &mut found.profile;
    let ranges: &Ranges = &profile.nvtx.ranges;
    let key = |r: usize| (ranges.tid[r], ranges.depth[r]);
    let beside: Vec<u32> = (0..ranges.start.len())
        .filter(|&r| key(r) == key(range as usize) && ranges.end[r] != i64::MAX)
        .take(MOST_RANGES)
        .map(|r| r as u32)
        .collect();
    let texts = profile.nvtx.texts(&profile.db, &mut profile.strings, &beside)?;
    let ranges = &profile.nvtx.ranges;
    let tid = ranges.tid[range as usize];
    let is_one = |text: &Option<std::sync::Arc<str>>| text.as_deref().is_some_and(|t| stable_name(t) == name);
    let spans: Vec<(i64, i64)> = beside
        .iter()
        .zip(&texts)
        .filter(|(_, text)| is_one(text))
        .map(|(&r, _)| (ranges.start[r as usize], ranges.end[r as usize]))
        .collect();
    let apart = spans.windows(2).all(|w| w[0].1 <= w[1].0);
    Ok((apart && spans.len() >= FEWEST).then_some(Iterations { name, tid, spans }))
}

#[cfg(test)]
mod tests {
    use super::turn;

    #[test]
    fn a_turn_goes_up_to_the_next_unless_that_is_far() {
        let spans = [(0, 100), (110, 210), (300, 400), (450, 460)];
        let all: Vec<_> = (0..spans.len()).map(|i| turn(&spans, i)).collect();
        assert_eq!(all, [(0, 110), (110, 210), (300, 450), (450, 460)]);
    }
}
