//! Files of others, and damaged ones.

use super::*;
use arrow_array::{ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use std::sync::Arc;

fn text(values: [&str; 2]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn long(values: [i64; 2]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn file(columns: Vec<(&str, ArrayRef)>) -> Bytes {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap().into()
}

/// The 24 columns of ami 0.3, in its order.
fn ami() -> Bytes {
    file(vec![
        ("url", text(["http://a.example/", "http://b.example/"])),
        ("host", text(["a.example", "b.example"])),
        ("status", Arc::new(Int32Array::from(vec![200, 0]))),
        ("fetched_at", long([5, 6])),
        ("content_type", text(["text/html", ""])),
        ("body_length", long([3, 0])),
        ("digest", text(["02083f4579e08a612425c0c1a17ee47add783b94", ""])),
        ("unchanged", Arc::new(BooleanArray::from(vec![true, false]))),
        ("etag", text(["\"e\"", ""])),
        ("last_modified", text(["", ""])),
        ("warc_file", text(["ami-00000.warc.gz", ""])),
        ("warc_offset", long([7, 0])),
        ("warc_length", long([8, 0])),
        ("error", text(["", "skipped"])),
        ("meta_json", text(["{\"a\":\"b\"}", ""])),
        ("markdown", text(["# a", ""])),
        ("markdown_length", long([3, 0])),
        ("ttfb_ms", long([9, 0])),
        ("fetch_duration_ms", long([10, 0])),
        ("final_url", text(["http://a.example/", ""])),
        ("ip_address", text(["192.0.2.1", ""])),
        ("resp_headers", text(["HTTP/1.1 200 OK", ""])),
        ("req_headers", text(["GET / HTTP/1.1", ""])),
        ("body", Arc::new(BinaryArray::from(vec![&b"abc"[..], b""]))),
    ])
}

#[test]
fn a_table_of_urls_is_not_an_index() {
    let is_index = |file: Bytes| crate::reader::is_index(Arc::new(file));
    let urls = || ("url", text(["http://a.example/", "no url"]));
    assert!(!is_index(file(vec![urls()])));
    assert!(!is_index(file(vec![urls(), ("warc_filename", text(["a", "b"])), ("digest", text(["", ""]))])));
    assert!(is_index(ami()));
    // Which column has the wrong type is said where it is read.
    assert!(is_index(file(vec![urls(), ("warc_file", long([1, 2]))])));
    assert!(is_index(Bytes::from_static(b"PAR1 and no more")));
}

#[test]
fn the_24_columns_of_ami_are_read() {
    let reader = CapturesReader::over(Arc::new(ami())).unwrap();
    assert_eq!((reader.row_count(), reader.version()), (2, None));
    let rows: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!((rows[0].status, rows[0].body_length, rows[0].unchanged), (200, 3, true));
    assert_eq!(rows[0].place(), Some(trawl_model::Place::new("ami-00000.warc.gz", 7, 8)));
    assert_eq!(
        (rows[0].etag.as_deref(), rows[0].ttfb_ms, rows[0].ip_address.as_deref()),
        (Some("\"e\""), Some(9), Some("192.0.2.1"))
    );
    assert_eq!((rows[1].error.as_str(), rows[1].place()), ("skipped", None));
}

#[test]
fn types_may_be_wider_or_binary_but_not_others() {
    let url: ArrayRef = Arc::new(BinaryArray::from(vec![&b"http://\xff/"[..], b"x"]));
    let rows: Vec<_> = CapturesReader::over(Arc::new(file(vec![("status", long([404, 200])), ("url", url)])))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!((rows[0].url.as_str(), rows[0].status), ("http://%FF/", 404));
    let wrong = CapturesReader::over(Arc::new(file(vec![("url", text(["a", "b"])), ("status", text(["200", ""]))])));
    let message = wrong.err().unwrap().to_string();
    assert_eq!(message, "(memory): column status: expected a signed integer of 32 or 64 bits, found Utf8");
    let none = CapturesReader::over(Arc::new(file(vec![("uri", text(["a", "b"]))]))).err().unwrap().to_string();
    assert_eq!(none, "(memory): column url: expected text, found no such column");
}

#[test]
fn damage_is_an_error_never_a_panic() {
    let good = ami();
    let read =
        |bytes: Vec<u8>| CapturesReader::over(Arc::new(Bytes::from(bytes))).and_then(|r| r.collect::<Result<Vec<_>>>());
    for cut in 0..good.len() {
        assert!(read(good[..cut].to_vec()).is_err(), "cut at {cut}");
    }
    for bit in (0..good.len() * 8).step_by(3) {
        let mut bad = good.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        let _ = read(bad);
    }
}
