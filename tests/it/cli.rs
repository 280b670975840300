//! The program as it is called: exit codes, streams, files.

use crate::hostile;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

mod fixes;
mod inputs;
mod journals;
mod options;
mod reports;
mod sources;
#[cfg(unix)]
mod whole;

pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).expect("JSON")
    }

    /// Asserts exit code 0.
    pub fn good(&self) -> &Self {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    /// Asserts exit code 2, no stdout, and one line of stderr with these words.
    pub fn refused(&self, why: &str) {
        let said = (self.code, self.stdout.as_str(), self.stderr.lines().count());
        assert_eq!(said, (2, "", 1), "{}", self.stderr);
        assert!(self.stderr.contains(why), "{why}: {}", self.stderr);
    }
}

/// The program, its environment as in a pipe of a plain shell.
pub fn command() -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("sync-report"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "RUST_BACKTRACE"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

pub fn program<S: AsRef<OsStr>>(arguments: &[S]) -> Ran {
    ran(command().args(arguments))
}

pub fn ran(command: &mut Command) -> Ran {
    let out = command.output().expect("the program runs");
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    let ran = Ran {
        code: out.status.code().unwrap_or_else(|| panic!("a signal ended it: {}", text(out.stderr.clone()))),
        stdout: text(out.stdout),
        stderr: text(out.stderr),
    };
    for sign in ["panicked", "RUST_BACKTRACE", "stack backtrace"] {
        assert!(!ran.stderr.contains(sign), "{}", ran.stderr);
    }
    ran
}

pub fn sample(name: &str) -> String {
    format!("{}/sample-profiles/{name}.sqlite", env!("CARGO_MANIFEST_DIR"))
}

fn good(folder: &Path) -> String {
    hostile::good(folder).display().to_string()
}

/// Bytes and time of change: neither may differ after a run.
fn state(path: &Path) -> Option<(Vec<u8>, SystemTime)> {
    let bytes = std::fs::read(path).ok()?;
    Some((bytes, path.metadata().ok()?.modified().ok()?))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
