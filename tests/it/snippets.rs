//! Labelled snippets, from the export to the verdict: the marker comments of `snippets/*.py` say which operation a line
//! performs and what a senior reviewer would say of its wait; the capture is drawn from the marker, the source is the snippet.
//! Run with `--nocapture` for the table.

pub mod marker;
mod operation;
mod score;
mod trace;

use crate::look;
use marker::{Label, Mark, Snippet};
use score::Scored;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use sync_report::analysis::Options;
use sync_report::model::{Frame, Report, Site};
use sync_report::verdict::source::SourceRoot;
use sync_report::vocabulary::RuleId;

const FILES: &[(&str, &str)] = &[
    ("training", include_str!("snippets/training.py")),
    ("evaluation", include_str!("snippets/evaluation.py")),
    ("shapes", include_str!("snippets/shapes.py")),
    ("transfers", include_str!("snippets/transfers.py")),
    ("explicit", include_str!("snippets/explicit.py")),
    ("lines", include_str!("snippets/lines.py")),
    ("flow", include_str!("snippets/flow.py")),
    ("classes", include_str!("snippets/classes.py")),
    ("programs", include_str!("snippets/programs.py")),
    ("traps", include_str!("snippets/traps.py")),
];
const MAX_OPEN: usize = 5;

#[derive(Default)]
struct Outcome {
    wrong: String,
    with_source: Vec<Scored>,
    without_source: Vec<Scored>,
    snippets: usize,
    hard: usize,
    open: usize,
    edits: usize,
    decided: look::Decided,
}

#[test]
fn labelled_snippets_are_judged_as_a_reviewer_would() {
    let mut outcome = Outcome::default();
    for (file, text) in FILES {
        for snippet in marker::parse(text) {
            outcome.judge(file, &snippet);
        }
    }
    let Outcome { snippets, hard, open, edits, .. } = outcome;
    println!("{snippets} snippets, {hard} hard, {open} open; {edits} waits with an edit");
    for (title, scored) in
        [("with source", &outcome.with_source), ("without source", &outcome.without_source)]
    {
        println!("{}", score::table(title, scored));
        let (right, said) = score::band(scored, 0);
        assert!(right * 100 >= said * 95, "{title}: {right} of {said} verdicts at 0.9 and above are right");
    }
    assert!(outcome.wrong.is_empty(), "\n{}", outcome.wrong);
    assert!(outcome.snippets >= 80 && outcome.hard * 3 >= outcome.snippets && outcome.open <= MAX_OPEN);
    look::assert_counted("snippets", &outcome.decided);
}

impl Outcome {
    fn judge(&mut self, file: &str, snippet: &Snippet) {
        self.snippets += 1;
        self.hard += usize::from(snippet.hard);
        let (_folder, path) = trace::draw(snippet).write_temp();
        let sources = tempfile::tempdir().expect("a temporary folder");
        let python = sources.path().join(format!("{}.py", snippet.name));
        fs::write(python, snippet.lines.join("\n") + "\n").expect("a written snippet");
        let with = look::report_on(&path, &with_root(sources.path()));
        let without = look::report_on(&path, &look::options());
        for mark in &snippet.marks {
            assert!(mark.rest.is_empty(), "unknown options: {mark:?}");
            assert_eq!(mark.label.is_some(), operation::find(&mark.operation).waits(), "{mark:?}");
            let Some(label) = &mark.label else { continue };
            for stack in trace::stacks(snippet, mark) {
                let place = format!("{file}/{} line {}: {}", snippet.name, mark.line, mark.operation);
                let found = (site(&with, mark, &stack, snippet), site(&without, mark, &stack, snippet));
                let (Some(with), Some(without)) = found else {
                    let _ = writeln!(self.wrong, "{place}: no site");
                    continue;
                };
                self.count(&place, label, with);
                self.count(&place, label, without);
                self.with_source.push(scored(label, with));
                let edit = with.proposal.as_ref().and_then(|proposal| proposal.outcome.edit());
                self.edits += usize::from(edit.is_some());
                if let Some(edit) = edit {
                    let blocks: Vec<&str> = edit.blocks.iter().map(|block| block.text.as_str()).collect();
                    println!("{place}: {} {}\n{}", edit.safety, edit.kind, blocks.join("…\n"));
                    if label.class != "false" {
                        let _ = writeln!(self.wrong, "{place}: is needed, and has an edit");
                    }
                }
                self.without_source.push(scored(label, without));
                self.compare(&place, mark, with, without);
            }
        }
    }

    fn count(&mut self, place: &str, label: &Label, site: &Site) {
        let rule = site.evidence.first().map_or(RuleId::Other, |e| e.rule);
        let case = site.evidence.first().and_then(|e| e.case.clone()).unwrap_or_default();
        println!("calibration|{place}|{}|{rule}|{case}|{}", label.class, site.class);
        let said = site.class.to_string();
        if said != "unknown" && label.class != "unknown" {
            let right = said == label.class;
            self.decided.insert((case, place.to_owned(), said, right));
        }
    }

    fn compare(&mut self, place: &str, mark: &Mark, with: &Site, without: &Site) {
        let as_labelled = mark.expected() == Some(&said(with));
        if mark.todo {
            self.open += 1;
            if as_labelled {
                let _ = writeln!(self.wrong, "{place}: no longer open");
            }
        } else if !as_labelled {
            let expected = mark.expected().map_or("", |label| &label.kind);
            let _ = writeln!(self.wrong, "{place}: {expected} expected, with source {}", describe(with));
        }
        let fits = match &mark.without_source {
            Some(expected) => *expected == said(without),
            None => {
                said(without).class == "unknown"
                    || Some(said(without).class) == mark.label.as_ref().map(|l| l.class.clone())
            }
        };
        if !fits {
            let _ = writeln!(self.wrong, "{place}: without source {}", describe(without));
        }
    }
}

fn with_root(folder: &Path) -> Options {
    let root = SourceRoot { old: Some(trace::RECORDED.to_owned()), new: folder.to_owned() };
    Options { source_roots: vec![root], ..look::options() }
}

fn said(site: &Site) -> Label {
    Label { class: site.class.to_string(), kind: site.kind.to_string() }
}

fn scored(label: &Label, site: &Site) -> Scored {
    Scored { label: label.clone(), class: site.class.to_string(), confidence: site.confidence }
}

fn describe(site: &Site) -> String {
    let evidence: Vec<String> = site.evidence.iter().map(|e| format!("{} {}", e.rule, e.text)).collect();
    format!("{} {} {:.2}: {}", site.class, site.kind, site.confidence, evidence.join(" / "))
}

/// The site of a mark in one of its stacks: of several that fit, the one that blocks most.
fn site<'r>(
    report: &'r Report,
    mark: &Mark,
    stack: &[(String, String, i64)],
    snippet: &Snippet,
) -> Option<&'r Site> {
    let own = trace::recorded(snippet);
    let outwards = stack.iter().skip_while(|frame| frame.1 != own);
    let user: Vec<_> = outwards.filter(|frame| !frame.1.contains("site-packages")).collect();
    let method = operation::find(&mark.operation).method;
    let same = |a: &Frame, b: &(String, String, i64)| a.function == b.0 && i64::from(a.line) == b.2;
    let is_there = |site: &&Site| {
        let leads_there = |path: &Vec<&Frame>| {
            let frames = site.user_frame.iter().chain(path.iter().copied());
            path.len() + 1 == user.len() && frames.zip(&user).all(|(a, b)| same(a, b))
        };
        site.paths().iter().any(leads_there)
            && (!mark.chain || site.native.iter().any(|symbol| symbol.contains(method)))
    };
    report.sites.iter().filter(is_there).max_by_key(|site| site.blocked_ns)
}
