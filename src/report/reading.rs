//! Several exports read side by side, handed on in their order.
//!
//! ```text
//!  worker 0   [export 0 ========][export 2 =====]      [export 4 …        takes the next that fits
//!  worker 1   [export 1 ===]          [export 3 ====]                     waits: 2 and 3 together would exceed the budget
//!  caller                   [0][1]              [2] [3]                   an export's memory is free once it was taken
//! ```
//! An export holds a share of the budget from the start of its reading until the caller is done with it. An
//! export larger than the budget is read alone. Exports begin in order: the caller waits for one under way.

use crate::profile::parallel::start;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Result;

/// Least memory of an export, in bytes: tables of names, catalogue entries, SQLite's caches.
const LEAST: u64 = 24 << 20;

/// Memory per byte of an SQLite file: 690 MB for 4.3 GB; small files need relatively more.
const PER_BYTE: f64 = 0.5;

/// The same for parquet files, which are compressed.
const PER_PACKED_BYTE: f64 = 4.0;

/// Memory to read an export, in bytes, estimated from its size.
pub fn estimate(path: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len()) as f64;
    let bytes = if path.is_dir() {
        let files = std::fs::read_dir(path).into_iter().flatten().flatten();
        files.map(|file| size(&file.path())).sum::<f64>() * PER_PACKED_BYTE
    } else {
        size(path) * PER_BYTE
    };
    LEAST + bytes as u64
}

struct State<T> {
    next: usize,
    /// Bytes of exports begun and not done with.
    taken: u64,
    /// A panic is a result too: the caller would wait for ever.
    done: Vec<Option<Result<T>>>,
    stopped: bool,
}

/// Ends the workers with the caller, even on a panic: they may wait for memory that the caller holds.
struct Ended<'a, T>(&'a Mutex<State<T>>, &'a Condvar);

impl<T> Drop for Ended<'_, T> {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.1.notify_all();
    }
}

/// Runs `read` on each export and hands the results to `take` in order. `memory` is in bytes.
///
/// # Errors
/// The first of `take`; exports not begun yet are left.
pub fn side_by_side<T: Send, E>(
    paths: &[PathBuf],
    workers: usize,
    memory: u64,
    read: impl Fn(usize, &Path) -> T + Sync,
    mut take: impl FnMut(usize, T) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let needs: Vec<u64> = paths.iter().map(|path| estimate(path)).collect();
    let state =
        Mutex::new(State { next: 0, taken: 0, done: paths.iter().map(|_| None).collect(), stopped: false });
    let changed = Condvar::new();
    let lock = || state.lock().unwrap_or_else(PoisonError::into_inner);
    let wait = |held| changed.wait(held).unwrap_or_else(PoisonError::into_inner);
    let begin = || -> Option<usize> {
        let mut held: MutexGuard<State<T>> = lock();
        loop {
            let need = *needs.get(held.next).filter(|_| !held.stopped)?;
            if held.taken == 0 || held.taken + need <= memory {
                held.taken += need;
                held.next += 1;
                return Some(held.next - 1);
            }
            held = wait(held);
        }
    };
    std::thread::scope(|scope| {
        let _ended = Ended(&state, &changed);
        let next = || {
            begin().map(|at| {
                let result = catch_unwind(AssertUnwindSafe(|| read(at, &paths[at])));
                lock().done[at] = Some(result);
                changed.notify_all();
            })
        };
        let work = move || while next().is_some() {};
        let started = (0..workers.min(paths.len())).map_while(|_| start(scope, work)).count();
        for (at, need) in needs.iter().enumerate() {
            if started == 0 {
                next();
            }
            let mut held = lock();
            let result = loop {
                match held.done[at].take() {
                    Some(result) => break result,
                    None => held = wait(held),
                }
            };
            drop(held);
            let taken = take(at, result.unwrap_or_else(|panic| resume_unwind(panic)));
            let mut held = lock();
            held.taken -= need;
            drop(held);
            changed.notify_all();
            taken?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn paths(n: usize) -> Vec<PathBuf> {
        (0..n).map(|i| PathBuf::from(format!("/nowhere/{i}"))).collect()
    }

    #[test]
    fn results_come_in_order_and_no_more_at_once_than_fit() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let read = |at: usize, _: &Path| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            now.fetch_sub(1, Ordering::SeqCst);
            at
        };
        let mut seen = Vec::new();
        let take = |at, result| {
            seen.push((at, result));
            Ok::<(), ()>(())
        };
        side_by_side(&paths(20), 4, 2 * LEAST, read, take).expect("no errors");
        assert_eq!(seen, (0..20).map(|i| (i, i)).collect::<Vec<_>>());
        assert!(most.load(Ordering::SeqCst) <= 2, "two fit");
    }

    #[test]
    #[should_panic(expected = "a defect")]
    fn a_panic_ends_it() {
        let read = |at: usize, _: &Path| assert!(at != 3, "a defect");
        let _ = side_by_side(&paths(50), 2, 4 * LEAST, read, |_, ()| Ok::<(), ()>(()));
    }

    #[test]
    fn the_first_error_ends_it() {
        let begun = AtomicUsize::new(0);
        let read = |at: usize, _: &Path| {
            begun.fetch_add(1, Ordering::SeqCst);
            at
        };
        let take = |at: usize, _: usize| if at == 1 { Err("second") } else { Ok(()) };
        assert_eq!(side_by_side(&paths(50), 2, LEAST, read, take), Err("second"));
        assert!(begun.load(Ordering::SeqCst) < 50);
    }
}
