//! The commands of a capture, as values.

use super::environment::Environment;
use super::steps::Hook;
use super::{Backtraces, Range, Request, with};
use crate::text::shell_quote;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// One kind of backtrace only: of several (sync:0,memory:0) nsys 2025.3 kept the first or none. PyTorch's blocking copies
/// end in a synchronising call, so their lines come too. The threshold of 0 ns matters: many versions of nsys default to
/// 80 µs, which is longer than most waits of an `.item()`. Backtraces need CPU sampling switched on; frame pointers are what
/// PyTorch's wheels can be unwound with cheaply.
const STACKS: [&str; 3] = ["--python-backtrace=cuda", "--sample=process-tree", "--backtrace=fp"];
const SAMPLED: [&str; 3] = ["--python-sampling=true", "--sample=none", "--cpuctxsw=none"];
const LIGHT: [&str; 2] = ["--sample=none", "--cpuctxsw=none"];
/// With backtraces nsys writes gigabytes of libraries. Its default compression takes one to two minutes for them.
const DIRECTIVES: &str = "NSYS_CONFIG_DIRECTIVES";
const QUICK: &str = "UseLZ4HighCompression=false";

pub struct Commands {
    nsys: PathBuf,
    flags: Vec<OsString>,
    program: Vec<OsString>,
    /// Changes of the environment besides what is withheld.
    set: Vec<(OsString, OsString)>,
    /// Whether nsys takes backtraces.
    pub stacks: bool,
}

impl Commands {
    /// `backtraces`: those that nsys may take.
    pub fn new(
        request: &Request,
        nsys: &Path,
        backtraces: Backtraces,
        environment: &Environment,
        hook: Option<&Hook>,
    ) -> Self {
        let begins = |flag: &OsString, word: &str| flag.to_string_lossy().starts_with(word);
        let traces = request.flags.iter().any(|flag| begins(flag, "--trace") || begins(flag, "-t"));
        let mut flags: Vec<OsString> = (!traces).then(|| "--trace=cuda,nvtx".into()).into_iter().collect();
        let (kind, more): (Option<&str>, &[&str]) = match backtraces {
            Backtraces::Waits => (Some("--cudabacktrace=sync:0"), &STACKS),
            Backtraces::All => (Some("--cudabacktrace=all:0"), &STACKS),
            Backtraces::Sampled => (None, &SAMPLED),
            Backtraces::None => (None, &LIGHT),
        };
        flags.extend(kind.iter().chain(more).map(OsString::from));
        match &request.range {
            Range::Whole if request.steps.is_none() => {}
            Range::Whole | Range::Profiler => flags.push("--capture-range=cudaProfilerApi".into()),
            // PyTorch's ranges are not registered strings, which nsys ignores here unless told.
            Range::Nvtx(name) => flags.extend([
                "--capture-range=nvtx".into(),
                format!("--nvtx-capture={name}").into(),
                "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0".into(),
            ]),
        }
        flags.extend(request.delay.map(|seconds| format!("--delay={seconds}").into()));
        flags.extend(request.duration.map(|seconds| format!("--duration={seconds}").into()));
        flags.extend(request.flags.iter().cloned());
        let stacks = kind.is_some();
        let mut set = Vec::new();
        if stacks {
            let given = environment.passed(DIRECTIVES).cloned().unwrap_or_default();
            let given = given.to_string_lossy().into_owned();
            if !given.contains("UseLZ4") {
                set.push((DIRECTIVES.into(), format!("{given} {QUICK}").trim().into()));
            }
        }
        set.extend(hook.map(|hook| hook.path(environment)));
        set.extend(
            request.steps.as_ref().map(|steps| (super::steps::VARIABLE.into(), steps.to_string().into())),
        );
        Self { nsys: nsys.to_owned(), flags, program: request.program.clone(), set, stacks }
    }

    /// Changes of the environment; `None` withholds a variable.
    pub fn changes(&self, environment: &Environment) -> Vec<(OsString, Option<OsString>)> {
        let withheld = environment.withheld.iter().map(|name| (name.clone(), None));
        withheld.chain(self.set.iter().map(|(name, value)| (name.clone(), Some(value.clone())))).collect()
    }

    /// The same as words before a command.
    pub fn settings(&self, environment: &Environment) -> Vec<OsString> {
        let unset = environment.withheld.iter().flat_map(|name| ["-u".into(), name.clone()]);
        let begins = (!environment.withheld.is_empty()).then(|| "env".into());
        let set = self.set.iter().map(|(name, value)| joined(&[name, OsStr::new("="), value]));
        begins.into_iter().chain(unset).chain(set).collect()
    }

    /// nsys replaces `%%` in the name.
    pub fn profile(&self, stem: &Path, overwrite: bool) -> Vec<OsString> {
        let output = stem.display().to_string().replace('%', "%%");
        let begins = [
            self.nsys.clone().into(),
            "profile".into(),
            format!("--output={output}").into(),
            format!("--force-overwrite={overwrite}").into(),
        ];
        begins.into_iter().chain(self.flags.iter().cloned()).chain(self.program.iter().cloned()).collect()
    }

    /// Libraries that the importer misses are looked for in `$IMPORTER_LIBS`.
    pub fn import(&self, importer: &Path, stem: &Path) -> Vec<OsString> {
        let own = importer.parent().unwrap_or(Path::new(".")).as_os_str().to_owned();
        let more = ["IMPORTER_LIBS", "LD_LIBRARY_PATH"].map(std::env::var_os);
        let more = more.into_iter().flatten().filter(|paths| !paths.is_empty());
        let libraries = more.fold(own, |all, paths| joined(&[&all, OsStr::new(":"), &paths]));
        vec![
            "env".into(),
            joined(&[OsStr::new("LD_LIBRARY_PATH="), &libraries]),
            importer.into(),
            "--input-file".into(),
            with(stem, "qdstrm").into(),
            "--output-file".into(),
            with(stem, "nsys-rep").into(),
        ]
    }

    /// `payloads`: with the frames of Python.
    pub fn export(&self, stem: &Path, overwrite: bool, payloads: bool) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec![
            self.nsys.clone().into(),
            "export".into(),
            "--type=sqlite".into(),
            format!("--force-overwrite={overwrite}").into(),
        ];
        words.extend(payloads.then(|| "--include-json=true".into()));
        words.extend([
            joined(&[OsStr::new("--output="), with(stem, "sqlite").as_os_str()]),
            with(stem, "nsys-rep").into(),
        ]);
        words
    }
}

fn joined(parts: &[&OsStr]) -> OsString {
    parts.iter().fold(OsString::new(), |mut all, part| {
        all.push(part);
        all
    })
}

/// A command as one would type it, without the values of secrets.
pub fn shown(words: &[OsString], environment: &Environment) -> String {
    let words = words.iter().map(|word| {
        let word = environment.masked(word).to_string_lossy().into_owned();
        // An assignment before a command must not begin with a quote.
        match word.split_once('=').filter(|(name, _)| *name == DIRECTIVES) {
            Some((name, value)) => format!("{name}={}", shell_quote(value)),
            None => shell_quote(&word),
        }
    });
    words.collect::<Vec<_>>().join(" ") + "\n"
}
