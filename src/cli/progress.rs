//! A progress bar on stderr, where someone is looking.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use sync_report::profile::database::Progress;

/// Nothing is shown for exports that are read faster than this.
const DELAY: Duration = Duration::from_millis(300);

struct Bar(ProgressBar);

/// A bar on a terminal; none into a pipe, in CI, or when asked to be quiet.
pub fn bar(quiet: bool) -> Option<Arc<dyn Progress>> {
    if quiet || !std::io::stderr().is_terminal() || std::env::var_os("CI").is_some() {
        return None;
    }
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("reading {msg} {wide_bar} {percent} %").ok()?;
    bar.set_style(style);
    bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    let shown = bar.clone();
    std::thread::spawn(move || {
        std::thread::sleep(DELAY);
        shown.set_draw_target(indicatif::ProgressDrawTarget::stderr());
    });
    Some(Arc::new(Bar(bar)))
}

impl Progress for Bar {
    fn table(&self, name: &str, rows: u64) {
        self.0.set_message(name.to_owned());
        self.0.set_length(rows);
        self.0.set_position(0);
    }

    fn advance(&self, rows: u64) {
        self.0.inc(rows);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
