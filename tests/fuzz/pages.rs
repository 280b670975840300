//! Pages of a damaged file: both readers give one answer, byte for byte.

use crate::export::Schema;
use crate::random::Random;
use crate::{drawn, printed, runner};
use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use sync_report::analysis::Options;
use sync_report::profile::database::Reader;
use sync_report::render::json;
use sync_report::report;

#[test]
fn pages() {
    runner::run("pages", 0..45, &[], case);
}

fn bases() -> &'static [Vec<u8>] {
    static BASES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    BASES.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |(at, (schema, page_size)): (usize, (Schema, usize))| {
            let path = folder.path().join(format!("{at}.sqlite"));
            drawn::write(schema, page_size, 8, &path);
            fs::read(path).expect("its bytes")
        };
        let kinds = [(Schema::V2026_2, 512), (Schema::V2025_3, 1024), (Schema::V2024_6, 4096)];
        kinds.into_iter().enumerate().map(write).collect()
    })
}

fn case(r: &Random) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("case.sqlite");
    let base = &bases()[r.below(bases().len())];
    fs::write(&path, base).expect("a copy");
    let rows = r.one_in(3);
    if rows {
        drawn::alter_rows(&path, r);
    }
    if !rows || r.one_in(2) {
        let mut bytes = fs::read(&path).expect("its bytes");
        damage(&mut bytes, r);
        fs::write(&path, bytes).expect("a copy");
    }
    let (pages, sqlite) = (told(&path, Reader::Pages), told(&path, Reader::Sqlite));
    if pages != sqlite {
        let code = |told: &Told| told.as_ref().map_or(2, |told| told.0);
        return Err(format!(
            "exit code {} by pages, {} by SQLite: {}",
            code(&pages),
            code(&sqlite),
            differ(&pages, &sqlite)
        ));
    }
    let options = Options { threads: 2, ..Options::default() };
    printed::in_some_format(&[path], &options, r)
}

/// The exit code and the JSON of a report, or the sentence that refuses it.
type Told = Result<(u8, Vec<u8>), String>;

fn told(path: &Path, reader: Reader) -> Told {
    let options = Options { threads: 2, reader, awaited: true, ..Options::default() };
    let report = report::run(&[path.to_owned()], &options).map_err(|error| format!("{error:#}"))?;
    let mut out = Vec::new();
    json::write(&report, &mut out).expect("a Vec takes everything");
    Ok((if report.warnings.iter().any(|w| w.is_damage()) { 2 } else { 0 }, out))
}

fn differ(a: &Told, b: &Told) -> String {
    let text = |told: &Told| match told {
        Ok((_, json)) => String::from_utf8_lossy(json).into_owned(),
        Err(sentence) => sentence.clone(),
    };
    let (a, b) = (text(a), text(b));
    let part = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    part.map_or_else(|| "one ends before the other".to_owned(), |(a, b)| format!("`{a}` / `{b}`"))
}

struct File<'a> {
    bytes: &'a mut Vec<u8>,
    size: usize,
    /// Pages of b-trees.
    trees: Vec<usize>,
}

fn damage(bytes: &mut Vec<u8>, r: &Random) {
    const HITS: [fn(&mut File, &Random); 12] =
        [header, pointer, child, cell, cell, varint, swap, copy, count, noise, file_header, cut];
    let size = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    let is_tree = |page: &usize| matches!(bytes[page * size], 2 | 5 | 10 | 13);
    let trees = (1..bytes.len() / size).filter(is_tree).collect();
    let mut file = File { bytes, size, trees };
    for _ in 0..r.pick(&[1, 1, 1, 2, 3, 5]) {
        r.pick(&HITS)(&mut file, r);
    }
}

impl File<'_> {
    /// Offset of a random b-tree page.
    fn tree(&self, r: &Random) -> usize {
        r.pick(&self.trees) * self.size
    }

    fn set(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn be16(&self, at: usize) -> usize {
        self.bytes.get(at..at + 2).map_or(0, |b| usize::from(u16::from_be_bytes([b[0], b[1]])))
    }

    fn is_leaf(&self, page: usize) -> bool {
        matches!(self.bytes.get(page), Some(10 | 13))
    }

    /// Offset of the pointer to a random cell of a page.
    fn slot(&self, page: usize, r: &Random) -> usize {
        let cells = self.be16(page + 3).min(self.size / 4);
        page + if self.is_leaf(page) { 8 } else { 12 } + 2 * r.below(cells)
    }
}

fn header(file: &mut File, r: &Random) {
    let page = file.tree(r);
    let byte = if r.one_in(3) { r.pick(&[2, 5, 10, 13, 0]) } else { r.byte() };
    file.set(page + r.below(12), &[byte]);
}

fn pointer(file: &mut File, r: &Random) {
    let page = file.tree(r);
    let last = file.size as u16 - 1;
    let to = r.pick(&[0, 7, last, last - 3, last - 8, r.below(file.size) as u16, r.next() as u16]);
    let other = file.be16(file.slot(page, r)) as u16;
    let to = if r.one_in(3) { other } else { to };
    let slot = file.slot(page, r);
    file.set(slot, &to.to_be_bytes());
}

fn child(file: &mut File, r: &Random) {
    let inner: Vec<usize> =
        file.trees.iter().map(|page| page * file.size).filter(|&page| !file.is_leaf(page)).collect();
    if inner.is_empty() {
        return;
    }
    let page = r.pick(&inner);
    let at = if r.one_in(3) { page + 8 } else { page + file.be16(file.slot(page, r)) };
    let to = r.pick(&file.trees) as u32 + 1;
    let to = r.pick(&[
        to,
        to,
        (page / file.size) as u32 + 1,
        0,
        u32::MAX,
        (file.bytes.len() / file.size) as u32 + 1,
    ]);
    file.set(at, &to.to_be_bytes());
}

/// Bytes at the start of a cell: lengths, rowids, types.
fn cell(file: &mut File, r: &Random) {
    let page = file.tree(r);
    let start = page + file.be16(file.slot(page, r));
    for _ in 0..r.pick(&[1, 1, 3]) {
        let at = start + r.below(16);
        let old = file.bytes.get(at).copied().unwrap_or(0);
        let byte = r.pick(&[
            old ^ 1 << r.below(8),
            old.wrapping_add(1),
            old.wrapping_sub(1),
            0x81,
            0xFF,
            0,
            r.byte(),
        ]);
        file.set(at, &[byte]);
    }
}

/// A number of nine bytes where a cell has a shorter one.
fn varint(file: &mut File, r: &Random) {
    let page = file.tree(r);
    let at = page + file.be16(file.slot(page, r)) + r.below(6);
    let mut bytes = [r.pick(&[0xFF, 0x80, 0x81]); 9];
    bytes[8] = r.byte();
    file.set(at, &bytes[..1 + r.below(9)]);
}

fn swap(file: &mut File, r: &Random) {
    let (a, b) = (file.tree(r), file.tree(r));
    for i in 0..file.size {
        file.bytes.swap(a + i, b + i);
    }
}

fn copy(file: &mut File, r: &Random) {
    let (a, b) = (file.tree(r), file.tree(r));
    file.bytes.copy_within(a..a + file.size, b);
}

fn count(file: &mut File, r: &Random) {
    let page = file.tree(r);
    let old = file.be16(page + 3) as u16;
    let new = r.pick(&[0, 1, u16::MAX, old.wrapping_add(1), old.saturating_sub(1), r.next() as u16]);
    file.set(page + 3, &new.to_be_bytes());
}

fn noise(file: &mut File, r: &Random) {
    for _ in 0..r.pick(&[1, 10, 100]) {
        let (at, byte) = (100 + r.below(file.bytes.len() - 100), r.byte());
        file.set(at, &[byte]);
    }
}

/// The file's own header, but for the size of its pages.
fn file_header(file: &mut File, r: &Random) {
    let at = r.pick(&[18, 19, 20, 21, 24, 27, 28, 30, 31, 35, 39, 47, 52, 55, 59, 63, 95, 96]);
    let byte = r.pick(&[0, 1, 2, 3, 255, r.byte()]);
    file.set(at, &[byte]);
}

fn cut(file: &mut File, r: &Random) {
    // The header promises fewer pages; mostly the file is cut there.
    let pages = (file.bytes.len() / file.size).saturating_sub(r.below(4)) as u32;
    file.set(28, &pages.to_be_bytes());
    if !r.one_in(3) {
        file.bytes.truncate(pages as usize * file.size - r.below(2));
        file.trees.retain(|page| *page + 1 < pages as usize);
    }
}
