//! A window into a program that lives on.

use super::{Bench, text};
use crate::cli::sample;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// ```text
///  run --session web -- PROGRAM     nsys launch [program .......................]
///  run --attach web --duration 1            nsys start [   ] nsys stop  export, report
/// ```
#[test]
fn a_running_server_is_recorded_for_a_while() {
    let bench = Bench::new(Some("nsys-rep"));
    bench.fake("sample", &sample("train_mlp"));
    bench.fake("exit", "7");
    let mut command = bench.run();
    command.args(["--session", "web", "--withhold", "DATA", "--", "sleep", "4"]).stderr(Stdio::piped());
    let server = command.spawn().expect("it starts");
    let start = Instant::now();
    while !bench.path("host/target-linux-x64/launched").exists() && start.elapsed() < Duration::from_secs(60)
    {
        std::thread::sleep(Duration::from_millis(20));
    }
    let done =
        bench.run().args(["--attach", "web", "--duration", "1", "-o", "window"]).output().expect("it runs");
    let (printed, said) = (text(&done.stdout), text(&done.stderr));
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(printed.contains("train_mlp.py:18") && said.contains("recording for 1 s"), "{printed}{said}");
    assert_eq!(bench.files(), ["window.nsys-rep", "window.sqlite"]);
    // One that ends meanwhile leaves its recording a little later.
    bench.fake("ended", "");
    let done = bench.run().args(["--no-report", "--attach", "web", "--duration", "1", "-o", "end"]).output();
    let done = done.expect("it runs");
    assert!(done.status.success() && bench.path("end.sqlite").exists(), "{}", text(&done.stderr));
    let done = server.wait_with_output().expect("it ends");
    assert_eq!(done.status.code(), Some(7), "the program's own");
    assert!(text(&done.stderr).contains("sync-report run --attach web"), "{}", text(&done.stderr));
    let arguments = bench.recorded("arguments");
    let lines = [
        "launch --session-new=web --trace=cuda,nvtx --cudabacktrace=sync:0 --python-backtrace=cuda sleep 4",
        "start --session=web --output=",
        "--sample=process-tree --backtrace=fp",
        "stop --session=web",
    ];
    assert!(lines.iter().all(|line| arguments.contains(line)), "{arguments}");
    assert!(!bench.passed("DATA", "/data/a b"));
}

#[test]
fn the_commands_of_a_window_are_printed() {
    let bench = Bench::new(None);
    let shown = bench.printed(&["--session", "web", "python", "serve.py"]);
    assert!(shown.contains("launch --session-new=web") && shown.ends_with(" python serve.py\n"), "{shown}");
    let shown = bench.printed(&["--attach", "web", "--duration", "3", "--light"]);
    let lines =
        ["start --session=web --output=sync-report", "sleep 3\n", "stop --session=web\n", "export --type"];
    assert!(lines.iter().all(|line| shown.contains(line)) && !shown.contains("--backtrace"), "{shown}");
}
