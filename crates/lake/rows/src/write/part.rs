//! One Parquet file on its way into the lake.

use super::WriteSettings;
use super::text::{self, TextChunk, TextSettings};
use crate::{Error, Result};
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use trawl_store::{DataFile, HashedUpload, Store};

/// A file whose row groups arrive encoded, in order.
pub(super) struct Part {
    file: SerializedFileWriter<HashedUpload>,
    factory: ArrowRowGroupWriterFactory,
    groups_begun: usize,
    /// What its commit will say; filled while rows are written.
    pub about: DataFile,
}

impl Part {
    pub fn create(store: &dyn Store, about: DataFile, schema: SchemaRef, properties: WriterProperties) -> Result<Self> {
        let sink = HashedUpload::begin(store, &about.path)?;
        // The Arrow schema would only repeat, encoded and uncompressed, what the Parquet schema says.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let fail = |source| Error::Parquet { path: about.path.clone(), source };
        let writer = ArrowWriter::try_new_with_options(sink, schema, options).map_err(fail)?;
        let (file, factory) = writer.into_serialized_writer().map_err(fail)?;
        Ok(Self { file, factory, groups_begun: 0, about })
    }

    /// Writers for the columns of the next row group, to be used on any thread.
    pub fn begin_group(&mut self, settings: &WriteSettings) -> Result<Vec<ColumnWriter>> {
        let writers = self.factory.create_column_writers(self.groups_begun).map_err(|e| self.failed(e))?;
        self.groups_begun += 1;
        let described = self.file.schema_descr().columns();
        let columns = settings.columns.iter().zip(described).zip(writers);
        Ok(columns
            .map(|((column, described), writer)| match settings.text(*column) {
                Some(text) => ColumnWriter::Text(ColumnDescPtr::clone(described), text),
                None => ColumnWriter::Library(Box::new(writer)),
            })
            .collect())
    }

    /// Appends an encoded row group.
    pub fn append(&mut self, chunks: Vec<Chunk>) -> Result<()> {
        let appended = (|| {
            let mut group = self.file.next_row_group()?;
            for chunk in chunks {
                match chunk {
                    Chunk::Library(chunk) => chunk.append_to_row_group(&mut group)?,
                    Chunk::Text(chunk) => chunk.append_to(&mut group)?,
                }
            }
            group.close().map(|_| ())
        })();
        appended.map_err(|e| self.failed(e))?;
        self.about.row_groups += 1;
        Ok(())
    }

    /// Writes the footer and makes the file appear.
    pub fn finish(self) -> Result<DataFile> {
        let mut about = self.about;
        let sink = self.file.into_inner().map_err(|source| Error::Parquet { path: about.path.clone(), source })?;
        let (bytes, hash) = sink.finish()?;
        (about.bytes, about.hash) = (bytes, format!("{hash:016x}"));
        Ok(about)
    }

    fn failed(&self, source: ParquetError) -> Error {
        Error::Parquet { path: self.about.path.clone(), source }
    }
}

/// How a column of a row group is written.
pub(super) enum ColumnWriter {
    Library(Box<ArrowColumnWriter>),
    Text(ColumnDescPtr, TextSettings),
}

/// A column of a row group, encoded.
pub(super) enum Chunk {
    Library(ArrowColumnChunk),
    Text(TextChunk),
}

/// Encodes the rows of one row group.
pub(super) fn encode(
    schema: &SchemaRef,
    writers: Vec<ColumnWriter>,
    batches: &[arrow_array::RecordBatch],
) -> Result<Vec<Chunk>, ParquetError> {
    let mut chunks = Vec::with_capacity(writers.len());
    for (i, (writer, field)) in writers.into_iter().zip(schema.fields()).enumerate() {
        let arrays = batches.iter().filter_map(|batch| batch.columns().get(i));
        chunks.push(match writer {
            ColumnWriter::Text(column, settings) => Chunk::Text(text::encode(&column, settings, arrays)?),
            ColumnWriter::Library(mut writer) => {
                for array in arrays {
                    for leaf in compute_leaves(field, array)? {
                        writer.write(&leaf)?;
                    }
                }
                Chunk::Library(writer.close()?)
            }
        });
    }
    Ok(chunks)
}
