//! Shell completions and the manual page, from the same definitions as `--help`.

use super::args::Cli;
use anyhow::Result;
use clap::CommandFactory;
use std::io::{self, Write};
use std::process::ExitCode;

pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sync-report", &mut script);
    io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub fn man() -> Result<ExitCode> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    io::stdout().write_all(&page)?;
    Ok(ExitCode::SUCCESS)
}
