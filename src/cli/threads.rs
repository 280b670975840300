//! Threads for polars: where a limit refuses one (`ulimit -u`, `pids.max`), it panics or waits forever.

use anyhow::{Result, bail};
use polars_core::runtime::{ASYNC, THREAD_POOL};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, fs, thread};

/// How many threads polars divides queries among.
const MOST: &str = "POLARS_MAX_THREADS";
/// How many it keeps for reading files. It warns once all are in use, which of two it never has.
const BLOCKING: &str = "POLARS_MAX_BLOCKING_THREAD_COUNT";
/// How often, and how many times at most, threads that have ended are looked for: they are gone at the first look or the second.
const LOOK: Duration = Duration::from_micros(200);
const LOOKS: u32 = 5_000;

/// Starts polars' threads before any other; what else runs side by side goes on with those that are left.
///
/// polars reads its settings from the environment once, so that a process which cannot have as many threads as processors starts anew
/// with one of each kind.
///
/// # Errors
/// There are not even these.
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

/// Whether so many threads can run at the same time. Afterwards none of them counts any more: one that has ended does until the
/// system has cleared it away.
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
