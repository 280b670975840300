//! What can be typed.

mod gpu;

pub use gpu::{BenchArgs, GpuFormat};

use chrono::NaiveDate;
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::sync::LazyLock;
use sync_report::check::fail_on::FailOn;
use sync_report::cost::simulate::Fix;
use sync_report::text::parse_time;
use sync_report::verdict::source::SourceRoot;

const EXIT_CODES: &str = "Exit codes: 0 done; 1 `check` found a rule broken; 2 wrong usage, bad input or no usable GPU; 130 Ctrl-C during a \
measurement. A damaged export is reported as far as it can be \
read, with one sentence per kind of damage, and exits with 2.";

/// Which lines of Python make the CPU wait for the GPU, which of those waits are avoidable, and what each costs.
///
/// Reads Nsight Systems exports (.sqlite) of PyTorch programs; a report (.nsys-rep) is exported first, when nsys is
/// installed. The input is never changed.
#[derive(Parser)]
#[command(name = "sync-report", version, long_version = LONG_VERSION.as_str(), args_conflicts_with_subcommands = true, after_help = EXIT_CODES, max_term_width = 100)]
#[command(subcommand_negates_reqs = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Version, and those of what is built in: for bug reports.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}\nSQLite {}\nCUDA driver API {}.{} (bindings)",
        env!("CARGO_PKG_VERSION"),
        rusqlite::version(),
        cudarc::driver::sys::CUDA_VERSION / 1000,
        cudarc::driver::sys::CUDA_VERSION % 1000 / 10,
    )
});

#[derive(Subcommand)]
pub enum Command {
    /// What changed between two captures, site by site
    Diff(DiffArgs),
    /// The gate for CI: fails where a capture waits more than a budget, a baseline or a condition allows
    Check(CheckArgs),
    /// Is this capture good enough, and the command that makes it better
    Doctor(DoctorArgs),
    /// Confirm on a GPU what a wait costs: runs the workload around it with and without it
    Replay(super::replay::ReplayArgs),
    /// The knowledge base: every pattern that waits, why, and what to write instead
    Explain(ExplainArgs),
    /// What a wait costs on this machine's GPU: syncs, value reads, copies, and the constants of simulations
    Bench(BenchArgs),
    /// Shell completions on stdout
    #[command(hide = true)]
    Completions { shell: clap_complete::Shell },
    /// Manual page on stdout, of the program or of one of its commands
    #[command(hide = true)]
    Man { command: Option<String> },
}

#[derive(Args)]
pub struct ReportArgs {
    /// Nsight Systems exports (.sqlite) or reports (.nsys-rep); several, one per rank, make one report
    #[arg(value_name = "PROFILE", required = true, value_hint = ValueHint::FilePath)]
    pub profiles: Vec<PathBuf>,
    /// How to print the report
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Where to write it; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    /// Show one site whole: stack, evidence, histogram, examples
    #[arg(long, value_name = "SITE", conflicts_with = "format")]
    pub details: Option<String>,
    /// List what keeps NVTX ranges of this name from being captured as a CUDA graph
    #[arg(long, value_name = "RANGE", conflicts_with_all = ["details", "nvtx"])]
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
    /// Take times from this capture of the same program, made without backtraces: they slow the host several times
    #[arg(long, value_name = "PROFILE", value_hint = ValueHint::FilePath)]
    pub timing: Option<PathBuf>,
    /// Simulate what fixes save however large the capture is; above 2,000,000 calls and GPU operations the report has
    /// bounds only
    #[arg(long)]
    pub simulate: bool,
    /// Show the report as if these sites were fixed (S3,S5)
    #[arg(long, value_name = "SITES", value_delimiter = ',')]
    pub assume_fixed: Vec<String>,
    /// Simulate this change of a site, whatever its verdict, and count it as avoidable: keep, delete, gpu-wait, drop, non-blocking, pinned, delay, coalesce
    #[arg(long, value_name = "SITE=CHANGE", value_parser = parse_fix, value_delimiter = ',')]
    pub fix: Vec<(String, Fix)>,
    /// Simulate with what `sync-report bench --save FILE` measured, where the capture itself does not show it: the
    /// speed of pinned copies, latencies
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub constants: Option<PathBuf>,
    /// Show beside the simulated savings what a replay measured (sync-report replay PROFILE --format json -o FILE)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub replay_results: Option<PathBuf>,
}

/// Which sites are listed, in which order.
#[derive(Args)]
#[command(next_help_heading = "Selection")]
pub struct ListArgs {
    /// List at most N sites; 0 for all. 20 by default, 200 on a page, all for github, sarif and perfetto
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// What ranks sites
    #[arg(long, value_enum, default_value_t = Sort::Drain)]
    pub sort: Sort,
    /// Only sites of this class; may be given more than once
    #[arg(long, value_enum, value_delimiter = ',')]
    pub class: Vec<Class>,
}

/// Which waits count, and whose code is whose.
#[derive(Args)]
#[command(next_help_heading = "Selection")]
pub struct SelectArgs {
    /// Only waits inside NVTX ranges of this name (`step` or `step #` for every `step 12`)
    #[arg(long, value_name = "RANGE")]
    pub nvtx: Option<String>,
    /// Only waits of this process
    #[arg(long, value_name = "PID")]
    pub process: Option<u32>,
    /// Only waits of this thread: its id, or a part of its name
    #[arg(long, value_name = "TID|NAME")]
    pub thread: Option<String>,
    /// Only waits for this GPU
    #[arg(long, value_name = "GPU")]
    pub device: Option<u32>,
    /// Only waits that begin at this time of the capture or later: seconds, or with a unit (1.5, 1500ms, 20us)
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub from: Option<i64>,
    /// Only waits that end at this time or earlier
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
    pub to: Option<i64>,
    /// Where the Python sources are: a directory, or OLD=NEW for paths recorded under OLD; may be given more than once
    #[arg(long, value_name = "[OLD=]NEW", value_parser = parse_root)]
    pub source_root: Vec<SourceRoot>,
    /// Code under this path is yours, wherever it is installed; may be given more than once
    #[arg(long, value_name = "PREFIX")]
    pub user_path: Vec<String>,
    /// Code under this path is a library; may be given more than once
    #[arg(long, value_name = "PREFIX")]
    pub library_path: Vec<String>,
}

#[derive(Args)]
#[command(next_help_heading = "General")]
pub struct SharedArgs {
    /// Colours; NO_COLOR and CLICOLOR are heeded under auto
    #[arg(long, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// Columns of the table; by default those of the terminal, and one line per site into a pipe
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..))]
    pub width: Option<u16>,
    /// Threads that read; the result is the same with any number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// No progress bar
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct ExplainArgs {
    /// A pattern: its id (A03), an expression (.item(), nonzero) or a word of its title; none lists all
    #[arg(value_name = "PATTERN", allow_hyphen_values = true)]
    pub pattern: Option<String>,
    #[command(flatten)]
    pub shared: SharedArgs,
}

#[derive(Args)]
pub struct DiffArgs {
    /// The earlier capture: an export or report, or a report kept with `--format json --top 0`; several ranks with commas
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath)]
    pub before: PathBuf,
    /// The later one
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    pub after: PathBuf,
    /// How to print it
    #[arg(long, value_enum, default_value_t = DiffFormat::Table)]
    pub format: DiffFormat,
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    Table,
    Markdown,
    Json,
    /// One page for a browser: both timelines aligned by iteration, what changed; needs no network
    Html,
}

const CHECK_CODES: &str = "Exit codes: 0 kept; 1 broken, one line per breach; 2 wrong usage, bad input, or a rule that \
this capture cannot be held against.";

#[derive(Args)]
#[command(after_help = CHECK_CODES)]
pub struct CheckArgs {
    /// Nsight Systems exports (.sqlite) or reports (.nsys-rep); several, one per rank, are checked as one
    #[arg(value_name = "PROFILE", required = true, value_hint = ValueHint::FilePath)]
    pub profiles: Vec<PathBuf>,
    /// Limits and allowances; `sync-budget.toml` if there is one here
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub budget: Option<PathBuf>,
    /// An earlier capture, or its report kept with `--format json --top 0`; implies `--fail-on new-false` where no other
    /// condition is given
    #[arg(long, value_name = "OLD", value_hint = ValueHint::FilePath)]
    pub baseline: Option<PathBuf>,
    /// What breaks the gate besides the budget: new-false, any-false, drain>5%, blocked>200us, false-waits>0
    #[arg(long, value_name = "CONDITION", value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// Write a budget that this profile just keeps, to `--budget` or sync-budget.toml, and check nothing
    #[arg(long, conflicts_with_all = ["baseline", "fail_on"])]
    pub init_budget: bool,
    /// Let `--init-budget` replace a file
    #[arg(long, requires = "init_budget")]
    pub force: bool,
    /// The day on which allowances are looked at; today (UTC) by default
    #[arg(long, value_name = "DATE", hide = true)]
    pub today: Option<NaiveDate>,
    /// How to print the outcome
    #[arg(long, value_enum, default_value_t = CheckFormat::Table)]
    pub format: CheckFormat,
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    Table,
    Markdown,
    Json,
    /// GitHub annotations; what is more than a step may have goes into its summary
    Github,
    Sarif,
}

/// Where paths of annotations and SARIF start.
#[derive(Args)]
pub struct RepositoryArgs {
    /// The checkout that file names of annotations and SARIF are relative to; GITHUB_WORKSPACE or the working directory
    /// by default
    #[arg(long, value_name = "DIR", env = "GITHUB_WORKSPACE", hide_env = true, default_value = ".", value_hint = ValueHint::DirPath)]
    pub repository: PathBuf,
}

#[derive(Args)]
pub struct DoctorArgs {
    /// Nsight Systems export (.sqlite) or report (.nsys-rep)
    #[arg(value_name = "PROFILE", required = true, value_hint = ValueHint::FilePath)]
    pub profiles: Vec<PathBuf>,
    #[command(flatten)]
    pub shared: SharedArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
    Csv,
    /// For a pull request: summary, table, collapsed details, in the size of a comment
    Markdown,
    /// GitHub annotations; the whole report goes into the step's summary
    Github,
    /// SARIF 2.1.0 for code scanning: avoidable and open waits
    Sarif,
    /// A trace for ui.perfetto.dev and chrome://tracing: waits with their lines above GPUs and threads
    Perfetto,
    /// One page for a browser: timeline, sites, stacks, fixes; needs no network
    Html,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Device-idle time that follows the waits, then blocked time
    Drain,
    /// Host time inside the waits
    Blocked,
    /// Number of waits
    Waits,
    /// Longest single wait
    Max,
    /// File and line
    Location,
    /// The order in which to try fixes: remove, non_blocking, sync-free form, delay, coalesce, offload
    Fix,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Class {
    False,
    True,
    Unknown,
}

/// `S3=delete`.
pub fn parse_fix(text: &str) -> Result<(String, Fix), String> {
    let words = || Fix::ALL.map(|(word, _)| word).join(", ");
    let (site, word) =
        text.split_once('=').ok_or_else(|| format!("write SITE=CHANGE; changes: {}", words()))?;
    let short = match word {
        "non_blocking" => "non-blocking",
        word => word,
    };
    let fix = Fix::parse(short).ok_or_else(|| format!("no change `{word}`; there are: {}", words()))?;
    Ok((site.to_owned(), fix))
}

/// `NEW`, or `OLD=NEW` where OLD is the recorded prefix.
pub fn parse_root(text: &str) -> Result<SourceRoot, String> {
    let (old, new) = match text.split_once('=') {
        Some((old, new)) => (Some(old.to_owned()), PathBuf::from(new)),
        None => (None, PathBuf::from(text)),
    };
    if !new.is_dir() {
        return Err(format!("{} is no directory", new.display()));
    }
    Ok(SourceRoot { old, new })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
