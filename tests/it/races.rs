//! Copies whose memory the host uses before they have ended. Drawn alike, in µs:
//!
//! ```text
//!  host      [copy]    [copy]    [copy]        the line, every 1000
//!  stream 7       ~~~~~~~~~[copy]                each copy ends `lag` after its call
//! ```
//! Where `waits` says so, the thread waits for an event before each further copy.

use crate::export::{Copy, GPU0, Memory, PythonFrame, empty};
use crate::look;
use std::fs;
use sync_report::analysis::Options;
use sync_report::verdict::source::SourceRoot;

const US: i64 = 1000;

struct Scene<'a> {
    /// With `#!` on the line of the copy, which runs in `run`.
    program: &'a str,
    /// Its other file, memory.py.
    memory: &'a str,
    copy: Copy,
    lag: i64,
    waits: bool,
}

impl Scene<'_> {
    fn new(program: &str, copy: Copy) -> Scene<'_> {
        Scene { program, memory: "", copy, lag: 1500, waits: false }
    }

    /// The warning about the program, as its code and the line that it names.
    fn said(&self) -> Option<String> {
        let line = self.program.lines().position(|line| line.contains("#!")).expect("a line") as i64 + 1;
        let (mut e, t) = empty();
        for turn in 0..6 {
            let at = 10_000 * US + turn * 1000 * US;
            if self.waits && turn > 0 {
                let wait = e.event_sync(t, at - 600 * US..at - 500 * US, 1);
                e.python(wait, &[("run", "/w/train.py", line - 1)]);
            }
            let ended = at + self.lag * US;
            let call = e.memcpy(t, at..at + 10 * US, self.copy, GPU0, ended - 100 * US..ended);
            e.python(call, &[("run", "/w/train.py", line) as PythonFrame<'_>]);
        }
        e.sync(t, "cudaDeviceSynchronize", 20_000 * US..20_010 * US, GPU0);
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("train.py"), self.program).expect("a program");
        fs::write(folder.path().join("memory.py"), self.memory).expect("its other file");
        let root = SourceRoot { old: Some("/w".to_owned()), new: folder.path().to_owned() };
        let report = look::report_with(&e, &Options { source_roots: vec![root], ..look::options() });
        let race = |code: &str| matches!(code, "buffer-race" | "early-read");
        let mut said = report.warnings.iter().filter(|warning| race(&warning.code));
        let one = said.next().map(|warning| format!("{}: {}", warning.code, warning.message));
        assert!(said.next().is_none(), "{:?}", report.warnings);
        one
    }
}

fn up() -> Copy {
    Copy::h2d(1 << 20, Memory::Pinned)
}

fn down() -> Copy {
    Copy::d2h(64, Memory::Pinned)
}

const REUSED: &str = r#"import torch
buffer = torch.empty(1024).pin_memory()
def run(batches):
    for x in batches:
        buffer.copy_(x)
        y = buffer.to("cuda", non_blocking=True)  #!
run(load())
"#;

const OF_AN_OBJECT: &str = r#"import torch
class Feeder:
    def __init__(self, n):
        self.buffer = torch.empty(n, pin_memory=True)
    def run(self, x, n):
        for i, value in enumerate(x):
            self.buffer[i] = value
        self.gpu.copy_(self.buffer[:n], non_blocking=True)  #!
feeder = Feeder(1024)
"#;

const READ: &str = r#"import torch
def run(batches):
    total = 0
    for x in batches:
        host = model(x).to("cpu", non_blocking=True)  #!
        total += host.sum().item()
"#;

#[test]
fn a_pinned_buffer_that_is_written_under_its_copy_is_told() {
    let said = Scene::new(REUSED, up()).said().expect("a warning");
    assert!(
        said.starts_with(
            "buffer-race: train.py:6: 5 uploads of the pinned `buffer` had not ended when this line ran again, and line 5 writes to it"
        ),
        "{said}"
    );
    let whole = OF_AN_OBJECT.replace("self.buffer[:n]", "self.buffer");
    let said = Scene::new(&whole, up()).said().expect("a warning");
    assert!(said.starts_with("buffer-race: train.py:8: ") && said.contains("line 7 writes"), "{said}");
}

/// Of each: the file that makes the buffer, what the program says above its loop, the buffer, and whether it is told.
#[test]
fn a_buffer_of_another_file_is_followed_there() {
    const MEMORY: &str = r#"import torch
def pinned(n):
    return torch.empty(n, pin_memory=True)
def plain(n):
    return torch.empty(n)
def either(n):
    if n:
        return torch.empty(n).pin_memory()
    return plain(n)
class Staging:
    def __init__(self, n):
        self.buffer = pinned(n)
        self.other = plain(n)
shared = pinned(64)
given = pinned(64)
given = pinned(128)
"#;
    for (above, buffer, told) in [
        ("from memory import pinned\nbuffer = pinned(64)", "buffer", true),
        ("import memory\nbuffer = memory.pinned(64)", "buffer", true),
        ("from memory import shared", "shared", true),
        ("from memory import Staging\nstaging = Staging(64)", "staging.buffer", true),
        ("from memory import plain\nbuffer = plain(64)", "buffer", false),
        ("from memory import either\nbuffer = either(64)", "buffer", false),
        ("from memory import given", "given", false),
        ("from elsewhere import pinned\nbuffer = pinned(64)", "buffer", false),
        ("from memory import Staging\nstaging = Staging(64)", "staging.other", false),
        ("from memory import Staging\nstaging = Staging(64)\nstaging = Staging(32)", "staging.buffer", false),
        ("from memory import Staging\nstaging = Staging(64)\nstaging.buffer = None", "staging.buffer", false),
        (
            "from memory import Staging\nall = [Staging(n) for n in sizes]\nfor staging in all: run(staging)",
            "staging.buffer",
            false,
        ),
    ] {
        let program = REUSED.replace("buffer = torch.empty(1024).pin_memory()", above);
        let program = program.replace("buffer.", &format!("{buffer}."));
        let said = Scene { memory: MEMORY, ..Scene::new(&program, up()) }.said();
        assert_eq!(said.is_some(), told, "{program}: {said:?}");
    }
}

#[test]
fn a_read_that_nothing_waits_for_is_told() {
    for lag in [50, 1500] {
        let said = Scene { lag, ..Scene::new(READ, down()) }.said().expect("a warning");
        assert!(said.starts_with("early-read: train.py:5: `host` is copied to the host"), "{said}");
        assert!(said.contains("read on line 6, with no wait between (5 times)"), "{said}");
    }
}

#[test]
fn what_the_trace_does_not_show_is_not_told() {
    // The copies had ended.
    assert_eq!(Scene { lag: 900, ..Scene::new(REUSED, up()) }.said(), None);
    // Clocks of host and GPU may be as far apart.
    assert_eq!(Scene { lag: 1015, ..Scene::new(REUSED, up()) }.said(), None);
    // The thread waited, for whatever it was.
    assert_eq!(Scene { waits: true, ..Scene::new(READ, down()) }.said(), None);
    // The driver has taken over what is pageable.
    assert_eq!(Scene::new(REUSED, Copy::h2d(64, Memory::Pageable)).said(), None);
}

/// Each program is one of the above but for what is replaced.
#[test]
fn what_the_source_does_not_show_is_not_told() {
    let up = |old: &str, new: &str| (Scene::new(REUSED, up()), old.to_owned(), new.to_owned());
    let object =
        |old: &str, new: &str| (Scene::new(OF_AN_OBJECT, self::up()), old.to_owned(), new.to_owned());
    let down = |old: &str, new: &str| (Scene::new(READ, down()), old.to_owned(), new.to_owned());
    let fresh = "def run(batches):\n    for x in batches:\n        buffer = torch.empty(1024).pin_memory()\n";
    for (scene, old, new) in [
        up("def run(batches):\n    for x in batches:\n", fresh),
        up("torch.empty(1024).pin_memory()", "torch.empty(1024)"),
        up("buffer.copy_(x)", "print(x)"),
        up("buffer.copy_(x)", "buffer.copy_(x, non_blocking=True)"),
        up("        buffer.copy_(x)", "        if x is not None: buffer.copy_(x)"),
        up("buffer = torch.empty(1024).pin_memory()", "buffer, other = pair()"),
        up("buffer.copy_(x)\n        y = buffer.", "buffer[i].copy_(x)\n        y = buffer[i]."),
        up("buffer.copy_(x)\n        y = buffer.", "buffer[3] = x\n        y = buffer[:2]."),
        up("non_blocking=True)  #!", "non_blocking=True); z = buffer.to(\"cuda\", non_blocking=True)  #!"),
        up("        buffer.copy_(x)\n        y", "        buffer.copy_(x)\n        for part in x: y"),
        // One of several objects, of which each has its buffer; a part that is not the one that is written.
        object("feeder = Feeder(1024)", "feeders = [Feeder(1024), Feeder(1024)]"),
        object("feeder = Feeder(1024)", "feeders = [Feeder(n) for n in sizes]"),
        object("feeder = Feeder(1024)", "feeder = Feeder(1024)\nfeeder.buffer = other"),
        object("self.buffer[:n], non", "self.buffer[:n], non"),
        down("host.sum().item()", "1; keep.append(host)"),
        down("host.sum().item()", "1; keep.append(host.numpy())"),
        down("        total", "        done.synchronize() if done.query() else 0\n        total"),
        down("        total", "        if len(x) > 3: continue\n        total"),
        down("        total", "        if len(x) > 3: total"),
        down("to(\"cpu\", ", "to(place, "),
    ] {
        let program = scene.program.replace(&old, &new);
        assert!(program != scene.program || old == new, "{old} is not there");
        assert_eq!(Scene { program: &program, ..scene }.said(), None, "{program}");
    }
}
