//! The documentation's recipe for GitHub, its steps run one by one: as the runner runs them (`bash -e`), in a
//! checkout, with the environment that it gives. GitHub's own parts (actions, `gh`) and the profiler are stand-ins.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGE: &str = include_str!("../../docs/github.md");

fn steps() -> BTreeMap<String, String> {
    let recipe = PAGE.split("```yaml\n").nth(1);
    let recipe = recipe.and_then(|t| t.split("```").next()).expect("the recipe");
    let mut steps = BTreeMap::new();
    let (mut name, mut shell, mut depth) = (String::new(), None::<String>, 0);
    for line in recipe.lines().chain([""]) {
        let indent = line.len() - line.trim_start().len();
        if let Some(text) = &mut shell {
            if indent > depth {
                text.push_str(line.trim_start());
                text.push('\n');
                continue;
            }
            steps.insert(name.clone(), shell.take().unwrap_or_default());
        }
        if let Some(called) = line.trim().strip_prefix("- name: ") {
            name = called.to_owned();
        }
        if let Some(text) = line.trim().strip_prefix("run: ") {
            let text = if text == "|" { String::new() } else { format!("{text}\n") };
            (shell, depth) = (Some(text), indent);
        }
    }
    steps
}

struct Runner {
    folder: tempfile::TempDir,
    steps: BTreeMap<String, String>,
}

impl Runner {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let runner = Self { folder, steps: steps() };
        for part in ["bin", "checkout"] {
            fs::create_dir(runner.path(part)).expect("a folder");
        }
        runner.tool("gh", r#"echo "$@" >"$GITHUB_WORKSPACE/gh.txt""#);
        let nsys = r#"for word; do case $word in --output=*) output=${word#*=} ;; esac; done
        case "$*" in
            'status -e' | *--help*) ;;
            profile*) touch "$output.nsys-rep" ;;
            export*) test -f "${@: -1}" && cp "$CAPTURE" "$output" ;;
            *) exit 9 ;;
        esac"#;
        runner.tool("nsys", nsys);
        runner.tool(
            "sync-report",
            &format!("exec {} \"$@\"", assert_cmd::cargo::cargo_bin!("sync-report").display()),
        );
        runner
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path("checkout").join(name)).unwrap_or_default()
    }

    fn tool(&self, name: &str, script: &str) {
        let file = self.path("bin").join(name);
        fs::write(&file, format!("#!/usr/bin/env bash\n{script}\n")).expect("a script");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("permissions");
    }

    fn check_out(&self, program: &str) {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-profiles").join(program);
        fs::copy(sources, self.path("checkout/train_mlp.py")).expect("a copy");
    }

    fn run(&self, step: &str, capture: &str) -> (i32, String) {
        let shell = self.steps[step].replace("${{ github.event.number }}", "12");
        assert!(!shell.contains("${{"), "{shell}");
        let script = self.path("step.sh");
        fs::write(&script, shell).expect("a script");
        let path = std::env::var("PATH").unwrap_or_default();
        let capture = format!("{}/sample-profiles/fixed/{capture}.sqlite", env!("CARGO_MANIFEST_DIR"));
        let out = Command::new("bash")
            .args(["--noprofile", "--norc", "-e", "-o", "pipefail"])
            .arg(script)
            .current_dir(self.path("checkout"))
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("CAPTURE", capture)
            .env("SYNC_REPORT", env!("CARGO_MANIFEST_DIR"))
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_WORKSPACE", self.path("checkout"))
            .env("GITHUB_STEP_SUMMARY", self.path("checkout/summary.md"))
            .env("GITHUB_OUTPUT", self.path("output"))
            .output()
            .expect("bash runs");
        let log = [out.stdout, out.stderr].concat();
        (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&log).into_owned())
    }
}

#[test]
fn the_recipe_guards_the_main_branch() {
    let runner = Runner::new();
    let named: Vec<&str> = runner.steps.keys().map(String::as_str).collect();
    assert_eq!(named, ["alerts", "capture", "comment", "gate", "keep the baseline"]);
    // On main, for the first time: nothing to be held against.
    runner.check_out("fixed/train_mlp.py");
    for step in ["capture", "gate", "alerts", "keep the baseline"] {
        assert_eq!(runner.run(step, "after").0, 0, "{step}");
    }
    assert!(runner.file("baseline.json").starts_with('{'));
    runner.check_out("programs/train_mlp.py");
    assert_eq!(runner.run("capture", "before").0, 0);
    let (code, log) = runner.run("gate", "before");
    assert_eq!(code, 1, "{log}");
    let commands: Vec<&str> = log.lines().filter(|l| l.starts_with("::")).collect();
    assert_eq!(commands.len(), 4, "{log}");
    assert!(commands.iter().all(|l| l.starts_with("::error file=train_mlp.py,line=")), "{log}");
    assert!(runner.file("summary.md").contains("train_mlp.py:30"), "{}", runner.file("summary.md"));
    assert_eq!(runner.run("alerts", "before").0, 0);
    let sarif = runner.file("waits.sarif");
    assert!(sarif.contains("\"uri\": \"train_mlp.py\"") && !sarif.contains("file:///workspace/train"));
    assert_eq!(runner.run("comment", "before").0, 0);
    assert!(runner.file("comment.md").contains("4 new"), "{}", runner.file("comment.md"));
    assert_eq!(
        runner.file("gh.txt").trim(),
        "pr comment 12 --edit-last --create-if-none --body-file comment.md"
    );
    runner.check_out("fixed/train_mlp.py");
    assert_eq!(runner.run("capture", "after").0, 0);
    let (code, log) = runner.run("gate", "after");
    assert_eq!((code, log.lines().filter(|l| l.starts_with("::error")).count()), (0, 0), "{log}");
}
