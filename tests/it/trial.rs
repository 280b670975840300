//! `sync-report try`: a program with a stand-in for torch, edited.

use crate::cli::command;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const TORCH: [(&str, &str); 4] = [
    ("torch/__init__.py", "from . import cuda, optim\n"),
    ("torch/cuda.py", "def is_available(): return False\n"),
    ("torch/optim/__init__.py", "from .optimizer import Optimizer\n"),
    (
        "torch/optim/optimizer.py",
        "hooks = []\nregister_optimizer_step_post_hook = hooks.append\nclass Optimizer:\n    def step(self):\n        for hook in hooks: hook(self, (), {})\n",
    ),
];
const PROGRAM: &str = "import time, torch\nimport helper\noptimizer = torch.optim.Optimizer()\nfor i in range(100_000):\n    helper.work()\n    optimizer.step()\n    print(f'loss {1 / (i + 1):.6f}')\n";
const HELPER: &str = "import time\ndef work():\n    time.sleep(0.004)\n";

/// A repository with a program of 4 ms an iteration.
struct Checkout(tempfile::TempDir);

impl Checkout {
    fn new(program: &str) -> Self {
        let checkout = Self(tempfile::tempdir().expect("a folder"));
        for (file, text) in TORCH.into_iter().chain([("train.py", program), ("helper.py", HELPER)]) {
            checkout.write(file, text);
        }
        checkout.git(&["init", "-q"]);
        checkout.git(&["add", "-A"]);
        checkout.git(&["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "all"]);
        checkout
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn write(&self, file: &str, text: &str) {
        fs::create_dir_all(self.path(file).parent().expect("a folder")).expect("made");
        fs::write(self.path(file), text).expect("written");
    }

    fn git(&self, words: &[&str]) -> String {
        let done = Command::new("git").arg("-C").arg(self.0.path()).args(words).output().expect("git runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// The patch that this edit of the helper is, which is then taken back.
    fn patch(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).expect("the file");
        assert!(text.contains(from));
        self.write(file, &text.replace(from, to));
        let patch = self.git(&["diff"]);
        self.git(&["checkout", "-q", file]);
        fs::write(self.path("../").join(self.name()), patch).expect("written");
    }

    fn name(&self) -> String {
        format!("{}.patch", self.0.path().file_name().expect("a name").to_string_lossy())
    }

    /// Exit code, JSON, and what was said.
    fn tried(&self, words: &[&str], program: &[&str]) -> (Option<i32>, Value, String) {
        let mut command = command();
        command.current_dir(self.0.path()).args([
            "try",
            "--seconds",
            "6",
            "--format",
            "json",
            "-o",
            "../trial",
        ]);
        command.env("TMPDIR", self.0.path().parent().expect("a folder"));
        let done = command.args(words).arg("--").args(program).output().expect("it runs");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(self.git(&["status", "--short"]), "", "the tree is as it was");
        (done.status.code(), serde_json::from_slice(&done.stdout).unwrap_or_default(), said)
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path("../").join(self.name()));
    }
}

/// Half of each iteration goes: about that much is measured, whatever the machine does besides.
#[test]
fn a_saving_is_measured_in_copies_of_the_tree() {
    let checkout = Checkout::new(PROGRAM);
    checkout.patch("helper.py", "0.004", "0.002");
    let patch = format!("../{}", checkout.name());
    let (code, trial, said) = checkout.tried(&["--patch", &patch], &["python3", "train.py"]);
    assert_eq!(code, Some(0), "{said}");
    let number = |name: &str| trial[name].as_i64().expect("a number");
    assert_eq!(trial["unit"], "iteration");
    let share = number("saved_ns") as f64 / number("unedited_ns") as f64;
    assert!((0.2..0.7).contains(&share), "{share}: {trial}");
    assert!(number("low_ns") <= number("saved_ns") && number("saved_ns") <= number("high_ns"));
    let edited: Vec<bool> =
        trial["runs"].as_array().expect("runs").iter().map(|run| run["edited"] == true).collect();
    assert!(edited.starts_with(&[false, true, false, true]), "{edited:?}");
    assert_eq!(
        (&trial["edits"][0]["file"], &trial["edits"][0]["loaded"]),
        (&"helper.py".into(), &true.into())
    );
    assert_eq!(trial["printed"]["differs"], Value::Null, "{trial}");
}

#[test]
fn other_numbers_failures_and_edits_that_do_nothing_are_told() {
    let checkout = Checkout::new(PROGRAM);
    let patch = format!("../{}", checkout.name());
    let tried =
        |words: &[&str]| checkout.tried(&[&["--patch", &patch], words].concat(), &["python3", "train.py"]);
    checkout.patch("train.py", "1 / (i + 1)", "1 / (i + 2)");
    let (code, trial, _) = tried(&[]);
    assert_eq!((code, &trial["printed"]["differs"]["number"]), (Some(1), &1.into()), "{trial}");
    checkout.patch("helper.py", "time.sleep", "time.slept");
    let (code, trial, _) = tried(&[]);
    let failed = trial["failed"].as_str().unwrap_or_default();
    assert!(code == Some(1) && failed.contains("AttributeError"), "{trial}");
    // One that fails later than the first steps.
    checkout.patch(
        "helper.py",
        "def work():\n",
        "n = 0\ndef work():\n    global n\n    n += 1\n    assert n < 60, 'late'\n",
    );
    let (code, trial, said) = tried(&[]);
    let failed = trial["failed"].as_str().unwrap_or_default();
    assert!(code == Some(1) && failed.contains("late"), "{trial} {said}");
    checkout.write("unused.py", "a = 1\n");
    checkout.git(&["add", "-A"]);
    checkout.git(&["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "more"]);
    checkout.patch("unused.py", "a = 1", "a = 2");
    let (_, trial, _) = tried(&[]);
    assert_eq!(trial["edits"][0]["loaded"], false, "{trial}");
}

/// ```text
///  [A B B A …]   both hold the lock at once: refused
///  [A][B][B][A]  one after the other
/// ```
#[test]
fn programs_that_cannot_run_at_once_run_one_after_the_other() {
    let lock = "import fcntl\nlock = open(__import__('os').environ['LOCK'], 'w')\nfcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n";
    let checkout = Checkout::new(&(lock.to_owned() + PROGRAM));
    checkout.patch("helper.py", "0.004", "0.002");
    let (patch, file) = (format!("../{}", checkout.name()), checkout.path("../lock").display().to_string());
    let program = ["env", &format!("LOCK={file}"), "python3", "train.py"];
    let (code, trial, said) = checkout.tried(&["--patch", &patch], &program);
    assert!(code == Some(0) && said.contains("BlockingIOError"), "{said}");
    assert!(said.contains("the two run one after the other"), "{said}");
    assert!(trial["saved_ns"].as_i64() > Some(1_000_000) && trial["unit"] == "iteration", "{trial}");
}

/// Calls of a function, steps of a bracket, a whole program, and a revision.
#[test]
fn programs_without_an_optimizer_are_timed_too() {
    let checkout = Checkout::new("import helper\nfor i in range(100_000): helper.work()\n");
    checkout.write("helper.py", &HELPER.replace("0.004", "0.002"));
    checkout.git(&["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qam", "faster"]);
    let (code, trial, said) =
        checkout.tried(&["--against", "HEAD~1", "--calls", "helper:work"], &["python3", "train.py"]);
    assert_eq!((code, &trial["unit"]), (Some(0), &"call".into()), "{said}");
    assert!(trial["saved_ns"].as_i64() > Some(1_000_000), "{trial}");
    let bracket = format!(
        "import sys\nsys.path.insert(0, '{}/python')\nimport helper, sync_report\nwith sync_report.capture() as steps:\n    for i in steps(range(100_000)):\n        helper.work()\n        print(f'loss {{1 / (i + 1):.6f}}', file=sys.stderr)\n",
        env!("CARGO_MANIFEST_DIR")
    );
    let checkout = Checkout::new(&bracket);
    checkout.patch("helper.py", "0.004", "0.002");
    let patch = format!("../{}", checkout.name());
    let (_, trial, said) = checkout.tried(&["--patch", &patch], &["python3", "train.py"]);
    assert_eq!(trial["unit"], "iteration", "{said}");
    assert!(trial["saved_ns"].as_i64() > Some(1_000_000), "{trial}");
    assert!(trial["printed"]["compared"].as_i64() > Some(20), "loggers write to stderr: {trial}");
    let checkout = Checkout::new("import helper\nfor i in range(50): helper.work()\n");
    checkout.patch("helper.py", "0.004", "0.002");
    let patch = format!("../{}", checkout.name());
    let (_, trial, said) = checkout.tried(&["--patch", &patch], &["python3", "train.py"]);
    assert_eq!(trial["unit"], "run", "{said}");
    assert!(trial["saved_ns"].as_i64() > Some(20_000_000), "{trial}");
}

/// The advised edits of a capture, with what is predicted for them; a program that runs elsewhere loads none.
#[test]
fn edits_of_a_capture_are_tried() {
    let checkout = Checkout::new(PROGRAM);
    let samples = format!("{}/sample-profiles", env!("CARGO_MANIFEST_DIR"));
    fs::copy(format!("{samples}/programs/train_mlp.py"), checkout.path("train_mlp.py")).expect("copied");
    checkout.git(&["add", "-A"]);
    checkout.git(&["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "more"]);
    let profile = format!("{samples}/train_mlp.sqlite");
    let (code, trial, said) =
        checkout.tried(&["--profile", &profile, "--site", "S5"], &["python3", "train.py"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(trial["predicted"]["saved_ns"].as_i64() > Some(0) && trial["agrees"].is_null(), "{trial}");
    assert_eq!((&trial["edits"][0]["site"], &trial["edits"][0]["loaded"]), (&"S5".into(), &false.into()));
    let patch = fs::read_to_string(checkout.path("../trial.patch")).expect("the patch");
    assert!(
        patch.contains("--- a/train_mlp.py") && patch.contains("-    torch.cuda.synchronize()"),
        "{patch}"
    );
}

#[test]
fn what_cannot_be_tried_is_said() {
    let checkout = Checkout::new("raise SystemExit('no data')\n");
    let patch = format!("../{}", checkout.name());
    checkout.patch("helper.py", "0.004", "0.002");
    for (words, says) in [
        (
            &["--patch", &*patch][..],
            "the program fails in a copy of the tree, where `..` and .git are not those of yours: exit status: 1\\nno data",
        ),
        (&["--patch", "none.patch"], "none.patch: cannot be read"),
        (&["--against", "nowhere"], "nowhere: no revision"),
        (&["--against", "HEAD"], "the working tree is as HEAD"),
        (&[], "sync-report.sqlite: no such capture; make one with `sync-report run"),
        (&["--calls", "work"], "it is MODULE:FUNCTION"),
        (&["--metric", "("], "regex parse error"),
    ] {
        let (code, trial, said) = checkout.tried(words, &["python3", "train.py"]);
        assert_eq!((code, &trial), (Some(2), &Value::Null), "{words:?}: {said}");
        assert!(said.contains(says), "{words:?}: {said}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_said_before_anything_runs() {
    let done =
        command().args(["try", "-o", "none/x", "--", "python3", "train.py"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && said.contains("none: there is no such folder"), "{said}");
}

/// Folders of data are linked: a file in one is never written, whatever is asked for.
#[test]
fn data_that_is_not_copied_is_not_written() {
    let checkout = Checkout::new(PROGRAM);
    (0..=1_000).for_each(|n| checkout.write(&format!("data/{n}.txt"), "old"));
    checkout.git(&["add", "-A"]);
    checkout.git(&["-c", "user.email=a@b", "-c", "user.name=a", "commit", "-qm", "data"]);
    checkout.write("data/5.txt", "unsaved");
    let done = command()
        .current_dir(checkout.path("."))
        .args(["try", "--against", "HEAD", "--", "python3", "train.py"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && said.contains("which is data and not copied"), "{said}");
    assert_eq!(fs::read_to_string(checkout.path("data/5.txt")).expect("it is there"), "unsaved");
}

/// Paths that lead into the checkout lead into the copies, through links too; a program that catches everything ends.
#[test]
fn a_program_named_by_its_path_runs_in_the_copies() {
    let checkout = Checkout::new(&format!(
        "try:\n{}except BaseException: raise SystemExit(3)\n",
        PROGRAM.lines().map(|line| format!("    {line}\n")).collect::<String>()
    ));
    checkout.patch("helper.py", "0.004", "0.002");
    let link = tempfile::tempdir().expect("a folder");
    let link = link.path().join("again");
    std::os::unix::fs::symlink(checkout.0.path(), &link).expect("linked");
    let program = link.join("train.py").display().to_string();
    let patch = format!("../{}", checkout.name());
    let (code, trial, said) = checkout.tried(&["--patch", &patch], &["python3", &program]);
    assert_eq!(code, Some(0), "{said}");
    let number = |name: &str| trial[name].as_i64().expect("a number");
    assert!(number("saved_ns") * 5 > number("unedited_ns"), "{trial}");
    assert_eq!(trial["edits"][0]["loaded"], true, "{trial}");
}
