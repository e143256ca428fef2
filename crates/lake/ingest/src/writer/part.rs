//! One Parquet file on its way into the lake.

use crate::{Error, Result};
use arrow_schema::SchemaRef;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use std::io::{self, Write};
use trawl_store::{DataFile, Store, Upload};
use xxhash_rust::xxh3::Xxh3;

/// Counts and hashes what passes through.
struct Hashed {
    inner: Box<dyn Upload>,
    hasher: Box<Xxh3>,
    len: u64,
}

impl Write for Hashed {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(buf)?;
        self.hasher.update(buf.get(..n).unwrap_or_default());
        self.len += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A file whose row groups arrive encoded, in order.
pub(super) struct Part {
    file: SerializedFileWriter<Hashed>,
    factory: ArrowRowGroupWriterFactory,
    groups_begun: usize,
    /// What its commit will say; filled while rows are written.
    pub about: DataFile,
}

impl Part {
    pub fn create(store: &dyn Store, about: DataFile, schema: SchemaRef, properties: WriterProperties) -> Result<Self> {
        let sink = Hashed { inner: store.upload(&about.path)?, hasher: Box::new(Xxh3::new()), len: 0 };
        // The Arrow schema would only repeat, encoded and uncompressed, what the Parquet schema says.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let fail = |source| Error::Parquet { path: about.path.clone(), source };
        let writer = ArrowWriter::try_new_with_options(sink, schema, options).map_err(fail)?;
        let (file, factory) = writer.into_serialized_writer().map_err(fail)?;
        Ok(Self { file, factory, groups_begun: 0, about })
    }

    /// Writers for the columns of the next row group, to be used on any thread.
    pub fn begin_group(&mut self) -> Result<Vec<ArrowColumnWriter>> {
        let writers = self.factory.create_column_writers(self.groups_begun).map_err(|e| self.failed(e))?;
        self.groups_begun += 1;
        Ok(writers)
    }

    /// Appends an encoded row group.
    pub fn append(&mut self, chunks: Vec<ArrowColumnChunk>) -> Result<()> {
        let appended = (|| {
            let mut group = self.file.next_row_group()?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut group)?;
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
        about.bytes = sink.len;
        about.hash = format!("{:016x}", sink.hasher.digest());
        sink.inner.finish()?;
        Ok(about)
    }

    fn failed(&self, source: ParquetError) -> Error {
        Error::Parquet { path: self.about.path.clone(), source }
    }
}

/// Encodes the rows of one row group.
pub(super) fn encode(
    schema: &SchemaRef,
    mut writers: Vec<ArrowColumnWriter>,
    batches: &[arrow_array::RecordBatch],
) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
    for batch in batches {
        for ((writer, field), array) in writers.iter_mut().zip(schema.fields()).zip(batch.columns()) {
            for leaf in compute_leaves(field, array)? {
                writer.write(&leaf)?;
            }
        }
    }
    writers.into_iter().map(ArrowColumnWriter::close).collect()
}
