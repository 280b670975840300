//! The program that a file is of: in which of its other files a name is defined.

use crate::python::parse::{Import, Node, Source, SourceTree, nodes, scope};
use crate::verdict::source::infer::Objects;
use std::sync::Arc;

/// Files that a value is followed into, one from the other.
pub(super) const MAX_FILES: u8 = 3;
/// Modules that a file takes everything from, beyond which its names are not told.
const MAX_STARS: usize = 8;

/// The program that a file is of, for following values into its other files.
#[derive(Clone, Copy)]
pub struct Files<'p> {
    pub tree: &'p SourceTree,
    /// Path of the file as the trace has it.
    pub recorded: &'p str,
    /// How many files lie between it and the one that waits.
    pub depth: u8,
}

/// A file, with its path as the trace would have it, and the name that what was looked for has there.
pub(super) type FoundFile = (String, Arc<Source>, String);
/// Whether a file defines a name.
type Defines = fn(&Source, &str) -> bool;

impl Files<'_> {
    /// The file that `defines` what an import of this one names, through re-exports.
    pub fn find(self, import: &Import, defines: Defines) -> Option<FoundFile> {
        self.through(import, MAX_FILES, defines)
    }

    /// What a name of the file that nothing there binds is by `from m import *`: where exactly one of the modules at hand has it.
    pub fn starred(self, file: &Source, name: &str) -> Option<FoundFile> {
        self.starred_from(file, name, MAX_FILES, binds).filter(|found| has_function(&found.1, &found.2))
    }

    fn starred_from(self, file: &Source, name: &str, files: u8, defines: Defines) -> Option<FoundFile> {
        let imports = Some(Import::starred(file, name)).filter(|imports| imports.len() <= MAX_STARS)?;
        let mut found = imports.iter().filter_map(|import| self.through(import, files, defines));
        let only = found.next()?;
        found.all(|other| other.0 == only.0).then_some(only)
    }

    /// The file that defines what `import` names, through so many files at most.
    fn through(self, import: &Import, files: u8, defines: Defines) -> Option<FoundFile> {
        let files = files.checked_sub(1)?;
        let (paths, name) = import.definition(self.recorded);
        let (file, path) = paths.into_iter().find_map(|path| Some((self.tree.open(&path)?, path)))?;
        if !import.is_brought(&file, &name) {
            return None;
        }
        if defines(&file, &name) {
            return Some((path, file, name));
        }
        let there = Files { recorded: &path, ..self };
        match Import::of(&file, &name) {
            Some(import) => there.through(&import, files, defines),
            None => there.starred_from(&file, &name, files, defines),
        }
    }
}

/// Whether a name is bound at the top of a file, other than by an import.
fn binds(file: &Source, name: &str) -> bool {
    let all = scope::occurrences(&[file.module()], name);
    all.iter().any(|one| one.store && !matches!(nodes::last(&one.path), Some(Node::Alias(_))))
}

/// Whether a file has a function of that name.
pub fn has_function(file: &Source, name: &str) -> bool {
    !scope::functions(file.module(), name).is_empty()
}

/// Whether a file has one class of that name.
pub fn has_class(file: &Source, name: &str) -> bool {
    Objects::new(file).class_named(name).is_some()
}
