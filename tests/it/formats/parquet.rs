//! `--format parquet`, read back: it says what the JSON report says.

use super::{hostile, output, parsed};
use crate::cli::{program, sample};
use crate::export::{GPU0, empty};
use polars::prelude::{DataFrame, DataType};
use serde_json::Value;
use std::fs;
use std::path::Path;
use sync_report::frame::parquet;
use sync_report::profile::footer;

struct Tables {
    waits: DataFrame,
    sites: DataFrame,
    rest: Value,
}

fn tables(profiles: &[&str], more: &[&str]) -> Tables {
    let folder = tempfile::tempdir().expect("a folder");
    let written = folder.path().join("tables");
    let target = written.display().to_string();
    let ran = program(&[profiles, &["--format", "parquet", "-o", &target], more].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    read(&written)
}

fn read(folder: &Path) -> Tables {
    let table = |name| parquet::read(&folder.join(name), None).expect("a table");
    let (_, footer) = footer::open(&folder.join("sites.parquet")).expect("metadata");
    let metadata = footer.key_value_metadata().clone().expect("pairs");
    let rest = metadata.into_iter().find(|pair| pair.key == "sync-report").and_then(|pair| pair.value);
    Tables {
        waits: table("waits.parquet"),
        sites: table("sites.parquet"),
        rest: parsed(&rest.expect("the report")),
    }
}

fn values(table: &DataFrame, name: &str) -> Vec<Value> {
    let column = table.column(name).expect("the column");
    match column.dtype() {
        DataType::String => column.str().expect("text").iter().map(Value::from).collect(),
        DataType::Int64 => column.i64().expect("whole numbers").iter().map(Value::from).collect(),
        DataType::Float64 => column.f64().expect("numbers").iter().map(Value::from).collect(),
        DataType::Boolean => column.bool().expect("flags").iter().map(Value::from).collect(),
        other => panic!("{name}: {other}"),
    }
}

fn compare(profiles: &[&str], more: &[&str]) -> Tables {
    let read = tables(profiles, more);
    let json = program(&[profiles, &["--format", "json", "--top", "0"], more].concat());
    let mut report = parsed(&json.stdout);
    let listed = report["sites"].take();
    let listed = listed.as_array().expect("sites");
    let mut rest = read.rest.clone();
    assert_eq!(rest["sites"].take(), Value::Array(Vec::new()));
    assert_eq!(rest, report);
    for name in ["id", "key", "class", "kind", "api", "pattern", "waits", "drain_p50_ns"] {
        let there: Vec<Value> = listed.iter().map(|s| s[name].clone()).collect();
        assert_eq!(values(&read.sites, name), there, "{name}");
    }
    let column = |name| values(&read.waits, name);
    let (site, key, class, pid) = (column("site"), column("key"), column("class"), column("pid"));
    let (blocked, drain, iteration) = (column("blocked_ns"), column("drain_ns"), column("iteration"));
    let found_nothing = column("found_nothing");
    let count = |rows: &[usize], holds: &dyn Fn(usize) -> bool| rows.iter().filter(|&&r| holds(r)).count();
    for s in listed {
        let rows: Vec<usize> = (0..site.len()).filter(|&r| site[r] == s["id"]).collect();
        let sum = |of: &[Value]| rows.iter().filter_map(|&r| of[r].as_i64()).sum::<i64>();
        assert_eq!(s["waits"], rows.len());
        assert_eq!((&s["blocked_ns"], &s["drain_ns"]), (&sum(&blocked).into(), &sum(&drain).into()));
        assert_eq!(s["found_idle"], count(&rows, &|r| found_nothing[r] == true));
        for &r in &rows {
            assert_eq!((&key[r], &class[r], &pid[r]), (&s["key"], &s["class"], &s["process"]["pid"]));
        }
        if let Some(each) = s["per_iteration"].as_f64() {
            let inside = count(&rows, &|r| !iteration[r].is_null()) as f64;
            let profile = s["process"]["profile"].as_u64().expect("an index") as usize;
            let all = report["profiles"][profile]["iterations"].as_f64().expect("a count");
            // JSON's own numbers are read to 15 places.
            assert!((each * all - inside).abs() < 1e-9, "{each} {inside}");
        }
    }
    assert_eq!(read.waits.height() as u64, report["totals"]["waits"]);
    read
}

#[test]
fn tables_say_what_the_json_report_says() {
    for name in super::SAMPLES {
        compare(&[&sample(name)], &[]);
    }
    compare(&[&sample("patterns")], &["--class", "true"]);
}

#[test]
fn several_exports_come_one_after_the_other() {
    let profiles = [sample("fixed/before"), sample("fixed/after")];
    let read = compare(&[&profiles[0], &profiles[1]], &[]);
    let mut paths = values(&read.waits, "profile");
    paths.dedup();
    assert_eq!(paths, profiles);
}

#[test]
fn hostile_names_come_back_as_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    compare(&[&hostile(folder.path()).display().to_string()], &[]);
}

/// Tables without rows can be read together with others.
#[test]
fn without_waits_the_columns_are_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut e, t) = empty();
    e.launch(t, 100..200, GPU0, 300..400, "gemm");
    let path = folder.path().join("quiet.sqlite");
    e.write(&path);
    let quiet = compare(&[&path.display().to_string()], &[]);
    assert_eq!((quiet.waits.height(), quiet.sites.height()), (0, 0));
    let full = tables(&[&sample("train_mlp_shapes")], &[]);
    assert_eq!(quiet.waits.schema(), full.waits.schema());
    assert_eq!(quiet.sites.schema(), full.sites.schema());
}

#[test]
fn any_number_of_threads_writes_the_same_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let with = |threads: &str| {
        let target = folder.path().join(threads);
        let ran = program(&[
            &*sample("patterns"),
            "--format",
            "parquet",
            "--threads",
            threads,
            "-o",
            &target.display().to_string(),
        ]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ["waits.parquet", "sites.parquet"].map(|name| fs::read(target.join(name)).expect("the file"))
    };
    assert_eq!(with("1"), with("8"));
}

#[test]
fn only_a_folder_of_its_own_is_written_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let profile = sample("train_mlp_shapes");
    let run = |target: &str| program(&[&*profile, "--format", "parquet", "-o", target]);
    let refused = |target: &str, said: &str| {
        let ran = run(target);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(said) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    };
    refused("-", "name a folder for them with -o");
    refused("/proc/none/tables", "cannot be written");
    let target = folder.path().join("tables").display().to_string();
    for _ in 0..2 {
        assert_eq!(run(&target).code, 0, "its own files are replaced");
    }
    fs::write(folder.path().join("tables/notes.txt"), "kept").expect("a file");
    refused(&target, "holds other files (notes.txt)");
    refused(&format!("{target}/notes.txt"), "no folder");
    assert_eq!(fs::read(folder.path().join("tables/notes.txt")).expect("the file"), b"kept");
}

/// The documentation lists the columns of waits; those of sites are those of CSV.
#[test]
fn the_documentation_lists_the_columns() {
    const PAGE: &str = include_str!("../../../docs/formats.md");
    let read = tables(&[&sample("train_mlp_shapes")], &[]);
    let section = PAGE.split("## Waits as a table").nth(1).expect("the section");
    let rows =
        section.lines().skip_while(|l| !l.starts_with("|---")).skip(1).take_while(|l| l.starts_with('|'));
    let listed: Vec<(&str, &str)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`'), cells[2])
        })
        .collect();
    let word = |dtype: &DataType| match dtype {
        DataType::String => "text",
        DataType::Int64 => "int",
        DataType::Boolean => "bool",
        other => panic!("{other}"),
    };
    let columns = read.waits.schema().iter().map(|(name, dtype)| (name.as_str(), word(dtype)));
    assert_eq!(listed, columns.collect::<Vec<_>>());
    let csv = output(&sample("train_mlp_shapes"), "csv", &[]);
    let names = read.sites.schema().iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
    let columns = csv.lines().next().expect("names");
    let more = names.join(",").strip_prefix(columns).expect("the columns of CSV first").to_owned();
    let besides =
        section.split("`csv`, and").nth(1).and_then(|text| text.split(';').next()).expect("columns");
    let told: Vec<&str> = besides.split('`').skip(1).step_by(2).collect();
    assert_eq!(more, format!(",{}", told.join(",")));
}
