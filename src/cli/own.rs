//! `sync-report.toml`: what a program's own names mean, in its folder or in the checkout around it.
//!
//! ```toml
//! [python.name]
//! note = "log"            # tracker.note(v) only shows v
//! host_sum = "read"       # host_sum(x) hands a number to Python
//!
//! [python.word]
//! ledger = "logger"       # so does what is called on self.ledger
//! ```

use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;
use std::fs;
use std::path::PathBuf;
use sync_report::python::facts::{self, Own};
use sync_report::repository::checkout_of;

const NAME: &str = "sync-report.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    python: Own,
}

/// A table of names is no longer.
const MOST_BYTES: u64 = 64 << 10;

/// Adds the names in the file, if there is one.
///
/// # Errors
/// The file cannot be read, or says something else.
pub fn read() -> Result<()> {
    let Some(path) = nearest() else { return Ok(()) };
    let shown = path.display();
    let about = fs::symlink_metadata(&path).with_context(|| format!("{shown}: cannot be read"))?;
    // A link may lead out of the checkout, and errors quote the file.
    ensure!(about.is_file() && about.len() <= MOST_BYTES, "{shown}: is no regular file of at most 64 KiB");
    let text = fs::read_to_string(&path).with_context(|| format!("{shown}: cannot be read"))?;
    let config: Config = toml::from_str(&text).map_err(|e| {
        let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let reason = e.message().lines().next().unwrap_or_default();
        anyhow!("{shown}, line {}: {reason}", before.matches('\n').count() + 1)
    })?;
    facts::add(config.python).map_err(|reason| anyhow!("{shown}: {reason}"))
}

/// The file of this folder, or of the nearest one around it, up to the root of a checkout.
fn nearest() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let root = checkout_of(&here);
    let mut folders = here
        .ancestors()
        .take_while(|folder| root.is_some_and(|root| folder.starts_with(root)) || *folder == here);
    folders.find_map(|folder| Some(folder.join(NAME)).filter(|path| path.symlink_metadata().is_ok()))
}
