//! The default command: the report.

use super::args::{self, Format, ReportArgs, SelectArgs, SharedArgs};
use super::{input, output, progress, summary};
use anyhow::{Result, bail};
use std::io::Write;
use std::process::ExitCode;
use sync_report::analysis::filter::Filter;
use sync_report::analysis::pricing::WhatIf;
use sync_report::analysis::{self, Analysed, Options, Sort};
use sync_report::cost::simulate::Assumed;
use sync_report::replay::constants::Constants;
use sync_report::replay::results;
use sync_report::report::{Report, csv, details, github, html, json, markdown, sarif, table};
use sync_report::repository::Repository;
use sync_report::sites::frames::PathRules;
use sync_report::vocabulary::Class;
use sync_report::{doctor, perfetto, text, timeline};

/// Sites listed for people, where `--top` does not say.
const TOP: usize = 20;
/// Sites of a page, which has a filter, where `--top` does not say. They take some 5 KB each.
const PAGE_TOP: usize = 200;

pub fn run(args: ReportArgs) -> Result<ExitCode> {
    output::refuse_input(&args.output, &args.profiles)?;
    let exports = input::exports(&args.profiles, &args.shared)?;
    output::refuse_input(&args.output, &exports.paths)?;
    output::refuse_input(&args.output, args.saving.replay_results.as_slice())?;
    output::refuse_input(&args.output, args.saving.constants.as_slice())?;
    let mut options = configured(&args, exports.paths.len())?;
    // A file that is no result is said before the export is read.
    let results = args.saving.replay_results.as_ref();
    let results = results.map(|path| results::read(path).map(|read| (path, read))).transpose()?;
    let top = options.top;
    if results.is_some() {
        options.top = 0; // a replayed site may be among those that are cut
    }
    let (mut report, whole) = match args.format {
        Format::Perfetto => analysis::run_whole(&exports.paths, &options)?,
        _ => (analysis::run(&exports.paths, &options)?, Vec::new()),
    };
    if let Some((path, measured)) = &results {
        results::embed(&mut report, measured, path)?;
        report.cut(top);
    }
    options.progress = None; // the bar goes before the report comes
    // Before the output is opened: a mistyped site must not empty the file of the last report.
    if let Some(site) = args.details.as_deref().filter(|site| report.site(site).is_none()) {
        bail!("no site {site} in this report; it has {}", sites(&report));
    }
    let mut out = output::Output::open(&args.output, &args.shared)?;
    render(&args, &report, &whole, &mut out)?;
    out.finish()?;
    Ok(exit_code(&report))
}

/// What was typed, for a report on `exports` exports.
fn configured(args: &ReportArgs, exports: usize) -> Result<Options> {
    let mut options = options(&args.select, &args.shared);
    options.classes = args.list.class.iter().map(|c| class(*c)).collect();
    options.sort = sort(args.list.sort);
    options.top = match (&args.details, args.format) {
        (Some(_), _) => 0,
        (None, Format::Github | Format::Sarif | Format::Perfetto) => args.list.top.unwrap_or(0),
        (None, Format::Html) => args.list.top.unwrap_or(PAGE_TOP),
        _ => args.list.top.unwrap_or(TOP),
    };
    options.without_spread = args.format != Format::Json || args.details.is_some();
    options.capture = args.graph_ready.clone();
    let page = args.format == Format::Html && args.details.is_none();
    options.timelines = page.then_some(timeline::WHOLE);
    options.simulate_up_to = args.saving.simulate.then_some(usize::MAX);
    options.what_if =
        WhatIf { assume_fixed: args.saving.assume_fixed.clone(), fixes: args.saving.fix.clone() };
    let timing = args.saving.timing.iter().cloned().collect::<Vec<_>>();
    let timing = input::exports(&timing, &args.shared)?;
    options.timing = timing.paths.first().cloned();
    if options.timing.is_some() && exports > 1 {
        bail!("--timing goes with one profile; {exports} were given");
    }
    if let Some(path) = &args.saving.constants {
        options.assumed = (&Constants::read(path)?).into();
    }
    Ok(options)
}

/// Writes the report in the format asked for; `whole`: the exports themselves, for formats that show single waits.
fn render(args: &ReportArgs, report: &Report, whole: &[Analysed], out: &mut output::Output) -> Result<()> {
    let style = out.style();
    match (&args.details, args.format) {
        (Some(site), _) => {
            details::render(report, site, &style, out.writer())?;
        }
        (None, Format::Table) => {
            if let Some(range) = &args.graph_ready {
                writeln!(out.writer(), "{}\n", graph_ready(report, range))?;
            }
            table::render(report, &style, out.writer())?;
        }
        (None, Format::Json) => json::render(report, out.writer())?,
        (None, Format::Csv) => csv::render(report, out.writer())?,
        (None, Format::Markdown) => markdown::render(report, out.writer())?,
        (None, Format::Sarif) => sarif::render(report, &repository(args), out.writer())?,
        (None, Format::Perfetto) => {
            let left = perfetto::render(report, whole, perfetto::MOST, out.writer())?;
            if let Some(sentence) = left.sentence().filter(|_| !args.shared.quiet) {
                let _ = writeln!(std::io::stderr(), "sync-report: {sentence}");
            }
        }
        (None, Format::Github) => {
            let left = github::render(report, &repository(args), out.writer())?;
            summary::append(|limit| markdown::text_of(report, limit), left, out.writer())?;
        }
        (None, Format::Html) => html::render(report, out.writer())?,
    }
    Ok(())
}

fn repository(args: &ReportArgs) -> Repository {
    Repository::new(args.repository.repository.clone(), args.select.source_root.clone())
}

/// The answer to `--graph-ready`, in front of the table of sites.
fn graph_ready(report: &Report, range: &str) -> String {
    let range = text::escape_terminal(range);
    match report.totals.sites {
        0 => format!("No wait keeps `{range}` from being captured as a CUDA graph."),
        n => format!(
            "{} of waiting keep `{range}` from being captured as a CUDA graph:",
            text::counted(n, "place")
        ),
    }
}

fn sites(report: &Report) -> String {
    match report.sites.last() {
        Some(last) => format!("S1 to {}", last.id),
        None => "no sites".to_owned(),
    }
}

/// 2 where rows of the export were damaged: one sentence each on stderr, after the report of the rest.
pub fn exit_code(report: &Report) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for warning in report.warnings.iter().filter(|w| w.code.starts_with(doctor::DAMAGED)) {
        let advice = format!("{}; export it again with: {}", warning.message, warning.fix);
        // Where stderr is closed there is nobody to tell, but the code still says it.
        let _ = writeln!(std::io::stderr(), "sync-report: {}", text::escape_terminal(&advice));
        code = ExitCode::from(2);
    }
    code
}

/// What was typed, as the library wants it: all sites, in the usual order.
pub fn options(select: &SelectArgs, shared: &SharedArgs) -> Options {
    Options {
        threads: threads(shared),
        source_roots: select.source_root.clone(),
        capture: None,
        rules: PathRules { user: select.user_path.clone(), library: select.library_path.clone() },
        filter: Filter {
            nvtx: select.nvtx.clone(),
            process: select.process,
            thread: select.thread.clone(),
            device: select.device,
            from: select.from,
            to: select.to,
        },
        classes: Vec::new(),
        sort: Sort::default(),
        top: 0,
        simulate_up_to: None,
        what_if: WhatIf::default(),
        assumed: Assumed::default(),
        timing: None,
        timelines: None,
        without_spread: false,
        progress: progress::bar(shared.quiet),
    }
}

pub fn threads(shared: &SharedArgs) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    shared.threads.map_or_else(all, usize::from)
}

fn class(class: args::Class) -> Class {
    match class {
        args::Class::False => Class::False,
        args::Class::True => Class::True,
        args::Class::Unknown => Class::Unknown,
    }
}

fn sort(sort: args::Sort) -> Sort {
    match sort {
        args::Sort::Drain => Sort::Drain,
        args::Sort::Blocked => Sort::Blocked,
        args::Sort::Waits => Sort::Waits,
        args::Sort::Max => Sort::Max,
        args::Sort::Location => Sort::Location,
        args::Sort::Fix => Sort::Fix,
    }
}
