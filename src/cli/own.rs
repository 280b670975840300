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

use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs;
use std::path::PathBuf;
use sync_report::python::facts::{self, Own};

const NAME: &str = "sync-report.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    python: Own,
}

/// Reads the file, if there is one, and takes what it says.
///
/// # Errors
/// It cannot be read, or says something else.
pub fn read() -> Result<()> {
    let Some(path) = nearest() else { return Ok(()) };
    let text = fs::read_to_string(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let config: Config = toml::from_str(&text).map_err(|e| {
        anyhow::anyhow!("{}: {}", path.display(), e.to_string().trim_end().replace('\n', " "))
    })?;
    facts::add(config.python).map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))
}

/// The file of this folder, or of the nearest one around it, up to the root of a checkout.
fn nearest() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let root = here.ancestors().find(|folder| folder.join(".git").exists());
    let mut folders = here
        .ancestors()
        .take_while(|folder| root.is_some_and(|root| folder.starts_with(root)) || *folder == here);
    folders.find_map(|folder| Some(folder.join(NAME)).filter(|path| path.is_file()))
}
