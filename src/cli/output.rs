//! Where the report goes: stdout or a file, with or without colours, how wide.

use super::args::SharedArgs;
use anyhow::{Context, Result, bail};
use clap::ColorChoice;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use sync_report::report::style::Style;

/// Terminals wider than this leave the eye too far to go along a row.
const MAX_WIDTH: usize = 200;

pub struct Output {
    writer: Box<dyn Write>,
    style: Style,
}

impl Output {
    /// `-` is stdout. A file is written plain, at `--width` or unwrapped.
    pub fn open(path: &Path, shared: &SharedArgs) -> Result<Self> {
        let to_stdout = path == Path::new("-");
        let writer: Box<dyn Write> = if to_stdout {
            Box::new(BufWriter::new(io::stdout().lock()))
        } else {
            let file =
                File::create(path).with_context(|| format!("{}: cannot be written", path.display()))?;
            Box::new(BufWriter::new(file))
        };
        Ok(Self { writer, style: Style { width: width(shared, to_stdout), color: color(shared, to_stdout) } })
    }

    pub fn style(&self) -> Style {
        self.style
    }

    pub fn writer(&mut self) -> &mut dyn Write {
        &mut *self.writer
    }

    /// Flushes: an error here is an error of the report.
    pub fn finish(mut self) -> Result<()> {
        Ok(self.writer.flush()?)
    }
}

/// Refuses `-o` with the name of an input, under whatever name: it would destroy what the report is about.
pub fn refuse_input(output: &Path, inputs: &[PathBuf]) -> Result<()> {
    if output != Path::new("-") && inputs.iter().any(|input| is_same(output, input)) {
        bail!("{}: is an input; give -o another name", output.display());
    }
    Ok(())
}

/// Refuses `--save` with the name that `-o` has: the one would overwrite the other.
pub fn refuse_one_file(output: &Path, save: Option<&Path>) -> Result<()> {
    if save == Some(output) {
        bail!("{}: --save and -o name one file; give them two", output.display());
    }
    Ok(())
}

/// Whether two paths name one file, through links too.
fn is_same(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |p: &Path| std::fs::metadata(p).map(|m| (m.dev(), m.ino())).ok();
        id(a).is_some() && id(a) == id(b)
    }
    #[cfg(not(unix))]
    {
        let real = |p: &Path| std::fs::canonicalize(p).ok();
        real(a).is_some() && real(a) == real(b)
    }
}

/// `--width`, else the terminal's columns, else none: one line per row for grep.
fn width(shared: &SharedArgs, to_stdout: bool) -> Option<usize> {
    let typed = shared.width.map(usize::from);
    let terminal = || {
        let (columns, _) = terminal_size::terminal_size()?;
        Some(usize::from(columns.0).min(MAX_WIDTH))
    };
    typed.or_else(|| (to_stdout && io::stdout().is_terminal()).then(terminal).flatten())
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
