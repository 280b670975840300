//! Call sites: waits grouped by the line of Python (or the best substitute) that caused them.
//!
//! Grouping has two steps. A *bundle* holds waits alike in everything that a verdict may rest on: process, thread
//! role, API, stack, copy, what was found on the GPU, and the operation that the native chain names. Bundles are
//! judged one by one; then those of one user line with the same verdict join into a *site*.

pub mod bundle;
pub mod chain;
pub mod context;
pub mod frames;
pub mod native;
pub mod neighbours;
pub mod ranges;
pub mod sampled;
pub mod thread;

use crate::profile::payload::PyFrame;
use crate::report::Snippet;
use crate::verdict::source::{Reading, SourceTree};
use crate::vocabulary::{Attribution, Copy, HostMemory, ThreadRole, Verdict};
use crate::waits::Found;
use crate::waits::api::Blocking;
use neighbours::Neighbours;
use std::sync::Arc;

/// Waits alike in everything that a verdict may rest on.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Indices of waits, ascending.
    pub waits: Vec<u32>,
    /// `globalPid`.
    pub pid: i64,
    pub role: ThreadRole,
    /// Name without version suffix.
    pub api: Arc<str>,
    pub blocking: Blocking,
    pub attribution: Attribution,
    /// How far to trust the attribution; empty where exact.
    pub note: String,
    /// Python frames, innermost first.
    pub frames: Vec<PyFrame>,
    /// Index of the innermost user frame.
    pub user: Option<usize>,
    /// Native symbols of an example, innermost first.
    pub chain: Vec<Arc<str>>,
    /// Texts of the NVTX ranges around an example, outermost first.
    pub ranges: Vec<Arc<str>>,
    /// The copy, where all waits have one of the same direction and memory; `bytes` of the first.
    pub copy: Option<Copy>,
    /// Whether all copies have that size.
    pub same_bytes: bool,
    pub found: Found,
    /// Whether the waits complete an earlier copy to the host.
    pub completes: bool,
    /// Whether a copy came with the waits that the export does not hold.
    pub copy_lost: bool,
    /// Names of the ops around an example.
    pub neighbours: Neighbours,
}

impl Bundle {
    /// The frames from the user's line outwards: what bundles of one site share.
    pub fn user_stack(&self) -> &[PyFrame] {
        &self.frames[self.user.unwrap_or(0)..]
    }

    pub fn user_frame(&self) -> Option<&PyFrame> {
        self.user.and_then(|u| self.frames.get(u))
    }

    /// The library frame that the user's line called, if the wait happened inside library Python.
    pub fn through(&self) -> Option<&PyFrame> {
        self.user.and_then(|u| u.checked_sub(1)).and_then(|i| self.frames.get(i))
    }

    pub fn method(&self) -> Option<&str> {
        native::method(&self.chain)
    }
}

/// A bundle with its verdict and what the source showed.
#[derive(Clone, Debug)]
pub struct Judged {
    pub bundle: Bundle,
    pub verdict: Verdict,
    /// The expression that waits and where its value goes.
    pub reading: Option<Reading>,
    /// The user line as it stands in the file.
    pub line_text: Option<String>,
    /// A file was there, but its line is not what ran.
    pub stale: bool,
}

/// A call site: bundles of one place with one verdict.
#[derive(Clone, Debug)]
pub struct Site {
    /// The bundle with most waits speaks for the site; its `waits` are those of all.
    pub bundle: Bundle,
    pub verdict: Verdict,
    pub reading: Option<Reading>,
    pub line_text: Option<String>,
    pub stale: bool,
    /// The user line and those around it, where it is what ran.
    pub snippet: Option<Snippet>,
    /// Stable over runs.
    pub key: String,
}

impl Site {
    /// Looks up the user line with those around it, unless the file is known to have changed.
    pub fn quote(&mut self, sources: &SourceTree) {
        let frame = self.bundle.user_frame().filter(|_| self.line_text.is_some() && !self.stale);
        self.snippet = frame.and_then(|f| sources.snippet(&f.file, f.line));
    }
}

/// Joins judged bundles into sites.
///
/// Bundles join when they share process, role, API, class, kind and pattern, and the stack from the user's line
/// outwards (natively attributed ones: the chain; else the NVTX ranges). So the four places inside `_tensor_str.py` that
/// one `print(tensor)` waits at are one site, and `synchronize()` calls that found the GPU idle stand apart from those
/// of the same line that did not.
pub fn join(mut judged: Vec<Judged>) -> Vec<Site> {
    judged.sort_by(|a, b| {
        b.bundle.waits.len().cmp(&a.bundle.waits.len()).then_with(|| a.bundle.waits.cmp(&b.bundle.waits))
    });
    let mut sites: Vec<Site> = Vec::new();
    let mut index: rustc_hash::FxHashMap<String, usize> = rustc_hash::FxHashMap::default();
    for Judged { bundle, verdict, reading, line_text, stale } in judged {
        let place = place(&bundle);
        let joint = format!("{}|{}|{}|{}", bundle.pid, place, verdict.kind, verdict.pattern.unwrap_or(""));
        match index.get(&joint) {
            Some(&i) => absorb(&mut sites[i], bundle, verdict),
            None => {
                index.insert(joint, sites.len());
                let key = key(&bundle, &place, &verdict);
                let snippet = None;
                sites.push(Site { bundle, verdict, reading, line_text, stale, snippet, key });
            }
        }
    }
    for site in &mut sites {
        site.bundle.waits.sort_unstable();
    }
    sites.sort_by_key(|s| s.bundle.waits[0]);
    sites
}

/// Adds a smaller bundle to a site: its waits and its own reasons; agreement is only as sure as the less sure.
fn absorb(site: &mut Site, bundle: Bundle, verdict: Verdict) {
    site.bundle.waits.extend(bundle.waits);
    site.verdict.confidence = site.verdict.confidence.min(verdict.confidence);
    site.bundle.copy = match (site.bundle.copy, bundle.copy) {
        (Some(a), Some(b)) if a.direction == b.direction => {
            let host_memory =
                if a.host_memory == b.host_memory { a.host_memory } else { HostMemory::Unknown };
            Some(Copy { host_memory, ..a })
        }
        _ => None,
    };
    site.bundle.same_bytes &=
        bundle.same_bytes && site.bundle.copy.map(|c| c.bytes) == bundle.copy.map(|c| c.bytes);
    for evidence in verdict.evidence {
        if !site.verdict.evidence.contains(&evidence) && site.verdict.evidence.len() < MAX_EVIDENCE {
            site.verdict.evidence.push(evidence);
        }
    }
}

/// Reasons shown per site; more are repetitions with other numbers.
const MAX_EVIDENCE: usize = 8;

/// What identifies a place, over runs: names and lines, no ids.
fn place(bundle: &Bundle) -> String {
    let mut text = format!("{}|{}|{}", bundle.api, bundle.role, bundle.attribution);
    if bundle.frames.is_empty() {
        for symbol in native::readable(&bundle.chain) {
            text += "|";
            text += &symbol;
        }
        if bundle.attribution != Attribution::Native {
            for range in &bundle.ranges {
                text += "|";
                text += &ranges::stable_name(range);
            }
        }
    } else {
        for frame in bundle.user_stack() {
            text += &format!("|{}:{}:{}", frame.file, frame.function, frame.line);
        }
    }
    if bundle.attribution == Attribution::PythonSample {
        // The line is only probable: what was copied tells sites apart, and where no line is known, what ran before.
        let line_known = bundle.user_frame().is_some_and(|f| f.line > 0);
        let before = bundle.neighbours.before.first().filter(|_| !line_known);
        text += &format!("|{:?}|{before:?}", bundle.copy);
    }
    text
}

/// `file:function:line:api:kind` for the reader, and a hash of the whole place.
fn key(bundle: &Bundle, place: &str, verdict: &Verdict) -> String {
    let head = match bundle.user_frame().or(bundle.frames.first()) {
        Some(f) => format!("{}:{}:{}", f.file, f.function, f.line),
        None => bundle
            .method()
            .map(str::to_owned)
            .or_else(|| bundle.ranges.last().map(|r| ranges::stable_name(r)))
            .unwrap_or_default(),
    };
    format!("{head}:{}:{}:{:016x}", bundle.api, verdict.kind, crate::text::fnv1a(place.as_bytes()))
}
