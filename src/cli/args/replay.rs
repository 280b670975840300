//! Arguments of `replay`.

use super::typed::{format, parse_fix, word};
use super::{SharedArgs, SourceArgs};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use sync_report::formats::{self, Format};
use sync_report::replay::gpu;
use sync_report::replay::measured::Measured;
use sync_report::replay::plan::{HostTime, Matching, Plan};
use sync_report::vocabulary::Change;

#[derive(Args)]
pub struct ReplayArgs {
    /// Nsight Systems export (.sqlite, _pqtdir), report (.nsys-rep) or trace of torch.profiler
    #[arg(value_name = "PROFILE", value_hint = ValueHint::FilePath)]
    pub profile: PathBuf,
    /// Replay these sites (S3,S5), by id or key; by default the avoidable ones that cost most
    #[arg(long, value_name = "SITES", value_delimiter = ',')]
    pub site: Vec<String>,
    /// Make this change of a site, whatever its verdict, and count it as avoidable: keep, delete, gpu-wait, narrow,
    /// drop, non-blocking, pinned, on-gpu, delay, coalesce
    #[arg(long, value_name = "SITE=CHANGE", value_parser = parse_fix, value_delimiter = ',')]
    pub fix: Vec<(String, Change)>,
    /// Print what would run, as JSON, and run nothing
    #[arg(long, conflicts_with_all = ["emit_python", "format"])]
    pub plan: bool,
    /// Write the same workload as a PyTorch script, with a switch for the waits, and run nothing
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["format", "output"])]
    pub emit_python: Option<PathBuf>,
    /// How long the host works between calls: `recorded`, `unprofiled` (less the profiler's estimated part), `none`, or
    /// a factor
    #[arg(long, value_name = "TIME", default_value = "recorded", value_parser = parse_host)]
    pub host: HostTime,
    /// What a matrix product of unknown size takes here
    #[arg(long = "match", default_value_t = Matching::Peak, value_parser = word(Matching::ALL, |m| (m.as_str(), m.help())))]
    pub matching: Matching,
    /// How long to measure at most; fewer rounds are made where they agree, and at least three
    #[arg(long, value_name = "TIME", default_value_t = gpu::DEFAULT_SECONDS, value_parser = parse_seconds)]
    pub seconds: f64,
    /// Make this many rounds of measurements instead, each of which runs every variant twice, and the first twice for
    /// each
    #[arg(long, value_name = "N", conflicts_with = "seconds", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// GPU to run on
    #[arg(long, value_name = "GPU", default_value_t = 0)]
    pub device: usize,
    /// Look for CUDA's libraries here first; may be given more than once
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub lib_dir: Vec<PathBuf>,
    /// Keep the results here too, as --replay-results reads them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["plan", "emit_python"])]
    pub save: Option<PathBuf>,
    /// How to print the results; `json` is what --replay-results reads
    #[arg(long, default_value = "table", value_parser = format(formats::REPLAY))]
    pub format: &'static Format<(Plan, Measured)>,
    /// Where to write them; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub sources: SourceArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}

/// `recorded`, `unprofiled`, `none`, `0.5`.
fn parse_host(text: &str) -> Result<HostTime, String> {
    const MOST: f64 = 1000.0;
    match text {
        "recorded" => Ok(HostTime::Recorded),
        "unprofiled" => Ok(HostTime::Unprofiled),
        "none" => Ok(HostTime::Scaled(0.0)),
        _ => match text.parse::<f64>() {
            Ok(by) if (0.0..=MOST).contains(&by) => Ok(HostTime::Scaled(by)),
            _ => Err(format!("`{text}` is none of recorded, unprofiled, none or a factor from 0 to {MOST}")),
        },
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    const MOST: f64 = 3600.0;
    let seconds = text.parse::<f64>().ok().filter(|s| *s > 0.0 && *s <= MOST);
    seconds.ok_or_else(|| format!("`{text}` is no number of seconds up to {MOST}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_times_are_words_or_factors() {
        for (text, host) in [
            ("recorded", HostTime::Recorded),
            ("unprofiled", HostTime::Unprofiled),
            ("none", HostTime::Scaled(0.0)),
            ("0.4", HostTime::Scaled(0.4)),
        ] {
            assert_eq!(parse_host(text), Ok(host));
        }
        for text in ["", "-1", "nan", "inf", "fast", "1e9"] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }
}
