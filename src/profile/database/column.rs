//! Columns of a parquet file's row group, decoded.

use polars_arrow::array::{Array, BinaryViewArray, BooleanArray, PrimitiveArray};
use polars_arrow::bitmap::Bitmap;
use polars_arrow::compute::concatenate::concatenate;
use polars_arrow::datatypes::{ArrowDataType, Field};
use polars_buffer::Buffer;
use polars_parquet::parquet::compression::Compression;
use polars_parquet::parquet::metadata::ColumnDescriptor;
use polars_parquet::parquet::read::PageMetaData;
use polars_parquet::parquet::schema::types::IntegerType;
use polars_parquet::read::{
    BasicDecompressor, ColumnChunkMetadata, Filter, PageReader, PhysicalType, PrimitiveConvertedType,
    PrimitiveLogicalType, column_iter_to_arrays,
};
use std::cell::Cell;
use std::io::Cursor;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// A column of one row group.
pub(super) struct Piece {
    /// Where in the file it is.
    pub at: Range<u64>,
    compression: Compression,
}

impl Piece {
    pub fn of(chunk: &ColumnChunkMetadata) -> Self {
        Self { at: chunk.byte_range(), compression: chunk.compression() }
    }
}

/// Whether each row has one value of a column, or none.
pub(super) fn is_flat(column: &ColumnDescriptor) -> bool {
    column.path_in_schema.len() == 1 && column.descriptor.max_rep_level == 0
}

/// The values of a column, as SQLite would have them.
pub(super) enum Column {
    /// Integers of any width, truth values; which of them are not NULL, where some are. Unsigned ones beyond the signed
    /// keep their bits, as nsys has SQLite store them.
    Int(Buffer<i64>, Option<Bitmap>),
    /// Texts and blobs, whatever they encode.
    Bytes(BinaryViewArray),
    /// What nobody asks for: no such column, or one of another type.
    Nothing,
}

/// A row of which the columns asked for are decoded.
#[derive(Clone, Copy)]
pub(super) struct Row<'r> {
    columns: &'r [Column],
    at: usize,
}

impl<'r> Row<'r> {
    pub fn new(columns: &'r [Column], at: usize) -> Self {
        Self { columns, at }
    }

    /// The integer in column `i` of those asked for; `None` for NULL and any other type.
    #[inline]
    pub fn int(self, i: usize) -> Option<i64> {
        self.columns.get(i)?.int(self.at)
    }

    /// The bytes of a text or blob in column `i` of those asked for.
    pub fn bytes(self, i: usize) -> Option<&'r [u8]> {
        match self.columns.get(i)? {
            Column::Bytes(values) => values.get(self.at),
            _ => None,
        }
    }
}

impl Column {
    #[inline]
    pub fn int(&self, at: usize) -> Option<i64> {
        match self {
            Self::Int(values, valid) => {
                values.get(at).copied().filter(|_| valid.as_ref().is_none_or(|valid| valid.get_bit(at)))
            }
            _ => None,
        }
    }

    /// The numbers of the rows that `mask` has, the first being the one after `before`.
    pub fn numbers(before: usize, rows: usize, mask: Option<&Bitmap>) -> Self {
        let all = (before as i64 + 1..).take(rows);
        let numbers = match mask {
            Some(mask) => all.zip(mask).filter(|(_, taken)| *taken).map(|(number, _)| number).collect(),
            None => all.collect(),
        };
        Self::Int(numbers, None)
    }

    /// Decodes the bytes of a column, which has so many rows: all, or those that `mask` has.
    pub fn decode(
        column: &ColumnDescriptor,
        piece: &Piece,
        bytes: Buffer<u8>,
        rows: usize,
        mask: Option<&Bitmap>,
    ) -> anyhow::Result<Self> {
        if !is_flat(column) {
            return Ok(Self::Nothing);
        }
        let kind = &column.descriptor.primitive_type;
        let is_u32 = kind.logical_type == Some(PrimitiveLogicalType::Integer(IntegerType::UInt32))
            || kind.converted_type == Some(PrimitiveConvertedType::Uint32);
        let read_as = match kind.physical_type {
            PhysicalType::Int64 => ArrowDataType::Int64,
            PhysicalType::Int32 if is_u32 => ArrowDataType::UInt32,
            PhysicalType::Int32 => ArrowDataType::Int32,
            PhysicalType::Boolean => ArrowDataType::Boolean,
            // Texts too: what is no UTF-8 is told where a text is made of it.
            PhysicalType::ByteArray => ArrowDataType::BinaryView,
            _ => return Ok(Self::Nothing),
        };
        let descriptor = column.descriptor.clone();
        let of = PageMetaData::new(piece.at.start, rows as i64, piece.compression, descriptor);
        let pages = PageReader::new_with_page_meta(Cursor::new(bytes), of, Vec::new(), usize::MAX);
        let filter = mask.map(|mask| Filter::new_masked(mask.clone()));
        let rows = mask.map_or(rows, Bitmap::set_bits);
        let field = Field::new(kind.field_info.name.clone(), read_as, true);
        let (arrays, _) = column_iter_to_arrays(
            vec![BasicDecompressor::new(pages, Vec::new())],
            vec![kind],
            field,
            filter,
        )?;
        let array = match <[_; 1]>::try_from(arrays) {
            Ok([array]) => array,
            Err(arrays) => concatenate(&arrays.iter().map(|a| &**a).collect::<Vec<_>>())?,
        };
        if array.len() != rows {
            anyhow::bail!("{} rows where {rows} are promised", array.len());
        }
        Ok(Self::new(&*array))
    }

    fn new(array: &dyn Array) -> Self {
        let any = array.as_any();
        let valid = array.validity().filter(|valid| valid.unset_bits() > 0).cloned();
        if let Some(array) = any.downcast_ref::<PrimitiveArray<i64>>() {
            Self::Int(array.values().clone(), valid)
        } else if let Some(array) = any.downcast_ref::<PrimitiveArray<i32>>() {
            Self::Int(array.values_iter().map(|v| i64::from(*v)).collect(), valid)
        } else if let Some(array) = any.downcast_ref::<PrimitiveArray<u32>>() {
            Self::Int(array.values_iter().map(|v| i64::from(*v)).collect(), valid)
        } else if let Some(array) = any.downcast_ref::<BooleanArray>() {
            Self::Int(array.values_iter().map(i64::from).collect(), valid)
        } else if let Some(array) = any.downcast_ref::<BinaryViewArray>() {
            Self::Bytes(array.clone())
        } else {
            Self::Nothing
        }
    }
}

thread_local! {
    /// Whether a panic of this thread is a damaged file.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs what reads the bytes of a file. polars' crate asserts where a file does not hold what it promises: such a panic is
/// an error, and not printed.
pub(super) fn guarded<T>(read: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                before(panic);
            }
        }));
    });
    GUARDED.set(true);
    let done = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    done.unwrap_or_else(|_| Err(anyhow::anyhow!("it does not hold what it promises")))
}
