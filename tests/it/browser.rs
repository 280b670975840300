//! The HTML page and traces in a browser: made here, driven by `tests/browser/*.test.mjs` in a headless Chromium.
//!
//! Runs where Chromium and Node are installed and `npm ci` was run in `tests/browser`; with SYNC_REPORT_BROWSER=1, as in
//! `.ci/run`, their absence is a failure. Traces are opened where SYNC_REPORT_VIEWER names the unpacked wheel of
//! `tests/browser/viewer.txt`, as in `.ci/run`.

use crate::html::{self, hostile, page};
use crate::look;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use sync_report::analysis::Options;
use sync_report::perfetto;
use sync_report::report;
use sync_report::text;
use sync_report::verdict::source::SourceRoot;

/// Node and Chromium, or what is missing.
fn tools() -> Result<(PathBuf, PathBuf), &'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |names: &[&str]| {
        let all = std::env::split_paths(&path).flat_map(|dir| names.iter().map(move |name| dir.join(name)));
        all.into_iter().find(|file| file.is_file())
    };
    let node = find(&["node"]).ok_or("node")?;
    let chromium = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let chromium =
        chromium.or_else(|| find(&["chromium", "chromium-browser", "google-chrome"])).ok_or("chromium")?;
    let driver = folder().join("node_modules/playwright-core");
    if driver.is_dir() { Ok((node, chromium)) } else { Err("playwright-core (npm ci in tests/browser)") }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser")
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("sample-profiles/{name}.sqlite"))
}

fn write_pages(target: &Path) {
    let roots = vec![SourceRoot {
        old: None,
        new: Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-profiles/programs"),
    }];
    let options = Options { source_roots: roots, ..look::options() };
    let write = |name: &str, profiles: &[&str]| {
        let paths: Vec<PathBuf> = profiles.iter().map(|profile| sample(profile)).collect();
        let report = report::run(&paths, &options).expect("a report");
        std::fs::write(target.join(name), page(&report)).expect("a page");
    };
    write("train_mlp.html", &["train_mlp_shapes"]);
    write("patterns.html", &["patterns"]);
    write("ranks.html", &["train_mlp_shapes", "train_mlp_python_sampling"]);
    let attack = look::report(&hostile());
    std::fs::write(target.join("hostile.html"), page(&attack)).expect("a page");
    for (name, e) in ["moment.html", "ages.html"].into_iter().zip(html::odd()) {
        std::fs::write(target.join(name), page(&look::report(&e))).expect("a page");
    }
    let trace = |name: &str, paths: &[PathBuf]| {
        let (report, whole) = report::run_whole(paths, &look::options()).expect("a report");
        let mut file = std::fs::File::create(target.join(name)).expect("a file");
        perfetto::render(&report, &whole, perfetto::MOST, &mut file).expect("a trace");
    };
    trace("ranks.trace.json", &[sample("train_mlp_shapes"), sample("train_mlp_python_sampling")]);
    let (_folder, bad) = hostile().write_temp();
    trace("hostile.trace.json", &[bad]);
    let [before, after] = html::edited().map(|e| look::report(&e));
    std::fs::write(target.join("diff.html"), html::compared(&before, &after)).expect("a page");
    let attacked = html::compared(&attack, &look::report(&html::small()));
    std::fs::write(target.join("hostile_diff.html"), attacked).expect("a page");
    // Numbers are formatted twice, here and in the page: both must say the same.
    let mut times: Vec<i64> = (0..63).flat_map(|p| [1i64 << p, (1 << p) - 1, (1 << p) / 10 * 7]).collect();
    times.extend([
        0,
        999,
        1_000,
        999_499,
        999_500,
        9_994_999,
        9_995_000,
        59_949_999_999,
        59_950_000_000,
        3_599_500_000_000,
    ]);
    // JavaScript counts these exactly.
    times.retain(|&t| t < 1 << 53);
    let words: Vec<(i64, String, String)> =
        times.iter().map(|&t| (t, text::duration(t), text::timestamp(t))).collect();
    std::fs::write(target.join("times.json"), serde_json::to_string(&words).expect("JSON")).expect("a file");
}

#[test]
fn the_page_works_in_a_browser() {
    let required = std::env::var_os("SYNC_REPORT_BROWSER").is_some_and(|v| v == OsStr::new("1"));
    let (node, chromium) = match tools() {
        Ok(tools) => tools,
        Err(missing) if required => panic!("SYNC_REPORT_BROWSER=1, but there is no {missing}"),
        Err(missing) => return eprintln!("not run: there is no {missing}"),
    };
    let target = tempfile::tempdir().expect("a folder");
    write_pages(target.path());
    drive(&node, &chromium, target.path(), "report.test.mjs");
    // The viewers are too large to require everywhere.
    match std::env::var_os("SYNC_REPORT_VIEWER") {
        Some(_) => drive(&node, &chromium, target.path(), "traces.test.mjs"),
        None => eprintln!("traces not opened: SYNC_REPORT_VIEWER says nowhere where their viewers are"),
    }
}

fn drive(node: &Path, chromium: &Path, pages: &Path, script: &str) {
    let done = Command::new(node)
        .args(["--test", "--test-reporter=spec", script])
        .current_dir(folder())
        .env("CHROMIUM", chromium)
        .env("PAGES", pages)
        .env("VIEWER", std::env::var_os("SYNC_REPORT_VIEWER").unwrap_or_default())
        .output()
        .expect("node runs");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{said}\n{}", String::from_utf8_lossy(&done.stderr));
    // Node calls a file without tests a success.
    assert!(said.contains("pass ") && !said.contains("pass 0"), "{said}");
}
