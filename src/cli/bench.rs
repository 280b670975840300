//! `sync-report bench`: what does waiting cost on this GPU?

use super::args::{BenchArgs, GpuFormat};
use super::output;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::process::ExitCode;
use std::time::Duration;
use sync_report::replay::gpu::{Options, Work, bench, self_test};
use sync_report::replay::interrupt;
use sync_report::report::bench as render;
use sync_report::text::escape_terminal;

pub fn run(args: &BenchArgs) -> Result<ExitCode> {
    output::refuse_one_file(&args.output, args.save.as_deref())?;
    interrupt::listen().context("Ctrl-C cannot be listened for")?;
    let options = Options {
        device: args.gpu.device,
        lib_dirs: args.gpu.lib_dir.clone(),
        rounds: args.gpu.rounds,
        time: None,
    };
    if args.self_test {
        let lines = self_test(&options)?;
        let mut out = output::Output::open(&args.output, &args.shared)?;
        for line in lines {
            writeln!(out.writer(), "{}", escape_terminal(&line))?;
        }
        out.finish()?;
        return Ok(ExitCode::SUCCESS);
    }
    let bar = spinner(args.shared.quiet);
    let work = Work { sizes: args.sizes.clone(), types: args.types.clone() };
    let measured = bench(&options, &work, &|what| bar.set_message(what.to_owned()));
    bar.finish_and_clear();
    let measured = measured?;
    if let Some(path) = &args.save {
        let json = serde_json::to_string_pretty(&measured.constants)?;
        std::fs::write(path, json + "\n")
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    let mut out = output::Output::open(&args.output, &args.shared)?;
    let style = out.style();
    match args.format {
        GpuFormat::Table => render::table(&measured, &style, out.writer())?,
        GpuFormat::Markdown => render::markdown(&measured, out.writer())?,
        GpuFormat::Json => {
            serde_json::to_writer_pretty(out.writer(), &measured)?;
            writeln!(out.writer())?;
        }
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// What is being measured, on a terminal; indicatif shows nothing into a pipe.
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
