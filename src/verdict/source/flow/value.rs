//! A value that is followed through the program, and its uses.

use super::conditions::Fork;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, argument_for, dotted, nodes, scope};
use crate::verdict::source::infer::sinks::{is_figure, is_figure_of_run};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{TextRange, TextSize};

/// A value on its way: what the CPU read, or something made of it.
#[derive(Clone, Debug, Default)]
pub struct Value {
    /// The containers around the value, innermost first: `{"loss": [v]}` is `[Index, Key]`.
    pub steps: Steps,
    /// An array or CPU tensor rather than one number.
    pub bulk: bool,
    /// One number of an array or all of them, not summed up: data rather than a figure.
    pub data: bool,
    /// More than a few numbers, by the trace.
    pub many: bool,
    /// Read by `.cpu()` and its kin: the device could gather it as well.
    pub tensor: bool,
    /// A plain Python number: an object with methods of a tensor is no longer it.
    pub number: bool,
    /// Text made from it, whose length or layout decides nothing that matters.
    pub text: bool,
    /// Read from an attribute that may not depend on it: decides nothing for certain.
    pub vague: bool,
    /// Made one number of many, in a way that the device can do as well.
    pub summed: bool,
    /// Went into an array or a tensor of the host, or into NumPy, which take no device tensors.
    pub arrays: bool,
    /// Computed or held under the name of a figure: a loss, an accuracy, a mean.
    pub figure: bool,
    /// Multiplied with other data on the host.
    pub joined: bool,
    /// Where it was read (in this file: the call that returns it).
    pub origin: TextSize,
    /// The loop that collects it by `+=` or `append`: uses outside of it can wait.
    pub collected: Option<Collected>,
    pub name: Option<String>,
    pub hops: u8,
}

/// A loop that reads a value in each iteration and keeps it for later.
#[derive(Clone, Copy, Debug)]
pub struct Collected {
    pub region: TextRange,
    /// Kept in an attribute, which a method that the loop calls may read.
    pub attribute: bool,
}

impl Value {
    pub fn new(path: &[Node<'_>], bulk: bool) -> Self {
        let named = |path: &[Node<'_>]| match nodes::last(path) {
            Some(Node::ExprName(ast)) => is_figure_of_run(&ast.id),
            Some(Node::ExprAttribute(ast)) => is_figure_of_run(&ast.attr),
            _ => false,
        };
        let (figure, origin) = (nodes::any(path, &mut |path| named(path)), nodes::range(path).start());
        Self { bulk, data: bulk, number: !bulk, origin, figure, ..Self::default() }
    }

    /// The value as the caller gets it from the call at the end of `call`.
    pub fn returned_to(&self, call: &[Node<'_>]) -> Self {
        let Self { steps, data, many, tensor, text, summed, arrays, joined, figure, .. } = self.clone();
        Self { steps, data, many, tensor, text, summed, arrays, joined, figure, ..Self::new(call, self.bulk) }
    }

    /// The key under which the outermost dict holds it.
    pub fn key(&self) -> Option<&str> {
        if let Some(Step::Key(key)) = self.steps.last() { Some(key) } else { None }
    }

    /// Whether it is a figure of the run rather than a part of what the program makes.
    pub fn is_figure(&self) -> bool {
        let named =
            |step: &Step| matches!(step, Step::Key(name) | Step::Field(name, _) if is_figure_of_run(name));
        self.figure || self.summed || self.steps.iter().any(named)
    }

    pub fn held(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    pub fn becomes_text(&mut self) {
        self.steps.clear();
        (self.bulk, self.data, self.number, self.text) = (false, false, false, true);
    }

    pub fn named(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.figure |= is_figure_of_run(&name);
        self.name = Some(name);
        self.hops += 1;
        self
    }

    /// Notes that `+=` or `append` collects the value in `holder`, if the loop reads it each time.
    pub fn collected(mut self, place: &[Node<'_>], holder: &Expr, sum: bool) -> Self {
        let region = scope::innermost_loop(place, self.origin);
        let attribute = dotted(holder).contains('.');
        self.collected = self.collected.or(region.map(|region| Collected { region, attribute }));
        self.summed |= sum && region.is_some();
        self
    }

    /// Whether a meter's member gives the value back, which `self` then is; true for all other values.
    pub fn is_given_by(&mut self, name: &str) -> bool {
        let Some(Step::Meter(key)) = self.steps.last().cloned() else { return true };
        let any = facts::name(name).is(Fact::Holds);
        let own = facts::name(name).is(Fact::Giving) || any || key.as_deref() == Some(name);
        // Such a member gives nothing back, or another figure.
        if facts::name(name).is(Fact::Told) || !own && key.is_some() {
            return false;
        }
        self.steps.pop();
        self.vague |= !own;
        if any {
            self.steps.push(key.map_or(Step::Any, Step::Key));
        }
        true
    }
}

pub type Steps = Vec<Step>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Index(usize),
    Key(String),
    /// An attribute of an object made with it, and its index where the object unpacks: a named tuple.
    Field(String, Option<usize>),
    Any,
    Entry,
    /// A meter that got the value, under a name if it keeps several.
    Meter(Option<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Shown or recorded.
    Log,
    /// The text of an exception.
    Error,
    /// Written to a file as data.
    Write,
    /// Decides what runs; `guard` where the branch only stops or complains.
    Branch {
        guard: bool,
        assert: bool,
    },
    Size,
    Index,
    Rate,
    /// Other CPU work that needs it.
    Compute,
    /// Back to the GPU.
    Device,
    Returned,
    /// Kept where this file does not show who reads it.
    Stored,
    Dropped,
    Unknown,
}

impl Sink {
    /// A branch that does more than stop or complain.
    pub const BRANCH: Self = Self::Branch { guard: false, assert: false };

    pub fn is_decisive(&self) -> bool {
        matches!(self, Self::Branch { .. } | Self::Size | Self::Index | Self::Rate | Self::Compute)
    }
}

/// The use in words; variants but `Other` say more than the sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Joined with a device tensor or stored in one: still on the device, the value would need no wait.
    Joined(String),
    /// Collected in a container that is named after the figures it holds.
    Collected(String),
    NeverRead,
    Other(String),
}

impl<T: Into<String>> From<T> for What {
    fn from(words: T) -> Self {
        Self::Other(words.into())
    }
}

#[derive(Clone, Debug)]
pub struct Use {
    pub sink: Sink,
    /// "an argument of logger.info", "the test of an `if`", …
    pub what: What,
    /// `None` where it is the file that is read.
    pub file: Option<String>,
    pub line: u32,
    /// `None` where it was reached directly.
    pub name: Option<String>,
    /// Collected in a loop and used outside of it.
    pub deferred: bool,
    /// Put into a container that a function got as the parameter `name`: range of the function.
    pub given: Option<TextRange>,
    /// Only now and then, by a condition that the read is not under.
    pub rare: bool,
    /// Only every so many iterations of a loop.
    pub seldom: bool,
    pub fork: Fork,
    /// Whether it passed an object named like a meter.
    pub metered: bool,
    /// The value as the sink gets it, for following it into the caller.
    pub value: Value,
}

impl Use {
    /// "the test of an `if` in t.py (line 7)"; a value that is never read has no line.
    pub fn told(&self) -> String {
        let what = match &self.what {
            What::NeverRead => return "never read".to_owned(),
            What::Collected(container) => &format!("collected in `{container}`"),
            What::Joined(words) | What::Other(words) => words,
        };
        let file = self.file.as_deref().map(|file| format!(" in {}", crate::text::path_end(file, 1)));
        format!("{what}{} (line {})", file.unwrap_or_default(), self.line)
    }

    pub fn lies_in(&mut self, file: &str) {
        self.file.get_or_insert_with(|| file.to_owned());
    }

    /// The argument of `call` for the container in which `function` has put the value.
    pub fn container<'a>(&self, function: &[Node<'_>], call: &'a ExprCall) -> Option<&'a Expr> {
        self.given.filter(|given| *given == nodes::range(function))?;
        argument_for(function, call, self.name.as_deref()?)
    }

    /// Whether a use comes after the loop that reads the value, so that one read there would do. Such are
    /// sums (S05), even if they decide, lists of figures, and arrays gathered batch by batch (D08). Other
    /// lists are what the program makes and may be needed sooner. A number that decides every so many
    /// iterations can wait too.
    pub fn can_wait(&self) -> bool {
        if self.seldom && self.sink.is_decisive() && !self.value.data {
            return true;
        }
        let Some(collected) = self.value.collected.filter(|_| self.deferred) else { return false };
        let summed = self.value.summed;
        let figures = self.name.as_deref().is_some_and(is_figure);
        match self.sink {
            Sink::Stored | Sink::Dropped => false,
            Sink::Unknown if self.value.vague => false,
            Sink::Log => true,
            // What the program makes, rather than reports.
            Sink::Write => summed || figures && !self.value.many,
            Sink::Compute if self.value.tensor => true,
            // A method that the loop calls may read what an attribute collects.
            _ if self.sink.is_decisive() => summed && !collected.attribute,
            Sink::Returned => summed || figures || self.value.tensor,
            _ => summed || self.value.tensor,
        }
    }
}

pub(super) enum Next {
    Up(usize),
    /// Nowhere: its use is recorded, or it has none.
    Done,
    End(Sink, What),
}

pub(super) fn ends(sink: Sink, what: impl Into<What>) -> Next {
    Next::End(sink, what.into())
}

/// What a loop over the value gets; `None` for the keys of a dict that holds it.
pub fn element(mut value: Value) -> Option<Value> {
    match value.steps.pop() {
        Some(Step::Key(_) | Step::Entry) => return None,
        Some(Step::Field(..)) => value.vague = true,
        Some(_) => {}
        None => value.bulk = false,
    }
    Some(value)
}

pub fn constant_step(expr: &Expr) -> Option<Step> {
    match expr {
        Expr::StringLiteral(literal) => Some(Step::Key(literal.value.to_str().to_owned())),
        _ => usize::try_from(nodes::int(expr)?).ok().map(Step::Index),
    }
}
