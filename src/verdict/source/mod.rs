//! Reading the Python source of a call site: which expression waits, and where its value goes.

mod act;
mod argument;
mod attribute;
mod barrier;
mod bind;
mod callers;
mod context;
mod explicit;
mod file;
mod fit;
mod flow;
mod join;
mod judge;
mod locate;
mod meter;
mod nature;
mod nodes;
mod objects;
mod origin;
mod rewrite;
mod rules;
mod scope;
mod settled;
mod sinks;
mod tree;
mod value;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_acts;
#[cfg(test)]
mod tests_callers;
#[cfg(test)]
mod tests_containers;
#[cfg(test)]
mod tests_exchange;
#[cfg(test)]
mod tests_explicit;
#[cfg(test)]
mod tests_flow;
#[cfg(test)]
mod tests_guards;
#[cfg(test)]
mod tests_hostile;
#[cfg(test)]
mod tests_lines;
#[cfg(test)]
mod tests_loops;
#[cfg(test)]
mod tests_meters;
#[cfg(test)]
mod tests_objects;
#[cfg(test)]
mod tests_programs;
#[cfg(test)]
mod tests_rewrite;
#[cfg(test)]
mod tests_styles;

pub use tree::{Refused, SourceRoot, SourceTree};

use crate::report::Frame;
use crate::vocabulary::{Class, Copy, Evidence, Kind, Verdict};
use judge::{Bench, Judged};
use nature::Natures;

/// What the trace saw at one call site; the expression found in the source must fit it.
#[derive(Clone, Debug, Default)]
pub struct Observed<'a> {
    /// Runtime or driver name without suffix: "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpyAsync", "cudaFree", …
    pub api: &'a str,
    /// The copy that the wait completed.
    pub copy: Option<Copy>,
    /// Python-level method that the native chain names, prefix stripped: "item", "to", "cuda", "cpu", "tolist", "getitem",
    /// "setitem", "is_nonzero", "index_scalar", "tensor", "nonzero", "masked_select", "synchronize", …; `None` without chains.
    pub method: Option<&'a str>,
    /// Innermost ATen operator of the chain that names the operation: "nonzero", "_local_scalar_dense", "copy_", "_unique2", …
    pub operator: Option<&'a str>,
    /// (file, function) of the library frame that the user's line called, where the wait happened inside a Python library:
    /// ("…/torch/cuda/__init__.py", "synchronize"), ("…/torch/_tensor.py", "__format__"), ("…/torch/_tensor_str.py", "__init__").
    pub through: Option<(&'a str, &'a str)>,
}

/// What the source says about a call site.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// No file could be read.
    NoSource,
    /// A file was read, but its line does not hold what the trace saw.
    Stale { line_text: String, reason: String },
    /// The line holds the synchronising expression.
    Read(Reading),
}

/// The synchronising expression and what becomes of its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Text of the recorded line, trimmed.
    pub line_text: String,
    /// The expression that waits, as written: `loss.item()`.
    pub expression: String,
    /// `Class::Unknown`/`Kind::ValueRead` where the source does not decide.
    pub verdict: Verdict,
    /// The same expression rewritten without the wait, where the tool can write it; for the fix column.
    pub rewritten: Option<String>,
}

/// Reads the call site of `frames` (the user's frames, innermost first): finds the expression on the first frame's line that
/// waits in the way the trace saw, and follows its value to a verdict.
///
/// Several expressions of the line may fit alike: if their verdicts agree the site gets that verdict, if they disagree about
/// the class it is unknown, and the evidence tells both.
pub fn read_site(tree: &SourceTree, frames: &[Frame], observed: &Observed<'_>) -> Finding {
    let Some(frame) = frames.first() else { return Finding::NoSource };
    let Some(file) = tree.open(&frame.file) else { return Finding::NoSource };
    let natures = Natures::new(&file);
    let line_text = file.line_text(frame.line).to_owned();
    let candidates = match locate::locate(&file, frame, observed, &natures) {
        Ok(candidates) => candidates,
        Err(reason) => return Finding::Stale { line_text, reason },
    };
    let bench = Bench { tree, frames, observed };
    let judged = candidates.iter().map(|candidate| bench.judge(&file, &natures, candidate)).collect();
    match combine(judged) {
        Some(Judged { expression, verdict, rewritten }) => {
            Finding::Read(Reading { line_text, expression, verdict, rewritten })
        }
        None => Finding::Stale { line_text, reason: "nothing on the line waits".into() },
    }
}

/// One verdict from those of all expressions that fit: theirs where they agree, unknown where they do not.
fn combine(judged: Vec<Judged>) -> Option<Judged> {
    let expressions = distinct(judged.iter().map(|one| one.expression.clone()));
    let rewritten = distinct(judged.iter().filter_map(|one| one.rewritten.clone()));
    let mut all = judged.into_iter();
    let mut whole = all.next()?;
    for other in all {
        let (mine, theirs) = (&mut whole.verdict, other.verdict);
        if mine.class != theirs.class {
            let text = format!("`{}` alone would be {} ({})", other.expression, theirs.class, theirs.kind);
            mine.evidence
                .insert(0, Evidence::new("S06", format!("the expressions of the line disagree: {text}")));
            (mine.class, mine.kind) = (Class::Unknown, Kind::ValueRead);
            mine.confidence = mine.confidence.min(theirs.confidence).min(0.5);
        } else if mine.kind != theirs.kind {
            mine.confidence = mine.confidence.min(theirs.confidence) * 0.9;
        } else {
            mine.confidence = mine.confidence.min(theirs.confidence);
        }
        for evidence in theirs.evidence {
            if !mine.evidence.contains(&evidence) {
                mine.evidence.push(evidence);
            }
        }
    }
    whole.expression = expressions.join(", ");
    whole.rewritten = (!rewritten.is_empty()).then(|| rewritten.join(", "));
    Some(whole)
}

fn distinct(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for text in all {
        if !kept.contains(&text) {
            kept.push(text);
        }
    }
    kept
}
