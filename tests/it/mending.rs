//! Edits of lines that wait. The fixtures `mending/*.py` are small programs with markers as in [`crate::reading`].
//! Expected are the options `refused WORD`, `unsafe WORD` and `safe` (else), and the edited program after a line `#
//! file: after`. Further facts of the trace: `streams N`, `devices`, `in-flight`, `burst N`.
//!
//! ```text
//! # --- pageable
//! x = x.cuda()  #! upload cuda 512; safe
//! # file: after
//! x = x.cuda(non_blocking=True)
//! ```
//! Each result parses, and a second reading of it refuses the same edits.

use crate::reading::{Program, observed};
use crate::snippets::marker::{self, Mark, Snippet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use sync_report::model::edit::{Edit, Outcome, Refusal, Replacement, Safety};
use sync_report::patch::apply;
use sync_report::verdict::source::{Finding, parses};

#[test]
fn lines_are_edited_as_their_markers_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mending");
    let (mut wrong, mut cases) = (String::new(), 0);
    for entry in fs::read_dir(folder).expect("the fixtures") {
        let path = entry.expect("a fixture").path();
        for snippet in marker::parse(&fs::read_to_string(&path).expect("a fixture")) {
            cases += snippet.marks.len();
            if let Err(why) = holds(&snippet) {
                let _ = writeln!(wrong, "{}:{}: {}: {why}", path.display(), snippet.at, snippet.name);
            }
        }
    }
    println!("{cases} cases");
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(cases > 60, "{cases} cases");
}

fn edits(snippet: &Snippet, text: &str) -> Vec<Outcome> {
    let program = Program::new(text.as_bytes());
    let read = |mark: &Mark| {
        let has = |name: &str| mark.rest.iter().any(|(option, _)| option == name);
        let mut seen = observed(&mark.operation);
        let streams = mark.rest.iter().find(|(option, _)| option == "streams");
        seen.beside.streams = streams.map_or(1, |(_, count)| count.parse().expect("a number"));
        seen.beside.in_flight = has("in-flight");
        seen.beside.devices = has("devices");
        let burst = mark.rest.iter().find(|(option, _)| option == "burst");
        seen.burst = burst.map(|(_, count)| count.parse().expect("a number"));
        let line = (mark.line as i64 + mark.off) as usize;
        match program.read(&snippet.stacks(line)[0], &seen) {
            Finding::Read(reading) => reading.outcome,
            _ => Outcome::refused(None, Refusal::Stale),
        }
    };
    snippet.marks.iter().map(read).collect()
}

fn holds(snippet: &Snippet) -> Result<(), String> {
    let before = snippet.lines.join("\n") + "\n";
    let outcomes = edits(snippet, &before);
    for (mark, outcome) in snippet.marks.iter().zip(&outcomes) {
        let (word, reason) = match outcome {
            Outcome::Refused { reason, .. } => ("refused", reason.as_str()),
            Outcome::Edit(Edit { safety: Safety::Unsafe, mind, .. }) => {
                ("unsafe", mind.map_or("", |mind| mind.as_str()))
            }
            Outcome::Edit(_) => ("safe", ""),
        };
        let words = ["refused", "unsafe", "safe"];
        let wanted = mark.rest.iter().find(|(option, _)| words.contains(&option.as_str()));
        let wanted = wanted.map_or(("safe", ""), |(word, reason)| (word, reason));
        if (word, reason) != wanted {
            return Err(format!("line {}: {word} {reason}", mark.line));
        }
    }
    let mut all: Vec<&Replacement> =
        outcomes.iter().filter_map(Outcome::edit).flat_map(|edit| &edit.replacements).collect();
    all.sort();
    all.dedup();
    let after = apply(&before, &all).ok_or("the edits overlap")?;
    let expected = snippet.files.iter().find(|(name, _)| name == "after").map(|(_, text)| text.trim_end());
    if after.trim_end() != expected.unwrap_or(before.trim_end()) {
        return Err(format!("\n{after}"));
    }
    if parses(&after) { Ok(()) } else { Err(format!("does not parse:\n{after}")) }
}
