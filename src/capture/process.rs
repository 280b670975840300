//! Running nsys and launchers: signals reach them, and the program's end is told.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process, kill_process_group};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often a running process is looked at.
pub const LOOK: Duration = Duration::from_millis(50);
/// How long a program may take to start under nsys before its end is no longer looked for.
const START: Duration = Duration::from_secs(30);
/// How long processes may outlive their program.
const TIDY: Duration = Duration::from_secs(1);
/// nsys marks the environment of the program that it traces.
const MARK: &[u8] = b"NSYS_PROFILING_SESSION_ID=";

pub struct Ran {
    /// The exit code, or 128 and the signal.
    pub exit: u8,
    /// When the traced program ended; `None` where that was not seen.
    pub ended: Option<Instant>,
}

/// Hears the signals that come while this lives, and keeps them from ending this program. Later they end it again.
pub struct Heard {
    any: Cell<bool>,
}

/// The handlers of signals stay for the program's life and share this state.
#[derive(Default)]
struct Handlers {
    /// The last that came and was not looked at; 0: none.
    came: Arc<AtomicUsize>,
    /// Whether signals have their usual effect.
    idle: Arc<AtomicBool>,
    /// How many listen.
    listen: AtomicUsize,
}

static HANDLERS: OnceLock<Handlers> = OnceLock::new();

impl Handlers {
    /// Signals that are ignored, as under nohup, stay so.
    fn install() -> std::io::Result<Self> {
        let own = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal)) {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&own.idle))?;
            signal_hook::flag::register_usize(signal, Arc::clone(&own.came), signal.unsigned_abs() as usize)?;
        }
        Ok(own)
    }
}

impl Heard {
    /// # Errors
    /// The system refuses.
    pub fn listen() -> Result<Self> {
        if HANDLERS.get().is_none() {
            let _ = HANDLERS.set(Handlers::install().context("signals cannot be heeded")?);
        }
        if let Some(handlers) = HANDLERS.get() {
            handlers.listen.fetch_add(1, Ordering::Relaxed);
            handlers.idle.store(false, Ordering::Relaxed);
        }
        Ok(Self { any: Cell::new(false) })
    }

    /// The last that has come since this was asked before.
    fn again(&self) -> Option<usize> {
        let came = HANDLERS.get().map(|handlers| handlers.came.swap(0, Ordering::Relaxed));
        let came = came.filter(|came| *came > 0);
        self.any.set(self.any.get() || came.is_some());
        came
    }

    pub fn any(&self) -> bool {
        self.again();
        self.any.get()
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        let Some(handlers) = HANDLERS.get() else { return };
        if handlers.listen.fetch_sub(1, Ordering::Relaxed) == 1 {
            handlers.idle.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether a signal is ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// The changes of an environment; `None` where a variable is taken out of it.
pub type Changes = [(OsString, Option<OsString>)];

/// Runs nsys in the foreground. A signal stops it as Ctrl-C does, so that it writes what it has recorded.
///
/// # Errors
/// It does not start.
pub fn record(
    words: &[OsString],
    changes: &Changes,
    stacks: bool,
    heard: &Heard,
    say: &dyn Fn(&str),
) -> Result<Ran> {
    let child = spawn(words, changes)?;
    let mut watch = Watch::new(child.id());
    let status = attended(child, heard, LOOK, || {
        if watch.ended_now() {
            say(&format!("the program has ended; {}", writes(stacks)));
        }
    })?;
    Ok(Ran { exit: code(status), ended: watch.ended })
}

/// Runs a launcher in the foreground: its exit code, and whether a signal came.
///
/// # Errors
/// It does not start.
pub fn launch(words: &[OsString], changes: &Changes) -> Result<(u8, bool)> {
    let heard = Heard::listen()?;
    let status = attended(spawn(words, changes)?, &heard, LOOK, || {})?;
    Ok((code(status), heard.any()))
}

/// Waits for so long, or for a signal, which has then done its work.
pub fn until(end: Option<Duration>, heard: &Heard) {
    let start = Instant::now();
    while end.is_none_or(|end| start.elapsed() < end) && heard.again().is_none() {
        std::thread::sleep(LOOK);
    }
    heard.any.set(false);
}

/// Says that nsys is writing after a recording, and for how long.
pub fn writes(stacks: bool) -> &'static str {
    if stacks {
        "nsys copies the program's libraries into its report: 10 to 60 s"
    } else {
        "nsys writes its report: some seconds"
    }
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

/// Waits for a child's end; `look` is called meanwhile. The child is sent SIGINT for the first signal, then SIGTERM, then SIGKILL.
/// Ctrl-C in a terminal is not sent on: srun and hydra take a second one for an order to kill.
pub fn attended(
    mut child: Child,
    heard: &Heard,
    pause: Duration,
    mut look: impl FnMut(),
) -> Result<ExitStatus> {
    let mut signals = [Signal::INT, Signal::TERM, Signal::KILL].into_iter();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let pid = Pid::from_raw(child.id().cast_signed());
        if let Some((pid, came)) = pid.and_then(|pid| Some((pid, heard.again()?))) {
            let typed = came == SIGINT.unsigned_abs() as usize && shares_terminal(pid);
            if let Some(signal) = (!typed).then(|| signals.next()).flatten() {
                // A child that leads a group gets it with its own children.
                let _ = kill_process_group(pid, signal).or_else(|_| kill_process(pid, signal));
            }
        }
        look();
        std::thread::sleep(pause);
    }
}

/// Whether Ctrl-C in the terminal reaches a child as it reaches this program.
fn shares_terminal(child: Pid) -> bool {
    let own = getpgrp();
    let terminal = File::open("/dev/tty").ok().and_then(|terminal| tcgetpgrp(terminal).ok());
    terminal == Some(own) && getpgid(Some(child)).is_ok_and(|group| group == own)
}

/// The processes of a program that leads a group, also those that its launchers start in sessions of their own: by an entry of
/// their environment.
pub struct Family {
    pub leader: u32,
    /// `NAME=VALUE`.
    pub mark: OsString,
}

impl Family {
    fn members(&self) -> Vec<Pid> {
        let own = rustix::process::getpid();
        let of = |entry: std::fs::DirEntry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?).filter(|pid| *pid != own)?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            environment.split(|&byte| byte == 0).any(|entry| entry == self.mark.as_bytes()).then_some(pid)
        };
        std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(of).collect()
    }

    fn send(&self, signal: Signal) {
        // A program may overwrite its environment, with its title.
        let _ = Pid::from_raw(self.leader.cast_signed()).map(|pid| kill_process_group(pid, signal));
        for pid in self.members() {
            let _ = kill_process(pid, signal);
        }
    }

    /// Stops them.
    pub fn hold(&self) {
        self.send(Signal::STOP);
    }

    /// Lets them run again.
    pub fn resume(&self) {
        self.send(Signal::CONT);
    }

    /// Ends them at once.
    pub fn kill(&self) {
        self.send(Signal::KILL);
    }

    /// Ends what a program that has ended left running: after a while, in which multiprocessing tidies its semaphores up.
    pub fn end(&self) {
        let start = Instant::now();
        while !self.members().is_empty() && start.elapsed() < TIDY {
            std::thread::sleep(LOOK);
        }
        self.kill();
    }
}

/// Whether a file can be run.
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The program that a shell would run for a name without slashes.
pub fn on_path(name: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| is_program(file))
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
            Some(pid) if !Path::new(&format!("/proc/{pid}")).exists() => {
                self.ended = Some(self.last);
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
