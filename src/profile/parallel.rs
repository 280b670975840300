//! Jobs on several threads, their results in order.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};

pub fn divided<T: Send>(jobs: usize, threads: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let Ok(done) = parallel(threads, jobs, || Ok::<_, Infallible>(()), |(), i| Ok(job(i)));
    done
}

/// Runs `one` on its own thread and `here` on this one; both here where no thread can be had (`ulimit -u`).
pub fn both<A: Send, B>(one: impl Fn() -> A + Sync, here: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let thread = start(scope, &one);
        let here = here();
        (thread.map_or_else(&one, join), here)
    })
}

/// `None` where no thread can be had.
pub fn start<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    work: impl FnOnce() -> T + Send + 's,
) -> Option<ScopedJoinHandle<'s, T>> {
    Builder::new().spawn_scoped(scope, work).ok()
}

fn join<T>(thread: ScopedJoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Runs `work(reader, 0..jobs)` on `threads` threads and returns the results in job order.
///
/// The first error by job number wins: a damaged file gives the same message whatever the thread count.
pub(super) fn parallel<W, T: Send, E: Send>(
    threads: usize,
    jobs: usize,
    open: impl Fn() -> Result<W, E> + Sync,
    work: impl Fn(&mut W, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    joined(threads, jobs, open, work, Vec::push)
}

struct Joined<S, T, E> {
    /// Results before `next`, or the first error.
    all: Result<S, E>,
    next: usize,
    /// Later results.
    waiting: BTreeMap<usize, Result<T, E>>,
}

/// As [`parallel`]; each result is joined as soon as all before it are, so that only results of jobs that
/// overtook others are held.
pub(super) fn joined<W, T: Send, S: Default + Send, E: Send>(
    threads: usize,
    jobs: usize,
    open: impl Fn() -> Result<W, E> + Sync,
    work: impl Fn(&mut W, usize) -> Result<T, E> + Sync,
    join: impl Fn(&mut S, T) + Sync,
) -> Result<S, E> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Joined { all: Ok(S::default()), next: 0, waiting: BTreeMap::new() });
    let worker = || {
        let mut reader = None;
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return;
            }
            let result = match &mut reader {
                Some(reader) => work(reader, job),
                None => open().and_then(|new| work(reader.insert(new), job)),
            };
            let failed = result.is_err();
            done.lock().unwrap_or_else(PoisonError::into_inner).add(job, result, &join);
            if failed {
                return;
            }
        }
    };
    std::thread::scope(|s| {
        let _ = (1..threads.min(jobs)).try_for_each(|_| start(s, worker).map(drop));
        worker();
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).all
}

impl<S, T, E> Joined<S, T, E> {
    fn add(&mut self, job: usize, result: Result<T, E>, join: impl Fn(&mut S, T)) {
        self.waiting.insert(job, result);
        while let Some(result) = self.waiting.remove(&self.next) {
            self.next += 1;
            match (&mut self.all, result) {
                (Ok(all), Ok(part)) => join(all, part),
                (Ok(_), Err(error)) => self.all = Err(error),
                (Err(_), _) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_in_their_order_up_to_the_first_that_failed() {
        let read = |threads: usize, fails: &[usize]| {
            let work = |(): &mut (), job: usize| if fails.contains(&job) { Err(job) } else { Ok(job) };
            joined(threads, 100, || Ok(()), work, |all: &mut Vec<usize>, part| all.push(part))
        };
        for threads in [1, 2, 7] {
            assert_eq!(read(threads, &[]), Ok((0..100).collect()));
            assert_eq!(read(threads, &[90, 17, 31]), Err(17));
        }
    }
}
