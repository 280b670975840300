//! JSON that the program reads back: kept reports, results of a replay, constants of a GPU.

use crate::export::Schema;
use crate::random::Random;
use crate::{drawn, printed, runner};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use sync_report::analysis::Options;
use sync_report::check::fail_on::FailOn;
use sync_report::check::{self, Rules};
use sync_report::diff::{self, Snapshot};
use sync_report::formats::{CHECK, Compared, DIFF};
use sync_report::model::Report;
use sync_report::model::timeline::WHOLE;
use sync_report::render::json as tree;
use sync_report::replay::constants::Constants;
use sync_report::replay::results;
use sync_report::report;

#[test]
fn reports() {
    runner::run("reports", 0..60, &[], case);
}

/// Reports of a program and of a longer run of it.
pub fn bases() -> &'static [Report; 2] {
    static BASES: OnceLock<[Report; 2]> = OnceLock::new();
    BASES.get_or_init(|| {
        [6, 9].map(|steps| {
            let (_folder, path) = drawn::program(Schema::V2025_3, 0, steps).write_temp();
            let options = Options { threads: 1, awaited: true, timelines: Some(WHOLE), ..Options::default() };
            report::run(&[path], &options).expect("a report")
        })
    })
}

fn case(r: &Random) -> Result<(), String> {
    match r.below(8) {
        0 => back(&bases()[r.below(2)]),
        1 => measured(r),
        2 => constants(r),
        _ => kept(r),
    }
}

/// A report is equal after it was read back.
fn back(report: &Report) -> Result<(), String> {
    let text = printed(report);
    let read = Snapshot::from_json(&text).map_err(|error| error.to_string())?;
    let again = printed(&read.report);
    let part =
        text.split(|b| *b == b'\n').zip(again.split(|b| *b == b'\n')).find(|(one, other)| one != other);
    part.map_or(Ok(()), |(one, other)| {
        let [one, other] = [one, other].map(String::from_utf8_lossy);
        Err(format!("is another report when it is read back: `{one}` / `{other}`"))
    })
}

fn printed(report: &Report) -> Vec<u8> {
    let mut out = Vec::new();
    tree::write(report, &mut out).expect("a Vec takes everything");
    out
}

/// A spoiled report is compared with a good one, and is a baseline.
fn kept(r: &Random) -> Result<(), String> {
    let bases = bases();
    let text = spoiled(&serde_json::from_slice(&printed(&bases[r.below(2)])).expect("JSON"), r);
    let Ok(odd) = Snapshot::from_json(&text) else { return Ok(()) };
    back(&odd.report)?;
    held_against(&odd, r)
}

/// Compares a report with a good one both ways, and checks each against the other as its baseline.
pub fn held_against(odd: &Snapshot, r: &Random) -> Result<(), String> {
    let good = &Snapshot::of(bases()[0].clone(), r.one_in(2));
    for (before, after) in [(good, odd), (odd, good), (odd, odd)] {
        let report = diff::compare(before, after);
        let drawings = [before, after].map(|side| side.report.timelines.clone());
        let compared = Compared { report, drawings };
        for format in DIFF {
            printed::print(format, &compared, r)?;
        }
    }
    let fail_on = ["new-false", "any-false", "drain>5%", "blocked>1us", "blocked>5%", "waits>1"]
        .map(|c| c.parse::<FailOn>().expect("a condition"));
    for (report, baseline) in [(&good.report, odd), (&odd.report, good)] {
        let baseline = Some(baseline);
        let rules = Rules { budget: None, fail_on: &fail_on, baseline, today: Default::default() };
        let Ok(outcome) = check::check(report, &BTreeMap::new(), &rules) else { continue };
        CHECK.iter().try_for_each(|format| printed::print(format, &outcome, r))?;
    }
    Ok(())
}

fn measured(r: &Random) -> Result<(), String> {
    let mut report = bases()[0].clone();
    let spread = json!({"median_ns": 4_000_000, "low_ns": 3_900_000, "high_ns": 4_100_000, "runs": 9});
    let variant = |name: &str, fixed: Value, all: bool| json!({"name": name, "fixed": fixed, "all_false": all, "wall": spread, "gpu": spread, "saving": spread, "predicted_saving_ns": 90_000});
    let good = json!({
        "results_version": 1, "profile": "profile.sqlite", "recorded_gpu": "NVIDIA H200",
        "gpu": {"name": "NVIDIA H200", "device": 0, "compute_capability": [9, 0], "driver": 13000, "cublas": 130000},
        "sites": [[report.sites[0].key, "S1"]],
        "variants": [variant("as recorded", json!([]), false), variant("S1 fixed", json!([0]), false), variant("all", json!([0]), true)],
        "repeat": 3, "recorded_ns": 5_000_000, "products": [], "notes": ["a note"]
    });
    with_file(&spoiled(&good, r), |path| {
        let Ok(read) = results::read(path) else { return Ok(()) };
        if results::embed(&mut report, &read, path).is_ok() {
            back(&report)?;
        }
        Ok(())
    })
}

fn constants(r: &Random) -> Result<(), String> {
    let whole = Constants {
        constants_version: 1,
        pinned_upload: 54.0,
        pinned_read: 52.5,
        pageable_upload: 9.0,
        pageable_read: 11.0,
        queue_depth: Some(1024),
        ..Constants::default()
    };
    let text = spoiled(&serde_json::to_value(whole).expect("JSON"), r);
    with_file(&text, |path| {
        let Ok(read) = Constants::read(path) else { return Ok(()) };
        let export = path.with_file_name("profile.sqlite");
        drawn::program(Schema::V2025_3, 0, 3).write(&export);
        let options = Options { threads: 1, assumed: (&read).into(), ..Options::default() };
        back(&report::run(&[export], &options).map_err(|error| format!("{error:#}"))?)
    })
}

fn with_file(text: &[u8], read: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kept.json");
    std::fs::write(&path, text).expect("a file");
    read(&path)
}

/// A tree with some values replaced, doubled or dropped, mostly by their type; now and then its text too.
fn spoiled(tree: &Value, r: &Random) -> Vec<u8> {
    let mut tree = tree.clone();
    let by = if r.one_in(3) { spoil } else { vary };
    for _ in 0..r.pick(&[1, 1, 2, 5, 20]) {
        let other = random_node(&mut tree, r).clone();
        by(random_node(&mut tree, r), other, r);
    }
    let mut text = serde_json::to_vec(&tree).expect("JSON");
    if r.one_in(12) {
        let at = r.below(text.len());
        match r.below(3) {
            0 => text.truncate(at),
            1 => text[at] = r.byte(),
            _ => drop(text.splice(at..at, [b'['; 300])),
        }
    }
    text
}

/// A value somewhere in a tree: mostly deep inside.
fn random_node<'a>(mut node: &'a mut Value, r: &Random) -> &'a mut Value {
    loop {
        let inside = match node {
            Value::Array(list) => list.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        if inside == 0 || r.one_in(8) {
            return node;
        }
        let at = r.below(inside);
        node = match node {
            Value::Array(list) => &mut list[at],
            Value::Object(fields) => fields.values_mut().nth(at).expect("a field"),
            _ => unreachable!("only these have something inside"),
        };
    }
}

/// Another value that a field of the same type may have.
fn vary(node: &mut Value, other: Value, r: &Random) {
    match node {
        Value::Number(number) if number.is_f64() => {
            *node = r.pick(&[0.0, -1.0, 0.5, 100.0, 1e300, 1e-300]).into()
        }
        Value::Number(number) if number.as_u64().is_some_and(|n| n < 1000) => *node = r.below(1000).into(),
        Value::Number(_) => *node = r.extreme().saturating_abs().into(),
        Value::Bool(flag) => *flag = !*flag,
        // Words of a list stay words; names, keys and paths are longer.
        Value::String(text) if text.len() > 12 => match other {
            Value::String(other) => *text = other,
            _ => text.push_str(r.pick(&TEXTS)),
        },
        Value::Array(list) if !list.is_empty() => {
            let at = r.below(list.len());
            match r.below(3) {
                0 => drop(list.remove(at)),
                1 => list.push(list[at].clone()),
                _ => list.reverse(),
            }
        }
        _ => {}
    }
}

const TEXTS: [&str; 8] =
    ["", "S1", "\u{1b}[31m", "false", "</script><b>", "é\u{202e}\n|", "/w/train.py", "-1"];

fn spoil(node: &mut Value, other: Value, r: &Random) {
    match (r.below(12), &mut *node) {
        (0, Value::Object(fields)) => {
            drop(fields.keys().nth(r.below(fields.len())).cloned().map(|key| fields.remove(&key)))
        }
        (0 | 1, Value::Array(list)) if !list.is_empty() => {
            let at = r.below(list.len());
            if r.one_in(2) { drop(list.remove(at)) } else { list.push(list[at].clone()) }
        }
        (2, _) => *node = Value::Null,
        (3, _) => *node = json!(r.extreme()),
        (4, _) => *node = json!(r.next()),
        (5, _) => *node = r.pick(&[1e308, -1e308, 1e-300, -0.0, 0.5]).into(),
        (6, _) => *node = r.pick(&TEXTS).into(),
        (7, _) => *node = if r.one_in(2) { json!([]) } else { Value::Object(Map::new()) },
        (8, _) => *node = r.one_in(2).into(),
        (9, Value::String(text)) => *text = text.repeat(r.pick(&[2, 100])),
        (_, Value::Number(_)) => *node = json!(r.extreme()),
        _ => *node = other,
    }
}
