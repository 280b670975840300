//! Edits held against each other.

use crate::model::Site;
use crate::model::edit::{Edit, EditKind, Outcome, Refusal, Replacement};
use crate::vocabulary::Class;
use rustc_hash::FxHashMap;

/// Takes back edits that other sites stand against.
///
/// Definition: an edit stays if no site of its line waits for what it removes and is not avoidable; if each line that it takes
/// together has a site with the same edit; and if it touches no other edit of a site before it.
/// Cost: sites × sites of a file.
pub fn settle(sites: &mut [Site]) {
    let mut of_file: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (at, site) in sites.iter().enumerate() {
        of_file
            .entry(site.user_frame.as_ref().map_or(String::new(), |f| f.file.clone()))
            .or_default()
            .push(at);
    }
    let mut files: Vec<&Vec<usize>> = of_file.values().collect();
    files.sort();
    for file in files {
        for (rank, &at) in file.iter().enumerate() {
            let all: Vec<&Site> = file.iter().map(|&at| &sites[at]).collect();
            let Some(edit) = edit(all[rank]) else { continue };
            let refusal = match () {
                _ if disputed(&all, all[rank], edit) => Refusal::Disputed,
                _ if !is_whole(&all, edit) => Refusal::Reads,
                _ if all[..rank]
                    .iter()
                    .any(|other| self::edit(other).is_some_and(|other| collide(other, edit))) =>
                {
                    Refusal::Overlap
                }
                _ => continue,
            };
            let refused = Outcome::refused(Some(edit.kind), refusal);
            if let Some(proposal) = &mut sites[at].proposal {
                proposal.outcome = refused;
            }
        }
    }
}

fn edit(site: &Site) -> Option<&Edit> {
    site.proposal.as_ref()?.outcome.edit()
}

/// Whether another site of the line waits for what the edit would no longer wait for: it is not avoidable, and of the same
/// expression or of none that is known.
fn disputed(all: &[&Site], site: &Site, edit: &Edit) -> bool {
    let expression = |site: &Site| site.proposal.as_ref().map_or(String::new(), |p| p.expression.clone());
    let own = expression(site);
    all.iter().filter(|other| other.user_frame == site.user_frame && other.class != Class::False).any(
        |other| {
            let theirs = expression(other);
            edit.kind == EditKind::Delete
                || theirs.is_empty()
                || own.contains(&theirs)
                || theirs.contains(&own)
        },
    )
}

/// Whether each line that the edit takes together has an avoidable site with the same edit.
fn is_whole(all: &[&Site], same: &Edit) -> bool {
    let lines =
        all.iter().filter(|site| edit(site) == Some(same)).filter_map(|site| site.user_frame.as_ref());
    let lines: Vec<u32> = lines.map(|frame| frame.line).collect();
    same.lines.iter().all(|line| lines.contains(line))
}

/// Whether two edits cannot both be made: they touch the same place, and differ there.
fn collide(one: &Edit, other: &Edit) -> bool {
    let touch = |a: &Replacement, b: &Replacement| a != b && a.start <= b.end && b.start <= a.end;
    one.replacements.iter().any(|a| other.replacements.iter().any(|b| touch(a, b)))
}
