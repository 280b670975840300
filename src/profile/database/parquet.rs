//! Tables of a folder that `nsys export --type parquetdir` writes: one TABLE.parquet each; names, rows and
//! their order are those of the SQLite export.
//!
//! ```text
//! rows           1 … 2000   2001 … 4000   4001 …         row groups, as nsys 2024.2 writes them
//!   start        ▓▓▓▓▓▓▓▓▓▓ ▓▓▓▓▓▓▓▓▓▓▓▓  ▓▓▓▓▓▓▓▓       a column that is asked for: read and decoded
//!   returnValue  ░░░░░░░░░░ ░░░░░░░░░░░░  ░░░░░░░░       one that is not: neither
//!                └──────── part 0 ──────┘ └─ part 1 …    32 K rows at most, taken by whichever thread is free
//! ```
//! nsys 2025.3 writes row groups of 1,048,576 rows, compressed with Snappy. Such a group has several parts,
//! whose bytes are fetched once for all. Pages without rows of a part are not decompressed.
//!
//! polars' parquet crate decodes the columns of a row group at a time. Its lazy scans
//! (`LazyFrame::scan_parquet`) are not used: as of polars 0.55 they need the streaming engine, which brings
//! further crates and its own thread pool, and return frames, where rows are wanted. Columns not asked for
//! are left out here too, as are, in look-ups by key, row groups whose statistics exclude the key.
//!
//! Reads, no memory map: a file that shrinks meanwhile is an error, not a signal. Cost: a copy of each piece
//! of the file that is asked for, and its decoding.

use super::column::{Column, Piece, Row};
use super::{Cells, Each, Parts, ReadPart, Source};
use crate::error::InputError;
use crate::profile::commands;
use crate::profile::footer::{self, guarded};
use crate::profile::header::io_error;
use crate::profile::parallel::parallel;
use polars_arrow::bitmap::MutableBitmap;
use polars_buffer::Buffer;
use polars_parquet::parquet::metadata::ColumnDescriptor;
use polars_parquet::parquet::statistics::Statistics;
use polars_parquet::read::{ColumnChunkMetadata, Filter as Taken};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Most rows of small row groups that a worker takes at a time; as with SQLite.
const PART_ROWS: usize = 1 << 15;
/// Most rows of a large one: two of Arrow's 1 MiB pages of eight-byte values. Each slice decompresses the
/// dictionary and the pages at its ends again: with half as many rows that took a sixth of the CPU time.
/// Whole groups of 1,048,576 rows took 50 MB more, and a fifth more CPU time to map and unmap their columns.
const SLICE_ROWS: usize = 1 << 18;
/// The table that every export has.
const STRINGS: &str = "StringIds";

pub(super) struct Folder {
    tables: FxHashMap<String, Table>,
}

/// The footer itself is not kept: a large table's takes as much memory as a report keeps of its rows.
struct Table {
    path: PathBuf,
    file: File,
    columns: Vec<ColumnDescriptor>,
    /// Rows of each row group.
    rows: Vec<usize>,
    /// All columns of the first row group, those of the second, …
    pieces: Vec<Piece>,
    /// Smallest and largest value of the first column, by row group: rows are sorted by it, if by any.
    zones: Vec<(i64, i64)>,
    read: AtomicU64,
}

/// The zone of a row group without statistics.
const ANYTHING: (i64, i64) = (i64::MIN, i64::MAX);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnPlace {
    /// Its index in the file.
    Stored(usize),
    /// The row's number, from 1.
    Row,
    Absent,
}

impl Folder {
    /// # Errors
    /// [`InputError`]: it is no such folder, or one of its tables is damaged.
    pub fn open(path: &Path, threads: usize) -> Result<Self, InputError> {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in path.read_dir().map_err(|e| io_error(path, &e))? {
            let entry = entry.map_err(|e| io_error(path, &e))?;
            let file = entry.path();
            // A hidden file is no table: macOS puts `._NAME.parquet` beside files copied to other disks.
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if !hidden && file.extension().is_some_and(|e| e == "parquet") {
                files.push(file);
            }
        }
        files.sort_unstable();
        if !files.iter().any(|file| file.file_stem().is_some_and(|name| name == STRINGS)) {
            let command = commands::some_export();
            return Err(InputError::Directory(path.to_owned(), command));
        }
        let open = |(): &mut (), i: usize| Table::open(&files[i]);
        let tables = parallel(threads, files.len(), || Ok(()), open)?;
        let name = |file: &PathBuf| file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { tables: files.iter().map(name).zip(tables).collect() })
    }

    pub fn bytes(&self) -> u64 {
        self.tables.values().map(|table| table.read.load(Relaxed)).sum()
    }

    pub fn columns(&self) -> FxHashMap<String, Vec<String>> {
        let names = |table: &Table| table.columns.iter().map(|c| c.path_in_schema[0].to_string()).collect();
        self.tables.iter().map(|(name, table)| (name.clone(), names(table))).collect()
    }

    /// `None` where there is no such table.
    pub fn scan(&self, table: &str, columns: &[&str]) -> Option<Scan<'_>> {
        let table = self.tables.get(table)?;
        Some(Scan { table, places: table.places(columns), parts: table.parts(), shared: Mutex::default() })
    }

    /// By the statistics of the row groups.
    pub fn is_sorted(&self, table: &str, column: &str) -> bool {
        let Some(table) = self.tables.get(table) else { return false };
        let zones = &table.zones;
        table.place(column) == ColumnPlace::Stored(0)
            && !zones.contains(&ANYTHING)
            && zones.windows(2).all(|w| w[0].1 <= w[1].0)
    }

    /// A search by `key` ([`Table::find`]); `None` where there is no such table.
    pub fn look_up(
        &self,
        table: &str,
        columns: &[&str],
        (key, most): (&str, usize),
    ) -> Option<impl Fn(&[i64], Each) -> Result<(), InputError> + Sync> {
        let table = self.tables.get(table)?;
        let (places, key) = (table.places(columns), table.place(key));
        Some(move |keys: &[i64], each: Each| table.find(&places, (key, most), keys, each))
    }
}

impl Table {
    fn open(path: &Path) -> Result<Self, InputError> {
        if path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0) {
            return Err(InputError::Empty(path.to_owned(), export(path)));
        }
        let (file, footer) = footer::open(path).map_err(|e| match e.downcast_ref() {
            Some(e) => io_error(path, e),
            None => damaged(path, &e),
        })?;
        let columns = footer.schema().columns().to_vec();
        let (mut rows, mut pieces, mut zones) = (Vec::new(), Vec::new(), Vec::new());
        for group in &footer.row_groups {
            rows.push(group.num_rows());
            pieces.extend(group.parquet_columns().iter().map(Piece::of));
            let first = group.parquet_columns().first();
            zones.push(first.and_then(|chunk| zone(chunk, &footer.footer_buf)).unwrap_or(ANYTHING));
        }
        Ok(Self { path: path.to_owned(), file, columns, rows, pieces, zones, read: AtomicU64::new(0) })
    }

    fn place(&self, column: &str) -> ColumnPlace {
        match self.columns.iter().position(|c| c.path_in_schema[0] == column) {
            Some(at) => ColumnPlace::Stored(at),
            None if column == "rowid" => ColumnPlace::Row,
            None => ColumnPlace::Absent,
        }
    }

    fn places(&self, columns: &[&str]) -> Vec<ColumnPlace> {
        columns.iter().map(|column| self.place(column)).collect()
    }

    /// Small row groups together, large ones in slices.
    fn parts(&self) -> Vec<Vec<Slice>> {
        let mut parts: Vec<Vec<Slice>> = Vec::new();
        let (mut before, mut count) = (0, 0);
        for (group, &all) in self.rows.iter().enumerate() {
            for from in (0..all).step_by(SLICE_ROWS) {
                let slice = Slice { group, before, rows: from..all.min(from + SLICE_ROWS) };
                count += slice.rows.len();
                match parts.last_mut() {
                    Some(part) if count <= PART_ROWS => part.push(slice),
                    _ => {
                        count = slice.rows.len();
                        parts.push(vec![slice]);
                    }
                }
            }
            before += all;
        }
        parts
    }

    /// Reads the requested columns of a row group, one after the other; `buffer` is reused.
    fn fetch(
        &self,
        group: usize,
        places: &[ColumnPlace],
        buffer: Buffer<u8>,
    ) -> Result<Buffer<u8>, InputError> {
        let mut bytes = buffer.into_mut().right().unwrap_or_default();
        let mut end = 0;
        for place in places {
            if let ColumnPlace::Stored(at) = place {
                let (from, at) = (end, &self.piece(group, *at).at);
                end += (at.end - at.start) as usize;
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                self.file
                    .read_exact_at(&mut bytes[from..end], at.start)
                    .map_err(|e| damaged(&self.path, &e))?;
            }
        }
        self.read.fetch_add(end as u64, Relaxed);
        Ok(bytes.into())
    }

    fn piece(&self, group: usize, column: usize) -> &Piece {
        &self.pieces[group * self.columns.len() + column]
    }

    /// Decodes the `taken` rows of fetched columns of a row group; `before`: rows of the table before it.
    fn decode(
        &self,
        group: usize,
        before: usize,
        places: &[ColumnPlace],
        bytes: &Buffer<u8>,
        taken: &Taken,
    ) -> Result<Vec<Column>, InputError> {
        let mut from = 0;
        let column = |place: &ColumnPlace| match place {
            ColumnPlace::Stored(at) => {
                let piece = self.piece(group, *at);
                let length = (piece.at.end - piece.at.start) as usize;
                let bytes = bytes.clone().sliced(from..from + length);
                from += length;
                guarded(|| Column::decode(&self.columns[*at], piece, bytes, self.rows[group], taken))
                    .map_err(|e| damaged(&self.path, &e))
            }
            ColumnPlace::Row => Ok(Column::numbers(before, taken)),
            ColumnPlace::Absent => Ok(Column::Nothing),
        };
        places.iter().map(column).collect()
    }

    /// Passes on the first `most` rows of each of `keys` with its index, in the order of keys, then rows.
    ///
    /// Row groups that can hold none are not read. Of the others all keys are decoded, and the rows found.
    fn find(
        &self,
        places: &[ColumnPlace],
        (key, most): (ColumnPlace, usize),
        keys: &[i64],
        each: Each,
    ) -> Result<(), InputError> {
        let mut sorted: Vec<(i64, usize)> = keys.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        let mut found: Vec<(usize, usize, usize)> = Vec::new();
        let mut blocks: Vec<Vec<Column>> = Vec::new();
        let (mut before, mut buffer) = (0, Buffer::default());
        for (group, &rows) in self.rows.iter().enumerate() {
            let first = before;
            before += rows;
            let (min, max) = match key {
                ColumnPlace::Stored(0) => self.zones[group],
                ColumnPlace::Row => (first as i64 + 1, before as i64),
                _ => ANYTHING,
            };
            let low = sorted.partition_point(|key| key.0 < min);
            let near = &sorted[low..][..sorted[low..].partition_point(|key| key.0 <= max)];
            if near.is_empty() {
                continue;
            }
            let (mut taken, mut hits, mut last) = (MutableBitmap::from_len_zeroed(rows), 0, None);
            let mut take = |row: usize, k: usize| {
                if last.replace(row) != Some(row) {
                    taken.set(row, true);
                    hits += 1;
                }
                found.push((k, blocks.len(), hits - 1));
            };
            if key == ColumnPlace::Row {
                near.iter().for_each(|&(number, k)| take(number as usize - 1 - first, k));
            } else {
                buffer = self.fetch(group, &[key], buffer)?;
                let keys = self.decode(group, first, &[key], &buffer, &Taken::Range(0..rows))?;
                keys.iter().for_each(|key| key.rows_with(near, &mut take));
            }
            if hits > 0 {
                buffer = self.fetch(group, places, buffer)?;
                blocks.push(self.decode(group, first, places, &buffer, &Taken::Mask(taken.into()))?);
            }
        }
        found.sort_unstable();
        for rows in found.chunk_by(|a, b| a.0 == b.0) {
            for &(k, block, at) in rows.iter().take(most) {
                each(k, &Cells(Source::Columns(Row::new(&blocks[block], at))));
            }
        }
        Ok(())
    }
}

fn zone(chunk: &ColumnChunkMetadata, footer: &[u8]) -> Option<(i64, i64)> {
    let (min, max) = match chunk.statistics(footer)?.ok()? {
        Statistics::Int64(s) => (s.min_value?, s.max_value?),
        Statistics::Int32(s) => (s.min_value?.into(), s.max_value?.into()),
        _ => return None,
    };
    // Unsigned values beyond the signed ones are stored as negative numbers, in another order.
    (0 <= min && min <= max).then_some((min, max))
}

fn export(path: &Path) -> String {
    commands::export_folder(path.parent().unwrap_or(path))
}

fn damaged(path: &Path, reason: &dyn std::fmt::Display) -> InputError {
    InputError::Damaged { path: path.to_owned(), reason: reason.to_string(), command: export(path) }
}

struct Slice {
    group: usize,
    /// Rows of the table before the group.
    before: usize,
    /// Within the group.
    rows: Range<usize>,
}

pub(super) struct Scan<'a> {
    table: &'a Table,
    places: Vec<ColumnPlace>,
    parts: Vec<Vec<Slice>>,
    /// Bytes fetched of large row groups, and how many slices are still to be decoded from them.
    shared: Mutex<FxHashMap<usize, (Buffer<u8>, usize)>>,
}

impl Scan<'_> {
    pub fn rows(&self) -> u64 {
        self.table.rows.iter().map(|&rows| rows as u64).sum()
    }

    /// Fetches a large row group once for all its slices; `buffer` is reused for a small one.
    fn fetch(&self, group: usize, buffer: &mut Buffer<u8>) -> Result<Buffer<u8>, InputError> {
        let slices = self.table.rows[group].div_ceil(SLICE_ROWS);
        if slices <= 1 {
            return self.table.fetch(group, &self.places, std::mem::take(buffer));
        }
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, left) = match shared.remove(&group) {
            Some(fetched) => fetched,
            None => (self.table.fetch(group, &self.places, Buffer::default())?, slices),
        };
        if left > 1 {
            shared.insert(group, (bytes.clone(), left - 1));
        }
        Ok(bytes)
    }
}

impl Parts for Scan<'_> {
    type Error = InputError;

    fn len(&self) -> usize {
        self.parts.len()
    }

    fn reader(&self) -> Result<Box<dyn ReadPart<InputError> + '_>, InputError> {
        Ok(Box::new((self, Buffer::default())))
    }
}

/// With the buffer to reuse.
impl ReadPart<InputError> for (&Scan<'_>, Buffer<u8>) {
    fn read(&mut self, part: usize, each: &mut dyn FnMut(&Cells)) -> Result<u64, InputError> {
        let (scan, buffer) = (self.0, &mut self.1);
        for Slice { group, before, rows } in &scan.parts[part] {
            *buffer = scan.fetch(*group, buffer)?;
            let taken = Taken::Range(rows.clone());
            let columns = scan.table.decode(*group, *before, &scan.places, buffer, &taken)?;
            for at in 0..rows.len() {
                each(&Cells(Source::Columns(Row::new(&columns, at))));
            }
        }
        Ok(scan.parts[part].iter().map(|slice| slice.rows.len() as u64).sum())
    }
}
