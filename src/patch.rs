//! The edits of a report's sites as patches of files: chosen, held against each other, applied.

use crate::model::edit::{Edit, EditKind, Outcome, Refusal, Replacement, Safety};
use crate::model::{Frame, Report, Site};
use crate::verdict::source::{self, SourceTree};
use crate::vocabulary::Class;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which edits are wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Ids of sites; empty: all.
    pub sites: Vec<String>,
    /// Edits too that may change what the program computes or shows.
    pub with_unsafe: bool,
}

impl Wanted {
    fn names(&self, site: &Site) -> bool {
        self.sites.is_empty() || self.sites.iter().any(|id| id.eq_ignore_ascii_case(&site.id))
    }
}

/// What is to be changed, and what is not.
#[derive(Debug, Default)]
pub struct Patch {
    /// Files to change, by path.
    pub files: Vec<PatchedFile>,
    /// The avoidable sites that were asked for, in the report's order, with what becomes of each.
    pub sites: Vec<Answer>,
}

/// A file with all its edits made.
#[derive(Debug)]
pub struct PatchedFile {
    /// On this machine.
    pub path: PathBuf,
    /// As the capture names it.
    pub recorded: String,
    /// As it is.
    pub before: String,
    /// As it is to be.
    pub after: String,
    /// How many edits were made; several sites may ask for one.
    pub edits: usize,
}

/// What becomes of a site.
#[derive(Debug)]
pub struct Answer {
    /// Its id.
    pub site: String,
    /// Its file, as the capture names it, and line.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// What the edit does, where one was looked at.
    pub kind: Option<EditKind>,
    /// Why there is no edit, or what an unsafe one may change; `None`: a safe edit.
    pub reason: Option<Refusal>,
    /// Whether it is in the patch.
    pub made: bool,
    /// Whether there is an edit that was not wanted because it may change something.
    pub is_unsafe: bool,
}

/// Chooses the edits of a report and makes them.
///
/// Definition: a site's edit is taken if it is wanted, and safe or unsafe ones are wanted; if every frame that the capture has
/// of its file runs on the line that it names (else the file is not what ran); if no site of the same line needs what the
/// edit removes; and if it touches no edit of a site ranked before it. Equal edits are one. A file whose result would not
/// parse is left alone.
/// Cost: files × frames in them, and sites × sites of a line.
pub fn plan(report: &Report, sources: &SourceTree, wanted: &Wanted) -> Patch {
    let mut patch = Patch::default();
    let mut files: BTreeMap<PathBuf, Vec<(usize, &Edit)>> = BTreeMap::new();
    let mut texts: FxHashMap<PathBuf, (String, String)> = FxHashMap::default();
    let frames = frames(report);
    for site in report.sites.iter().filter(|site| site.class != Class::True && wanted.names(site)) {
        let Some((frame, proposal)) = site.user_frame.as_ref().zip(site.proposal.as_ref()) else { continue };
        let mut answer = answer(site, frame, &proposal.outcome);
        if let Outcome::Edit(edit) = &proposal.outcome {
            let found = editable(sources, &frames, &frame.file).and_then(|found| match () {
                _ if disputed(report, site, edit) => Err(Refusal::Disputed),
                _ if !is_whole(report, site, edit) => Err(Refusal::Reads),
                _ => Ok(found),
            });
            match found {
                Err(reason) => answer.reason = Some(reason),
                Ok(_) if edit.safety == Safety::Unsafe && !wanted.with_unsafe => answer.is_unsafe = true,
                Ok((path, text)) => {
                    let taken = files.entry(path.clone()).or_default();
                    texts.entry(path).or_insert_with(|| (frame.file.clone(), text));
                    if taken.iter().any(|(_, other)| collide(other, edit)) {
                        answer.reason = Some(Refusal::Overlap);
                    } else {
                        answer.made = true;
                        taken.push((patch.sites.len(), edit));
                    }
                }
            }
        }
        patch.sites.push(answer);
    }
    for (path, edits) in files {
        let Some((recorded, before)) = texts.remove(&path) else { continue };
        match make(&before, edits.iter().map(|(_, edit)| *edit)) {
            Some(after) if after == before => {}
            Some(after) => {
                let again = |at: usize| edits[..at].iter().any(|(_, edit)| *edit == edits[at].1);
                let edits = (0..edits.len()).filter(|&at| !again(at)).count();
                patch.files.push(PatchedFile { path, recorded, before, after, edits });
            }
            None => edits.iter().for_each(|&(at, _)| {
                (patch.sites[at].made, patch.sites[at].reason) = (false, Some(Refusal::Syntax));
            }),
        }
    }
    patch
}

fn answer(site: &Site, frame: &Frame, outcome: &Outcome) -> Answer {
    let (kind, reason) = match outcome {
        Outcome::Edit(edit) => (Some(edit.kind), edit.mind),
        Outcome::Refused { kind, reason } => (*kind, Some(*reason)),
    };
    let (site, file, line) = (site.id.clone(), frame.file.clone(), frame.line);
    Answer { site, file, line, kind, reason, made: false, is_unsafe: false }
}

/// The lines that the capture has of each file, with their functions.
fn frames(report: &Report) -> FxHashMap<&str, Vec<(u32, &str)>> {
    let mut all: FxHashMap<&str, Vec<(u32, &str)>> = FxHashMap::default();
    for frame in report.sites.iter().flat_map(Site::all_frames).filter(|frame| frame.line > 0) {
        let of_file = all.entry(&frame.file).or_default();
        if !of_file.contains(&(frame.line, &frame.function)) {
            of_file.push((frame.line, &frame.function));
        }
    }
    all
}

/// The file, if it is what ran as far as the capture tells.
fn editable(
    sources: &SourceTree,
    frames: &FxHashMap<&str, Vec<(u32, &str)>>,
    recorded: &str,
) -> Result<(PathBuf, String), Refusal> {
    let found = sources.editable(recorded)?;
    let ran = |&(line, function): &(u32, &str)| source::line(sources, recorded, line, function).is_some();
    if frames.get(recorded).is_some_and(|frames| frames.iter().all(ran)) {
        Ok(found)
    } else {
        Err(Refusal::Stale)
    }
}

/// Whether another site of the line waits for what the edit would no longer wait for: it is not avoidable, and of the same
/// expression or of none that is known.
fn disputed(report: &Report, site: &Site, edit: &Edit) -> bool {
    let expression = |site: &Site| site.proposal.as_ref().map_or(String::new(), |p| p.expression.clone());
    let own = expression(site);
    report.sites.iter().filter(|other| other.user_frame == site.user_frame && other.key != site.key).any(
        |other| {
            let theirs = expression(other);
            let alike = theirs.is_empty() || own.contains(&theirs) || theirs.contains(&own);
            other.class != Class::False && (alike || edit.kind == EditKind::Delete)
        },
    )
}

/// Whether each line that the edit takes together has an avoidable site with the same edit.
fn is_whole(report: &Report, site: &Site, edit: &Edit) -> bool {
    let place = |site: &Site| site.user_frame.as_ref().map(|frame| (frame.file.clone(), frame.line));
    let own = place(site).map(|(file, _)| file);
    let same = |other: &Site| other.proposal.as_ref().and_then(|p| p.outcome.edit()) == Some(edit);
    let lines: Vec<(String, u32)> =
        report.sites.iter().filter(|other| same(other)).filter_map(place).collect();
    edit.lines.iter().all(|line| lines.iter().any(|(file, at)| at == line && Some(file) == own.as_ref()))
}

/// Whether two edits cannot both be made: they touch the same place, and differ there.
fn collide(one: &Edit, other: &Edit) -> bool {
    let touch = |a: &Replacement, b: &Replacement| a != b && a.start <= b.end && b.start <= a.end;
    one.replacements.iter().any(|a| other.replacements.iter().any(|b| touch(a, b)))
}

/// The text with the edits made; `None` where it would not parse.
fn make<'a>(before: &str, edits: impl Iterator<Item = &'a Edit>) -> Option<String> {
    let mut all: Vec<&Replacement> = edits.flat_map(|edit| &edit.replacements).collect();
    all.sort();
    all.dedup();
    let mut after = apply(before, &all)?;
    for line in source::unused_imports(before, &after).into_iter().rev() {
        after.replace_range(line, "");
    }
    source::parses(&after).then_some(after)
}

/// Ascending replacements made.
fn apply(before: &str, all: &[&Replacement]) -> Option<String> {
    let (mut after, mut at) = (String::with_capacity(before.len()), 0);
    for one in all {
        let (start, end) = (one.start as usize, one.end as usize);
        after.push_str(before.get(at..start)?);
        after.push_str(&one.text);
        at = end;
    }
    after.push_str(before.get(at..)?);
    Some(after)
}
