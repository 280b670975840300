//! SARIF's own JSON schema, as published by OASIS, applied by a validator of the keywords that it uses.
//!
//! A library for this would triple what the tests have to build. An unknown keyword is an error, so that no
//! part of the schema is skipped.

use serde_json::Value;

pub fn errors(log: &Value) -> Vec<String> {
    let schema: Value =
        serde_json::from_str(include_str!("../data/sarif-schema-2.1.0.json")).expect("the schema");
    let mut out = Vec::new();
    check(&schema, &schema, log, "", &mut out);
    out
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    let rules = schema.as_object().expect("a schema is an object");
    for (keyword, rule) in rules {
        let holds = match keyword.as_str() {
            "$schema" | "$id" | "title" | "description" | "default" | "definitions" => true,
            "$ref" => {
                let pointer = rule.as_str().and_then(|r| r.strip_prefix('#')).expect("a local reference");
                check(root, root.pointer(pointer).expect("what it refers to"), value, at, out);
                true
            }
            "type" => is(rule, value),
            "enum" => rule.as_array().is_some_and(|all| all.contains(value)),
            "minimum" => value.as_f64().is_none_or(|n| Some(n) >= rule.as_f64()),
            "maximum" => value.as_f64().is_none_or(|n| Some(n) <= rule.as_f64()),
            "minItems" => value.as_array().is_none_or(|a| a.len() as u64 >= rule.as_u64().unwrap_or(0)),
            "uniqueItems" => {
                let unique = |a: &Vec<Value>| a.iter().enumerate().all(|(i, v)| !a[..i].contains(v));
                rule == &Value::Bool(false) || value.as_array().is_none_or(unique)
            }
            "required" => {
                let names = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                value.as_object().is_none_or(|o| names.into_iter().all(|n| o.contains_key(n)))
            }
            "properties" | "additionalProperties" => {
                members(root, schema, value, at, out);
                true
            }
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{at}/{i}"), out);
                }
                true
            }
            "anyOf" => passing(root, rule, value) > 0,
            "oneOf" => passing(root, rule, value) == 1,
            "format" => value.as_str().is_none_or(|text| formatted(rule, text)),
            "pattern" => value.as_str().is_none_or(|text| patterned(rule, text)),
            keyword => panic!("the validator does not know {keyword}"),
        };
        if !holds {
            out.push(format!("{at}: {keyword} {rule}"));
        }
    }
}

fn members(root: &Value, schema: &Value, value: &Value, at: &str, out: &mut Vec<String>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{name}");
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(known), _) => check(root, known, member, &at, out),
            (None, Value::Bool(false)) => out.push(format!("{at}: is not known")),
            (None, other) if other.is_object() => check(root, other, member, &at, out),
            (None, _) => {}
        }
    }
}

fn passing(root: &Value, schemas: &Value, value: &Value) -> usize {
    let holds = |schema: &&Value| {
        let mut errors = Vec::new();
        check(root, schema, value, "", &mut errors);
        errors.is_empty()
    };
    schemas.as_array().into_iter().flatten().filter(holds).count()
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        Some(other) => panic!("the validator does not know the type {other}"),
        None => kind.as_array().into_iter().flatten().any(|kind| is(kind, value)),
    }
}

fn formatted(format: &Value, text: &str) -> bool {
    let plain = |text: &str| {
        let mut bytes = text.bytes();
        text.is_ascii() && bytes.all(|b| b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&b))
    };
    match format.as_str() {
        Some("uri") => plain(text) && text.contains("://"),
        Some("uri-reference") => {
            let first = text.split('/').next().unwrap_or("");
            plain(text) && (!first.contains(':') || text.starts_with("file:///"))
        }
        Some("date-time") => text.ends_with('Z'),
        other => panic!("the validator does not know the format {other:?}"),
    }
}

fn patterned(pattern: &Value, text: &str) -> bool {
    match pattern.as_str() {
        Some("^[a-zA-Z]{2}(-[a-zA-Z]{2})?$") => text.len() == 2 || text.len() == 5,
        Some("[0-9]+(\\.[0-9]+){3}") => text.split('.').count() == 4,
        other => panic!("the validator does not know the pattern {other:?}"),
    }
}

#[test]
fn the_validator_finds_what_is_wrong() {
    let log = |run: Value| serde_json::json!({ "version": "2.1.0", "runs": [run] });
    let run = serde_json::json!({ "tool": { "driver": { "name": "x" } }, "results": [] });
    assert_eq!(errors(&log(run.clone())), [] as [String; 0]);
    for (path, value) in [
        ("/results", serde_json::json!([{ "level": "warning" }])),
        ("/results", serde_json::json!([{ "message": { "text": 5 } }])),
        ("/results", serde_json::json!([{ "message": { "text": "x" }, "level": "loud" }])),
        ("/results", serde_json::json!([{ "message": { "text": "x" }, "colour": "red" }])),
        ("/tool", serde_json::json!({})),
    ] {
        let mut bad = run.clone();
        *bad.pointer_mut(path).expect("a member") = value.clone();
        assert!(!errors(&log(bad)).is_empty(), "{value}");
    }
}
