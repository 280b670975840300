//! Threads for polars: without one (`ulimit -u`, `pids.max`), polars panics or waits forever.

use anyhow::{Result, bail};
use polars_core::runtime::{ASYNC, THREAD_POOL};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, thread};

/// polars' threads for queries.
const MOST: &str = "POLARS_MAX_THREADS";
/// polars' threads for reading files. polars warns once all are in use; of two, it uses one.
const BLOCKING: &str = "POLARS_MAX_BLOCKING_THREAD_COUNT";
/// Interval of looks for threads that have ended, and most looks: they are gone at the first or second.
const LOOK: Duration = Duration::from_micros(200);
const LOOKS: u32 = 5_000;

/// Starts polars' threads before any other; other parallel work uses the threads left.
///
/// polars reads its settings once, from the environment: a process that cannot have as many threads as
/// processors starts anew with few.
///
/// # Errors
/// Even few cannot start.
pub fn reserve() -> Result<()> {
    let few = env::var_os(MOST).is_some_and(|most| most == "1");
    let most = if few { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    // For queries, for tasks, for files.
    if !can_start(3 * most) {
        if few {
            bail!(
                "the system has too few threads to give: raise the limit on processes (`ulimit -u`, or the container's `pids.max`), or end some"
            );
        }
        let again = Command::new(env::current_exe()?)
            .args(env::args_os().skip(1))
            .envs([(MOST, "1"), (BLOCKING, "2")])
            .exec();
        return Err(again.into());
    }
    drop(ASYNC.spawn_blocking(|| ()));
    THREAD_POOL.install(|| ());
    Ok(())
}

/// Whether so many threads can run at once. Waits until none counts any more: an ended thread counts until
/// the system clears it away.
fn can_start(count: usize) -> bool {
    let running = || fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let before = running();
    let can = thread::scope(|scope| {
        let mut running = Vec::new();
        (0..count).all(|_| {
            let (end, ended) = mpsc::channel::<()>();
            running.push(end);
            thread::Builder::new().spawn_scoped(scope, move || ended.recv()).is_ok()
        })
    });
    let mut looks = 0..LOOKS;
    while running() > before && looks.next().is_some() {
        thread::sleep(LOOK);
    }
    can
}
