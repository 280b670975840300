//! Finding entries: by id, by words, and by the Python frames of a wait.

use super::{
    LibrarySite, Pattern, allocator, checks, distributed, explicit, hidden_reads, library_data,
    library_models, library_parallel, library_training, lookalikes, readback, scalar, shape, sparse, upload,
};

/// The subjects in the order of their ids.
const SUBJECTS: [&[Pattern]; 15] = [
    scalar::PATTERNS,
    hidden_reads::PATTERNS,
    shape::PATTERNS,
    sparse::PATTERNS,
    upload::PATTERNS,
    readback::PATTERNS,
    checks::PATTERNS,
    explicit::PATTERNS,
    allocator::PATTERNS,
    distributed::PATTERNS,
    lookalikes::PATTERNS,
    library_training::PATTERNS,
    library_models::PATTERNS,
    library_parallel::PATTERNS,
    library_data::PATTERNS,
];

/// Rows that say what library code does (wait, format, convert) but not why: a caller inside a library says more.
const WRAPPERS: [&str; 6] = ["A15", "A16", "F01", "F02", "F03", "L20"];

/// Every entry, in the fixed order of the subjects.
pub fn all() -> impl Iterator<Item = &'static Pattern> {
    SUBJECTS.into_iter().flatten()
}

/// The entry of that id, in any case.
pub fn by_id(id: &str) -> Option<&'static Pattern> {
    all().find(|p| p.id.eq_ignore_ascii_case(id))
}

/// Entries for what a person types: an id, a trigger such as `.cpu()`, or words of the title.
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
        |p, q| p.triggers.iter().any(|t| names(t).any(|n| n == q)),
        |p, q| p.triggers.iter().any(|t| plain(t).contains(q)) || plain(p.title).contains(q),
        |p, q| plain(p.op).contains(q) || p.library.is_some_and(|l| plain(l.library).contains(q)),
    ];
    let mut found: Vec<_> = tests
        .into_iter()
        .map(|test| all().filter(|p| test(p, &wanted)).collect::<Vec<_>>())
        .find(|v| !v.is_empty())
        .unwrap_or_default();
    found.sort_by_key(|p| p.category == super::Category::NotAWait);
    found
}

/// Lower case, without the dots and brackets around a name: `.cpu()` and `cpu` are the same question.
pub(super) fn plain(text: &str) -> String {
    text.trim().trim_matches(|c: char| ".() ".contains(c)).to_lowercase()
}

/// The identifiers of an expression, in lower case.
fn names(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|n| !n.is_empty()).map(str::to_lowercase)
}

/// The entry whose library code the innermost frames of a wait stand in.
///
/// `frames` are (file, function), innermost first; `line_text` is the text of the innermost frame's line where known.
/// PyTorch, the standard library and other helpers are looked through: the first frame outside them is the last
/// that counts, because code further out encloses everything that it calls.
pub fn library_site(frames: &[(&str, &str)], line_text: Option<&str>) -> Option<&'static Pattern> {
    let mut fallback = None;
    for (depth, &(file, function)) in frames.iter().enumerate() {
        let text = if depth == 0 { line_text } else { None };
        // A module's forward and __call__ enclose whatever they call: only as the leaf do they say anything.
        let encloses = depth > 0 && matches!(last_name(function), "forward" | "__call__");
        let found = if encloses { None } else { frame_site(file, function, text) };
        match found {
            Some(pattern) if !WRAPPERS.contains(&pattern.id) => return Some(pattern),
            // Of two, the one further out: a tensor is formatted because it is printed.
            Some(pattern) => fallback = Some(pattern),
            None if !is_helper(file) => break,
            None => {}
        }
    }
    fallback
}

/// The best entry for one frame: one that the known line confirms, then one that names the function with its class,
/// else the first that the line does not contradict.
fn frame_site(file: &str, function: &str, text: Option<&str>) -> Option<&'static Pattern> {
    let fitting =
        all().filter_map(|p| Some((p, p.library?))).filter(|(_, l)| site_fits(l, file, function, text));
    let confirmed = |l: &LibrarySite| text.is_some() && !l.line_text.is_empty();
    let named = |l: &LibrarySite| function.contains('.') && l.frames.iter().any(|f| f.1 == function);
    // min_by_key keeps the first of equals: the order of the catalogue breaks ties.
    fitting.min_by_key(|(_, l)| std::cmp::Reverse((confirmed(l), named(l)))).map(|(pattern, _)| pattern)
}

fn site_fits(site: &LibrarySite, file: &str, function: &str, text: Option<&str>) -> bool {
    site.frames.iter().any(|&(suffix, wanted)| {
        let text_fits = match text {
            Some(line) => line.contains(site.line_text),
            // A bare file name or an open function is too little without the line.
            None => site.line_text.is_empty() || (suffix.contains('/') && !wanted.is_empty()),
        };
        text_fits
            && (wanted.is_empty() || function == wanted || last_name(function) == wanted)
            && ends_with_path(file, suffix)
    })
}

/// The function's own name: newer interpreters report `Class.method`, closures `f.<locals>.g`.
fn last_name(function: &str) -> &str {
    function.rsplit('.').next().unwrap_or(function)
}

/// Whole path components only: `my_torch/x.py` does not end with `torch/x.py`.
fn ends_with_path(file: &str, suffix: &str) -> bool {
    let (mut file, mut suffix) = (file.rsplit(['/', '\\']), suffix.rsplit('/'));
    suffix.all(|part| file.next() == Some(part))
}

/// Code that only carries a call on: PyTorch, the standard library, converters without a name of their own.
fn is_helper(file: &str) -> bool {
    let installed = file
        .split_once("-packages/")
        .map(|(_, rest)| rest.split('/').next().unwrap_or_default())
        .is_some_and(|package| matches!(package, "torch" | "lightning_utilities" | "numpy" | "triton"));
    let standard = !file.contains("-packages/") && file.contains("/lib/python3");
    installed || standard || file.starts_with('<')
}
