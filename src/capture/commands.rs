//! The commands of a capture, as values.

use super::environment::Environment;
use super::steps::Hook;
use super::{Backtraces, Range, Request, Session, with};
use crate::text::shell_quote;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// One kind of backtrace only: of several (sync:0,memory:0) nsys 2025.3 kept the first or none. PyTorch's blocking copies
/// end in a synchronising call, so their lines come too. The threshold of 0 ns matters: many versions of nsys default to
/// 80 µs, which is longer than most waits of an `.item()`. Backtraces need CPU sampling switched on; frame pointers are what
/// PyTorch's wheels can be unwound with cheaply.
const WAITS: [&str; 2] = ["--cudabacktrace=sync:0", "--python-backtrace=cuda"];
const ALL: [&str; 2] = ["--cudabacktrace=all:0", "--python-backtrace=cuda"];
const STACKS: [&str; 2] = ["--sample=process-tree", "--backtrace=fp"];
const NO_STACKS: [&str; 2] = ["--sample=none", "--cpuctxsw=none"];
/// With backtraces nsys writes gigabytes of libraries. Its default compression takes one to two minutes for them.
const DIRECTIVES: &str = "NSYS_CONFIG_DIRECTIVES";
const QUICK: &str = "UseLZ4HighCompression=false";

pub struct Commands {
    pub nsys: PathBuf,
    /// Flags of the program's start: what is traced.
    traced: Vec<OsString>,
    /// Flags of the recording's start.
    recorded: Vec<OsString>,
    request: Request,
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
        let mut traced: Vec<OsString> = (!traces).then(|| "--trace=cuda,nvtx".into()).into_iter().collect();
        let (kind, sampling): (&[&str], _) = match backtraces {
            Backtraces::Waits => (&WAITS, STACKS),
            Backtraces::All => (&ALL, STACKS),
            Backtraces::Sampled => (&["--python-sampling=true"], NO_STACKS),
            Backtraces::None => (&[], NO_STACKS),
        };
        traced.extend(kind.iter().map(OsString::from));
        let mut recorded: Vec<OsString> = sampling.iter().map(OsString::from).collect();
        match &request.range {
            Range::Whole if request.steps.is_none() => {}
            Range::Whole | Range::Profiler => recorded.push("--capture-range=cudaProfilerApi".into()),
            // PyTorch's ranges are not registered strings, which nsys ignores here unless told.
            Range::Nvtx(name) => recorded.extend([
                "--capture-range=nvtx".into(),
                format!("--nvtx-capture={name}").into(),
                "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0".into(),
            ]),
        }
        let stacks = sampling == STACKS;
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
        set.extend(request.calls.as_ref().map(|calls| (super::steps::CALLS.into(), calls.into())));
        Self { nsys: nsys.to_owned(), traced, recorded, request: request.clone(), set, stacks }
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

    /// Records a program from its start to its end, or a range of it.
    pub fn profile(&self, stem: &Path, overwrite: bool) -> Vec<OsString> {
        let Request { delay, duration, flags, program, .. } = &self.request;
        let mut words = self.nsys("profile", &output(stem, overwrite));
        words.extend(self.traced.iter().chain(&self.recorded).cloned());
        words.extend(delay.map(|seconds| format!("--delay={seconds}").into()));
        words.extend(duration.map(|seconds| format!("--duration={seconds}").into()));
        words.extend(flags.iter().chain(program).cloned());
        words
    }

    /// Starts a program that is recorded when `start` says so.
    pub fn launch(&self, session: &Session) -> Vec<OsString> {
        let mut words = self.nsys("launch", &[format!("--session-new={session}").into()]);
        words.extend(self.traced.iter().chain(&self.request.flags).chain(&self.request.program).cloned());
        words
    }

    pub fn start(&self, session: &Session, stem: &Path, overwrite: bool) -> Vec<OsString> {
        let mut words = self.nsys("start", &[format!("--session={session}").into()]);
        words.extend(output(stem, overwrite));
        words.extend(self.recorded.iter().chain(&self.request.flags).cloned());
        words
    }

    pub fn stop(&self, session: &Session) -> Vec<OsString> {
        self.nsys("stop", &[format!("--session={session}").into()])
    }

    fn nsys(&self, verb: &str, flags: &[OsString]) -> Vec<OsString> {
        [self.nsys.clone().into(), verb.into()].iter().chain(flags).cloned().collect()
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
        let mut words =
            self.nsys("export", &["--type=sqlite".into(), format!("--force-overwrite={overwrite}").into()]);
        words.extend(payloads.then(|| "--include-json=true".into()));
        words.extend([
            joined(&[OsStr::new("--output="), with(stem, "sqlite").as_os_str()]),
            with(stem, "nsys-rep").into(),
        ]);
        words
    }
}

/// nsys replaces `%%` in a name.
fn output(stem: &Path, overwrite: bool) -> [OsString; 2] {
    let name = stem.display().to_string().replace('%', "%%");
    [format!("--output={name}").into(), format!("--force-overwrite={overwrite}").into()]
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
