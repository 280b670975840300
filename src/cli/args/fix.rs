//! Arguments of `fix`.

use super::{CodeArgs, RepositoryArgs, SharedArgs};
use clap::{Args, ValueHint};
use std::path::PathBuf;

const AFTER: &str = "The diff goes to stdout, what became of each site to stderr. Edits are only made where everything that they \
need is proven by the source or the trace; the others are listed with the reason. Sources are looked for at their recorded paths last. A file whose recorded lines do not hold what ran \
on them is left alone, so that a second run changes nothing.\n\n\
Exit codes: 0 done, also where there is nothing to edit; 2 wrong usage or bad input.";

#[derive(Args)]
#[command(after_help = AFTER)]
pub struct FixArgs {
    /// Nsight Systems exports (.sqlite, _pqtdir), reports (.nsys-rep) or traces of torch.profiler; several, one per rank, make one patch
    #[arg(value_name = "PROFILE", required = true, value_hint = ValueHint::FilePath)]
    pub profiles: Vec<PathBuf>,
    /// Write the files instead of printing the diff
    #[arg(long)]
    pub apply: bool,
    /// Only these sites (S1,S2), by their ids in the report
    #[arg(long, value_name = "SITES", value_delimiter = ',')]
    pub site: Vec<String>,
    /// Edits too that may change what the program computes or shows: measured times, random numbers, a copy whose destination may be the
    /// CPU in another run
    #[arg(long)]
    pub unsafe_fixes: bool,
    // No filters: a wait that is left out may need what an edit removes.
    #[command(flatten)]
    pub code: CodeArgs,
    /// As for the report, whose ids sites have
    #[arg(long, value_name = "RANGE")]
    pub iteration_marker: Option<String>,
    #[command(flatten)]
    pub repository: RepositoryArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}
