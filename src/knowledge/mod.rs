//! The catalogue, the rules of evidence and the codes of warnings as JSON: for programs, and for the site of
//! documentation, whose pages of them are made from it.

pub mod explain;

use crate::catalogue::{self, Category, Run};
use crate::model::Code;
use crate::rules::{self, Role};
use crate::vocabulary::{Class, Kind, RuleId, Strategy};
use explain::Entries;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of this tree's layout: fields may be added, never renamed.
const KNOWLEDGE_VERSION: u32 = 1;

/// Entries of the catalogue, of the rules of evidence and of the warnings.
#[derive(Serialize, JsonSchema)]
pub struct Knowledge {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// Patterns of code that wait, or look as if they did.
    pub patterns: Vec<Pattern>,
    /// Rules that verdicts rest on.
    pub rules: Vec<Rule>,
    /// Codes of warnings.
    pub warnings: Vec<Warning>,
}

/// A pattern of code that waits, or looks as if it did.
#[derive(Serialize, JsonSchema)]
pub struct Pattern {
    /// What reports cite it by: "A01".
    pub id: &'static str,
    /// Short name: "Tensor.item()".
    pub title: &'static str,
    /// Its category, in words.
    pub category: &'static str,
    /// Whether it waits; else it only looks so.
    pub waits: bool,
    /// Verdict on its waits where the pattern alone decides.
    pub class: Option<Class>,
    /// What its waits are, likewise.
    pub kind: Option<Kind>,
    /// What `class` and `kind` come to, as a sentence.
    pub meaning: String,
    /// Python expressions that trigger it, the plainest first.
    pub triggers: &'static [&'static str],
    /// Why the CPU waits.
    pub why: &'static str,
    /// What a trace shows of it.
    pub trace: &'static str,
    /// ATen operator or library function that waits.
    pub operator: &'static str,
    /// The driver call that blocks.
    pub driver_api: &'static str,
    /// Versions that it concerns; empty: all.
    pub versions: &'static str,
    /// Where library code holds it; `null` for patterns of PyTorch itself.
    pub library: Option<Library>,
    /// Issues and sources that confirm it.
    pub sources: &'static str,
    /// How to get rid of the wait.
    pub fix: Fix,
    /// What came of running `before` and `after` of its fix.
    pub pair: Option<&'static Run>,
}

/// Library code that waits.
#[derive(Serialize, JsonSchema)]
pub struct Library {
    /// The library: "transformers".
    pub name: &'static str,
    /// Its functions.
    pub frames: Vec<Frame>,
    /// A distinctive part of the line; empty where file and function suffice.
    pub line_text: &'static str,
    /// How often it runs: "every step"; empty where that is not known.
    pub frequency: &'static str,
}

/// A function of a library.
#[derive(Serialize, JsonSchema)]
pub struct Frame {
    /// What the path of its file ends with.
    pub file: &'static str,
    /// Its name; empty: any.
    pub function: &'static str,
}

/// How to get rid of a wait.
#[derive(Serialize, JsonSchema)]
pub struct Fix {
    /// Which way it is.
    pub strategy: Strategy,
    /// Whether the way is to leave it.
    pub leave: bool,
    /// The rest of it, as the catalogue has it.
    #[serde(flatten)]
    pub rest: &'static catalogue::Fix,
}

/// A rule of evidence.
#[derive(Serialize, JsonSchema)]
pub struct Rule {
    /// What verdicts cite it by.
    pub id: RuleId,
    /// Short name.
    pub title: &'static str,
    /// "trace" and "source" make verdicts, "weak" leans one way, "remark" decides nothing.
    pub role: &'static str,
    /// What it looks at.
    pub looks_at: &'static str,
    /// What it proves.
    pub proves: &'static str,
    /// What it gives way to.
    pub yields_to: String,
    /// How sure a verdict of it is, a line for each case.
    pub confidence: Vec<String>,
    /// Where these figures come from.
    pub origin: String,
    /// Right and wrong verdicts of it on labelled captures.
    pub counted: String,
    /// A drawn timeline; of a rule of the source, lines of Python.
    pub example: &'static str,
}

/// A code of warnings.
#[derive(Serialize, JsonSchema)]
pub struct Warning {
    /// The code.
    pub code: &'static str,
    /// What it says.
    pub means: &'static str,
    /// What to do.
    pub advice: &'static str,
    /// Whether the export is damaged: the exit code is then 2.
    pub damage: bool,
}

/// Entries as one tree.
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
