//! Safe edits of findings, checked against each other.

use super::files::recorded;
use crate::model::edit::Edit;
use crate::model::lint::{LintFinding, LintReport};
use crate::model::patch::PatchedFile;
use crate::patch::make;
use crate::verdict::source::{Recorded, SourceTree, editable};
use crate::vocabulary::Class;
use std::collections::BTreeMap;

/// Drops edits that conflict with other findings. An edit stays if all waits of its line are avoidable, if
/// each line it covers has the same edit, and if it touches no earlier edit in the file.
pub(super) fn settle(findings: &mut [LintFinding]) {
    let mut of_file: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, finding) in findings.iter().enumerate() {
        of_file.entry(finding.file.clone()).or_default().push(at);
    }
    for all in of_file.into_values() {
        let mut kept: Vec<Edit> = Vec::new();
        for &at in &all {
            let Some(edit) = findings[at].edit.clone() else { continue };
            let line = findings[at].line;
            let others = || all.iter().map(|&at| &findings[at]);
            let disputed = others().any(|one| one.line == line && one.class != Class::False);
            let alike =
                |line: &u32| others().any(|one| one.line == *line && one.edit.as_ref() == Some(&edit));
            let whole = edit.lines.iter().all(alike);
            let collides = kept.iter().any(|other| other.collides(&edit));
            if disputed || !whole || collides {
                findings[at].edit = None;
            } else {
                kept.push(edit);
            }
        }
    }
}

/// The files with safe edits made, and the number of fixed findings; without files that would not parse.
pub fn plan(report: &LintReport) -> (Vec<PatchedFile>, usize) {
    let mut of_file: BTreeMap<&str, Vec<&Edit>> = BTreeMap::new();
    for finding in &report.findings {
        if let Some(edit) = &finding.edit {
            of_file.entry(&finding.file).or_default().push(edit);
        }
    }
    let (mut files, mut fixed) = (Vec::new(), 0);
    for (file, mut edits) in of_file {
        let findings = edits.len();
        edits.dedup();
        let recorded = recorded(file);
        let tree = SourceTree::new(Vec::new()).and_recorded(Recorded::All);
        let Ok((path, before)) = editable(&tree, &recorded) else { continue };
        if let Some(after) = make(&before, &edits) {
            files.push(PatchedFile { path, recorded, before, after, edits: edits.len() });
            fixed += findings;
        }
    }
    (files, fixed)
}
