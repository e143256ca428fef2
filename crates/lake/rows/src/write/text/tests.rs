//! What is written here is read by the library.

use super::{TextSettings, encode};
use crate::page::delta::put_numbers;
use crate::page::levels::put_levels;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::writer::SerializedFileWriter;
use proptest::prelude::*;
use std::sync::Arc;

const SETTINGS: TextSettings =
    TextSettings { zstd_level: 6, page_rows: 100, page_bytes: 1 << 20, page_statistics: true };

/// A file of one column, in batches of 64 rows.
fn write(texts: &[Option<String>], nullable: bool, settings: TextSettings) -> Bytes {
    let schema = Schema::new(vec![Field::new("text", DataType::Utf8, nullable)]);
    let described = ArrowSchemaConverter::new().convert(&schema).unwrap();
    let batches: Vec<ArrayRef> =
        texts.chunks(64).map(|texts| Arc::new(texts.iter().collect::<StringArray>()) as ArrayRef).collect();
    let mut out = Vec::new();
    let mut file = SerializedFileWriter::new(&mut out, described.root_schema_ptr(), Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    encode(&described.column(0), settings, batches.iter()).unwrap().append_to(&mut group).unwrap();
    group.close().unwrap();
    file.close().unwrap();
    out.into()
}

fn read(file: &Bytes) -> (Vec<Option<String>>, Arc<ParquetMetaData>) {
    let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options).unwrap();
    let metadata = builder.metadata().clone();
    let mut texts = Vec::new();
    for batch in builder.build().unwrap() {
        let batch = batch.unwrap();
        texts.extend(batch.column(0).as_string::<i32>().iter().map(|text| text.map(str::to_owned)));
    }
    (texts, metadata)
}

fn pages(metadata: &ParquetMetaData) -> Vec<(i64, i32)> {
    let index = metadata.page_index_for_row_group(0);
    let places = index.offset_index(0).unwrap().page_locations();
    places.iter().map(|page| (page.first_row_index, page.compressed_page_size)).collect()
}

proptest! {
    #[test]
    fn the_library_reads_them(
        texts in proptest::collection::vec(proptest::option::weighted(0.7, "(/[ab]{0,3}){0,5}[é-ü]{0,40}"), 1..700),
        page_rows in 1..300usize,
    ) {
        let file = write(&texts, true, TextSettings { page_rows, ..SETTINGS });
        let (found, metadata) = read(&file);
        prop_assert_eq!(&found, &texts);
        prop_assert_eq!(pages(&metadata).len(), texts.len().div_ceil(page_rows));
        let statistics = metadata.row_group(0).column(0).statistics().unwrap();
        prop_assert_eq!(statistics.null_count_opt(), Some(texts.iter().filter(|t| t.is_none()).count() as u64));
        for text in texts.iter().flatten() {
            prop_assert!(statistics.min_bytes_opt().is_none_or(|least| least <= text.as_bytes()));
            prop_assert!(statistics.max_bytes_opt().is_none_or(|most| most >= text.as_bytes()));
        }
    }
}

#[test]
fn long_texts_end_a_page() {
    let texts: Vec<_> = (0..40).map(|n| Some(format!("{n}{}", "x".repeat(5000)))).collect();
    let (found, metadata) = read(&write(&texts, false, TextSettings { page_bytes: 20_000, ..SETTINGS }));
    assert_eq!(found, texts);
    let rows: Vec<_> = pages(&metadata).iter().map(|page| page.0).collect();
    assert_eq!(rows, [0, 4, 8, 12, 16, 20, 24, 28, 32, 36]);
    let statistics = metadata.row_group(0).column(0).statistics().unwrap();
    assert_eq!(statistics.min_bytes_opt().unwrap().len(), 64);
    assert!(!statistics.min_is_exact() && !statistics.max_is_exact());
    assert!(
        statistics.max_bytes_opt().unwrap().starts_with(b"9xx") && statistics.max_bytes_opt().unwrap().ends_with(b"xy")
    );
}

#[test]
fn the_same_text_over_and_over_takes_next_to_nothing() {
    let texts: Vec<_> = (0..10_000).map(|_| Some("www.example.com".to_owned())).collect();
    let file = write(&texts, false, TextSettings { page_rows: 10_000, ..SETTINGS });
    let (found, metadata) = read(&file);
    assert_eq!(found, texts);
    assert!(pages(&metadata)[0].1 < 120, "{:?}", pages(&metadata));
    assert!(metadata.row_group(0).column(0).statistics().unwrap().max_is_exact());
}

#[test]
fn numbers_as_drawn() {
    let mut out = Vec::new();
    put_numbers(&[7, 5, 300, 300], &mut out);
    // Blocks of 128 in one part, 4 numbers, first 7 (zigzag); least difference -2, 16 bits each: 0, 297, 2.
    assert_eq!(out[..13], [0x80, 1, 1, 4, 14, 3, 16, 0, 0, 0x29, 1, 2, 0]);
    assert_eq!(out.len(), 7 + 256);
    out.clear();
    put_numbers(&[], &mut out);
    assert_eq!(out, [0x80, 1, 1, 0, 0]);
}

#[test]
fn levels_as_drawn() {
    let mut out = Vec::new();
    put_levels(&[true; 300], &mut out);
    assert_eq!(out, [3, 0, 0, 0, 0xd8, 4, 1]);
    out.clear();
    put_levels(&[true, false, true, true, false, true, false, false, true], &mut out);
    assert_eq!(out, [3, 0, 0, 0, 5, 0b0010_1101, 1]);
}
