//! The formats of every command: what can be typed, what it needs of the analysis, and what prints it.
//!
//! A format is one line in one of the lists here. The command line takes from the line what can be typed, what the
//! analysis has to find, and how many sites are listed.

pub mod schema;
mod summary;

use crate::analysis::Priced;
use crate::frame::WaitTable;
use crate::knowledge::explain::{self, Entries};
use crate::model::Report;
use crate::model::check::CheckReport;
use crate::model::diff::DiffReport;
use crate::model::doctor::Diagnosis;
use crate::model::lint::LintReport;
use crate::model::replay::bench::Bench;
use crate::model::replay::measured::Measured;
use crate::model::replay::plan::Plan;
use crate::model::timeline::Timeline;
use crate::model::trial::Trial;
use crate::ranks::parquet;
use crate::ranks::tables::Tables;
use crate::render::diff::Unchanged;
use crate::render::document::{Block, markdown, terminal};
use crate::render::markdown_text::COMMENT;
use crate::render::report::Form;
use crate::render::sarif::Described;
use crate::render::style::Style;
use crate::render::{
    bench, brief, check, csv, details, diff, doctor, github, html, json, lint, replay, report, sarif, trial,
};
use crate::repository::Repository;
use crate::vocabulary::PatternId;
use crate::{catalogue, knowledge, perfetto};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Sites listed for people without `--top`.
pub const TOP: usize = 20;
/// Sites of a page, which has a filter, without `--top`; some 5 KB each.
pub const PAGE_TOP: usize = 200;

pub const REPORT: &[Format<Rendered>] = &[
    Format::new("table", |found: &Rendered, with, out| {
        screen(&report::document(&found.report, with.form(), with.capture.as_deref()), with, out)
    }),
    Format::new("json", |found: &Rendered, _, out| json::write(&found.report, out))
        .spread()
        .awaited()
        .brief()
        .top(0),
    Format::new("csv", |found: &Rendered, _, out| csv::render(&found.report, out)).top(0),
    Format::new("parquet", |_, _, _| Ok(()))
        .folder(|found: &Rendered, folder| parquet::write(&found.report, &found.waits, folder))
        .help("Four tables for data frames (waits, sites, collectives, ranks) in the folder that -o names")
        .top(0),
    Format::new("markdown", |found: &Rendered, _, out| comment(&review(&found.report), out))
        .help("For a pull request: summary, table, collapsed details, in the size of a comment"),
    Format::new("github", |found: &Rendered, with, out| {
        let left = github::render(&found.report, &with.paths(), out)?;
        summary::append(with, &review(&found.report), left, out)
    })
    .help("GitHub annotations, ten warnings and ten notices; all sites go into the step's summary")
    .top(0),
    Format::new("sarif", |found: &Rendered, with, out| {
        sarif::render(&found.report, &with.paths(), &described, out)
    })
    .help("SARIF 2.1.0 for code scanning: avoidable and open waits")
    .top(0),
    Format::new("perfetto", |found: &Rendered, with, out| {
        let left = perfetto::render(&found.report, &found.captures, perfetto::MOST, out)?;
        left.as_deref().map(with.say);
        Ok(())
    })
    .help("A trace for ui.perfetto.dev and chrome://tracing: waits with their lines above GPUs and threads")
    .top(0)
    .captures(),
    Format::new("html", |found: &Rendered, _, out| html::render(&found.report, out))
        .help("One page for a browser: timeline, sites, stacks, fixes; needs no network")
        .top(PAGE_TOP)
        .awaited()
        .timelines(),
];

/// One whole site of a report, for `--details`.
pub const DETAILS: &Format<Rendered> = &Format::new("details", |found: &Rendered, with, out| {
    let site = details::document(&found.report, with.site.as_deref().unwrap_or_default());
    site.map_or(Ok(()), |site| screen(&site, with, out))
})
.awaited()
.top(0);

pub const MERGED: &[Format<Merged>] = &[
    Format::new("table", |merged: &Merged, with, out| {
        screen(&report::document(&merged.report, with.form(), None), with, out)
    }),
    Format::new("json", |merged: &Merged, _, out| json::write(&merged.report, out)).top(0),
    Format::new("markdown", |merged: &Merged, _, out| comment(&review(&merged.report), out)),
    Format::new("html", |merged: &Merged, _, out| html::render(&merged.report, out)).top(PAGE_TOP),
    Format::new("parquet", |_, _, _| Ok(()))
        .folder(|merged: &Merged, folder| parquet::write_merged(&merged.report, &merged.tables, folder))
        .help("The tables of all ranks in the folder that -o names")
        .top(0),
];
/// A report of bounded size, for `--format json --brief`.
pub const BRIEF: &Format<Rendered> =
    &Format::new("brief", |found: &Rendered, _, out| json::write(&brief::in_brief(&found.report), out))
        .top(0);

pub const DIFF: &[Format<Compared>] = &[
    Format::new("table", |found: &Compared, with, out| {
        let unchanged = if with.all { Unchanged::Listed } else { Unchanged::Left };
        screen(&diff::document(&found.report, unchanged), with, out)
    }),
    Format::new("markdown", |found: &Compared, _, out| {
        comment(&diff::document(&found.report, Unchanged::Folded), out)
    }),
    Format::new("json", |found: &Compared, _, out| json::write(&found.report, out)),
    Format::new("html", |found: &Compared, _, out| {
        html::render_diff(&found.report, found.drawings.each_ref().map(|drawn| &drawn[..]), out)
    })
    .help("One page for a browser: both timelines aligned by iteration, what changed; needs no network")
    .timelines(),
];

pub const CHECK: &[Format<CheckReport>] = &[
    Format::new("table", |outcome, with, out| screen(&check::document(outcome), with, out)),
    Format::new("markdown", |outcome, _, out| comment(&check::document(outcome), out)),
    Format::new("json", |outcome, _, out| json::write(outcome, out)),
    Format::new("github", |outcome: &CheckReport, with, out| {
        let left = check::github(outcome, &with.paths(), out)?;
        summary::append(with, &check::document(outcome), left, out)
    })
    .help("GitHub annotations; what is more than a step may have goes into its summary"),
    Format::new("sarif", |outcome, with, out| check::sarif(outcome, &with.paths(), out)),
    Format::new("junit", |outcome, with, out| check::junit::write(outcome, &with.paths(), out))
        .help("JUnit XML, as GitLab, Jenkins and Azure show it: a test per rule, a failure per breach"),
];

pub const LINT: &[Format<LintReport>] = &[
    Format::new("table", |report, with, out| screen(&lint::document(report), with, out)),
    Format::new("json", |report, _, out| json::write(report, out)),
    Format::new("markdown", |report, _, out| comment(&lint::document(report), out)),
    Format::new("github", |report: &LintReport, with, out| {
        let left = lint::github(report, &with.paths(), out)?;
        summary::append(with, &lint::document(report), left, out)
    })
    .help("GitHub annotations, ten warnings and ten notices; all lines go into the step's summary"),
    Format::new("sarif", |report, with, out| lint::sarif(report, &with.paths(), &described, out))
        .help("SARIF 2.1.0 for code scanning: avoidable and undecided lines"),
];

pub const REPLAY: &[Format<(Plan, Measured)>] = &[
    Format::new("table", |(plan, measured), with, out| screen(&replay::document(plan, measured), with, out)),
    Format::new("json", |(_, measured), _, out| json::write(measured, out)),
    Format::new("markdown", |(plan, measured), _, out| comment(&replay::document(plan, measured), out)),
];

pub const TRY: &[Format<Trial>] = &[
    Format::new("table", |found, with, out| screen(&trial::document(found), with, out)),
    Format::new("json", |found, _, out| json::write(found, out)),
    Format::new("markdown", |found, _, out| comment(&trial::document(found), out)),
];

pub const EXPLAIN: &[Format<Entries>] = &[
    Format::new("text", |found, with, out| write!(out, "{}", explain::text(found, with.style))),
    Format::new("json", |found, _, out| json::write(&knowledge::tree(found), out)),
];

pub const DOCTOR: &[Format<Diagnosis>] = &[
    Format::new("table", |found, with, out| screen(&doctor::document(found), with, out)),
    Format::new("json", |found, _, out| json::write(found, out)),
];

pub const BENCH: &[Format<Bench>] = &[
    Format::new("table", |bench, with, out| screen(&bench::document(bench), with, out)),
    Format::new("json", |bench, _, out| json::write(bench, out)),
    Format::new("markdown", |bench, _, out| comment(&bench::document(bench), out)),
];

/// For a terminal or a pipe.
fn screen(blocks: &[Block], with: &Setting, out: &mut dyn Write) -> io::Result<()> {
    match &*terminal::text(blocks, &with.style) {
        "" => Ok(()),
        text => writeln!(out, "{text}"),
    }
}

/// As Markdown, in the size of a comment.
fn comment(blocks: &[Block], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}", markdown::text(blocks, COMMENT))
}

pub(crate) fn described(id: PatternId) -> Described {
    let catalogue::Pattern { title, why, fix, .. } = *catalogue::entry(id);
    let catalogue::Fix { before, after, alternatives, caveat, .. } = fix;
    Described { title, why, before, after, alternatives, caveat }
}

fn review(report: &Report) -> Vec<Block> {
    report::document(report, Form::Review, None)
}

/// A report, with its exports for a format that shows single waits.
pub struct Rendered {
    pub report: Report,
    /// Empty unless the format asks for them.
    pub captures: Vec<Priced>,
    /// The waits of each export; empty unless the format writes them as a table.
    pub waits: Vec<WaitTable>,
}

pub struct Merged {
    /// Lists no rank's own sites.
    pub report: Report,
    pub tables: Tables,
}

pub struct Compared {
    pub report: DiffReport,
    /// Of BEFORE and of AFTER; none unless the format asks for them.
    pub drawings: [Vec<Timeline>; 2],
}

/// Printing options of the command line.
pub struct Setting {
    pub style: Style,
    /// Holds the files of annotations and SARIF.
    pub repository: Repository,
    /// The file that the summary of a GitHub step is appended to.
    pub step_summary: Option<PathBuf>,
    /// To show whole.
    pub site: Option<String>,
    /// NVTX ranges to be captured as a CUDA graph.
    pub capture: Option<String>,
    /// Whether the report's table has all columns, totals and warnings.
    pub wide: bool,
    /// Whether a comparison also lists unchanged sites.
    pub all: bool,
    /// Takes a sentence for the user that is no part of the result.
    pub say: fn(&str),
}

impl Setting {
    fn paths(&self) -> impl Fn(&str) -> Option<String> + '_ {
        |file| self.repository.path(file)
    }

    fn form(&self) -> Form {
        if self.wide { Form::Wide } else { Form::Screen }
    }
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            style: Style::default(),
            repository: Repository::new(".".into(), Vec::new()),
            step_summary: None,
            site: None,
            capture: None,
            wide: false,
            all: false,
            say: |_| (),
        }
    }
}

type Render<T> = fn(&T, &Setting, &mut dyn Write) -> io::Result<()>;

pub struct Format<T> {
    pub name: &'static str,
    /// For `--help`; empty where the name says all.
    pub help: &'static str,
    /// Sites listed without `--top`; 0 for all.
    pub top: usize,
    /// Shows how costs vary within a capture.
    pub spread: bool,
    /// Shows the work that waits waited for.
    pub awaited: bool,
    /// Has the form [`BRIEF`].
    pub brief: bool,
    /// Draws the captures.
    pub timelines: bool,
    /// Needs the analysed exports, which then stay in memory.
    pub captures: bool,
    /// Writes files into a folder, in place of `render`.
    pub folder: Option<fn(&T, &Path) -> anyhow::Result<()>>,
    render: Render<T>,
}

macro_rules! asks_for {
    ($($name:ident)+) => {$(
        const fn $name(mut self) -> Self {
            self.$name = true;
            self
        }
    )+};
}

impl<T> Format<T> {
    const fn new(name: &'static str, render: Render<T>) -> Self {
        Self {
            name,
            help: "",
            top: TOP,
            spread: false,
            awaited: false,
            brief: false,
            timelines: false,
            captures: false,
            folder: None,
            render,
        }
    }

    const fn help(mut self, help: &'static str) -> Self {
        self.help = help;
        self
    }

    const fn top(mut self, top: usize) -> Self {
        self.top = top;
        self
    }

    asks_for! { spread awaited brief timelines captures }

    const fn folder(mut self, write: fn(&T, &Path) -> anyhow::Result<()>) -> Self {
        self.folder = Some(write);
        self
    }

    /// # Errors
    /// [`io::Error`] of `out`, or of the file that a step's summary goes to.
    pub fn render(&self, tree: &T, with: &Setting, out: &mut dyn Write) -> io::Result<()> {
        (self.render)(tree, with, out)
    }
}
