//! Sources in, rows out.

mod common;

use common::{NOW, all_rows, file, lake_on, new_lake, settings, take, urls, write};
use std::collections::BTreeSet;
use std::path::Path;
use trawl_ingest::{IngestSettings, Mode, source};
use trawl_io::fault::FaultFs;
use trawl_model::UnixMillis;
use trawl_store::{CommitMode, Error as StoreError, layout};

#[test]
fn lines_come_out_sorted_and_whole() {
    let (fs, lake) = new_lake();
    let text =
        "# a list\n\nhttp://b.com/2\nhttps://www.a.com/x?b=1&a=2\t20260101000000\r\nhttp://b.com/1\nhttp://a.com/y\n";
    let report = take(&lake, vec![file(&fs, "list.txt", text)], &settings(&fs, "w1")).unwrap();
    assert_eq!((report.rows, report.distinct_urls, report.rejected, report.files), (4, 4, 0, 1));
    assert_eq!((report.commit, report.sources, report.prefix_digits), (Some(1), 1, 0));
    assert_eq!(report.source_bytes, text.len() as u64);
    // a.com before b.com; within a domain by SURT, so www.a.com after a.com.
    assert_eq!(
        urls(&lake),
        ["http://a.com/y", "https://www.a.com/x?b=1&a=2", "http://b.com/1", "http://b.com/2"],
        "raw spellings come back"
    );
    let rows = all_rows(&lake);
    assert_eq!(rows[1].ts, UnixMillis::parse("20260101000000").ok());
    assert_eq!((rows[1].domain.as_str(), rows[1].host.as_str()), ("a.com", "www.a.com"));
    let commit = lake.dataset_newest(1).unwrap().unwrap();
    assert_eq!(commit.mode, CommitMode::Append);
    assert_eq!(commit.files[0].path, "urls/dataset_id=1/domain_prefix=all/part-w1-00000.parquet");
    assert_eq!((commit.files[0].min_key.as_str(), commit.files[0].max_key.as_str()), ("com,a)/y", "com,b)/2"));
    assert!(lake.heartbeats().unwrap().is_empty());
}

#[test]
fn captures_and_extras_come_back() {
    let (fs, lake) = new_lake();
    let text = concat!(
        r#"{"url":"http://a.com/","ts":1782262923,"status":200,"content_type":"text/html","digest":"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ","#,
        r#""body_length":5,"warc_file":"x.warc.gz","warc_offset":7,"warc_length":9,"lang":"de","score":1.50}"#,
        "\n",
        r#"{"url":"http://a.com/2"}"#,
        "\n"
    );
    take(&lake, vec![file(&fs, "list.jsonl", text)], &settings(&fs, "w1")).unwrap();
    let rows = all_rows(&lake);
    let row = &rows[0];
    assert_eq!(row.ts, Some(UnixMillis(1_782_262_923_000)));
    assert_eq!((row.status, row.content_type.as_deref(), row.body_length), (Some(200), Some("text/html"), Some(5)));
    assert_eq!(
        row.digest.as_deref(),
        Some("da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        "as captures.parquet spells it"
    );
    assert_eq!((row.warc_file.as_deref(), row.warc_offset, row.warc_length), (Some("x.warc.gz"), Some(7), Some(9)));
    assert_eq!(row.extras.as_deref(), Some(r#"{"lang":"de","score":1.50}"#));
    assert_eq!((rows[1].status, rows[1].extras.as_deref(), rows[1].warc_offset), (None, None, None));
}

/// Lines of `n` URLs on some domains, in no order.
fn many(n: u64) -> String {
    let mut text = String::new();
    for i in 0..n {
        let j = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        text.push_str(&format!("http://h{}.d{}.com/p/{}\n", j % 3, j % 97, j % 5000));
    }
    text
}

#[test]
fn many_rows_in_many_groups_files_and_prefixes_stay_in_order() {
    let text = many(30_000);
    let expected: BTreeSet<_> = text.lines().map(str::to_owned).collect();
    for digits in 0..=2 {
        let (fs, lake) = new_lake();
        let settings = IngestSettings {
            prefix_digits: Some(digits),
            row_group_bytes: 200 << 10,
            file_bytes: 500 << 10,
            page_rows: 100,
            split_bytes: 10_000,
            store_ids: digits == 1,
            ..settings(&fs, "w1")
        };
        let report = take(&lake, vec![file(&fs, "list.txt", &text)], &settings).unwrap();
        assert_eq!((report.rows, report.distinct_urls), (30_000, expected.len() as u64));
        let commit = lake.dataset_newest(1).unwrap().unwrap();
        assert!(commit.files.len() > 3 || digits == 2, "{} files", commit.files.len());
        if digits == 0 {
            assert!(commit.files.iter().any(|f| f.row_groups > 1));
        }
        let rows = all_rows(&lake);
        assert_eq!(rows.len(), 30_000);
        assert_eq!(rows.iter().map(|r| r.url.clone()).collect::<BTreeSet<_>>(), expected);
        for pair in commit.files.windows(2).filter(|pair| pair[0].prefix == pair[1].prefix) {
            let end = (&pair[0].max_domain, &pair[0].max_key);
            assert!(end < (&pair[1].min_domain, &pair[1].min_key), "ranges of one prefix are disjoint and in order");
        }
        for file in &commit.files {
            assert_eq!(file.prefix, trawl_url::domain_prefix(trawl_url::domain_id(&file.min_domain), digits));
        }
    }
}

#[test]
fn equal_input_gives_equal_bytes() {
    let text = many(5_000);
    let hashes: BTreeSet<_> = (1..=4)
        .map(|threads| {
            let (fs, lake) = new_lake();
            let settings = IngestSettings { threads, split_bytes: 1000 * threads as u64, ..settings(&fs, "w") };
            take(&lake, vec![file(&fs, "list.txt", &text)], &settings).unwrap();
            lake.dataset_newest(1).unwrap().unwrap().files[0].hash.clone()
        })
        .collect();
    assert_eq!(hashes.len(), 1);
}

#[test]
fn a_source_is_taken_once() {
    let (fs, lake) = new_lake();
    let list = |bytes: &str| file(&fs, "list.txt", bytes);
    take(&lake, vec![list("http://a.com/1\n")], &settings(&fs, "w1")).unwrap();
    let again = take(&lake, vec![list("http://a.com/1\n")], &settings(&fs, "w2")).unwrap();
    assert_eq!((again.commit, again.rows, again.sources, again.skipped.len()), (None, 0, 0, 1));
    let twice = vec![file(&fs, "b.txt", "http://a.com/2\n"), file(&fs, "b.txt", "http://a.com/2\n")];
    let report = take(&lake, twice, &settings(&fs, "w3")).unwrap();
    assert_eq!((report.rows, report.sources, report.skipped.len()), (1, 1, 1));
    // The same name with other bytes is another source.
    take(&lake, vec![list("http://a.com/3\n")], &settings(&fs, "w4")).unwrap();
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2", "http://a.com/3"]);
    let newest = lake.dataset_newest(1).unwrap().unwrap();
    assert_eq!((newest.sequence, newest.sources.len(), newest.files.len()), (3, 3, 3));
    assert_eq!(newest.files.iter().map(|f| f.added).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn replace_puts_new_files_in_place_of_all_others() {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, "a.txt", "http://a.com/1\n")], &settings(&fs, "w1")).unwrap();
    let replace = |writer: &str| IngestSettings { mode: Mode::Replace, ..settings(&fs, writer) };
    take(&lake, vec![file(&fs, "b.txt", "http://b.com/1\n")], &replace("w2")).unwrap();
    assert_eq!(urls(&lake), ["http://b.com/1"]);
    let newest = lake.dataset_newest(1).unwrap().unwrap();
    assert_eq!((newest.sources.len(), newest.mode), (1, CommitMode::Replace));
    // What was replaced may come back.
    take(&lake, vec![file(&fs, "a.txt", "http://a.com/1\n")], &settings(&fs, "w3")).unwrap();
    assert_eq!(urls(&lake).len(), 2);
    let empty = take(&lake, vec![], &IngestSettings { allow_empty: true, ..replace("w4") }).unwrap();
    assert_eq!((empty.commit, urls(&lake).len()), (Some(4), 0));
    // The state before is still there for readers that pinned it.
    let pinned = lake.dataset_commit(1, 3).unwrap().unwrap();
    assert_eq!(common::rows_of(&**lake.store(), &pinned).len(), 2);
}

#[test]
fn what_cannot_be_taken_is_counted_and_kept() {
    let (fs, lake) = new_lake();
    let text = "http://a.com/\nmailto:x@y.z\nhttp://\nhttp://b.com:x/\tlater\nhttp://256.0.0.1/\n";
    let report = take(&lake, vec![file(&fs, "list.txt", text)], &settings(&fs, "w1")).unwrap();
    assert_eq!((report.rows, report.rejected), (1, 4));
    let codes: Vec<_> = report.rejected_by_code.keys().map(String::as_str).collect();
    assert_eq!(codes, ["host_ip", "no_host", "port", "scheme"]);
    let path = report.rejects_file.unwrap();
    assert_eq!(path, layout::rejects(1, "w1").unwrap());
    let bytes = lake.store().get(&path, 1 << 20).unwrap();
    let lines: Vec<serde_json::Value> =
        bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    let port = lines.iter().find(|l| l["code"] == "port").unwrap();
    assert_eq!((port["source"].as_str(), port["offset"].as_u64()), (Some("list.txt"), Some(35)));
    assert_eq!(port["text"], "http://b.com:x/");

    let few = IngestSettings { max_rejects: 2, ..settings(&fs, "w2") };
    let report = take(&lake, vec![file(&fs, "more.txt", "a:\nb:\nc:\nd:\n")], &few).unwrap();
    assert_eq!((report.rows, report.rejected), (0, 4));
    let bytes = lake.store().get(&report.rejects_file.unwrap(), 1 << 20).unwrap();
    assert_eq!(bytes.iter().filter(|b| **b == b'\n').count(), 2);
    assert_eq!(lake.dataset_newest(1).unwrap().unwrap().sources.len(), 2, "a source of rejects only is not read again");
}

#[test]
fn racing_ingests_both_end_up_in_and_one_source_does_not_double() {
    let (fs, lake) = new_lake();
    let shared = || file(&fs, "shared.txt", "http://s.com/\n");
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let own = file(&fs, &format!("{i}.txt"), format!("http://own{i}.com/\n"));
                let (lake, settings) = (&lake, settings(&fs, &format!("w{i}")));
                let sources = if i < 2 { vec![own, shared()] } else { vec![own] };
                scope.spawn(move || take(lake, sources, &settings))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    // The two with the shared source either saw each other's commit in time, or one was refused.
    let failed: Vec<_> = outcomes.iter().filter_map(|o| o.as_ref().err()).collect();
    assert!(failed.len() <= 1);
    for error in failed {
        assert!(matches!(error, trawl_ingest::Error::Store(StoreError::Refused { .. })), "{error}");
    }
    let found = urls(&lake);
    assert_eq!(found.iter().filter(|u| *u == "http://s.com/").count(), 1);
    assert!(found.contains(&"http://own2.com/".to_owned()) && found.contains(&"http://own3.com/".to_owned()));
    // Whoever was refused left nothing behind.
    let live: BTreeSet<_> = lake.dataset_newest(1).unwrap().unwrap().files.into_iter().map(|f| f.path).collect();
    let listed = lake.store().list("urls/dataset_id=1").unwrap();
    let parts: BTreeSet<_> = listed.into_iter().map(|l| l.path).filter(|p| p.ends_with(".parquet")).collect();
    assert_eq!(parts, live);
    assert!(lake.heartbeats().unwrap().is_empty());
}

#[test]
fn a_source_that_fails_leaves_nothing_behind() {
    let (fs, lake) = new_lake();
    let gz = {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gz, many(20_000).as_bytes()).unwrap();
        gz.finish().unwrap()
    };
    let error = take(&lake, vec![file(&fs, "cut.txt.gz", &gz[..gz.len() / 2])], &settings(&fs, "w1")).unwrap_err();
    assert!(error.to_string().contains("cut.txt.gz"), "{error}");
    assert!(lake.store().list("urls").unwrap().is_empty());
    assert!(lake.heartbeats().unwrap().is_empty());
    assert!(lake.dataset_newest(1).unwrap().is_none());
}

#[test]
fn settings_and_datasets_are_checked() {
    let (fs, lake) = new_lake();
    let list = || vec![file(&fs, "a.txt", "http://a.com/\n")];
    let good = || settings(&fs, "w1");
    for bad in [
        IngestSettings { writer: "../w".into(), ..good() },
        IngestSettings { prefix_digits: Some(3), ..good() },
        IngestSettings { zstd_level: 0, ..good() },
        IngestSettings { page_rows: 0, ..good() },
        IngestSettings { memory_bytes: 1, ..good() },
    ] {
        assert!(take(&lake, list(), &bad).is_err());
    }
    let unknown = trawl_ingest::ingest(&lake, 9, &list(), &good(), &|| NOW, &common::quiet).unwrap_err();
    assert!(matches!(unknown, trawl_ingest::Error::Store(StoreError::UnknownDataset { .. })));
    write(&fs, "unknown.bin", b"\x00\x01\x02");
    assert!(source::open(&fs, Path::new("unknown.bin"), None).is_err());
    write(&fs, "unknown", b"http://a.com/\n");
    assert!(source::open(&fs, Path::new("unknown"), None).is_ok());
}

#[test]
fn spilling_changes_nothing() {
    let text = many(200_000);
    let fs = FaultFs::new();
    let lake = lake_on(&fs.shared());
    fs.shared().create_dir_all(Path::new("tmp")).unwrap();
    let report = take(&lake, vec![file(&fs.shared(), "list.txt", &text)], &settings(&fs.shared(), "w1")).unwrap();
    assert!(report.spilled_bytes > 0, "{report:?}");
    let expected: BTreeSet<_> = text.lines().map(str::to_owned).collect();
    assert_eq!(report.distinct_urls, expected.len() as u64);
    assert_eq!(urls(&lake).into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn rows_are_replaced_by_none_only_on_purpose() {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, "a.txt", "http://a.com/1\n")], &settings(&fs, "w1")).unwrap();
    let replace = |writer: &str| IngestSettings { mode: Mode::Replace, ..settings(&fs, writer) };
    for nothing in ["", "mailto:me@a.com\n"] {
        let refused = take(&lake, vec![file(&fs, "none.txt", nothing)], &replace("w2")).unwrap_err();
        assert!(refused.to_string().contains("no rows"), "{refused}");
    }
    assert!(take(&lake, Vec::new(), &replace("w3")).is_err());
    assert_eq!(urls(&lake), ["http://a.com/1"]);
    let told = IngestSettings { allow_empty: true, ..replace("w4") };
    take(&lake, vec![file(&fs, "none.txt", "")], &told).unwrap();
    assert!(urls(&lake).is_empty());
}

#[test]
fn a_record_above_what_memory_allows_is_rejected_alone() {
    let (fs, lake) = new_lake();
    let long = "x".repeat(700_000);
    let text = format!("{{\"url\":\"http://a.com/1\"}}\n{{\"url\":\"http://a.com/2\",\"x\":\"{long}\"}}\n");
    let report = take(&lake, vec![file(&fs, "a.jsonl", text)], &settings(&fs, "w1")).unwrap();
    assert_eq!((report.rows, report.rejected_by_code.get("record_too_large")), (1, Some(&1)));
    assert_eq!(urls(&lake), ["http://a.com/1"]);
}
