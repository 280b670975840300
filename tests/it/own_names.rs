//! `sync-report.toml`: names of the program's own.

use crate::cli::{Ran, command, ran};
use crate::traces::reading_loop;
use serde_json::Value;
use std::fs;

/// The report on the loop of [`reading_loop`] whose line 14 is `statement`, in a folder whose file says `config`.
fn read(statement: &str, config: &str) -> Ran {
    let mut trace = reading_loop(true);
    if statement.contains("host_sum") {
        // A function in C, in which nothing of Python's reads.
        let builtin =
            |event: &&mut Value| event["name"].as_str().is_some_and(|name| name.starts_with("<built-in"));
        trace
            .events
            .iter_mut()
            .filter(builtin)
            .for_each(|event| event["name"] = "<built-in function host_sum>".into());
    }
    let (dir, path) = trace.write();
    let source = format!(
        "import torch\n\n\n{}def step(model, x):\n    y = model(x)\n    y = y + 1\n    z = 0\n    {statement}\n    return y\n",
        "\n".repeat(6)
    );
    fs::write(dir.path().join("train.py"), source).expect("written");
    fs::write(dir.path().join("sync-report.toml"), config).expect("written");
    let mut command = command();
    ran(command.current_dir(dir.path()).args([
        path.to_str().expect("a path"),
        "--source-root",
        ".",
        "--format",
        "json",
        "-q",
    ]))
}

fn verdict(statement: &str, config: &str) -> (String, String) {
    let site = &read(statement, config).good().json()["sites"][0];
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    (word(&site["class"]), word(&site["kind"]))
}

#[test]
fn what_a_program_calls_its_logger_is_told() {
    let statement = "ledger.note(y.item())";
    assert_eq!(verdict(statement, "").1, "value-read");
    let logging = ("false".to_owned(), "logging".to_owned());
    assert_eq!(verdict(statement, "[python.name]\nnote = \"log\"\n"), logging);
    assert_eq!(
        verdict(statement, "[python.name]\nnote = \"log-verb\"\n[python.word]\nledger = \"logger\"\n"),
        logging
    );
}

#[test]
fn what_a_program_reads_by_is_told() {
    let statement = "z = fast.host_sum(y)\n    print(z)";
    assert_eq!(verdict(statement, "").1, "value-read");
    let own = "[python.name]\nhost_sum = \"read\"\n";
    assert_eq!(verdict(statement, own), ("false".to_owned(), "logging".to_owned()));
}

#[test]
fn what_is_no_fact_is_refused_in_one_line() {
    read("pass", "[python.name]\nnote = \"logs\"\n")
        .refused("`logs` of note is no fact; facts are: form, type");
    read("pass", "[pythom]\n").refused("sync-report.toml, line 1: unknown field `pythom`");
    read("pass", "[python.names]\nnote = \"log\"\n").refused("unknown field `names`");
}
