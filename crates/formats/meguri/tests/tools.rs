//! Seeds, differences, counts, and a file as a source of URLs.

mod common;

use common::*;
use std::collections::BTreeMap;
use trawl_meguri::diff::{Change, diff};
use trawl_meguri::keys::KeyPolicy;
use trawl_meguri::seed::{SeedOptions, Seeder};
use trawl_meguri::settings::Settings;
use trawl_meguri::stats::count;
use trawl_meguri::url_source::MeguriSource;
use trawl_meguri::verify::{Severity, verify};
use trawl_meguri::{Identity, MeguriFile, Partition, ReadSettings, Writer, WriterOptions, json};
use trawl_model::{Place, UnixMillis, UrlRecord, UrlSource};
use trawl_url::SuffixList;
use trawl_url::key::{HostGroup, host_key, legacy};

fn seeded(records: &[UrlRecord], options: SeedOptions) -> (MeguriFile, trawl_meguri::seed::Seeded) {
    let dir = tempfile::tempdir().unwrap();
    let mut seeder = Seeder::new(options, SuffixList::builtin(), dir.path(), 4 << 20).unwrap();
    records.iter().for_each(|record| seeder.push(record).unwrap());
    let identity = Identity { metadata: options.metadata(), ..Identity::default() };
    let url_extensions = SeedOptions::extensions();
    let mut writer = Writer::new(WriterOptions { identity, url_extensions, ..WriterOptions::default() }).unwrap();
    let report = seeder.finish(&mut writer).unwrap();
    let mut out = Vec::new();
    writer.finish(&mut out).unwrap();
    (open(out), report)
}

#[test]
fn captures_become_rows_and_rows_records() {
    let capture = UrlRecord {
        ts: Some(UnixMillis(482_817 * 3_600_000 + 5)),
        status: Some(200),
        place: Some(Place::new("a.warc.gz", 4711, 9)),
        extras: Some("{\"x\":1}".into()),
        ..UrlRecord::bare("https://www.a.example/one")
    };
    let older =
        UrlRecord { ts: Some(UnixMillis(5)), status: Some(500), ..UrlRecord::bare("https://www.a.example/one#top") };
    let records = [
        older,
        UrlRecord::bare("https://b.example"),
        capture,
        UrlRecord::bare("mailto:a@b.example"),
        UrlRecord::bare("https://www.a.example/two"),
    ];
    let (file, report) = seeded(&records, SeedOptions { now_hour: 9, ..SeedOptions::default() });
    assert_eq!((report.urls_in, report.rows, report.hosts, report.duplicates), (5, 3, 2, 1));
    assert_eq!(report.urls_in, report.rows + report.duplicates + report.rejected.values().sum::<u64>());
    assert_eq!(file.key_policy(), KeyPolicy::Trawl);
    let rows: BTreeMap<String, _> =
        read_all(&file).into_iter().map(|r| (String::from_utf8(r.url.to_vec()).unwrap(), r)).collect();
    let one = &rows["https://www.a.example/one#top"];
    assert_eq!(
        (one.record.http_status, one.record.last_crawled, one.record.status),
        (200, 482_817, 4),
        "the newest capture"
    );
    assert_eq!(one.record.host_key, host_key("www.a.example"));
    assert_eq!(rows["https://b.example"].record.first_seen, 9);
    for key in
        KeyPolicy::Trawl.candidates("https://www.a.example/two?utm_source=x", SuffixList::builtin()).iter().take(1)
    {
        assert!(file.find(*key).unwrap().is_some());
    }

    let source = MeguriSource::new(file.clone(), "f.meguri").unwrap();
    let mut found = Vec::new();
    for split in source.splits(100).unwrap() {
        source
            .read(split, &mut |_, item| {
                found.push(item?);
                Ok(())
            })
            .unwrap();
    }
    assert_eq!(found.len(), 3);
    let one = found.iter().find(|r| r.url.ends_with("one#top")).unwrap();
    assert_eq!((one.status, one.ts), (Some(200), Some(UnixMillis(482_817 * 3_600_000))));
    assert_eq!(one.place, Some(Place::new("a.warc.gz", 4711, 0)));
    assert!(one.extras.as_ref().unwrap().contains("\"meta_json\":\"{\\\"x\\\":1}\""), "{:?}", one.extras);
    assert_eq!(source.identity(), MeguriSource::new(file, "f.meguri").unwrap().identity());
}

#[test]
fn policies_give_the_published_keys() {
    let psl = SuffixList::builtin();
    let url = "https://www.example.com/";
    let (key, group) = KeyPolicy::Reference.key(url, HostGroup::Registrable, psl).unwrap();
    assert_eq!((key.host, key.path, &group[..]), (0x2883_ba7d_c9aa_3289, 0xde60_1d85_72d4_ceaa, "example.com"));
    let (key, _) = KeyPolicy::Reference.key(url, HostGroup::FullHost, psl).unwrap();
    assert_eq!(key.host, 0x7743_3734_3878_322e);
    let (key, group) = KeyPolicy::Legacy.key("http://example.com/about", HostGroup::FullHost, psl).unwrap();
    assert_eq!((key.host, key.path, &group[..]), (0x2883_ba7d_c9aa_3289, 0x4e96_67b0_e54f_561c, "example.com"));
    assert!(KeyPolicy::Reference.candidates(url, psl).contains(&legacy(url, None)));
    for name in ["reference", "legacy", "trawl", "exact"] {
        assert_eq!(KeyPolicy::from_name(name).map(KeyPolicy::name), Some(name));
    }
    assert_ne!(
        KeyPolicy::Exact.key("https://e.com/?a&utm_source=1", HostGroup::FullHost, psl).unwrap().0,
        KeyPolicy::Exact.key("https://e.com/?a", HostGroup::FullHost, psl).unwrap().0
    );
}

#[test]
fn differences_and_counts() {
    let old = rows(400, 7, 1);
    let mut new = old[10..].to_vec();
    new[0].record.status = 6;
    new[1].etag = bytes::Bytes::from_static(b"other");
    let settings = Settings { page_rows: 50, ..Settings::default() };
    let (a, b) = (open(write(&old, options(settings))), open(write(&new, options(settings))));
    let mut changes = Vec::new();
    let found = diff(&a, &b, &mut |change| {
        changes.push(change);
        Ok(())
    })
    .unwrap();
    let urls = &found.urls;
    assert_eq!((urls.added, urls.removed, urls.changed, urls.same), (0, 10, 2, old.len() as u64 - 12));
    assert_eq!(urls.fields, [("etag".to_owned(), 1), ("status".to_owned(), 1)].into());
    assert!(matches!(&changes[0], Change::Removed { row } if row["url"] == json::row(&old[0])["url"]));
    assert_eq!(diff(&a, &a, &mut |_| Ok(())).unwrap().urls.same, old.len() as u64);

    let counts = count(&a, 481_000).unwrap();
    let of = |status: u8| old.iter().filter(|r| r.record.status == status).count() as u64;
    assert_eq!(counts.statuses["crawled"], of(4));
    assert_eq!(counts.pending, of(0) + of(1));
    assert_eq!(counts.due, old.iter().filter(|r| (1..=481_000).contains(&r.record.next_due)).count() as u64);
    assert_eq!(counts.statuses.values().sum::<u64>(), old.len() as u64);
}

/// A row that was found lately knows less than one that was fetched long ago.
#[test]
fn a_fetched_row_stays_before_one_that_never_was() {
    let fetched = UrlRecord { ts: Some(UnixMillis(5)), status: Some(200), ..UrlRecord::bare("https://a.example/") };
    let found = UrlRecord { ts: Some(UnixMillis(482_817 * 3_600_000)), ..UrlRecord::bare("https://a.example/") };
    let never = trawl_meguri::Row {
        record: trawl_meguri::schema::UrlRecord { status: 1, first_seen: 482_817, ..Default::default() },
        url: "https://a.example/".into(),
        ..Default::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let options = SeedOptions::default();
    let mut seeder = Seeder::new(options, SuffixList::builtin(), dir.path(), 4 << 20).unwrap();
    for record in [&found, &fetched, &found] {
        seeder.push(record).unwrap();
        seeder.push_row("https://a.example/", &never, None).unwrap();
    }
    let url_extensions = SeedOptions::extensions();
    let mut writer = Writer::new(WriterOptions { url_extensions, ..WriterOptions::default() }).unwrap();
    seeder.finish(&mut writer).unwrap();
    let mut out = Vec::new();
    writer.finish(&mut out).unwrap();
    let rows = read_all(&open(out));
    assert_eq!((rows.len(), rows[0].record.http_status, rows[0].record.status), (1, 200, 4));
}

/// A page whose fetches failed became one that was crawled, by the capture of a failure: it was never tried again.
#[test]
fn a_row_that_waits_for_another_attempt_keeps_its_state() {
    const HOUR: i64 = 3_600_000;
    let waits = trawl_meguri::Row {
        record: trawl_meguri::schema::UrlRecord {
            status: 1,
            first_seen: 482_000,
            next_due: 482_824,
            retry_count: 2,
            ..Default::default()
        },
        url: "https://a.example/".into(),
        ..Default::default()
    };
    let capture = |hour: i64, status| UrlRecord {
        ts: Some(UnixMillis(hour * HOUR)),
        status: Some(status),
        ..UrlRecord::bare("https://a.example/")
    };
    // Captures of failures come before the due time; one behind it is of a fetch that the state does not know.
    let (failed, later) =
        (vec![capture(482_700, 503), capture(482_800, 503)], vec![capture(482_800, 503), capture(482_900, 200)]);
    for (captures, expected) in [(failed, (1, 482_824, 2)), (later, (4, 0, 0))] {
        for at in 0..=captures.len() {
            let dir = tempfile::tempdir().unwrap();
            let mut seeder = Seeder::new(SeedOptions::default(), SuffixList::builtin(), dir.path(), 4 << 20).unwrap();
            for n in 0..=captures.len() {
                if n == at {
                    seeder.push_row("https://a.example/", &waits, None).unwrap();
                }
                if let Some(capture) = captures.get(n) {
                    seeder.push(capture).unwrap();
                }
            }
            let url_extensions = SeedOptions::extensions();
            let mut writer = Writer::new(WriterOptions { url_extensions, ..WriterOptions::default() }).unwrap();
            seeder.finish(&mut writer).unwrap();
            let mut out = Vec::new();
            writer.finish(&mut out).unwrap();
            let record = read_all(&open(out)).remove(0).record;
            assert_eq!((record.status, record.next_due, record.retry_count), expected, "state at {at}");
        }
    }
}

/// A capture that came between made the state that took it over the newer one, with its due time.
#[test]
fn of_two_states_the_later_one_stays_whatever_comes_between() {
    let state = |crawled, due| trawl_meguri::Row {
        record: trawl_meguri::schema::UrlRecord {
            status: 4,
            first_seen: crawled,
            last_crawled: crawled,
            next_due: due,
            ..Default::default()
        },
        url: "https://a.example/".into(),
        ..Default::default()
    };
    let ts = Some(UnixMillis(482_900 * 3_600_000));
    let capture = UrlRecord { ts, status: Some(301), ..UrlRecord::bare("https://a.example/") };
    let (older, later) = (state(482_000, 483_000), state(482_800, 485_000));
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let dir = tempfile::tempdir().unwrap();
        let mut seeder = Seeder::new(SeedOptions::default(), SuffixList::builtin(), dir.path(), 4 << 20).unwrap();
        for source in order {
            match source {
                0 => seeder.push_row("https://a.example/", &older, None).unwrap(),
                1 => seeder.push_row("https://a.example/", &later, None).unwrap(),
                _ => seeder.push(&capture).unwrap(),
            }
        }
        let url_extensions = SeedOptions::extensions();
        let mut writer = Writer::new(WriterOptions { url_extensions, ..WriterOptions::default() }).unwrap();
        seeder.finish(&mut writer).unwrap();
        let mut out = Vec::new();
        writer.finish(&mut out).unwrap();
        let record = read_all(&open(out)).remove(0).record;
        let found = (record.next_due, record.last_crawled, record.http_status);
        assert_eq!(found, (485_000, 482_900, 301), "{order:?}");
    }
}

/// Of two captures in one hour, the one that came last counted beside a state, though it was the older one.
#[test]
fn of_two_captures_in_an_hour_the_later_one_tells_the_status() {
    let state = trawl_meguri::Row {
        record: trawl_meguri::schema::UrlRecord {
            status: 4,
            first_seen: 482_000,
            last_crawled: 482_000,
            next_due: 483_000,
            ..Default::default()
        },
        url: "https://a.example/".into(),
        ..Default::default()
    };
    let capture = |minute: i64, status| UrlRecord {
        ts: Some(UnixMillis(482_000 * 3_600_000 + minute * 60_000)),
        status: Some(status),
        ..UrlRecord::bare("https://a.example/")
    };
    let (older, later) = (capture(1, 404), capture(30, 200));
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let dir = tempfile::tempdir().unwrap();
        let mut seeder = Seeder::new(SeedOptions::default(), SuffixList::builtin(), dir.path(), 4 << 20).unwrap();
        for source in order {
            match source {
                0 => seeder.push_row("https://a.example/", &state, None).unwrap(),
                1 => seeder.push(&older).unwrap(),
                _ => seeder.push(&later).unwrap(),
            }
        }
        let url_extensions = SeedOptions::extensions();
        let mut writer = Writer::new(WriterOptions { url_extensions, ..WriterOptions::default() }).unwrap();
        seeder.finish(&mut writer).unwrap();
        let mut out = Vec::new();
        writer.finish(&mut out).unwrap();
        let record = read_all(&open(out)).remove(0).record;
        assert_eq!((record.status, record.next_due, record.http_status), (4, 483_000, 200), "{order:?}");
    }
}

/// A frontier has rows beside the page of their URL: a robots.txt has a key of its own.
#[test]
fn a_row_keeps_its_key_where_keys_are_made_alike() {
    let mut robots = rows(1, 1, 1).remove(0);
    let url = "https://www.a.example/robots.txt";
    (robots.url, robots.record.host_key) = (url.into(), host_key("www.a.example"));
    robots.record.path_key = xxhash_rust::xxh3::xxh3_64(b"robots https://www.a.example");
    let options_of = |options: SeedOptions| {
        let identity = Identity { metadata: options.metadata(), ..Identity::default() };
        WriterOptions { identity, url_extensions: extensions(), ..WriterOptions::default() }
    };
    let alike = SeedOptions::default();
    let grouped = SeedOptions { group: HostGroup::Registrable, ..alike };
    let file = open(write(std::slice::from_ref(&robots), options_of(alike)));
    assert!(file.key_fault(0, robots.key(), &robots.url).is_none());
    for (options, kept) in [(alike, true), (grouped, false)] {
        let dir = tempfile::tempdir().unwrap();
        let mut seeder = Seeder::new(options, SuffixList::builtin(), dir.path(), 4 << 20).unwrap();
        seeder.push_row(url, &robots, Some(&file)).unwrap();
        let mut writer = Writer::new(options_of(options)).unwrap();
        seeder.finish(&mut writer).unwrap();
        let mut out = Vec::new();
        writer.finish(&mut out).unwrap();
        assert_eq!(read_all(&open(out))[0].key() == robots.key(), kept);
    }
}

/// What has no column is in `meta_json`.
#[test]
fn media_type_digest_and_length_stay() {
    let digest = trawl_model::Digest::parse("md5:d41d8cd98f00b204e9800998ecf8427e").unwrap();
    let record = UrlRecord {
        content_type: Some("text/html".into()),
        digest: Some(digest),
        body_length: Some(7),
        extras: Some("{\"x\":1}".into()),
        ..UrlRecord::bare("https://a.example/")
    };
    let (file, _) = seeded(&[record], SeedOptions::default());
    let row = json::row(&read_all(&file)[0]);
    let meta: serde_json::Value = serde_json::from_str(row["meta_json"].as_str().unwrap()).unwrap();
    let expected = serde_json::json!({
        "content_type": "text/html", "digest": "md5:d41d8cd98f00b204e9800998ecf8427e", "body_length": 7, "x": 1
    });
    assert_eq!(meta, expected);
}

#[test]
fn differences_of_hosts_are_told() {
    let rows = rows(300, 9, 3);
    let mut hosts = hosts_of(&rows);
    let file = |hosts: &[trawl_meguri::HostRow]| {
        let mut writer = Writer::new(options(Settings::default())).unwrap();
        hosts.iter().for_each(|host| writer.push_host(host).unwrap());
        rows.iter().for_each(|row| writer.push(row.into()).unwrap());
        let mut out = Vec::new();
        writer.finish(&mut out).unwrap();
        open(out)
    };
    let old = file(&hosts);
    hosts.remove(0);
    hosts[1].record.crawl_delay += 1;
    hosts[2].robots = "\u{1}Disallow: /p".into();
    let mut changes = Vec::new();
    let found = diff(&old, &file(&hosts), &mut |change| {
        changes.push(change);
        Ok(())
    })
    .unwrap();
    assert!(!found.is_empty());
    let same = hosts.len() as u64 - 2;
    assert_eq!((found.urls.changed, found.hosts.removed, found.hosts.changed, found.hosts.same), (0, 1, 2, same));
    assert_eq!(found.hosts.fields.keys().collect::<Vec<_>>(), ["crawl_delay", "robots"]);
    assert!(matches!(&changes[0], Change::HostRemoved { .. }), "{changes:?}");
}

/// Checksums are right, order and filter too: only the URL tells that two rows have each other's.
#[test]
fn rows_with_the_url_of_another_key_are_told() {
    let urls = ["https://a.example/1", "https://a.example/2?utm_source=x", "https://b.example/3"];
    for policy in [KeyPolicy::Trawl, KeyPolicy::Exact, KeyPolicy::Reference, KeyPolicy::Legacy] {
        let options = SeedOptions { policy, group: policy.default_group(), ..SeedOptions::default() };
        let (file, _) = seeded(&urls.map(UrlRecord::bare), options);
        let mut partition = Partition::read(&file).unwrap();
        let of_a = |r: &trawl_meguri::schema::UrlRecord| r.host_key == host_key("a.example");
        let first = partition.urls.iter().position(of_a).unwrap();
        let told = |partition: &Partition| {
            let bytes = partition.encode(&file.settings().unwrap()).unwrap();
            let (mut findings, mut read) = (Vec::new(), (0, Vec::new()));
            let src = std::sync::Arc::new(bytes::Bytes::from(bytes.clone()));
            let on = &mut |f: trawl_meguri::verify::Finding| findings.push((f.severity, f.detail));
            verify(src, ReadSettings::default(), on, &mut |_| {}).unwrap();
            let source = MeguriSource::new(open(bytes), "f.meguri").unwrap();
            for split in source.splits(u64::MAX).unwrap() {
                source
                    .read(split, &mut |_, item| {
                        match item {
                            Ok(_) => read.0 += 1,
                            Err(error) => read.1.push(error.to_string()),
                        }
                        Ok(())
                    })
                    .unwrap();
            }
            (findings, read)
        };
        assert_eq!(told(&partition), (vec![], (3, vec![])), "{policy:?}");
        let (one, two) = (partition.urls[first].url_ref, partition.urls[first + 1].url_ref);
        (partition.urls[first].url_ref, partition.urls[first + 1].url_ref) = (two, one);
        let (findings, (sound, errors)) = told(&partition);
        assert_eq!(findings.len(), 1, "{policy:?}: {findings:?}");
        assert_eq!(findings[0].0, Severity::Fault);
        assert!(findings[0].1.starts_with("2 rows have a key that is not the one of their URL; the first is row"));
        assert_eq!((sound, errors.len()), (1, 2), "{policy:?}: {errors:?}");
        assert!(errors[0].contains("expected a row with the key of its URL, found row"), "{errors:?}");
        // A file that does not say how its keys are made is not judged, but verify mentions it.
        partition.metadata.clear();
        let (findings, (sound, _)) = told(&partition);
        assert_eq!((findings[0].0, sound), (Severity::Warning, 3), "{policy:?}: {findings:?}");
    }
}
