//! Tables as parquet files in the two forms that nsys has: Snappy, or uncompressed. polars' own writer,
//! `polars-io`, would bring four more codecs, two of them in C.

use crate::profile::footer::{self, guarded, is_flat};
use anyhow::{Context, Result};
use polars::prelude::{Column, CompatLevel, DataFrame, DataType, PolarsResult, Series};
use polars_arrow::datatypes::{ArrowDataType, ArrowSchema, Field};
use polars_buffer::Buffer;
use polars_parquet::read::{ColumnChunkMetadata, FileMetadata, infer_schema};
use polars_parquet::write::{
    CompressionOptions, FileWriter, KeyValue, RowGroupIterator, StatisticsOptions, Version, WriteOptions,
    get_dtype_encoding, schema_to_metadata_key,
};
use std::fs::File;
use std::io::Write;
use std::path::Path;

#[derive(Clone, Copy)]
pub struct Layout {
    /// Else uncompressed.
    pub snappy: bool,
    /// Most rows of a row group.
    pub group: usize,
}

impl Default for Layout {
    /// As nsys 2025.3 lays out its tables.
    fn default() -> Self {
        Self { snappy: true, group: 1 << 20 }
    }
}

/// `more`: a key and value for the file's metadata.
///
/// # Errors
/// polars refused a column, or `to` the bytes.
pub fn write(
    table: &DataFrame,
    to: impl Write,
    layout: Layout,
    more: Option<(String, String)>,
) -> PolarsResult<()> {
    let options = WriteOptions {
        statistics: StatisticsOptions::default(),
        version: Version::V1,
        compression: if layout.snappy {
            CompressionOptions::Snappy
        } else {
            CompressionOptions::Uncompressed
        },
        data_page_size: None,
    };
    let field = |column: &Column| column.field().to_arrow(CompatLevel::newest());
    let schema: ArrowSchema = table.columns().iter().map(field).collect();
    let encodings: Buffer<_> = schema.iter_values().map(|field| get_dtype_encoding(&field.dtype)).collect();
    let mut table = table.clone();
    table.rechunk_mut();
    let mut writer = FileWriter::try_new(to, schema.clone(), options)?;
    for from in (0..table.height()).step_by(layout.group.max(1)) {
        let rows = table.slice(from as i64, layout.group);
        let batches = rows.iter_chunks(CompatLevel::newest(), false).map(Ok);
        for group in RowGroupIterator::try_new(batches, &schema, options, encodings.clone())? {
            writer.write(rows.height() as u64, group?)?;
        }
    }
    let more = more.map(|(key, value)| KeyValue { key, value: Some(value) });
    let metadata = std::iter::once(schema_to_metadata_key(&schema)).chain(more);
    writer.end(Some(metadata.collect()))?;
    Ok(())
}

/// Errors read as the end of a sentence.
pub fn read(path: &Path, names: Option<&[&str]>) -> Result<DataFrame> {
    let (mut file, footer) = footer::open(path)?;
    let fields = fields(&footer)?;
    let asked = |name: &&str| {
        fields.iter().find(|field| field.name == **name).context(format!("it has no column `{name}`"))
    };
    let wanted: Vec<&Field> = match names {
        Some(names) => names.iter().map(asked).collect::<Result<_>>()?,
        None => fields.iter().collect(),
    };
    guarded(|| {
        let columns = wanted.into_iter().map(|field| column(&mut file, &footer, field));
        let columns: Vec<Column> = columns.collect::<Result<_>>()?;
        let rows = columns.first().map_or(0, Column::len);
        Ok(DataFrame::new(rows, columns)?)
    })
}

/// Text and bytes are read as views.
pub fn fields(footer: &FileMetadata) -> Result<Vec<Field>> {
    use ArrowDataType as T;
    let schema = guarded(|| Ok(infer_schema(footer)?))?;
    let viewed = |field: &Field| match field.dtype {
        T::Utf8 | T::LargeUtf8 => Field { dtype: T::Utf8View, ..field.clone() },
        T::Binary | T::LargeBinary => Field { dtype: T::BinaryView, ..field.clone() },
        _ => field.clone(),
    };
    Ok(schema.iter_values().map(viewed).collect())
}

fn column(file: &mut File, footer: &FileMetadata, field: &Field) -> Result<Column> {
    let mut arrays = Vec::new();
    for group in &footer.row_groups {
        let is_it = |chunk: &&ColumnChunkMetadata| {
            is_flat(chunk.descriptor()) && chunk.descriptor().path_in_schema[0] == field.name
        };
        let chunk = group.parquet_columns().iter().find(is_it).context("a row group lacks a column")?;
        let (bytes, rows) = (footer::bytes_of(file, chunk)?, group.num_rows());
        arrays.push(footer::decode(&chunk.into(), chunk.descriptor(), bytes, field.clone(), rows, None)?);
    }
    if arrays.is_empty() {
        return Ok(Column::from(Series::new_empty(field.name.clone(), &DataType::from_arrow_field(field))));
    }
    Ok(Column::from(Series::try_from((field.name.clone(), arrays))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polars::prelude::df;
    use polars_parquet_format::thrift::protocol::{TCompactInputProtocol, TCompactOutputProtocol};
    use polars_parquet_format::{CompressionCodec, FileMetaData};

    #[test]
    fn what_was_written_is_read() {
        let home = tempfile::tempdir().expect("a folder");
        let table = df![
            "whole" => [Some(1_i64), None, Some(3), Some(-4), Some(5)],
            "text" => [Some("a"), Some("é".repeat(40).as_str()), None, Some(""), Some("b")],
            "share" => [0.5, 1.5, 2.5, 3.5, 4.5],
            "flag" => [true, false, true, true, false],
        ];
        let table = table.expect("columns of one length");
        for snappy in [true, false] {
            let path = home.path().join(format!("{snappy}.parquet"));
            let file = File::create(&path).expect("a file");
            let more = Some(("key".to_owned(), "value".to_owned()));
            write(&table, file, Layout { snappy, group: 2 }, more).expect("a table");
            let (_, footer) = footer::open(&path).expect("a footer");
            assert_eq!(footer.row_groups.len(), 3);
            assert!(read(&path, None).expect("rows").equals_missing(&table));
            let text = read(&path, Some(&["text"])).expect("rows");
            assert!(text.equals_missing(&table.select(["text"]).expect("a column")));
            let lacks = read(&path, Some(&["texts"])).expect_err("no such column");
            assert_eq!(lacks.to_string(), "it has no column `texts`");
        }
    }

    #[test]
    fn another_codec_is_refused() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("zstd.parquet");
        let table = df!["whole" => [1_i64]].expect("a column");
        write(&table, File::create(&path).expect("a file"), Layout::default(), None).expect("a table");
        let bytes = std::fs::read(&path).expect("a table");
        let end = bytes.len() - 8;
        let length = u32::from_le_bytes(bytes[end..end + 4].try_into().expect("four bytes")) as usize;
        let (pages, mut footer) = bytes[..end].split_at(end - length);
        let mut protocol = TCompactInputProtocol::new(&mut footer, usize::MAX);
        let mut file = FileMetaData::read_from_in_protocol(&mut protocol).expect("a footer");
        let chunk = file.row_groups[0].columns[0].meta_data.as_mut().expect("a column");
        chunk.codec = CompressionCodec::ZSTD;
        let mut footer = Vec::new();
        file.write_to_out_protocol(&mut TCompactOutputProtocol::new(&mut footer)).expect("a footer");
        let length = (footer.len() as u32).to_le_bytes();
        std::fs::write(&path, [pages, &footer, &length, b"PAR1"].concat()).expect("a file");
        let error = read(&path, None).expect_err("another codec");
        assert_eq!(error.to_string(), "it is compressed with Zstd, and only Snappy is read");
    }
}
