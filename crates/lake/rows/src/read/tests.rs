//! Against the library: what it writes comes back, whatever the encoding, and nothing panics.

use super::decode::{Decoder, Pages};
use super::page::{Dictionary, Page};
use super::*;
use crate::page::header;
use crate::values::Gathering;
use crate::{Column, Columns, Kind};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray, UInt64Array};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use proptest::prelude::*;
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_store::{DirStore, Store};

/// A row of everything: two texts and two numbers fill the columns of their kind.
type Cell = (Option<String>, Option<i64>);

fn text_of(cell: &Cell, column: Column) -> Option<String> {
    match (&cell.0, column.nullable()) {
        (None, false) => Some(String::new()),
        (text, _) => text.clone(),
    }
}

fn number_of(cell: &Cell, column: Column) -> Option<i64> {
    let number = if column.nullable() { cell.1 } else { Some(cell.1.unwrap_or(0)) };
    // A 32-bit column keeps what fits.
    number.map(|n| if column.kind() == Kind::Int32 { i64::from(n as i32) } else { n })
}

fn array(cells: &[Cell], column: Column) -> ArrayRef {
    let numbers = || cells.iter().map(|c| number_of(c, column));
    match column.kind() {
        Kind::Int32 => Arc::new(numbers().map(|n| n.map(|n| n as i32)).collect::<Int32Array>()),
        Kind::Int64 => Arc::new(numbers().collect::<Int64Array>()),
        Kind::UInt64 => Arc::new(numbers().map(|n| n.map(i64::cast_unsigned)).collect::<UInt64Array>()),
        Kind::Millis => Arc::new(numbers().collect::<TimestampMillisecondArray>().with_timezone("UTC")),
        Kind::Text => Arc::new(cells.iter().map(|c| text_of(c, column)).collect::<StringArray>()),
    }
}

/// A file of all columns. `choice` picks the encodings.
fn file_of(cells: &[Cell], choice: usize, page_rows: usize) -> Vec<u8> {
    let columns = Column::ALL.iter().map(|c| (c.name(), array(cells, *c), c.nullable()));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).unwrap()))
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows)
        .set_dictionary_page_size_limit(200)
        .set_dictionary_enabled(false);
    for (i, column) in Column::ALL.iter().enumerate() {
        let path = ColumnPath::from(column.name());
        let encodings: &[Encoding] = match column.kind() {
            Kind::Text => &[Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY],
            _ => &[Encoding::PLAIN, Encoding::DELTA_BINARY_PACKED],
        };
        properties = match encodings.get((i + choice) % (encodings.len() + 1)) {
            Some(encoding) => properties.set_column_encoding(path, *encoding),
            None => properties.set_column_dictionary_enabled(path, true),
        };
    }
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}

fn store_with(bytes: &[u8]) -> DirStore {
    let store = DirStore::with_fs(FaultFs::new().shared(), "lake");
    store.put("f", bytes).unwrap();
    store
}

fn check(cells: &[Cell], choice: usize, page_rows: usize, rows: std::ops::Range<u32>) {
    let bytes = file_of(cells, choice, page_rows);
    let store = store_with(&bytes);
    let pages = FilePages::read_unchecked(&store, "f", bytes.len() as u64).unwrap();
    let table = GroupTable::new("f", &pages.groups[0]).unwrap();
    assert_eq!(table.rows() as usize, cells.len());
    let plan = Plan::new("f", &table, rows.clone(), Columns::ALL).unwrap();
    let found = read(&store, &[plan]).unwrap().remove(0);
    assert_eq!(found.len(), rows.len());
    for (i, cell) in cells[rows.start as usize..rows.end as usize].iter().enumerate() {
        for column in Column::ALL {
            if column.kind() == Kind::Text {
                assert_eq!(found.text(*column, i), text_of(cell, *column).as_deref(), "{} {i}", column.name());
                assert_eq!(found.number(*column, i), None);
            } else {
                assert_eq!(found.number(*column, i), number_of(cell, *column), "{} {i}", column.name());
            }
        }
    }
    assert_eq!(found.text(Column::Host, found.len()), None, "nothing past the rows asked for");
}

/// The library's own reading of the same rows and columns.
fn library(bytes: &[u8], wanted: Columns) -> Vec<RecordBatch> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(bytes)).unwrap();
    let mask = parquet::arrow::ProjectionMask::columns(builder.parquet_schema(), wanted.iter().map(Column::name));
    builder.with_projection(mask).build().unwrap().map(Result::unwrap).collect()
}

#[test]
fn batches_are_those_of_the_library() {
    let cells = many(1000);
    for choice in 0..4 {
        let bytes = file_of(&cells, choice, 100);
        let store = store_with(&bytes);
        let pages = FilePages::read_unchecked(&store, "f", bytes.len() as u64).unwrap();
        for wanted in [Columns::ALL, Columns::URL, Columns::of(&[Column::Ts])] {
            let [whole] = &library(&bytes, wanted)[..] else { panic!("one batch") };
            let mut at = 0;
            for batch in pages.scan(&store, wanted, 150).unwrap().batches() {
                let batch = batch.unwrap();
                let expected = whole.slice(at, batch.num_rows());
                assert_eq!(batch.schema().fields(), expected.schema().fields());
                assert_eq!(batch.columns(), expected.columns(), "{choice}");
                at += batch.num_rows();
            }
            assert_eq!(at, whole.num_rows());
        }
        // Planned rows, in the order asked.
        let planned = [(0, 700..950), (0, 3..4), (0, 5..5)];
        let batches: Vec<_> =
            pages.scan_rows(&store, Columns::ALL, planned, 200).batches().map(Result::unwrap).collect();
        let [whole] = &library(&bytes, Columns::ALL)[..] else { panic!("one batch") };
        assert_eq!(batches, [whole.slice(700, 200), whole.slice(900, 50), whole.slice(3, 1)]);
        let none: Vec<_> =
            pages.scan_rows(&store, Columns::NONE, [(0, 2..7)], 200).batches().map(Result::unwrap).collect();
        assert_eq!((none.len(), none[0].num_rows(), none[0].num_columns()), (1, 5, 0));
        assert!(pages.scan_rows(&store, Columns::ALL, [(1, 0..1)], 1).next().unwrap().is_err(), "no such group");
    }
}

fn many(n: usize) -> Vec<Cell> {
    let text = |i: usize| (i % 7 != 3).then(|| format!("/path/{}/é{}", i / 10, i % 13));
    let number = |i: usize| (i % 5 != 1).then(|| (i as i64).wrapping_mul(0x1234_5678_9abc) ^ ((i as i64) << 50));
    (0..n).map(|i| (text(i), number(i))).collect()
}

#[test]
fn pages_of_every_encoding_come_back() {
    let cells = many(1000);
    for choice in 0..4 {
        for (page_rows, rows) in [(100, 0..1000), (100, 150..151), (100, 199..301), (2000, 0..1000), (7, 993..1000)] {
            check(&cells, choice, page_rows, rows);
        }
    }
}

#[test]
fn edges() {
    let none = vec![(None, None); 300];
    let same = vec![(Some("x".to_owned()), Some(7)); 300];
    let extremes: Vec<Cell> = [i64::MIN, i64::MAX, 0, -1, 1].into_iter().map(|n| (None, Some(n))).collect();
    for cells in [none, same, extremes, many(1), many(2)] {
        for choice in 0..4 {
            check(&cells, choice, 128, 0..u32::try_from(cells.len()).unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn anything_comes_back(
        cells in proptest::collection::vec((proptest::option::of("[a-cé]{0,5}"), proptest::option::of(any::<i64>())), 1..200),
        choice in 0usize..4,
        page_rows in 1usize..100,
        from in 0.0f64..1.0,
        len in 0.0f64..1.0,
    ) {
        let total = cells.len() as f64;
        let start = (total * from) as u32;
        let end = start + ((total - f64::from(start)) * len) as u32;
        check(&cells, choice, page_rows, start..end);
    }
}

#[test]
fn damaged_pages_give_errors_or_values() {
    for choice in 0..4 {
        let bytes = file_of(&many(40), choice, 40);
        let store = store_with(&bytes);
        let pages = FilePages::read_unchecked(&store, "f", bytes.len() as u64).unwrap();
        let table = GroupTable::new("f", &pages.groups[0]).unwrap();
        for found in table.find("f", 0..40, Columns::ALL).unwrap() {
            let slice = |range: &std::ops::Range<u64>| bytes[range.start as usize..range.end as usize].to_vec();
            let dictionary = found.dictionary.as_ref().map(|(range, _)| slice(range));
            let data = slice(&found.range);
            let mut decoder = Decoder::new().unwrap();
            let mut decode = |dictionary: Option<&[u8]>, data: &[u8]| {
                let mut rest = data;
                let mut pages = Vec::new();
                for (len, _, rows) in &found.pages {
                    let (page, after) = rest.split_at(rest.len().min(*len));
                    pages.push((page, *rows));
                    rest = after;
                }
                decoder.column(&Pages { column: found.column, dictionary, pages, window: 0..40 })
            };
            decode(dictionary.as_deref(), &data).unwrap();
            assert!(decode(dictionary.as_deref(), &data[..data.len() - 1]).is_err());
            for bit in 0..data.len() * 8 {
                let mut data = data.clone();
                data[bit / 8] ^= 1 << (bit % 8);
                let _ = decode(dictionary.as_deref(), &data);
            }
            for bit in 0..dictionary.as_ref().map_or(0, Vec::len) * 8 {
                let mut dictionary = dictionary.clone().unwrap();
                dictionary[bit / 8] ^= 1 << (bit % 8);
                let _ = decode(Some(&dictionary), &data);
            }
        }
    }
}

/// Compression would catch most damage, so the decoders get it directly too.
#[test]
fn damaged_values_give_errors_or_values() {
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as u8
    };
    for _ in 0..20_000 {
        let raw: Vec<u8> =
            (0..usize::from(random() % 60)).map(|_| if random() % 3 == 0 { random() } else { random() % 5 }).collect();
        for column in [Column::Host, Column::Extras, Column::Ts, Column::Port] {
            let dictionary = Dictionary::new(column, &raw, 2).ok();
            for encoding in 0..10 {
                let mut values = Gathering::new(column, 9);
                let page = Page { column, rows: 9, encoding, dictionary: dictionary.as_ref() };
                let start = usize::from(random() % 9);
                let _ = page.decode(&raw, start..9, &mut values);
                let _ = values.finish();
            }
        }
        let _ = header::read(&raw);
    }
}
