//! Running nsys: what the terminal sends reaches it, and the program's end is told.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a running process is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long a program may take to start under nsys before its end is no longer looked for.
const START: Duration = Duration::from_secs(30);
/// nsys marks the environment of the program that it traces.
const MARK: &[u8] = b"NSYS_PROFILING_SESSION_ID=";

pub struct Ran {
    /// The exit code, or 128 and the signal.
    pub exit: u8,
    pub interrupted: bool,
    /// When the traced program ended; `None` where that was not seen.
    pub ended: Option<Instant>,
}

/// Signals that came while this lives; they end nothing.
struct Heard {
    interrupt: Arc<AtomicBool>,
    terminate: Arc<AtomicBool>,
    ids: Vec<signal_hook::SigId>,
}

impl Heard {
    fn listen() -> Result<Self> {
        let (interrupt, terminate): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        let mut ids = Vec::new();
        for (signal, flag) in [(SIGINT, &interrupt), (SIGTERM, &terminate), (SIGHUP, &terminate)] {
            ids.push(
                signal_hook::flag::register(signal, Arc::clone(flag)).context("signals cannot be heeded")?,
            );
        }
        Ok(Self { interrupt, terminate, ids })
    }

    fn any(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.terminate.load(Ordering::Relaxed)
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        self.ids.drain(..).for_each(|id| _ = signal_hook::low_level::unregister(id));
    }
}

/// The changes of an environment; `None` where a variable is taken out of it.
type Changes = [(OsString, Option<OsString>)];

/// Runs nsys in the foreground. A signal stops it as Ctrl-C does, so that it writes what it has recorded.
///
/// # Errors
/// It does not start.
pub fn record(words: &[OsString], changes: &Changes, stacks: bool, say: &dyn Fn(&str)) -> Result<Ran> {
    let heard = Heard::listen()?;
    let mut child = spawn(words, changes)?;
    let mut watch = Watch::new(child.id());
    let mut passed_on = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        // What the terminal sends, nsys gets too.
        let ours_alone = heard.terminate.load(Ordering::Relaxed)
            || heard.interrupt.load(Ordering::Relaxed) && !std::io::stdin().is_terminal();
        if ours_alone && !passed_on {
            passed_on = true;
            let _ = Pid::from_raw(child.id().cast_signed()).map(|pid| kill_process(pid, Signal::INT));
        }
        if watch.ended_now() {
            say(if stacks {
                "the program has ended; nsys copies the program's libraries into its report: 10 to 60 s"
            } else {
                "the program has ended; nsys writes its report: some seconds"
            });
        }
        std::thread::sleep(LOOK);
    };
    Ok(Ran { exit: code(status), interrupted: heard.any(), ended: watch.ended })
}

/// Runs a launcher in the foreground: its exit code, and whether a signal came.
///
/// # Errors
/// It does not start.
pub fn launch(words: &[OsString]) -> Result<(u8, bool)> {
    let heard = Heard::listen()?;
    let mut child = spawn(words, &[])?;
    let status = child.wait()?;
    Ok((code(status), heard.any()))
}

fn spawn(words: &[OsString], changes: &Changes) -> Result<Child> {
    let (program, arguments) = words.split_first().context("which program?")?;
    let mut command = Command::new(program);
    command.args(arguments);
    for (name, value) in changes {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.spawn().with_context(|| format!("{} cannot be started", program.to_string_lossy()))
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Runs a command to its end.
///
/// # Errors
/// The last line that it said.
pub fn quietly(words: &[OsString]) -> Result<(), String> {
    let (program, arguments) = words.split_first().ok_or("nothing to run")?;
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let done = done.map_err(|error| error.to_string())?;
    if done.status.success() {
        return Ok(());
    }
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    Err(last.map_or_else(|| format!("exit status {}", code(done.status)), str::to_owned))
}

/// Looks for the program that nsys traces, then for its end.
struct Watch {
    nsys: u32,
    since: Instant,
    last: Instant,
    program: Option<u32>,
    ended: Option<Instant>,
}

impl Watch {
    fn new(nsys: u32) -> Self {
        let now = Instant::now();
        Self { nsys, since: now, last: now, program: None, ended: None }
    }

    /// Whether the program has ended since this was last asked.
    fn ended_now(&mut self) -> bool {
        const PAUSE: Duration = Duration::from_millis(500);
        if self.ended.is_some() || self.last.elapsed() < PAUSE {
            return false;
        }
        self.last = Instant::now();
        match self.program {
            None if self.since.elapsed() < START => self.program = traced(self.nsys),
            None => {}
            Some(pid) if !std::path::Path::new(&format!("/proc/{pid}")).exists() => {
                self.ended = Some(self.last)
            }
            Some(_) => {}
        }
        self.ended.is_some()
    }
}

/// The first descendant of a process that nsys has marked.
fn traced(parent: u32) -> Option<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    children.into_iter().find_map(|child| {
        let environment = std::fs::read(format!("/proc/{child}/environ")).unwrap_or_default();
        let marked = environment.split(|&byte| byte == 0).any(|entry| entry.starts_with(MARK));
        if marked { Some(child) } else { traced(child) }
    })
}
