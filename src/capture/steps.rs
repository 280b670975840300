//! Recording some steps of a program that does not say where they are: its steps are counted from outside.
//!
//! ```text
//!  --steps 5:25      [step 1] … [step 5]│[step 6] … [step 25]│ nsys ends the program
//!                                       cudaProfilerStart     cudaProfilerStop
//! ```
//! A folder at the front of `PYTHONPATH` holds a `sitecustomize` that adds PyTorch's global hook of optimizer steps (2.0 and newer)
//! as torch is imported. The steps of the first optimizer that steps are counted; in a program without one those of the package's
//! bracket, or calls of a function.

use super::environment::Environment;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fmt::{self, Display};
use std::path::Path;
use std::str::FromStr;
use tempfile::TempDir;

/// The variable that says which steps.
pub const VARIABLE: &str = "SYNC_REPORT_STEPS";
/// The variable that names a function, whose calls are counted instead.
pub const CALLS: &str = "SYNC_REPORT_CALLS";

/// The part between the end of step `from` and the end of step `to`, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    from: u32,
    to: u32,
}

impl FromStr for Steps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers =
            text.split_once(':').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let wanted = || format!("`{text}` is not A:B, two numbers of steps with 1 ≤ A < B");
        numbers
            .filter(|(from, to)| 1 <= *from && from < to)
            .map(|(from, to)| Self { from, to })
            .ok_or_else(wanted)
    }
}

impl Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.from, self.to)
    }
}

/// How far the program came, by what the hook left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    Nothing,
    /// Python loaded the hook.
    Python,
    /// The program imported the module of the optimizers, or of the function.
    Steps,
}

/// The folder with the hook, while the program runs.
pub struct Hook(TempDir);

impl Hook {
    /// # Errors
    /// No temporary folder can be written.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir().context("no temporary folder for the hook that counts steps")?;
        std::fs::write(folder.path().join("sitecustomize.py"), include_str!("hook.py"))
            .context("the hook that counts steps cannot be written")?;
        Ok(Self(folder))
    }

    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    pub fn reached(&self) -> Reached {
        let left = |name: &str| self.0.path().join(name).exists();
        match (left("loaded"), left("counts")) {
            (_, true) => Reached::Steps,
            (true, _) => Reached::Python,
            _ => Reached::Nothing,
        }
    }

    /// `PYTHONPATH` with the hook's folder first.
    pub(super) fn path(&self, environment: &Environment) -> (OsString, OsString) {
        let mut path = self.0.path().as_os_str().to_owned();
        if let Some(own) = environment.passed("PYTHONPATH") {
            path.push(":");
            path.push(own);
        }
        ("PYTHONPATH".into(), path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_two_numbers() {
        assert_eq!("5:25".parse::<Steps>().map(|steps| steps.to_string()), Ok("5:25".to_owned()));
        for text in ["", "5", "0:3", "5:5", "7:3", "a:b", "1:2:3", "-1:2"] {
            assert!(text.parse::<Steps>().is_err(), "{text}");
        }
    }
}
