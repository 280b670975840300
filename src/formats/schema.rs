//! JSON Schemas of all JSON output, made from the printed structs, whose doc comments are the descriptions.

use crate::knowledge::Knowledge;
use crate::model::Report;
use crate::model::check::CheckReport;
use crate::model::diff::DiffReport;
use crate::model::doctor::Diagnosis;
use crate::model::lint::LintReport;
use crate::model::replay::bench::Bench;
use crate::model::replay::constants::Constants;
use crate::model::replay::measured::Measured;
use crate::model::replay::plan::Plan;
use crate::model::trial::Trial;
use crate::render::brief::Brief;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

pub struct Printed {
    pub name: &'static str,
    pub command: &'static str,
    schema: fn() -> Schema,
}

pub const ALL: &[Printed] = &[
    printed("report", "sync-report PROFILE --format json", schema::<Report>),
    printed("brief", "sync-report PROFILE --format json --brief", schema::<Brief>),
    printed("diff", "sync-report diff BEFORE AFTER --format json", schema::<DiffReport>),
    printed("check", "sync-report check PROFILE --format json", schema::<CheckReport>),
    printed("lint", "sync-report lint PATH --format json", schema::<LintReport>),
    printed("plan", "sync-report replay PROFILE --plan", schema::<Plan>),
    printed("replay", "sync-report replay PROFILE --format json", schema::<Measured>),
    printed("try", "sync-report try --format json", schema::<Trial>),
    printed("doctor", "sync-report doctor PROFILE --format json", schema::<Diagnosis>),
    printed("bench", "sync-report bench --format json", schema::<Bench>),
    printed("explain", "sync-report explain --format json", schema::<Knowledge>),
    printed("constants", "sync-report bench --save FILE", schema::<Constants>),
];

const fn printed(name: &'static str, command: &'static str, schema: fn() -> Schema) -> Printed {
    Printed { name, command, schema }
}

/// For writing, not reading back: a field that is always written is required.
fn schema<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

pub fn by_name(name: &str) -> Option<Value> {
    let printed = ALL.iter().find(|printed| printed.name == name)?;
    let mut schema = (printed.schema)().to_value();
    schema["title"] = Value::from(format!("What `{}` prints", printed.command));
    plain(&mut schema);
    Some(schema)
}

/// Removes the brackets of rustdoc links, which mean nothing in descriptions.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "description" => {
                        *text = text.replace("[`", "`").replace("`]", "`");
                    }
                    value => plain(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        _ => {}
    }
}
