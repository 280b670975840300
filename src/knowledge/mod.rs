//! The catalogue, the rules of evidence and the codes of warnings as JSON, for programs and for the documentation's pages.

pub mod explain;

use crate::catalogue::{self, Category, Run};
use crate::model::Code;
use crate::rules::{self, Role};
use crate::vocabulary::{Class, Kind, RuleId, Strategy};
use explain::Entries;
use schemars::JsonSchema;
use serde::Serialize;

/// Fields may be added, never renamed.
const KNOWLEDGE_VERSION: u32 = 1;

/// Entries of the catalogue, rules of evidence and codes of warnings.
#[derive(Serialize, JsonSchema)]
pub struct Knowledge {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// Patterns of code that wait, or only look so.
    pub patterns: Vec<Pattern>,
    /// Rules that verdicts rest on.
    pub rules: Vec<Rule>,
    /// Codes of warnings.
    pub warnings: Vec<Warning>,
}

/// A pattern of code that waits, or only looks so.
#[derive(Serialize, JsonSchema)]
pub struct Pattern {
    /// Id that reports cite, e.g. "A01".
    pub id: &'static str,
    /// Short name, e.g. "Tensor.item()".
    pub title: &'static str,
    /// Category, in words.
    pub category: &'static str,
    /// Whether the pattern waits; else it only looks so.
    pub waits: bool,
    /// Class of the pattern's waits, where the pattern alone decides; else null.
    pub class: Option<Class>,
    /// Kind of the pattern's waits, where the pattern alone decides; else null.
    pub kind: Option<Kind>,
    /// `class` and `kind` as a sentence.
    pub meaning: String,
    /// Python expressions with the pattern, the plainest first.
    pub triggers: &'static [&'static str],
    /// Why the CPU waits.
    pub why: &'static str,
    /// Signs of the pattern in a trace.
    pub trace: &'static str,
    /// ATen operator or library function that waits.
    pub operator: &'static str,
    /// The driver call that blocks.
    pub driver_api: &'static str,
    /// Versions that the pattern concerns; empty: all.
    pub versions: &'static str,
    /// Library code with the pattern; null for patterns of PyTorch itself.
    pub library: Option<Library>,
    /// Issues and sources that confirm the pattern.
    pub sources: &'static str,
    /// Fix that removes the wait.
    pub fix: Fix,
    /// Result of running `before` and `after` of the fix; null without a pair.
    pub pair: Option<&'static Run>,
}

/// Library code that waits.
#[derive(Serialize, JsonSchema)]
pub struct Library {
    /// Name of the library, e.g. "transformers".
    pub name: &'static str,
    /// Functions that wait.
    pub frames: Vec<Frame>,
    /// A distinctive part of the line; empty where file and function suffice.
    pub line_text: &'static str,
    /// Frequency of the code, e.g. "every step"; empty where unknown.
    pub frequency: &'static str,
}

/// A function of a library.
#[derive(Serialize, JsonSchema)]
pub struct Frame {
    /// End of the file's path.
    pub file: &'static str,
    /// Name of the function; empty: any.
    pub function: &'static str,
}

/// Fix that removes a wait.
#[derive(Serialize, JsonSchema)]
pub struct Fix {
    /// Strategy of the fix.
    pub strategy: Strategy,
    /// Whether the strategy is to leave the wait.
    pub leave: bool,
    /// The other parts of the fix.
    #[serde(flatten)]
    pub rest: &'static catalogue::Fix,
}

/// A rule of evidence.
#[derive(Serialize, JsonSchema)]
pub struct Rule {
    /// Id that verdicts cite.
    pub id: RuleId,
    /// Short name.
    pub title: &'static str,
    /// "trace" and "source" make verdicts, "weak" leans one way, "remark" decides nothing.
    pub role: &'static str,
    /// Facts that the rule looks at.
    pub looks_at: &'static str,
    /// Conclusion of the rule.
    pub proves: &'static str,
    /// Rules and findings that take precedence.
    pub yields_to: String,
    /// Confidence of a verdict, one line for each case.
    pub confidence: Vec<String>,
    /// Origin of the confidences.
    pub origin: String,
    /// Right and wrong verdicts of the rule on labelled captures.
    pub counted: String,
    /// A drawn timeline, or for a rule of the source, lines of Python.
    pub example: &'static str,
}

/// A code of warnings.
#[derive(Serialize, JsonSchema)]
pub struct Warning {
    /// The code.
    pub code: &'static str,
    /// Meaning of the code.
    pub means: &'static str,
    /// Advice for the code.
    pub advice: &'static str,
    /// Whether the export is damaged, so that the exit code is 2.
    pub damage: bool,
}

pub fn tree(entries: &Entries) -> Knowledge {
    Knowledge {
        schema_version: KNOWLEDGE_VERSION,
        patterns: entries.patterns.iter().map(|p| pattern(p)).collect(),
        rules: entries.rules.iter().map(|r| rule(r)).collect(),
        warnings: entries.warnings.iter().map(|&code| warning(code)).collect(),
    }
}

fn pattern(p: &'static catalogue::Pattern) -> Pattern {
    let library = p.library().map(|site| Library {
        name: site.library(),
        frames: site.places().map(|(file, function)| Frame { file, function }).collect(),
        line_text: site.line_text,
        frequency: site.frequency,
    });
    Pattern {
        id: p.id.as_str(),
        title: p.title,
        category: p.category.help(),
        waits: p.category != Category::NotAWait,
        class: p.kind.map(Kind::class),
        kind: p.kind,
        meaning: explain::class_sentence(p),
        triggers: p.triggers,
        why: p.why,
        trace: p.trace,
        operator: p.op,
        driver_api: p.driver_api,
        versions: p.versions,
        library,
        sources: p.confirmed_by(),
        fix: Fix { strategy: p.fix.strategy, leave: p.fix.strategy == Strategy::Leave, rest: &p.fix },
        pair: catalogue::run_of(p.id),
    }
}

fn rule(rule: &rules::Rule) -> Rule {
    let role = match rule.role {
        Role::Trace(_) => "trace",
        Role::Source | Role::Guard => "source",
        Role::Weak => "weak",
        Role::Remark => "remark",
    };
    Rule {
        id: rule.id,
        title: rule.id.title(),
        role,
        looks_at: rule.looks_at,
        proves: rule.proves,
        yields_to: rule.yields_to(),
        confidence: explain::confidence(rule),
        origin: explain::origin(rule),
        counted: explain::counted_on_captures(rule.id),
        example: rule.example,
    }
}

fn warning(code: Code) -> Warning {
    Warning { code: code.as_str(), means: code.help(), advice: code.advice(), damage: code.is_damage() }
}
