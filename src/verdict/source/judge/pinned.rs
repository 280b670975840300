//! Where pinned memory is made: in the file that uses it, or in another one of the program.

use crate::python::parse::{
    Import, Node, Path, Source, dotted, flag, function_scope, last, nodes, range, scope,
};
use crate::verdict::source::flow::{Program, binds, has_class, has_function};
use crate::verdict::source::infer::Objects;
use ruff_python_ast::{Expr, ExprCall, ExprContext};

/// Functions looked at, one calling the other, for what one returns and for whether a line runs once.
const MAX_CALLS: u8 = 5;

/// A file of the program.
#[derive(Clone, Copy)]
pub(super) struct Home<'p> {
    pub program: Program<'p>,
    pub file: &'p Source,
}

impl Home<'_> {
    /// Whether a buffer is pinned memory that is made in one place, which runs once in the process: by torch, or by a function of the
    /// program that returns what it makes; of a name, or a field that an object's class gives it.
    ///
    /// ```text
    /// memory.py    class Staging:
    ///                  def __init__(self, n):
    ///                      self.buffer = torch.empty(n).pin_memory()
    /// train.py     staging = Staging(1024)                       staging.buffer
    /// ```
    /// Cost: some walks over each file on the way.
    pub fn is_made_once(self, buffer: &Expr, path: &[Node<'_>]) -> bool {
        let pinned = |home: Home<'_>, value: &Expr| home.is_pinned(value, 0);
        match buffer {
            Expr::Name(name) => self.once(&name.id, path, &pinned),
            Expr::Attribute(ast) if dotted(&ast.value) == "self" => {
                nodes::class_around(path).is_some_and(|class| {
                    let name = nodes::class(class).map_or("", |class| &class.name);
                    self.has_own(class, &ast.attr) && is_called_once(self.file, name, 0)
                })
            }
            Expr::Attribute(ast) => {
                let Expr::Name(object) = &*ast.value else { return false };
                let field = ast.attr.as_str();
                let of_self = |path| nodes::attribute(path).is_some_and(|ast| dotted(&ast.value) == "self");
                let own = self.stores(field).iter().all(|path| of_self(path));
                own && self.once(&object.id, path, &|home, value| home.gives(value, field))
            }
            _ => false,
        }
    }

    /// Whether a value is pinned memory, made as it is evaluated.
    fn is_pinned(self, value: &Expr, calls: u8) -> bool {
        value.as_call_expr().is_some_and(|call| self.makes_pinned(call, calls))
    }

    /// Whether a call makes pinned memory; `calls` of functions led to it.
    pub fn makes_pinned(self, call: &ExprCall, calls: u8) -> bool {
        nodes::name(&call.func) == "pin_memory"
            || flag(call, "pin_memory") && dotted(&call.func).starts_with("torch.")
            || calls < MAX_CALLS && self.returns_pinned(call, calls + 1)
    }

    /// Whether all that a function of the program returns is.
    fn returns_pinned(self, call: &ExprCall, calls: u8) -> bool {
        let callee = dotted(&call.func);
        let returns = |home: Home<'_>, name: &str| {
            let Some(function) = scope::only_function(home.file.module(), name) else { return false };
            let returns = nodes::returns(&function);
            let pinned = |path: &Path<'_>| {
                let Some(Node::StmtReturn(ast)) = last(path) else { return false };
                ast.value.as_ref().is_some_and(|value| home.is_pinned(value, calls))
            };
            !returns.is_empty() && returns.iter().all(pinned)
        };
        self.abroad(&callee, has_function, &returns).unwrap_or_else(|| returns(self, &callee))
    }

    /// Whether a name has one value as long as the process runs, which `is` finds to be it.
    fn once(self, name: &str, path: &[Node<'_>], is: &dyn Fn(Home<'_>, &Expr) -> bool) -> bool {
        let owner = scope::owner(path, name);
        let all = scope::occurrences(&owner, name);
        let stores = all.into_iter().filter(|one| one.store || !one.load);
        let Some(one) = nodes::only(stores) else { return false };
        if let Some(Node::Alias(_)) = last(&one.path) {
            let once = |home: Home<'_>, name: &str| home.once(name, &[home.file.module()], is);
            return self.abroad(name, binds, &once) == Some(true);
        }
        let runs = scope::parameter(&owner, name).is_none() && runs_once(self.file, &owner, 0);
        scope::value(one.path).is_some_and(|(value, place)| runs && !is_repeated(&place) && is(self, value))
    }

    /// Whether a value is a new object with a field that its class gives pinned memory.
    fn gives(self, value: &Expr, field: &str) -> bool {
        let Expr::Call(call) = value else { return false };
        let callee = dotted(&call.func);
        let given = |home: Home<'_>, name: &str| {
            Objects::new(home.file).class_named(name).is_some_and(|class| home.has_own(&class, field))
        };
        self.abroad(&callee, has_class, &given).unwrap_or_else(|| given(self, &callee))
    }

    /// Whether `__init__` of a class gives a field pinned memory, and the file gives it nothing else.
    fn has_own(self, class: &[Node<'_>], field: &str) -> bool {
        let Some(store) = nodes::only(self.stores(field)) else { return false };
        let own = nodes::class_around(&store).is_some_and(|around| range(around) == range(class));
        let value = match store[..] {
            [.., Node::StmtAssign(ast), _] => Some(&*ast.value),
            [.., Node::StmtAnnAssign(ast), _] => ast.value.as_deref(),
            _ => None,
        };
        nodes::function_name(&store) == "__init__"
            && own
            && !is_repeated(&store)
            && value.is_some_and(|value| self.is_pinned(value, 0))
    }

    /// Where the file gives a field of that name something.
    fn stores(&self, field: &str) -> Vec<Path<'_>> {
        let mut all = nodes::attributes(&[self.file.module()], field);
        all.retain(|path| nodes::attribute(path).is_some_and(|one| one.ctx != ExprContext::Load));
        all
    }

    /// What `look` finds in the file that defines what an import of this one calls so.
    fn abroad(
        self,
        name: &str,
        defines: fn(&Source, &str) -> bool,
        look: &dyn Fn(Home<'_>, &str) -> bool,
    ) -> Option<bool> {
        let (recorded, file, name) = self.program.find(&Import::of(self.file, name)?, defines)?;
        let program = Program { recorded: &recorded, ..self.program };
        Some(look(Home { program, file: &file }, &name))
    }
}

/// Whether a loop or a comprehension of its function holds the last node.
fn is_repeated(path: &[Node<'_>]) -> bool {
    path[function_scope(path)..].iter().any(|&node| nodes::is_loop(node) || nodes::is_comprehension(node))
}

/// Whether the code of the module or function at the end of a path runs once: its only mention in the file is a call that does.
fn runs_once(file: &Source, owner: &[Node<'_>], calls: u8) -> bool {
    let Some(function) = nodes::function(owner) else { return owner.len() == 1 };
    let method = matches!(nodes::above(owner, 1), Some(Node::StmtClassDef(_)));
    !method && function.decorator_list.is_empty() && is_called_once(file, &function.name, calls)
}

fn is_called_once(file: &Source, name: &str, calls: u8) -> bool {
    let Some(only) = nodes::only(nodes::named(file.module(), name)) else { return false };
    matches!(nodes::above(&only, 1), Some(Node::ExprCall(_)))
        && calls < MAX_CALLS
        && !is_repeated(&only)
        && runs_once(file, nodes::function_around(&only), calls + 1)
}
