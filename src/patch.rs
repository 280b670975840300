//! Makes the edits of a report's sites, as patches of files.

use crate::model::edit::{Edit, Outcome, Refusal, Replacement, Safety};
pub use crate::model::patch::{Answer, Patch, PatchedFile};
use crate::model::{Frame, Report, Site};
pub use crate::verdict::source::apply;
use crate::verdict::source::{self, SourceTree, editable};
use crate::vocabulary::Class;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Default)]
pub struct EditChoice {
    /// Ids of sites; empty: all.
    pub sites: Vec<String>,
    /// Also edits that may change what the program computes or shows.
    pub with_unsafe: bool,
    /// Folders whose files may be edited: a capture may name any file of this machine.
    pub roots: Vec<PathBuf>,
}

impl EditChoice {
    fn may_edit(&self, path: &Path) -> bool {
        let Ok(path) = path.canonicalize() else { return false };
        self.roots.iter().filter_map(|root| root.canonicalize().ok()).any(|root| path.starts_with(root))
    }

    fn names(&self, site: &Site) -> bool {
        self.sites.is_empty() || self.sites.iter().any(|name| site.is_named(name))
    }
}

/// Makes the wanted edits of a report. A file whose result would not parse is left alone.
pub fn plan(report: &Report, sources: &SourceTree, wanted: &EditChoice) -> Patch {
    let mut patch = Patch::default();
    let mut files: BTreeMap<PathBuf, Edited<'_>> = BTreeMap::new();
    for site in report
        .sites
        .iter()
        .filter(|site| site.class != Class::True && site.allowed.is_none() && wanted.names(site))
    {
        let Some((frame, proposal)) = site.user_frame.as_ref().zip(site.proposal.as_ref()) else {
            patch.placeless.push(site.id.clone());
            continue;
        };
        let mut answer = answer(site, frame, &proposal.outcome);
        if let Outcome::Edit(edit) = &proposal.outcome {
            match editable(sources, &frame.file) {
                Err(reason) => answer.reason = Some(reason),
                Ok((path, _)) if !wanted.may_edit(&path) => answer.reason = Some(Refusal::Outside),
                Ok(_) if edit.safety == Safety::Unsafe && !wanted.with_unsafe => answer.is_unsafe = true,
                Ok((path, before)) => {
                    let recorded = frame.file.clone();
                    let (sites, edits) = Default::default();
                    let file = files.entry(path).or_insert(Edited { recorded, before, sites, edits });
                    answer.made = true;
                    file.sites.push(patch.sites.len());
                    if !file.edits.contains(&edit) {
                        file.edits.push(edit);
                    }
                }
            }
        }
        patch.sites.push(answer);
    }
    for (path, Edited { recorded, before, sites, edits }) in files {
        match make(&before, &edits) {
            Some(after) => {
                patch.files.push(PatchedFile { path, recorded, before, after, edits: edits.len() });
            }
            None => sites.iter().for_each(|&at| {
                (patch.sites[at].made, patch.sites[at].reason) = (false, Some(Refusal::Syntax));
            }),
        }
    }
    patch
}

struct Edited<'a> {
    recorded: String,
    before: String,
    /// Indices of the answers of sites with these edits.
    sites: Vec<usize>,
    edits: Vec<&'a Edit>,
}

fn answer(site: &Site, frame: &Frame, outcome: &Outcome) -> Answer {
    let reason = match outcome {
        Outcome::Edit(edit) => edit.mind,
        Outcome::Refused { reason, .. } => Some(*reason),
    };
    let (site, file, line) = (site.id.clone(), frame.file.clone(), frame.line);
    Answer { site, file, line, kind: outcome.kind(), reason, made: false, is_unsafe: false }
}

/// The text with the edits made; `None` where it would not parse.
pub(crate) fn make(before: &str, edits: &[&Edit]) -> Option<String> {
    let mut all: Vec<&Replacement> = edits.iter().flat_map(|edit| &edit.replacements).collect();
    all.sort();
    all.dedup();
    apply(before, &all).filter(|after| source::parses(after))
}
