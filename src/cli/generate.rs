//! Shell completions and the manual page, from the definitions of `--help`; schemas, from what is printed.

use super::args::Cli;
use anyhow::{Result, anyhow};
use clap::CommandFactory;
use std::io::{self, Write};
use std::process::ExitCode;
use sync_report::formats::schema;
use sync_report::render::json;

pub fn completions(shell: clap_complete::Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sync-report", &mut script);
    io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The page of the program, or of a command (`sync-report-diff(1)`).
pub fn man(command: Option<&str>) -> Result<ExitCode> {
    let mut cli = Cli::command();
    // Completes the names of commands.
    cli.build();
    let page_of = match command {
        None => cli,
        Some(name) => {
            cli.find_subcommand(name).cloned().ok_or_else(|| anyhow!("there is no command `{name}`"))?
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(page_of).render(&mut page)?;
    io::stdout().write_all(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// The named JSON Schema, or all names with their commands.
pub fn schema(name: Option<&str>) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    if let Some(name) = name {
        let missing = || anyhow!("there is no schema `{name}`; `sync-report schema` lists them");
        json::write(&schema::by_name(name).ok_or_else(missing)?, &mut out)?;
    } else {
        schema::ALL.iter().try_for_each(|of| writeln!(out, "{:<10} {}", of.name, of.command))?;
    }
    Ok(ExitCode::SUCCESS)
}
