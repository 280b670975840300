//! The command line.

mod fix;
mod gpu;
mod lint;
mod replay;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod trial;
mod typed;

pub use fix::FixArgs;
pub use gpu::BenchArgs;
pub use lint::LintArgs;
pub use replay::ReplayArgs;
#[cfg(unix)]
pub use run::RunArgs;
#[cfg(unix)]
pub use trial::TryArgs;

use super::progress::Shown;
use chrono::NaiveDate;
use clap::{Args, ColorChoice, CommandFactory, Parser, Subcommand, ValueHint};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use sync_report::analysis::Sort;
use sync_report::check::fail_on::FailOn;
use sync_report::formats::{self, Compared, Format, Merged, Rendered};
use sync_report::knowledge::explain::Entries;
use sync_report::model::check::CheckReport;
use sync_report::model::doctor::Diagnosis;
use sync_report::profile::database::Reader;
use sync_report::repository::checkout_of;
use sync_report::sites::frames::PathRules;
use sync_report::text::parse_time;
use sync_report::verdict::source::{Recorded, SourceRoot};
use sync_report::vocabulary::{Change, Class};
use typed::{class, format, parse_fix, parse_root, parse_size, top_help, word};

macro_rules! exit_codes {
    () => {
        "Also: completions SHELL, man [COMMAND], schema [NAME]. Exit codes: 0 done; 1 `check` or `lint` failed; 2 wrong usage, bad input, part of it damaged, or no usable GPU; 130 Ctrl-C \
         during a measurement."
    };
}
const RARE: &str = concat!(
    "Rare options (docs/options.md): --process, --device, --user-path, --library-path, --recorded-sources, --replay-results, --threads, ",
    "--memory, --progress.\n\n",
    exit_codes!()
);

/// Which lines of Python make the CPU wait for the GPU, which of those waits are avoidable, and what each costs.
///
/// Reads captures of PyTorch programs: Nsight Systems exports (.sqlite files, or folders that `nsys export --type parquetdir`
/// wrote, NAME_pqtdir) and traces of torch.profiler (.json, .json.gz). A report (.nsys-rep) is exported first, when nsys is
/// installed. The input is never changed.
#[derive(Parser)]
#[command(name = "sync-report", version, long_version = LONG_VERSION.as_str(), args_conflicts_with_subcommands = true, after_help = exit_codes!(), after_long_help = RARE, max_term_width = 100)]
#[command(subcommand_negates_reqs = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Version, and those of what is built in: for bug reports.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let (own, sqlite, cuda) =
        (env!("CARGO_PKG_VERSION"), rusqlite::version(), cudarc::driver::sys::CUDA_VERSION);
    let (major, minor) = (cuda / 1000, cuda % 1000 / 10);
    format!("{own}\nSQLite {sqlite}\nCUDA driver API {major}.{minor} (bindings)")
});

/// What the program does besides reports.
#[derive(Subcommand)]
pub enum Command {
    /// Captures a program with nsys, exports and reports, in one go
    #[cfg(unix)]
    Run(RunArgs),
    /// A fix measured: times the program as it is and edited, in turn, without a profiler
    #[cfg(unix)]
    Try(TryArgs),
    /// What changed between two captures, site by site
    Diff(DiffArgs),
    /// The gate for CI: fails where a capture breaks a budget, a baseline or a condition
    Check(CheckArgs),
    /// Many ranks in one report: from the folders that `--format parquet` wrote for each
    Merge(MergeArgs),
    /// The advised edits as a patch: prints a unified diff, or writes the files
    Fix(FixArgs),
    /// The waits of Python files that were never captured, for pre-commit and CI
    Lint(LintArgs),
    /// Is this capture good enough, and the command that makes it better
    Doctor(DoctorArgs),
    /// Confirm on a GPU what a wait costs: runs the workload around it with and without it
    Replay(ReplayArgs),
    /// The knowledge base: every pattern that waits, why, and what to write instead
    Explain(ExplainArgs),
    /// Measure what waits cost on this machine's GPU, and the constants of simulations
    Bench(BenchArgs),
    /// Shell completions on stdout
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Manual page on stdout, of the program or of one of its commands
    #[command(hide = true)]
    Man { command: Option<String> },
    /// JSON Schema on stdout, of what a command prints as JSON; without a name, the names
    #[command(hide = true)]
    Schema { name: Option<String> },
}

#[derive(Args)]
pub struct ReportArgs {
    /// Captures of nsys (.sqlite, _pqtdir, .nsys-rep) or torch.profiler (.json.gz); several, or a folder of them, are one
    /// report over ranks; `runs/:64`: the first 64
    #[arg(value_name = "PROFILE", required = true, value_hint = ValueHint::FilePath)]
    pub profiles: Vec<PathBuf>,
    /// How to print the report
    #[arg(long, default_value = "table", value_parser = format(formats::REPORT))]
    pub format: &'static Format<Rendered>,
    /// With --format json: less than 20 kB: totals, the first sites, their fixes
    #[arg(long)]
    pub brief: bool,
    /// Where to write it; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// With all columns, totals and warnings: blocked time, p99, GPU idle after
    #[arg(long)]
    pub wide: bool,
    /// Show one site whole: stack, evidence, histogram, examples; by id (S3), line (train.py:30) or key
    #[arg(long, value_name = "SITE", conflicts_with = "format")]
    pub details: Option<String>,
    /// List what keeps NVTX ranges of this name from being captured as a CUDA graph
    #[arg(long, hide_short_help = true, value_name = "RANGE", conflicts_with_all = ["details", "nvtx"])]
    pub graph_ready: Option<String>,
    #[command(flatten)]
    pub saving: SavingArgs,
    #[command(flatten)]
    pub list: ListArgs,
    #[command(flatten)]
    pub repository: RepositoryArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}

/// What is simulated.
#[derive(Args)]
#[command(next_help_heading = "Savings")]
pub struct SavingArgs {
    /// The length of one iteration without a profiler, from start to start on average, e.g. 15.4ms: the simulation is scaled to
    /// that length
    #[arg(long, value_name = "TIME", value_parser = sync_report::check::duration)]
    pub step_time: Option<i64>,
    /// Show the report as if these sites were fixed (S3,S5)
    #[arg(long, hide_short_help = true, value_name = "SITES", value_delimiter = ',')]
    pub assume_fixed: Vec<String>,
    /// Simulate this change of a site, whatever its verdict, and count it as avoidable: keep, delete, gpu-wait, narrow (wait only for the copy or stream that is needed), drop, non-blocking, pinned, on-gpu, delay, coalesce
    #[arg(long, hide_short_help = true, value_name = "SITE=CHANGE", value_parser = parse_fix, value_delimiter = ',')]
    pub fix: Vec<(String, Change)>,
    /// Simulate with what `sync-report bench --save FILE` measured, where the capture itself does not show it: the
    /// speed of pinned copies, latencies
    #[arg(long, hide = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub constants: Option<PathBuf>,
    /// Show beside the simulated savings what a replay measured (sync-report replay PROFILE --format json -o FILE)
    #[arg(long, hide = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub replay_results: Option<PathBuf>,
}

/// Which sites are listed, in which order.
#[derive(Args)]
#[command(next_help_heading = "Selection")]
pub struct ListArgs {
    // How many without it is each format's own: see `top_help`.
    #[arg(long, value_name = "N", help = top_help())]
    pub top: Option<usize>,
    /// What ranks sites
    #[arg(long, default_value_t = Sort::Saves, value_parser = word(Sort::ALL, |s| (s.as_str(), s.help())))]
    pub sort: Sort,
    /// Only sites of this class; may be given more than once
    #[arg(long, value_delimiter = ',', value_parser = class())]
    pub class: Vec<Class>,
}

/// Which waits count, and whose code is whose.
#[derive(Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectArgs {
    /// Only waits inside NVTX ranges of this name (`step` or `step #` for every `step 12`)
    #[arg(long, value_name = "RANGE")]
    pub nvtx: Option<String>,
    /// The program's iterations are the NVTX ranges of this name (`step` or `step #` for every `step 12`); by default
    /// ranges whose names say so, else the loop that launches, copies and waits repeat
    #[arg(long, hide_short_help = true, value_name = "RANGE")]
    pub iteration_marker: Option<String>,
    /// Only waits of this process
    #[arg(long, hide = true, value_name = "PID")]
    pub process: Option<u32>,
    /// Only waits of this thread: its id, a part of its name, or `main`
    #[arg(long, hide_short_help = true, value_name = "TID|NAME")]
    pub thread: Option<String>,
    /// Only waits for this GPU
    #[arg(long, hide = true, value_name = "GPU")]
    pub device: Option<u32>,
    /// Only waits that begin at this time of the capture or later: seconds, or with a unit (1.5, 1500ms, 20us)
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub from: Option<i64>,
    /// Only waits that end at this time or earlier
    #[arg(long, hide_short_help = true, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub to: Option<i64>,
    #[command(flatten)]
    pub code: CodeArgs,
}

/// Where the program's code is, and whose it is.
#[derive(Args)]
pub struct CodeArgs {
    #[command(flatten)]
    pub sources: SourceArgs,
    /// Code under this path is yours, wherever it is installed; may be given more than once
    #[arg(long, hide = true, value_name = "PREFIX")]
    pub user_path: Vec<String>,
    /// Code under this path is a library; may be given more than once
    #[arg(long, hide = true, value_name = "PREFIX")]
    pub library_path: Vec<String>,
}

impl CodeArgs {
    /// Whose code is whose.
    pub fn rules(&self) -> PathRules {
        PathRules { user: self.user_path.clone(), library: self.library_path.clone() }
    }
}

/// Which Python sources are read.
#[derive(Args)]
pub struct SourceArgs {
    /// Where the Python sources are: a directory, or OLD=NEW for paths recorded under OLD; may be given more than once. The
    /// repository that you are in is one without being named
    #[arg(long, value_name = "[OLD=]NEW", value_parser = parse_root)]
    pub source_root: Vec<SourceRoot>,
    /// Read sources where the profile says that they are, too: it may name any file of this machine
    #[arg(long, hide = true)]
    pub recorded_sources: bool,
    /// Read no sources
    #[arg(long, hide_short_help = true, conflicts_with_all = ["source_root", "recorded_sources"])]
    pub no_source: bool,
}

impl SourceArgs {
    /// Where sources are looked for: below what was named, then in the repository of the working directory.
    pub fn roots(&self) -> Vec<SourceRoot> {
        let here = env::current_dir().ok().filter(|_| !self.no_source);
        let here = here.as_deref().and_then(checkout_of);
        let here = here.map(|new| SourceRoot { old: None, new: new.to_owned() });
        self.source_root.iter().cloned().chain(here).collect()
    }

    /// Which recorded paths are read as they stand.
    pub fn recorded(&self) -> Recorded {
        match (self.no_source, self.recorded_sources) {
            (true, _) => Recorded::None,
            (_, true) => Recorded::All,
            _ => Recorded::Packages,
        }
    }
}

/// What every command takes.
#[derive(Args, Clone)]
#[command(next_help_heading = "General")]
pub struct SharedArgs {
    /// Colours; NO_COLOR and CLICOLOR are heeded under auto
    #[arg(long, hide_short_help = true, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// Columns of the table; by default those of the terminal, and one line per site into a pipe
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..))]
    pub width: Option<u16>,
    /// Threads that read; the result is the same with any number
    #[arg(long, hide = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Memory in which several exports are read side by side, as far as their sizes tell: 2GiB, 512MiB. By default half of what
    /// the machine has free
    #[arg(long, hide = true, value_name = "SIZE", value_parser = parse_size)]
    pub memory: Option<u64>,
    /// What reads large tables; the result is the same with either
    #[arg(long, hide = true, default_value_t = Reader::Pages, value_parser = word(Reader::ALL, |r| (r.as_str(), r.help())))]
    pub reader: Reader,
    /// No progress, and nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
    /// How to show how far the run is
    #[arg(long, hide = true, value_name = "HOW", value_enum, default_value_t, conflicts_with = "quiet")]
    pub progress: Shown,
}

#[derive(Args)]
pub struct ExplainArgs {
    /// A pattern: its id (A03), an expression (.item(), nonzero) or a word of its title; a rule of evidence (R05); or the
    /// code of a warning (events-lost); none lists all patterns
    #[arg(value_name = "PATTERN", allow_hyphen_values = true)]
    pub query: Option<String>,
    /// List the rules that verdicts rest on
    #[arg(long, conflicts_with = "query")]
    pub rules: bool,
    /// List the codes of warnings, what each means and what to do about it
    #[arg(long, conflicts_with_all = ["query", "rules"])]
    pub warnings: bool,
    /// How to print it; json has every entry whole
    #[arg(long, default_value = "text", value_parser = format(formats::EXPLAIN))]
    pub format: &'static Format<Entries>,
    #[command(flatten)]
    pub shared: SharedArgs,
}

#[derive(Args)]
pub struct DiffArgs {
    /// The earlier capture: an export or report, or a report kept with `--format json`; several ranks with commas, as a folder
    /// or a pattern
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,
    /// The later one
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,
    /// How to print it
    #[arg(long, default_value = "table", value_parser = format(formats::DIFF))]
    pub format: &'static Format<Compared>,
    /// Where to write it; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// List unchanged sites too
    #[arg(long)]
    pub all: bool,
    /// Where the sources of BEFORE are, as they were then (a worktree of the old commit): without, lines that moved are
    /// matched by their distance, not by their text
    #[arg(long, value_name = "[OLD=]NEW", value_parser = parse_root)]
    pub before_source_root: Vec<SourceRoot>,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}

const CHECK_CODES: &str = "Exit codes: 0 kept; 1 broken, one line per breach; 2 wrong usage, bad input, or a rule that \
this capture cannot be held against.";

#[derive(Args)]
#[command(after_help = CHECK_CODES)]
pub struct CheckArgs {
    /// Nsight Systems exports (.sqlite, _pqtdir), reports (.nsys-rep) or traces of torch.profiler; several, or a folder of them, one per rank, are
    /// checked as one
    #[arg(value_name = "PROFILE", required_unless_present = "measured", value_hint = ValueHint::FilePath)]
    pub profiles: Vec<PathBuf>,
    /// The result of `sync-report try`: the edited program must not fail, print other numbers, or be slower
    #[arg(long, value_name = "JSON", value_hint = ValueHint::FilePath)]
    pub measured: Option<PathBuf>,
    /// Limits of waits and of parts of GPU time, and allowances; `sync-budget.toml` if there is one here
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub budget: Option<PathBuf>,
    /// An earlier capture, or its report kept with `--format json`; implies `--fail-on new-avoidable` where no other
    /// condition is given
    #[arg(long, value_name = "OLD", value_hint = ValueHint::FilePath)]
    pub baseline: Option<PathBuf>,
    /// Conditions that break the gate besides the budget: new-avoidable, any-avoidable, idle-after>5%, blocked>200us, avoidable-waits>0;
    /// slower>1% with --measured
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// Write a budget that this profile just keeps, to `--budget` or sync-budget.toml, and check nothing
    #[arg(long, conflicts_with_all = ["baseline", "fail_on", "measured"])]
    pub init_budget: bool,
    /// Let `--init-budget` replace a file
    #[arg(long, requires = "init_budget")]
    pub force: bool,
    /// The day on which allowances are looked at; today (UTC) by default
    #[arg(long, value_name = "DATE", hide = true)]
    pub today: Option<NaiveDate>,
    /// How to print the outcome
    #[arg(long, default_value = "table", value_parser = format(formats::CHECK))]
    pub format: &'static Format<CheckReport>,
    /// Where to write it; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub repository: RepositoryArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}

#[derive(Args)]
pub struct MergeArgs {
    /// Folders that `sync-report PROFILE --format parquet -o DIR` or an earlier merge wrote, or a folder of such
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub results: Vec<PathBuf>,
    /// How to print the report; parquet writes the tables of all, to be merged again
    #[arg(long, default_value = "table", value_parser = format(formats::MERGED))]
    pub format: &'static Format<Merged>,
    /// Where to write it; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::AnyPath)]
    pub output: PathBuf,
    /// List at most N sites; 0 for all
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    #[command(flatten)]
    pub shared: SharedArgs,
}

/// Where paths of annotations and SARIF start.
#[derive(Args)]
pub struct RepositoryArgs {
    /// The checkout that file names of annotations, SARIF and patches are relative to; GITHUB_WORKSPACE or the working directory
    /// by default
    #[arg(long, hide_short_help = true, value_name = "DIR", env = "GITHUB_WORKSPACE", hide_env = true, default_value = ".", value_hint = ValueHint::DirPath)]
    pub repository: PathBuf,
}

#[derive(Args)]
pub struct DoctorArgs {
    /// Nsight Systems export (.sqlite, _pqtdir), report (.nsys-rep) or trace of torch.profiler
    #[arg(value_name = "PROFILE", required = true, value_hint = ValueHint::FilePath)]
    pub profiles: Vec<PathBuf>,
    /// How to print it
    #[arg(long, default_value = "table", value_parser = format(formats::DOCTOR))]
    pub format: &'static Format<Diagnosis>,
    /// Where to write it; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub shared: SharedArgs,
}

/// What was typed. `sync-report -q replay x` is `sync-report replay -q x`: options before a command are the command's, for
/// one of the report's would otherwise take the command for a file.
pub fn parse() -> Cli {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let as_typed = Cli::try_parse_from(&typed);
    let moved = after_command(&typed).map(Cli::try_parse_from);
    // `sync-report -o diff x.sqlite` means a file of that name.
    let takes_none = |cli: &Cli| !cli.report.profiles.iter().any(|path| is_command(path.as_os_str()));
    match (as_typed, moved) {
        (Ok(cli), _) if takes_none(&cli) => cli,
        (_, Some(Ok(cli))) => cli,
        (_, Some(Err(error))) | (Err(error), None) => error.exit(),
        (Ok(cli), None) => cli,
    }
}

/// Whether it names a command, and no file here.
fn is_command(word: &OsStr) -> bool {
    let named = |command: &clap::Command| *command.get_name() == *word;
    Cli::command().get_subcommands().any(named) && !Path::new(word).exists()
}

/// The same with the command first; `None` where it is, or there is none behind options.
fn after_command(typed: &[OsString]) -> Option<Vec<OsString>> {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let at =
        typed.iter().position(|word| is_command(word)).filter(|_| typed.get(1).is_some_and(is_option))?;
    let mut moved = typed.to_vec();
    moved[1..=at].rotate_right(1);
    Some(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_before_a_command_are_its_own() {
        let moved = |line: &str| {
            let typed: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let words = after_command(&typed)?.into_iter().map(|word| word.into_string().expect("text"));
            Some(words.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(moved("x -q replay a.sqlite --plan").as_deref(), Some("x replay -q a.sqlite --plan"));
        assert_eq!(moved("x --width 80 doctor a").as_deref(), Some("x doctor --width 80 a"));
        assert_eq!(moved("x replay -q a.sqlite"), None);
        assert_eq!(moved("x a.sqlite doctor"), None, "the report of two files");
        assert_eq!(moved("x -q a.sqlite"), None);
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
