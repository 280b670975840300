//! `sync-report explain`: the knowledge base.

use super::args::ExplainArgs;
use super::output;
use anyhow::{Result, bail};
use std::path::Path;
use std::process::ExitCode;
use sync_report::catalogue::explain::{self, Style};

/// Columns of prose in a pipe.
const PIPED_WIDTH: usize = 100;
/// Entries shown whole; more matches are listed.
const SHOWN: usize = 3;

pub fn run(args: &ExplainArgs) -> Result<ExitCode> {
    let mut out = output::Output::open(Path::new("-"), &args.shared)?;
    let style = out.style();
    let style = Style { color: style.color, width: style.width.unwrap_or(PIPED_WIDTH) };
    let Some(query) = &args.pattern else {
        explain::list(out.writer(), style)?;
        out.finish()?;
        return Ok(ExitCode::SUCCESS);
    };
    match explain::find_or_suggest(query) {
        Ok(found) => {
            for (i, pattern) in found.iter().take(SHOWN).enumerate() {
                if i > 0 {
                    writeln!(out.writer())?;
                }
                explain::show(pattern, out.writer(), style)?;
            }
            let more: Vec<&str> = found.iter().skip(SHOWN).map(|p| p.id).collect();
            if !more.is_empty() {
                writeln!(out.writer(), "\nAlso: {}", more.join(", "))?;
            }
        }
        Err(near) if near.is_empty() => {
            bail!("no pattern fits `{query}`; `sync-report explain` lists them all")
        }
        Err(near) => bail!(
            "no pattern fits `{query}`; near: {}; `sync-report explain` lists them all",
            near.join(", ")
        ),
    }
    out.finish()?;
    Ok(ExitCode::SUCCESS)
}
