//! Tables read straight from the pages of the file, without SQLite's virtual machine.
//!
//! ```text
//!                  root            interior page: (child, largest rowid in it) …, rightmost child
//!            ┌───────┼───────┐
//!          part 0  part 1  part 2  a subtree each, in key order: taken by whichever thread is free
//!          ┌─┴─┐   ┌─┴─┐   ┌─┴─┐
//!          leaf …                  rows; leaves that follow each other in the file are read in one go
//! ```
//! Source: the SQLite file format, sections 1.3 (header), 1.6 (b-tree pages), 1.7 (overflow pages). A page
//! that does not fit it is [`Damaged`], and SQLite reads the table, as it reads every small one. Every bound
//! is checked. Only in a damaged file is a page visited twice, and then no more pages than the file has.
//! Reads, no memory map: a file that shrinks meanwhile is an error, not a signal. Cost: a copy of each page
//! of the table, and [`super::record`]; the page faults of a map take longer than the copies (4.3 GB in the
//! page cache: 0.32 s for reads, 0.36 s for a map of the whole file, 0.55 s for windows of it).

use super::btree::{Branch, MAX_DEPTH, Page, Row, be32};
use super::record::{Damaged, FieldPlace, Fits, Record};
use super::{Cells, Parts, ReadPart, Source};
use crate::profile::header::beside;
use crate::text::sql_quote;
use rusqlite::Connection;
use rustc_hash::FxHashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of pages read at once: they stay in a core's L2 cache until they are decoded.
const READ: usize = 256 << 10;

/// The pages of a file that SQLite has opened, and so holds unchanged.
pub(super) struct Pages {
    file: File,
    /// Bytes of a page, `usable` without reserved ones.
    size: usize,
    usable: usize,
    count: u32,
    read: AtomicU64,
}

impl Pages {
    /// `None` where pages are not the whole file (a write-ahead log), or the format is another.
    pub fn open(path: &Path) -> Option<Self> {
        if beside(path, "-wal") {
            return None;
        }
        let file = File::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        let mut header = [0; 100];
        file.read_exact_at(&mut header, 0).ok()?;
        let size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65536,
            size => usize::from(size),
        };
        let usable = size.checked_sub(usize::from(header[20])).filter(|usable| *usable >= 480)?;
        let be32 = |at| be32(&header, at).ok();
        // nsys writes UTF-8. Only SQLite knows what invalid UTF-16 becomes.
        be32(56).filter(|encoding| matches!(encoding, 0 | 1))?;
        // As SQLite counts: by the header, if it is of this version of the file.
        let count = match be32(28)? {
            count if count > 0 && be32(24) == be32(92) => count,
            _ => u32::try_from(length / size as u64).ok()?,
        };
        size.is_power_of_two().then_some(Self { file, size, usable, count, read: AtomicU64::new(0) })
    }

    /// `seldom` columns are asked of few rows; `None` where SQLite has to read the table.
    pub fn table<'a>(
        &'a self,
        connection: &Connection,
        table: &str,
        columns: &[&str],
        seldom: &[&str],
    ) -> Option<Table<'a>> {
        let root: u32 = connection
            .query_row(
                "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?1",
                [table],
                |r| r.get(0),
            )
            .ok()?;
        let mut places = places(connection, table, &[columns, seldom].concat()).ok()??;
        let seldom = places.split_off(columns.len());
        Some(Table { pages: self, root, places, seldom })
    }

    pub fn bytes(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Reads `pages.len() / size` pages from `first` on.
    fn read(&self, first: u32, pages: &mut [u8]) -> Result<(), Damaged> {
        let past = u64::from(first) + (pages.len() / self.size) as u64;
        if first == 0 || past > u64::from(self.count) + 1 {
            return Err(Damaged);
        }
        self.read.fetch_add(pages.len() as u64, Relaxed);
        self.file.read_exact_at(pages, u64::from(first - 1) * self.size as u64).map_err(|_| Damaged)
    }

    fn page(&self, number: u32) -> Result<Vec<u8>, Damaged> {
        let mut page = vec![0; self.size];
        self.read(number, &mut page)?;
        Ok(page)
    }

    /// The table's subtrees in key order, down to the pages just above the leaves.
    fn parts(&self, root: u32) -> Result<Vec<Branch>, Damaged> {
        let mut parts = vec![Branch::root(root)];
        for _ in 0..MAX_DEPTH {
            let mut next = Vec::new();
            for &part in &parts {
                let bytes = self.page(part.page)?;
                let page = Page::of(&bytes, self.usable, part)?;
                if page.is_leaf() {
                    return Ok(parts);
                }
                page.children(self.count, &mut next)?;
                if next.len() > self.count as usize {
                    return Err(Damaged);
                }
            }
            if Page::of(&self.page(next[0].page)?, self.usable, next[0])?.is_leaf() {
                return Ok(parts);
            }
            parts = next;
        }
        Err(Damaged)
    }
}

/// Places of the columns; `None` where SQLite has to read the table: it has generated columns or its own
/// column `rowid`, or a column asked for is floating point (whole numbers are stored as integers and read as
/// REAL), or defaults to more than a number (or to one, in a column of text).
fn places(
    connection: &Connection,
    table: &str,
    columns: &[&str],
) -> rusqlite::Result<Option<Vec<FieldPlace>>> {
    let mut info = connection.prepare(&format!("PRAGMA table_xinfo({})", sql_quote(table)))?;
    let mut rows = info.query([])?;
    let mut of: FxHashMap<String, FieldPlace> = FxHashMap::default();
    let (mut at, mut keys, mut key) = (0, 0, None);
    while let Some(row) = rows.next()? {
        let (name, kind): (String, String) = (row.get(1)?, row.get(2)?);
        let default: Option<String> = row.get(4)?;
        let default = match default.as_deref() {
            None => Some(None),
            Some(text) if text.eq_ignore_ascii_case("null") => Some(None),
            Some(text) => text.parse::<i64>().ok().map(Some),
        };
        let kind = kind.to_ascii_uppercase();
        let is = |words: [&str; 3]| words.iter().any(|word| kind.contains(word)) && !kind.contains("INT");
        let float = is(["REAL", "FLOA", "DOUB"]);
        // A number that SQLite hands out as a text.
        let default = default.filter(|number| number.is_none() || !is(["CHAR", "CLOB", "TEXT"]));
        let is_asked = columns.contains(&name.as_str());
        let Some(default) = default.or((!is_asked).then_some(None)) else { return Ok(None) };
        if row.get::<_, i64>(6)? != 0 || (float && is_asked) || name.eq_ignore_ascii_case("rowid") {
            return Ok(None);
        }
        if row.get::<_, i64>(5)? > 0 {
            keys += 1;
            key = Some((name.clone(), kind == "INTEGER"));
        }
        of.insert(name, FieldPlace::Stored(at, default));
        at += 1;
    }
    // Only SQLite knows whether a key is the rowid under another name: `INTEGER PRIMARY KEY DESC` is none.
    if let Some((name, true)) = key.filter(|_| keys == 1)
        && super::sqlite::plan(connection, table, &name)?.contains("INTEGER PRIMARY KEY")
    {
        of.insert(name, FieldPlace::Rowid);
    }
    of.insert("rowid".to_owned(), FieldPlace::Rowid);
    Ok(Some(columns.iter().map(|c| of.get(*c).copied().unwrap_or(FieldPlace::Absent)).collect()))
}

pub(super) struct Table<'a> {
    pages: &'a Pages,
    root: u32,
    places: Vec<FieldPlace>,
    seldom: Vec<FieldPlace>,
}

impl<'a> Table<'a> {
    pub fn is_rowid(&self, i: usize) -> bool {
        self.places[i] == FieldPlace::Rowid
    }

    pub fn parts(&'a self) -> Result<Subtrees<'a>, Damaged> {
        Ok(Subtrees { table: self, roots: self.pages.parts(self.root)? })
    }

    pub fn reader(&self) -> Reader<'_> {
        Reader {
            table: self,
            record: Record::new(self.places.clone(), self.seldom.clone()),
            buffers: Vec::new(),
            whole: Vec::new(),
            way: Vec::new(),
            visited: 0,
        }
    }
}

pub(super) struct Subtrees<'a> {
    table: &'a Table<'a>,
    roots: Vec<Branch>,
}

impl Parts for Subtrees<'_> {
    type Error = Damaged;

    fn len(&self) -> usize {
        self.roots.len()
    }

    fn reader(&self) -> Result<Box<dyn ReadPart<Damaged> + '_>, Damaged> {
        Ok(Box::new((self.table.reader(), self.roots.as_slice())))
    }
}

/// One for each thread.
pub(super) struct Reader<'a> {
    table: &'a Table<'a>,
    record: Record,
    /// Consecutive pages, for each depth.
    buffers: Vec<Vec<u8>>,
    /// A payload joined from overflow pages.
    whole: Vec<u8>,
    /// The pages from the root to the row that was looked up last.
    way: Vec<(Branch, Vec<u8>)>,
    /// Pages read so far: more than the file has mean a cycle.
    visited: u32,
}

impl ReadPart<Damaged> for (Reader<'_>, &[Branch]) {
    fn read(&mut self, part: usize, each: &mut dyn FnMut(&Cells)) -> Result<u64, Damaged> {
        self.0.visit(&self.1[part..=part], 0, each)
    }
}

impl Reader<'_> {
    /// Reads `branches` in order, with all pages below.
    fn visit(
        &mut self,
        branches: &[Branch],
        depth: usize,
        each: &mut dyn FnMut(&Cells),
    ) -> Result<u64, Damaged> {
        let pages = self.table.pages;
        let together = READ / pages.size;
        let mut rows = 0;
        let mut left = branches;
        while let Some(&Branch { page: first, .. }) = left.first() {
            let run = left
                .iter()
                .zip(first..)
                .take(together.max(1))
                .take_while(|(branch, next)| branch.page == *next)
                .count();
            let (together, rest) = left.split_at(run);
            left = rest;
            self.visited = self.visited.saturating_add(run as u32);
            if depth > MAX_DEPTH || self.visited > pages.count {
                return Err(Damaged);
            }
            if self.buffers.len() <= depth {
                self.buffers.push(Vec::new());
            }
            let (mut buffer, length) = (std::mem::take(&mut self.buffers[depth]), run * pages.size);
            if buffer.len() < length {
                buffer.resize(length, 0);
            }
            pages.read(first, &mut buffer[..length])?;
            for (bytes, &branch) in buffer[..length].chunks_exact(pages.size).zip(together) {
                let page = Page::of(bytes, pages.usable, branch)?;
                if page.is_leaf() {
                    rows += page.rows(|row| self.row(&row, each))?;
                } else {
                    let mut children = Vec::new();
                    page.children(pages.count, &mut children)?;
                    rows += self.visit(&children, depth + 1, each)?;
                }
            }
            self.buffers[depth] = buffer;
        }
        Ok(rows)
    }

    fn row(&mut self, row: &Row, each: &mut dyn FnMut(&Cells)) -> Result<(), Damaged> {
        let &Row { rowid, length, payload, overflow } = row;
        if self.record.find(rowid, payload, length)? == Fits::Yes {
            each(&Cells(Source::Page(self.record.row(payload))));
            return Ok(());
        }
        self.overflow(payload, length, overflow.ok_or(Damaged)?)?;
        if self.record.find(rowid, &self.whole, length)? == Fits::No {
            return Err(Damaged);
        }
        each(&Cells(Source::Page(self.record.row(&self.whole))));
        Ok(())
    }

    /// Passes on the row, if there is one. The path to the last row is kept: the next is mostly near.
    pub fn look_up(&mut self, rowid: i64, each: &mut dyn FnMut(&Cells)) -> Result<(), Damaged> {
        let pages = self.table.pages;
        let mut branch = Branch::root(self.table.root);
        for level in 0..MAX_DEPTH {
            if self.way.len() == level {
                self.way.push((Branch::root(0), Vec::new()));
            }
            let mut step = std::mem::take(&mut self.way[level]);
            let is_new = step.0 != branch;
            if is_new {
                step.1.resize(pages.size, 0);
                pages.read(branch.page, &mut step.1)?;
            }
            let page = Page::of(&step.1, pages.usable, branch)?;
            if is_new {
                page.check(pages.count)?;
                step.0 = branch;
            }
            let next = page.child(rowid)?;
            if next.is_none()
                && let Some(row) = page.row_of(rowid)?
            {
                self.row(&row, each)?;
            }
            self.way[level] = step;
            match next {
                Some(child) => branch = child,
                None => return Ok(()),
            }
        }
        Err(Damaged)
    }

    /// Joins a payload of `length` bytes: its `start`, and the rest from page `next` on.
    fn overflow(&mut self, start: &[u8], length: usize, mut next: u32) -> Result<(), Damaged> {
        let pages = self.table.pages;
        if length as u64 > u64::from(pages.count) * pages.size as u64 {
            return Err(Damaged);
        }
        self.whole.clear();
        self.whole.extend_from_slice(start);
        while self.whole.len() < length {
            let page = pages.page(next)?;
            next = be32(&page, 0)?;
            let more = (length - self.whole.len()).min(pages.usable - 4);
            self.whole.extend_from_slice(&page[4..4 + more]);
        }
        Ok(())
    }
}
