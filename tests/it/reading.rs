//! Reads the Python source of waits. The fixtures `reading/*.py` are small programs with a marker comment on
//! each line that waits, written as in [`marker`]. Every line is read in a tree that holds its program alone.
//!
//! ```text
//! # --- a guard
//! def step(loss):
//!     if loss.item() > 9:  #! item: control-flow; rules S02; pattern A35
//!         raise ValueError
//! ```
//! A marker says what the trace saw (see [`observed()`]), and the expected kind of wait; `stale` if the line
//! does not hold what the trace saw. Options: `rules …` the rules of all evidence, in order; `rule …`, `text
//! …` rule and text of the first; `says …`, `silent …` words that are, or are not, in its text; `pattern …`;
//! `expression …`; `fix …` the expression rewritten, `nofix` where there is none; `made …` how the host makes
//! the copied data; `in …` the code object that the trace names for the line; `nochain` without the C++
//! frames that name the operation; `only …` with NVTX's name of the operator alone.

mod files;
mod observed;
mod programs;

use crate::snippets::marker::{self, Mark};
pub use observed::observed;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use sync_report::model::Frame;
use sync_report::rules::grade::{DECIDED, EVEN};
use sync_report::verdict::source::{
    Finding, Observed, Reading, SourceFiles, SourceRoot, SourceTree, read_site,
};
use sync_report::vocabulary::Class;

const RECORDED: &str = "/work/train.py";

#[test]
fn lines_are_read_as_their_markers_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/reading");
    let (mut wrong, mut cases) = (String::new(), 0);
    for entry in fs::read_dir(folder).expect("the fixtures") {
        let path = entry.expect("a fixture").path();
        if path.extension().is_none_or(|extension| extension != "py") {
            continue;
        }
        for snippet in marker::parse(&fs::read_to_string(&path).expect("a fixture")) {
            let program = Program::new((snippet.lines.join("\n") + "\n").as_bytes());
            for (name, text) in &snippet.files {
                program.add(name, text);
            }
            for mark in &snippet.marks {
                for stack in snippet.stacks(mark.line) {
                    cases += 1;
                    if let Some(why) = program.differs(mark, &stack) {
                        let (file, line) = (path.display(), snippet.at + mark.line);
                        let _ = writeln!(wrong, "{file}:{line}: {}: {why}", snippet.name);
                    }
                }
            }
        }
    }
    println!("{cases} cases");
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(cases > 400, "{cases} cases");
}

pub struct Program {
    tree: SourceTree,
    folder: tempfile::TempDir,
}

impl Program {
    pub fn new(source: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("train.py"), source).expect("a written program");
        Self { tree: tree(folder.path()), folder }
    }

    fn add(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a written folder");
        fs::write(path, text).expect("a written file");
    }

    /// Reads the line that a stack of (function, line), innermost first, begins with.
    pub fn read(&self, stack: &[(String, usize)], observed: &Observed<'_>) -> Finding {
        let frames: Vec<Frame> =
            stack.iter().map(|(function, line)| frame(function, RECORDED, *line as u32)).collect();
        read_site(&self.tree, &frames, observed)
    }

    /// `None` if the reading is as the marker says.
    fn differs(&self, mark: &Mark, stack: &[(String, usize)]) -> Option<String> {
        let mut stack = stack.to_vec();
        if let Some(name) = &mark.inside {
            stack[0].0.clone_from(name);
        }
        let mut observed = observed(&mark.operation);
        if !mark.chain {
            (observed.method, observed.operator, observed.through) = (None, None, None);
        }
        if let Some((_, operator)) = mark.rest.iter().find(|(option, _)| option == "only") {
            (observed.method, observed.operator) = (None, Some(operator.as_str()));
        }
        let kind = mark.label.as_ref().map_or("", |label| &label.kind);
        match self.read(&stack, &observed) {
            Finding::Stale { .. } if kind == "stale" => None,
            Finding::Read(reading) => {
                let failed = std::iter::once(kind_fits(kind, &reading).then_some(()).ok_or(kind.to_owned()));
                let options = mark.rest.iter().map(|(name, text)| {
                    option_fits(name, text, &reading).then_some(()).ok_or(format!("{name} {text}"))
                });
                let failed: Vec<String> = failed.chain(options).filter_map(Result::err).collect();
                (!failed.is_empty()).then(|| format!("not {}: {reading:#?}", failed.join("; ")))
            }
            other => Some(format!("{kind} expected, got {other:?}")),
        }
    }
}

/// Whether kind and class fit, confidence is even exactly where undecided, and evidence is given.
fn kind_fits(kind: &str, reading: &Reading) -> bool {
    let verdict = &reading.verdict;
    let even = verdict.confidence == EVEN;
    verdict.kind.as_str() == kind
        && verdict.class == verdict.kind.class()
        && even == (verdict.class == Class::Unknown)
        && (even || verdict.confidence >= DECIDED)
        && !verdict.evidence.is_empty()
}

fn option_fits(name: &str, text: &str, reading: &Reading) -> bool {
    let verdict = &reading.verdict;
    let first = &verdict.evidence[0];
    let rules: Vec<String> = verdict.evidence.iter().map(|evidence| evidence.rule.to_string()).collect();
    match name {
        "rules" => rules.join(" ") == text,
        "rule" => rules[0] == text,
        "text" => first.text == text,
        "says" => first.text.contains(text),
        "silent" => !first.text.contains(text),
        "pattern" => verdict.pattern.is_some_and(|pattern| pattern.as_str() == text),
        "expression" => reading.expression == text,
        "fix" => reading.rewritten.as_deref() == Some(text),
        "made" => verdict.made.map_or("here".into(), |made| format!("{made:?}").to_lowercase()) == text,
        "nofix" => reading.rewritten.is_none(),
        "only" => true,
        _ => panic!("unknown option {name:?}"),
    }
}

fn frame(function: &str, file: &str, line: u32) -> Frame {
    Frame { function: function.into(), file: file.into(), line, user: true }
}

fn tree(root: &Path) -> SourceTree {
    SourceTree::new(vec![SourceRoot { old: None, new: root.to_owned() }])
}
