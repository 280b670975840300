//! A site as the formats for people show it: the same words in a table, in Markdown and on a page.
//!
//! All text is escaped for a terminal; a format that has markup of its own escapes that on top.

use super::phrase::{self, FileNames, Processes, SitePlace};
use super::saving;
use crate::model::{Class, Frame, Report, Site, Warning};
use crate::text::{self, escape_terminal};
use serde::Serialize;

/// Decides which parts tell a report's sites apart; a part that all sites share is left out.
pub(crate) struct Views<'a> {
    pub(crate) files: FileNames<'a>,
    processes: Option<Processes>,
    /// Whether to name threads (some are not the main one), and GPUs.
    threads: bool,
    devices: bool,
}

#[derive(Serialize)]
pub(crate) struct SiteView {
    pub id: String,
    pub class: Class,
    pub verdict: &'static str,
    pub kind: String,
    pub confidence: String,
    pub place: SitePlace,
    pub call: String,
    #[serde(skip)]
    pub waited: String,
    pub who: Who,
    pub advice: String,
    /// True if the saving is per iteration, or the run has no loop; false if paid outside the loop, or once.
    pub repeats: bool,
    pub cells: Cells,
}

/// Who waited for which GPU; a part is `None` where all sites share it.
pub(crate) struct Who {
    /// `train.py:41`, where other sites or paths have other callers.
    pub caller: Option<String>,
    pub paths: usize,
    /// "start-up only", where it waits at no other time.
    pub when: Option<&'static str>,
    pub thread: Option<String>,
    /// Whether `thread` is the main one.
    pub main: bool,
    pub process: Option<String>,
    pub device: Option<String>,
}

/// A row's durations, in ns.
#[derive(Default)]
pub(crate) struct Durations {
    /// The saving, with "≤ " before an upper bound.
    pub saves: Option<(&'static str, i64)>,
    pub blocked: i64,
    pub p99: i64,
    pub drain: i64,
}

#[derive(Serialize)]
pub(crate) struct Cells {
    pub waits: String,
    pub per_iteration: Option<String>,
    pub saves: Option<String>,
    /// For columns of one unit.
    #[serde(skip)]
    pub ns: Durations,
    #[serde(skip)]
    pub measured: Option<String>,
    /// Time, and its share of the thread's.
    pub blocked: [String; 2],
    pub p99: String,
    /// Time, and its share of the GPU's.
    pub drain: [String; 2],
}

impl<'a> Views<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let processes = Processes::of(report);
        let mut devices = report.sites.iter().filter_map(|site| site.device);
        let first = devices.next();
        Self {
            files: FileNames::of(report),
            threads: !report.sites.iter().all(phrase::is_main),
            // Ranks have a GPU each, which says nothing new.
            devices: processes.is_none() && devices.any(|device| Some(device) != first),
            processes,
        }
    }

    pub(crate) fn site(&self, site: &Site) -> SiteView {
        SiteView {
            id: escaped(&site.id),
            class: site.class,
            verdict: site.class.in_words(),
            kind: site.kind.in_words(),
            confidence: phrase::confidence(site.class, site.confidence),
            place: SitePlace::of(site, &self.files),
            call: phrase::call(site),
            waited: phrase::waited(site),
            who: Who {
                caller: site.caller.as_ref().map(|c| phrase::at_line(&self.files.get(&c.file), c.line)),
                paths: site.call_paths.len(),
                when: site.start_up.map(|_| phrase::START_UP),
                thread: self.threads.then(|| phrase::thread(site)),
                main: phrase::is_main(site),
                process: self.processes.as_ref().map(|processes| processes.label(site)),
                device: site.device.filter(|_| self.devices).map(|device| format!("GPU {device}")),
            },
            advice: advice(site),
            repeats: !site.once
                && (site.recoverable.is_none() || site.per_iteration.is_none() || site.saves().1.is_some()),
            cells: Cells {
                waits: text::count(site.waits),
                per_iteration: site.per_iteration.map(text::rate),
                saves: saving::short(site),
                ns: Durations {
                    saves: saving::amount(site),
                    blocked: site.blocked_ns,
                    p99: site.blocked_p99_ns,
                    drain: site.drain_ns,
                },
                measured: site.replayed.as_ref().map(saving::replayed_short),
                blocked: [text::duration(site.blocked_ns), text::percent(site.blocked_percent)],
                p99: text::duration(site.blocked_p99_ns),
                drain: [text::duration(site.drain_ns), text::percent(site.drain_percent)],
            },
        }
    }
}

impl Who {
    /// "called at train.py:41"; "18 call paths" and "as at train.py:41".
    pub(crate) fn called(&self) -> impl Iterator<Item = String> {
        let paths = (self.paths > 0).then(|| format!("{} call paths", self.paths));
        let how = if paths.is_some() { "as" } else { "called" };
        paths.into_iter().chain(self.caller.as_ref().map(|place| format!("{how} at {place}")))
    }

    /// All parts, except a thread that is the main one.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let thread = self.thread.clone().filter(|_| !self.main);
        let when = self.when.map(str::to_owned);
        self.called().chain([when, thread, self.process.clone(), self.device.clone()].into_iter().flatten())
    }
}

impl Serialize for Who {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.words())
    }
}

fn advice(site: &Site) -> String {
    let chosen = site.recoverable.as_ref().filter(|saving| saving.chosen);
    let asked = chosen.map(|saving| format!("as --fix asks: {}", saving::change(saving.change)));
    let allowed = || site.allowed.as_ref().map(|reason| escaped(&format!("allowed: {reason}")));
    asked.or_else(allowed).or_else(|| site.fix.as_ref().map(|fix| escaped(&fix.title))).unwrap_or_default()
}

#[derive(Serialize)]
pub(crate) struct FrameView {
    /// `/home/ada/train.py:18`
    pub file: String,
    pub function: String,
    pub user: bool,
    /// Only for the user's line.
    pub source: Option<String>,
}

impl FrameView {
    pub(crate) fn of(site: &Site, frame: &Frame) -> Self {
        let source = site.source.as_deref().filter(|_| site.user_frame.as_ref() == Some(frame));
        Self {
            file: phrase::at_line(&escape_terminal(&frame.file), frame.line),
            function: escaped(&frame.function),
            user: frame.user,
            source: source.map(|source| escaped(source.trim())),
        }
    }
}

/// The Python frames that are known of a site, innermost first.
pub(crate) fn stack(site: &Site) -> &[Frame] {
    if site.frames.is_empty() { site.user_frame.as_slice() } else { &site.frames }
}

/// Keeps a repeated command at its first warning only: one command often mends several things.
pub(crate) fn warnings(all: &[Warning]) -> Vec<Warning> {
    let said = |at: usize| all[..at].iter().any(|earlier| earlier.fix == all[at].fix);
    let view = |(at, Warning { code, message, fix }): (usize, &Warning)| {
        let fix = if said(at) { String::new() } else { escaped(fix) };
        Warning { code: code.clone(), message: escaped(message), fix }
    };
    all.iter().enumerate().map(view).collect()
}

pub(crate) fn escaped(text: &str) -> String {
    escape_terminal(text).into_owned()
}
