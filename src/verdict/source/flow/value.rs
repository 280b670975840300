//! A value that is followed through the program, and the uses that it comes to.

use super::conditions::Fork;
use crate::python::facts::{self, Fact};
use crate::python::parse::{Node, argument_for, dotted, nodes, scope};
use crate::verdict::source::infer::sinks::{is_figure, is_figure_of_run};
use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::{TextRange, TextSize};

/// A value on its way: what the CPU read, or something made of it.
#[derive(Clone, Debug, Default)]
pub struct Value {
    /// How to get back at the value inside the containers that hold it, innermost first: `{"loss": [v]}` is `[Index, Key]`.
    pub steps: Steps,
    /// An array or CPU tensor rather than one number.
    pub bulk: bool,
    /// Of an array, one number or all of them: data rather than a figure, as long as nothing sums it up.
    pub data: bool,
    /// More than a few numbers, by the trace.
    pub many: bool,
    /// Read by `.cpu()` and its kin: a tensor that could as well be gathered on the device.
    pub tensor: bool,
    /// A plain Python number: what has methods of a tensor is no longer it.
    pub number: bool,
    /// Text made from it, whose length or layout decides nothing that matters.
    pub text: bool,
    /// Read from an attribute that may or may not depend on it: decides nothing for certain.
    pub vague: bool,
    /// Added up, or made one number of many in another way that the device can do as well.
    pub summed: bool,
    /// Went into an array or a tensor of the host, or a function of NumPy, which take no tensors of the device.
    pub arrays: bool,
    /// It was computed or held under the name of a figure: a loss, an accuracy, a mean.
    pub figure: bool,
    /// Multiplied with other data on the host.
    pub joined: bool,
    /// Where it was read (in this file: the call that returns it).
    pub origin: TextSize,
    /// The loop that collects it by `+=` or `append`: uses outside of it can wait.
    pub collected: Option<Collected>,
    /// The latest name that held it.
    pub name: Option<String>,
    pub hops: u8,
}

/// A loop that reads a value each time round and keeps it for later.
#[derive(Clone, Copy, Debug)]
pub struct Collected {
    pub region: TextRange,
    /// By an attribute, which a method that the loop calls may ask for.
    pub attribute: bool,
}

impl Value {
    /// A value read by the last node of `path`.
    pub fn new(path: &[Node<'_>], bulk: bool) -> Self {
        let named = |path: &[Node<'_>]| match nodes::last(path) {
            Some(Node::ExprName(ast)) => is_figure_of_run(&ast.id),
            Some(Node::ExprAttribute(ast)) => is_figure_of_run(&ast.attr),
            _ => false,
        };
        let (figure, origin) = (nodes::any(path, &mut |path| named(path)), nodes::range(path).start());
        Self { bulk, data: bulk, number: !bulk, origin, figure, ..Self::default() }
    }

    /// The value as the call at the end of `call` gives it to the caller.
    pub fn returned_to(&self, call: &[Node<'_>]) -> Self {
        let Self { steps, data, many, tensor, text, summed, arrays, joined, figure, .. } = self.clone();
        Self { steps, data, many, tensor, text, summed, arrays, joined, figure, ..Self::new(call, self.bulk) }
    }

    /// The key of the dict that holds it, outermost, where it is told.
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

    /// Text holds no containers any more.
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

    /// Notes that `+=` or `append` at the end of `place` collects the value in `holder`, if the loop around reads it each time.
    pub fn collected(mut self, place: &[Node<'_>], holder: &Expr, sum: bool) -> Self {
        let region = scope::innermost_loop(place, self.origin);
        let attribute = dotted(holder).contains('.');
        self.collected = self.collected.or(region.map(|region| Collected { region, attribute }));
        self.summed |= sum && region.is_some();
        self
    }

    /// Whether an attribute or method of a meter gives the value back, which it then stands for; true for all other values.
    pub fn is_given_by(&mut self, name: &str) -> bool {
        let Some(Step::Meter(key)) = self.steps.last().cloned() else { return true };
        let any = facts::name(name).is(Fact::Holds);
        let own = facts::name(name).is(Fact::Giving) || any || key.as_deref() == Some(name);
        // What it was told is not given back, nor is another figure.
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

/// The containers around a value, innermost first.
pub type Steps = Vec<Step>;

/// One container around a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Index(usize),
    Key(String),
    /// An attribute of an object that was made with it, and its place where the object can be unpacked: a named tuple.
    Field(String, Option<usize>),
    /// Some element.
    Any,
    /// The value under some key of a dict.
    Entry,
    /// A meter that was told the value, under a name if it keeps several.
    Meter(Option<String>),
}

/// What becomes of a value in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sink {
    /// Shown or recorded.
    Log,
    /// The text of an exception.
    Error,
    /// Written to a file as data.
    Write,
    /// Decides what runs; `guard` where the branch only stops or complains, `nan` where it looks for NaN or infinity.
    Branch {
        guard: bool,
        assert: bool,
    },
    /// A size, a bound, a loop count.
    Size,
    /// An index or a key.
    Index,
    /// The learning rate.
    Rate,
    /// Other CPU work that needs it.
    Compute,
    /// Back to the GPU.
    Device,
    /// Handed to the caller.
    Returned,
    /// Kept where this file does not show who reads it.
    Stored,
    /// Nobody reads it.
    Dropped,
    Unknown,
}

impl Sink {
    /// A branch that does more than stop or complain.
    pub const BRANCH: Self = Self::Branch { guard: false, assert: false };

    /// Whether it needs the value at once.
    pub fn is_decisive(&self) -> bool {
        matches!(self, Self::Branch { .. } | Self::Size | Self::Index | Self::Rate | Self::Compute)
    }
}

/// What becomes of a value, in words; apart are those that say more than the sink does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Joined with a tensor of the device or stored in one: by these words, and without a wait were it still on the device.
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

/// A sink with the words for it.
#[derive(Clone, Debug)]
pub struct Use {
    pub sink: Sink,
    /// "an argument of logger.info", "the test of an `if`", …
    pub what: What,
    /// The file that it is in, where that is another one than that which is read.
    pub file: Option<String>,
    pub line: u32,
    /// Reached through a name or directly.
    pub name: Option<String>,
    /// Collected in a loop and used outside of it.
    pub deferred: bool,
    /// Put into a container that a function got as the parameter `name`: the function.
    pub given: Option<TextRange>,
    /// Only now and then, by a condition that the read itself does not stand under.
    pub rare: bool,
    /// Only every so many turns of a loop.
    pub seldom: bool,
    /// What it leads to, of a branch.
    pub fork: Fork,
    /// Whether it passed what is called like a meter.
    pub metered: bool,
    /// The value as the sink gets it, for following it into the caller.
    pub value: Value,
}

impl Use {
    /// "the test of an `if` in t.py (line 7)"; what is never read is so in no line.
    pub fn told(&self) -> String {
        let what = match &self.what {
            What::NeverRead => return "never read".to_owned(),
            What::Collected(container) => &format!("collected in `{container}`"),
            What::Joined(words) | What::Other(words) => words,
        };
        let file = self.file.as_deref().map(|file| format!(" in {}", crate::text::path_end(file, 1)));
        format!("{what}{} (line {})", file.unwrap_or_default(), self.line)
    }

    /// Notes the file that it is in, where that is not known yet.
    pub fn lies_in(&mut self, file: &str) {
        self.file.get_or_insert_with(|| file.to_owned());
    }

    /// What a call of `function` gives as the container that the function has put the value into.
    pub fn container<'a>(&self, function: &[Node<'_>], call: &'a ExprCall) -> Option<&'a Expr> {
        self.given.filter(|given| *given == nodes::range(function))?;
        argument_for(function, call, self.name.as_deref()?)
    }

    /// Whether a use comes after the loop that reads the value, so that one read there would do: of a sum (S05), also where it
    /// decides something there, of a list of figures, and of arrays gathered batch by batch (D08), which need no look inside the loop. Other lists are what the program
    /// makes, and how soon they are needed is not told. So it is of a number that decides something every so many turns.
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
            // What the program makes, rather than what it tells of it.
            Sink::Write => summed || figures && !self.value.many,
            Sink::Compute if self.value.tensor => true,
            // What an attribute collects may be asked for by a method that the loop calls.
            _ if self.sink.is_decisive() => summed && !collected.attribute,
            Sink::Returned => summed || figures || self.value.tensor,
            _ => summed || self.value.tensor,
        }
    }
}

/// Where a value goes from a node.
pub(super) enum Next {
    /// So many levels up.
    Up(usize),
    /// Nowhere else: what it comes to is recorded, or it comes to nothing.
    Done,
    /// It ends here.
    End(Sink, What),
}

/// The value ends in a sink.
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

/// A constant index or key.
pub fn constant_step(expr: &Expr) -> Option<Step> {
    match expr {
        Expr::StringLiteral(literal) => Some(Step::Key(literal.value.to_str().to_owned())),
        _ => usize::try_from(nodes::int(expr)?).ok().map(Step::Index),
    }
}
