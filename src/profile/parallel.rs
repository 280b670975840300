//! Jobs on several threads, their results in order.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does jobs on some threads; the results in their order.
pub fn divided<T: Send>(jobs: usize, threads: usize, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let Ok(done) = parallel(threads, jobs, || Ok::<_, Infallible>(()), |(), i| Ok(job(i)));
    done
}

/// Runs `work(reader, 0..jobs)` on `threads` threads and returns the results in job order.
///
/// The first error by job number wins, so that a damaged file gives the same message whatever the thread count.
pub(super) fn parallel<W, T: Send, E: Send>(
    threads: usize,
    jobs: usize,
    open: impl Fn() -> Result<W, E> + Sync,
    work: impl Fn(&mut W, usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<T, E>)>> = Mutex::new(Vec::with_capacity(jobs));
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
            done.lock().unwrap_or_else(PoisonError::into_inner).push((job, result));
            if failed {
                return;
            }
        }
    };
    std::thread::scope(|s| {
        for _ in 1..threads.min(jobs) {
            s.spawn(worker);
        }
        worker();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(job, _)| *job);
    done.into_iter().map(|(_, r)| r).collect()
}
