//! Opens a parquet file safely and decodes a column: polars recurses over schemas, and asserts.

use anyhow::{Context, Result, bail};
use polars_arrow::array::Array;
use polars_arrow::compute::concatenate::concatenate;
use polars_arrow::datatypes::Field;
use polars_buffer::Buffer;
use polars_parquet::parquet::compression::Compression;
use polars_parquet::parquet::metadata::ColumnDescriptor;
use polars_parquet::parquet::page::CompressedPage;
use polars_parquet::parquet::read::PageMetaData;
use polars_parquet::read::{
    BasicDecompressor, ColumnChunkMetadata, FileMetadata, Filter, PageReader, column_iter_to_arrays,
    read_metadata,
};
use polars_parquet_format::PageHeader;
use polars_parquet_format::thrift::protocol::TCompactInputProtocol;
use std::cell::Cell;
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Levels of nested columns. Real tables have a few.
const MAX_DEPTH: usize = 64;
/// A file counts as damaged if it promises more rows than this, and more to a byte than distinct times can be
/// packed into. A report keeps some 26 bytes of a row: a file of few megabytes could take all memory.
const MANY_ROWS: u64 = 1 << 20;
const ROWS_PER_BYTE: u64 = 2;
/// So does a file with a column that unpacks to more than this in a row group, and to more of a byte than
/// texts with content: each thread holds a slice of the rows unpacked.
const MUCH: usize = 64 << 20;
const UNPACKED_PER_BYTE: usize = 256;
/// Encodes a text by what it shares with the one before: few bytes make any number of long ones. Never
/// exported.
const DELTA_BYTE_ARRAY: i32 = 7;
/// Bytes at the end of a file: the length of the footer, and `PAR1`.
const END: u64 = 8;

/// Opens a parquet file, and checks the footer as far as the footer itself tells.
///
/// # Errors
/// The reason, as the end of a sentence.
pub fn open(path: &Path) -> Result<(File, FileMetadata)> {
    // Before opening: a pipe would wait for its writer.
    if !path.metadata()?.is_file() {
        bail!("it is no regular file");
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let bytes = bytes(&mut file, length)?;
    Thrift(&bytes).file().context("its footer is damaged, or its columns nest too deeply")?;
    let footer = guarded(|| Ok(read_metadata(&mut file)?))?;
    let mut rows = 0;
    for group in &footer.row_groups {
        if group.num_rows() > i32::MAX as usize {
            bail!("a row group has more rows than any");
        }
        rows += group.num_rows() as u64;
        for chunk in group.parquet_columns() {
            let values = usize::try_from(chunk.num_values()).ok();
            let is_whole = !is_flat(chunk.descriptor()) || values == Some(group.num_rows());
            if chunk.byte_range().end > length || !is_whole {
                bail!("a column does not end where it should");
            }
            if !matches!(chunk.compression(), Compression::Uncompressed | Compression::Snappy) {
                bail!("it is compressed with {:?}, and only Snappy is read", chunk.compression());
            }
        }
    }
    if footer.num_rows as u64 != rows || (rows > MANY_ROWS && rows / ROWS_PER_BYTE > length) {
        bail!("it promises {} rows in {length} bytes", rows.max(footer.num_rows as u64));
    }
    Ok((file, footer))
}

pub fn check_pages(file: &mut File, footer: &FileMetadata) -> Result<()> {
    for group in &footer.row_groups {
        for chunk in group.parquet_columns().iter().filter(|chunk| is_flat(chunk.descriptor())) {
            let bytes = bytes_of(file, chunk)?;
            guarded(|| check_column(bytes, chunk.into(), group.num_rows()))?;
        }
    }
    Ok(())
}

pub fn bytes_of(file: &mut File, chunk: &ColumnChunkMetadata) -> Result<Buffer<u8>> {
    let at = chunk.byte_range();
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(at.start))?;
    file.take(at.end - at.start).read_to_end(&mut bytes)?;
    Ok(Buffer::from_vec(bytes))
}

/// Checks that pages hold no more than the `rows` of their column, nor more than their bytes are likely to:
/// polars allocates whatever a page promises.
pub fn check_column(bytes: Buffer<u8>, of: PageMetaData, rows: usize) -> Result<()> {
    let (mut found, mut unpacked, packed) = (0_usize, 0_usize, bytes.len());
    // polars tells what data pages unpack to, but not what the dictionary does, which comes first.
    if packed > 0 {
        let first = PageHeader::read_from_in_protocol(&mut TCompactInputProtocol::new(&bytes[..], packed))?;
        if first.dictionary_page_header.is_some() {
            unpacked = usize::try_from(first.uncompressed_page_size).unwrap_or(usize::MAX);
        }
    }
    for page in PageReader::new_with_page_meta(Cursor::new(bytes), of, Vec::new(), usize::MAX) {
        if let CompressedPage::Data(page) = page? {
            found = found.saturating_add(page.num_values());
            unpacked = unpacked.saturating_add(page.uncompressed_size());
            if page.header().encoding().0 == DELTA_BYTE_ARRAY {
                bail!("a column is of an encoding, DELTA_BYTE_ARRAY, that no export has");
            }
        }
        if unpacked > MUCH && unpacked / UNPACKED_PER_BYTE > packed {
            bail!("a column unpacks to at least {unpacked} bytes from {packed}");
        }
        if found > rows {
            bail!("{found} rows where {rows} are promised");
        }
    }
    Ok(())
}

/// Decodes the rows that `taken` picks, or all, from the bytes of a flat column of `rows` rows.
///
/// # Errors
/// The reason, as the end of a sentence. polars may also assert: see [`guarded`].
pub fn decode(
    of: &PageMetaData,
    column: &ColumnDescriptor,
    bytes: Buffer<u8>,
    field: Field,
    rows: usize,
    taken: Option<Filter>,
) -> Result<Box<dyn Array>> {
    check_column(bytes.clone(), of.clone(), rows)?;
    let pages = PageReader::new_with_page_meta(Cursor::new(bytes), of.clone(), Vec::new(), usize::MAX);
    let pages = vec![BasicDecompressor::new(pages, Vec::new())];
    let rows = taken.as_ref().map_or(rows, |taken| taken.num_rows(rows));
    let (arrays, _) = column_iter_to_arrays(pages, vec![&column.descriptor.primitive_type], field, taken)?;
    let array = match <[_; 1]>::try_from(arrays) {
        Ok([array]) => array,
        Err(arrays) => concatenate(&arrays.iter().map(|a| &**a).collect::<Vec<_>>())?,
    };
    if array.len() != rows {
        bail!("{} rows where {rows} are promised", array.len());
    }
    Ok(array)
}

/// Whether each row has one value of a column, or none.
pub fn is_flat(column: &ColumnDescriptor) -> bool {
    column.path_in_schema.len() == 1 && column.descriptor.max_rep_level == 0
}

fn bytes(file: &mut File, length: u64) -> Result<Vec<u8>> {
    let mut end = [0; END as usize];
    let ends = length.checked_sub(END).context("it is no parquet file")?;
    file.seek(SeekFrom::Start(ends))?;
    file.read_exact(&mut end)?;
    let [a, b, c, d, magic @ ..] = end;
    let start = ends.checked_sub(u32::from_le_bytes([a, b, c, d]).into());
    let start = start.filter(|_| magic == *b"PAR1").context("it is no parquet file")?;
    file.seek(SeekFrom::Start(start))?;
    let mut footer = Vec::new();
    file.take(ends - start).read_to_end(&mut footer)?;
    Ok(footer)
}

/// The unread bytes of Thrift's compact protocol.
struct Thrift<'a>(&'a [u8]);

const I32: u8 = 5;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Thrift<'_> {
    /// Walks a `FileMetaData`; `None` where it is none, or its schema is too deep.
    fn file(&mut self) -> Option<()> {
        self.fields(&mut |bytes, field, kind| match (field, kind) {
            (2, LIST) => bytes.schema(),
            (2, _) => None,
            _ => bytes.skip(kind, MAX_DEPTH),
        })
    }

    /// A list of `SchemaElement`: a tree, each node before its children.
    fn schema(&mut self) -> Option<()> {
        let (count, kind) = self.list()?;
        // Children still to come, for each open node.
        let mut open: Vec<u64> = Vec::new();
        for _ in 0..count {
            let mut children = 0;
            (kind == STRUCT).then_some(())?;
            self.fields(&mut |bytes, field, kind| match (field, kind) {
                (5, I32) => {
                    children = bytes.varint()? / 2;
                    Some(())
                }
                (5, _) => None,
                _ => bytes.skip(kind, MAX_DEPTH),
            })?;
            while open.pop_if(|left| *left == 0).is_some() {}
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            if children > 0 {
                open.push(children);
            }
            (open.len() <= MAX_DEPTH).then_some(())?;
        }
        Some(())
    }

    /// Passes on each field's number and type; `each` reads past its value.
    fn fields(&mut self, each: &mut dyn FnMut(&mut Self, u64, u8) -> Option<()>) -> Option<()> {
        let mut field = 0;
        loop {
            let head = self.byte()?;
            if head & 15 == 0 {
                return Some(());
            }
            field = if head >> 4 == 0 { self.varint()? / 2 } else { field + u64::from(head >> 4) };
            each(self, field, head & 15)?;
        }
    }

    /// A list's length, and the type of its elements.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Some((count, head & 15))
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let below = depth.checked_sub(1)?;
        match kind {
            1 | 2 => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => self.past(8)?,
            8 => {
                let length = self.varint()?;
                self.past(length)?;
            }
            LIST | 10 => {
                let (count, kind) = self.list()?;
                // A boolean in a list takes a byte.
                let kind = if kind <= 2 { 3 } else { kind };
                (0..count).try_for_each(|_| self.skip(kind, below))?;
            }
            STRUCT => self.fields(&mut |bytes, _, kind| bytes.skip(kind, below))?,
            _ => return None,
        }
        Some(())
    }

    fn past(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }
}

thread_local! {
    /// A panic of this thread means a damaged file.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}
/// Reads under way, which polars may divide among its own threads.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// Runs a read of a file. polars asserts where a file breaks its promises: such a panic is an unprinted
/// error.
pub fn guarded<T>(read: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let helps = || std::thread::current().name().is_some_and(|name| name.starts_with("polars"));
            let guarded = GUARDED.get() || (helps() && GUARDS.load(Ordering::Relaxed) > 0);
            if !guarded {
                before(panic);
            }
        }));
    });
    GUARDED.set(true);
    GUARDS.fetch_add(1, Ordering::Relaxed);
    let done = catch_unwind(AssertUnwindSafe(read));
    GUARDS.fetch_sub(1, Ordering::Relaxed);
    GUARDED.set(false);
    done.unwrap_or_else(|_| Err(anyhow::anyhow!("it does not hold what it promises")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polars_parquet_format::thrift::protocol::TCompactOutputProtocol;
    use polars_parquet_format::{DataPageHeader, DictionaryPageHeader, Encoding, PageType};

    /// A page that promises to unpack to 128 MiB from 4 bytes, as a dictionary or as data.
    #[test]
    fn a_page_that_promises_too_much_is_refused() {
        for dictionary in [true, false] {
            let mut header = PageHeader {
                type_: if dictionary { PageType::DICTIONARY_PAGE } else { PageType::DATA_PAGE },
                uncompressed_page_size: 128 << 20,
                compressed_page_size: 4,
                crc: None,
                data_page_header: None,
                index_page_header: None,
                dictionary_page_header: None,
                data_page_header_v2: None,
            };
            let (num_values, plain) = (1, Encoding::PLAIN);
            if dictionary {
                let entries = DictionaryPageHeader { num_values, encoding: plain, is_sorted: None };
                header.dictionary_page_header = Some(entries);
            } else {
                header.data_page_header = Some(DataPageHeader {
                    num_values,
                    encoding: plain,
                    definition_level_encoding: Encoding::RLE,
                    repetition_level_encoding: Encoding::RLE,
                    statistics: None,
                });
            }
            let mut bytes = Vec::new();
            header.write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut bytes)).expect("a header");
            bytes.extend([0; 4]);
            let home = tempfile::tempdir().expect("a folder");
            let path = home.path().join("one.parquet");
            let table = polars::prelude::df!["text" => ["a"]].expect("a column");
            let layout = crate::frame::parquet::Layout::default();
            let file = File::create(&path).expect("a file");
            crate::frame::parquet::write(&table, file, layout, None).expect("a table");
            let (_, footer) = open(&path).expect("a footer");
            let of = (&footer.row_groups[0].parquet_columns()[0]).into();
            let error = check_column(Buffer::from_vec(bytes), of, 1).expect_err("too much");
            assert!(error.to_string().starts_with("a column unpacks to at least 134217728 bytes"), "{error}");
        }
    }
}
