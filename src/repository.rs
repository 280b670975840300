//! Maps recorded files to paths in the repository, for annotations and SARIF.
//!
//! A capture names files by paths of the machine that ran (`/workspace/src/train.py`); a forge wants them
//! relative to the checkout (`src/train.py`). Paths tried below the checkout, in order: as `--source-root`
//! maps the file, as recorded, then each tail, longest first.

use crate::verdict::source::{Recorded, SourceRoot, SourceTree};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

pub fn checkout_of(place: &Path) -> Option<&Path> {
    place.ancestors().find(|folder| folder.join(".git").exists())
}

pub struct Repository {
    /// Canonical; `None` where there is no such directory.
    root: Option<PathBuf>,
    tree: SourceTree,
    known: RefCell<FxHashMap<String, Option<String>>>,
}

impl Repository {
    /// `roots` map recorded paths to this machine; `root` is tried after them.
    pub fn new(root: PathBuf, mut roots: Vec<SourceRoot>) -> Self {
        let canonical = root.canonicalize().ok();
        roots.push(SourceRoot { old: None, new: root });
        let tree = SourceTree::new(roots).and_recorded(Recorded::All);
        Self { root: canonical, tree, known: RefCell::default() }
    }

    /// The path below the checkout, with `/`; `None` where the recorded file is not there.
    pub fn path(&self, recorded: &str) -> Option<String> {
        if let Some(known) = self.known.borrow().get(recorded) {
            return known.clone();
        }
        let found = self.find(recorded);
        self.known.borrow_mut().insert(recorded.to_owned(), found.clone());
        found
    }

    fn find(&self, recorded: &str) -> Option<String> {
        let root = self.root.as_ref()?;
        self.tree.candidates(recorded).into_iter().find_map(|(path, _)| {
            let file = path.canonicalize().ok().filter(|f| f.is_file())?;
            let parts: Vec<_> = file.strip_prefix(root).ok()?.components().collect();
            let names = parts.iter().map(|p| p.as_os_str().to_str());
            Some(names.collect::<Option<Vec<_>>>()?.join("/"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_are_found_below_the_checkout_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("checkout");
        fs::create_dir_all(root.join("src")).expect("folders");
        fs::write(root.join("src/train.py"), "").expect("a file");
        fs::write(folder.path().join("secret.py"), "").expect("a file");
        let recorded = root.join("src/train.py").display().to_string();
        let roots = vec![SourceRoot { old: Some("/old".into()), new: root.join("src") }];
        let repository = Repository::new(root.clone(), roots);
        for (path, found) in [
            (recorded.as_str(), Some("src/train.py")),
            ("/workspace/src/train.py", Some("src/train.py")),
            ("/old/train.py", Some("src/train.py")),
            ("/workspace/train.py", None),
            ("../secret.py", None),
            ("/x/../secret.py", None),
            ("", None),
            ("<string>", None),
        ] {
            assert_eq!(repository.path(path).as_deref(), found, "{path}");
        }
    }
}
