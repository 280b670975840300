//! One run of the program in a tree.

use super::tree::Tree;
use super::{Request, printed};
use crate::capture::steps::{CALLS, Hook};
use crate::capture::{Failed, Family, Heard, attended};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How often a running program is looked at: the length of a whole run is known to this.
const LOOK: Duration = Duration::from_millis(1);
/// How long a program may take to heed a signal: what is lost is a copy.
const STUBBORN: Duration = Duration::from_secs(2);
/// Tells the hook where to write, and marks the processes of a run.
const TIMES: &str = "SYNC_REPORT_TIMES";
/// Lines of a program that failed.
const LINES: usize = 5;

/// How many units are run before the clock starts, and timed; none: the whole program.
#[derive(Clone, Copy)]
pub struct Measure {
    pub warm: u32,
    pub units: u32,
}

/// Timed units of one tree.
pub struct Sample {
    /// 0 where the whole program was timed.
    pub units: u64,
    pub ns: i64,
    pub printed: Vec<f64>,
    /// Files of the tree that it loaded; `None` where no Python says.
    pub loaded: Option<Vec<PathBuf>>,
}

impl Sample {
    /// Mean of a unit, in ns.
    pub fn length(&self) -> i64 {
        self.ns / self.units.max(1) as i64
    }
}

/// A line that the hook writes.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Times {
    pub units: u64,
    pub ns: i64,
    /// Batches that a loader may have ready at the start of a turn.
    pub queue: u64,
    pub files: Vec<PathBuf>,
}

pub struct Wanted<'a> {
    pub request: &'a Request,
    /// How long a run, or a turn, may take before it counts as hanging; `None` where nothing is known yet.
    pub patience: Option<Duration>,
    pub hook: &'a Hook,
    pub heard: &'a Heard,
}

impl Wanted<'_> {
    /// Runs the program once: what it took, or its last lines where it failed.
    ///
    /// # Errors
    /// It cannot be started; a signal came.
    pub fn run(&self, tree: &Tree, measure: Measure) -> Result<Result<Sample, String>> {
        // No unit ends a run that is timed as a whole.
        let units = if measure.units == 0 { u32::MAX } else { measure.units };
        let words = format!("{}:{units}", measure.warm.max(1));
        let start = Instant::now();
        let (running, child) = self.start(tree, |_| Ok(("SYNC_REPORT_MEASURE", words.into())))?;
        let family = running.family(&child);
        let (mut told, mut late) = (None, false);
        let status = attended(child, self.heard, LOOK, || {
            told = told.or_else(|| self.heard.any().then(Instant::now));
            late = self.patience.is_some_and(|patience| start.elapsed() > patience);
            if late || told.is_some_and(|told: Instant| told.elapsed() > STUBBORN) {
                family.kill();
            }
        })?;
        let wall = start.elapsed().as_nanos() as i64;
        // Processes that it left running would slow the runs after it.
        family.end();
        if self.heard.any() {
            return Err(Failed::interrupted().into());
        }
        if late {
            return Ok(Err(format!("it had not ended after {} s", start.elapsed().as_secs())));
        }
        Ok(running.ended(status, tree, self.request)?.map(|mut sample| {
            let found = running.times().pop().filter(|found| found.units > 0 && measure.units > 0);
            (sample.units, sample.ns) = found.map_or((0, wall), |found| (found.units, found.ns));
            sample
        }))
    }

    /// Starts the program; `more` is a variable for the hook, with a value that may be in the run's folder.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        &self,
        tree: &Tree,
        more: impl FnOnce(&Path) -> Result<(&'static str, OsString)>,
    ) -> Result<(Running, Child)> {
        let running = Running(tempfile::tempdir()?);
        let mut command = self.command(tree)?;
        let (name, value) = more(running.0.path())?;
        command.env(TIMES, running.path("times")).env(name, value);
        command.env("SYNC_REPORT_TOOL", std::process::id().to_string());
        let [out, err] = ["out", "err"].map(|name| File::create(running.path(name)));
        let child = command.stdout(out?).stderr(err?).stdin(Stdio::null()).spawn();
        let child = child
            .with_context(|| format!("{} cannot be started", self.request.program[0].to_string_lossy()))?;
        Ok((running, child))
    }

    fn command(&self, tree: &Tree) -> Result<Command> {
        let here = std::env::current_dir().context("the working directory is gone")?;
        let (program, arguments) = self.request.program.split_first().context("which program?")?;
        let mut command = Command::new(tree.mapped(program));
        command.args(arguments.iter().map(|word| tree.mapped(word)));
        command
            .current_dir(tree.inside(&here).context("the working directory is not in the tree")?)
            .process_group(0);
        let own = std::env::var_os("PYTHONPATH").unwrap_or_default();
        let own = std::env::split_paths(&own).filter(|path| !path.as_os_str().is_empty());
        let paths = [self.hook.folder().to_owned()]
            .into_iter()
            .chain(own.map(|path| tree.inside(&path).unwrap_or(path)));
        command.env("PYTHONPATH", std::env::join_paths(paths)?);
        if let Some(calls) = &self.request.calls {
            command.env(CALLS, calls);
        }
        Ok(command)
    }
}

/// The folder of a run: what it printed, and what its hook wrote.
pub struct Running(TempDir);

impl Running {
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn family(&self, child: &Child) -> Family {
        let mut mark = OsString::from(TIMES);
        mark.push("=");
        mark.push(self.path("times"));
        Family { leader: child.id(), mark }
    }

    /// The lines that the hook has written.
    pub fn times(&self) -> Vec<Times> {
        let text = fs::read_to_string(self.path("times")).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect()
    }

    /// The numbers that the program printed and the files that it loaded, or its last lines where it failed.
    ///
    /// # Errors
    /// The program's output cannot be read.
    pub fn ended(
        &self,
        status: ExitStatus,
        tree: &Tree,
        request: &Request,
    ) -> Result<Result<Sample, String>> {
        let read = |name| fs::read(self.path(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let printed = read("out")?;
        if !status.success() {
            let said = read("err")?;
            let lines: Vec<&str> =
                printed.lines().chain(said.lines()).filter(|line| !line.trim().is_empty()).collect();
            return Ok(Err(format!("{status}\n{}", lines[lines.len().saturating_sub(LINES)..].join("\n"))));
        }
        // Loggers write to the other stream.
        let numbers = |text: &str| printed::numbers(text, request.metric.as_ref());
        let mut printed = numbers(&printed);
        if printed.is_empty() {
            printed = numbers(&read("err")?);
        }
        let files: Vec<PathBuf> = self.times().into_iter().flat_map(|line| line.files).collect();
        let loaded =
            (!files.is_empty()).then(|| files.iter().filter_map(|file| tree.relative(file)).collect());
        Ok(Ok(Sample { units: 0, ns: 0, printed, loaded }))
    }
}
