//! Finds nsys, and asks what it may and can do.

use super::Backtraces;
use super::process::{is_program, on_path};
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MISSING: &str = "nsys not found: install Nsight Systems (NVIDIA's package nsight-systems-cli, conda-forge's nsight-systems, or Debian's \
nsight-systems), or say where it is in $NSYS";

/// `$NSYS`, else on the PATH, in NVIDIA's folders, or last inside Nsight Compute, whose nsys does not convert its recordings.
///
/// # Errors
/// One sentence where there is none.
pub fn found() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("NSYS").filter(|named| !named.is_empty()).map(PathBuf::from) {
        return Some(named.clone())
            .filter(|named| is_program(named))
            .with_context(|| format!("NSYS is {}, which is no program", named.display()));
    }
    let patterns = [
        "/opt/nvidia/nsight-systems/*/bin/nsys",
        "/opt/nvidia/nsight-systems-cli/*/bin/nsys",
        "/usr/local/cuda/bin/nsys",
        "/opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
    ];
    on_path(OsStr::new("nsys"))
        .or_else(|| patterns.iter().find_map(|pattern| newest(Path::new(pattern))))
        .context(MISSING)
}

/// The program that converts a recording of Nsight Compute's nsys.
pub fn importer(nsys: &Path) -> Option<PathBuf> {
    let nsys = std::fs::canonicalize(nsys).unwrap_or_else(|_| nsys.to_owned());
    newest(&nsys.parent()?.parent()?.join("linux-desktop-*/QdstrmImporter"))
}

/// The last program, by name, of those that a pattern with `*` in its folders' names matches.
fn newest(pattern: &Path) -> Option<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let part = part.as_os_str();
        match part.to_str().and_then(|text| text.split_once('*')) {
            None => found.iter_mut().for_each(|path| path.push(part)),
            Some((begins, ends)) => {
                let fits = |name: &OsStr| {
                    name.to_str().is_some_and(|name| name.starts_with(begins) && name.ends_with(ends))
                };
                let inside = |folder: PathBuf| {
                    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
                    entries.filter(|entry| fits(&entry.file_name())).map(|entry| entry.path())
                };
                found = found.into_iter().flat_map(inside).collect();
            }
        }
    }
    found.retain(|path| is_program(path));
    found.into_iter().max_by_key(|path| numbers(path))
}

/// The numbers of a path, so that 2025.10 is newer than 2025.3.
fn numbers(path: &Path) -> Vec<u64> {
    let text = path.to_string_lossy();
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// The backtraces that nsys may take here; says so where it may take none.
pub fn allowed(nsys: &Path, wanted: Backtraces, say: &dyn Fn(&str)) -> Backtraces {
    if wanted == Backtraces::None {
        return wanted;
    }
    let answer = asked(nsys, &["status", "-e"]);
    if !answer.contains("(process-tree): Fail") {
        return wanted;
    }
    let level = answer.split_once("Paranoid Level = ").map_or("not known", |(_, rest)| {
        rest.split(|c: char| !c.is_ascii_digit() && c != '-').next().unwrap_or("not known")
    });
    say(&format!(
        "nsys may not take backtraces here (kernel.perf_event_paranoid is {level}): Python is sampled instead, and its lines are probable, not exact."
    ));
    say(
        "For exact lines run `sudo sysctl kernel.perf_event_paranoid=2`, or run as root, in a container with --cap-add=SYS_ADMIN.",
    );
    Backtraces::Sampled
}

/// Whether a session runs; of one that is not there, `nsys start` makes a new one. Another form of the answer says nothing.
pub fn has_session(nsys: &Path, name: &str) -> bool {
    let answer = asked(nsys, &["sessions", "list"]);
    let mut rows = answer.lines().map(|line| line.split_whitespace().next_back().unwrap_or_default());
    !answer.contains("LAUNCH NAME") || rows.any(|last| last == name)
}

/// Whether the export can hold Python frames: versions before 2024.5 do not know the flag.
pub fn exports_payloads(nsys: &Path) -> bool {
    asked(nsys, &["export", "--help"]).contains("--include-json")
}

fn asked(nsys: &Path, arguments: &[&str]) -> String {
    let answer = Command::new(nsys).args(arguments).stdin(Stdio::null()).output();
    answer.map_or_else(
        |_| String::new(),
        |out| String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned(),
    )
}
