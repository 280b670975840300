//! The search for the host's origin of a value: the question, its place, and its limits.

use super::super::reader::SiteReader;
use crate::python::parse::{Node, nodes};
use crate::verdict::source::flow::Steps;
use crate::verdict::source::infer::{Here, Placement};
use crate::verdict::source::locate::Callee;
use ruff_python_ast::{Expr, StmtFunctionDef};
use ruff_text_size::TextRange;
use std::cell::{Cell, RefCell};
use std::fmt;

/// What the caller of a function gives it.
pub(super) type Outside<'c> = &'c dyn Fn(&Parameter<'_>) -> Answer;

/// Expressions looked at for one value; more make it unknown.
const BUDGET: u32 = 250;
/// Nested expressions, over all functions and files on the way.
const MAX_DEPTH: u8 = 40;

/// What the host has: numbers of its own, or what it sent to the device.
#[derive(Clone, Debug, Default)]
pub(super) struct OnHost {
    /// `None` for what never left the host.
    pub sent: Option<Sent>,
    /// Whether something was computed of it after it was sent.
    pub computed: bool,
    /// Whether it follows from what the program reads or computes, not from sizes and constants alone.
    pub data: bool,
}

impl OnHost {
    /// What the host has read or computed.
    pub const DATA: Self = Self { sent: None, computed: false, data: true };

    pub fn computed(self) -> Self {
        Self { computed: self.computed || self.sent.is_some(), ..self }
    }
}

/// The line where the host sent a value to the device; its file, where that is not the waiting one.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub line: u32,
    pub file: Option<String>,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "on line {}", self.line)?;
        self.file.as_ref().map_or(Ok(()), |file| write!(f, " of {file}"))
    }
}

pub(super) struct Parameter<'p> {
    pub function: &'p StmtFunctionDef,
    pub class: Option<&'p str>,
    pub name: &'p str,
    pub steps: Steps,
}

pub(super) enum Answer {
    OnHost(OnHost),
    /// Nothing: the parameter's default value.
    Default,
    Unknown,
}

impl From<Option<OnHost>> for Answer {
    fn from(known: Option<OnHost>) -> Self {
        known.map_or(Self::Unknown, Self::OnHost)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Scene<'c, 'a> {
    pub search: &'c Search<'c>,
    pub here: Here<'c, 'a>,
    pub recorded: &'c str,
    /// The function whose parameters `outside` answers for.
    pub function: TextRange,
    pub outside: Outside<'c>,
    /// The object whose method is on the stack further in: the trace tells its class.
    pub object: Option<&'c Object<'c, 'a>>,
}

/// An object that a line calls, and the class whose method that call ran.
pub(super) struct Object<'c, 'a> {
    pub expr: &'a Expr,
    pub class: &'c str,
    pub recorded: &'c str,
}

impl<'c, 'a> Scene<'c, 'a> {
    pub fn at(self, path: &'c [Node<'a>]) -> Self {
        Self { here: Here { path, ..self.here }, ..self }
    }

    pub fn is_host(self, expr: &'a Expr) -> bool {
        self.here.find(expr) == Placement::Host
    }
}

pub(super) struct Search<'s> {
    pub site: SiteReader<'s>,
    /// Whether the sent value must surely be the host's.
    pub plain: bool,
    budget: Cell<u32>,
    depth: Cell<u8>,
    /// Fields being looked at, with their classes.
    pub fields: RefCell<Vec<(TextRange, String)>>,
    /// Functions being looked into, with their files.
    pub functions: RefCell<Vec<(TextRange, String)>>,
}

impl<'s> Search<'s> {
    pub fn new(site: SiteReader<'s>, plain: bool) -> Self {
        Self {
            site,
            plain,
            budget: Cell::new(BUDGET),
            depth: Cell::new(0),
            fields: RefCell::default(),
            functions: RefCell::default(),
        }
    }

    /// Where the host has what `expr`, read at `here`, follows from; `None` where something else may be in it.
    ///
    /// Definition: a value is *known* if it is the host's (a number, a list of numbers, a batch of a
    /// `DataLoader`), a known value sent to the device, or a pure function of known values. A name is known
    /// if every assignment that reaches the read gives it known values and nothing changes it in place. A
    /// parameter is what the recorded caller passes, or the call that led into the function. A call of the
    /// program's function is what all its `return`s give. What is unpacked from a tuple is followed to the
    /// tuple's element.
    ///
    /// ```text
    /// loop.py:9    for batch in loader:              batches of a DataLoader: the host's
    /// loop.py:10       x, y = model.parse(batch)     element 0 of what parse returns
    /// model.py:20  n = to_gpu(lens)                  the way through helpers, to the upload
    /// model.py:31  longest = n.max().item()          known, with the upload's line
    /// ```
    /// Cost: one walk over the scope for each assignment of each name on the way, at most [`BUDGET`] expressions.
    pub fn origin<'a>(&self, here: Here<'_, 'a>, expr: &'a Expr) -> Option<OnHost> {
        let callee = Callee::around(here.path);
        let outside = |parameter: &Parameter<'_>| self.given_by_caller(parameter, &callee, 0);
        let function = nodes::range(nodes::function_around(here.path));
        let recorded = &self.site.frames.first()?.file;
        Scene { search: self, here, recorded, function, outside: &outside, object: None }
            .find(expr, Vec::new())
    }

    /// `look`, one expression further on the way; `None` where the way is too long.
    pub fn deeper(&self, look: impl FnOnce() -> Option<OnHost>) -> Option<OnHost> {
        let (depth, budget) = (self.depth.get(), self.budget.get());
        if depth == MAX_DEPTH || budget == 0 {
            return None;
        }
        self.depth.set(depth + 1);
        self.budget.set(budget - 1);
        let found = look();
        self.depth.set(depth);
        found
    }
}

/// Known if all values are, sent if one was; `None` for no values.
pub(super) fn all(values: impl IntoIterator<Item = Option<OnHost>>) -> Option<OnHost> {
    let joined = |one: OnHost, other: OnHost| OnHost {
        sent: one.sent.or(other.sent),
        computed: one.computed || other.computed,
        data: one.data || other.data,
    };
    values.into_iter().collect::<Option<Vec<OnHost>>>()?.into_iter().reduce(joined)
}
