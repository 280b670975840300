//! Waits that the sources alone show: the result tree of `lint`.

use super::edit::Edit;
use super::{Tool, Warning, finite};
use crate::vocabulary::{Class, Evidence, Kind, PatternId, words};
use schemars::JsonSchema;
use serde::Serialize;

words! {
    /// Certainty that a line waits where it runs on a GPU.
    Certainty {
        Certain = "certain": "The operand is on the device, or the call says that it waits.",
        Probable = "probable": "Nothing says that the operand is on the host, and only tensors are used so.",
    }
}

words! {
    /// Frequency of a line, as far as its file shows; the hottest first.
    #[derive(Default)]
    Heat {
        Loop = "loop": "A loop repeats it.",
        Step = "step": "A framework calls its method for each batch, such as `forward`.",
        Called = "called": "A loop or a step of its file calls its function.",
        #[default]
        Once = "once": "Nothing in its file repeats it.",
    }
}

/// The waits that a linter found.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct LintReport {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// The program that wrote the result.
    pub tool: Tool,
    /// Files that were read.
    pub files: usize,
    /// Whether no finding fails the run.
    pub passed: bool,
    /// Lines that wait: the most frequent first, then by path and line.
    pub findings: Vec<LintFinding>,
    /// Findings whose safe edit `--fix` has written; `findings` no longer lists them.
    pub fixed: usize,
    /// Facts that sources do not show, one sentence each.
    pub unknown: Vec<String>,
    /// Files that were not read.
    pub warnings: Vec<Warning>,
}

impl LintReport {
    /// The findings that no comment allows.
    pub fn open(&self) -> impl Iterator<Item = &LintFinding> {
        self.findings.iter().filter(|finding| finding.allowed.is_none())
    }

    /// Number of open findings of a class.
    pub fn count(&self, class: Class) -> u64 {
        self.open().filter(|finding| finding.class == class).count() as u64
    }
}

/// A line that waits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LintFinding {
    /// Path of the file, as it was found below the paths given.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// Function or method; `<module>` outside of any.
    pub function: String,
    /// Frequency of the line.
    pub heat: Heat,
    /// Certainty that the line waits.
    pub certainty: Certainty,
    /// Whether the wait can go.
    pub class: Class,
    /// Reason for the class, as a word.
    pub kind: Kind,
    /// Confidence in the class, 0 to 1.
    #[serde(serialize_with = "finite")]
    pub confidence: f64,
    /// Id of the catalogue entry; null where none fits.
    #[schemars(with = "Option<String>")]
    pub pattern: Option<PatternId>,
    /// Text of the line.
    pub source: String,
    /// The expressions that wait.
    pub expression: String,
    /// Reasons for the class, the deciding one first.
    pub evidence: Vec<Evidence>,
    /// The advice; null where the catalogue has no entry.
    pub fix: Option<LintFix>,
    /// The safe edit that removes the wait; null where there is none.
    pub edit: Option<Edit>,
    /// Reason of the comment that allows the line; null where none does.
    pub allowed: Option<String>,
}

/// Advice for a line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LintFix {
    /// The advice in a few words.
    pub title: String,
    /// Typical code with the wait.
    pub before: String,
    /// The same code without the wait.
    pub after: String,
    /// Risks of the change; empty where there is none.
    pub caveat: String,
    /// The line's own expression without the wait; null where not proven right.
    pub here: Option<String>,
}
