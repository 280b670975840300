//! Runs a target on seeds and says which failed.

use crate::random::Random;
use std::env;
use std::io::Write;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// No case may take longer.
const SLOW: Duration = Duration::from_secs(30);
/// Failures that end a run.
const ENOUGH: usize = 20;

/// Runs `case` on the seeds of the corpus, on fresh ones (`FUZZ_SECONDS`), or on one (`FUZZ_SEED`).
pub fn run(target: &str, corpus: Range<u64>, found: &[u64], case: impl Fn(&Random) -> Result<(), String>) {
    let number = |name| env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let fresh = number("FUZZ_SECONDS").map(Duration::from_secs);
    let seeds: Box<dyn Iterator<Item = u64>> = match (number("FUZZ_SEED"), fresh) {
        (Some(seed), _) => Box::new([seed].into_iter()),
        (None, Some(_)) => Box::new(now() >> 16..),
        (None, None) => Box::new(corpus.chain(found.iter().copied())),
    };
    let began = Instant::now();
    let (mut cases, mut failures) = (0, Vec::new());
    for seed in seeds {
        if fresh.is_some_and(|limit| began.elapsed() > limit) || failures.len() >= ENOUGH {
            break;
        }
        if fresh.is_some() {
            say(&format!("{target} {seed}"));
        }
        cases += 1;
        let start = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| case(&Random::new(target, seed))));
        let done = done.unwrap_or_else(|panic| Err(format!("panics: {}", words(&*panic))));
        let slow = || format!("takes {:.0?}", start.elapsed());
        if let Err(why) = done.and_then(|()| (start.elapsed() < SLOW).then_some(()).ok_or_else(slow)) {
            let failure = format!("FUZZ_SEED={seed} cargo test --test fuzz {target}: {why}");
            say(&failure);
            failures.push(failure);
        }
    }
    say(&format!("{target}: {cases} cases, {} failed, {:.1?}", failures.len(), began.elapsed()));
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Prints a line past the harness, which keeps what `println` prints: an abort would lose it.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
