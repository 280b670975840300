//! A patch as a unified diff, and what became of each site.

use super::Paths;
use crate::model::edit::Refusal;
use crate::model::patch::{Answer, Patch, PatchedFile};
use crate::text::{counted, escape_terminal, path_end};
use similar::TextDiff;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Prints the diff, as `git apply` and `patch -p1` take it at the top of the checkout.
pub fn render(patch: &Patch, paths: Paths, out: &mut dyn Write) -> io::Result<()> {
    for file in &patch.files {
        out.write_all(diff(file, paths).as_bytes())?;
    }
    Ok(())
}

fn diff(file: &PatchedFile, paths: Paths) -> String {
    // Outside of the checkout no name is right.
    let path = paths(&file.recorded).unwrap_or_else(|| file.path.display().to_string());
    let name = |side: &str| escape_terminal(&format!("{side}/{}", path.trim_start_matches('/'))).into_owned();
    let lines = TextDiff::from_lines(&file.before, &file.after);
    lines.unified_diff().context_radius(3).header(&name("a"), &name("b")).to_string()
}

/// One sentence on the whole, then on each file edited since the capture, on each site without an edit, and
/// on the sites without a line.
pub fn summary(patch: &Patch, applied: bool) -> Vec<String> {
    let edits: usize = patch.files.iter().map(|file| file.edits).sum();
    let (made, left): (Vec<&Answer>, Vec<_>) = patch.sites.iter().partition(|answer| answer.made);
    let files = counted(patch.files.len() as u64, "file");
    let verb = if applied { "written" } else { "proposed" };
    let (edits, sites) = (counted(edits as u64, "edit"), counted(made.len() as u64, "site"));
    let without = left.len() + patch.placeless.len();
    let mut lines = vec![format!("{edits} {verb} in {files} for {sites}; {without} without")];
    let is_stale = |answer: &&Answer| answer.reason == Some(Refusal::Stale);
    let (stale, told): (Vec<&Answer>, Vec<&Answer>) = left.into_iter().partition(is_stale);
    let mut changed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    stale.iter().for_each(|answer| changed.entry(&answer.file).or_default().push(&answer.site));
    lines.extend(changed.into_iter().map(|(file, sites)| {
        let (file, stale, sites) = (path_end(file, 1), Refusal::Stale.help(), sites.join(", "));
        format!(
            "{file}: {stale} at {sites}: it was edited since, perhaps by an earlier `fix`; capture again. Reasons for its other sites may be of other lines"
        )
    }));
    lines.extend(told.into_iter().map(sentence));
    let placeless = patch.placeless.join(", ");
    lines.extend((!placeless.is_empty()).then(|| format!("{placeless}: no line of yours is known")));
    lines
}

/// `S1 train.py:18: not edited (non-blocking): …`.
fn sentence(answer: &Answer) -> String {
    let place = format!("{} {}:{}", answer.site, path_end(&answer.file, 1), answer.line);
    let kind = answer.kind.map_or_else(String::new, |kind| format!(" ({kind})"));
    let why = answer.reason.map_or("", |reason| reason.help());
    let unsafe_one = if answer.is_unsafe { "only with --unsafe-fixes: " } else { "" };
    format!("{place}{kind}: {unsafe_one}{why}")
}
