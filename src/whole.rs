//! Files that are written whole or not at all.
//!
//! ```text
//!  NAME             old ─────────────────────────│ new
//!  beside it        [create][write …][sync][mode]│rename
//! ```
//! A signal, a full disk or a crash before the rename leaves the old file, and at most a hidden one beside it.

use anyhow::{Context, Result, bail};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that is being written. Dropped without [`Whole::finish`], it leaves no trace.
pub struct Whole {
    out: Out,
    /// Final path, links resolved.
    target: PathBuf,
    name: String,
    old: Option<fs::Metadata>,
}

enum Out {
    Beside(NamedTempFile),
    /// A device or pipe, which cannot be replaced.
    Direct(File),
}

impl Whole {
    /// Begins to write the file behind `path`: a link stays a link.
    ///
    /// # Errors
    /// One sentence where the file or its folder cannot be written.
    pub fn begin(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let cannot = || format!("{name}: cannot be written");
        let target = leads_to(path);
        let old = fs::metadata(&target).ok();
        if let Some(old) = &old {
            // A rename would replace even a read-only file.
            let file = OpenOptions::new().write(true).open(&target).with_context(cannot)?;
            if !old.is_file() {
                return Ok(Self { out: Out::Direct(file), target, name, old: None });
            }
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        builder.prefix(".sync-report-").permissions(of_new_file());
        let file = builder.tempfile_in(folder.unwrap_or(Path::new("."))).with_context(cannot)?;
        Ok(Self { out: Out::Beside(file), target, name, old })
    }

    /// Replaces the old file, keeping its mode, and its owner where allowed.
    ///
    /// # Errors
    /// One sentence; the old file is as it was.
    pub fn finish(self) -> Result<()> {
        let Out::Beside(file) = self.out else { return Ok(()) };
        let cannot = || format!("{}: cannot be written", self.name);
        if let Some(old) = &self.old {
            keep(file.as_file(), old).with_context(cannot)?;
        }
        file.as_file().sync_all().with_context(cannot)?;
        file.persist(&self.target).with_context(cannot)?;
        Ok(())
    }

    /// As [`Self::finish`], but fails if the file exists.
    ///
    /// # Errors
    /// One sentence; an existing file stays.
    pub fn finish_new(self) -> Result<()> {
        let Out::Beside(file) = self.out else { bail!("{}: is there already", self.name) };
        file.as_file().sync_all().with_context(|| format!("{}: cannot be written", self.name))?;
        match file.persist_noclobber(&self.target) {
            Ok(_) => Ok(()),
            Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => {
                bail!("{}: is there already", self.name)
            }
            Err(e) => Err(e.error).with_context(|| format!("{}: cannot be written", self.name)),
        }
    }

    /// Whether the old file has other names (hard links), which keep the old content.
    pub fn has_other_names(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            self.old.as_ref().is_some_and(|old| old.nlink() > 1)
        }
        #[cfg(not(unix))]
        false
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Out::Beside(file) => file.as_file_mut().write(bytes),
            Out::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.out {
            Out::Beside(file) => file.as_file_mut().flush(),
            Out::Direct(file) => file.flush(),
        }
    }
}

pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = Whole::begin(path)?;
    file.write_all(bytes).with_context(|| format!("{}: cannot be written", path.display()))?;
    file.finish()
}

/// The file behind links, even if the last link is dangling.
fn leads_to(path: &Path) -> PathBuf {
    let dangling = || {
        let target = fs::read_link(path).ok()?;
        Some(path.parent().unwrap_or(Path::new("")).join(target))
    };
    fs::canonicalize(path).ok().or_else(dangling).unwrap_or_else(|| path.to_owned())
}

/// Mode of any new file, before the user's umask.
#[cfg(unix)]
fn of_new_file() -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    Permissions::from_mode(0o666)
}

#[cfg(unix)]
fn keep(file: &File, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may give a file away; the mode matters more.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn keep(_: &File, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}
