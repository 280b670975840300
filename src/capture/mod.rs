//! Captures a program with nsys and exports what a report reads; on Linux.
//!
//! ```text
//!  request ──> environment (secrets, what is withheld) ──> commands (nsys, as a value; `--print` shows it)
//!                     │
//!  PROGRAM  [nsys profile ........][QdstrmImporter][nsys export][scrub]
//!  files     .unfinished-PID.nsys-rep               .sqlite            │renamed: NAME.nsys-rep, NAME.sqlite
//! ```
//! Files of an earlier capture stay until the new ones are whole. A capture that fails says which files it leaves.

mod commands;
mod environment;
pub mod launcher;
mod nsys;
mod process;
mod scrub;
mod secrets;
mod session;
pub mod steps;

use anyhow::{Result, anyhow, bail};
pub use nsys::found;
pub use process::{Family, Heard, attended, launch};
pub use session::{Server, Session};

use crate::text::with_suffix;
use commands::{Commands, shown};
use environment::Environment;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The calls of which nsys takes backtraces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backtraces {
    /// Synchronising calls.
    Waits,
    /// All CUDA calls.
    All,
    /// No call: nsys samples Python instead, where it may not take backtraces.
    Sampled,
    None,
}

/// The part of the program that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    Whole,
    /// The part between cudaProfilerStart and cudaProfilerStop.
    Profiler,
    /// The first NVTX range of this name.
    Nvtx(String),
}

impl FromStr for Range {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.strip_prefix("nvtx:")) {
            ("none", _) => Ok(Self::Whole),
            ("cudaProfilerApi", _) => Ok(Self::Profiler),
            (_, Some(name)) if !name.is_empty() => Ok(Self::Nvtx(name.to_owned())),
            _ => Err("it is none, cudaProfilerApi or nvtx:NAME"),
        }
    }
}

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("none"),
            Self::Profiler => f.write_str("cudaProfilerApi"),
            Self::Nvtx(name) => write!(f, "nvtx:{name}"),
        }
    }
}

/// A capture as it was asked for.
#[derive(Clone, Debug)]
pub struct Request {
    pub backtraces: Backtraces,
    pub range: Range,
    /// Seconds from the start until nsys records, and for how long.
    pub delay: Option<u32>,
    pub duration: Option<u32>,
    /// Steps of the optimizer to record, counted from outside the program.
    pub steps: Option<steps::Steps>,
    /// The function whose calls are counted as steps, `MODULE:FUNCTION`.
    pub calls: Option<String>,
    /// A program that lives on, and is recorded by another command.
    pub server: Option<Server>,
    /// The name as typed, with `%q{VAR}`, `%h`, `%r` and `%%`.
    pub name: OsString,
    /// Replaces the files of an earlier capture.
    pub force: bool,
    /// Variables that the program does not get: names, patterns, or `secrets`.
    pub withhold: Vec<String>,
    /// More flags of `nsys profile`.
    pub flags: Vec<OsString>,
    pub program: Vec<OsString>,
}

/// A capture that was made.
#[derive(Debug)]
pub struct Captured {
    pub export: PathBuf,
    /// The program's exit code, or 128 and the signal that ended it; 0 where nsys ended it with its range.
    pub exit: u8,
    /// A signal came meanwhile.
    pub interrupted: bool,
}

/// A capture that failed, with the exit code that is due.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    pub message: String,
    pub exit: u8,
}

impl Failed {
    /// A signal came before there was a result.
    pub fn interrupted() -> Self {
        Self { message: "interrupted: nothing was finished".to_owned(), exit: INTERRUPTED }
    }
}

/// Shells report this exit code for a program that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;
/// nsys ends the program at the end of its range with SIGTERM.
const TERMINATED: u8 = 128 + 15;

/// A command as one would type it, without the values of secrets.
pub fn typed(words: &[OsString], withhold: &[String]) -> String {
    shown(words, &Environment::read(withhold))
}

/// The commands of a capture, as one would type them, without the values of secrets.
///
/// # Errors
/// One sentence where the name cannot be made.
pub fn printed(request: &Request) -> Result<String> {
    let environment = Environment::read(&request.withhold);
    let stem = stem(&request.name)?;
    let nsys = found().unwrap_or_else(|_| "nsys".into());
    let commands = Commands::new(request, &nsys, request.backtraces, &environment, None);
    let mut text = String::new();
    if !environment.secrets.is_empty() {
        let names = environment.secrets.join(", ");
        text += &format!("# The environment has secrets, which are removed from the export: {names}\n");
    }
    if request.steps.is_some() {
        text += "# Besides, PYTHONPATH begins with a hook that counts steps\n";
    }
    let mut lines = match &request.server {
        None => vec![commands.profile(&stem, request.force)],
        Some(Server::Start(session)) => vec![commands.launch(session)],
        Some(Server::Attach(session)) => vec![
            commands.start(session, &stem, request.force),
            vec!["sleep".into(), request.duration.unwrap_or(5).to_string().into()],
            commands.stop(session),
        ],
    };
    lines[0].splice(0..0, commands.settings(&environment));
    if !matches!(request.server, Some(Server::Start(_))) {
        lines.extend(nsys::importer(&nsys).map(|importer| commands.import(&importer, &stem)));
        lines.push(commands.export(&stem, request.force, true));
    }
    lines.iter().for_each(|line| text += &shown(line, &environment));
    Ok(text)
}

/// Runs a program to its end, recording nothing unless another command attaches: its exit code, and whether a signal came.
///
/// # Errors
/// One sentence where nsys is missing, or does not start.
pub fn serve(request: &Request, session: &Session, say: &dyn Fn(&str)) -> Result<(u8, bool)> {
    let environment = Environment::read(&request.withhold);
    let nsys = found()?;
    let backtraces = nsys::allowed(&nsys, request.backtraces, say);
    let commands = Commands::new(request, &nsys, backtraces, &environment, None);
    say(&format!("`sync-report run --attach {session} --duration 5` in another shell records five seconds"));
    process::launch(&commands.launch(session), &commands.changes(&environment))
}

/// Captures a program.
///
/// # Errors
/// [`Failed`] where a step of the capture fails, with what it left behind; else one sentence.
pub fn capture(request: &Request, say: &dyn Fn(&str)) -> Result<Captured> {
    let environment = Environment::read(&request.withhold);
    let stem = stem(&request.name)?;
    refuse(&stem, request.force)?;
    let nsys = found().map_err(|missing| {
        anyhow!("{missing}; without it, sync_report.profile() in Python records a trace of torch.profiler")
    })?;
    let backtraces = nsys::allowed(&nsys, request.backtraces, say);
    let hook = request.steps.is_some().then(steps::Hook::new).transpose()?;
    let commands = Commands::new(request, &nsys, backtraces, &environment, hook.as_ref());
    let heard = process::Heard::listen()?;
    let part = Part { stem: with(&stem, &format!("unfinished-{}", std::process::id())), heard: &heard, say };
    let ran = part.record(request, &commands, &environment, hook.as_ref());
    let done = ran.and_then(|ran| part.export(ran.exit, &commands, &nsys).map(|()| ran));
    let ran = done.inspect_err(|_| part.leave())?;
    let removed = scrub::scrub(&part.with("sqlite"), &environment);
    let own = if removed.is_ok() { stem } else { free(&with(&stem, "unscrubbed")) };
    part.finish(&own, request.force)?;
    let [report, export] = ["nsys-rep", "sqlite"].map(|extension| with(&own, extension));
    let removed = removed.map_err(|error| {
        let names = match environment.secrets.is_empty() {
            true => "none that is known".to_owned(),
            false => environment.secrets.join(", "),
        };
        let (report, export) = (report.display(), export.display());
        let message =
            format!("secrets could not be removed ({error:#}): {report} and {export} hold them: {names}");
        Failed { message, exit: if ran.exit == 0 { 1 } else { ran.exit } }
    })?;
    let since =
        ran.ended.map(|ended| format!(", {} s after the end of the program", ended.elapsed().as_secs()));
    say(&format!("wrote {} and {}{}", report.display(), export.display(), since.unwrap_or_default()));
    if !removed.is_empty() {
        let (names, export, report) = (removed.join(", "), export.display(), report.display());
        say(&format!("removed from {export}: {names}. {report} still holds them: do not share that file."));
    }
    Ok(Captured { export, exit: ran.exit, interrupted: heard.any() })
}

/// A name that no files have.
fn free(stem: &Path) -> PathBuf {
    let taken = |stem: &Path| ["nsys-rep", "sqlite"].iter().any(|extension| with(stem, extension).exists());
    let numbered = (2..).map(|n| with(stem, &n.to_string()));
    std::iter::once(stem.to_owned())
        .chain(numbered)
        .find(|stem| !taken(stem))
        .unwrap_or_else(|| stem.to_owned())
}

/// A name with `%q{VAR}`, `%h`, `%r` and `%%` replaced.
///
/// # Errors
/// One sentence where that cannot be done.
pub fn named(name: &OsStr) -> Result<PathBuf> {
    let text = name.to_str().ok_or_else(|| anyhow!("-o is no UTF-8"))?;
    Ok(environment::expanded(text)?.into())
}

/// The path of a name, without its extension.
fn stem(name: &OsStr) -> Result<PathBuf> {
    let text = name.to_str().unwrap_or_default();
    let stripped = [".sqlite", ".nsys-rep"].iter().find_map(|end| text.strip_suffix(end));
    named(stripped.map_or(name, OsStr::new))
}

fn with(stem: &Path, extension: &str) -> PathBuf {
    with_suffix(stem, &format!(".{extension}"))
}

/// Refuses a name in a folder that cannot be written, or one of files that are there.
fn refuse(stem: &Path, force: bool) -> Result<()> {
    let folder = stem.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if tempfile::tempfile_in(folder).is_err() {
        bail!("cannot write to the folder {}", folder.display());
    }
    match ["nsys-rep", "sqlite"].map(|extension| with(stem, extension)).into_iter().find(|file| file.exists())
    {
        Some(file) if !force => bail!("{} exists (--force replaces it)", file.display()),
        _ => Ok(()),
    }
}

/// The files of a capture, under the names that they have until they are whole.
struct Part<'a> {
    stem: PathBuf,
    heard: &'a process::Heard,
    say: &'a dyn Fn(&str),
}

impl Part<'_> {
    fn with(&self, extension: &str) -> PathBuf {
        with(&self.stem, extension)
    }

    /// A step that failed: after a signal, for that reason.
    fn failed(&self, exit: u8, message: &str) -> Failed {
        let interrupted = self.heard.any();
        let message = if interrupted { format!("interrupted: {message}") } else { message.to_owned() };
        let exit = match (interrupted, exit) {
            (true, _) => INTERRUPTED,
            (_, 0) => 2,
            (_, exit) => exit,
        };
        Failed { message, exit }
    }

    fn record(
        &self,
        request: &Request,
        commands: &Commands,
        environment: &Environment,
        hook: Option<&steps::Hook>,
    ) -> Result<process::Ran> {
        let (words, changes) = (commands.profile(&self.stem, true), commands.changes(environment));
        let mut ran = match &request.server {
            Some(Server::Attach(session)) => self.window(request, session, commands)?,
            _ => process::record(&words, &changes, commands.stacks, self.heard, self.say)?,
        };
        let code = ran.exit;
        if code == TERMINATED && ends_program(request) {
            ran.exit = 0;
        }
        if ["nsys-rep", "qdstrm"].iter().any(|extension| self.with(extension).exists()) {
            return Ok(ran);
        }
        let why = match hook.map(steps::Hook::reached) {
            Some(steps::Reached::Nothing) => {
                "; the hook that counts steps was not loaded: Python ran with -I, -E or -S, or PYTHONPATH was reset"
            }
            Some(steps::Reached::Python) if request.calls.is_some() => {
                "; the program did not import the module of --calls"
            }
            Some(steps::Reached::Python) => "; the program imported no torch.optim",
            Some(steps::Reached::Steps) => "; the program must reach the steps",
            None if request.range != Range::Whole => {
                "; the program must reach the range: torch.cuda.profiler.start(), or the NVTX range"
            }
            None if request.delay.is_some() => "; the program must run longer than the delay",
            None => "",
        };
        Err(self.failed(ran.exit, &format!("nsys recorded nothing (exit status {code}){why}")).into())
    }

    /// Converts the recording, where nsys did not, and exports it.
    fn export(&self, exit: u8, commands: &Commands, nsys: &Path) -> Result<()> {
        let failed = |message: String| self.failed(exit, &message);
        if !self.with("nsys-rep").exists() {
            let missing = || {
                format!(
                    "nsys left a .qdstrm file, and there is no QdstrmImporter next to {} to convert it",
                    nsys.display()
                )
            };
            let importer = nsys::importer(nsys).ok_or_else(|| failed(missing()))?;
            process::quietly(&commands.import(&importer, &self.stem))
                .map_err(|said| failed(format!("QdstrmImporter failed: {said}")))?;
            // With backtraces it holds every mapped binary: 2 GB for PyTorch.
            let _ = fs::remove_file(self.with("qdstrm"));
        }
        let payloads = nsys::exports_payloads(nsys);
        if !payloads && commands.stacks {
            (self.say)("this nsys cannot export Python frames; 2024.5 or newer can");
        }
        process::quietly(&commands.export(&self.stem, true, payloads))
            .map_err(|said| failed(format!("nsys could not export its report: {said}")))?;
        Ok(())
    }

    /// Says what a capture that failed left, and removes half an export, which holds secrets.
    fn leave(&self) {
        for half in ["sqlite", "sqlite-journal"] {
            let _ = fs::remove_file(self.with(half));
        }
        for file in
            ["nsys-rep", "qdstrm"].map(|extension| self.with(extension)).iter().filter(|file| file.exists())
        {
            (self.say)(&format!("{} holds what was recorded", file.display()));
        }
    }

    /// Gives the files their names.
    fn finish(&self, stem: &Path, force: bool) -> Result<()> {
        for extension in ["nsys-rep", "sqlite"] {
            let to = with(stem, extension);
            if to.exists() && !force {
                bail!(
                    "{} was made meanwhile, by another rank perhaps (-o NAME_%r gives each a name of its own); {} and {} hold this capture",
                    to.display(),
                    self.with("nsys-rep").display(),
                    self.with("sqlite").display()
                );
            }
        }
        for extension in ["sqlite", "nsys-rep"] {
            fs::rename(self.with(extension), with(stem, extension))?;
        }
        Ok(())
    }
}

/// Whether nsys ends the program, at the end of what it records.
fn ends_program(request: &Request) -> bool {
    request.range != Range::Whole || request.steps.is_some() || request.duration.is_some()
}
