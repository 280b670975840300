//! Waits in Python files without a capture: the files, the reader's findings, and the safe edits.

mod edits;
mod files;

pub use edits::plan;
pub use files::Tree;

use crate::catalogue::{self, Case};
use crate::model::edit::{Outcome, Safety};
use crate::model::lint::{LintFinding, LintFix, LintReport};
use crate::model::{Code, Warning};
use crate::profile::parallel::divided;
use crate::text;
use crate::verdict::combine::undecide;
use crate::verdict::source::scan::{MOST, WaitingLine, scan};
use crate::verdict::source::{Beside, Recorded, SourceTree};
use crate::vocabulary::{Class, PatternId, words};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

words! {
    /// Findings that fail a run.
    #[derive(Default)]
    FailOn {
        /// The default.
        #[default]
        Avoidable = "avoidable": "an avoidable wait",
        Any = "any": "any wait, needed and undecided ones too",
        None = "none": "none",
    }
}

const UNKNOWN: [&str; 2] = [
    "No capture was read: whether a line runs, how often, and what its wait costs is not known.",
    "A value whose origin no line shows may live on the CPU: such a line is marked probable.",
];

#[derive(Clone, Copy, Debug)]
pub struct LintOptions {
    /// The result is the same with any number of threads.
    pub threads: usize,
    pub fail_on: FailOn,
}

/// # Errors
/// A path that is not there, no Python file, or none that can be read.
pub fn run(paths: &[PathBuf], wanted: LintOptions) -> Result<LintReport> {
    let tree = Tree::below(paths)?;
    let beside = files::beside(&tree.files, wanted.threads);
    let read = divided(tree.files.len(), wanted.threads, |at| of_file(&tree.files[at], beside));
    let (mut findings, mut warnings, mut files) = (Vec::new(), tree.warnings, 0);
    for one in read {
        match one {
            Ok((found, left_out)) => {
                files += 1;
                findings.extend(found);
                warnings.extend(left_out);
            }
            Err(message) => {
                let advice = "mend the file, or leave it out of the paths";
                warnings.push(Warning::new(Code::SourceRefused, message, advice));
            }
        }
    }
    if files == 0 {
        let why: Vec<&str> = warnings.iter().map(|warning| &*warning.message).collect();
        bail!("no file could be read: {}", why.join("; "));
    }
    findings.sort_by(|a, b| (a.heat, &a.file, a.line).cmp(&(b.heat, &b.file, b.line)));
    edits::settle(&mut findings);
    let unknown = UNKNOWN.map(str::to_owned).to_vec();
    let mut report =
        LintReport { schema_version: 1, files, findings, unknown, warnings, ..LintReport::default() };
    report.passed = match wanted.fail_on {
        FailOn::Avoidable => report.count(Class::False) == 0,
        FailOn::Any => report.open().next().is_none(),
        FailOn::None => true,
    };
    Ok(report)
}

/// Other lines of the repository with `pattern`, in order of files; `None` if it has too many files.
pub fn elsewhere(file: &Path, line: u32, pattern: PatternId, threads: usize) -> Option<Vec<String>> {
    let root = files::program(file);
    let mut all = files::within_bounds([root.clone()])?;
    all.sort();
    let of = |path: &Path| {
        let shown = path.strip_prefix(&root).unwrap_or(path).to_string_lossy().into_owned();
        let named = files::Named { shown, recorded: path.to_str()?.to_owned() };
        let (found, _) = of_file(&named, Beside::default()).ok()?;
        let other = |one: &LintFinding| one.pattern == Some(pattern) && !(path == file && one.line == line);
        let place = |one: &LintFinding| format!("{}:{}  {}", one.file, one.line, one.source);
        Some(found.iter().filter(|one| other(one)).map(place).collect::<Vec<_>>())
    };
    let found = divided(all.len(), threads, |at| of(&all[at]).unwrap_or_default());
    Some(found.into_iter().flatten().collect())
}

/// The findings of a file, and a warning if too many; the error is a sentence.
fn of_file(file: &files::Named, beside: Beside) -> Result<(Vec<LintFinding>, Option<Warning>), String> {
    // Each file is parsed with its imports only: the whole repository would not fit into memory.
    let tree = SourceTree::new(Vec::new()).and_recorded(Recorded::All);
    let refused = |why: String| {
        let of_its_own = if why.contains(": ") { "is " } else { "" };
        format!("{}: the file {of_its_own}{why}", file.shown)
    };
    let (found, left) = scan(&tree, &file.recorded, beside).map_err(refused)?;
    let left_out = (left > 0).then(|| {
        let left = text::count(left as u64);
        let message = format!("{}: {left} waits after the first {MOST} were left out", file.shown);
        Warning::new(Code::SourceRefused, message, "leave generated files out of the paths")
    });
    Ok((found.into_iter().map(|one| finding(&file.shown, one)).collect(), left_out))
}

fn finding(file: &str, found: WaitingLine) -> LintFinding {
    let WaitingLine { line, function, certainty, heat, number, mut reading, allowed } = found;
    undecide(&mut reading.verdict);
    let verdict = reading.verdict;
    let avoidable = verdict.class == Class::False;
    let edit = match reading.outcome {
        Outcome::Edit(edit) if avoidable && edit.safety == Safety::Safe && allowed.is_none() => Some(edit),
        _ => None,
    };
    let holds = |case| match case {
        Case::Is(kind) => kind == verdict.kind,
        Case::NumberIs(kind) => kind == verdict.kind && number,
        _ => false,
    };
    let fix = verdict.pattern.map(|pattern| {
        let entry = catalogue::entry(pattern).in_case(holds);
        LintFix {
            title: entry.fix.title.to_owned(),
            before: entry.fix.before.to_owned(),
            after: entry.fix.after.to_owned(),
            caveat: entry.fix.caveat.to_owned(),
            here: edit.as_ref().and(reading.rewritten),
        }
    });
    LintFinding {
        file: file.to_owned(),
        line,
        function,
        heat,
        certainty,
        class: verdict.class,
        kind: verdict.kind,
        confidence: verdict.confidence,
        pattern: verdict.pattern,
        source: reading.line_text.unwrap_or_default(),
        expression: reading.expression,
        evidence: verdict.evidence,
        fix,
        edit,
        allowed,
    }
}
