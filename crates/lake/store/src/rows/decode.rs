//! From pages to values.

use super::{Column, Kind, rows::Values};
use bytes::{Bytes, BytesMut};
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// Decodes `len` values of `column` after the first `skip`, from its dictionary page and some of its data pages. The
/// error says what was found.
pub(super) fn column(
    column: Column,
    dictionary: Option<Bytes>,
    data: Bytes,
    skip: usize,
    len: usize,
) -> Result<Values, String> {
    let pages = page_reader(column, dictionary, data).map_err(|e| e.to_string())?;
    Ok(match column.kind() {
        Kind::Int32 => Values::Int32(values::<Int32Type>(column, pages, skip, len)?),
        Kind::Int64 | Kind::UInt64 | Kind::Millis => Values::Int64(values::<Int64Type>(column, pages, skip, len)?),
        Kind::Text => {
            let texts = values::<ByteArrayType>(column, pages, skip, len)?;
            for text in texts.iter().flatten() {
                std::str::from_utf8(text.data()).map_err(|e| format!("{}: {e}", column.name()))?;
            }
            Values::Text(texts)
        }
    })
}

/// A page reader over the dictionary and the data pages as if they were the whole column chunk.
fn page_reader(column: Column, dictionary: Option<Bytes>, data: Bytes) -> Result<Box<dyn PageReader>, ParquetError> {
    let descriptor =
        column.descriptor().ok_or_else(|| ParquetError::General(format!("no descriptor of {}", column.name())))?;
    let dictionary_len = dictionary.as_ref().map_or(0, Bytes::len);
    let chunk = match dictionary {
        None => data,
        Some(dictionary) => {
            let mut chunk = BytesMut::with_capacity(dictionary_len + data.len());
            chunk.extend_from_slice(&dictionary);
            chunk.extend_from_slice(&data);
            chunk.freeze()
        }
    };
    let len = i64::try_from(chunk.len())?;
    let metadata = ColumnChunkMetaData::builder(descriptor)
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_total_compressed_size(len)
        .set_data_page_offset(i64::try_from(dictionary_len)?)
        .set_dictionary_page_offset((dictionary_len > 0).then_some(0))
        .build()?;
    Ok(Box::new(SerializedPageReader::new(Arc::new(chunk), &metadata, 0, None)?))
}

/// One entry a row: `len` of them after the first `skip`.
fn values<T: DataType>(
    column: Column,
    pages: Box<dyn PageReader>,
    skip: usize,
    len: usize,
) -> Result<Vec<Option<T::T>>, String> {
    let fail = |e: ParquetError| format!("{}: {e}", column.name());
    let descriptor = column.descriptor().ok_or("no descriptor")?;
    let mut reader = ColumnReaderImpl::<T>::new(descriptor, pages);
    let skipped = reader.skip_records(skip).map_err(fail)?;
    let mut values = Vec::new();
    let mut levels = column.nullable().then(Vec::new);
    let (rows, _, _) = reader.read_records(len, levels.as_mut(), None, &mut values).map_err(fail)?;
    if skipped != skip || rows != len {
        return Err(format!("{}: {rows} rows after {skipped} instead of {len} after {skip}", column.name()));
    }
    let mut values = values.into_iter();
    Ok(match levels {
        None => values.map(Some).collect(),
        Some(levels) => levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect(),
    })
}
