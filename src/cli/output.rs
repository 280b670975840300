//! Output to stdout or a file, with or without colours, at a width.

use super::args::{RepositoryArgs, SelectArgs, SharedArgs};
use super::input::{head, is_same};
use anyhow::{Context, Result, bail};
use clap::ColorChoice;
use serde::Serialize;
use std::io::{self, BufWriter, ErrorKind, IntoInnerError, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use sync_report::formats::{Format, Setting};
use sync_report::model::{Report, Warning};
use sync_report::profile::header::is_sqlite;
use sync_report::render::json;
use sync_report::render::style::Style;
use sync_report::repository::Repository;
use sync_report::text;
use sync_report::verdict::source::SourceRoot;
use sync_report::whole::{self, Whole};

/// Longer rows are hard for the eye to follow.
const MAX_WIDTH: usize = 200;

/// Writes to a file, or stdout for `-`. A file is plain, at `--width` or unwrapped, and whole or not at all.
/// A reader who closes the pipe (`… | head`) only ends the printing: a gate keeps its verdict.
pub fn write(
    path: &Path,
    shared: &SharedArgs,
    what: impl FnOnce(Style, &mut dyn Write) -> Result<()>,
) -> Result<ExitCode> {
    let style = |to_stdout| Style { width: width(shared, to_stdout), color: color(shared, to_stdout) };
    if path == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        let printed = what(style(true), &mut out).and_then(|()| Ok(out.flush()?));
        return match printed {
            Err(e) if is_broken_pipe(&e) => Ok(ExitCode::SUCCESS),
            printed => printed.map(|()| ExitCode::SUCCESS),
        };
    }
    let cannot = || format!("{}: cannot be written", path.display());
    let mut out = BufWriter::new(Whole::begin(path)?);
    what(style(false), &mut out).with_context(cannot)?;
    let file = out.into_inner().map_err(IntoInnerError::into_error).with_context(cannot)?;
    let shared_content = file.has_other_names();
    file.finish()?;
    if shared_content && !shared.quiet {
        say(&format!("{}: its other names (hard links) keep the old content", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_one = |e: &io::Error| e.kind() == ErrorKind::BrokenPipe;
    error.chain().any(|e| e.downcast_ref::<io::Error>().is_some_and(is_one))
}

pub fn save(tree: &impl Serialize, path: &Path) -> Result<()> {
    let mut text = Vec::new();
    json::write(tree, &mut text)?;
    whole::write(path, &text)
}

/// For annotations and SARIF.
pub fn setting(repository: &RepositoryArgs, select: &SelectArgs) -> Setting {
    within(repository, select.code.sources.roots())
}

/// For files that no capture names.
pub fn checkout(repository: &RepositoryArgs) -> Setting {
    within(repository, Vec::new())
}

fn within(repository: &RepositoryArgs, roots: Vec<SourceRoot>) -> Setting {
    let summary = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
    Setting {
        repository: Repository::new(repository.repository.clone(), roots),
        step_summary: summary.map(PathBuf::from),
        ..Setting::default()
    }
}

/// Prints to stdout, a file or a folder. `shared` decides style and messages.
pub fn print<T>(
    format: &Format<T>,
    tree: &T,
    setting: Setting,
    path: &Path,
    shared: &SharedArgs,
) -> Result<ExitCode> {
    if let Some(write) = format.folder {
        return write(tree, path).map(|()| ExitCode::SUCCESS);
    }
    let say = if shared.quiet { setting.say } else { say };
    write(path, shared, |style, out| Ok(format.render(tree, &Setting { style, say, ..setting }, out)?))
}

/// A closed stderr is no error.
pub fn say(sentence: &str) {
    let _ = writeln!(io::stderr(), "sync-report: {sentence}");
}

/// Says how far a command is, unless `--quiet`.
pub fn tell(shared: &SharedArgs, sentence: &str) {
    if !shared.quiet {
        say(&text::escape_terminal(sentence));
    }
}

/// 2 if exports are damaged or of different runs, with a sentence each on stderr, after the report.
pub fn exit_code(report: &Report) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for Warning { message, fix, .. } in report.warnings.iter().filter(|w| w.is_damage()) {
        let again = if fix.is_empty() { String::new() } else { format!("; export it again with: {fix}") };
        say(&text::escape_terminal(&format!("{message}{again}")));
        code = ExitCode::from(2);
    }
    code
}

/// Refuses an `-o` that is an input, under whatever name, or an SQLite database: no format is one, so it is
/// somebody's capture.
pub fn refuse_input(output: &Path, inputs: &[PathBuf]) -> Result<()> {
    if output == Path::new("-") {
        return Ok(());
    }
    let what = match inputs.iter().any(|input| is_same(output, input)) {
        true => "an input",
        false if head(output, 16).is_some_and(|head| is_sqlite(&head)) => "an SQLite database",
        false => return Ok(()),
    };
    bail!("{}: is {what}; give -o another name", output.display())
}

pub fn refuse_one_file(output: &Path, save: Option<&Path>) -> Result<()> {
    if save == Some(output) {
        bail!("{}: --save and -o name one file; give them two", output.display());
    }
    Ok(())
}

/// `--width`, else the terminal's columns, else none: one line per row for grep.
fn width(shared: &SharedArgs, to_stdout: bool) -> Option<usize> {
    let shown = || (to_stdout && io::stdout().is_terminal()).then(terminal_size::terminal_size).flatten();
    let terminal = || shown().map(|(columns, _)| usize::from(columns.0).min(MAX_WIDTH));
    shared.width.map(usize::from).or_else(terminal)
}

/// The flag goes before the environment (NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM).
fn color(shared: &SharedArgs, to_stdout: bool) -> bool {
    match shared.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            to_stdout && anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
        }
    }
}
