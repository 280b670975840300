//! The full names behind a file's imports, and the files that may define them.

use super::nodes::{self, dotted, joined, split_callee, string};
use super::{Node, Source};
use ruff_python_ast::{ExprCall, Stmt, StmtImportFrom};

/// Folders above a file in which a module may be looked for: the program may run from any of them.
const MAX_ANCESTORS: usize = 6;

#[derive(Clone, Debug)]
pub struct Import {
    /// Dots before the module: 0 for an absolute import.
    level: u32,
    /// `time.perf_counter` for `clock` after `from time import perf_counter as clock`.
    pub full: String,
    /// Comes from `from a.b import *`, which may or may not bring the name.
    starred: bool,
}

impl Import {
    /// What the import in `file`, at its top or inside a function, makes of a dotted name.
    pub fn of(file: &Source, dotted: &str) -> Option<Self> {
        let (root, rest) = split_root(dotted);
        let (level, full) = file.imported(root)?;
        Some(Self { level: *level, full: joined([full, rest]), starred: false })
    }

    /// The imports at the top of `file` that may bring `name` without naming it: `from a.b import *`.
    pub fn starred(file: &Source, name: &str) -> Vec<Self> {
        let Node::ModModule(module) = file.module() else { return Vec::new() };
        let imports = module.body.iter().filter_map(Stmt::as_import_from_stmt);
        let starred = imports.filter(|ast| ast.names.iter().any(|alias| &alias.name == "*"));
        let full = |ast: &StmtImportFrom| joined([ast.module.as_deref().unwrap_or_default(), name]);
        starred.map(|ast| Self { level: ast.level, full: full(ast), starred: true }).collect()
    }

    /// Whether `file`, the imported module, gives `name` to this import. A star brings the names of
    /// `__all__`, or without it all that do not begin with `_`. A list that is not plain text brings nothing.
    pub fn is_brought(&self, file: &Source, name: &str) -> bool {
        let Node::ModModule(module) = file.module() else { return false };
        let listed = module.body.iter().find_map(|stmt| match stmt {
            Stmt::Assign(ast) if ast.targets.iter().any(|target| nodes::dotted(target) == "__all__") => {
                Some(&*ast.value)
            }
            _ => None,
        });
        let names = |expr| string(expr) == Some(name);
        match listed {
            _ if !self.starred => true,
            None => !name.starts_with('_'),
            Some(list) => {
                (list.is_list_expr() || list.is_tuple_expr()) && nodes::listed(list).iter().any(names)
            }
        }
    }

    /// Files that may define the name, as the file at `recorded` would find them, and the name there.
    pub fn definition(&self, recorded: &str) -> (Vec<String>, String) {
        let (module, name) = split_callee(&self.full);
        let above = |folder: &'_ str| folder.rsplit_once('/').map(|(above, _)| above.to_owned());
        let mut folder = above(recorded).unwrap_or_default();
        for _ in 1..self.level {
            folder = above(&folder).unwrap_or_default();
        }
        let ancestors = if self.level > 0 { 1 } else { MAX_ANCESTORS };
        let folders = std::iter::successors(Some(folder), |folder| above(folder)).take(ancestors);
        let module = module.trim_matches('.').replace('.', "/");
        let files = folders.flat_map(|folder| match &*module {
            "" => vec![format!("{folder}/__init__.py")],
            module => vec![format!("{folder}/{module}.py"), format!("{folder}/{module}/__init__.py")],
        });
        (files.collect(), name.to_owned())
    }
}

/// Resolves a first part that an import may rename: `np.mean` is `numpy.mean`.
pub fn full_name(file: &Source, dotted: &str) -> String {
    Import::of(file, dotted).map_or_else(|| dotted.to_owned(), |import| import.full)
}

pub fn full_callee(file: &Source, call: &ExprCall) -> String {
    full_name(file, &dotted(&call.func))
}

pub fn split_root(dotted: &str) -> (&str, &str) {
    dotted.split_once('.').unwrap_or((dotted, ""))
}
