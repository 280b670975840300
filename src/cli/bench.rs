//! `sync-report bench`: what does waiting cost on this GPU?

use super::args::BenchArgs;
use super::output;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::process::ExitCode;
use std::time::Duration;
use sync_report::formats::Setting;
use sync_report::replay::gpu::{Options, Work, bench, self_test};
use sync_report::replay::interrupt;
use sync_report::text::escape_terminal;

pub fn run(args: &BenchArgs) -> Result<ExitCode> {
    output::refuse_one_file(&args.output, args.save.as_deref())?;
    interrupt::listen().context("Ctrl-C cannot be listened for")?;
    let options = Options { device: args.gpu.device, lib_dirs: args.gpu.lib_dir.clone() };
    if args.self_test {
        let lines = self_test(&options)?;
        return output::write(&args.output, &args.shared, |_, out| {
            lines.iter().try_for_each(|line| Ok(writeln!(out, "{}", escape_terminal(line))?))
        });
    }
    let bar = spinner(args.shared.quiet);
    let work = Work { sizes: args.sizes.clone(), types: args.types.clone(), rounds: args.gpu.rounds };
    let measured = bench(&options, &work, &|what| bar.set_message(what.to_owned()));
    bar.finish_and_clear();
    let measured = measured?;
    if let Some(path) = &args.save {
        output::save(&measured.constants, path)?;
    }
    output::print(args.format, &measured, Setting::default(), &args.output, &args.shared)
}

/// indicatif shows nothing into a pipe.
fn spinner(quiet: bool) -> ProgressBar {
    if quiet || std::env::var_os("CI").is_some() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} measuring {msg}") {
        bar.set_style(style);
    }
    // Redrawing takes a core some µs, ten times a second: a median does not see it.
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
