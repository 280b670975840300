//! Copies whose memory the host uses before they have ended. Drawn alike, in µs:
//!
//! ```text
//!  host      [copy]    [copy]    [copy]        the line, every 1000
//!  stream 7       ~~~~~~~~~[copy]                each copy ends `lag` after its call
//! ```
//! The programs are `races/programs.py`, whose markers (as in [`marker`]) say how each copies and what is to be said of it.

use crate::export::{Copy, GPU0, Memory, PythonFrame, empty};
use crate::look;
use crate::snippets::marker::{self, Mark, Snippet};
use std::fs;
use sync_report::analysis::Options;
use sync_report::verdict::source::SourceRoot;

const US: i64 = 1000;

#[test]
fn programs_are_warned_of_as_their_markers_say() {
    let programs = marker::parse(include_str!("races/programs.py"));
    for snippet in &programs {
        for mark in &snippet.marks {
            let said = said(snippet, mark);
            let code = said.as_deref().and_then(|said| said.split(':').next());
            let place = format!("{}: {mark:?}: {said:?}", snippet.name);
            assert_eq!(code, mark.label.as_ref().map(|label| &*label.kind), "{place}");
            for (_, words) in mark.rest.iter().filter(|(option, _)| option == "says") {
                assert!(said.as_ref().is_some_and(|said| said.contains(words.as_str())), "{place}");
            }
        }
    }
    assert_eq!(programs.len(), 35);
}

/// The warning about a program whose marked line, in `run`, copies as the marker says.
fn said(snippet: &Snippet, mark: &Mark) -> Option<String> {
    let option = |name: &str| mark.rest.iter().find(|(option, _)| option == name).map(|(_, text)| &**text);
    let lag = option("lag").map_or(1500, |lag| lag.parse().expect("µs"));
    let copy = match &*mark.operation {
        "down" => Copy::d2h(64, Memory::Pinned),
        _ if option("pageable").is_some() => Copy::h2d(64, Memory::Pageable),
        _ => Copy::h2d(1 << 20, Memory::Pinned),
    };
    let (line, (mut e, t)) = (mark.line as i64, empty());
    for turn in 0..6 {
        let at = 10_000 * US + turn * 1000 * US;
        if option("waits").is_some() && turn > 0 {
            let wait = e.event_sync(t, at - 600 * US..at - 500 * US, 1);
            e.python(wait, &[("run", "/w/train.py", line - 1)]);
        }
        let ended = at + lag * US;
        let call = e.memcpy(t, at..at + 10 * US, copy, GPU0, ended - 100 * US..ended);
        e.python(call, &[("run", "/w/train.py", line) as PythonFrame<'_>]);
    }
    e.sync(t, "cudaDeviceSynchronize", 20_000 * US..20_010 * US, GPU0);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("train.py"), snippet.lines.join("\n") + "\n").expect("a program");
    fs::write(folder.path().join("memory.py"), include_str!("races/memory.py")).expect("its other file");
    let root = SourceRoot { old: Some("/w".to_owned()), new: folder.path().to_owned() };
    let report = look::report_with(&e, &Options { source_roots: vec![root], ..look::options() });
    let race = |code: &str| matches!(code, "buffer-race" | "early-read");
    let mut said = report.warnings.iter().filter(|warning| race(&warning.code));
    let one = said.next().map(|warning| format!("{}: {}", warning.code, warning.message));
    assert!(said.next().is_none(), "{:?}", report.warnings);
    one
}
