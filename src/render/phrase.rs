//! Words about a site that all formats for people share. All text comes out escaped.

use super::document;
use crate::model::{
    Attribution, CallPath, Class, Copy, Direction, DriverApi, Frame, Gpu, HostMemory, Iterations, Report,
    Site, ThreadRole,
};
use crate::text::{self, escape_terminal};
use serde::{Serialize, Serializer};
use std::collections::{HashMap, HashSet};

/// The shortest ends of paths that still tell a report's files apart: `train.py`, or `a/utils.py` and `b/utils.py`.
pub(crate) struct FileNames<'a>(HashMap<&'a str, String>);

impl<'a> FileNames<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let frames = report.sites.iter().flat_map(|site| {
            let callers = site.call_paths.iter().flat_map(CallPath::frames);
            let all = site.location().into_iter().chain(&site.library_frame).chain(site.forward());
            all.chain(&site.caller).chain(callers)
        });
        Self::new(frames.map(|frame| frame.file.as_str()))
    }

    pub(crate) fn new(paths: impl Iterator<Item = &'a str>) -> Self {
        // Past this many components, the whole path reads no worse.
        const DEEPEST: usize = 8;
        // `__init__.py` is named with its package.
        let end = |path: &'a str, components: usize| {
            let own = text::path_end(path, 1) == "__init__.py";
            text::path_end(path, components + usize::from(own))
        };
        let mut open: HashSet<&str> = paths.collect();
        let mut names = HashMap::new();
        let mut components = 1;
        while !open.is_empty() {
            let mut users: HashMap<&str, usize> = HashMap::new();
            for path in &open {
                *users.entry(end(path, components)).or_default() += 1;
            }
            open.retain(|path| {
                let end = if components > DEEPEST { path } else { end(path, components) };
                let unique = users.get(end) == Some(&1) || end.len() == path.len();
                if unique {
                    names.insert(*path, escape_terminal(end).into_owned());
                }
                !unique
            });
            components += 1;
        }
        Self(names)
    }

    pub(crate) fn get(&self, path: &str) -> String {
        self.0.get(path).cloned().unwrap_or_else(|| escape_terminal(path).into_owned())
    }
}

/// The best known place of a site. `inner` is another line that waits: the library's, or autograd's node with
/// its forward line.
pub(crate) struct SitePlace {
    pub line: document::Place,
    pub inner: Option<document::Place>,
}

impl SitePlace {
    pub(crate) fn of(site: &Site, files: &FileNames<'_>) -> Self {
        let at = |frame: &Frame, mark| {
            let file = Some(at_line(&files.get(&frame.file), frame.line));
            document::Place { file, name: escape_terminal(&frame.function).into_owned(), mark }
        };
        let library = site.library_frame.as_ref().filter(|library| site.location() != Some(library));
        let inner = library.map(|library| at(library, None)).or_else(|| {
            let backward = site.backward.as_ref()?;
            let node = backward.node.as_ref().map(|node| escape_terminal(node).into_owned());
            let Some(forward) = &backward.forward else {
                return Some(document::Place { name: node?, ..Default::default() });
            };
            let mut line = at(forward, None);
            line.name.extend(node.map(|node| format!(" ({node})")));
            Some(line)
        });
        let mark = site.attribution.mark();
        if let Some(frame) = site.location() {
            return Self { line: at(frame, mark), inner };
        }
        let range = || site.nvtx.last().map(|range| escape_terminal(range).into_owned());
        let named = site.native_method().or_else(range).map(|name| (name, mark));
        let (name, mark) = named.unwrap_or_else(|| (escape_terminal(&site.api).into_owned(), None));
        Self { line: document::Place { file: None, name, mark }, inner }
    }

    /// Both lines: `train.py:43 main → boxes.py:48 nms`.
    pub(crate) fn both(&self) -> String {
        let inner = self.inner.as_ref().map(|inner| format!(" → {}", inner.whole()));
        self.line.whole() + &inner.unwrap_or_default()
    }
}

/// `[file:line, name, mark, inner]`; unknown parts are empty.
impl Serialize for SitePlace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let document::Place { file, name, mark } = &self.line;
        let inner = self.inner.as_ref().map_or_else(String::new, document::Place::whole);
        (file.as_deref().unwrap_or(""), name, mark.unwrap_or(""), inner).serialize(serializer)
    }
}

/// A site's call paths without the frames that all share, with their costs; and how many are left out.
pub(crate) fn call_paths(site: &Site, files: &FileNames<'_>) -> (Vec<(String, String)>, usize) {
    /// A recursive program has thousands of paths.
    const MOST: usize = 20;
    let paths = &site.call_paths;
    let ways: Vec<Vec<&Frame>> = paths.iter().map(|path| path.frames().collect()).collect();
    // All paths share outer frames, and perhaps library frames inside.
    let like_first = |way: &Vec<&Frame>| {
        way.iter().rev().zip(ways[0].iter().rev()).take_while(|(own, first)| own == first).count()
    };
    let begins_alike = |way: &Vec<&Frame>| {
        way.iter().zip(&ways[0]).take_while(|(own, first)| own == first && !own.user).count()
    };
    let outer = ways.iter().map(like_first).min().unwrap_or(0);
    let inner = ways.iter().map(begins_alike).min().unwrap_or(0);
    let words = |(path, way): (&CallPath, &Vec<&Frame>)| {
        let end = (way.len() - outer).max(1);
        let own = way.iter().take(end).skip(inner.min(end - 1));
        let frame =
            |f: &Frame| format!("{} {}", at_line(&files.get(&f.file), f.line), escape_terminal(&f.function));
        let place = own.map(|f| frame(f)).collect::<Vec<_>>().join(", from ");
        let place = if place.is_empty() { "not called by your code".to_owned() } else { place };
        (place, format!("{}, {}", text::counted(path.waits, "wait"), text::duration(path.blocked_ns)))
    };
    (paths.iter().zip(&ways).take(MOST).map(words).collect(), paths.len().saturating_sub(MOST))
}

/// `file:line`, without the line where none is known.
pub(crate) fn at_line(file: &str, line: u32) -> String {
    if line == 0 { file.to_owned() } else { format!("{file}:{line}") }
}

pub(crate) const fn mark_meaning(attribution: Attribution) -> Option<&'static str> {
    match attribution {
        Attribution::PythonBacktrace | Attribution::None => None,
        Attribution::PythonFound => {
            Some("~found: the one line of the function that waits this way, by its source")
        }
        Attribution::PythonFunction => {
            Some("~function: this capture names the function that waits, not its line")
        }
        Attribution::PythonSample => Some("~sampled: from Python samples nearby, not from the call itself"),
        Attribution::Backward => Some("~backward: on autograd's thread, while that line was in backward()"),
        Attribution::Native => Some("~native: no Python frames, the C++ function"),
        Attribution::Nvtx => Some("~nvtx: no frames, the enclosing NVTX range"),
    }
}

/// "95 %", or "?" where the wait is undecided.
pub(crate) fn confidence(class: Class, confidence: f64) -> String {
    match class {
        Class::Unknown => "?".to_owned(),
        Class::False | Class::True => text::confidence(confidence),
    }
}

/// Takes one GPU, or the sum of all.
pub(crate) fn busy(gpu: &Gpu) -> String {
    let span = gpu.whole_ns();
    if span <= 0 {
        return "no work".to_owned();
    }
    let [busy, idle] = [gpu.busy_ns, gpu.idle_ns].map(|part| text::share(part, span));
    let drained = |idle| format!("; {} of the idle time after waits", text::share(gpu.drain_ns, idle));
    let drained = Some(gpu.idle_ns).filter(|&idle| idle > 0).map(drained).unwrap_or_default();
    format!("busy {busy}, idle {idle} of {} from first to last operation{drained}", text::duration(span))
}

/// "1 wait", "7 waits", "0.33 waits".
pub(crate) fn waits(rate: f64) -> String {
    let rate = text::rate(rate);
    format!("{rate} {}", if rate == "1" { "wait" } else { "waits" })
}

pub(crate) fn each(site: &Site) -> String {
    let [median, p99, max] =
        [site.blocked_p50_ns, site.blocked_p99_ns, site.blocked_max_ns].map(text::duration);
    format!("median {median}, p99 {p99}, max {max}")
}

/// A site that waits before the loop or in its first iterations, and never again.
pub(crate) const START_UP: &str = "start-up only";

/// "stream sync, 512 KiB H2D pageable".
pub(crate) fn call(site: &Site) -> String {
    let api = match site.driver_api {
        DriverApi::StreamSynchronize => "stream sync",
        DriverApi::EventSynchronize => "event sync",
        DriverApi::CtxSynchronize => "device sync",
        DriverApi::Memcpy => "copy",
        DriverApi::MemcpyAsync => "async copy",
        DriverApi::Memset => "memset",
        DriverApi::MemFree => "device free",
        DriverApi::HostAlloc => "host alloc",
        DriverApi::HostFree => "host free",
    };
    site.copy.map_or_else(|| api.to_owned(), |moved| format!("{api}, {}", copy(moved, site.copy_bytes_max)))
}

pub(crate) const fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "H2D",
        Direction::DeviceToHost => "D2H",
        Direction::DeviceToDevice => "D2D",
        Direction::HostToHost => "H2H",
        Direction::Other => "copy",
    }
}

/// Names the awaited copies or the call, in a word or two: "3 × 4 B D2H pinned", "device sync".
pub(crate) fn waited(site: &Site) -> String {
    let what = site.copy.map_or_else(|| call(site), |moved| copy(moved, site.copy_bytes_max));
    match site.per_iteration {
        Some(rate) if rate >= 1.05 => format!("{} × {what}", text::rate(rate)),
        _ => what,
    }
}

/// "512 KiB H2D pageable", or "4 B – 2 MiB D2H" up to `largest`.
pub(crate) fn copy(copy: Copy, largest: Option<u64>) -> String {
    let direction = direction(copy.direction);
    let size = match largest {
        Some(largest) => format!("{} – {}", text::bytes(copy.bytes), text::bytes(largest)),
        None => text::bytes(copy.bytes),
    };
    match copy.host_memory {
        HostMemory::Unknown => format!("{size} {direction}"),
        memory => format!("{size} {direction} {memory}"),
    }
}

/// " in rank_0.sqlite": the export of the report's iterations; empty unless several exports have a loop.
pub(crate) fn looping(report: &Report, iterations: &Iterations) -> String {
    let several = report.profiles.iter().filter(|profile| profile.iterations > 0).count() > 1;
    let own = report.profiles.get(iterations.profile.index()).filter(|_| several);
    let name = own.map(|profile| escape_terminal(text::path_end(&profile.path, 1)));
    name.map_or_else(String::new, |name| format!(" in {name}"))
}

/// "main", "autograd", "pt_nccl_watchdg", "thread 4243", with "×4" for several.
pub(crate) fn thread(site: &Site) -> String {
    let thread = &site.thread;
    let name = thread.name.as_deref().map(escape_terminal);
    let label = match (thread.role, name) {
        (ThreadRole::Autograd, _) => "autograd".to_owned(),
        (ThreadRole::Library, Some(name)) => name.into_owned(),
        (ThreadRole::Library, None) => format!("library thread {}", thread.tid),
        _ if is_main(site) => "main".to_owned(),
        (_, Some(name)) => format!("{name} {}", thread.tid),
        (_, None) => format!("thread {}", thread.tid),
    };
    if thread.count > 1 { format!("{label} ×{}", thread.count) } else { label }
}

/// Whether a site's waits are on the first thread of its process only: the usual case.
pub(crate) fn is_main(site: &Site) -> bool {
    let thread = &site.thread;
    thread.count <= 1 && thread.main && matches!(thread.role, ThreadRole::Python | ThreadRole::Unknown)
}

pub(crate) const COSTS: &str =
    "blocked: CPU time inside waits, not a saving. idle after: GPU idle time that follows them.";

/// Names of exports, with folders only where they tell exports apart.
pub(crate) fn exports(report: &Report) -> Vec<String> {
    let names = FileNames::new(report.profiles.iter().map(|profile| profile.path.as_str()));
    report.profiles.iter().map(|profile| names.get(&profile.path)).collect()
}

/// Labels processes by export, and by pid where an export holds several.
pub(crate) struct Processes {
    exports: Vec<String>,
    /// Whether some export holds several processes.
    crowded: bool,
}

impl Processes {
    /// `None` where there is but one process.
    pub(crate) fn of(report: &Report) -> Option<Self> {
        let crowded = report.profiles.iter().any(|profile| profile.processes.len() > 1);
        if report.profiles.len() < 2 && !crowded {
            return None;
        }
        Some(Self { exports: exports(report), crowded })
    }

    pub(crate) fn label(&self, site: &Site) -> String {
        let process = &site.process;
        let name = process.name.as_deref().map_or("pid".into(), escape_terminal);
        match self.exports.get(process.profile.index()) {
            Some(export) if self.exports.len() > 1 && self.crowded => format!("{export} {}", process.pid),
            Some(export) if self.exports.len() > 1 => export.clone(),
            _ => format!("{name} {}", process.pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_as_short_as_they_can_be() {
        let paths = ["/a/train.py", "/a/x/utils.py", "/a/y/utils.py", "/b/y/utils.py", "utils.py"];
        let names = FileNames::new(paths.into_iter());
        assert_eq!(
            paths.map(|path| names.get(path)),
            ["train.py", "x/utils.py", "a/y/utils.py", "b/y/utils.py", "utils.py"]
        );
    }

    #[test]
    fn one_wait_is_singular() {
        assert_eq!([1.0, 0.999, 7.0, 0.33].map(waits), ["1 wait", "1 wait", "7 waits", "0.33 waits"]);
    }
}
