//! Finding entries: by id, by words, and by the Python frames of a wait.

use super::*;
use crate::text::ends_with_path;

/// Library code that only moves or converts its argument.
const CONVERTERS: [&str; 4] = [
    "deepspeed/accelerator/",
    "transformers/utils/generic.py",
    "fastai/torch_core.py",
    "fabric/utilities/apply_func.py",
];

const LOGGERS: [&str; 4] = ["tensorboard", "/wandb/", "/mlflow/", "/tqdm/"];

/// Packages that hold the same files under another path.
const FAMILIES: [(&str, &str); 2] =
    [("lightning/pytorch/", "pytorch_lightning/"), ("lightning/fabric/", "lightning_fabric/")];

/// Every entry, in the fixed order of the subjects.
pub fn all() -> impl Iterator<Item = &'static Pattern> {
    ENTRIES.iter()
}

/// By id. The build fails for an id without an entry or with two.
static BY_ID: [&Pattern; PatternId::ALL.len()] = {
    let (mut table, mut at) = ([&ENTRIES[0]; PatternId::ALL.len()], 0);
    while at < ENTRIES.len() {
        table[ENTRIES[at].id as usize] = &ENTRIES[at];
        at += 1;
    }
    assert!(ENTRIES.len() == table.len(), "two entries have one id");
    at = 0;
    while at < table.len() {
        assert!(table[at].id as usize == at, "an id has no entry");
        at += 1;
    }
    table
};

pub fn entry(id: PatternId) -> &'static Pattern {
    BY_ID[id as usize]
}

/// Ignores case.
pub fn by_id(id: &str) -> Option<&'static Pattern> {
    PatternId::parse(&id.to_ascii_uppercase()).map(entry)
}

/// Entries for a typed id, a trigger such as `.cpu()`, or words of the title.
/// The first class of matches that is not empty wins; look-alikes come last.
pub fn search(query: &str) -> Vec<&'static Pattern> {
    if let Some(pattern) = by_id(query.trim()) {
        return vec![pattern];
    }
    let wanted = plain(query);
    if wanted.is_empty() {
        return Vec::new();
    }
    let tests: [fn(&Pattern, &str) -> bool; 4] = [
        |p, q| p.triggers.iter().any(|t| plain(t) == q),
        |p, q| p.triggers.iter().any(|t| identifiers(t).any(|name| name.to_lowercase() == q)),
        |p, q| p.triggers.iter().any(|t| plain(t).contains(q)) || plain(p.title).contains(q),
        |p, q| plain(p.op).contains(q) || p.library().is_some_and(|l| plain(l.library()).contains(q)),
    ];
    let passing = |test: fn(&Pattern, &str) -> bool| all().filter(|p| test(p, &wanted)).collect::<Vec<_>>();
    let mut found = tests.into_iter().map(passing).find(|found| !found.is_empty()).unwrap_or_default();
    found.sort_by_key(|p| p.category == Category::NotAWait);
    found
}

/// The names nearest to a query without matches, among ids, trigger names, and `more`.
pub fn near(query: &str, more: impl Iterator<Item = &'static str>) -> Vec<&'static str> {
    let wanted = plain(query);
    // Shorter names cannot be mistyped recognisably.
    let identifiers = |text: &'static str| identifiers(text).filter(|name| name.len() > 2);
    let own = all()
        .flat_map(|p| std::iter::once(p.id.as_str()).chain(p.triggers.iter().copied().flat_map(identifiers)));
    let mut near: Vec<(usize, &str)> = own
        .chain(more)
        .map(|name| (strsim::levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().map(|(_, name)| name).take(5).collect()
}

/// Lower case, without the dots and brackets around a name: `.cpu()` and `cpu` are the same question.
fn plain(text: &str) -> String {
    text.trim().trim_matches(|c: char| ".() ".contains(c)).to_lowercase()
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty())
}

/// Entries for the library code around a wait.
#[derive(Clone, Debug)]
pub struct KnownPlace {
    /// Only the line would decide among several.
    pub entries: Vec<&'static Pattern>,
    /// Whether one entry is certain: by its line, or because file and function suffice.
    pub sure: bool,
    /// Index of the frame.
    pub depth: usize,
    /// Whether the entries show only what the code does, not why.
    pub wraps: bool,
}

/// `frames` are (file, function), innermost first; `line` gives the text of a frame's line, if known.
/// PyTorch, the standard library and other helpers are skipped: the first frame outside them is the last
/// that counts, because code further out encloses everything that it calls.
pub fn library_site(frames: &[(&str, &str)], line: &dyn Fn(usize) -> Option<String>) -> Option<KnownPlace> {
    let mut fallback = None;
    for (depth, &(file, function)) in frames.iter().enumerate() {
        // A module's forward and __call__ enclose whatever they call: they count only as the leaf, or by their line.
        let encloses = depth > 0 && matches!(last_name(function), "forward" | "__call__");
        let by_line = |known: &KnownPlace| {
            known.sure && known.entries[0].library().is_some_and(|l| !l.line_text.is_empty())
        };
        let found = frame_site(file, function, || line(depth)).filter(|known| !encloses || by_line(known));
        match found.map(|known| KnownPlace { depth, ..known }) {
            Some(known) if !known.wraps => return Some(known),
            // The outer of two counts: a tensor is formatted because it is printed.
            Some(known) => fallback = Some(known),
            None if !is_helper(file) => break,
            None => {}
        }
    }
    fallback
}

/// The entry for a line of a training script that people copy: its frame looks like the user's own.
pub fn script_site(file: &str, function: &str, line: &str) -> Option<&'static Pattern> {
    frame_site(file, function, || Some(line.to_owned()))
        .and_then(|known| known.entries.first().copied())
        .filter(|p| p.library().is_some_and(|l| !l.line_text.is_empty()))
}

/// The library entry with an option for a wait. The verdict's own entry may say only what the code does.
pub fn option(
    frames: &[(&str, &str)],
    line: &dyn Fn(usize) -> Option<String>,
    fits: impl Fn(&Pattern) -> bool,
) -> Option<&'static Pattern> {
    let known = library_site(frames, line).filter(|known| known.sure)?;
    known.entries.into_iter().find(|entry| entry.id.letter() == 'L' && fits(entry))
}

/// Whether a frame is of a file, or of a file in a folder, and of one of `functions` (empty: any).
pub fn is_at(file: &str, function: &str, place: &str, functions: &str) -> bool {
    functions.split(' ').any(|wanted| is_of(file, function, (place, wanted)))
}

/// The best entries for one frame: one that the known line confirms (the longest text counts), else those that name the
/// function with its class, else all that the line does not contradict.
fn frame_site(file: &str, function: &str, line: impl FnOnce() -> Option<String>) -> Option<KnownPlace> {
    let in_frame = || {
        all()
            .filter_map(|p| Some((p, p.library()?)))
            .filter(|(_, l)| fitting(l, file, function).next().is_some())
    };
    let text = if in_frame().any(|(_, l)| !l.line_text.is_empty()) { line() } else { None };
    let fits = |l: &LibrarySite| match &text {
        Some(text) => text.contains(l.line_text),
        // Without the line, a bare file name or an open function is too little.
        None => {
            l.line_text.is_empty()
                || fitting(l, file, function).any(|(path, name)| path.contains('/') && !name.is_empty())
        }
    };
    let named = |l: &LibrarySite| function.contains('.') && l.places().any(|(_, name)| name == function);
    let confirmed = |l: &LibrarySite| if text.is_some() { l.line_text.len() } else { 0 };
    let rank = |l: &LibrarySite| (confirmed(l), named(l));
    let best = in_frame().filter(|(_, l)| fits(l)).map(|(_, l)| rank(l)).max()?;
    let mut entries: Vec<_> = in_frame().filter(|(_, l)| fits(l) && rank(l) == best).collect();
    if best.0 > 0 {
        entries.truncate(1);
    }
    let by_frame = |l: &LibrarySite| l.line_text.is_empty();
    let sure = entries.len() == 1 && entries.iter().all(|(_, l)| best.0 > 0 || by_frame(l));
    let entries: Vec<_> = entries.into_iter().map(|(p, _)| p).collect();
    let wraps = is_helper(file) && entries.iter().any(|entry| entry.wraps);
    Some(KnownPlace { entries, sure, depth: 0, wraps })
}

fn fitting(
    site: &LibrarySite,
    file: &str,
    function: &str,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    site.places().filter(move |&place| is_of(file, function, place))
}

/// An empty `wanted` means any function.
fn is_of(file: &str, function: &str, (place, wanted): (&str, &str)) -> bool {
    (wanted.is_empty() || function == wanted || is_named(last_name(function), wanted)) && lies_at(file, place)
}

/// Newer interpreters report `Class.method`, closures `f.<locals>.g`.
fn last_name(function: &str) -> &str {
    function.rsplit('.').next().unwrap_or(function)
}

/// `wanted` may be an ending, such as `*_validation`.
fn is_named(function: &str, wanted: &str) -> bool {
    wanted.strip_prefix('*').map_or(function == wanted, |ending| function.ends_with(ending))
}

/// `place` is a path's end or a folder, in any package of the family.
fn lies_at(file: &str, place: &str) -> bool {
    let at = |place: &str| match place.strip_suffix('/') {
        Some(folder) => {
            let above = file.char_indices().rev().filter(|(_, c)| matches!(c, '/' | '\\'));
            above.into_iter().any(|(end, _)| ends_with_path(&file[..end], folder))
        }
        None => ends_with_path(file, place),
    };
    let other = |&(path, package): &(&str, &str)| Some(format!("{package}{}", place.strip_prefix(path)?));
    at(place) || FAMILIES.iter().filter_map(other).any(|place| at(&place))
}

pub fn is_logger(file: &str) -> bool {
    LOGGERS.iter().any(|part| file.contains(part))
}

/// Code that only passes a call on: PyTorch, the standard library, converters without an entry.
pub fn is_helper(file: &str) -> bool {
    let of_package = match crate::text::package(file) {
        Some(package) => matches!(package, "torch" | "lightning_utilities" | "numpy" | "triton"),
        None => crate::text::is_of_python(file),
    };
    of_package || CONVERTERS.iter().any(|path| file.contains(path)) || file.starts_with('<')
}
