//! Arguments of `lint`.

use super::typed::{format, word};
use super::{RepositoryArgs, SharedArgs};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use sync_report::formats::{self, Format};
use sync_report::lint::FailOn;
use sync_report::model::lint::LintReport;

const AFTER: &str = "Example: sync-report lint src/ --fail-on any --format github\n\n\
No capture is read: whether a line runs, how often and what its wait costs is not known. A line is certain where its operand is on the GPU, \
probable where nothing says that it is on the CPU. A comment on the line, or on a line of its own above, allows a wait: \
`# sync-report: allow REASON`. Folders that are hidden, ignored by git or of installed packages are not entered.\n\n\
Exit codes: 0 no finding that --fail-on names; 1 such a finding; 2 wrong usage, a path that is not there, or no file that can be read.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub struct LintArgs {
    /// Python files, or folders of them
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Write the edits that are proven to be safe; the report then lists what is left
    #[arg(long)]
    pub fix: bool,
    /// Findings that end the command with 1
    #[arg(long, value_name = "WHICH", default_value_t = FailOn::default(), value_parser = word(FailOn::ALL, |one| (one.as_str(), one.help())))]
    pub fail_on: FailOn,
    /// Format of the result
    #[arg(long, default_value = "table", value_parser = format(formats::LINT))]
    pub format: &'static Format<LintReport>,
    /// File for the result; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub repository: RepositoryArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}
