//! Secrets reach the program, and no export.

use super::{Bench, ENVIRONMENT, SECRETS, count, text};
use std::fs;

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
