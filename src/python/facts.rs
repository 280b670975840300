//! A table of the names that Python programs use. Each name is listed once, with all facts about it
//! (`facts.toml`).
//!
//! ```text
//!  loss.detach().item()      `detach`: same, tensor        the same elements; only a tensor has it
//!  └─┬┘                      `item`: read, host, tensor    hands its element to Python
//!    `loss`: a word
//! ```

use crate::vocabulary::words;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

words! {
    /// A fact about a name.
    Fact {
        // Functions and methods of tensors: what the result is to what it is called on, or to its first argument.
        Form = "form": "the same elements in another form",
        Type = "type": "the same elements in another type",
        Same = "same": "the same elements",
        Move = "move": "the same elements, perhaps elsewhere",
        Tile = "tile": "its elements, each several times",
        Each = "each": "one element of each element",
        Test = "test": "true or false for each element",
        Total = "total": "one number of all elements, or of those along a dimension",
        Reduce = "reduce": "fewer numbers, none of which stands for all elements",
        Several = "several": "several tensors",
        List = "list": "a list of tensors, or no tensor",
        Select = "select": "some of the elements",
        Here = "here": "another tensor, where this one lives",
        Property = "property": "an attribute that is another form or a part of the tensor",
        Like = "like": "a new tensor of its form",
        Tensor = "tensor": "only tensors have a method of that name",
        Shared = "shared": "containers, loggers and numbers have one of that name, too",
        Read = "read": "its values on the host",
        Host = "host": "a Python value, or a copy on the host",
        Layout = "layout": "how it is laid out, whatever it holds",
        Stateless = "stateless": "no tensor",
        Pure = "pure": "what follows from the arguments alone",
        Own = "own": "the object itself",
        Size = "size": "takes sizes",
        Make = "make": "a tensor of no data, on the host unless a device is given",
        Named = "named": "of numbers that the program names",
        Exact = "exact": "the same numbers on any device",
        Random = "random": "of random numbers",
        Fill = "fill": "overwrites all of a tensor with no data",
        Draw = "draw": "draws as many samples as it is told",
        Data = "data": "a tensor of data that it is given",
        Join = "join": "one tensor of several",
        JoinArrays = "join-arrays": "one new array of several",
        Product = "product": "a product with another tensor",
        Distance = "distance": "one number of the distances of the elements of two",
        TakesNumber = "takes-number": "hands a number to the device",
        Change = "change": "changes the tensors that it is given",
        Mean = "mean": "one figure of many numbers of the host",
        Share = "share": "shares the tensor's memory",
        Foreign = "foreign": "gives the memory to what is not PyTorch; of a module: it takes such memory",
        Narrow = "narrow": "a type of integers as wide as a float, or narrower",
        Placing = "placing": "an argument that says where a tensor is made",
        // Python's own.
        Builtin = "builtin": "a builtin",
        Answer = "answer": "a builtin whose result is a Python value, whatever its arguments are",
        Class = "class": "a type whose call runs no function in C that a profiler of Python sees",
        Through = "through": "another value of the host from one",
        Number = "number": "a number of Python's from one value",
        Neutral = "neutral": "does not look at the value",
        Dict = "dict": "a dict of what it is given by keywords, or by pairs",
        Container = "container": "a new container",
        Put = "put": "puts something into a container",
        Part = "part": "a part of what it is called on, which others may read as well",
        Pair = "pair": "tuples, of which one element comes from the argument",
        Wrap = "wrap": "its first argument, element by element",
        Method = "method": "a method of containers, texts, loggers or optimizers",
        Elsewhere = "elsewhere": "runs a function in another thread or process",
        Transparent = "transparent": "a decorator that hands on what the function returns",
        Stop = "stop": "ends or holds up the program",
        Clock = "clock": "reads a clock",
        Decode = "decode": "a value from a file or a text",
        Heap = "heap": "orders a heap",
        TellsKind = "tells-kind": "tells the kind of a value",
        Alter = "alter": "changes a container, and gives nothing",
        OfNumber = "of-number": "a method of Python's numbers alone",
        Compares = "compares": "a builtin that compares elements, or asks for their truth",
        HostType = "host-type": "a type of values of the host, as parameters are declared",
        Unshown = "unshown": "an argument of a logger that is not shown",
        // Programs and their libraries.
        Log = "log": "shows or records what it is given, whatever it is called on",
        LogVerb = "log-verb": "what loggers, progress bars and meters are told",
        Text = "text": "text of its arguments",
        Write = "write": "writes data to a file",
        Export = "export": "writes a table or an array to a file",
        Prints = "prints": "shows its arguments itself, rather than by a logger",
        Weight = "weight": "how many samples a figure stands for",
        Score = "score": "a metric of scikit-learn's, which computes on the host",
        Hook = "hook": "a step that a framework calls",
        Stream = "stream": "puts work on another stream",
        Order = "order": "synchronises, or tidies up",
        Rate = "rate": "a setting of an optimizer",
        Backend = "backend": "an accelerator other than CUDA, or any",
        // Members of meters.
        Told = "told": "does not give back what the meter was told",
        Giving = "giving": "gives back what the meter was told",
        Holds = "holds": "gives back all that meters were told",
        SumField = "sum-field": "keeps a sum",
        CountField = "count-field": "keeps a count",
        MeanField = "mean-field": "keeps a mean",
        // Modules.
        Torch = "torch": "functions of tensors",
        Numpy = "numpy": "NumPy",
        Arrays = "arrays": "its `zeros` makes an array, its `save` writes one",
        Numeric = "numeric": "computes with numbers, and holds their types and constants",
        HostFromHost = "host-from-host": "computes values of the host from values of the host",
        HostResults = "host-results": "gives values of the host, which say nothing of the arguments",
        HostThrough = "host-through": "by its full name: takes a value of the host to another one",
        WellNamed = "well-named": "its functions do what they are called",
        Generic = "generic": "gives what it makes of its arguments, wherever those live",
        Settings = "settings": "an object that settings are kept in",
        Cpu = "cpu": "works on the host with the arrays and lists that it is given",
        Image = "image": "draws and cuts by the numbers that it is given",
        Encoding = "encoding": "reads and writes values as text or bytes",
        Drawing = "drawing": "draws figures",
        Framework = "framework": "a library over PyTorch: programs that import it work with tensors",
        // Words of names.
        Logger = "logger": "a logger's, wherever it stands in the name",
        LoggerLast = "logger-last": "a logger's, as the last word",
        Display = "display": "draws for who watches the run",
        Show = "show": "shows something, as the first word",
        Reporting = "reporting": "of code that reports",
        Maths = "maths": "beside it, `log` is the logarithm",
        RecordVerb = "record-verb": "records, as the first word, where a `recorded` follows",
        Recorded = "recorded": "is recorded",
        Recorder = "recorder": "records, as the first word",
        Metric = "metric": "collects figures to show",
        LogHolder = "log-holder": "holds figures, as the last word behind `log`",
        Figure = "figure": "a figure to show or compare",
        Run = "run": "speaks of the run",
        Picture = "picture": "shows or draws",
        Writer = "writer": "writes to a file, as the first word",
        Environment = "environment": "an environment to act in, which runs on the host",
        Tokenizer = "tokenizer": "makes text of tokens",
        Callback = "callback": "is called after each step",
        Stopper = "stopper": "ends the training early",
        Loaded = "loaded": "is given by a loader",
        TensorWord = "tensor-word": "is a tensor's, rather than an array's",
        Net = "net": "is a model's",
        Session = "session": "takes reports of a run",
        Timing = "timing": "of code that measures time",
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts(u128);

impl Facts {
    pub const fn is(self, fact: Fact) -> bool {
        self.0 >> fact as u32 & 1 == 1
    }

    pub fn any(self, facts: &[Fact]) -> bool {
        facts.iter().any(|&fact| self.is(fact))
    }

    /// Whether the result has each element once, in another form, type or place.
    pub fn keeps_elements(self) -> bool {
        self.any(&[Fact::Form, Fact::Type, Fact::Same, Fact::Move])
    }

    /// Whether the result is one or several tensors on the device of the tensor that it is called on.
    pub fn stays(self) -> bool {
        use Fact::*;
        self.any(&[Form, Type, Same, Tile, Each, Test, Total, Reduce, Several, Select, Here])
    }
}

/// Names, each with its facts as words of [`Fact`].
type Rows = BTreeMap<String, String>;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    tensor: Rows,
    python: Rows,
    program: Rows,
    module: Rows,
    word: Rows,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Own {
    /// Functions, methods and attributes, by their last name.
    pub name: Rows,
    /// Modules, as the program names them.
    pub module: Rows,
    pub word: Rows,
}

#[derive(Default)]
struct Table {
    names: FxHashMap<String, Facts>,
    modules: FxHashMap<String, Facts>,
    words: FxHashMap<String, Facts>,
}

impl Table {
    fn new() -> Self {
        // A test checks that it parses.
        let Written { tensor, python, program, module, word } =
            toml::from_str(include_str!("facts.toml")).unwrap_or_default();
        let all =
            |rows: Rows| rows.into_iter().map(|(name, words)| (name, facts(&words).unwrap_or_default()));
        Self {
            names: all(tensor).chain(all(python)).chain(all(program)).collect(),
            modules: all(module).collect(),
            words: all(word).collect(),
        }
    }
}

/// The facts that the words name; `Err` is a word that names none.
fn facts(words: &str) -> Result<Facts, &str> {
    words.split_ascii_whitespace().try_fold(Facts::default(), |Facts(all), word| {
        Fact::parse(word).map(|fact| Facts(all | 1 << fact as u32)).ok_or(word)
    })
}

static TABLE: OnceLock<Table> = OnceLock::new();

fn table() -> &'static Table {
    TABLE.get_or_init(Table::new)
}

/// Adds a program's own names. Call it once, before anything is read: a name's facts must not change later.
///
/// # Errors
/// A sentence about a word that is no fact, a dotted name, or a name without words.
pub fn add(own: Own) -> Result<(), String> {
    let mut table = Table::new();
    let Own { name, module, word } = own;
    // Words are looked up in lower case.
    let word = word.into_iter().map(|(word, facts)| (word.to_lowercase(), facts)).collect();
    for (rows, into) in [(name, &mut table.names), (module, &mut table.modules), (word, &mut table.words)] {
        for (name, words) in rows {
            if name.contains('.') || words.trim().is_empty() {
                return Err(format!(
                    "`{name}` is not the last part of a name alone, or nothing is said of it"
                ));
            }
            let Facts(new) = facts(&words)
                .map_err(|word| format!("`{word}` of {name} is no fact; facts are: {}", known_words()))?;
            into.entry(name).or_default().0 |= new;
        }
    }
    let _ = TABLE.set(table);
    Ok(())
}

fn known_words() -> String {
    Fact::ALL.iter().map(|fact| fact.as_str()).collect::<Vec<_>>().join(", ")
}

/// `name` is the last name of a function, method or attribute.
pub fn name(name: &str) -> Facts {
    table().names.get(name).copied().unwrap_or_default()
}

/// `name` is as the program writes it.
pub fn module(name: &str) -> Facts {
    table().modules.get(name).copied().unwrap_or_default()
}

/// `word` is in lower case.
pub fn word(word: &str) -> Facts {
    table().words.get(word).copied().unwrap_or_default()
}

/// Whether the result follows from the arguments alone, and the call changes nothing.
pub fn is_pure(called: &str) -> bool {
    let facts = name(called);
    let computes = facts.stays() || facts.any(&[Fact::Move, Fact::Layout, Fact::Pure]);
    computes && !called.ends_with('_') && !facts.is(Fact::Change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_stands_once_with_words_that_are_facts() {
        let written: Written = toml::from_str(include_str!("facts.toml")).expect("the table");
        let mut names: Vec<&String> =
            [&written.tensor, &written.python, &written.program].into_iter().flat_map(Rows::keys).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
        let sections = [&written.tensor, &written.python, &written.program, &written.module, &written.word];
        let mut known: Vec<Fact> = Vec::new();
        for (name, facts) in sections.into_iter().flatten() {
            for fact in facts.split(' ') {
                known.push(Fact::parse(fact).unwrap_or_else(|| panic!("{name}: {fact}")));
            }
        }
        let unused: Vec<_> = Fact::ALL.iter().filter(|fact| !known.contains(fact)).collect();
        assert!(unused.is_empty(), "{unused:?}");
        assert!(Fact::ALL.len() <= 128);
    }

    #[test]
    fn facts_are_asked_by_name() {
        assert!(name("detach").is(Fact::Same) && !name("detach").is(Fact::Read));
        assert!(is_pure("softmax") && !is_pure("fill_") && !is_pure("update"));
        assert_eq!(name("no such name"), Facts::default());
    }
}
