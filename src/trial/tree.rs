//! A copy of the user's tree, in which the program runs: the tree itself is never written.
//!
//! Folders are real, files are copied. Large files, and folders of many files without Python, are
//! data: links lead to them, and the notes name them. `.git` and virtual environments are left out, or linked.

use crate::capture::{Failed, Heard};
use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Bytes above which a file is data.
const LARGE: u64 = 64 << 20;
/// Files above which a folder without Python is data.
const MANY: usize = 1_000;
/// Bytes that are copied at most.
const MOST: u64 = 4 << 30;

/// A copy, removed at its end.
pub struct Tree {
    folder: TempDir,
    origin: PathBuf,
    /// Parts that are not copied.
    pub shared: Vec<PathBuf>,
}

impl Tree {
    /// # Errors
    /// The tree cannot be read, or holds too much; a signal came.
    pub fn copy(origin: &Path, heard: &Heard) -> Result<Self> {
        let origin =
            origin.canonicalize().with_context(|| format!("{}: cannot be read", origin.display()))?;
        let folder = tempfile::Builder::new().prefix("sync-report-try-").tempdir()?;
        let mut tree = Self { folder, origin, shared: Vec::new() };
        tree.fill(Path::new(""), &mut 0, heard)?;
        Ok(tree)
    }

    fn fill(&mut self, folder: &Path, bytes: &mut u64, heard: &Heard) -> Result<()> {
        if heard.any() {
            return Err(Failed::interrupted().into());
        }
        let entries = fs::read_dir(self.origin.join(folder));
        for entry in
            entries.with_context(|| format!("{}: cannot be read", self.origin.join(folder).display()))?
        {
            let entry = entry?;
            let (own, meta) = (folder.join(entry.file_name()), entry.metadata()?);
            let (from, to) = (self.origin.join(&own), self.path(&own));
            let is_left = entry.file_name() == ".git" || entry.file_name() == "__pycache__";
            if is_left {
                continue;
            }
            if meta.is_dir() {
                if from.join("pyvenv.cfg").exists() || entry.file_name() == "node_modules" || is_data(&from) {
                    symlink(&from, &to)?;
                    self.shared.push(own);
                } else {
                    fs::create_dir(&to)?;
                    self.fill(&own, bytes, heard)?;
                }
            } else if meta.is_file() && meta.len() <= LARGE {
                *bytes += meta.len();
                if *bytes > MOST {
                    bail!(
                        "{} holds more than {} in small files, too much to copy; start in a smaller folder",
                        self.origin.display(),
                        crate::text::bytes(MOST)
                    );
                }
                fs::copy(&from, &to).with_context(|| format!("{}: cannot be copied", from.display()))?;
            } else if meta.is_file() {
                symlink(&from, &to)?;
                self.shared.push(own);
            } else if meta.is_symlink() {
                // Leads out of the tree, or to what is copied too.
                let leads = fs::canonicalize(&from).unwrap_or_else(|_| from.clone());
                match leads.strip_prefix(&self.origin) {
                    Ok(inside) => symlink(self.path(inside), &to)?,
                    Err(_) => {
                        symlink(&leads, &to)?;
                        self.shared.push(own);
                    }
                }
            }
        }
        Ok(())
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Where a file of the origin is here.
    pub fn path(&self, relative: &Path) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// A word of a command with a path of the origin, as one of this tree: `PATH`, `--option=PATH`; others as they are.
    pub fn mapped(&self, word: &OsStr) -> OsString {
        let text = word.to_string_lossy();
        let (option, path) = match text.split_once('=').filter(|(option, _)| option.starts_with('-')) {
            Some((option, path)) => (format!("{option}="), Path::new(path)),
            None => (String::new(), Path::new(word)),
        };
        match path.is_absolute().then(|| self.inside(path)).flatten() {
            Some(inside) => {
                let mut word = OsString::from(option);
                word.push(inside);
                word
            }
            None => word.to_owned(),
        }
    }

    /// Where a path of the origin is here, through whatever links it leads there; it need not exist.
    pub fn inside(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().or_else(|_| {
            let parent = path.parent().unwrap_or(path).canonicalize()?;
            Ok::<_, std::io::Error>(path.file_name().map_or(parent.clone(), |name| parent.join(name)))
        });
        real.ok()?.strip_prefix(&self.origin).ok().map(|relative| self.path(relative))
    }

    /// The path in the tree of a file that was loaded from here.
    pub fn relative(&self, file: &Path) -> Option<PathBuf> {
        let root = self.folder.path().canonicalize().ok()?;
        file.strip_prefix(self.folder.path()).or_else(|_| file.strip_prefix(root)).ok().map(Path::to_owned)
    }

    /// Replaces a file; `None` removes it.
    ///
    /// # Errors
    /// It lies in a folder that is not copied, or cannot be written.
    pub fn write(&self, relative: &Path, text: Option<&[u8]>) -> Result<()> {
        let path = self.path(relative);
        // A link to a folder leads to the user's own.
        let folders = relative.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        if let Some(linked) = folders.map(|folder| self.path(folder)).find(|folder| folder.is_symlink()) {
            bail!("{} lies in {}, which is data and not copied", relative.display(), linked.display());
        }
        let mode = path.metadata().ok().map(|meta| meta.permissions());
        let _ = fs::remove_file(&path);
        let Some(text) = text else { return Ok(()) };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text).with_context(|| format!("{}: cannot be written", path.display()))?;
        if let Some(mode) = mode {
            fs::set_permissions(&path, mode)?;
        }
        Ok(())
    }
}

/// Whether a folder holds many files, and no Python.
fn is_data(folder: &Path) -> bool {
    let mut left = vec![folder.to_owned()];
    let mut files = 0;
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(entry.path()),
                Ok(_) if entry.path().extension() == Some(OsStr::new("py")) => return false,
                _ => files += 1,
            }
        }
    }
    files > MANY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_a_copy_stays_there() {
        let origin = tempfile::tempdir().expect("a folder");
        let at = |path: &str| origin.path().join(path);
        fs::create_dir_all(at("pkg")).expect("made");
        fs::create_dir_all(at("data")).expect("made");
        fs::create_dir_all(at(".git")).expect("made");
        fs::write(at("pkg/a.py"), "a = 1\n").expect("written");
        symlink(at("pkg/a.py"), at("link.py")).expect("linked");
        (0..=MANY).for_each(|n| fs::write(at(&format!("data/{n}")), "x").expect("written"));
        let heard = Heard::listen().expect("signals are heard");
        let tree = Tree::copy(origin.path(), &heard).expect("copied");
        assert_eq!(tree.shared, [Path::new("data")]);
        assert!(!tree.path(Path::new(".git")).exists());
        tree.write(Path::new("pkg/a.py"), Some(b"a = 2\n")).expect("written");
        let read = |path: PathBuf| fs::read_to_string(path).expect("it is there");
        assert_eq!(
            (read(at("pkg/a.py")), read(tree.path(Path::new("link.py")))),
            ("a = 1\n".into(), "a = 2\n".into())
        );
        let own = origin.path().canonicalize().expect("it is there");
        assert_eq!(tree.mapped(own.join("pkg/a.py").as_os_str()), tree.path(Path::new("pkg/a.py")));
        symlink(&own, at("../again"))
            .or_else(|_| fs::remove_file(at("../again")).and_then(|()| symlink(&own, at("../again"))))
            .expect("linked");
        assert_eq!(tree.mapped(at("../again/pkg/new.txt").as_os_str()), tree.path(Path::new("pkg/new.txt")));
        fs::remove_file(at("../again")).expect("it was there");
        assert_eq!(tree.mapped(OsStr::new("--out=/elsewhere")), "--out=/elsewhere");
        let error = tree.write(Path::new("data/5"), Some(b"y")).expect_err("it is the user's");
        assert!(
            error.to_string().contains("not copied")
                && fs::read_to_string(at("data/5")).is_ok_and(|text| text == "x")
        );
        assert_eq!(tree.relative(&tree.path(Path::new("pkg/a.py"))), Some("pkg/a.py".into()));
    }
}
