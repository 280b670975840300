//! A report of bounded size, for whoever reads a limited text: language models, chat bots, logs.
//!
//! It takes less than [`LIMIT`] bytes whatever the capture holds. Texts are cut, a list ends where the next
//! entry would not fit, and omissions are counted. Keys and commands, which a cut would make wrong, are whole
//! or missing.

use super::saving::Finding;
use super::{answer, json};
use crate::model::edit::EditKind;
use crate::model::{
    Class, Evidence, Fix, Frame, Iterations, Kind, PatternId, Report, Rewrite, Site, Tool, Totals, Warning,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Upper bound in bytes: agents' tools cut answers at 25,000 tokens or less, and each token costs.
pub const LIMIT: usize = 20_000;
/// Bytes of a text as JSON writes it: a sentence of evidence, a line of code with its arguments.
const TEXT: usize = 240;
/// Bytes of a key or command.
const WHOLE: usize = 400;
/// Exports that are named; ranks have similar names.
const PROFILES: usize = 3;
/// Warnings at most, so that sites have more than half of the room.
const WARNINGS: usize = 8;

/// A report in less than 20,000 bytes.
#[derive(Serialize, JsonSchema)]
pub struct Brief {
    /// Version of this tree's layout: fields may be added, never renamed.
    pub schema_version: u32,
    /// What wrote it.
    pub tool: Tool,
    /// The answer in a sentence: the rank that comes late, else the saving with its range.
    pub finding: Option<String>,
    /// The first exports, as they were given.
    pub profiles: Vec<String>,
    /// Exports that are not named.
    pub profiles_omitted: usize,
    /// All sites together, listed or not.
    pub totals: Totals,
    /// The loop of the program, where one is known.
    pub iterations: Option<Iterations>,
    /// The sites that fit, in the order of `--sort`: by default those first that save most.
    pub sites: Vec<BriefSite>,
    /// Sites that are not listed.
    pub sites_omitted: usize,
    /// Waits of the exports that the filters leave out of `sites` and `totals`.
    pub waits_filtered_out: u64,
    /// What limits the report: the first of them.
    pub warnings: Vec<Warning>,
    /// Warnings that are not listed.
    pub warnings_omitted: usize,
}

/// A site in few words. `sync-report PROFILE --details ID` has the rest.
#[derive(Serialize, JsonSchema)]
pub struct BriefSite {
    /// Number by the first wait among all sites of the capture: "S1" waits first.
    pub id: String,
    /// What it is known by across runs; `null` where that is too long.
    pub key: Option<String>,
    /// File of the user's line, as recorded; `null` where no Python frame is known.
    pub file: Option<String>,
    /// Number of the user's line, from 1; 0 where it is not known.
    pub line: Option<u32>,
    /// Its function or method; without Python frames the method, range or call that stands for the site.
    pub function: String,
    /// Text of the line, where the source was at hand.
    pub source: Option<String>,
    /// The library's line that waits, as "FILE:LINE FUNCTION", where the user's line calls a library.
    pub library: Option<String>,
    /// Whether the wait can go.
    pub class: Class,
    /// Why it is of that class.
    pub kind: Kind,
    /// How sure the verdict is, 0 to 1.
    pub confidence: f64,
    /// The reason that decided.
    pub because: Option<Evidence>,
    /// Catalogue entry: `sync-report explain ID` shows it.
    #[schemars(with = "Option<String>")]
    pub pattern: Option<PatternId>,
    /// The call that blocks.
    pub api: String,
    /// How many waits.
    pub waits: u64,
    /// Waits inside iterations divided by iterations.
    pub per_iteration: Option<f64>,
    /// Whether it waits once in this capture, outside the loop, and so is no part of the saving of `totals`.
    pub once: bool,
    /// Host time inside the waits: not a saving.
    pub blocked_ns: i64,
    /// Device-idle time after the waits.
    pub drain_ns: i64,
    /// What fixing it saves of the run.
    pub saves_ns: i64,
    /// The same of one iteration, where iterations are known.
    pub saves_per_iteration_ns: Option<i64>,
    /// Lower end of the range of `saves_ns`.
    pub saves_low_ns: Option<i64>,
    /// Its upper end.
    pub saves_high_ns: Option<i64>,
    /// Whether the two savings are only known to be no more than that.
    pub saves_at_most: bool,
    /// What to do.
    pub fix: Option<BriefFix>,
}

/// What to do about a site.
#[derive(Serialize, JsonSchema)]
pub struct BriefFix {
    /// In few words.
    pub title: String,
    /// The site's own expression and its rewriting, where the source was at hand and one stands in the place of the other; else the
    /// catalogue entry has code.
    pub here: Option<Rewrite>,
    /// What to mind; empty where there is nothing.
    pub caveat: String,
}

pub fn in_brief(report: &Report) -> Brief {
    let mut brief = Brief {
        schema_version: report.schema_version,
        tool: report.tool.clone(),
        finding: answer::finding(report).and_then(finding),
        profiles: report.profiles.iter().take(PROFILES).map(|profile| end(&profile.path)).collect(),
        profiles_omitted: report.profiles.len().saturating_sub(PROFILES),
        totals: report.totals.clone(),
        iterations: report.iterations.clone(),
        sites: Vec::new(),
        sites_omitted: report.sites_omitted + report.sites.len(),
        waits_filtered_out: report.waits_filtered_out,
        warnings: report.warnings.iter().take(WARNINGS).map(warning).collect(),
        warnings_omitted: report.warnings.len().saturating_sub(WARNINGS),
    };
    brief.totals.replayed.iter_mut().for_each(|replayed| replayed.gpu = start(&replayed.gpu));
    brief.iterations.iter_mut().for_each(|iterations| iterations.source = start(&iterations.source));
    for found in &report.sites {
        brief.sites.push(site(found));
        if size(&brief) >= LIMIT {
            brief.sites.pop();
            break;
        }
        brief.sites_omitted -= 1;
    }
    brief
}

fn finding(found: Finding) -> Option<String> {
    let saved = found.lead + &found.rest;
    let late = found.late.map(|words| format!("{} {saved}", words.join(" ")));
    late.and_then(|words| whole(words.trim_end())).or_else(|| whole(&saved))
}

/// Bytes as printed.
fn size(brief: &Brief) -> usize {
    let mut text = Vec::new();
    // A Vec takes everything, and the tree has no maps whose keys could fail.
    json::write(brief, &mut text).map_or(usize::MAX, |()| text.len())
}

fn site(site: &Site) -> BriefSite {
    let at = site.location();
    let in_library = |frame: &Frame| end(&format!("{}:{} {}", frame.file, frame.line, frame.function));
    BriefSite {
        id: site.id.clone(),
        key: whole(&site.key),
        file: at.map(|frame| end(&frame.file)),
        line: at.map(|frame| frame.line),
        function: start(&at.map_or_else(|| site.place(), |frame| frame.function.clone())),
        source: site.source.as_deref().map(start),
        library: site.library_frame.as_ref().map(in_library),
        class: site.class,
        kind: site.kind,
        confidence: site.finite_confidence(),
        because: site.evidence.first().map(|e| Evidence::new(e.rule, start(&e.text))),
        pattern: site.pattern,
        api: start(&site.api),
        waits: site.waits,
        per_iteration: site.per_iteration,
        once: site.once,
        blocked_ns: site.blocked_ns,
        drain_ns: site.drain_ns,
        saves_ns: site.saves_ns(),
        saves_per_iteration_ns: site.saves().1,
        saves_low_ns: site.recoverable.as_ref().map(|saving| saving.low_ns),
        saves_high_ns: site.recoverable.as_ref().map(|saving| saving.high_ns),
        saves_at_most: site.promise().is_none(),
        fix: site.fix.as_ref().map(|own| fix(own, site)),
    }
}

fn fix(fix: &Fix, site: &Site) -> BriefFix {
    // Cut code is no code. An edit that reads several values in one copy replaces no single expression.
    let rewrite = |r: &Rewrite| Some(Rewrite { before: whole(&r.before)?, after: whole(&r.after)? });
    let kind = site.proposal.as_ref().and_then(|proposal| proposal.outcome.kind());
    let here = fix.here.as_ref().filter(|_| kind != Some(EditKind::ReadTogether)).and_then(rewrite);
    BriefFix { title: start(&fix.title), here, caveat: start(&fix.caveat) }
}

fn warning(Warning { code, message, fix }: &Warning) -> Warning {
    Warning { code: start(code).into(), message: start(message), fix: whole(fix).unwrap_or_default() }
}

/// Bytes of a character in JSON.
fn width(c: char) -> usize {
    match c {
        '"' | '\\' => 2,
        '\0'..='\x1f' => 6,
        c => c.len_utf8(),
    }
}

/// `None` where the text is longer than [`WHOLE`].
fn whole(text: &str) -> Option<String> {
    (text.chars().map(width).sum::<usize>() <= WHOLE).then(|| text.to_owned())
}

/// The first [`TEXT`] bytes of a text.
fn start(text: &str) -> String {
    let mut room = TEXT;
    let fits = |c: &char| room.checked_sub(width(*c)).map(|rest| room = rest).is_some();
    let kept: String = text.chars().take_while(fits).collect();
    if kept.len() < text.len() { kept + "…" } else { kept }
}

/// The last [`TEXT`] bytes: the end of a path tells it from others.
fn end(text: &str) -> String {
    let reversed: String = text.chars().rev().collect();
    start(&reversed).chars().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::sample;

    /// Every text of the report is as long and as hostile as an export allows.
    #[test]
    fn whatever_the_capture_holds_it_is_short() {
        for text in ["\u{1}\"\\".repeat(5_000), "名前 ".repeat(5_000), "a".repeat(5_000)] {
            let mut report = sample::sample();
            for site in &mut report.sites {
                site.frames.clear();
                for frame in site.user_frame.iter_mut().chain(&mut site.library_frame) {
                    (frame.file, frame.function) = (text.clone(), text.clone());
                }
                (site.key, site.api) = (text.clone(), text.clone());
                site.source = Some(text.clone());
                site.evidence.iter_mut().for_each(|e| e.text = text.clone());
                if let Some(fix) = &mut site.fix {
                    (fix.title, fix.caveat) = (text.clone(), text.clone());
                    fix.here = Some(Rewrite { before: text.clone(), after: text.clone() });
                }
            }
            report.profiles.iter_mut().for_each(|profile| profile.path = text.clone());
            let warning = Warning { code: text.clone().into(), message: text.clone(), fix: text.clone() };
            (report.warnings, report.profiles) =
                (vec![warning; 500], vec![report.profiles[0].clone(); 2_000]);
            report.sites = report.sites.iter().cycle().take(300).cloned().collect();
            if let Some(iterations) = &mut report.iterations {
                iterations.source = text.clone();
            }
            let brief = in_brief(&report);
            assert!(size(&brief) < LIMIT, "{}", size(&brief));
            assert!(brief.sites.len() >= 3, "{} sites", brief.sites.len());
            assert_eq!(brief.sites.len() + brief.sites_omitted, 300 + report.sites_omitted);
            assert_eq!((brief.profiles_omitted, brief.warnings_omitted), (1_997, 492));
            assert!(brief.sites.iter().all(|site| site.key.is_none()));
        }
    }

    #[test]
    fn a_short_report_is_whole() {
        let report = sample::sample();
        let brief = in_brief(&report);
        assert_eq!((brief.sites.len(), brief.sites_omitted), (report.sites.len(), report.sites_omitted));
        let keys: Vec<&String> = brief.sites.iter().filter_map(|site| site.key.as_ref()).collect();
        assert_eq!(keys, report.sites.iter().map(|site| &site.key).collect::<Vec<_>>());
        assert_eq!(brief.warnings, report.warnings);
    }

    #[test]
    fn texts_are_cut_where_they_say_least() {
        assert_eq!(start("short"), "short");
        assert!(end(&format!("{}/train.py", "a".repeat(900))).ends_with("/train.py"));
        assert!(start(&"é".repeat(900)).len() <= TEXT + "…".len());
    }
}
