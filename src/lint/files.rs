//! The Python files below paths, and facts of the whole program in their texts.

use crate::model::{Code, Warning};
use crate::profile::parallel::divided;
use crate::repository::checkout_of;
use crate::verdict::source::Beside;
use anyhow::{Result, bail};
use ignore::{DirEntry, WalkBuilder};
use memchr::memmem;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Most files and bytes of a repository that are searched for facts of the program.
const MOST_FILES: usize = 2_000;
const MOST_BYTES: u64 = 64 << 20;

#[derive(Clone, Debug)]
pub(super) struct Named {
    pub shown: String,
    pub recorded: String,
}

/// The Python files below some paths, in the order of their names.
#[derive(Debug)]
pub struct Tree {
    pub(super) files: Vec<Named>,
    pub(super) warnings: Vec<Warning>,
}

pub(super) fn recorded(shown: &str) -> String {
    std::path::absolute(shown).map_or_else(|_| shown.to_owned(), |path| path.to_string_lossy().into_owned())
}

impl Tree {
    /// Walks folders, except hidden ones, ones ignored by git, and installed packages.
    ///
    /// # Errors
    /// A path that is not there or is no Python file, or no Python file below all of them.
    pub fn below(paths: &[PathBuf]) -> Result<Self> {
        let mut shown = BTreeSet::new();
        let mut warnings = Vec::new();
        let mut refuse = |message: String| {
            warnings.push(Warning::new(Code::SourceRefused, message, "mend the path, or leave it out"));
        };
        for path in paths {
            let Ok(about) = fs::metadata(path) else { bail!("{}: no such file or folder", path.display()) };
            if !about.is_dir() && !is_python(path) {
                bail!("{}: is no Python file (.py) and no folder", path.display());
            }
            for entry in walk(path) {
                match entry {
                    Ok(entry) if is_file(&entry) && is_python(entry.path()) => match entry.path().to_str() {
                        Some(name) => {
                            shown.insert(name.strip_prefix("./").unwrap_or(name).to_owned());
                        }
                        None => refuse(format!("{} has a name that is not UTF-8", entry.path().display())),
                    },
                    Ok(_) => {}
                    Err(error) => refuse(format!("{error}")),
                }
            }
        }
        if shown.is_empty() {
            let folders: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            bail!("{}: no Python file (.py) here", folders.join(", "));
        }
        let mut seen = BTreeSet::new();
        let mut files: Vec<Named> =
            shown.into_iter().map(|shown| Named { recorded: recorded(&shown), shown }).collect();
        files.retain(|file| seen.insert(file.recorded.clone()));
        Ok(Self { files, warnings })
    }
}

fn walk(path: &Path) -> ignore::Walk {
    let mut walk = WalkBuilder::new(path);
    walk.require_git(false).filter_entry(|entry| entry.depth() == 0 || !is_installed(entry));
    walk.build()
}

fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| !kind.is_dir())
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

fn is_installed(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    let known = matches!(&*name, "__pycache__" | "site-packages" | "dist-packages" | "node_modules");
    known || entry.path().join("pyvenv.cfg").is_file()
}

/// The folder of a file's program: the checkout around it, else the file's own folder.
pub(super) fn program(file: &Path) -> PathBuf {
    let own = file.parent().unwrap_or(Path::new("."));
    checkout_of(own).unwrap_or(own).to_owned()
}

/// The Python files of folders; `None` above [`MOST_FILES`] or [`MOST_BYTES`].
pub(super) fn within_bounds(roots: impl IntoIterator<Item = PathBuf>) -> Option<Vec<PathBuf>> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    for root in roots {
        for path in walk(&root).flatten().map(DirEntry::into_path).filter(|path| is_python(path)) {
            // Reading a FIFO would wait for its writer.
            let Some(about) = fs::metadata(&path).ok().filter(fs::Metadata::is_file) else { continue };
            bytes += about.len();
            files.push(path);
            if files.len() > MOST_FILES || bytes > MOST_BYTES {
                return None;
            }
        }
    }
    Some(files)
}

/// Streams, devices and asynchronous copies named in a program's files. A program too large to search counts
/// as using all of them: edits then rely on nothing.
pub(super) fn beside(files: &[Named], threads: usize) -> Beside {
    const STREAMS: [&str; 2] = ["Stream(", "cuda.stream"];
    const DEVICES: [&str; 3] = ["cuda:1", "DataParallel", "device_map"];
    const IN_FLIGHT: [&str; 2] = ["non_blocking", "pin_memory"];
    let roots: BTreeSet<PathBuf> = files.iter().map(|file| program(Path::new(&file.recorded))).collect();
    let Some(all) = within_bounds(roots) else {
        return Beside { streams: 2, devices: true, in_flight: true };
    };
    let named = divided(all.len(), threads, |at| {
        let text = fs::read(&all[at]).unwrap_or_default();
        let says = |words: &[&str]| words.iter().any(|word| memmem::find(&text, word.as_bytes()).is_some());
        [says(&STREAMS), says(&DEVICES), says(&IN_FLIGHT)]
    });
    let any = |at: usize| named.iter().any(|one| one[at]);
    Beside { streams: if any(0) { 2 } else { 1 }, devices: any(1), in_flight: any(2) }
}
