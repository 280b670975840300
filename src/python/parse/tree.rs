//! Opening the files that a profile names, safely: the paths come from the profile, which may come from anywhere.

use super::file::Source;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Larger files are not hand-written Python.
const MAX_BYTES: u64 = 4 << 20;
/// A recorded path with more components is no path; the limit also bounds the suffixes tried.
const MAX_COMPONENTS: usize = 64;

/// Where recorded source files are found on this machine: `--source-root [OLD=]NEW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRoot {
    /// Prefix of recorded paths that `new` replaces; `None`: look for the recorded path's suffixes below `new`.
    pub old: Option<String>,
    pub new: PathBuf,
}

/// Recorded paths that may be opened where no root resolves them: a capture may name any local file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recorded {
    #[default]
    None,
    /// Installed packages, which hold no secrets.
    Packages,
    All,
}

/// The Python files of a run, each read and parsed once, or the reason why one is refused. Keyed by canonical
/// path, so that two recorded paths of one file share it.
#[derive(Clone, Debug, Default)]
pub struct SourceFiles(Arc<Mutex<Files>>);

type Files = HashMap<PathBuf, Arc<OnceLock<Result<Arc<Source>, String>>>>;

#[derive(Debug, Default)]
pub struct SourceTree {
    roots: Vec<SourceRoot>,
    recorded: Recorded,
    files: SourceFiles,
    /// By recorded path.
    found: RefCell<HashMap<String, Option<Arc<Source>>>>,
    refused: RefCell<Vec<Refused>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub path: PathBuf,
    /// The end of a sentence: "is larger than 4 MiB".
    pub reason: String,
}

impl SourceFiles {
    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `Err` is the reason of a refusal.
    fn read(&self, canonical: PathBuf) -> Result<Arc<Source>, String> {
        let file = self.lock().entry(canonical.clone()).or_default().clone();
        file.get_or_init(|| Ok(Arc::new(Source::parse(read(&canonical)?)?))).clone()
    }
}

impl SourceTree {
    /// Files are looked for below `roots`, in order; recorded paths themselves are not opened (see [`Self::and_recorded`]).
    pub fn new(roots: Vec<SourceRoot>) -> Self {
        Self { roots, ..Self::default() }
    }

    #[must_use]
    pub fn and_recorded(mut self, which: Recorded) -> Self {
        self.recorded = which;
        self
    }

    /// Shares files that other trees may have read.
    #[must_use]
    pub fn of(mut self, files: &SourceFiles) -> Self {
        self.files = files.clone();
        self
    }

    pub fn refused(&self) -> Vec<Refused> {
        self.refused.borrow().clone()
    }

    pub fn holds(&self, recorded: &str) -> bool {
        self.open(recorded).is_some()
    }

    /// Path on this machine of the file that was read as `source`.
    pub(crate) fn place(&self, recorded: &str, source: &Arc<Source>) -> Option<PathBuf> {
        let files = self.files.lock();
        let is_it = |path: &PathBuf| {
            let known = path.canonicalize().ok().and_then(|path| files.get(&path)?.get()?.as_ref().ok());
            known.is_some_and(|known| Arc::ptr_eq(known, source))
        };
        self.candidates(recorded).into_iter().map(|(path, _)| path).find(is_it)
    }

    /// The parsed file of a recorded path; `None` where there is none or it was refused.
    pub(crate) fn open(&self, recorded: &str) -> Option<Arc<Source>> {
        if let Some(known) = self.found.borrow().get(recorded) {
            return known.clone();
        }
        let source = self.candidates(recorded).into_iter().find_map(|(path, root)| self.load(&path, root));
        self.found.borrow_mut().insert(recorded.to_owned(), source.clone());
        source
    }

    /// Paths on this machine that may be the recorded one, best first, each with the root that it must not leave.
    pub(crate) fn candidates(&self, recorded: &str) -> Vec<(PathBuf, Option<&Path>)> {
        let parts = components(recorded);
        if parts.is_empty() || parts.len() > MAX_COMPONENTS || recorded.contains('\0') {
            return Vec::new();
        }
        let mut paths = Vec::new();
        for SourceRoot { old, new } in &self.roots {
            let rests: Vec<&[&str]> = match old {
                Some(old) => parts.strip_prefix(components(old).as_slice()).into_iter().collect(),
                None => (0..parts.len()).map(|skip| &parts[skip..]).collect(),
            };
            let named = rests.into_iter().filter(|rest| !rest.is_empty());
            let below = |rest: &[&str]| new.join(rest.iter().collect::<PathBuf>());
            paths.extend(named.map(|rest| (below(rest), Some(new.as_path()))));
        }
        let as_it_stands = match self.recorded {
            Recorded::None => false,
            Recorded::Packages => is_installed(&parts),
            Recorded::All => true,
        };
        paths.extend(as_it_stands.then(|| (PathBuf::from(recorded), None)));
        paths
    }

    /// Reads one candidate. An absent file is skipped silently, a refused one is noted.
    fn load(&self, path: &Path, root: Option<&Path>) -> Option<Arc<Source>> {
        let canonical = path.canonicalize().ok()?;
        if canonical.is_dir() {
            return None;
        }
        if let Some(root) = root
            && !root.canonicalize().is_ok_and(|root| canonical.starts_with(root))
        {
            self.refuse(path, "leads out of its source root".into());
            return None;
        }
        self.files.read(canonical).map_err(|reason| self.refuse(path, reason)).ok()
    }

    fn refuse(&self, path: &Path, reason: String) {
        let refused = Refused { path: path.to_owned(), reason };
        let mut all = self.refused.borrow_mut();
        if !all.contains(&refused) {
            all.push(refused);
        }
    }
}

fn is_installed(parts: &[&str]) -> bool {
    let packages = |part: &&str| matches!(*part, "site-packages" | "dist-packages");
    let library = |pair: &[&str]| matches!(pair[0], "lib" | "lib64") && pair[1].starts_with("python3.");
    !parts.contains(&"..") && (parts.iter().any(packages) || parts.windows(2).any(library))
}

/// The named components of a recorded path, from any system: `C:\work\a.py` gives `work`, `a.py`.
fn components(path: &str) -> Vec<&str> {
    let windows = !path.starts_with('/') && path.contains('\\');
    let path = match path.split_once(':') {
        Some((drive, rest)) if drive.len() == 1 && (windows || rest.starts_with('/')) => rest,
        _ => path,
    };
    let parts = path.split(|c| c == '/' || (windows && c == '\\'));
    parts.filter(|part| !matches!(*part, "" | ".")).collect()
}

/// Reads a regular file of bounded size. The type is checked before opening, because opening a FIFO waits for
/// a writer and opening a device may act on it. The open file is checked again: the name may mean another
/// file by then.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let acceptable = |metadata: std::fs::Metadata| {
        if !metadata.is_file() {
            return Err("is no regular file".to_owned());
        }
        if metadata.len() > MAX_BYTES {
            return Err("is larger than 4 MiB".to_owned());
        }
        Ok(())
    };
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    acceptable(path.metadata().map_err(failed)?)?;
    let file = open_without_waiting(path).map_err(failed)?;
    acceptable(file.metadata().map_err(failed)?)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err("is larger than 4 MiB".to_owned());
    }
    Ok(bytes)
}

/// Opens for reading; on Linux a FIFO that took the file's place since the check does not block either.
fn open_without_waiting(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        use std::os::unix::fs::OpenOptionsExt;
        const O_NONBLOCK: i32 = 0o4000;
        options.custom_flags(O_NONBLOCK);
    }
    options.open(path)
}
