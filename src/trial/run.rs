//! One run of the program in a tree.

use super::tree::Tree;
use super::{Request, printed};
use crate::capture::steps::{CALLS, Hook};
use crate::capture::{Failed, Heard, attended, end_group};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often a running program is looked at: the length of a whole run is known to this.
const LOOK: Duration = Duration::from_millis(1);
/// Lines of a program that failed.
const LINES: usize = 5;

/// How many units are run before the clock starts, and timed; none: the whole program.
#[derive(Clone, Copy)]
pub struct Measure {
    pub warm: u32,
    pub units: u32,
}

/// One run, timed.
pub struct Sample {
    /// 0 where the whole program was timed.
    pub units: u64,
    ns: i64,
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

/// The file that the hook writes.
#[derive(Default, Deserialize)]
struct Times {
    units: u64,
    ns: i64,
    files: Vec<PathBuf>,
}

pub struct Wanted<'a> {
    pub request: &'a Request,
    pub hook: &'a Hook,
    pub heard: &'a Heard,
}

impl Wanted<'_> {
    /// Runs the program once: what it took, or its last lines where it failed.
    ///
    /// # Errors
    /// It cannot be started; a signal came.
    pub fn run(&self, tree: &Tree, measure: Measure) -> Result<Result<Sample, String>> {
        let work = tempfile::tempdir()?;
        let [times, out, err] = ["times", "out", "err"].map(|name| work.path().join(name));
        let mut command = self.command(tree, measure, &times)?;
        command.stdout(File::create(&out)?).stderr(File::create(&err)?).stdin(Stdio::null());
        let start = Instant::now();
        let child = command.spawn();
        let child = child
            .with_context(|| format!("{} cannot be started", self.request.program[0].to_string_lossy()))?;
        let leader = child.id();
        let status = attended(child, self.heard, LOOK, || {})?;
        let wall = start.elapsed().as_nanos() as i64;
        // Processes that it left running would slow the runs after it.
        end_group(leader);
        if self.heard.any() {
            return Err(Failed::interrupted().into());
        }
        let read = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if !status.success() {
            let (said, printed) = (read(&err)?, read(&out)?);
            let lines: Vec<&str> =
                printed.lines().chain(said.lines()).filter(|line| !line.trim().is_empty()).collect();
            return Ok(Err(format!("{status}\n{}", lines[lines.len().saturating_sub(LINES)..].join("\n"))));
        }
        let found: Times =
            fs::read(&times).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let timed = found.units > 0 && measure.units > 0;
        Ok(Ok(Sample {
            units: if timed { found.units } else { 0 },
            ns: if timed { found.ns } else { wall },
            printed: printed::numbers(&read(&out)?, self.request.metric.as_ref()),
            loaded: (!found.files.is_empty())
                .then(|| found.files.iter().filter_map(|file| tree.relative(file)).collect()),
        }))
    }

    fn command(&self, tree: &Tree, measure: Measure, times: &Path) -> Result<Command> {
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
        command.env("SYNC_REPORT_TIMES", times);
        // No unit ends a run that is timed as a whole.
        let units = if measure.units == 0 { u32::MAX } else { measure.units };
        command.env("SYNC_REPORT_MEASURE", format!("{}:{units}", measure.warm.max(1)));
        if let Some(calls) = &self.request.calls {
            command.env(CALLS, calls);
        }
        Ok(command)
    }
}
