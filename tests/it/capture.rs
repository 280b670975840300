//! `sync-report run`, with a program in the place of nsys.

use crate::cli::command;
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Records its arguments and the program's environment beside itself, and leaves the files that nsys would. Files beside it say
/// what it does: `records` the kind of recording, `status` what `nsys status` prints, `runs` that the program runs,
/// `exit` its exit status, `broken` that its export is no database, `half` that it fails on the way, `sample` the export that it gives.
const FAKE_NSYS: &str = r#"#!/bin/bash
here=$(dirname "$0")
printf '%s\n' "$*" >>"$here/arguments"
for word in "$@"; do case $word in --output=*) output=${word#*=} ;; esac; done
case "$*" in
  *--help*) echo "  --include-json=" ;;
  status*) cat "$here/status" 2>/dev/null || echo "CPU Profiling Environment (process-tree): OK" ;;
  profile*)
    env -0 >"$here/environment"
    trap 'touch "$here/stopped"' INT
    [ ! -e "$here/runs" ] || { NSYS_PROFILING_SESSION_ID=1 "${@: -2}"; sleep 1.5; }
    [ ! -e "$here/records" ] || echo recording >"${output//%%/%}.$(cat "$here/records")"
    exit "$(cat "$here/exit" 2>/dev/null || echo 0)"
    ;;
  export*)
    [ ! -e "$here/sample" ] || { cp "$(cat "$here/sample")" "$output"; exit; }
    [ ! -e "$here/half" ] || { cp "$here/environment" "$output"; echo "disk full" >&2; exit 1; }
    [ ! -e "$here/broken" ] || { echo "no database, but long enough to be taken for one" >"$output"; exit; }
    python3 - "$output" "$here/environment" <<'PYTHON'
import json, sqlite3, sys
block = open(sys.argv[2], "rb").read().rstrip(b"\0")
db = sqlite3.connect(sys.argv[1])
db.execute("CREATE TABLE META_DATA_CAPTURE (name TEXT NOT NULL, value TEXT)")
db.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
db.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT NOT NULL, value TEXT NOT NULL)")
insert = "INSERT INTO META_DATA_CAPTURE VALUES (?, CAST(? AS TEXT))"
for entry in block.split(b"\0"):
    name, _, value = entry.partition(b"=")
    db.execute(insert, ("PROCESS_0:ENVIRONMENT_VARIABLE", name + b'="' + value + b'"'))
for n, word in enumerate((b"--key=sk-anargumentofthecommand", b"--api-key=0a1b2c3d4e5f", b"--password", b"correcthorse", b"--lr=0.1")):
    db.execute(insert, (f"PROCESS_0:ARGUMENT_{n + 1}", word))
db.execute("CREATE TABLE OTHER (data BLOB, json)")
signing = dict(entry.split(b"=", 1) for entry in block.split(b"\0")).get(b"SIGNING", b"").decode()
db.execute("INSERT INTO OTHER VALUES (?, ?)", (b"x" + b"0123456789abcdef0123" + b"y", json.dumps(signing)))
other = b"LANG=C\0DAEMON_TOKEN=of-another-process\0N=\xff"
for text in (block, other, b"lr=0.1", b"step \xff", b"/work/train.py"):
    db.execute("INSERT INTO StringIds (value) VALUES (CAST(? AS TEXT))", (text,))
db.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('DeviceEnvironment', CAST(? AS TEXT))", (block.replace(b"\0", b";"),))
db.commit()
PYTHON
    ;;
esac
"#;
const FAKE_IMPORTER: &str = "#!/bin/bash\ncp \"$2\" \"$4\"\n";
const ENVIRONMENT: [(&str, &str); 20] = [
    ("WANDB_API_KEY", "0123456789abcdef0123"),
    ("SHORT_TOKEN", "abc"),
    ("LIST_TOKEN", "part;of;a;value"),
    ("INFERENCE", "Bearer hf_abcdefghijklmnopqr"),
    ("LLM", "sk-proj-abcdefghijklmnop"),
    ("FORGE", "ghp_abcdefghijklmnop1234"),
    ("CLOUD", "AKIAABCDEFGHIJKLMNOP"),
    ("SESSION", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"),
    ("SIGNING", "-----BEGIN RSA PRIVATE KEY-----\nMIIEabcdef\n-----END RSA PRIVATE KEY-----"),
    ("http_proxy", "http://jane:hunter2hunter@proxy:3128"),
    ("RANK", "3"),
    ("WORLD_SIZE", "1"),
    ("MASTER_ADDR", "10.0.0.1"),
    ("DATA", "/data/a b"),
    ("LINES", "one\ntwo"),
    ("TOKENIZERS_PARALLELISM", "false"),
    ("name", "resnet"),
    ("range", "7"),
    ("program", "gpt"),
    ("LC_ALL", "C.UTF-8"),
];
const SECRETS: [&str; 14] = [
    "0123456789abcdef0123",
    "SHORT_TOKEN=abc",
    "SHORT_TOKEN=\"abc",
    "hf_abcdefghij",
    "sk-proj-abcd",
    "ghp_abcdefgh",
    "AKIAABCDEFGH",
    "eyJzdWIiOiIx",
    "MIIEabcdef",
    "hunter2hunter",
    "sk-anargument",
    "0a1b2c3d4e5f",
    "correcthorse",
    "part;of;a;value",
];

/// An installation of nsys that leaves this kind of recording, and a folder to work in.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new(records: Option<&str>) -> Self {
        let bench = Self { folder: tempfile::tempdir().expect("a folder") };
        bench.program("host/target-linux-x64/nsys", FAKE_NSYS);
        if let Some(extension) = records {
            bench.fake("records", extension);
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, source: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        fs::write(&path, source).expect("the program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its permissions");
    }

    fn fake(&self, file: &str, content: &str) {
        fs::write(self.path("host/target-linux-x64").join(file), content).expect("a file");
    }

    /// The program, its environment as given.
    fn run(&self) -> Command {
        let mut command = command();
        command
            .arg("run")
            .current_dir(self.folder.path())
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME"))
            .env("NSYS", self.path("host/target-linux-x64/nsys"))
            .envs(ENVIRONMENT);
        command
    }

    fn capture(&self, arguments: &[&str]) -> Output {
        self.run().arg("--no-report").args(arguments).output().expect("it runs")
    }

    fn captured(&self, arguments: &[&str]) -> String {
        let done = self.capture(arguments);
        assert!(done.status.success(), "{arguments:?}: {}", text(&done.stderr));
        text(&done.stderr)
    }

    fn recorded(&self, what: &str) -> String {
        let bytes = fs::read(self.path("host/target-linux-x64").join(what)).unwrap_or_default();
        text(&bytes)
    }

    fn passed(&self, name: &str, value: &str) -> bool {
        self.recorded("environment").split('\0').any(|entry| entry == format!("{name}={value}"))
    }

    fn printed(&self, arguments: &[&str]) -> String {
        text(&self.capture(&[&["--print"], arguments].concat()).stdout)
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
        let mut names: Vec<String> = names.filter(|name| name != "host").collect();
        names.sort();
        names
    }
}

#[test]
fn backtraces_are_taken_of_synchronising_calls_unless_told() {
    let bench = Bench::new(None);
    let (waits, all) = ("--cudabacktrace=sync:0 --python-backtrace=cuda", "--cudabacktrace=all:0");
    let fast = "NSYS_CONFIG_DIRECTIVES=UseLZ4HighCompression=false";
    for (option, present, absent) in [
        (&[][..], &[waits, "--sample=process-tree --backtrace=fp", fast][..], all),
        (&["--full"], &[all, "--python-backtrace=cuda", fast], "sync:0"),
        (&["--light"], &["profile", "--trace=cuda,nvtx --sample=none"], "backtrace"),
    ] {
        let shown = bench.printed(&[option, &["python", "train.py"]].concat());
        assert!(present.iter().all(|part| shown.contains(part)), "{shown}");
        assert!(!shown.contains(absent), "{shown}");
    }
    assert_eq!(bench.recorded("arguments"), "");
}

#[test]
fn printed_commands_are_complete_and_show_no_values() {
    let bench = Bench::new(None);
    let shown = bench.printed(&[
        "--range",
        "nvtx:epoch 1",
        "--withhold",
        "WANDB_*",
        "-o",
        "out_%q{RANK}_%r",
        "python",
        "train.py",
        "--n",
        "a b",
        "--key=0123456789abcdef0123",
        "--key=sk-anargumentofthecommand",
    ]);
    for part in [
        "# The environment has secrets, which are removed from the export: CLOUD, FORGE, INFERENCE, LIST_TOKEN, LLM",
        "env -u WANDB_API_KEY NSYS_CONFIG_DIRECTIVES=",
        "--capture-range=nvtx '--nvtx-capture=epoch 1' --env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0",
        "python train.py --n 'a b'",
        "--include-json=true --output=out_3_3.sqlite out_3_3.nsys-rep",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!SECRETS.iter().any(|secret| shown.contains(secret)), "{shown}");
}

#[test]
fn without_the_right_to_unwind_python_is_sampled() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("status", "Linux Kernel Paranoid Level = 4\nCPU Profiling Environment (process-tree): Fail\n");
    let said = bench.captured(&["python", "train.py"]);
    assert!(
        said.contains("kernel.perf_event_paranoid is 4") && said.contains("--cap-add=SYS_ADMIN"),
        "{said}"
    );
    let arguments = bench.recorded("arguments");
    assert!(arguments.contains("--python-sampling=true --sample=none --cpuctxsw=none"), "{arguments}");
    assert!(!arguments.contains("backtrace"), "{arguments}");
    // Nothing is asked for a light capture, and an answer of another form is no refusal.
    let said = bench.captured(&["--light", "-o", "light", "python", "train.py"]);
    assert!(!said.contains("paranoid"), "{said}");
    bench.fake("status", "unknown command\n");
    bench.captured(&["-o", "other", "python", "train.py"]);
    assert!(bench.recorded("arguments").contains("--cudabacktrace=sync:0"));
}

#[test]
fn the_program_gets_the_whole_environment() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.captured(&["python", "train.py"]);
    for (name, value) in ENVIRONMENT {
        assert!(bench.passed(name, value), "{name}: {}", bench.recorded("environment"));
    }
    assert!(bench.passed("NSYS_CONFIG_DIRECTIVES", "UseLZ4HighCompression=false"));
    bench.captured(&["--force", "--withhold", "secrets", "--withhold", "MASTER_*", "python", "train.py"]);
    let kept_back =
        ["LIST_TOKEN", "WANDB_API_KEY", "SHORT_TOKEN", "INFERENCE", "SIGNING", "http_proxy", "MASTER_ADDR"];
    for (name, value) in ENVIRONMENT {
        let other = ["LLM", "FORGE", "CLOUD", "SESSION"].contains(&name);
        assert_eq!(bench.passed(name, value), !other && !kept_back.contains(&name), "{name}");
    }
}

#[test]
fn the_export_holds_no_secret() {
    let bench = Bench::new(Some("nsys-rep"));
    let said = bench.captured(&["-o", "run", "python", "train.py"]);
    let bytes = fs::read(bench.path("run.sqlite")).expect("the export");
    let holds = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
    for secret in [&SECRETS[..], &["of-another-process"]].concat() {
        assert!(!holds(secret.as_bytes()), "{secret}");
    }
    for kept in [
        &b"http://jane:***@proxy:3128"[..],
        b"INFERENCE=Bearer ***",
        b"MASTER_ADDR=10.0.0.1",
        b"TOKENIZERS_PARALLELISM=false",
        b"step \xff",
        b"/work/train.py",
    ] {
        assert!(holds(kept), "{}", text(kept));
    }
    let texts = "SELECT count(*) FROM StringIds WHERE typeof(value) = 'text'";
    assert_eq!(count(&bench.path("run.sqlite"), texts), 5);
    let names = "CLOUD, DAEMON_TOKEN, FORGE, INFERENCE, LIST_TOKEN, LLM, SESSION, SHORT_TOKEN, SIGNING, WANDB_API_KEY, \
                 an argument of the program, http_proxy";
    assert!(said.contains(&format!("removed from run.sqlite: {names}. run.nsys-rep still holds")), "{said}");
    assert!(SECRETS.iter().all(|secret| !said.contains(secret)), "{said}");
    assert_eq!(bench.files(), ["run.nsys-rep", "run.sqlite"]);
}

#[test]
fn an_export_whose_secrets_stay_has_another_name() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("broken", "");
    let done = bench.capture(&["-o", "run", "python", "train.py"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("run.unscrubbed.sqlite hold them: CLOUD, FORGE"), "{said}");
    assert_eq!(bench.files(), ["run.unscrubbed.nsys-rep", "run.unscrubbed.sqlite"]);
}

#[test]
fn every_rank_has_a_file_of_its_own() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.captured(&["-o", "rank_%q{RANK}_%%.sqlite", "python", "train.py"]);
    assert_eq!(bench.files(), ["rank_3_%.nsys-rep", "rank_3_%.sqlite"]);
}

#[test]
fn old_files_stay_until_the_new_ones_are_whole() {
    let bench = Bench::new(None);
    let files = ["sync-report.nsys-rep", "sync-report.sqlite"];
    files.iter().for_each(|file| fs::write(bench.path(file), "old").expect("a file"));
    let old = || files.iter().all(|file| fs::read(bench.path(file)).is_ok_and(|bytes| bytes == b"old"));
    let refused = bench.capture(&["python", "train.py"]);
    let said = text(&refused.stderr);
    assert!(said.contains("sync-report.nsys-rep exists") && bench.recorded("arguments").is_empty(), "{said}");
    let failed = bench.capture(&["--force", "python", "train.py"]);
    assert!(!failed.status.success() && old() && bench.files().len() == 2, "{:?}", bench.files());
    // A recording that cannot be converted stays beside them.
    bench.fake("records", "qdstrm");
    let failed = bench.capture(&["--force", "python", "train.py"]);
    let said = text(&failed.stderr);
    assert!(said.contains(".qdstrm holds what was recorded") && old(), "{said}");
    bench.fake("records", "nsys-rep");
    bench.captured(&["--force", "python", "train.py"]);
    assert!(!old());
}

#[test]
fn the_end_is_told_and_the_exit_status_is_that_of_the_program() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("runs", "");
    bench.fake("exit", "7");
    let done = bench.capture(&["sleep", "1"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(7), "{said}");
    assert!(said.contains("libraries into its report: 10 to 60 s"), "{said}");
    assert!(said.contains(" s after the end of the program"), "{said}");
}

#[test]
fn a_program_that_nsys_ends_with_its_range_has_succeeded() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("exit", "143");
    bench.captured(&["--range", "cudaProfilerApi", "python", "train.py"]);
    assert_eq!(
        bench.capture(&["--force", "python", "train.py"]).status.code(),
        Some(143),
        "somebody else ended it"
    );
}

#[test]
fn a_recording_of_nsight_compute_is_converted() {
    let bench = Bench::new(Some("qdstrm"));
    let alone = bench.capture(&["python", "train.py"]);
    assert!(text(&alone.stderr).contains("QdstrmImporter"), "{}", text(&alone.stderr));
    bench.program("host/linux-desktop-glibc_2_11_3-x64/QdstrmImporter", FAKE_IMPORTER);
    bench.captured(&["-o", "run", "python", "train.py"]);
    assert!(bench.path("run.nsys-rep").exists() && !bench.path("run.qdstrm").exists());
    let shown = bench.printed(&["-o", "run", "python", "train.py"]);
    assert!(shown.contains("QdstrmImporter --input-file run.qdstrm --output-file run.nsys-rep"), "{shown}");
}

#[test]
fn mistakes_are_told() {
    let bench = Bench::new(None);
    for (arguments, message) in [
        (&[][..], "<PROGRAM>..."),
        (&["--fast", "python"], "unexpected argument '--fast'"),
        (&["--range", "nvtx:", "python"], "it is none, cudaProfilerApi or nvtx:NAME"),
        (&["--steps", "7:3", "python"], "two numbers of steps with 1 ≤ A < B"),
        (&["-o"], "a value is required for '--output <NAME>'"),
        (&["-o", "%q{NONE_SUCH}", "python"], "NONE_SUCH is not set"),
        (&["-o", "run_%p", "python"], "-o takes %q{VAR}, %h, %r and %%, not %p"),
        (&["-o", "none/run", "python"], "cannot write to the folder none"),
        (&["--range", "cudaProfilerApi", "python"], "torch.cuda.profiler.start()"),
        (&["srun", "-n2", "./job"], "srun … sync-report run -o NAME -- PROGRAM"),
    ] {
        let refused = bench.capture(arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).contains(message), "{arguments:?}: {}", text(&refused.stderr));
    }
    let help = bench.capture(&["--help"]);
    assert!(help.status.success());
    for option in ["--range", "--full", "--light", "--withhold", "%q{VAR}"] {
        assert!(text(&help.stdout).contains(option), "{option}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn count(database: &Path, query: &str) -> i64 {
    let db = Connection::open(database).expect("the database opens");
    db.query_row(query, [], |row| row.get(0)).expect("one number")
}

fn sample(name: &str) -> String {
    format!("{}/sample-profiles/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_report_follows_the_capture() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("sample", &sample("train_mlp.sqlite"));
    let done =
        bench.run().args(["-o", "run", "--", "python", "train.py", "--light"]).output().expect("it runs");
    let (printed, said) = (text(&done.stdout), text(&done.stderr));
    assert!(done.status.success(), "{said}");
    assert!(
        printed.contains("train_mlp.py:18") && said.contains("wrote run.nsys-rep and run.sqlite"),
        "{printed}{said}"
    );
    assert!(
        bench.recorded("arguments").contains("python train.py --light"),
        "{}",
        bench.recorded("arguments")
    );
    // A program that fails has a report too; its exit code is passed on.
    bench.fake("exit", "7");
    let done = bench.run().args(["-o", "other", "python", "train.py"]).output().expect("it runs");
    assert_eq!(done.status.code(), Some(7));
    assert!(text(&done.stdout).contains("train_mlp.py:18"));
}

/// A launcher that starts two ranks, with torchrun's variables.
const FAKE_LAUNCHER: &str = r#"#!/bin/bash
while [ "${1##*/}" != sync-report ]; do shift; done
for rank in $(seq 0 $((${RANKS:-2} - 1))); do RANK=$rank WORLD_SIZE=${RANKS:-2} "$@" & done
wait
"#;

/// ```text
///  run -- torchrun train.py          torchrun --no-python run -o ranks/rank_%r -- python train.py
///  torchrun --no-python run …        each rank writes ranks/rank_N.sqlite; rank 0 waits, and reports
/// ```
#[test]
fn a_launcher_has_a_file_for_each_rank_and_one_report() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("sample", &sample("train_mlp.sqlite"));
    bench.program("bin/torchrun", FAKE_LAUNCHER);
    let path = format!("{}:{}", bench.path("bin").display(), std::env::var("PATH").expect("a PATH"));
    let files = |folder: &str| {
        let entries = fs::read_dir(bench.path(folder)).expect("the folder").flatten();
        let mut names: Vec<String> = entries.map(|e| e.file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    };
    let expected = ["rank_0.nsys-rep", "rank_0.sqlite", "rank_1.nsys-rep", "rank_1.sqlite"];
    let launched = |arguments: &[&str]| {
        let mut command = bench.run();
        let done = command.env_remove("RANK").env("PATH", &path).args(arguments).output().expect("it runs");
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    let (code, printed, said) =
        launched(&["-o", "behind", "--", "torchrun", "--nproc-per-node", "2", "train.py"]);
    assert_eq!((code, files("behind")), (Some(0), expected.map(str::to_owned).to_vec()), "{said}");
    assert!(printed.contains("train_mlp.py:18") && printed.contains("2 ranks"), "{printed}{said}");
    // Files of an earlier run stay, and say so.
    let (code, printed, said) = launched(&["-o", "behind", "--", "torchrun", "train.py"]);
    assert_eq!((code, printed.as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("behind/rank_0.sqlite exists (--force replaces the ranks' files)"), "{said}");
    let own = assert_cmd::cargo::cargo_bin!("sync-report");
    let mut before = Command::new(bench.path("bin/torchrun"));
    before.arg("--no-python").arg(own).args(["run", "-o", "before", "--", "python", "train.py"]);
    before.current_dir(bench.folder.path()).env("NSYS", bench.path("host/target-linux-x64/nsys"));
    let done = before.output().expect("it runs");
    assert_eq!(files("before"), expected, "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("train_mlp.py:18"), "{}", text(&done.stderr));
}

/// A signal to this program alone reaches nsys, and what it then records is kept.
#[test]
fn a_signal_stops_nsys_and_keeps_what_was_recorded() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("runs", "");
    let mut command = bench.run();
    command.args(["--no-report", "-o", "run", "sleep", "3"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let start = Instant::now();
    while bench.recorded("environment").is_empty() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
    let done = child.wait_with_output().expect("it ends");
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted: run.sqlite holds what was recorded"), "{said}");
    assert!(bench.path("run.sqlite").exists() && bench.path("host/target-linux-x64/stopped").exists());
}

/// The hook counts the steps of the optimizer that steps first, in a program that imports torch when it likes.
#[test]
fn steps_are_counted_from_outside() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("runs", "");
    bench.program("lib/torch/__init__.py", "from . import cuda, optim\n");
    bench.program(
        "lib/torch/cuda.py",
        "def is_available(): return True\ndef synchronize(): pass\ndef is_current_stream_capturing(): return False\nclass profiler:\n    start = staticmethod(lambda: print('start'))\n    stop = staticmethod(lambda: print('stop'))\n",
    );
    bench.program("lib/torch/optim/__init__.py", "from .optimizer import Optimizer\n");
    bench.program(
        "lib/torch/optim/optimizer.py",
        "hooks = []\nregister_optimizer_step_post_hook = hooks.append\nclass Optimizer:\n    def step(self):\n        for hook in hooks: hook(self, (), {})\n",
    );
    bench.program(
        "train.py",
        "import torch\na, b = torch.optim.Optimizer(), torch.optim.Optimizer()\nfor i in range(1, 6):\n    print(i)\n    a.step()\n    b.step()\n",
    );
    let mut command = bench.run();
    command.env("PYTHONPATH", bench.path("lib"));
    command.args(["--no-report", "--steps", "2:4", "-o", "run", "python3", "train.py"]);
    let done = command.output().expect("it runs");
    let words = |done: &Output| text(&done.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(&done), "1 2 start 3 4 stop 5", "{}", text(&done.stderr));
    assert!(!text(&done.stderr).contains("sitecustomize"), "{}", text(&done.stderr));
    // A sitecustomize of the program's own runs too.
    bench.program("lib/sitecustomize.py", "print('own')\n");
    let mut command = bench.run();
    command.env("PYTHONPATH", bench.path("lib"));
    let done = command.args(["--no-report", "--steps", "2:4", "-o", "own", "python3", "train.py"]).output();
    assert_eq!(words(&done.expect("it runs")), "own 1 2 start 3 4 stop 5");
    // Python that looks at no PYTHONPATH is said to.
    fs::remove_file(bench.path("host/target-linux-x64/records")).expect("it was there");
    let failed = bench.capture(&["--steps", "2:4", "-o", "bare", "python3", "-I", "train.py"]);
    assert!(
        text(&failed.stderr).contains("the hook that counts steps was not loaded"),
        "{}",
        text(&failed.stderr)
    );
    assert!(bench.recorded("arguments").contains("--capture-range=cudaProfilerApi"));
}

/// The names that the command had before.
#[test]
fn the_old_names_run_the_program() {
    let bench = Bench::new(Some("nsys-rep"));
    for script in ["scripts/capture.sh", "python/data/scripts/sync-report-capture"] {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
        let mut command = Command::new("bash");
        command.arg(script).args(["--print", "python", "train.py"]).current_dir(bench.folder.path());
        let done = command.env("SYNC_REPORT_BIN", assert_cmd::cargo::cargo_bin!("sync-report")).output();
        let printed = text(&done.expect("bash runs").stdout);
        let whole =
            printed.contains("profile --output=sync-report") && printed.contains("export --type=sqlite");
        assert!(whole, "{printed}");
    }
}

/// Half an export holds secrets: it goes, and the recording is named.
#[test]
fn an_export_that_fails_leaves_the_recording_alone() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("half", "");
    let done = bench.capture(&["-o", "run", "python", "train.py"]);
    let said = text(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(
        said.contains("could not export its report: disk full") && said.contains("nsys-rep holds what was"),
        "{said}"
    );
    let files = bench.files();
    assert!(files.len() == 1 && files[0].ends_with(".nsys-rep"), "{files:?}");
}

/// Long and many secrets, as a cluster's environment has them.
#[test]
fn a_hundred_long_secrets_are_removed() {
    let bench = Bench::new(Some("nsys-rep"));
    let long = |n: usize| format!("{n}-{}", "s3cret".repeat(400));
    let mut command = bench.run();
    (0..100).for_each(|n| _ = command.env(format!("S{n}_TOKEN"), long(n)));
    let done = command.args(["--no-report", "-o", "run", "python", "train.py"]).output().expect("it runs");
    assert!(done.status.success(), "{}", text(&done.stderr));
    let bytes = fs::read(bench.path("run.sqlite")).expect("the export");
    assert!(!bytes.windows(6).any(|window| window == b"s3cret"));
}

/// Ranks of an earlier, larger run are named, and not in the report; a rank that never wrote is told.
#[test]
fn ranks_of_an_earlier_run_do_not_count() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("sample", &sample("train_mlp.sqlite"));
    bench.program("bin/torchrun", FAKE_LAUNCHER);
    let path = format!("{}:{}", bench.path("bin").display(), std::env::var("PATH").expect("a PATH"));
    let launched = |ranks: &str, more: &[&str]| {
        let mut command = bench.run();
        command.env_remove("RANK").env_remove("WORLD_SIZE").env("PATH", &path).env("RANKS", ranks);
        let done = command
            .args(more)
            .args(["-o", "runs_%h", "--", "torchrun", "train.py"])
            .output()
            .expect("it runs");
        (text(&done.stdout), text(&done.stderr))
    };
    assert!(launched("3", &[]).0.contains("3 ranks"));
    let (printed, said) = launched("2", &["--force"]);
    assert!(
        printed.contains("2 ranks") && said.contains("rank_2.sqlite of an earlier capture"),
        "{printed}{said}"
    );
}
