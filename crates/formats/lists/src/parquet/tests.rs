use super::*;
use crate::tests::file_of as list_file;
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, DurationMillisecondArray,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int32Array, Int64Array, MapArray, StringArray, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use trawl_model::{Place, UrlRecord};

fn file_of(columns: Vec<(&str, ArrayRef)>, group_rows: usize) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}

fn open(bytes: &[u8]) -> Result<ParquetSource, DoorError> {
    ParquetSource::open(list_file("f.parquet", bytes), &Options::default())
}

fn read(source: &ParquetSource, target: u64) -> Result<Vec<Result<UrlRecord, String>>, DoorError> {
    let mut out = Vec::new();
    for split in source.splits(target)? {
        source.read(split, &mut |_, item| {
            out.push(item.map_err(|e| e.to_string()));
            Ok(())
        })?;
    }
    Ok(out)
}

fn text(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn captures_parquet() {
    let bytes = file_of(
        vec![
            ("url", text(&[Some("http://a.com/"), Some("http://b.com/")])),
            ("host", text(&[Some("a.com"), Some("b.com")])),
            ("status", Arc::new(Int32Array::from(vec![200, 0]))),
            ("fetched_at", Arc::new(Int64Array::from(vec![1_782_262_923_456, 1_782_262_923_457]))),
            ("content_type", text(&[Some("text/html"), Some("")])),
            ("digest", text(&[Some("da39a3ee5e6b4b0d3255bfef95601890afd80709"), Some("")])),
            ("unchanged", Arc::new(BooleanArray::from(vec![true, false]))),
            ("warc_file", text(&[Some("x.warc.gz"), Some("")])),
            ("warc_offset", Arc::new(Int64Array::from(vec![5, 0]))),
            ("warc_length", Arc::new(Int64Array::from(vec![6, 0]))),
            ("error", text(&[Some(""), Some("timeout")])),
            ("meta_json", text(&[Some(""), Some(r#"{"k":"v"}"#)])),
            ("started_at", Arc::new(Int64Array::from(vec![Some(1_782_262_923_000), None]))),
            ("ttfb_ms", Arc::new(Int64Array::from(vec![1, 2]))),
            ("record_type", text(&[Some("revisit"), None])),
            ("body", text(&[Some("long"), Some("long")])),
        ],
        10,
    );
    let records = read(&open(&bytes).unwrap(), 1 << 20).unwrap();
    let first = records[0].as_ref().unwrap();
    assert_eq!((first.status, first.ts), (Some(200), Some(UnixMillis(1_782_262_923_000))));
    assert_eq!(first.place, Some(Place::new("x.warc.gz", 5, 6)));
    assert_eq!(first.digest.as_ref().unwrap().to_string(), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
    assert_eq!(first.extras.as_deref(), Some(r#"{"unchanged":true,"record_type":"revisit"}"#));
    let failed = records[1].as_ref().unwrap();
    assert_eq!((failed.status, &failed.place, failed.content_type.as_deref()), (None, &None, None));
    let expected = r#"{"error":"timeout","meta":{"k":"v"}}"#;
    assert_eq!(failed.extras.as_deref(), Some(expected));
}

/// Of a capture without a date the archive itself gives no time; neither does its index.
#[test]
fn a_capture_without_a_date_has_no_time() {
    let zero = || Arc::new(Int64Array::from(vec![0]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("url", text(&[Some("http://a.com/")])),
        ("fetched_at", zero()),
        ("unchanged", Arc::new(BooleanArray::from(vec![false]))),
        ("warc_file", text(&[Some("x.warc.gz")])),
        ("warc_offset", zero()),
        ("started_at", zero()),
    ];
    let record = read(&open(&file_of(columns, 10)).unwrap(), 1 << 20).unwrap().remove(0).unwrap();
    assert_eq!((record.ts, record.extras), (None, None));
}

#[test]
fn common_crawl_columns_and_nested_values() {
    let mut list = ListBuilder::new(StringBuilder::new());
    list.values().append_value("a\"b");
    list.append(true);
    list.append(false);
    let inner: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let bytes = file_of(
        vec![
            ("url_surtkey", text(&[Some("com,a)/"), Some("com,b)/")])),
            ("url", text(&[Some("http://a.com/"), None])),
            ("fetch_time", Arc::new(TimestampMicrosecondArray::from(vec![1_782_262_923_456_789, 0]))),
            ("fetch_status", Arc::new(Int32Array::from(vec![301, 200]))),
            ("warc_filename", text(&[Some("cc.warc.gz"), None])),
            ("warc_record_offset", Arc::new(Int32Array::from(vec![7, 0]))),
            ("warc_record_length", Arc::new(Int32Array::from(vec![8, 0]))),
            ("score", Arc::new(Float64Array::from(vec![1.5, f64::NAN]))),
            ("tags", Arc::new(list.finish())),
            ("s", Arc::new(StructArray::try_from(vec![("k", inner)]).unwrap())),
        ],
        1,
    );
    let source = open(&bytes).unwrap();
    assert_eq!(source.splits(1).unwrap().len(), 2, "a split a row group");
    assert_eq!(source.splits(u64::MAX).unwrap().len(), 1);
    for target in [1, u64::MAX] {
        let records = read(&source, target).unwrap();
        let record = records[0].as_ref().unwrap();
        assert_eq!((record.status, record.ts), (Some(301), Some(UnixMillis(1_782_262_923_456))));
        assert_eq!(record.place, Some(Place::new("cc.warc.gz", 7, 8)));
        assert_eq!(record.extras.as_deref(), Some(r#"{"score":1.5,"tags":["a\"b"],"s":{"k":1}}"#));
        assert!(records[1].as_ref().unwrap_err().contains("expected a url"));
    }
}

#[test]
fn no_url_column_no_source() {
    let error = open(&file_of(vec![("uri", text(&[Some("x")]))], 1)).unwrap_err();
    assert!(error.to_string().contains("\"url\""), "{error}");
}

#[test]
fn the_hosts_of_a_lake_are_not_its_urls() {
    let parts = ["scheme", "host", "path_query"].map(|name| (name, text(&[Some("a.example")])));
    let error = open(&file_of(Vec::from(parts.clone()), 1)).unwrap_err();
    assert!(error.to_string().contains("as in a file of a lake"), "{error}");
    // Beside a column of URLs they are columns like any others.
    let with_url = parts.into_iter().chain([("url", text(&[Some("http://a.example/x")]))]).collect();
    let rows = read(&open(&file_of(with_url, 1)).unwrap(), 1).unwrap();
    assert_eq!(rows[0].as_ref().unwrap().url, "http://a.example/x");
}

#[test]
fn cut_and_flipped_files_give_errors_or_values() {
    let bytes = file_of(
        vec![
            ("url", text(&[Some("http://a.com/"), Some("http://b.com/")])),
            ("x", Arc::new(Int32Array::from(vec![1, 2]))),
        ],
        1,
    );
    for cut in 0..bytes.len() {
        assert!(open(&bytes[..cut]).is_err());
    }
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(source) = open(&bytes)
            && let Ok(items) = read(&source, 1)
        {
            let rows: u64 = source.rows.iter().sum();
            assert_eq!(items.len() as u64, rows, "bit {bit}: every row that the footer counts is an item");
        }
    }
}

fn extras_of(columns: Vec<(&str, ArrayRef)>) -> (UrlRecord, String) {
    let mut all: Vec<(&str, ArrayRef)> = vec![("URL", text(&[Some("http://a.com/")]))];
    all.extend(columns);
    let record = read(&open(&file_of(all, 1)).unwrap(), 1).unwrap().remove(0).unwrap();
    let extras = record.extras.clone().unwrap_or_default();
    (record, extras)
}

#[test]
fn what_json_has_no_word_for_is_kept_as_text() {
    let micros = 1_704_164_645_123_456;
    let map = MapArray::new_from_strings(["k"].into_iter(), &Int32Array::from(vec![7]), &[0, 1]).unwrap();
    let dictionary: DictionaryArray<arrow_array::types::Int32Type> = vec!["word"].into_iter().collect();
    let inner: ArrayRef = Arc::new(Float64Array::from(vec![f64::INFINITY]));
    let word: ArrayRef = Arc::new(dictionary.clone());
    let (_, extras) = extras_of(vec![
        ("dec", Arc::new(Decimal128Array::from(vec![-123]).with_precision_and_scale(5, 2).unwrap())),
        ("bin", Arc::new(BinaryArray::from(vec![&b"\0\xff"[..]]))),
        ("txt", Arc::new(BinaryArray::from(vec![&b"text"[..]]))),
        ("fix", Arc::new(FixedSizeBinaryArray::try_from_iter([[0xab, 0xcd]].into_iter()).unwrap())),
        ("time", Arc::new(Time64MicrosecondArray::from(vec![3_723_000_004]))),
        ("long", Arc::new(DurationMillisecondArray::from(vec![-5_500]))),
        ("date", Arc::new(Date32Array::from(vec![19_723]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC"))),
        ("wall", Arc::new(TimestampMicrosecondArray::from(vec![micros]))),
        ("nan", Arc::new(Float64Array::from(vec![f64::NAN]))),
        ("single", Arc::new(Float32Array::from(vec![0.1]))),
        ("word", Arc::new(dictionary)),
        ("map", Arc::new(map)),
        ("s", Arc::new(StructArray::try_from(vec![("inf", inner), ("w", word)]).unwrap())),
    ]);
    let expected = concat!(
        r#"{"dec":"-1.23","bin":"00ff","txt":"text","fix":"abcd","time":"01:02:03.000004","long":"PT-5.5S","#,
        r#""date":"2024-01-01","at":"2024-01-02T03:04:05.123456Z","wall":"2024-01-02T03:04:05.123456","nan":"NaN","#,
        r#""single":0.1,"word":"word","map":{"k":7},"s":{"inf":"Infinity","w":"word"}}"#
    );
    assert_eq!(extras, expected);
}

#[test]
fn times_are_what_the_column_says_or_in_the_extras() {
    let millis = |ms: i64| -> ArrayRef { Arc::new(TimestampMillisecondArray::from(vec![ms]).with_timezone("UTC")) };
    let ts_of = |array: ArrayRef| {
        let (record, extras) = extras_of(vec![("TS", array)]);
        (record.ts, extras)
    };
    let t = UnixMillis::parse("2024-01-02T03:04:05Z").ok();
    assert_eq!(ts_of(Arc::new(Int64Array::from(vec![20_240_102_030_405]))), (t, String::new()));
    assert_eq!(ts_of(Arc::new(Int64Array::from(vec![20_240_102_030_405_000]))), (t, String::new()));
    assert_eq!(ts_of(Arc::new(Float64Array::from(vec![20_240_102_030_405.0]))), (t, String::new()));
    assert_eq!(ts_of(text(&[Some("20240102030405")])), (t, String::new()));
    assert_eq!(ts_of(millis(253_402_300_799_999)), (Some(UnixMillis(253_402_300_799_999)), String::new()));
    for (array, extras) in [
        (millis(253_402_300_800_000), r#"{"TS":"+10000-01-01T00:00:00.000Z"}"#),
        (millis(884_541_340_800_000), r#"{"TS":"+30000-01-01T00:00:00.000Z"}"#),
        (millis(-62_167_219_200_001), r#"{"TS":"-0001-12-31T23:59:59.999Z"}"#),
        (millis(i64::MIN), r#"{"TS":"-292275055-05-16T16:47:04.192Z"}"#),
        (Arc::new(Int64Array::from(vec![i64::MIN])), r#"{"TS":-9223372036854775808}"#),
        (Arc::new(Date32Array::from(vec![i32::MAX])), r#"{"TS":"+5881580-07-11"}"#),
    ] {
        assert_eq!(ts_of(array), (None, extras.to_owned()));
    }
    let before = TimestampMicrosecondArray::from(vec![-1]);
    assert_eq!(
        ts_of(Arc::new(before)).0,
        Some(UnixMillis(-1)),
        "a moment before 1970 is in the millisecond it began in"
    );
    let (record, extras) = extras_of(vec![("ts", millis(5)), ("timestamp", millis(6))]);
    assert_eq!((record.ts, &*extras), (Some(UnixMillis(5)), r#"{"timestamp":"1970-01-01T00:00:00.006Z"}"#));
}

/// Pandas writes whole numbers beside nulls as floats; Common Crawl calls the status `fetch_status`.
#[test]
fn statuses_of_every_type() {
    for name in ["status", "fetch_status", "Status"] {
        let of = |array: ArrayRef| {
            let (record, extras) = extras_of(vec![(name, array)]);
            (record.status, extras)
        };
        assert_eq!(of(Arc::new(Float64Array::from(vec![200.0]))), (Some(200), String::new()));
        assert_eq!(of(Arc::new(Float32Array::from(vec![404.0]))), (Some(404), String::new()));
        assert_eq!(of(text(&[Some("200.0")])), (Some(200), String::new()));
        for none in [
            Arc::new(Int32Array::from(vec![0])) as ArrayRef,
            Arc::new(Float64Array::from(vec![0.0])),
            text(&[Some("0")]),
            text(&[Some("")]),
        ] {
            assert_eq!(of(none), (None, String::new()), "{name}");
        }
        let half = of(Arc::new(Float64Array::from(vec![200.5])));
        assert_eq!(half, (None, format!(r#"{{"{name}":200.5}}"#)));
    }
}

#[test]
fn a_row_without_a_url_tells_what_it_has() {
    let bytes = file_of(vec![("url", text(&[Some("http://a.com/"), None])), ("x", text(&[Some("y"), Some("z")]))], 1);
    let source = open(&bytes).unwrap();
    let mut bad = Vec::new();
    for split in source.splits(1).unwrap() {
        source
            .read(split, &mut |_, item| {
                bad.extend(item.err());
                Ok(())
            })
            .unwrap();
    }
    let item = bad[0].source.downcast_ref::<BadItem>().unwrap();
    assert_eq!((item.code, &*item.text), ("no_url", r#"{"x":"z"}"#));
    assert_eq!(bad[0].at.as_ref().unwrap().offset, 1, "the number of the row");
}
