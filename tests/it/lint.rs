//! `lint`: the waits of sources that were never captured. Each expected line of `lint/*.py` ends in a comment
//! `# waits: WORDS`: its certainty, its verdict, its pattern, as many of them as matter.

use crate::cli::{Ran, command, program, ran, sample};
use crate::formats::schema;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/lint")
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
    }
    folder
}

fn lint(folder: &Path, arguments: &[&str]) -> Ran {
    ran(command().current_dir(folder).arg("lint").args(arguments))
}

fn findings(ran: &Ran) -> Vec<Value> {
    ran.json()["findings"].as_array().expect("findings").clone()
}

fn place(finding: &Value) -> String {
    format!("{}:{}", finding["file"].as_str().expect("a file"), finding["line"])
}

fn words(finding: &Value) -> Vec<String> {
    let class = match finding["class"].as_str() {
        Some("false") => "avoidable",
        Some("true") => "needed",
        _ => "undecided",
    };
    let of = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    vec![of("certainty"), class.to_owned(), of("pattern")]
}

#[test]
fn lines_are_found_as_their_comments_say() {
    for name in ["certain", "probable", "host", "allowed", "hot"] {
        let path = fixtures().join(format!("{name}.py"));
        let text = fs::read_to_string(&path).expect("a fixture");
        let ran = program(&["lint", &path.display().to_string(), "--format", "json", "--fail-on", "none"]);
        let found = findings(ran.good());
        for (number, line) in (1..).zip(text.lines()) {
            let marker = line.split_once("# waits: ").map(|(_, words)| words.split('#').next().unwrap_or(""));
            let mut here = found.iter().filter(|finding| finding["line"] == number);
            match (marker, here.next()) {
                (None, None) => {}
                (Some(marker), Some(finding)) => {
                    let said = words(finding);
                    let fits = marker.split_whitespace().all(|word| said.contains(&word.to_owned()));
                    assert!(fits, "{name}.py:{number}: {said:?}, not {marker}");
                }
                (_, found) => panic!("{name}.py:{number}: {line}: {found:?}"),
            }
        }
    }
}

#[test]
fn lines_that_run_most_often_come_first() {
    let ran = lint(&fixtures(), &["hot.py", "--format", "json"]);
    assert_eq!(ran.code, 1);
    let order: Vec<String> =
        findings(&ran).iter().map(|one| format!("{} {}", one["line"], one["heat"])).collect();
    assert_eq!(order, ["20 \"loop\"", "14 \"step\"", "9 \"called\"", "5 \"once\"", "21 \"once\""]);
}

const SYNC: &str = "import torch\n\n\ndef main(x):\n    torch.cuda.synchronize()\n    return x\n";

#[test]
fn the_exit_code_says_what_was_asked() {
    let needed = "import torch\n\n\ndef f(x):\n    return torch.nonzero(x.cuda())\n";
    let place = folder(&[("sync.py", SYNC), ("needed.py", needed), ("none.py", "x = 1\n"), ("a.txt", "")]);
    for (arguments, code) in [
        (&["sync.py"][..], 1),
        (&["sync.py", "--fail-on", "none"], 0),
        (&["needed.py"], 0),
        (&["needed.py", "--fail-on", "any"], 1),
        (&["none.py", "--fail-on", "any"], 0),
        (&["."], 1),
    ] {
        assert_eq!(lint(place.path(), arguments).code, code, "{arguments:?}");
    }
    lint(place.path(), &["missing.py"]).refused("missing.py: no such file or folder");
    lint(place.path(), &["a.txt"]).refused("a.txt: is no Python file (.py) and no folder");
    lint(place.path(), &["sync.py", "-o", "sync.py"]).refused("sync.py: is an input");
    lint(place.path(), &[".", "-o", "sync.py"]).refused("sync.py: is an input");
    let empty = folder(&[("notes.md", "")]);
    lint(empty.path(), &["."]).refused("no Python file (.py) here");
}

#[test]
fn folders_are_walked_as_git_and_python_see_them() {
    let place = folder(&[
        ("src/a.py", SYNC),
        ("src/generated.py", SYNC),
        (".gitignore", "generated.py\n"),
        (".hidden/b.py", SYNC),
        ("__pycache__/c.py", SYNC),
        ("env/pyvenv.cfg", ""),
        ("env/d.py", SYNC),
        ("lib/site-packages/e.py", SYNC),
        ("notes.txt", SYNC),
    ]);
    let ran = lint(place.path(), &[".", "src/a.py", "./src", "--format", "json"]);
    assert_eq!(ran.json()["files"], 1);
    assert_eq!(findings(&ran).iter().map(self::place).collect::<Vec<_>>(), ["src/a.py:5"]);
}

#[test]
fn files_that_cannot_be_read_are_named_and_the_rest_is_read() {
    let place = folder(&[("a.py", SYNC), ("broken.py", "import torch\ndef f(:\n"), ("binary.py", "a\0b")]);
    let large = "x = 1\n".repeat(800_000);
    fs::write(place.path().join("large.py"), large).expect("a file");
    let ran = lint(place.path(), &[".", "--format", "json"]);
    let messages: Vec<String> = ran.json()["warnings"]
        .as_array()
        .expect("warnings")
        .iter()
        .map(|warning| warning["message"].as_str().expect("text").to_owned())
        .collect();
    assert_eq!(
        messages,
        [
            "binary.py: the file is binary: it holds NUL bytes",
            "broken.py: the file has a syntax error",
            "large.py: the file is larger than 4 MiB"
        ]
    );
    assert_eq!((ran.code, findings(&ran).len()), (1, 1));
    assert_eq!(lint(place.path(), &["broken.py"]).code, 2);
}

/// Creating on the GPU is a safe edit if results stay the same. A stray wait is not deleted if a file of the
/// program names streams.
#[test]
fn safe_edits_are_made_and_the_rest_stays_byte_for_byte() {
    let text = "import torch\r\n\r\n\r\ndef main(n):\r\n    x = torch.zeros(n).to(\"cuda\")\r\n    y = torch.randn(n).to(\"cuda\")  # keep\r\n    print(x.sum().item())\r\n    return x, y\r\n";
    let place = folder(&[("a.py", text), ("b.py", SYNC), ("c.py", "print(1)  ;x=2")]);
    let ran = lint(place.path(), &[".", "--fix", "--format", "json"]);
    let after = fs::read_to_string(place.path().join("a.py")).expect("the file");
    assert_eq!(after, text.replace("torch.zeros(n).to(\"cuda\")", "torch.zeros(n, device=\"cuda\")"));
    let deleted = fs::read_to_string(place.path().join("b.py")).expect("the file");
    assert_eq!(deleted, "import torch\n\n\ndef main(x):\n    return x\n");
    assert_eq!(fs::read_to_string(place.path().join("c.py")).expect("the file"), "print(1)  ;x=2");
    assert_eq!((ran.json()["fixed"].clone(), findings(&ran).len()), (2.into(), 2));
    let streams = folder(&[("b.py", SYNC), ("streams.py", "import torch\ns = torch.cuda.Stream()\n")]);
    assert_eq!(lint(streams.path(), &["b.py", "--fix"]).code, 1);
    assert_eq!(fs::read_to_string(streams.path().join("b.py")).expect("the file"), SYNC);
}

#[test]
fn comments_allow_lines_with_a_reason() {
    let ran = lint(&fixtures(), &["allowed.py"]);
    assert!(ran.stdout.starts_with("2 lines wait: 2 avoidable; 1 file read\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("allowed.py:6: allowed: shown on request\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("allowed.py:8: allowed: the scheduler needs it\n"), "{}", ran.stdout);
}

/// The comment on the line of S4 is heeded where a capture shows it, too.
#[test]
fn reports_and_the_gate_heed_comments() {
    let train =
        fs::read_to_string(format!("{}/sample-profiles/programs/train_mlp.py", env!("CARGO_MANIFEST_DIR")))
            .expect("the program");
    let mut lines: Vec<String> = train.lines().map(str::to_owned).collect();
    lines[29] += "  # sync-report: allow it is watched";
    let place = folder(&[("train_mlp.py", &(lines.join("\n") + "\n"))]);
    let root = place.path().display().to_string();
    let given = |more: &[&str]| {
        ran(command().current_dir(place.path()).args(more).args([
            &sample("train_mlp"),
            "--source-root",
            &root,
        ]))
    };
    let report = given(&["--format", "json"]).good().json();
    let site = report["sites"].as_array().expect("sites").iter().find(|site| site["allowed"].is_string());
    let site = site.expect("an allowed site");
    assert_eq!((&site["allowed"], &site["user_frame"]["line"]), (&"it is watched".into(), &30.into()));
    assert!(given(&[]).good().stdout.contains("allowed: it is watched"));
    assert!(!given(&["--format", "github"]).good().stdout.contains("line=30"));
    let check = given(&["check", "--fail-on", "any-avoidable"]);
    assert!(!check.stdout.contains("train_mlp.py:30:"), "{}", check.stdout);
    assert!(check.stdout.contains("allowed by a comment: train_mlp.py:30 step (it is watched), 1 site"));
}

#[test]
fn details_list_other_places_of_a_pattern() {
    let program =
        fs::read_to_string(format!("{}/sample-profiles/programs/train_mlp.py", env!("CARGO_MANIFEST_DIR")))
            .expect("the program");
    let place = folder(&[
        ("train_mlp.py", &program),
        ("more/other.py", "import torch\n\n\ndef f(x):\n    print(x.cuda().sum().item())\n"),
    ]);
    let root = place.path().display().to_string();
    fs::create_dir(place.path().join(".git")).expect("a checkout");
    let details = ["--source-root", &root, "--details", "train_mlp.py:30"];
    let ran = program_of(&sample("train_mlp"), &details);
    let expected = "the pattern A01 stands in 1 other place of the repository, by the source alone\n  more/other.py:5  print(x.cuda().sum().item())\n";
    assert!(ran.good().stdout.contains(expected), "{}", ran.stdout);
}

fn program_of(capture: &str, more: &[&str]) -> Ran {
    program(&[&[capture], more].concat())
}

#[test]
fn names_and_texts_are_escaped_for_each_format() {
    let name = "a\u{1b}[31m,b::warning|<x>.py";
    let text =
        "import torch\n\n\ndef f(x):\n    print(x.cuda().sum().item(), '\u{202e}%0A::error::](http://x)')\n";
    let place = folder(&[(name, text)]);
    for format in ["table", "markdown", "github", "sarif", "json"] {
        let ran = lint(place.path(), &[".", "--format", format]);
        assert_eq!(ran.code, 1, "{format}: {}", ran.stderr);
        let bad = ['\u{1b}', '\u{202e}'];
        assert!(format == "json" || !ran.stdout.contains(bad), "{format}: {}", ran.stdout);
        if format == "github" {
            let first = ran.stdout.lines().next().expect("an annotation");
            assert!(first.starts_with("::warning file=a"), "{first}");
            assert!(first.contains("%2Cb%3A%3Awarning"), "{first}");
        }
    }
}

#[test]
fn sarif_is_valid_and_carries_the_safe_edits() {
    let text = "import torch\n\n\ndef main(n):\n    return torch.zeros(n).to(\"cuda\")\n";
    let place = folder(&[("src/a.py", text)]);
    let log = lint(place.path(), &["src", "--format", "sarif"]).json();
    assert_eq!(schema::errors(&log), [""; 0]);
    let result = &log["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "C14");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(
        (&place["artifactLocation"]["uri"], &place["region"]["startLine"]),
        (&"src/a.py".into(), &5.into())
    );
    let inserted = &result["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"];
    assert_eq!(inserted, "    return torch.zeros(n, device=\"cuda\")\n");
}

#[test]
fn the_result_is_the_same_with_any_number_of_threads() {
    let folder = fixtures();
    let printed = |threads: &str| lint(&folder, &[".", "--format", "json", "--threads", threads]).stdout;
    let one = printed("1");
    assert!(one.contains("findings"));
    for threads in ["2", "7"] {
        assert_eq!(printed(threads), one);
    }
}

/// Each wait is followed through its file; in generated code only the first 500.
#[test]
fn of_generated_files_the_first_waits_are_read() {
    let part = "def f_N(x, loader):\n    for b in loader:\n        y = b.cuda() @ x\n        if y.sum() > 1:\n            print(y.item())\n\n\n";
    let text: String = (0..170).map(|n| part.replace('N', &n.to_string())).collect();
    let place = folder(&[("a.py", &format!("import torch\n\n\n{text}"))]);
    let ran = lint(place.path(), &["a.py", "--format", "json"]);
    assert_eq!(findings(&ran).len(), 500);
    let message = "a.py: 10 waits after the first 500 were left out";
    assert_eq!(ran.json()["warnings"][0]["message"], message);
}
