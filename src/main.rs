#![forbid(unsafe_code)]
//! The command line: parse, configure, run, exit code.
//!
//! Exit code: 0 done; 1 a gate failed; 2 wrong usage, bad input in whole or in part, or no usable GPU; 130 Ctrl-C during a
//! measurement.

mod cli;

use anyhow::Result;
use std::io::Write;
use std::process::ExitCode;
use sync_report::replay::error::ReplayError;

fn main() -> ExitCode {
    sync_report::profile::memory::give_back_what_is_freed();
    let cli = cli::args::parse();
    match run(cli) {
        Ok(code) => code,
        Err(e) if cli::output::is_broken_pipe(&e) => ExitCode::SUCCESS,
        Err(e) => {
            let text = format!("{e:#}");
            let _ = writeln!(std::io::stderr(), "sync-report: {}", sync_report::text::escape_terminal(&text));
            ExitCode::from(exit_code(&e))
        }
    }
}

/// 2, unless a replay or a capture says otherwise.
fn exit_code(error: &anyhow::Error) -> u8 {
    #[cfg(unix)]
    if let Some(failed) = error.downcast_ref::<sync_report::capture::Failed>() {
        return failed.exit;
    }
    error.downcast_ref::<ReplayError>().map_or(2, ReplayError::exit_code)
}

fn run(cli: cli::args::Cli) -> Result<ExitCode> {
    use cli::args::Command;
    if matches!(
        cli.command,
        None | Some(
            Command::Check(_) | Command::Diff(_) | Command::Merge(_) | Command::Fix(_) | Command::Replay(_)
        )
    ) {
        cli::threads::reserve()?;
        cli::own::read()?;
    }
    match cli.command {
        None => cli::report::run(cli.report),
        #[cfg(unix)]
        Some(Command::Run(args)) => cli::run::run(args),
        #[cfg(unix)]
        Some(Command::Try(args)) => cli::trial::run(args),
        Some(Command::Check(args)) => cli::check::run(args),
        Some(Command::Diff(args)) => cli::diff::run(args),
        Some(Command::Merge(args)) => cli::merge::run(args),
        Some(Command::Doctor(args)) => cli::doctor::run(args),
        Some(Command::Fix(args)) => cli::fix::run(args),
        Some(Command::Lint(args)) => cli::lint::run(args),
        Some(Command::Replay(args)) => cli::replay::run(args),
        Some(Command::Explain(args)) => cli::explain::run(&args),
        Some(Command::Bench(args)) => cli::bench::run(&args),
        Some(Command::Completions { shell }) => cli::generate::completions(shell),
        Some(Command::Man { command }) => cli::generate::man(command.as_deref()),
        Some(Command::Schema { name }) => cli::generate::schema(name.as_deref()),
    }
}
