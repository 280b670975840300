//! A site as the page shows it: a row, and what a click opens.

use crate::report::details;
use crate::report::phrase::{self, FileNames, Place, Processes};
use crate::report::{Example, Fix, Frame, Report, Rewrite, Site, Snippet, saving};
use crate::text::{self, escape_terminal, shorten_symbol};
use crate::vocabulary::Class;
use serde::Serialize;

/// Frames shown: a recursive program has thousands.
const MOST_FRAMES: usize = 60;
/// Columns of a native function or an awaited kernel.
const LONG_SYMBOL: usize = 160;

#[derive(Serialize)]
pub(super) struct SiteView {
    pub id: String,
    pub class: Class,
    pub kind: &'static str,
    pub confidence: String,
    /// `train.py:18` or nothing, the function, and the sign of how that is known.
    pub place: (String, String, &'static str),
    pub call: String,
    /// Caller, thread, when, process, GPU, where that tells the site from others.
    pub who: Vec<String>,
    pub advice: String,
    pub cells: Cells,
    pub sort: SortBy,
    /// What follows is read when the site is opened.
    pub api: String,
    pub evidence_title: &'static str,
    pub evidence: Vec<(&'static str, String)>,
    /// Outermost first.
    pub stack: Vec<FrameView>,
    /// Frames left out of the stack's middle.
    pub frames_left_out: usize,
    pub snippet: Option<Snippet>,
    /// The number of the user's line.
    pub line: u32,
    pub native: Vec<String>,
    pub costs: Vec<(&'static str, String)>,
    pub context: Vec<(&'static str, String)>,
    /// Upper bound in ns, waits.
    pub histogram: Vec<(i64, u64)>,
    pub fix: Option<FixView>,
    pub examples: Vec<ExampleView>,
    /// Index of the export, and so of the drawing.
    pub profile: usize,
}

/// A row's numbers as text.
#[derive(Serialize)]
pub(super) struct Cells {
    pub waits: String,
    pub per_iteration: Option<String>,
    pub saves: Option<String>,
    pub blocked: [String; 2],
    pub p99: String,
    pub drain: [String; 2],
}

/// A row's numbers.
#[derive(Serialize)]
pub(super) struct SortBy {
    /// Sites whose fix comes first stand first.
    pub order: u8,
    pub confidence: f64,
    pub waits: u64,
    pub saves_ns: i64,
    pub blocked_ns: i64,
    pub p99_ns: i64,
    pub drain_ns: i64,
}

#[derive(Serialize)]
pub(super) struct FrameView {
    pub file: String,
    pub function: String,
    pub user: bool,
    /// The text of the line, for the user's line without a snippet.
    pub source: Option<String>,
}

#[derive(Serialize)]
pub(super) struct FixView {
    pub title: String,
    pub strategy: String,
    pub why: String,
    pub before: String,
    pub after: String,
    pub caveat: String,
    pub here: Option<Rewrite>,
    pub confirm: String,
}

#[derive(Serialize)]
pub(super) struct ExampleView {
    pub start_ns: i64,
    pub end_ns: i64,
    pub drain_ns: i64,
    /// As the nsys GUI shows it.
    pub at: String,
    pub blocked: String,
    pub drain: String,
    pub awaited: String,
}

/// What tells the sites of a report apart.
pub(super) struct Words<'a> {
    report: &'a Report,
    files: FileNames<'a>,
    processes: Option<Processes>,
    /// Whether sites are of several threads, of several GPUs.
    threads: bool,
    devices: bool,
}

fn escaped(text: &str) -> String {
    escape_terminal(text).into_owned()
}

impl<'a> Words<'a> {
    pub fn of(report: &'a Report) -> Self {
        let mut devices = report.sites.iter().filter_map(|site| site.device);
        let first = devices.next();
        Self {
            report,
            files: FileNames::of(report),
            processes: Processes::of(report),
            threads: !report.sites.iter().all(phrase::is_main),
            devices: devices.any(|device| Some(device) != first),
        }
    }

    pub fn site(&self, site: &Site) -> SiteView {
        let place = Place::of(site, &self.files);
        let (file, name, mark) = place.parts();
        let (stack, frames_left_out) = stack(site);
        SiteView {
            id: escaped(&site.id),
            class: site.class,
            kind: site.kind.as_str(),
            confidence: phrase::confidence(site),
            place: (file.unwrap_or("").to_owned(), name.to_owned(), mark.unwrap_or("")),
            call: phrase::call(site),
            who: self.who(site),
            advice: site.fix.as_ref().map_or_else(String::new, |fix| escaped(&fix.title)),
            cells: cells(site),
            sort: sort_by(site),
            api: details::api(site),
            evidence_title: details::evidence_title(site.class),
            evidence: site.evidence.iter().map(|e| (e.rule, escaped(&e.text))).collect(),
            stack,
            frames_left_out,
            snippet: site.snippet.as_ref().map(|s| Snippet {
                first_line: s.first_line,
                lines: s.lines.iter().map(|line| code(line)).collect(),
            }),
            line: site.user_frame.as_ref().map_or(0, |f| f.line),
            native: site.native.iter().rev().map(|f| symbol(f)).collect(),
            costs: details::costs(site),
            context: details::context(self.report, site),
            histogram: site.histogram.clone(),
            fix: site.fix.as_ref().map(fix),
            examples: site.examples.iter().map(example).collect(),
            profile: site.process.profile,
        }
    }

    fn who(&self, site: &Site) -> Vec<String> {
        let caller = |c: &Frame| format!("called at {}", phrase::at_line(&self.files.get(&c.file), c.line));
        [
            site.caller.as_ref().map(caller),
            self.threads.then(|| phrase::thread(site)).filter(|thread| thread != "main"),
            site.start_up.map(|_| phrase::START_UP.to_owned()),
            self.processes.as_ref().map(|processes| processes.label(site)),
            site.device.filter(|_| self.devices && self.processes.is_none()).map(|d| format!("GPU {d}")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Source text: escaped line by line, tabs as blanks.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| escape_terminal(&line.replace('\t', "    ")).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}

fn symbol(function: &str) -> String {
    shorten_symbol(&escape_terminal(function), LONG_SYMBOL).into_owned()
}

fn cells(site: &Site) -> Cells {
    Cells {
        waits: text::count(site.waits),
        per_iteration: site.per_iteration.map(text::rate),
        saves: saving::short(site),
        blocked: [text::duration(site.blocked_ns), text::percent(site.blocked_percent)],
        p99: text::duration(site.blocked_p99_ns),
        drain: [text::duration(site.drain_ns), text::percent(site.drain_percent)],
    }
}

fn sort_by(site: &Site) -> SortBy {
    // Upper bounds come after figures: they promise nothing.
    let saves = site.recoverable.as_ref().map_or(-1, |s| {
        let known = s.simulated && !(site.class == Class::True && s.change == "keep");
        if known { s.alone_ns } else { 0 }
    });
    SortBy {
        order: site.fix.as_ref().map_or(u8::MAX, |fix| fix.order),
        confidence: if site.confidence.is_finite() { site.confidence } else { 0.0 },
        waits: site.waits,
        saves_ns: saves,
        blocked_ns: site.blocked_ns,
        p99_ns: site.blocked_p99_ns,
        drain_ns: site.drain_ns,
    }
}

/// Outermost first, and how many are left out of the middle.
fn stack(site: &Site) -> (Vec<FrameView>, usize) {
    let alone: Vec<Frame> = site.user_frame.iter().cloned().collect();
    let frames = if site.frames.is_empty() { &alone } else { &site.frames };
    let view = |frame: &Frame| FrameView {
        file: phrase::at_line(&escape_terminal(&frame.file), frame.line),
        function: escaped(&frame.function),
        user: frame.user,
        source: site
            .source
            .as_deref()
            .filter(|_| site.user_frame.as_ref() == Some(frame))
            .map(|source| escaped(source.trim())),
    };
    let left_out = frames.len().saturating_sub(MOST_FRAMES);
    // The innermost say what happened, the outermost where from.
    let inner = frames.len().min(MOST_FRAMES) / 2;
    let kept = frames.iter().enumerate().filter(|(i, _)| *i < inner || *i >= inner + left_out);
    let mut views: Vec<FrameView> = kept.map(|(_, frame)| view(frame)).collect();
    views.reverse();
    (views, left_out)
}

fn fix(fix: &Fix) -> FixView {
    FixView {
        title: escaped(&fix.title),
        strategy: escaped(&fix.strategy),
        why: escaped(&fix.why),
        before: code(&fix.before),
        after: code(&fix.after),
        caveat: escaped(&fix.caveat),
        here: fix.here.as_ref().map(|h| Rewrite { before: code(&h.before), after: code(&h.after) }),
        confirm: code(&fix.confirm),
    }
}

fn example(example: &Example) -> ExampleView {
    ExampleView {
        start_ns: example.start_ns,
        end_ns: example.end_ns,
        drain_ns: example.drain_ns,
        at: text::timestamp(example.start_ns),
        blocked: text::duration(example.blocked_ns),
        drain: text::duration(example.drain_ns),
        awaited: example.awaited.as_deref().map(symbol).unwrap_or_default(),
    }
}
