//! Progress of a run on stderr: a bar on a terminal, lines on request.

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use sync_report::profile::database::{Progress, Work};
use sync_report::text;

/// Nothing is shown for exports that are read faster than this.
const DELAY: Duration = Duration::from_millis(300);

const INTERVAL: Duration = Duration::from_secs(3);

/// Whether it is shown how far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Shown {
    /// A bar on a terminal, nothing into a pipe or in CI
    #[default]
    Auto,
    /// A line every few seconds, wherever it goes
    Plain,
    /// Nothing
    Never,
    /// What the run cost, in the end: counts that do not depend on the machine
    #[value(hide = true)]
    Work,
}

/// `None` if nothing is to be shown.
pub fn shown(how: Shown, quiet: bool) -> Option<Arc<dyn Progress>> {
    match how {
        _ if quiet => None,
        Shown::Never => None,
        Shown::Plain => Some(Arc::new(Lines::new(INTERVAL, std::io::stderr()))),
        Shown::Work => Some(Arc::new(Counted::default())),
        Shown::Auto if !std::io::stderr().is_terminal() || std::env::var_os("CI").is_some() => None,
        Shown::Auto => Some(Arc::new(bar()?)),
    }
}

struct Bar(ProgressBar);

fn bar() -> Option<Bar> {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent} %, {eta} left").ok()?;
    bar.set_style(style);
    bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    let shown = bar.clone();
    let show = move || {
        std::thread::sleep(DELAY);
        shown.set_draw_target(indicatif::ProgressDrawTarget::stderr());
    };
    // No thread, no bar.
    std::thread::Builder::new().spawn(show).ok()?;
    Some(Bar(bar))
}

impl Progress for Bar {
    fn begins(&self, what: &str, count: u64, _: &str) {
        self.0.set_message(text::escape_terminal(what).into_owned());
        self.0.set_length(count);
        self.0.set_position(0);
        self.0.reset_eta();
    }

    fn advance(&self, by: u64) {
        self.0.inc(by);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Counts, printed as one line of JSON when the run is over.
#[derive(Default)]
struct Counted(Mutex<BTreeMap<&'static str, u64>>);

impl Progress for Counted {
    fn begins(&self, _: &str, _: u64, _: &str) {}

    fn advance(&self, _: u64) {}

    fn costs(&self, work: Work, by: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(work.as_str()).or_default() += by;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let counts = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A closed stderr is no error.
        let _ = serde_json::to_string(counts).map(|line| writeln!(std::io::stderr(), "{line}"));
    }
}

struct Lines<W>(Mutex<State<W>>);

struct State<W> {
    interval: Duration,
    out: W,
    what: String,
    unit: String,
    done: u64,
    count: u64,
    began: Instant,
    said: Instant,
}

impl<W: Write> Lines<W> {
    fn new(interval: Duration, out: W) -> Self {
        let (what, unit, began) = (String::new(), String::new(), Instant::now());
        Self(Mutex::new(State { interval, out, what, unit, done: 0, count: 0, began, said: began }))
    }
}

impl<W: Write + Send> Progress for Lines<W> {
    fn begins(&self, what: &str, count: u64, unit: &str) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (state.what, state.unit) = (text::escape_terminal(what).into_owned(), unit.to_owned());
        (state.done, state.count, state.began) = (0, count, Instant::now());
    }

    fn advance(&self, by: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.done = state.done.saturating_add(by).min(state.count);
        if state.said.elapsed() < state.interval {
            return;
        }
        state.said = Instant::now();
        let line = state.line(state.began.elapsed());
        // A closed stderr is no error.
        let _ = writeln!(state.out, "sync-report: {line}");
    }
}

impl<W> State<W> {
    /// "reading NVTX_EVENTS: 1,234,567 of 2,000,000 rows, 61 %, 12.3 s left".
    fn line(&self, passed: Duration) -> String {
        let share = self.done as f64 / self.count.max(1) as f64;
        let left = passed.as_nanos() as f64 * (1.0 - share) / share.max(f64::MIN_POSITIVE);
        let (done, all) = (text::count(self.done), text::counted(self.count, &self.unit));
        let (percent, left) = (share * 100.0, text::duration(left as i64));
        format!("{}: {done} of {all}, {percent:.0} %, {left} left", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_how_far_it_is_and_how_long_it_takes() {
        let lines = Lines::new(Duration::ZERO, Vec::new());
        lines.begins("reading NVTX_EVENTS", 2_000_000, "row");
        lines.advance(500_000);
        lines.begins("simulating", 1, "variant");
        lines.advance(1);
        let state = lines.0.into_inner().expect("no panic");
        let text = String::from_utf8(state.out).expect("text");
        let said: Vec<&str> = text.lines().collect();
        assert!(
            said[0].starts_with("sync-report: reading NVTX_EVENTS: 500,000 of 2,000,000 rows, 25 %, "),
            "{text}"
        );
        assert_eq!(said[1..], ["sync-report: simulating: 1 of 1 variant, 100 %, 0 ns left"]);
    }

    #[test]
    fn what_is_left_goes_by_what_was_done() {
        let lines = Lines::new(INTERVAL, Vec::new());
        lines.begins("reading", 400, "row");
        lines.advance(100);
        let state = lines.0.into_inner().expect("no panic");
        assert!(state.out.is_empty(), "not more often than every few seconds");
        assert_eq!(state.line(Duration::from_secs(2)), "reading: 100 of 400 rows, 25 %, 6.00 s left");
    }
}
