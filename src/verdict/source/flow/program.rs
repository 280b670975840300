//! The program of a file: the other files that define its names.

use crate::python::parse::{Import, Node, Source, SourceTree, nodes, scope};
use crate::verdict::source::infer::Objects;
use std::sync::Arc;

/// Files that a value is followed into, one from another.
pub(super) const MAX_FILES: u8 = 3;
/// Star imports of a file beyond which its names are not resolved.
const MAX_STARS: usize = 8;

#[derive(Clone, Copy)]
pub struct Files<'p> {
    pub tree: &'p SourceTree,
    /// Path of the file in the trace.
    pub recorded: &'p str,
    /// Files between it and the one that waits.
    pub depth: u8,
}

/// (path as in the trace, file, name of the definition there).
pub(super) type FoundFile = (String, Arc<Source>, String);
type Defines = fn(&Source, &str) -> bool;

impl Files<'_> {
    /// The file that `defines` what the import names, through re-exports.
    pub fn find(self, import: &Import, defines: Defines) -> Option<FoundFile> {
        self.through(import, MAX_FILES, defines)
    }

    /// A name that the file does not bind, by `from m import *`: where exactly one module at hand has it.
    pub fn starred(self, file: &Source, name: &str) -> Option<FoundFile> {
        self.starred_from(file, name, MAX_FILES, binds).filter(|found| has_function(&found.1, &found.2))
    }

    fn starred_from(self, file: &Source, name: &str, files: u8, defines: Defines) -> Option<FoundFile> {
        let imports = Some(Import::starred(file, name)).filter(|imports| imports.len() <= MAX_STARS)?;
        let mut found = imports.iter().filter_map(|import| self.through(import, files, defines));
        let only = found.next()?;
        found.all(|other| other.0 == only.0).then_some(only)
    }

    /// `files`: how many files to go through at most.
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

/// At the top of the file, other than by an import.
fn binds(file: &Source, name: &str) -> bool {
    let all = scope::occurrences(&[file.module()], name);
    all.iter().any(|one| one.store && !matches!(nodes::last(&one.path), Some(Node::Alias(_))))
}

pub fn has_function(file: &Source, name: &str) -> bool {
    !scope::functions(file.module(), name).is_empty()
}

/// Exactly one class of that name.
pub fn has_class(file: &Source, name: &str) -> bool {
    Objects::new(file).class_named(name).is_some()
}
