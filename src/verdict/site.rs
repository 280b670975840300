//! Sites: judged bundles of one place with one verdict.

use super::combine::Combined;
use super::library::Inside;
use super::source::{self, Reading, SourceTree, line};
use crate::model::Snippet;
use crate::model::edit::{Outcome, Refusal};
use crate::profile::ids::GlobalPid;
use crate::profile::payload::PyFrame;
use crate::sites::{Bundle, Freed, native, ranges};
use crate::vocabulary::{Attribution, Copy, Evidence, HostMemory, PatternId, Verdict};
use crate::waits::WaitId;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

#[derive(Clone, Debug)]
pub struct Site {
    /// The bundle with most waits; its `waits` are those of all.
    pub bundle: Bundle,
    /// The ways to the user's line; the way of `bundle` first.
    pub paths: Vec<Path>,
    pub inside: Option<Inside>,
    pub verdict: Verdict,
    /// `None` where the source was not read or does not fit.
    pub reading: Option<Reading>,
    /// A file was found, but its line is not what ran.
    pub stale: bool,
    /// The user line and its neighbours, where the file is what ran.
    pub snippet: Option<Snippet>,
    /// The reason in a comment that allows the user line to wait.
    pub allowed: Option<String>,
    /// Stable over runs; [`join`] gives it.
    pub key: String,
}

#[derive(Clone, Debug)]
pub struct Path {
    pub way: Way,
    pub waits: Vec<WaitId>,
}

/// Frames that two waits of one line may differ in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Way {
    /// Library frames between the waiting line and the user's, nearest to the wait first.
    pub library: Vec<PyFrame>,
    pub callers: Vec<PyFrame>,
}

impl Site {
    pub fn new(bundle: Bundle, inside: Option<Inside>, combined: Combined) -> Self {
        let Combined { verdict, reading, stale } = combined;
        let callers = bundle.user_stack().iter().skip(1).cloned().collect();
        let around = inside.filter(|inside| !inside.wraps).map_or(usize::MAX, |inside| inside.frame + 1);
        let library = bundle.inside().iter().skip(around).cloned().collect();
        let paths = vec![Path { way: Way { library, callers }, waits: bundle.waits.clone() }];
        Self {
            bundle,
            paths,
            inside,
            verdict,
            reading,
            stale,
            snippet: None,
            allowed: None,
            key: String::new(),
        }
    }

    /// The user line in the file; `None` where there is no file.
    pub fn line_text(&self) -> Option<&str> {
        self.reading.as_ref()?.line_text.as_deref()
    }

    pub fn library_frame(&self) -> Option<&PyFrame> {
        self.bundle.frames.get(self.inside?.frame)
    }

    /// The library frame, unless the user's line names it too.
    pub fn unnamed_library_frame(&self) -> Option<&PyFrame> {
        self.library_frame().filter(|_| self.inside.is_some_and(|inside| !inside.called))
    }

    /// An edit stays only where all joined sites have the same.
    fn refuse_edit_of(&mut self, other: Option<Reading>) {
        let Some(own) = &mut self.reading else { return };
        match other {
            Some(other) if other.outcome == own.outcome => {}
            Some(Reading { outcome: outcome @ Outcome::Refused { .. }, .. }) => own.outcome = outcome,
            _ if own.outcome.edit().is_none() => {}
            _ => own.outcome = Outcome::refused(None, Refusal::Several),
        }
    }

    /// Finds the line, its neighbours and a comment that allows it, unless the file is known to have changed.
    pub fn quote(&mut self, sources: &SourceTree) {
        let frame = self.bundle.user_frame().filter(|_| self.line_text().is_some());
        self.snippet = frame.and_then(|f| source::snippet(sources, &f.file, f.line));
        self.allowed = frame.and_then(|f| source::scan::allowed(sources, &f.file, f.line));
    }
}

/// Takes back the edits of files that are not what ran: a frame of the capture names a line there that does
/// not run in the frame's function. Cost: the frames of all sites, and a walk over a file for each that
/// differs.
pub fn doubt(sites: &mut [Site], sources: &SourceTree) {
    let mut ran: FxHashMap<(&str, u32, &str), bool> = FxHashMap::default();
    let mut whole: FxHashMap<String, bool> = FxHashMap::default();
    let edited = |site: &Site| {
        let edit = site.reading.as_ref().and_then(|reading| reading.outcome.edit());
        edit.and(site.bundle.user_frame().cloned())
    };
    whole.extend(sites.iter().filter_map(edited).map(|frame| (frame.file.to_string(), true)));
    if whole.is_empty() {
        return;
    }
    let frames = sites
        .iter()
        .flat_map(|site| site.bundle.frames.iter().chain(site.paths.iter().flat_map(|p| &p.way.callers)));
    for frame in frames.filter(|frame| frame.line > 0) {
        if let Some(whole) = whole.get_mut(&*frame.file) {
            let at = (&*frame.file, frame.line, &*frame.function);
            *whole &= *ran.entry(at).or_insert_with(|| line(sources, at.0, at.1, at.2).is_some());
        }
    }
    for site in sites {
        let Some(file) = edited(site).map(|frame| frame.file) else { continue };
        if let (Some(false), Some(reading)) = (whole.get(&*file), &mut site.reading) {
            reading.outcome = Outcome::refused(reading.outcome.edit().map(|edit| edit.kind), Refusal::Stale);
        }
    }
}

/// Joins sites of one place and verdict, first sites of one stack, then over the ways to the place.
///
/// Sites are of one stack if they share process, role, API, kind, pattern, and the stack outwards from the
/// library's waiting line, or the user's (natively attributed sites: the chain; else the NVTX ranges).
/// PyTorch's wrappers have no line of their own: the four places in `_tensor_str.py` where one
/// `print(tensor)` waits are one site. `synchronize()` calls that found the GPU idle are apart from calls of
/// the same line that did not. Sites that differ only in the frames around their line are one with several
/// paths, if they agree in `once`. A cost that a program pays once is no part of what every iteration pays.
/// Whether a capture holds it does not change the key of the rest.
pub fn join(judged: Vec<Site>, once: impl Fn(&Site) -> bool) -> Vec<Site> {
    let line = |site: &Site| {
        let Site { bundle, verdict, .. } = site;
        (bundle.pid, place(site), bundle.freed, verdict.kind, verdict.pattern)
    };
    let of_stack = gather(judged, |site| (line(site), site.paths[0].way.clone(), once(site)));
    let mut sites = gather(of_stack, |site| (line(site), once(site)));
    sites.sort_by_key(|site| site.bundle.waits[0]);
    for site in &mut sites {
        site.key = key(site, once(site));
    }
    part_keys(&mut sites);
    sites
}

/// Joins sites that share `of`; the one with most waits speaks for them.
fn gather<K: Hash + Eq>(mut all: Vec<Site>, of: impl Fn(&Site) -> K) -> Vec<Site> {
    all.sort_by(|a, b| {
        b.bundle.waits.len().cmp(&a.bundle.waits.len()).then_with(|| a.bundle.waits.cmp(&b.bundle.waits))
    });
    let mut sites: Vec<Site> = Vec::new();
    let mut index: FxHashMap<K, usize> = FxHashMap::default();
    for site in all {
        match index.entry(of(&site)) {
            Entry::Occupied(known) => absorb(&mut sites[*known.get()], site),
            Entry::Vacant(new) => {
                new.insert(sites.len());
                sites.push(site);
            }
        }
    }
    for site in &mut sites {
        site.bundle.waits.sort_unstable();
        site.paths.iter_mut().for_each(|path| path.waits.sort_unstable());
    }
    sites
}

/// Numbers sites of one process with equal keys: hashes may collide, above all over names chosen by others.
pub fn part_keys<'a>(sites: impl IntoIterator<Item = &'a mut Site>) {
    let mut taken: FxHashMap<(GlobalPid, String), usize> = FxHashMap::default();
    for site in sites {
        let pid = site.bundle.pid;
        let plain = site.key.clone();
        let mut times = taken.get(&(pid, plain.clone())).copied().unwrap_or(0);
        while taken.contains_key(&(pid, site.key.clone())) {
            times += 1;
            site.key = format!("{plain}~{times}");
        }
        taken.insert((pid, plain), times.max(1));
        taken.insert((pid, site.key.clone()), 1);
    }
}

/// Adds a smaller site to a larger: its waits, paths and own reasons.
fn absorb(site: &mut Site, other: Site) {
    let Site { bundle, paths, verdict, reading, .. } = other;
    site.refuse_edit_of(reading);
    site.bundle.waits.extend(bundle.waits);
    for path in paths {
        // Sites of one stack were joined first: the paths of a site differ.
        match site.paths.first_mut().filter(|first| first.way == path.way) {
            Some(first) => first.waits.extend(path.waits),
            None => site.paths.push(path),
        }
    }
    site.verdict.made = site.verdict.made.or(verdict.made);
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

const MAX_EVIDENCE: usize = 8;

/// Whether two reasons differ at most in numbers and their units: copies of several sizes are one reason.
fn says_the_same(one: &Evidence, other: &Evidence) -> bool {
    fn words(text: &str) -> impl Iterator<Item = &str> {
        let mut after_number = false;
        text.split_whitespace().filter(move |word| {
            let number = word.starts_with(|c: char| c.is_ascii_digit());
            !std::mem::replace(&mut after_number, number) && !number
        })
    }
    one.rule == other.rule && words(&one.text).eq(words(&other.text))
}

/// Identifies a place over runs, whoever calls it: names and lines, no ids.
fn place(site: &Site) -> String {
    let bundle = &site.bundle;
    let mut text = format!("{}|{}|{}", bundle.api, bundle.role, bundle.attribution);
    if bundle.frames.is_empty() {
        for symbol in native::readable(&bundle.chain) {
            text += &format!("|{symbol}");
        }
        for range in bundle.ranges.iter().filter(|_| bundle.attribution != Attribution::Native) {
            text += &format!("|{}", ranges::stable_name(range));
        }
    }
    // A wrapper of PyTorch's is the user's own call. A sample falls within a wait by chance.
    let apart = |i: &Inside| !i.wraps && bundle.attribution != Attribution::PythonSample;
    let library = site.inside.filter(apart).and_then(|_| site.library_frame());
    for frame in bundle.user_stack().iter().take(1).chain(library).chain(&bundle.forward) {
        text += &format!("|{}:{}:{}", frame.file, frame.function, frame.line);
    }
    text.extend(bundle.node().filter(|_| bundle.forward.is_none()).map(|node| format!("|{node}")));
    if bundle.attribution == Attribution::PythonFunction {
        // Lines of one function differ by what they call.
        text += &format!("|{}", bundle.method().or(native::operator(&bundle.chain)).unwrap_or_default());
    }
    if bundle.attribution == Attribution::PythonSample {
        // The line is only probable: the copy tells sites apart, and without a line, what ran before.
        let line_known = bundle.user_frame().is_some_and(|f| f.line > 0);
        let before = bundle.neighbours.before.first().filter(|_| !line_known);
        text.extend(bundle.copy.map(|c| format!("|{}|{}|{}", c.direction, c.bytes, c.host_memory)));
        text.extend(before.map(|op| format!("|{op}")));
    }
    text
}

/// `file:function:line:api:kind` for the reader, and a hash of what else separates sites of a process
/// ([`join`]). A key does not depend on which other sites there are. In which way a site is paid once is no
/// part of the key: ranks of a program may differ in that.
fn key(site: &Site, once: bool) -> String {
    let Site { bundle, verdict, .. } = site;
    let head = match bundle.user_frame().or(bundle.frames.first()) {
        Some(f) => format!("{}:{}:{}", f.file, f.function, f.line),
        None => {
            let range = || bundle.ranges.last().map(|range| ranges::stable_name(range));
            bundle.method().map(str::to_owned).or_else(range).unwrap_or_default()
        }
    };
    let mut place = format!("{}|{}", place(site), verdict.pattern.map_or("", PatternId::as_str));
    place += match bundle.freed {
        Freed::AtWork => "",
        Freed::ToStart => "|set up",
        Freed::Before => "|before",
        Freed::After => "|taken down",
    };
    place += if once { "|once" } else { "" };
    format!("{head}:{}:{}:{:016x}", bundle.api, verdict.kind, crate::text::fnv1a(place.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::RuleId;

    #[test]
    fn reasons_that_differ_in_numbers_only_are_one() {
        let upload =
            |size: &str| Evidence::new(RuleId::R01, format!("a {size} H2D copy from pageable memory"));
        assert!(says_the_same(&upload("4 B"), &upload("1.50 MiB")));
        assert!(!says_the_same(&upload("4 B"), &Evidence::new(RuleId::R20, upload("4 B").text)));
        let pinned = Evidence::new(RuleId::R01, "a 4 B H2D copy from pinned memory");
        assert!(!says_the_same(&upload("4 B"), &pinned));
    }
}
