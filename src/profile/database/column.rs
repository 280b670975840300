//! Columns of a parquet file's row group, decoded.

use crate::profile::footer::{decode, is_flat};
use crate::profile::seek::seek;
use polars_arrow::array::{Array, BinaryViewArray, BooleanArray, PrimitiveArray};
use polars_arrow::bitmap::Bitmap;
use polars_arrow::datatypes::{ArrowDataType, Field};
use polars_buffer::Buffer;
use polars_parquet::parquet::compression::Compression;
use polars_parquet::parquet::metadata::ColumnDescriptor;
use polars_parquet::parquet::read::PageMetaData;
use polars_parquet::parquet::schema::types::IntegerType;
use polars_parquet::read::{
    ColumnChunkMetadata, Filter, PhysicalType, PrimitiveConvertedType, PrimitiveLogicalType,
};
use std::ops::Range;
use std::sync::Arc;

pub(super) struct Piece {
    /// Bytes of the file.
    pub at: Range<u64>,
    compression: Compression,
}

impl Piece {
    pub fn of(chunk: &ColumnChunkMetadata) -> Self {
        Self { at: chunk.byte_range(), compression: chunk.compression() }
    }
}

/// The values of a column, as SQLite would have them.
#[derive(Clone)]
pub(super) enum Column {
    /// Integers of any width and booleans; the bitmap says which are not NULL, where some are. Unsigned
    /// values beyond `i64` keep their bits, as nsys has SQLite store them.
    Int(Buffer<i64>, Option<Bitmap>),
    /// Texts and blobs, of any encoding.
    Bytes(BinaryViewArray),
    /// Few distinct texts: each row's index into them, or [`NO_TEXT`].
    Shared(Buffer<u32>, Arc<[Box<[u8]>]>),
    /// No such column, or one of another type.
    Nothing,
}

pub(super) const NO_TEXT: u32 = u32::MAX;

/// A row with the requested columns decoded.
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

    pub fn bytes(self, i: usize) -> Option<&'r [u8]> {
        match self.columns.get(i)? {
            Column::Bytes(values) => values.get(self.at),
            Column::Shared(rows, texts) => texts.get(*rows.get(self.at)? as usize).map(|text| &**text),
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

    /// Passes on each row that has one of the sorted `keys`, with the key's companion; rows ascend. A sorted
    /// column costs a binary search for each key, any other a search of the keys for each row.
    pub fn rows_with(&self, keys: &[(i64, usize)], mut each: impl FnMut(usize, usize)) {
        let Self::Int(values, valid) = self else { return };
        let mut from = 0;
        if valid.is_none() && values.is_sorted() {
            for equal in keys.chunk_by(|a, b| a.0 == b.0) {
                let key = equal[0].0;
                from += values[from..].partition_point(|value| *value < key);
                let end = from + values[from..].iter().take_while(|value| **value == key).count();
                (from..end).for_each(|row| equal.iter().for_each(|key| each(row, key.1)));
            }
            return;
        }
        for row in 0..values.len() {
            let Some(value) = self.int(row) else { continue };
            seek(keys.len(), &mut from, |i| keys[i].0 < value);
            keys[from..].iter().take_while(|key| key.0 == value).for_each(|key| each(row, key.1));
        }
    }

    /// Row numbers, from 1, of the taken rows of a group; `before`: rows of the table before the group.
    pub fn numbers(before: usize, taken: &Filter) -> Self {
        let number = |at: usize| (before + at) as i64 + 1;
        let numbers = match taken {
            Filter::Range(rows) => rows.clone().map(number).collect(),
            Filter::Mask(rows) => rows.true_idx_iter().map(number).collect(),
            Filter::Predicate(_) => return Self::Nothing,
        };
        Self::Int(numbers, None)
    }

    /// Decodes the rows that `taken` picks from the bytes of a column of `rows` rows.
    pub fn decode(
        column: &ColumnDescriptor,
        piece: &Piece,
        bytes: Buffer<u8>,
        rows: usize,
        taken: &Filter,
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
            // Texts too: invalid UTF-8 is replaced where a text is made of it.
            PhysicalType::ByteArray => ArrowDataType::BinaryView,
            _ => return Ok(Self::Nothing),
        };
        let of = PageMetaData::new(piece.at.start, rows as i64, piece.compression, column.descriptor.clone());
        let field = Field::new(kind.field_info.name.clone(), read_as, true);
        let array = decode(&of, column, bytes, field, rows, Some(taken.clone()))?;
        Ok(Self::new(&*array, matches!(taken, Filter::Mask(_))))
    }

    /// `few`: rows were picked; their texts are copied, so that the pages of all others are freed.
    pub fn new(array: &dyn Array, few: bool) -> Self {
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
            Self::Bytes(if few { array.clone().gc() } else { array.clone() })
        } else {
            Self::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_or_not_the_rows_of_a_key_are_found() {
        let keys = [(2, 0), (3, 1), (3, 2), (5, 3), (9, 4)];
        let found = |values: &[i64], valid: Option<Bitmap>| {
            let mut found = Vec::new();
            let column = Column::Int(values.to_vec().into(), valid);
            column.rows_with(&keys, |row, k| found.push((row, k)));
            found
        };
        assert_eq!(found(&[1, 3, 3, 4, 5], None), [(1, 1), (1, 2), (2, 1), (2, 2), (4, 3)]);
        assert_eq!(found(&[5, 3, 1, 4, 3], None), [(0, 3), (1, 1), (1, 2), (4, 1), (4, 2)]);
        let valid = [true, false, true, true, false].into_iter().collect();
        assert_eq!(found(&[1, 3, 3, 4, 5], Some(valid)), [(2, 1), (2, 2)]);
        assert_eq!(found(&[], None), []);
    }
}
