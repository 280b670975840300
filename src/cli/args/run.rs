//! Arguments of `run`.

use super::SharedArgs;
use super::typed::calls;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use sync_report::capture::steps::Steps;
use sync_report::capture::{Backtraces, Range, Request, Server, Session};

const AFTER: &str = "The program gets the whole environment. nsys stores that environment in its report, and also those of other processes \
that you may read. Secrets (tokens, keys, passwords) are removed from NAME.sqlite, and their names are listed. NAME.nsys-rep still holds \
them: do not share that file.\n\n\
nsys is taken from $NSYS, the PATH, NVIDIA's folders or, last, from inside Nsight Compute. That copy does not convert its recording by \
itself: QdstrmImporter of the same folder does. If QdstrmImporter misses libraries (libdw, libelf, libpfm, ...), name their folder in \
$IMPORTER_LIBS.\n\n\
A launcher (torchrun, accelerate launch, deepspeed, srun, mpirun) may begin the program, or start this command: each rank then gets a file \
of its own, NAME/rank_N.sqlite, and one report of all ranks comes at the end.\n\n\
Exit codes: that of the program; 2 the capture failed; 1 its secrets could not be removed; 130 Ctrl-C or another signal.";

#[derive(Args, Clone)]
#[command(after_help = AFTER)]
pub struct RunArgs {
    /// Backtraces of all CUDA calls, launches and allocations too: iterations take 2 to 3 times as long
    #[arg(long, conflicts_with = "light")]
    pub full: bool,
    /// No backtraces: times closest to the bare run, but no lines
    #[arg(long)]
    pub light: bool,
    /// The part to record: none (the whole run), cudaProfilerApi (from torch.cuda.profiler.start() to .stop()), or nvtx:NAME (the first
    /// range of that name). nsys ends the program at the end of the range
    #[arg(long, value_name = "RANGE", default_value = "none", hide_default_value = true)]
    pub range: Range,
    /// Record from the end of step A to that of step B, of the optimizer or else of the package's bracket, without editing the program;
    /// nsys then ends it
    #[arg(long, value_name = "A:B", conflicts_with_all = ["range", "duration"])]
    pub steps: Option<Steps>,
    /// Count calls of this function as steps, for programs without an optimizer
    #[arg(long, value_name = "MODULE:FUNCTION", value_parser = calls, requires = "steps")]
    pub calls: Option<String>,
    /// Start a server that is recorded later, by --attach
    #[arg(long, value_name = "NAME", conflicts_with_all = ["range", "steps", "delay", "duration", "light"])]
    pub session: Option<Session>,
    /// Record the program of this session for --duration, or until Ctrl-C; it runs on
    #[arg(long, value_name = "NAME", conflicts_with_all = ["session", "range", "steps", "delay", "full", "program"])]
    pub attach: Option<Session>,
    /// Begin to record after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub delay: Option<u32>,
    /// Record for so many seconds, for example of a server; nsys then ends the program
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub duration: Option<u32>,
    /// Write NAME.nsys-rep and NAME.sqlite. %q{VAR} is replaced by an environment variable, %r by the rank, %h by the host's name, %% by %
    #[arg(short, long, value_name = "NAME", default_value = "sync-report")]
    pub output: OsString,
    /// Replace NAME.nsys-rep and NAME.sqlite once the new capture is complete
    #[arg(long)]
    pub force: bool,
    /// Do not pass this environment variable on; may be repeated, * matches any text, `secrets` is all that look like secrets
    #[arg(long, value_name = "VAR")]
    pub withhold: Vec<String>,
    /// Another flag of `nsys profile` (--nsys=--cuda-graph-trace=node); may be repeated. Its --trace replaces the usual cuda,nvtx
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub nsys: Vec<OsString>,
    /// Print the commands instead of running them
    #[arg(long)]
    pub print: bool,
    /// The folder of the files of ranks that a launcher starts: set by this command itself
    #[arg(long, hide = true, value_name = "DIR")]
    pub rank_folder: Option<PathBuf>,
    /// Give the program --local_rank, as DeepSpeed does: set by this command itself
    #[arg(long, hide = true)]
    pub local_rank: bool,
    /// Capture and export only
    #[arg(long)]
    pub no_report: bool,
    #[command(flatten)]
    pub shared: SharedArgs,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required_unless_present = "attach",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub program: Vec<OsString>,
}

impl RunArgs {
    pub fn request(&self) -> Request {
        let backtraces = match (self.full, self.light) {
            (true, _) => Backtraces::All,
            (_, true) => Backtraces::None,
            _ => Backtraces::Waits,
        };
        let server = self.session.clone().map(Server::Start).or(self.attach.clone().map(Server::Attach));
        Request {
            server,
            backtraces,
            range: self.range.clone(),
            delay: self.delay,
            duration: self.duration,
            steps: self.steps,
            calls: self.calls.clone(),
            name: self.output.clone(),
            force: self.force,
            withhold: self.withhold.clone(),
            flags: self.nsys.clone(),
            program: self.program.clone(),
        }
    }

    /// A command line that captures alike, into another name.
    pub fn words(&self) -> Vec<OsString> {
        let flag = |on: bool, word: &str| on.then(|| OsString::from(word));
        let valued = |name: &str, value: Option<String>| value.map(|value| format!("{name}={value}").into());
        let mut words: Vec<OsString> = vec!["run".into(), "--no-report".into()];
        words.extend(flag(self.full, "--full").into_iter().chain(flag(self.light, "--light")));
        words.extend(flag(self.force, "--force").into_iter().chain(flag(self.shared.quiet, "--quiet")));
        words.extend(valued("--range", (self.range != Range::Whole).then(|| self.range.to_string())));
        words.extend(valued("--steps", self.steps.map(|steps| steps.to_string())));
        words.extend(valued("--calls", self.calls.clone()));
        words.extend(valued("--delay", self.delay.map(|seconds| seconds.to_string())));
        words.extend(valued("--duration", self.duration.map(|seconds| seconds.to_string())));
        words.extend(self.withhold.iter().map(|name| format!("--withhold={name}").into()));
        words.extend(self.nsys.iter().map(|flag| {
            let mut word = OsString::from("--nsys=");
            word.push(flag);
            word
        }));
        words
    }
}
