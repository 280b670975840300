//! Edits of sites, and the conflicts between them.

use crate::model::edit::{Edit, EditKind, Outcome, Proposal, Refusal};
use crate::model::{Frame, Site};
use crate::verdict::site::Site as FoundSite;
use crate::verdict::source::Reading;
use crate::vocabulary::{Class, Kind, Strategy};
use rustc_hash::{FxHashMap, FxHashSet};

/// The edit of a site's source, or the reason for none; `None` without a line of the user.
pub fn proposal(site: &FoundSite) -> Option<Proposal> {
    let reading = site.reading.as_ref();
    let outcome = match (site.verdict.class, reading) {
        _ if site.bundle.user_frame().is_none() => return None,
        (Class::True, _) => Outcome::refused(None, Refusal::Needed),
        _ if site.stale => Outcome::refused(None, Refusal::Stale),
        _ if !site.bundle.attribution.is_of_line() => Outcome::refused(None, Refusal::Inexact),
        (_, None) => Outcome::refused(None, Refusal::NoSource),
        (Class::Unknown, _) => Outcome::refused(None, Refusal::Open),
        (_, Some(Reading { outcome: Outcome::Refused { kind: None, .. }, .. })) if site.inside.is_some() => {
            Outcome::refused(None, Refusal::Library)
        }
        (Class::False, Some(reading)) => reading.outcome.clone(),
    };
    let expression = reading.map_or_else(String::new, |reading| reading.expression.clone());
    Some(Proposal { expression, outcome })
}

/// Prefix of advice to drop a call whose line has waits that the program may need.
const UNLESS_NEEDED: &str = "only if the line's other waits may go too: ";

/// Takes back edits that conflict with other sites, and hedges advice to remove a call from such a line.
///
/// An edit stays if no needed or undecided site of its line waits for what it removes, if each line that it
/// joins has a site with the same edit, and if it touches no edit kept before.
/// Cost: sites × sites of a file.
pub fn settle(sites: &mut [Site]) {
    let mut of_file: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for (at, site) in sites.iter().enumerate() {
        of_file.entry(site.user_frame.as_ref().map_or("", |frame| &frame.file)).or_default().push(at);
    }
    let mut refused: Vec<(usize, Outcome)> = Vec::new();
    for file in of_file.values().filter(|file| file.iter().any(|&at| edit(&sites[at]).is_some())) {
        let all: Vec<&Site> = file.iter().map(|&at| &sites[at]).collect();
        let mut kept: Vec<&Edit> = Vec::new();
        for (&at, site) in file.iter().zip(&all) {
            let Some(edit) = edit(site) else { continue };
            let refusal = match () {
                _ if disputed(&all, site, edit) => Refusal::Disputed,
                _ if !is_whole(&all, edit) => Refusal::Reads,
                _ if kept.iter().any(|other| other.collides(edit)) => Refusal::Overlap,
                _ => {
                    kept.push(edit);
                    continue;
                }
            };
            refused.push((at, Outcome::refused(Some(edit.kind), refusal)));
        }
    }
    let needed = sites.iter().filter(|site| site.class != Class::False);
    let lines = needed.filter_map(|site| site.user_frame.clone());
    let needed: FxHashSet<Frame> = lines.filter(|frame| frame.line > 0).collect();
    let bare = |site: &Site| matches!(site.kind, Kind::Explicit | Kind::Redundant | Kind::Idle);
    let beside = |site: &Site| site.user_frame.as_ref().is_some_and(|frame| needed.contains(frame));
    for site in sites.iter_mut().filter(|site| site.class == Class::False && bare(site) && beside(site)) {
        if let Some(fix) = &mut site.fix
            && fix.strategy == Strategy::Remove
            && !fix.hedged
        {
            fix.hedged = true;
            fix.title.insert_str(0, UNLESS_NEEDED);
        }
    }
    for (at, outcome) in refused {
        if let Some(proposal) = &mut sites[at].proposal {
            proposal.outcome = outcome;
        }
    }
}

fn edit(site: &Site) -> Option<&Edit> {
    site.proposal.as_ref()?.outcome.edit()
}

/// Whether a needed or undecided site of the line waits for what the edit removes: the same expression,
/// or an unknown one. A deletion always removes it.
fn disputed(all: &[&Site], site: &Site, edit: &Edit) -> bool {
    let expression = |site: &Site| site.proposal.as_ref().map_or(String::new(), |p| p.expression.clone());
    let own = expression(site);
    let waits_for_it = |other: &&Site| {
        let theirs = expression(other);
        let known = edit.kind != EditKind::Delete && !theirs.is_empty();
        !known || own.contains(&theirs) || theirs.contains(&own)
    };
    let needed = |other: &&&Site| other.user_frame == site.user_frame && other.class != Class::False;
    all.iter().filter(needed).any(waits_for_it)
}

/// Whether each line that the edit joins has a site with the same edit.
fn is_whole(all: &[&Site], same: &Edit) -> bool {
    let lines =
        all.iter().filter(|site| edit(site) == Some(same)).filter_map(|site| site.user_frame.as_ref());
    let lines: Vec<u32> = lines.map(|frame| frame.line).collect();
    same.lines.iter().all(|line| lines.contains(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::edit::{Replacement, Safety};

    fn edit(start: u32, end: u32, text: &str) -> Edit {
        let replacements = vec![Replacement { start, end, text: text.to_owned() }];
        let (kind, safety) = (EditKind::KeepTensor, Safety::Safe);
        Edit { kind, safety, mind: None, lines: Vec::new(), replacements, blocks: Vec::new() }
    }

    #[test]
    fn lines_of_their_own_stand_beside_each_other() {
        let (one, other) = (edit(9, 9, "a = float(a)\n"), edit(9, 9, "b = float(b)\n"));
        assert!(!one.collides(&other) && !one.collides(&one));
        for touching in [edit(9, 9, ".detach()"), edit(7, 9, ""), edit(9, 12, "b\n")] {
            assert!(one.collides(&touching) && touching.collides(&one), "{touching:?}");
        }
    }
}
