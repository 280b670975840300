//! The harness of the labelled snippets: a table of source, call site and expected verdict.

use super::{Finding, Observed, Reading, SourceRoot, SourceTree, read_site};
use crate::report::Frame;
use crate::vocabulary::{Class, Copy, Direction, HostMemory, Kind};
use std::fmt::Write;

/// What a case expects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expect {
    Is(Kind),
    Stale,
}

/// A snippet whose line `# <- here` is the call site; `# <- caller` marks the second frame's line.
pub type Case<'a> = (&'a str, &'a str, Observed<'a>, Expect);

pub const fn copy(direction: Direction, bytes: u64, host_memory: HostMemory) -> Option<Copy> {
    Some(Copy { direction, bytes, host_memory })
}

/// A read of `bytes` into pinned memory by `method`: `.item()` and its kin.
pub fn scalar(method: &str, bytes: u64) -> Observed<'_> {
    let copy = copy(Direction::DeviceToHost, bytes, HostMemory::Pinned);
    Observed {
        api: "cudaStreamSynchronize",
        copy,
        method: Some(method),
        operator: Some("_local_scalar_dense"),
        through: None,
    }
}

pub fn item() -> Observed<'static> {
    scalar("item", 4)
}

pub fn truth() -> Observed<'static> {
    scalar("is_nonzero", 1)
}

/// A read of an array into pageable memory.
pub fn bulk(method: &str) -> Observed<'_> {
    let copy = copy(Direction::DeviceToHost, 4096, HostMemory::Pageable);
    Observed {
        api: "cudaStreamSynchronize",
        copy,
        method: Some(method),
        operator: Some("copy_"),
        through: None,
    }
}

pub fn upload(method: &str) -> Observed<'_> {
    let copy = copy(Direction::HostToDevice, 4096, HostMemory::Pageable);
    Observed {
        api: "cudaStreamSynchronize",
        copy,
        method: Some(method),
        operator: Some("copy_"),
        through: None,
    }
}

/// A mask or size operator.
pub fn shape<'a>(method: &'a str, operator: &'a str) -> Observed<'a> {
    Observed { operator: Some(operator), ..scalar(method, 4) }
}

/// The trace of a capture without call chains: API and copy only.
pub fn bare_read(bytes: u64, host_memory: HostMemory) -> Observed<'static> {
    Observed {
        api: "cudaStreamSynchronize",
        copy: copy(Direction::DeviceToHost, bytes, host_memory),
        ..Observed::default()
    }
}

pub fn bare_upload() -> Observed<'static> {
    let copy = copy(Direction::HostToDevice, 4096, HostMemory::Pageable);
    Observed { api: "cudaStreamSynchronize", copy, ..Observed::default() }
}

pub fn explicit() -> Observed<'static> {
    Observed {
        api: "cudaDeviceSynchronize",
        through: Some(("/v/torch/cuda/__init__.py", "synchronize")),
        ..Observed::default()
    }
}

pub fn printed() -> Observed<'static> {
    Observed { through: Some(("/v/torch/_tensor_str.py", "__init__")), ..scalar("masked_select", 4) }
}

pub fn formatted() -> Observed<'static> {
    Observed { through: Some(("/v/torch/_tensor.py", "__format__")), ..item() }
}

/// The frame of the line that carries `marker`, in the function whose `def` stands above it.
pub fn frame(source: &str, marker: &str) -> Option<Frame> {
    let lines: Vec<&str> = source.split('\n').collect();
    let at = lines.iter().position(|line| line.contains(marker))?;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut limit = indent(lines[at]);
    let mut function = "<module>".to_owned();
    for line in lines[..at].iter().rev().filter(|line| !line.trim().is_empty()) {
        if indent(line) >= limit {
            continue;
        }
        let text = line.trim_start();
        let text = text.strip_prefix("async ").unwrap_or(text);
        if let Some(rest) = text.strip_prefix("def ") {
            function = rest.split('(').next().unwrap_or("").to_owned();
            break;
        }
        limit = indent(line);
    }
    let given = lines[at].split_once("# <-").and_then(|(_, given)| given.split_once(" in "));
    if let Some((_, name)) = given {
        function = name.trim().to_owned();
    }
    Some(Frame { function, file: "/work/train.py".into(), line: at as u32 + 1, user: true })
}

/// Reads the case's site from a file on disk.
pub fn read(source: &[u8], frames: &[Frame], observed: &Observed<'_>) -> Finding {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("train.py"), source).unwrap();
    let tree = SourceTree::new(vec![SourceRoot { old: None, new: dir.path().to_owned() }]);
    read_site(&tree, frames, observed)
}

pub fn reading(source: &str, observed: &Observed<'_>) -> Reading {
    let frames: Vec<Frame> =
        ["# <- here", "# <- caller"].iter().filter_map(|marker| frame(source, marker)).collect();
    match read(source.as_bytes(), &frames, observed) {
        Finding::Read(reading) => reading,
        other => panic!("{other:?}"),
    }
}

/// Runs all cases and reports every wrong one.
pub fn check(cases: &[Case<'_>]) {
    let mut wrong = String::new();
    for (name, source, observed, expect) in cases {
        let frames: Vec<Frame> = ["# <- here", "# <- caller", "# <- outer"]
            .iter()
            .filter_map(|marker| frame(source, marker))
            .collect();
        let finding = read(source.as_bytes(), &frames, observed);
        let right = match (&finding, expect) {
            (Finding::Read(reading), Expect::Is(kind)) => {
                let verdict = &reading.verdict;
                let decided = verdict.class != Class::Unknown;
                let range = if decided { 0.65..=0.98 } else { 0.0..=0.65 };
                verdict.kind == *kind
                    && verdict.class == kind.class()
                    && range.contains(&verdict.confidence)
                    && !verdict.evidence.is_empty()
            }
            (Finding::Stale { .. }, Expect::Stale) => true,
            _ => false,
        };
        if !right {
            writeln!(wrong, "{name}: wanted {expect:?}, got {finding:#?}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn evidence_names_names_and_lines() {
    let source = "def f(loss):\n    lossf = loss.item()  # <- here\n    logger.info(f'{lossf}')\n";
    let found = reading(source, &item());
    assert_eq!(found.expression, "loss.item()");
    assert_eq!(found.verdict.pattern, Some("A01"));
    assert_eq!(found.verdict.evidence[0].text, "`lossf` is only an argument of logger.info (line 3)");
    let rules =
        |source: &str| reading(source, &item()).verdict.evidence.iter().map(|e| e.rule).collect::<Vec<_>>();
    assert_eq!(rules("if step % 10 == 0:\n    print(loss.item())  # <- here\n"), ["S04", "S18"]);
    assert_eq!(rules("print(a.item(), b.item())  # <- here\n"), ["S04", "S17", "S04"]);
    assert_eq!(rules("if loss.item() > 9:  # <- here\n    raise ValueError\n"), ["S02"]);
    assert_eq!(rules("for x in xs:\n    total += x.item()  # <- here\nprint(total)\n"), ["S05"]);
}
