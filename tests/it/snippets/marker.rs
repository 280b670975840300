//! The snippet files: snippets, and their marker comments.
//!
//! ```text
//! # --- nan_guard (hard)                      starts a snippet; `hard` is only counted
//! def step(loss):
//!     v = loss.item()  #! item: true control-flow
//!     …
//! step(loss)  #< step                         this line calls `step`: a frame of the stack
//! ```
//! A marker is `OPERATION [via CALLER]: LABEL [; OPTION]…`, and a line may hold several of them, separated by `|`. LABEL is
//! class and kind, or the kind alone. Options: `src: LABEL` what the tool should say with the source, where that is not the label; `nosrc: LABEL`
//! what it should say without; `at +N` the recorded line is off by N; `in NAME` the innermost code object, which runs inside
//! the function around (`<lambda>`, `<listcomp>`); `x N` so many waits a time; `nochain` without C++ frames; `todo: …` a case
//! known to be open; others are for who reads the snippets. A marker without a label is work that does not wait.

use sync_report::vocabulary::Kind;

pub struct Snippet {
    pub name: String,
    /// Line of the file that starts it, from 1.
    pub at: usize,
    pub hard: bool,
    /// Without markers, one entry per line.
    pub lines: Vec<String>,
    /// In the order of the lines.
    pub marks: Vec<Mark>,
    /// The program's other files, each after a line `# file: NAME`.
    pub files: Vec<(String, String)>,
    /// Lines (from 1) with the functions that they call.
    calls: Vec<(usize, String)>,
}

#[derive(Clone, Debug)]
pub struct Mark {
    /// From 1.
    pub line: usize,
    pub operation: String,
    pub via: Option<String>,
    /// Class and kind; `None` for work that does not wait.
    pub label: Option<Label>,
    pub with_source: Option<Label>,
    pub without_source: Option<Label>,
    pub off: i64,
    pub inside: Option<String>,
    pub times: usize,
    pub chain: bool,
    pub todo: bool,
    /// All other options, as name and text.
    pub rest: Vec<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub class: String,
    pub kind: String,
}

impl Mark {
    pub fn expected(&self) -> Option<&Label> {
        self.with_source.as_ref().or(self.label.as_ref())
    }
}

pub fn parse(text: &str) -> Vec<Snippet> {
    let mut snippets: Vec<Snippet> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(head) = line.strip_prefix("# --- ") {
            let hard = head.ends_with("(hard)");
            let name = head.trim_end_matches("(hard)").trim().to_owned();
            let (lines, marks, calls, files) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            snippets.push(Snippet { name, at: index + 1, hard, lines, marks, calls, files });
        } else if let Some(snippet) = snippets.last_mut() {
            snippet.add(line);
        }
    }
    snippets
}

impl Snippet {
    fn add(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("# file: ") {
            return self.files.push((name.to_owned(), String::new()));
        }
        if let Some((_, text)) = self.files.last_mut() {
            *text += line;
            return text.push('\n');
        }
        let number = self.lines.len() + 1;
        let (code, calls) = line.split_once("  #< ").unwrap_or((line, ""));
        let (code, marks) = code.split_once("  #! ").unwrap_or((code, ""));
        self.lines.push(code.to_owned());
        self.calls.extend(calls.split_whitespace().map(|name| (number, name.to_owned())));
        self.marks.extend(marks.split(" | ").filter(|text| !text.is_empty()).map(|text| mark(number, text)));
    }

    /// All stacks of a line, innermost first, as (function, line): one for every way to get there that calls are marked for.
    pub fn stacks(&self, line: usize) -> Vec<Vec<(String, usize)>> {
        let function = self.function(line);
        let callers: Vec<usize> =
            self.calls.iter().filter(|(_, name)| *name == function).map(|(at, _)| *at).collect();
        let own = (function, line);
        if callers.is_empty() {
            return vec![vec![own]];
        }
        let rest = callers.into_iter().flat_map(|at| self.stacks(at));
        rest.map(|rest| std::iter::once(own.clone()).chain(rest).collect()).collect()
    }

    /// The function around a line, by its indentation.
    fn function(&self, line: usize) -> String {
        let indent = |text: &str| text.len() - text.trim_start().len();
        let mut least = indent(&self.lines[line - 1]);
        for text in self.lines[..line - 1].iter().rev().filter(|text| !text.trim().is_empty()) {
            if indent(text) >= least {
                continue;
            }
            least = indent(text);
            let head = text.trim_start();
            let head = head.strip_prefix("async ").unwrap_or(head);
            if let Some(rest) = head.strip_prefix("def ") {
                return rest.split('(').next().unwrap_or_default().to_owned();
            }
        }
        "<module>".to_owned()
    }
}

pub fn mark(line: usize, text: &str) -> Mark {
    let mut parts = text.split(';').map(str::trim);
    let head = parts.next().unwrap_or_default();
    let (operation, expected) = head.split_once(": ").map_or((head, None), |(o, l)| (o, Some(label(l))));
    let (operation, via) = match operation.split_once(" via ") {
        Some((operation, via)) => (operation, Some(via.to_owned())),
        None => (operation, None),
    };
    let mut mark = Mark {
        line,
        operation: operation.to_owned(),
        via,
        label: expected,
        with_source: None,
        without_source: None,
        off: 0,
        inside: None,
        times: 1,
        chain: true,
        todo: false,
        rest: Vec::new(),
    };
    for option in parts {
        match option.split_once(' ').unwrap_or((option, "")) {
            ("src:", text) => mark.with_source = Some(label(text)),
            ("nosrc:", text) => mark.without_source = Some(label(text)),
            ("at", offset) => mark.off = offset.parse().expect("an offset"),
            ("in", name) => mark.inside = Some(name.to_owned()),
            ("x", times) => mark.times = times.parse().expect("a number"),
            ("nochain", _) => mark.chain = false,
            ("todo:", _) => mark.todo = true,
            (name, text) => mark.rest.push((name.to_owned(), text.to_owned())),
        }
    }
    mark
}

fn label(text: &str) -> Label {
    let class = |kind| Kind::parse(kind).map_or("", |kind| kind.class().as_str());
    let (class, kind) = text.split_once(' ').unwrap_or_else(|| (class(text), text));
    Label { class: class.to_owned(), kind: kind.to_owned() }
}
