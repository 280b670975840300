//! Arguments of `try`.

use super::typed::{calls, format};
use super::{CodeArgs, SharedArgs};
use clap::{Args, ValueHint};
use regex::Regex;
use std::ffi::OsString;
use std::path::PathBuf;
use sync_report::formats::{self, Format};
use sync_report::model::trial::Trial;

const AFTER: &str = "The program runs in copies of the checkout, or of the working directory outside of one: what it writes stays there. Runs as it \
is and edited alternate, without a profiler. Steps of the optimizer are timed (or of the package's bracket), or calls of --calls, or the whole \
run where there are none. NAME.json and NAME.patch are written where you are.\n\n\
Exit codes: 0 done; 1 the edited program fails, or prints other numbers; 2 wrong usage or bad input, or the program fails as it is; 130 \
Ctrl-C.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub struct TryArgs {
    /// The capture whose advised edits are tried
    #[arg(long, value_name = "PROFILE", default_value = "sync-report.sqlite", value_hint = ValueHint::FilePath, conflicts_with_all = ["patch", "against"])]
    pub profile: PathBuf,
    /// Try the edits of these sites alone (S1,S2), by id, line or key
    #[arg(long, value_name = "SITES", value_delimiter = ',', conflicts_with_all = ["patch", "against"])]
    pub site: Vec<String>,
    /// Edits too that may change what the program computes or shows
    #[arg(long, conflicts_with_all = ["patch", "against"])]
    pub unsafe_fixes: bool,
    /// Try this patch, as `git apply` takes it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "against")]
    pub patch: Option<PathBuf>,
    /// Try the working tree against this revision
    #[arg(long, value_name = "REF")]
    pub against: Option<String>,
    /// Time calls of this function, for programs without an optimizer
    #[arg(long, value_name = "MODULE:FUNCTION", value_parser = calls)]
    pub calls: Option<String>,
    /// Compare the numbers that this pattern finds in what the program prints; by default those behind `loss`
    #[arg(long, value_name = "REGEX")]
    pub metric: Option<Regex>,
    /// How long to measure at most, all runs together
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// Write NAME.patch and NAME.json
    #[arg(short, long, value_name = "NAME", default_value = "sync-report-try")]
    pub output: String,
    /// How to print the result
    #[arg(long, default_value = "table", value_parser = format(formats::TRY))]
    pub format: &'static Format<Trial>,
    #[command(flatten)]
    pub code: CodeArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<OsString>,
}
