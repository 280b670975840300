//! `sync-report run`, with a program in the place of nsys.

mod live;
mod ranks;
mod secrets;

use crate::cli::{command, sample};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Records its arguments and the program's environment beside itself, and leaves the files that nsys would. Files beside it say
/// what it does: `records` the kind of recording, `status` what `nsys status` prints, `runs` that the program runs,
/// `exit` its exit status, `broken` that its export is no database, `half` that it fails on the way, `sample` the export that it gives.
const FAKE_NSYS: &str = include_str!("capture/nsys.sh");
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
        self.files_in("")
    }

    fn files_in(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).expect("the folder");
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
        (&["--calls", "a:b", "python"], "--steps <A:B>"),
        (&["--session", "1", "python"], "it is a letter, then letters, digits, - and _"),
        (&["--attach", "web", "python"], "cannot be used with"),
        (
            &["--attach", "web"],
            "no session web here: start the program with `sync-report run --session web -- PROGRAM`",
        ),
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
    let mut command = bench.run();
    let done = command.env("NSYS", "/none/nsys").args(["python", "train.py"]).output().expect("it runs");
    assert!(text(&done.stderr).contains("NSYS is /none/nsys, which is no program"), "{}", text(&done.stderr));
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

#[test]
fn the_report_follows_the_capture() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("sample", &sample("train_mlp"));
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

/// The hook counts the steps of the optimizer that steps first, in a program that imports torch when it likes. A bracket of
/// the program's own does nothing.
#[test]
fn steps_are_counted_from_outside() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("runs", "");
    bench.program("lib/torch/__init__.py", "from . import cuda, optim\n");
    bench.program(
        "lib/torch/cuda/__init__.py",
        "def is_available(): return True\ndef synchronize(): pass\ndef is_current_stream_capturing(): return False\nfrom . import profiler\n",
    );
    bench.program("lib/torch/cuda/profiler.py", "def start(): print('start')\ndef stop(): print('stop')\n");
    bench.program("lib/torch/optim/__init__.py", "from .optimizer import Optimizer\n");
    bench.program(
        "lib/torch/optim/optimizer.py",
        "hooks = []\nregister_optimizer_step_post_hook = hooks.append\nclass Optimizer:\n    def step(self):\n        for hook in hooks: hook(self, (), {})\n",
    );
    bench.program(
        "train.py",
        "import torch\na, b = torch.optim.Optimizer(), torch.optim.Optimizer()\ntorch.cuda.profiler.start()\nfor i in range(1, 6):\n    print(i)\n    a.step()\n    b.step()\n",
    );
    let mut command = bench.run();
    command.env("PYTHONPATH", bench.path("lib"));
    command.args(["--no-report", "--steps", "2:4", "-o", "run", "python3", "train.py"]);
    let done = command.output().expect("it runs");
    let words = |done: &Output| text(&done.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(&done), "1 2 start 3 4 stop 5", "{}", text(&done.stderr));
    assert!(!text(&done.stderr).contains("sitecustomize"), "{}", text(&done.stderr));
    // Calls of a function count as steps, too.
    let mut command = bench.run();
    command.env("PYTHONPATH", bench.path("lib"));
    command.args([
        "--no-report",
        "--steps",
        "2:4",
        "--calls",
        "torch.optim.optimizer:Optimizer.step",
        "-o",
        "calls",
    ]);
    let done = command.args(["python3", "train.py"]).output().expect("it runs");
    assert_eq!(words(&done), "1 start 2 stop 3 4 5", "{}", text(&done.stderr));
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
