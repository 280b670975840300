//! Captures a program with nsys and exports what a report reads; on Linux.
//!
//! ```text
//!  request ──> environment (secrets, what is withheld) ──> commands (nsys, as a value; `--print` shows it)
//!                     │
//!  PROGRAM  [nsys profile ........][QdstrmImporter][nsys export][scrub]
//!  files     .unfinished-PID.nsys-rep               .sqlite            │renamed: NAME.nsys-rep, NAME.sqlite
//! ```
//! Files of an earlier capture stay until the new ones are whole. What a capture that fails leaves behind is named.

mod commands;
mod environment;
pub mod launcher;
mod nsys;
mod process;
mod scrub;
mod secrets;
pub mod steps;

use anyhow::{Result, anyhow, bail};
pub use process::launch;

use commands::{Commands, shown};
use environment::Environment;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Which backtraces nsys takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backtraces {
    /// Of synchronising calls.
    Waits,
    /// Of all CUDA calls.
    All,
    None,
}

/// The part of the program that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    Whole,
    /// From cudaProfilerStart to cudaProfilerStop.
    Profiler,
    /// The first NVTX range of this name.
    Nvtx(String),
}

/// What to capture, and how.
#[derive(Clone, Debug)]
pub struct Request {
    pub backtraces: Backtraces,
    pub range: Range,
    /// Seconds from the start until nsys records, and for how long.
    pub delay: Option<u32>,
    pub duration: Option<u32>,
    /// Steps of the optimizer to record, counted from outside the program.
    pub steps: Option<steps::Steps>,
    /// As typed, with `%q{VAR}`, `%h`, `%r` and `%%`.
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
    /// Ctrl-C or a signal came meanwhile.
    pub interrupted: bool,
}

/// A capture that failed, with the exit code that is due.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    pub message: String,
    pub exit: u8,
}

/// What a shell calls a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;
/// nsys ends the program at the end of its range with SIGTERM.
const TERMINATED: u8 = 128 + 15;

/// The commands of a capture, as one would type them, without the values of secrets.
///
/// # Errors
/// One sentence where the name cannot be made.
pub fn printed(request: &Request) -> Result<String> {
    let environment = Environment::read(&request.withhold);
    let stem = stem(&request.name)?;
    let nsys = nsys::find().unwrap_or_else(|| "nsys".into());
    let commands = Commands::new(request, &nsys, request.backtraces, &environment, None);
    let mut text = String::new();
    if !environment.secrets.is_empty() {
        let names = listed(&environment.secrets);
        text += &format!("# The environment has secrets, which are removed from the export: {names}\n");
    }
    let mut lines = [commands.settings(&environment), commands.profile(&stem, request.force)].concat();
    if request.steps.is_some() {
        text += "# Besides, PYTHONPATH begins with a hook that counts the optimizer's steps\n";
    }
    text += &shown(&lines, &environment);
    if let Some(importer) = nsys::importer(&nsys) {
        lines = commands.import(&importer, &stem);
        text += &shown(&lines, &environment);
    }
    Ok(text + &shown(&commands.export(&stem, request.force, true), &environment))
}

/// Captures a program.
///
/// # Errors
/// [`Failed`] where a step of the capture fails, with what it left behind; else one sentence.
pub fn capture(request: &Request, say: &dyn Fn(&str)) -> Result<Captured> {
    let environment = Environment::read(&request.withhold);
    let stem = stem(&request.name)?;
    refuse(&stem, request.force)?;
    let nsys = nsys::find().ok_or_else(|| anyhow!(nsys::MISSING))?;
    let backtraces = nsys::allowed(&nsys, request.backtraces, say);
    let hook = request.steps.as_ref().map(steps::Hook::new).transpose()?;
    let commands = Commands::new(request, &nsys, backtraces, &environment, hook.as_ref());
    let part = Part::beside(&stem);
    let done = part.fill(request, &commands, &environment, &nsys, say);
    part.leave(say);
    let (exit, interrupted, since) = done?;
    let removed = scrub::scrub(&part.with("sqlite"), &environment);
    let own = if removed.is_ok() { stem.clone() } else { with(&stem, "unscrubbed") };
    part.finish(&own, request.force)?;
    let [report, export] = ["nsys-rep", "sqlite"].map(|extension| with(&own, extension));
    let removed = removed.map_err(|error| Failed {
        message: format!(
            "secrets could not be removed ({error:#}): {} and {} hold them: {}",
            report.display(),
            export.display(),
            if environment.secrets.is_empty() {
                "none that is known".to_owned()
            } else {
                listed(&environment.secrets)
            }
        ),
        exit: if exit == 0 { 1 } else { exit },
    })?;
    let since = since.map_or_else(String::new, |s| format!(", {s} s after the end of the program"));
    say(&format!("wrote {} and {}{since}", report.display(), export.display()));
    if !removed.is_empty() {
        let (names, export, report) = (listed(&removed), export.display(), report.display());
        say(&format!("removed from {export}: {names}. {report} still holds them: do not share that file."));
    }
    Ok(Captured { export, exit, interrupted })
}

/// `A, B`: each once, in order.
fn listed(names: &[String]) -> String {
    let names: std::collections::BTreeSet<&str> = names.iter().map(String::as_str).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// The path of a name, without its extension.
fn stem(name: &OsStr) -> Result<PathBuf> {
    let text = name.to_str().ok_or_else(|| anyhow!("-o is no UTF-8"))?;
    let text = [".sqlite", ".nsys-rep"].iter().find_map(|end| text.strip_suffix(end)).unwrap_or(text);
    Ok(environment::expanded(text)?.into())
}

fn with(stem: &Path, extension: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    name.into()
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

/// The files of a capture under their names until it is whole.
struct Part(PathBuf);

impl Part {
    fn beside(stem: &Path) -> Self {
        Self(with(stem, &format!("unfinished-{}", std::process::id())))
    }

    fn with(&self, extension: &str) -> PathBuf {
        with(&self.0, extension)
    }

    /// Records and exports: the program's exit code, whether it was interrupted, and seconds since the program's end.
    fn fill(
        &self,
        request: &Request,
        commands: &Commands,
        environment: &Environment,
        nsys: &Path,
        say: &dyn Fn(&str),
    ) -> Result<(u8, bool, Option<u64>)> {
        let traced = commands.stacks;
        let ran =
            process::record(&commands.profile(&self.0, true), &commands.changes(environment), traced, say)?;
        let exit = if ran.exit == TERMINATED && ends_program(request) { 0 } else { ran.exit };
        let failed = |message: String| {
            let exit = if ran.interrupted {
                INTERRUPTED
            } else if exit == 0 {
                2
            } else {
                exit
            };
            Failed { message, exit }
        };
        if !self.with("nsys-rep").exists() && self.with("qdstrm").exists() {
            let importer = nsys::importer(nsys).ok_or_else(|| {
                failed(format!(
                    "nsys left a .qdstrm file, and there is no QdstrmImporter next to {} to convert it",
                    nsys.display()
                ))
            })?;
            process::quietly(&commands.import(&importer, &self.0))
                .map_err(|said| failed(format!("QdstrmImporter failed: {said}")))?;
            // With backtraces it holds every mapped binary: 2 GB for PyTorch.
            let _ = fs::remove_file(self.with("qdstrm"));
        }
        if !self.with("nsys-rep").exists() {
            let interrupted = if ran.interrupted { "interrupted: " } else { "" };
            let ranged = if ends_program(request) {
                ". The program must reach the range: torch.cuda.profiler.start(), the NVTX range, or the steps"
            } else {
                ""
            };
            return Err(failed(format!(
                "{interrupted}nsys recorded nothing (exit status {}){ranged}",
                ran.exit
            ))
            .into());
        }
        let payloads = nsys::exports_payloads(nsys);
        if !payloads && commands.stacks {
            say("this nsys cannot export Python frames; 2024.5 or newer can");
        }
        process::quietly(&commands.export(&self.0, true, payloads))
            .map_err(|said| failed(format!("nsys could not export its report: {said}")))?;
        Ok((exit, ran.interrupted, ran.ended.map(|ended| ended.elapsed().as_secs())))
    }

    /// Says what a capture that failed left, and removes what is of no use.
    fn leave(&self, say: &dyn Fn(&str)) {
        if self.with("sqlite").exists() {
            return;
        }
        for file in ["nsys-rep", "qdstrm"].map(|extension| self.with(extension)) {
            if file.exists() {
                say(&format!("{} holds what was recorded", file.display()));
            }
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
