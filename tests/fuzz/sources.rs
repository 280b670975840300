//! Python that differs from the captured program: the reader never panics, and edited files still parse.

use crate::export::{Copy, Export, GPU0, Memory, Schema, Thread};
use crate::random::Random;
use crate::{printed, runner};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use sync_report::analysis::Options;
use sync_report::patch::{self, EditChoice};
use sync_report::render::patch as diff;
use sync_report::report;
use sync_report::repository::Repository;
use sync_report::verdict::source::{SourceRoot, parses};

#[test]
fn sources() {
    runner::run("sources", 0..45, &[], case);
}

/// Programs from the tests of the reader, and of its edits.
fn programs() -> &'static [Vec<String>; 2] {
    static PROGRAMS: OnceLock<[Vec<String>; 2]> = OnceLock::new();
    let all = || [&["tests/it/reading", "tests/it/snippets"], &["tests/it/mending", "tests/it/cli/fixes"]];
    PROGRAMS.get_or_init(|| all().map(|folders| folders.iter().flat_map(|folder| snippets(folder)).collect()))
}

/// A file holds many programs.
fn snippets(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(folder).expect("the programs");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a program").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "py"));
    paths.sort();
    let before = |part: &str| format!("#{}\n", part.split("\n# file:").next().unwrap_or_default());
    let programs = |path| -> Vec<String> {
        fs::read_to_string(path).expect("a program").split("\n# ---").map(before).collect()
    };
    paths.iter().flat_map(programs).collect()
}

fn case(r: &Random) -> Result<(), String> {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("checkout");
    fs::create_dir(&folder).expect("a folder");
    let [all, edited] = programs();
    let programs = if r.one_in(3) { all } else { edited };
    let mut text = programs[r.below(programs.len())].clone();
    for _ in 0..r.pick(&[0, 1, 1, 2, 4]) {
        text = mutated(&text, r);
    }
    let bytes = encoded(&text, r);
    let file = folder.join("train.py");
    fs::write(&file, &bytes).expect("a program");
    let export = home.path().join("profile.sqlite");
    capture(&text, r).write(&export);
    let root = SourceRoot { old: Some("/w".to_owned()), new: folder.clone() };
    let options = Options { threads: 1, source_roots: vec![root], ..Options::default() };
    // The edited program is edited again.
    for _ in 0..2 {
        edit(&export, &file, &options, r)?;
    }
    printed::in_some_format(&[export], &Options { source_files: Default::default(), ..options }, r)
}

/// Makes the edits that a report proposes.
fn edit(export: &Path, file: &Path, options: &Options, r: &Random) -> Result<(), String> {
    let options = Options { source_files: Default::default(), ..options.clone() };
    let report = report::run(&[export.to_owned()], &options).map_err(|error| format!("{error:#}"))?;
    let roots = options.source_roots.iter().map(|root| root.new.clone()).collect();
    let wanted = EditChoice { with_unsafe: !r.one_in(3), roots, ..EditChoice::default() };
    let patch = patch::plan(&report, &options.sources(), &wanted);
    let repository = Repository::new(".".into(), options.source_roots.clone());
    diff::render(&patch, &|file| repository.path(file), &mut Vec::new())
        .map_err(|error| error.to_string())?;
    diff::summary(&patch, false);
    for edited in &patch.files {
        let breaks = |text: &str| {
            (text.matches("\r\n").count(), text.matches('\n').count(), text.matches('\r').count())
        };
        let (before, after) = (breaks(&edited.before), breaks(&edited.after));
        if fs::read(file).expect("the program") != edited.before.as_bytes() {
            return Err("the patch is of another text than the file's".to_owned());
        }
        if !parses(&edited.after) {
            return Err(format!("does not parse after the edit:\n{}", edited.after));
        }
        if before.0 == before.1 && after.0 != after.1 || before.2 == 0 && after.2 > 0 {
            return Err(format!("other line breaks after the edit:\n{:?}", edited.after));
        }
        fs::write(file, &edited.after).expect("written");
    }
    Ok(())
}

/// A capture of waits at some lines of a program, mostly at lines with markers.
fn capture(text: &str, r: &Random) -> Export {
    let lines: Vec<&str> = text.split('\n').collect();
    let marked: Vec<usize> = (0..lines.len()).filter(|&i| lines[i].contains("#!")).collect();
    let mut e = Export::new(Schema::V2025_3);
    let t = e.thread(100, 100);
    e.launch(t, 10..20, GPU0, 30..100, "gemm");
    // A single line that did not run keeps the file from edits.
    let exact = !marked.is_empty() && !r.one_in(3);
    for n in 0..1 + r.below(5) {
        let line = if exact { r.pick(&marked) } else { r.below(lines.len()) };
        // Usually the operation named by the marker.
        let marker = lines[line].split("#! ").nth(1).unwrap_or_default();
        let said = WORDS.iter().copied().find(|word| marker.contains(word));
        let word = said.unwrap_or(if marker.is_empty() { r.pick(&WORDS) } else { "read" });
        let module = ("<module>", "/w/train.py", lines.len() as i64);
        let frames = [(function(&lines, line), "/w/train.py", line as i64 + 1), module];
        for turn in 0..3 {
            wait(&mut e, t, word, 1000 + 10_000 * (3 * n as i64 + turn), &frames);
        }
    }
    e
}

fn function<'a>(lines: &[&'a str], line: usize) -> &'a str {
    let indent = |text: &str| text.len() - text.trim_start().len();
    let around =
        |at: &usize| indent(lines[*at]) < indent(lines[line]) && lines[*at].trim_start().starts_with("def ");
    let def = (0..line).rev().find(around);
    let name = def.and_then(|at| lines[at].trim_start()[4..].split(['(', ':', '[', ' ']).next());
    name.filter(|name| !name.is_empty()).unwrap_or("<module>")
}

const WORDS: [&str; 6] = ["upload", "pinned", "copy", "cpu", "sync", "read"];

/// Draws the calls that a marker's word stands for.
fn wait(e: &mut Export, t: Thread, word: &str, at: i64, frames: &[(&str, &str, i64)]) {
    e.launch(t, at..at + 20, GPU0, at + 30..at + 600, "gemm");
    let copy = match word {
        "upload" => Copy::h2d(512, Memory::Pageable),
        "pinned" => Copy::h2d(4096, Memory::Pinned),
        "copy" | "cpu" => Copy::d2h(4096, Memory::Pageable),
        "sync" => {
            let wait = e.device_sync(t, at + 100..at + 700, 0);
            e.python(wait, frames);
            return;
        }
        _ => Copy::d2h(4, Memory::Pinned),
    };
    for call in [
        e.memcpy(t, at + 100..at + 150, copy, GPU0, at + 605..at + 610),
        e.sync(t, "cudaStreamSynchronize", at + 160..at + 700, GPU0),
    ] {
        e.python(call, frames);
    }
}

/// Latin-1, with a byte order mark, or with a wrong byte now and then.
fn encoded(text: &str, r: &Random) -> Vec<u8> {
    let mut bytes = match r.below(20) {
        0 => text.chars().map(|c| c as u8).collect(),
        1 => format!("\u{feff}{text}").into_bytes(),
        _ => text.to_owned().into_bytes(),
    };
    if r.one_in(30) && !bytes.is_empty() {
        let at = r.below(bytes.len());
        bytes[at] = r.byte();
    }
    bytes
}

const PIECES: [&str; 56] = [
    ".item()",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "f\"{",
    "\"",
    "'''",
    "\"\"\"",
    "\\\n",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "    ",
    "\u{c}",
    "#",
    "lambda: ",
    "yield ",
    "await ",
    "*",
    "**",
    ":=",
    ":",
    " if x else ",
    " for a in b",
    "async ",
    "é",
    "\u{2028}",
    "名",
    "\u{1F600}",
    "@",
    "->",
    "...",
    ";",
    "del ",
    "global loss\n",
    "x = ",
    ".cpu()",
    ".cuda()",
    "torch.cuda.synchronize()",
    ".to(\"cuda\")",
    "print(loss.item())",
    "match x:\n    case 1: pass",
    "\nclass A:\n",
    "\ndef f():\n",
    "t\"{x}\"",
    "0x",
    "1_000__0",
    "\u{1b}[31m",
    "\u{a0}",
    "\u{202e}",
    "type X = int",
    "\0",
];

fn mutated(text: &str, r: &Random) -> String {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = places[r.below(places.len())];
    let (before, after) = text.split_at(at);
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let line = r.below(lines.len());
    match r.below(16) {
        0..4 => return format!("{before}{}{after}", r.pick(&PIECES)),
        4 => return before.to_owned() + &after.chars().skip(r.pick(&[1, 1, 3, 20])).collect::<String>(),
        5 => return text.replace("\r\n", "\n").replace('\n', "\r\n"),
        6 => return text.replace("    ", "\t"),
        7 => return if r.one_in(3) { before.to_owned() } else { text.trim_end().to_owned() },
        8 => lines.insert(line, lines[line].clone()),
        9 => drop(lines.remove(line)),
        10 => {
            let other = r.below(lines.len());
            lines.swap(line, other);
        }
        11 => lines[line].insert_str(0, r.pick(&["\t", " ", "        ", "\u{c}", "if x: "])),
        12 => lines[line] += &format!("; {}", "x = 1; ".repeat(r.pick(&[1, 10, 200]))),
        13 => {
            let piece = r.pick(&PIECES).repeat(r.pick(&[2, 50, 300]));
            lines[line] += &piece;
        }
        14 if line + 1 < lines.len() => {
            let next = lines.remove(line + 1);
            lines[line] += &format!("; {}", next.trim_start());
        }
        _ => lines[line] += "\r",
    }
    lines.join("\n")
}
