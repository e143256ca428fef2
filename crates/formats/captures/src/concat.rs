//! Several indexes into one, row group by row group, as bytes: nothing is decoded, so the time is that of a copy.

use crate::error::{Error, Result};
use crate::reader::{Chunks, guarded};
use crate::writer::{Covered, covered_metadata, properties};
use parquet::bloom_filter::Sbbf;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use parquet::file::writer::SerializedFileWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::read_at::FileReader;
use trawl_io::{AtomicFile, Fs};

/// Copies the row groups of `inputs`, which this version wrote, in their order into `path`; says how many rows that are. Their rows
/// are all captures of `archives`. The file appears when it is complete.
pub fn concat(fs: &Arc<dyn Fs>, inputs: &[PathBuf], archives: Vec<Covered>, path: &Path) -> Result<u64> {
    let fail = |source| Error::Parquet { file: path.into(), source };
    let schema = crate::columns::schema();
    let schema = parquet::arrow::ArrowSchemaConverter::new().schema_root("Capture").convert(&schema).map_err(fail)?;
    let file = AtomicFile::create(fs, path)?;
    let mut writer = SerializedFileWriter::new(file, schema.root_schema_ptr(), Arc::new(properties())).map_err(fail)?;
    let mut rows = 0;
    for input in inputs {
        let source = Chunks(Arc::new(FileReader::open_in(&**fs, input)?));
        let copied = guarded(|| {
            let read = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
            let metadata = read.parse_and_finish(&source)?;
            if metadata.file_metadata().schema() != schema.root_schema() {
                return Err(ParquetError::General("columns of another version".into()));
            }
            let pages = metadata.page_index();
            for (group, facts) in metadata.row_groups().iter().enumerate() {
                let mut out = writer.next_row_group()?;
                for (n, column) in facts.columns().iter().enumerate() {
                    let close = ColumnCloseResult {
                        bytes_written: u64::try_from(column.compressed_size()).unwrap_or(0),
                        rows_written: u64::try_from(facts.num_rows()).unwrap_or(0),
                        metadata: column.clone(),
                        bloom_filter: Sbbf::read_from_column_chunk(column, &source)?,
                        column_index: pages.and_then(|pages| pages.column_index(group, n)).cloned(),
                        offset_index: pages.and_then(|pages| pages.offset_index(group, n)).cloned(),
                    };
                    out.append_column(&source, close)?;
                }
                out.close()?;
            }
            Ok(metadata.file_metadata().num_rows())
        });
        let copied = copied.map_err(|source| Error::Parquet { file: input.clone(), source })?;
        rows += u64::try_from(copied).unwrap_or(0);
    }
    if let Some(list) = covered_metadata(archives) {
        writer.append_key_value_metadata(list);
    }
    let file = writer.into_inner().map_err(fail)?;
    file.publish()?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CaptureRow, CapturesReader, CapturesWriter};
    use trawl_io::RealFs;

    #[test]
    fn rows_of_all_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let row = |n: u32| CaptureRow { url: format!("http://a.example/{n}"), status: 200, ..CaptureRow::default() };
        let mut inputs = Vec::new();
        for (n, rows) in [0..5000u32, 5000..5000, 5000..5003].into_iter().enumerate() {
            let path = dir.path().join(format!("{n}.parquet"));
            let mut writer = CapturesWriter::create(&fs, &path).unwrap();
            rows.for_each(|n| writer.push(row(n)).unwrap());
            writer.finish().unwrap();
            inputs.push(path);
        }
        let path = dir.path().join("all.parquet");
        let archives = vec![Covered { name: "a.warc.gz".into(), bytes: Some(7) }];
        assert_eq!(concat(&fs, &inputs, archives, &path).unwrap(), 5003);
        let reader = CapturesReader::open(&path).unwrap();
        assert_eq!((reader.row_count(), reader.version()), (5003, Some(crate::VERSION)));
        let rows: Vec<_> = reader.map(Result::unwrap).collect();
        assert_eq!(rows, (0..5003).map(row).collect::<Vec<_>>());
        // What is not such a file is named.
        std::fs::write(&inputs[1], "no index").unwrap();
        let error = concat(&fs, &inputs, Vec::new(), &dir.path().join("none.parquet")).unwrap_err().to_string();
        assert!(error.contains("1.parquet") && !dir.path().join("none.parquet").exists(), "{error}");
    }
}
