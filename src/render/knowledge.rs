//! The catalogue, the rules of evidence and the codes of warnings as JSON: for programs, and for the site of
//! documentation, whose pages of them are made from it.

use super::explain::{self, Entries};
use crate::catalogue::{self, Category, Pattern, Strategy};
use crate::model::Code;
use crate::rules::{Role, Rule};
use serde_json::{Value, json};

/// Version of this tree's layout: fields may be added, never renamed.
const KNOWLEDGE_VERSION: u32 = 1;

/// Entries as one tree.
pub fn tree(entries: &Entries) -> Value {
    json!({
        "schema_version": KNOWLEDGE_VERSION,
        "patterns": entries.patterns.iter().map(|p| pattern(p)).collect::<Vec<_>>(),
        "rules": entries.rules.iter().map(|r| rule(r)).collect::<Vec<_>>(),
        "warnings": entries.warnings.iter().map(|&code| warning(code)).collect::<Vec<_>>(),
    })
}

fn pattern(p: &Pattern) -> Value {
    let library = p.library().map(|site| {
        let frames = site.places().map(|(file, function)| json!({ "file": file, "function": function }));
        json!({
            "name": site.library,
            "frames": frames.collect::<Vec<_>>(),
            "line_text": site.line_text,
            "frequency": site.frequency,
        })
    });
    json!({
        "id": p.id,
        "title": p.title,
        "category": p.category.name(),
        "waits": p.category != Category::NotAWait,
        "class": p.kind.map(|kind| kind.class()),
        "kind": p.kind,
        "meaning": explain::class_sentence(p),
        "triggers": p.triggers,
        "why": p.why,
        "trace": p.trace,
        "operator": p.op,
        "driver_api": p.driver_api,
        "versions": p.versions,
        "library": library,
        "sources": p.sources,
        "fix": {
            "strategy": p.fix.strategy.name(),
            "leave": p.fix.strategy == Strategy::Leave,
            "title": p.fix.title,
            "before": p.fix.before,
            "after": p.fix.after,
            "caveat": p.fix.caveat,
            "alternatives": p.fix.alternatives,
        },
        "pair": catalogue::run_of(p.id),
    })
}

fn rule(rule: &Rule) -> Value {
    let role = match rule.role {
        Role::Trace(_) => "trace",
        Role::Source => "source",
        Role::Weak(_) => "weak",
        Role::Remark => "remark",
    };
    json!({
        "id": rule.id,
        "title": rule.id.title(),
        "role": role,
        "looks_at": rule.looks_at,
        "proves": rule.proves,
        "yields_to": explain::yields_to(rule),
        "confidence": explain::confidence(rule),
        "origin": explain::origin(rule),
        "counted": explain::counted_on_captures(rule.id),
        "example": rule.example,
    })
}

fn warning(code: Code) -> Value {
    json!({ "code": code, "means": code.help(), "advice": code.advice(), "damage": code.is_damage() })
}
