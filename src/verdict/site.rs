//! Sites: judged bundles of one place with one verdict.

use super::combine::Combined;
use super::source::{Reading, SourceTree};
use crate::model::Snippet;
use crate::sites::{Bundle, native, ranges};
use crate::vocabulary::{Attribution, Copy, Evidence, HostMemory, Kind, Verdict};
use rustc_hash::FxHashMap;

/// A call site: bundles of one place with one verdict.
#[derive(Clone, Debug)]
pub struct Site {
    /// The bundle with most waits speaks for the site; its `waits` are those of all.
    pub bundle: Bundle,
    /// What trace and source say together.
    pub verdict: Verdict,
    /// The expression that waits and where its value goes; `None` where the source was not read or does not fit.
    pub reading: Option<Reading>,
    /// The user line as it stands in the file; `None` where there is no file.
    pub line_text: Option<String>,
    /// A file was there, but its line is not what ran.
    pub stale: bool,
    /// The user line and those around it, where it is what ran.
    pub snippet: Option<Snippet>,
    /// Stable over runs; [`join`] gives it.
    pub key: String,
}

impl Site {
    /// The site of one bundle.
    pub fn new(bundle: Bundle, combined: Combined) -> Self {
        let Combined { verdict, reading, line_text, stale } = combined;
        Self { bundle, verdict, reading, line_text, stale, snippet: None, key: String::new() }
    }

    /// Looks up the user line with those around it, unless the file is known to have changed.
    pub fn quote(&mut self, sources: &SourceTree) {
        let frame = self.bundle.user_frame().filter(|_| self.line_text.is_some() && !self.stale);
        self.snippet = frame.and_then(|f| sources.snippet(&f.file, f.line));
    }
}

/// Joins sites of one place and verdict.
///
/// They join when they share process, role, API, class, kind and pattern, and the stack from the user's line
/// outwards (natively attributed ones: the chain; else the NVTX ranges). So the four places inside `_tensor_str.py` that
/// one `print(tensor)` waits at are one site, and `synchronize()` calls that found the GPU idle stand apart from those
/// of the same line that did not.
pub fn join(mut judged: Vec<Site>) -> Vec<Site> {
    judged.sort_by(|a, b| {
        b.bundle.waits.len().cmp(&a.bundle.waits.len()).then_with(|| a.bundle.waits.cmp(&b.bundle.waits))
    });
    let mut sites: Vec<Site> = Vec::new();
    let mut index: FxHashMap<(i64, String, Kind, Option<&str>), usize> = FxHashMap::default();
    for mut site in judged {
        let of = (site.bundle.pid, place(&site.bundle), site.verdict.kind, site.verdict.pattern);
        match index.get(&of) {
            Some(&i) => absorb(&mut sites[i], site.bundle, site.verdict),
            None => {
                site.key = key(&site.bundle, &of.1, &site.verdict);
                index.insert(of, sites.len());
                sites.push(site);
            }
        }
    }
    for site in &mut sites {
        site.bundle.waits.sort_unstable();
    }
    sites.sort_by_key(|s| s.bundle.waits[0]);
    part_keys(&mut sites);
    sites
}

/// Sites of one process whose keys are alike are numbered: no hash is above a collision, least of all over names that
/// somebody else chose.
pub fn part_keys(sites: &mut [Site]) {
    let mut seen: FxHashMap<(i64, String), usize> = FxHashMap::default();
    for site in sites {
        let times = seen.entry((site.bundle.pid, site.key.clone())).or_default();
        *times += 1;
        if *times > 1 {
            site.key = format!("{}~{times}", site.key);
        }
    }
}

/// Adds a smaller bundle to a site: its waits and its own reasons; agreement is only as sure as the less sure.
fn absorb(site: &mut Site, bundle: Bundle, verdict: Verdict) {
    site.bundle.waits.extend(bundle.waits);
    site.verdict.confidence = site.verdict.confidence.min(verdict.confidence);
    site.bundle.copy = match (site.bundle.copy, bundle.copy) {
        (Some(a), Some(b)) if a.direction == b.direction => {
            let alike = a.host_memory == b.host_memory;
            Some(if alike { a } else { Copy { host_memory: HostMemory::Unknown, ..a } })
        }
        _ => None,
    };
    site.bundle.same_bytes &=
        bundle.same_bytes && site.bundle.copy.map(|c| c.bytes) == bundle.copy.map(|c| c.bytes);
    for evidence in verdict.evidence {
        let said = site.verdict.evidence.iter().any(|other| says_the_same(other, &evidence));
        if !said && site.verdict.evidence.len() < MAX_EVIDENCE {
            site.verdict.evidence.push(evidence);
        }
    }
}

/// Reasons shown per site.
const MAX_EVIDENCE: usize = 8;

/// Whether two reasons differ in numbers and their units at most: those of copies of each size are one.
fn says_the_same(one: &Evidence, other: &Evidence) -> bool {
    /// The words of a text, but for numbers and what they count.
    fn words(text: &str) -> impl Iterator<Item = &str> {
        let mut after_number = false;
        text.split_whitespace().filter(move |word| {
            let number = word.starts_with(|c: char| c.is_ascii_digit());
            !std::mem::replace(&mut after_number, number) && !number
        })
    }
    one.rule == other.rule && words(&one.text).eq(words(&other.text))
}

/// What identifies a place, over runs: names and lines, no ids.
fn place(bundle: &Bundle) -> String {
    let mut text = format!("{}|{}|{}", bundle.api, bundle.role, bundle.attribution);
    if bundle.frames.is_empty() {
        for symbol in native::readable(&bundle.chain) {
            text += &format!("|{symbol}");
        }
        for range in bundle.ranges.iter().filter(|_| bundle.attribution != Attribution::Native) {
            text += &format!("|{}", ranges::stable_name(range));
        }
    }
    for frame in bundle.user_stack() {
        text += &format!("|{}:{}:{}", frame.file, frame.function, frame.line);
    }
    if bundle.attribution == Attribution::PythonSample {
        // The line is only probable: what was copied tells sites apart, and where no line is known, what ran before.
        let line_known = bundle.user_frame().is_some_and(|f| f.line > 0);
        let before = bundle.neighbours.before.first().filter(|_| !line_known);
        text += &format!("|{:?}|{before:?}", bundle.copy);
    }
    text
}

/// `file:function:line:api:kind` for the reader, and a hash of all that tells sites of a process apart: place and pattern.
fn key(bundle: &Bundle, place: &str, verdict: &Verdict) -> String {
    let head = match bundle.user_frame().or(bundle.frames.first()) {
        Some(f) => format!("{}:{}:{}", f.file, f.function, f.line),
        None => bundle
            .method()
            .map(str::to_owned)
            .or_else(|| bundle.ranges.last().map(|r| ranges::stable_name(r)))
            .unwrap_or_default(),
    };
    let place = format!("{place}|{}", verdict.pattern.unwrap_or_default());
    format!("{head}:{}:{}:{:016x}", bundle.api, verdict.kind, crate::text::fnv1a(place.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::RuleId;

    #[test]
    fn reasons_that_differ_in_numbers_only_are_one() {
        let upload = |size: &str| Evidence::new(RuleId::R01, format!("a {size} upload from pageable memory"));
        assert!(says_the_same(&upload("4 B"), &upload("1.50 MiB")));
        assert!(!says_the_same(&upload("4 B"), &Evidence::new(RuleId::R20, upload("4 B").text)));
        assert!(!says_the_same(
            &upload("4 B"),
            &Evidence::new(RuleId::R01, "a 4 B upload from pinned memory")
        ));
    }
}
