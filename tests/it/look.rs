//! Running the library on a drawn export, and its results in words short enough to compare.

use crate::export::Export;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::Path;
use sync_report::analysis::pricing::{ResolvedScenario, Scenario};
use sync_report::analysis::{Options, Priced, Read};
use sync_report::cost::simulate::{Assumed, Draft, Program};
use sync_report::formats::{DETAILS, REPORT, Rendered, Setting};
use sync_report::model::{Report, Site};
use sync_report::profile::ids::OpId;
use sync_report::profile::ops::OpKind;
use sync_report::render::style::Style;
use sync_report::rules::calibration;
use sync_report::verdict::source::Recorded;
use sync_report::vocabulary::{Change, PatternId};
use sync_report::waits::{Found, Wait};
use tempfile::TempDir;
use typed_index_collections::TiVec;

/// Reads on one thread. Draws everything, so that tests cover drawing too. Prices as captured: drawn exports
/// hold no profiler's time. Reads sources where they were recorded.
pub fn options() -> Options {
    Options {
        threads: 1,
        timelines: Some(sync_report::model::timeline::WHOLE),
        as_captured: true,
        awaited: true,
        recorded: Recorded::All,
        ..Options::default()
    }
}

pub fn asking(fixes: &[(&str, Change)]) -> Options {
    let fixes = fixes.iter().map(|&(site, change)| (site.to_owned(), change)).collect();
    Options { scenario: Scenario { fixes, ..Scenario::default() }, ..options() }
}

pub fn report(e: &Export) -> Report {
    report_with(e, &options())
}

pub fn report_with(e: &Export, options: &Options) -> Report {
    let (_folder, path) = e.write_temp();
    report_on(&path, options)
}

pub fn report_on(path: &Path, options: &Options) -> Report {
    sync_report::report::run(&[path.to_owned()], options).expect("a report")
}

/// An analysed export whose file still exists.
pub struct Kept {
    analysed: Priced,
    _folder: TempDir,
}

impl Deref for Kept {
    type Target = Priced;

    fn deref(&self) -> &Priced {
        &self.analysed
    }
}

pub fn program(found: &Priced) -> Program {
    let mut program = Draft::new(&found.profile, &found.devices, &found.waits, &Assumed::default()).place(
        &found.profile,
        &found.devices,
        &found.waits,
        None,
    );
    let sites: Vec<_> = found.waits.iter().map(|w| vec![(w.call, w.copy_call)]).collect();
    program.mark(&TiVec::from(sites));
    program
}

pub fn analysed(e: &Export) -> Kept {
    let (folder, path) = e.write_temp();
    Kept { analysed: priced(&path), _folder: folder }
}

pub fn priced(path: &Path) -> Priced {
    let (read, mut program) = Read::new(path, &options()).expect("an export");
    let mut found = read.judge(&options()).expect("verdicts");
    let prices = found.price(program.as_mut(), 0.into(), &ResolvedScenario::default(), &options());
    found.with(prices)
}

/// Each wait as a line: `cudaStreamSynchronize 200..910 blocked 710 pending awaits 120..900`.
///
/// The span is the wait's own, from the start of its copy. Parts that do not apply are left out.
pub fn waits(e: &Export) -> Vec<String> {
    let found = analysed(e);
    found.waits.iter().map(|w| line(&found, w)).collect()
}

fn line(found: &Priced, wait: &Wait) -> String {
    let profile = &found.profile;
    let op = |op: OpId| format!("{}..{}", profile.ops.start(op), profile.ops.end(op));
    let mut words = vec![
        profile.calls.base_name(wait.call).to_string(),
        format!("{}..{}", wait.start, wait.end),
        format!("blocked {}", wait.blocked),
    ];
    if let Some(copy) = wait.copy {
        words.push(format!("{} {} {}", copy.direction, copy.bytes, copy.host_memory));
    }
    words.push(match wait.found {
        Found::Pending => "pending".into(),
        Found::Nothing => "nothing".into(),
        Found::Drained => "drained".into(),
        Found::Unknown => "unknown".into(),
        Found::Unseen => "unseen".into(),
    });
    words.extend(wait.awaited.map(|o| format!("awaits {}", op(o))));
    words.extend(wait.completes.map(|o| format!("completes {}", op(o))));
    words.extend(wait.device.map(|d| format!("gpu {}", found.devices.list[d].id)));
    words.extend(wait.not_for.map(|d| format!("not gpu {}", found.devices.list[d].id)));
    words.join(" ")
}

/// The ops of an export as `kernel 120..900`, in start order.
pub fn ops(found: &Priced) -> Vec<String> {
    let ops = &found.profile.ops;
    let name = |kind| match kind {
        OpKind::Kernel => "kernel",
        OpKind::Memcpy => "memcpy",
        OpKind::Memset => "memset",
        OpKind::GraphLaunch => "graph",
    };
    ops.ids().map(|op| format!("{} {}..{}", name(ops.kind(op)), ops.start(op), ops.end(op))).collect()
}

/// Each site as a line: `2 x cudaStreamSynchronize false upload C03 at train.py:18 step`.
pub fn sites(report: &Report) -> Vec<String> {
    report.sites.iter().map(site).collect()
}

pub fn only(report: &Report) -> &Site {
    assert_eq!(report.sites.len(), 1, "{:?}", sites(report));
    &report.sites[0]
}

pub fn site(s: &Site) -> String {
    let at = match &s.user_frame {
        Some(f) => format!("at {}:{} {}", f.file, f.line, f.function),
        None => format!("by {}", s.attribution),
    };
    let pattern = s.pattern.map_or("-", PatternId::as_str);
    format!("{} x {} {} {} {pattern} {at}", s.waits, s.api, s.class, s.kind)
}

/// `class kind rule` of every site, without repetition, for verdicts that do not depend on the grouping.
pub fn verdicts(report: &Report) -> Vec<String> {
    let rule = |s: &Site| s.evidence.first().map_or(String::new(), |e| e.rule.to_string());
    let mut all: Vec<String> =
        report.sites.iter().map(|s| format!("{} {} {}", s.class, s.kind, rule(s))).collect();
    all.sort();
    all.dedup();
    all
}

/// The report in every format, the export's path replaced so that copies of a file compare equal.
pub fn everything(report: &Report) -> String {
    let mut report = report.clone();
    for warning in &mut report.warnings {
        warning.fix.clear();
        for profile in &report.profiles {
            warning.message = warning.message.replace(&profile.path, "PATH");
        }
    }
    for profile in &mut report.profiles {
        profile.path = "PATH".to_owned();
    }
    let formats = ["json", "csv", "html"].map(|format| printed(&report, format, &Setting::default()));
    table(&report, Some(120)) + &formats.concat()
}

pub fn table(report: &Report, width: Option<usize>) -> String {
    let style = Style { width, color: false };
    printed(report, "table", &Setting { style, wide: true, ..Setting::default() })
}

/// `format` may also be `details`.
pub fn printed(report: &Report, format: &str, with: &Setting) -> String {
    let found = Rendered { report: report.clone(), captures: Vec::new(), waits: Vec::new() };
    let mut all = REPORT.iter().chain([DETAILS]);
    let format = all.find(|known| known.name == format).expect("a known format");
    let mut out = Vec::new();
    format.render(&found, with, &mut out).expect("a Vec takes everything");
    String::from_utf8(out).expect("renderers write UTF-8")
}

/// (case of a rule, labelled place, class, whether the class is right)
pub type Decided = BTreeSet<(String, String, String, bool)>;

/// Counts of right and wrong verdicts per case equal the corpus's committed counts.
pub fn assert_counted(corpus: &str, decided: &Decided) {
    let mut counts: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for (case, _, said, right) in decided {
        let (good, bad) = counts.entry(format!("{case} {said}")).or_default();
        *if *right { good } else { bad } += 1;
    }
    // Weak rules decide nothing: the script alone counts them.
    let decides = |count: &calibration::Count| count.corpus == corpus && !count.case.starts_with('X');
    let committed = calibration::counts().filter(decides);
    let committed: BTreeMap<_, _> = committed
        .map(|c| (format!("{} {}", c.case, c.said.map_or("", |said| said.as_str())), (c.right, c.wrong)))
        .collect();
    assert_eq!(counts, committed, "src/rules/calibration.csv: count again with scripts/calibrate.py");
}
