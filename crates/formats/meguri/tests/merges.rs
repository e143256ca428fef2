//! Merge, split and extract against a model.

mod common;

use common::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use trawl_meguri::diff::diff;
use trawl_meguri::merge::{complement, extensions_of, extract, split};
use trawl_meguri::schema::Table;
use trawl_meguri::settings::Settings;
use trawl_meguri::verify::{Severity, verify};
use trawl_meguri::{
    Codec, HostCounts, HostRow, Identity, Keep, MeguriFile, Merged, Partition, ReadSettings, Row, Writer,
    WriterOptions, merge,
};
use trawl_url::key::UrlKey;

fn settings() -> Settings {
    Settings { page_rows: 64, frame_bytes: 2048, ..Settings::default() }
}

fn writer_for(inputs: &[MeguriFile]) -> Writer {
    Writer::new(WriterOptions {
        settings: settings(),
        url_extensions: extensions_of(inputs, Table::Urls),
        host_extensions: extensions_of(inputs, Table::Hosts),
        ..WriterOptions::default()
    })
    .unwrap()
}

fn finish(writer: Writer) -> MeguriFile {
    let mut out = Vec::new();
    writer.finish(&mut out).unwrap();
    open(out)
}

/// Changes some rows, so that it shows which file a row came from.
fn touch(rows: &[Row], every: usize, status: u8) -> Vec<Row> {
    let mut touched: Vec<Row> = rows.iter().step_by(every).cloned().collect();
    for row in &mut touched {
        row.record.status = status;
        row.etag = bytes::Bytes::from(format!("\"{status}\""));
    }
    touched
}

#[test]
fn the_newest_row_of_a_key_wins() {
    let base = rows(2000, 25, 1);
    let run1 = touch(&base, 3, 4);
    let mut run2 = touch(&base, 5, 6);
    run2.extend(rows(300, 25, 99));
    run2.sort_by_key(|r| r.key());
    let files: Vec<_> = [&base, &run1, &run2].map(|rows| open(write(rows, options(settings())))).into();
    let mut model: BTreeMap<UrlKey, Row> = BTreeMap::new();
    for row in base.iter().chain(&run1).chain(&run2) {
        model.insert(row.key(), plain(row));
    }
    let mut writer = writer_for(&files);
    let total = (base.len() + run1.len() + run2.len()) as u64;
    let merged = merge(&files, &Keep::default(), &mut writer, &mut |_| {}).unwrap();
    let superseded = total - model.len() as u64;
    let hosts_out = hosts_of(&model.values().cloned().collect::<Vec<_>>()).len() as u64;
    let hosts_in: u64 = [&base, &run1, &run2].iter().map(|rows| hosts_of(rows).len() as u64).sum();
    assert_eq!(
        merged,
        Merged {
            rows_in: total,
            rows_out: model.len() as u64,
            superseded,
            hosts_out,
            hosts_superseded: hosts_in - hosts_out,
            ..Merged::default()
        }
    );
    let file = finish(writer);
    assert!(read_all(&file).iter().map(plain).eq(model.values().cloned()));
    let filter = file.filter().unwrap().unwrap();
    assert!(model.keys().all(|key| filter.may_contain(*key)), "filters are rebuilt");
    // The same as writing the model at once: nothing of the inputs' layout is left.
    let direct = write(&model.values().cloned().collect::<Vec<_>>(), options(settings()));
    let hosts: Vec<HostRow> = read_hosts(&file).iter().map(plain_host).collect();
    assert_eq!(hosts, read_hosts(&open(direct)).iter().map(plain_host).collect::<Vec<_>>());

    let mut writer = writer_for(&files);
    let range = Some((base[100].record.host_key, base[1500].record.host_key));
    let keep = Keep { drop_gone: true, range, ..Keep::default() };
    let merged = merge(&files, &keep, &mut writer, &mut |_| {}).unwrap();
    let (lo, hi) = keep.range.unwrap();
    let inside = |key: &UrlKey| (lo..=hi).contains(&key.host);
    let expected: Vec<Row> = model.values().filter(|r| inside(&r.key()) && r.record.status != 6).cloned().collect();
    assert!(read_all(&finish(writer)).iter().map(plain).eq(expected.iter().cloned()));
    assert_eq!(
        merged.rows_in,
        merged.rows_out + merged.superseded + merged.gone + merged.outside,
        "every row is accounted for"
    );
    assert!(merged.gone > 0 && merged.outside > 0);
}

#[test]
fn files_of_the_reference_merge_too() {
    let mut partition = golden();
    partition.hosts.iter_mut().for_each(|h| h.robots_ref = 0);
    partition.urls.iter_mut().for_each(|r| r.redirect_ref = if r.depth == 3 { 1 << 40 } else { 0 });
    for codec in [Codec::None, Codec::Zstd] {
        let file = open(partition.encode(&Settings::reference(codec)).unwrap());
        let files = [file.clone(), file];
        let mut writer = writer_for(&files);
        let merged = merge(&files, &Keep::default(), &mut writer, &mut |_| {}).unwrap();
        assert_eq!((merged.rows_in, merged.rows_out, merged.superseded), (12, 6, 6));
        assert_eq!(merged.dangling, 1, "a reference to nowhere is counted");
        let rows = read_all(&finish(writer));
        assert_eq!(rows.iter().map(|r| r.url.clone()).filter(|u| &u[..] == b"golang.org/doc").count(), 1);
        assert!(rows.iter().any(|r| &r.etag[..] == b"etag-/learn"));
    }
}

#[test]
fn keys_of_different_policies_do_not_merge() {
    let of = |policy: &str| {
        let metadata = [(b"key_policy".to_vec(), policy.as_bytes().to_vec())].into();
        let identity = Identity { metadata, ..Identity::default() };
        open(write(&rows(10, 2, 1), WriterOptions { identity, ..options(settings()) }))
    };
    let files = [of("trawl"), of("exact")];
    let mut writer = writer_for(&files);
    let error = merge(&files, &Keep::default(), &mut writer, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("of policy trawl") && error.contains("of policy exact"), "{error}");
}

/// A file that says how its keys were made.
fn with_policy(rows: &[Row], policy: &str, group: &str) -> MeguriFile {
    let text = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    let metadata = [text("key_policy", policy), text("host_group", group)].into();
    let identity = Identity { metadata, ..Identity::default() };
    open(write(rows, WriterOptions { identity, ..options(settings()) }))
}

/// The host half of a key is another one: the rows of a page would stand beside each other.
#[test]
fn keys_of_different_host_groups_do_not_merge() {
    let files = ["full_host", "registrable"].map(|group| with_policy(&rows(10, 2, 1), "trawl", group));
    let error = merge(&files, &Keep::default(), &mut writer_for(&files), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("by host name") && error.contains("by registrable domain"), "{error}");
}

#[test]
fn a_row_with_the_key_of_another_url_is_left_out() {
    let base = rows(200, 5, 1);
    let mut newer = touch(&base, 2, 6);
    for row in newer.iter_mut().step_by(10) {
        row.url = bytes::Bytes::from_static(b"https://www.elsewhere.example/");
    }
    let wrong = newer.iter().step_by(10).count() as u64;
    let files = [&base, &newer].map(|rows| with_policy(rows, "trawl", "full_host"));
    for drop_gone in [false, true] {
        let keep = Keep { drop_gone, sound_keys: true, ..Keep::default() };
        let mut writer = writer_for(&files);
        let merged = merge(&files, &keep, &mut writer, &mut |_| {}).unwrap();
        assert_eq!(merged.wrong_keys, wrong);
        assert_eq!(merged.rows_in, merged.rows_out + merged.superseded + merged.gone + merged.wrong_keys);
        let rows = read_all(&finish(writer));
        assert!(rows.iter().all(|row| !row.url.starts_with(b"https://www.elsewhere")));
        let older = |row: &Row| base.iter().any(|b| b.key() == row.key() && plain(b) == plain(row));
        let replaced =
            newer.iter().step_by(10).filter(|row| base.iter().any(|b| b.key() == row.key() && b.record.status != 6));
        let replaced: Vec<_> = replaced.map(|row| row.key()).collect();
        assert!(!replaced.is_empty());
        let kept = rows.iter().filter(|row| replaced.contains(&row.key()));
        assert_eq!(kept.filter(|row| older(row)).count(), replaced.len(), "the older row takes its place");
    }
    let (mut low, mut high) = (writer_for(&files[1..]), writer_for(&files[1..]));
    let (below, above) = split(&files[1], 1 << 63, &mut low, &mut high).unwrap();
    assert_eq!(below.wrong_keys + above.wrong_keys, wrong);
    assert_eq!(below.rows_out + above.rows_out + wrong, newer.len() as u64);
    let found = diff(&files[1], &files[1], &mut |_| Ok(())).unwrap();
    assert_eq!((found.wrong_keys, found.urls.changed), (2 * wrong, 0));
    assert!(!found.is_empty());
}

#[test]
fn split_and_extract_share_the_rows_out() {
    let rows = rows(3000, 40, 3);
    let file = open(write(&rows, options(settings())));
    let keys: Vec<u64> = hosts_of(&rows).iter().map(|h| h.record.host_key).collect();
    for at in [0, keys[0], keys[keys.len() / 2], keys[keys.len() / 2] + 1, u64::MAX] {
        let (mut low, mut high) = (writer_for(std::slice::from_ref(&file)), writer_for(std::slice::from_ref(&file)));
        let (below, above) = split(&file, at, &mut low, &mut high).unwrap();
        assert_eq!(below.rows_out + above.rows_out, rows.len() as u64);
        let (low, high) = (finish(low), finish(high));
        let (mut found, rest) = (read_all(&low), read_all(&high));
        assert!(found.iter().all(|r| r.record.host_key < at) && rest.iter().all(|r| r.record.host_key >= at));
        found.extend(rest);
        assert!(found.iter().map(plain).eq(rows.iter().map(plain)));
        assert_eq!(read_hosts(&low).len() + read_hosts(&high).len(), keys.len());
        // And together again.
        let parts = [low, high];
        let mut writer = writer_for(&parts);
        merge(&parts, &Keep::default(), &mut writer, &mut |_| {}).unwrap();
        let mut bytes = Vec::new();
        writer.finish(&mut bytes).unwrap();
        assert!(Partition::decode(bytes).unwrap() == Partition::decode(write(&rows, options(settings()))).unwrap());
    }
    let ranges = [(keys[3], keys[5]), (keys[10], keys[10])];
    let (mut inside, mut outside) = (writer_for(std::slice::from_ref(&file)), writer_for(std::slice::from_ref(&file)));
    let inner = extract(&file, &ranges, &mut inside).unwrap();
    let outer = extract(&file, &complement(&ranges), &mut outside).unwrap();
    assert_eq!(inner.rows_out + outer.rows_out, rows.len() as u64);
    assert_eq!((inner.hosts_out, outer.hosts_out), (4, keys.len() as u64 - 4));
}

#[test]
fn complements() {
    assert_eq!(complement(&[]), [(0, u64::MAX)]);
    assert_eq!(complement(&[(0, u64::MAX)]), []);
    assert_eq!(complement(&[(5, 9), (10, 10), (20, u64::MAX)]), [(0, 4), (11, 19)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_merge_equals_the_model(seeds in prop::collection::vec((0u64..4, 0u64..300), 1..6)) {
        let inputs: Vec<Vec<Row>> = seeds.iter().enumerate().map(|(i, (seed, n))| touch(&rows(*n, 9, *seed), 1, i as u8)).collect();
        let files: Vec<_> = inputs.iter().map(|rows| open(write(rows, options(settings())))).collect();
        let mut model: BTreeMap<UrlKey, Row> = BTreeMap::new();
        inputs.iter().flatten().for_each(|row| { model.insert(row.key(), plain(row)); });
        let mut writer = writer_for(&files);
        merge(&files, &Keep::default(), &mut writer, &mut |_| {}).unwrap();
        prop_assert!(read_all(&finish(writer)).iter().map(plain).eq(model.into_values()));
    }
}

fn counts_of(file: &MeguriFile) -> BTreeMap<u64, u32> {
    read_hosts(file).iter().map(|h| (h.record.host_key, h.record.url_count)).collect()
}

fn findings_of(bytes: Vec<u8>) -> Vec<(Severity, String)> {
    let mut found = Vec::new();
    let src = std::sync::Arc::new(bytes::Bytes::from(bytes));
    verify(src, ReadSettings::default(), &mut |f| found.push((f.severity, f.detail)), &mut |_| {}).unwrap();
    found
}

#[test]
fn hosts_count_the_rows_that_are_there() {
    // Hosts that state nonsense: what each input says is of no use for the sum.
    let lying = |rows: &[Row], options: WriterOptions| {
        let mut writer = Writer::new(options).unwrap();
        rows.iter().for_each(|row| writer.push(row.into()).unwrap());
        for mut host in hosts_of(rows) {
            host.record.url_count = 12_345;
            writer.push_host(&host).unwrap();
        }
        let mut out = Vec::new();
        writer.finish(&mut out).unwrap();
        out
    };
    let base = rows(2000, 25, 1);
    let mut run = touch(&base, 3, 6);
    run.extend(rows(300, 25, 99));
    run.sort_by_key(|r| r.key());
    let as_given = WriterOptions { host_counts: HostCounts::AsGiven, ..options(settings()) };
    let files = [open(lying(&base, options(settings()))), open(lying(&run, as_given.clone()))];
    assert!(counts_of(&files[1]).values().all(|count| *count == 12_345), "a run counts what is elsewhere, too");
    assert_eq!(findings_of(lying(&run, as_given)), []);
    for keep in [Keep::default(), Keep { drop_gone: true, ..Keep::default() }] {
        let mut writer = writer_for(&files);
        merge(&files, &keep, &mut writer, &mut |_| {}).unwrap();
        let mut bytes = Vec::new();
        writer.finish(&mut bytes).unwrap();
        assert_eq!(findings_of(bytes.clone()), []);
        let merged = open(bytes);
        let mut expected: BTreeMap<u64, u32> = read_hosts(&merged).iter().map(|h| (h.record.host_key, 0)).collect();
        read_all(&merged).iter().for_each(|row| *expected.get_mut(&row.record.host_key).unwrap() += 1);
        assert_eq!(counts_of(&merged), expected);
        assert!(expected.values().any(|count| *count > 1));
    }
    // A file of this writer's layout that was made by hand, with a wrong number.
    let mut partition = Partition::decode(lying(&base, options(settings()))).unwrap();
    partition.hosts[3].url_count += 1;
    let found = findings_of(partition.encode(&settings()).unwrap());
    assert!(matches!(&found[..], [(Severity::Fault, detail)] if detail.starts_with("1 hosts state")), "{found:?}");
    // The reference counts as it likes.
    let found = findings_of(golden().encode(&Settings::reference(Codec::None)).unwrap());
    assert!(found.iter().all(|(severity, _)| *severity == Severity::Warning), "{found:?}");
}

/// Hosts out of order would vanish from a merge.
#[test]
fn hosts_out_of_order_are_damage() {
    let file = open(include_bytes!("data/hosts-unsorted.meguri").to_vec());
    let error = merge(std::slice::from_ref(&file), &Keep::default(), &mut writer_for(&[]), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("hosts in the order of their keys"), "{error}");
    assert!(error.offset().is_some());
}

/// The other file's rows would count as added and removed.
#[test]
fn rows_out_of_order_are_damage() {
    let file = open(include_bytes!("data/rows-unsorted.meguri").to_vec());
    let merged = merge(std::slice::from_ref(&file), &Keep::default(), &mut writer_for(&[]), &mut |_| {}).unwrap_err();
    let compared = diff(&file, &file, &mut |_| Ok(())).unwrap_err();
    for error in [merged, compared] {
        assert!(error.to_string().contains("rows in the order of their keys"), "{error}");
        assert!(error.offset().is_some());
    }
}
