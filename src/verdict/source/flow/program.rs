//! The program that a file is of: in which of its other files a name is defined.

use crate::verdict::source::infer::objects::Objects;
use crate::verdict::source::parse::imports::Import;
use crate::verdict::source::parse::scope;
use crate::verdict::source::parse::tree::SourceTree;
use crate::verdict::source::parse::{Node, Source, nodes};
use std::rc::Rc;

/// Files that a value is followed into, one from the other.
pub(super) const MAX_FILES: u8 = 3;
/// Modules that a file takes everything from, beyond which its names are not told.
const MAX_STARS: usize = 8;

/// The program that a file is of, for following values into its other files.
#[derive(Clone, Copy)]
pub struct Program<'p> {
    pub tree: &'p SourceTree,
    /// Path of the file as the trace has it.
    pub recorded: &'p str,
    /// How many files lie between it and the one that waits.
    pub depth: u8,
}

/// A file, with its path as the trace would have it, and the name that what was looked for has there.
pub(super) type Found = (String, Rc<Source>, String);
/// Whether a file defines a name.
type Defines<'d> = dyn Fn(&Source, &str) -> bool + 'd;

impl Program<'_> {
    /// The file that defines the function which `import` (and `rest` after it) names, through re-exports.
    pub fn function(self, import: &Import, rest: Option<&str>) -> Option<Found> {
        self.find(import, rest, &is_function)
    }

    /// The file that defines the class which `import` (and `rest` after it) names, through re-exports.
    pub fn class(self, import: &Import, rest: Option<&str>) -> Option<Found> {
        self.find(import, rest, &|file, name| Objects::new(file).class_named(name).is_some())
    }

    /// The file that gives the name which `import` (and `rest` after it) names a value, through re-exports.
    pub fn value(self, import: &Import, rest: Option<&str>) -> Option<Found> {
        self.find(import, rest, &binds_name)
    }

    fn find(self, import: &Import, rest: Option<&str>, defines: &Defines<'_>) -> Option<Found> {
        self.through(self.recorded, import, rest, MAX_FILES, defines)
    }

    /// What a name of the file at `recorded` that nothing there binds is by `from m import *`: where exactly one of the modules at
    /// hand has it.
    pub fn starred(self, file: &Source, name: &str) -> Option<Found> {
        let found = self.starred_from(self.recorded, file, name, MAX_FILES, &binds_name)?;
        is_function(&found.1, &found.2).then_some(found)
    }

    fn starred_from(
        self,
        recorded: &str,
        file: &Source,
        name: &str,
        files: u8,
        defines: &Defines<'_>,
    ) -> Option<Found> {
        let imports = Some(Import::starred(file, name)).filter(|imports| imports.len() <= MAX_STARS)?;
        let mut found =
            imports.iter().filter_map(|import| self.through(recorded, import, None, files, defines));
        let only = found.next()?;
        found.all(|other| other.0 == only.0).then_some(only)
    }

    /// The file that defines what `import` in the file at `recorded` names, through so many files at most.
    fn through(
        self,
        recorded: &str,
        import: &Import,
        rest: Option<&str>,
        files: u8,
        defines: &Defines<'_>,
    ) -> Option<Found> {
        let files = files.checked_sub(1)?;
        let (paths, name) = import.definition(recorded, rest);
        let (file, path) = paths.into_iter().find_map(|path| Some((self.tree.open(&path)?, path)))?;
        if !import.is_brought(&file, &name) {
            return None;
        }
        if defines(&file, &name) {
            return Some((path, file, name));
        }
        match Import::of(&file, &name) {
            Some(import) => self.through(&path, &import, None, files, defines),
            None => self.starred_from(&path, &file, &name, files, defines),
        }
    }
}

/// Whether a name is bound at the top of a file, other than by an import.
fn binds_name(file: &Source, name: &str) -> bool {
    let all = scope::occurrences(&[file.module()], name);
    all.iter().any(|one| one.store && !matches!(nodes::last(&one.path), Some(Node::Alias(_))))
}

fn is_function(file: &Source, name: &str) -> bool {
    !scope::functions(file.module(), name).is_empty()
}
