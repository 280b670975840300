//! What the imports of a file call by which name, and in which files it is defined.

use super::nodes::{self, last, string};
use super::{Node, Source};
use ruff_python_ast::{Alias, Stmt};

/// Folders above a file in which a module may be looked for: the program may run from any of them.
const MAX_ANCESTORS: usize = 6;

/// What a name means by an import.
#[derive(Clone, Debug)]
pub struct Import {
    /// Dots before the module: 0 for an absolute import.
    level: u32,
    /// `a.b` of `from a.b import c`; all of `a.b` of `import a.b as c`.
    module: String,
    /// `c` of `from a.b import c`.
    member: Option<String>,
    /// By `from a.b import *`, which may or may not bring the name.
    starred: bool,
}

impl Import {
    /// What an import in `file`, at its top or inside a function, calls `name`.
    pub fn of(file: &Source, name: &str) -> Option<Self> {
        let mut found = None;
        nodes::walk(&[file.module()], &mut |path| {
            let import = match last(path) {
                Some(Node::StmtImport(ast)) => ast.names.iter().find_map(|alias| imported(alias, name)),
                Some(Node::StmtImportFrom(ast)) => {
                    ast.names.iter().find(|alias| called(alias) == name).map(|alias| Self {
                        level: ast.level,
                        module: ast.module.as_ref().map(ToString::to_string).unwrap_or_default(),
                        member: Some(alias.name.to_string()),
                        starred: false,
                    })
                }
                // Imports stand in statements only.
                Some(node) => {
                    return !node.is_expression();
                }
                None => None,
            };
            found = found.take().or(import);
            found.is_none()
        });
        found
    }

    /// The imports at the top of `file` that may bring `name` without naming it: `from a.b import *`.
    pub fn starred(file: &Source, name: &str) -> Vec<Self> {
        let Node::ModModule(module) = file.module() else { return Vec::new() };
        let import = |stmt: &Stmt| {
            let ast =
                stmt.as_import_from_stmt().filter(|ast| ast.names.iter().any(|alias| &alias.name == "*"))?;
            let module = ast.module.as_ref().map(ToString::to_string).unwrap_or_default();
            Some(Self { level: ast.level, module, member: Some(name.to_owned()), starred: true })
        };
        module.body.iter().filter_map(import).collect()
    }

    /// Whether `file`, the module that it is from, gives the name to this import: what a star brings is what `__all__` lists,
    /// without one all but what begins with `_`. A list that is not plain text tells nothing.
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

    /// The name in full: `time.perf_counter` for `clock` after `from time import perf_counter as clock`.
    pub fn full(&self) -> String {
        let parts = [Some(self.module.as_str()), self.member.as_deref()];
        let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(".")
    }

    /// Files that may define the name, or `rest` of it (`f` of `utils.f`), as the file at `recorded` would find them, and the
    /// name to look for in them.
    pub fn definition(&self, recorded: &str, rest: Option<&str>) -> (Vec<String>, String) {
        let full = rest.map_or_else(|| self.full(), |rest| format!("{}.{rest}", self.full()));
        let (module, name) = full.rsplit_once('.').unwrap_or(("", &full));
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

/// The full name of a dotted one whose first part an import may rename: `np.mean` is `numpy.mean`.
pub fn full_name(file: &Source, dotted: &str) -> String {
    let (root, rest) = split_root(dotted);
    let Some(import) = Import::of(file, root) else { return dotted.to_owned() };
    match rest {
        Some(rest) => format!("{}.{rest}", import.full()),
        None => import.full(),
    }
}

/// The first name of a dotted one, and the rest.
pub fn split_root(dotted: &str) -> (&str, Option<&str>) {
    dotted.split_once('.').map_or((dotted, None), |(root, rest)| (root, Some(rest)))
}

/// The name that an import gives to what it takes.
pub fn called(alias: &Alias) -> &str {
    alias.asname.as_ref().unwrap_or(&alias.name).as_str()
}

/// `import a.b` binds `a`, `import a.b as c` binds `c` to `a.b`.
fn imported(alias: &Alias, name: &str) -> Option<Import> {
    let module = match &alias.asname {
        Some(renamed) => (renamed.as_str() == name).then(|| alias.name.to_string())?,
        None => alias.name.split('.').next().filter(|root| *root == name)?.to_owned(),
    };
    Some(Import { level: 0, module, member: None, starred: false })
}
