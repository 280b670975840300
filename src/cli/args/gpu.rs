//! Arguments of the commands that run on a GPU.

use super::SharedArgs;
use super::typed::format;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use sync_report::formats::{self, Format};
use sync_report::replay::bench::Bench;
use sync_report::replay::gpu::DEFAULT_ROUNDS;
use sync_report::replay::product::{TYPES, Types, type_name};

/// The GPU and how to measure on it.
#[derive(Args)]
#[command(next_help_heading = "GPU")]
pub struct GpuArgs {
    /// Which GPU, as CUDA counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: usize,
    /// Look here for CUDA's libraries first; may be given more than once
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub lib_dir: Vec<PathBuf>,
    /// Rounds of measurements, each running every way twice in mirrored order
    #[arg(long, value_name = "N", default_value_t = DEFAULT_ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}

#[derive(Args)]
pub struct BenchArgs {
    /// Sides of the square matrices to multiply
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [8192, 512], value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub sizes: Vec<u64>,
    /// Element types: fp16, bf16, fp32, tf32, fp64
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',', default_value = "fp16,bf16,fp32,tf32", value_parser = parse_type)]
    pub types: Vec<Types>,
    /// Only check that products run and copies are right on this GPU, and say what works
    #[arg(long, conflicts_with_all = ["save", "sizes", "types", "format"])]
    pub self_test: bool,
    /// Write the constants that simulations use to this file, for --constants
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// How to print the result
    #[arg(long, default_value = "table", value_parser = format(formats::BENCH))]
    pub format: &'static Format<Bench>,
    /// Where to write it; `-` for stdout
    #[arg(short, long, value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub gpu: GpuArgs,
    #[command(flatten)]
    pub shared: SharedArgs,
}

fn parse_type(text: &str) -> Result<Types, String> {
    let unknown = || format!("no type `{text}`; there are: {}", TYPES.map(type_name).join(", "));
    TYPES.into_iter().find(|types| type_name(*types) == text).ok_or_else(unknown)
}
