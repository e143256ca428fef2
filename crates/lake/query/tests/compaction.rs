//! Merging segments changes no answer but makes distinct counts exact.

mod common;

use common::{Dice, Fixture, hosts, records};
use trawl_index::{Compacted, Compaction, MAX_SEGMENTS, compact, verify_segment};
use trawl_ingest::Mode;
use trawl_query::{Filter, Lake, Options, Page, Pinned, Principal, UrlItem};
use trawl_store::DatasetInfo;

fn run(fixture: &Fixture, how: Compaction) -> Option<Compacted> {
    let options = fixture.build_options();
    compact(&fixture.lake, &|| fixture.now(), &fixture.writer(), how, &options, &|_| ()).unwrap()
}

fn all_items(pinned: &Pinned, domain: &str, dataset: u32) -> Vec<UrlItem> {
    pinned.urls(domain, dataset, &Page::at(0, 10_000), &Filter::default(), &Principal::anyone()).unwrap().items
}

fn verify(fixture: &Fixture) {
    for segment in &fixture.lake.current().unwrap().current().unwrap().segments {
        let mut faults = Vec::new();
        verify_segment(&fixture.store, segment, &mut |e| faults.push(e.to_string())).unwrap();
        assert_eq!(faults, [""; 0]);
    }
}

/// Twelve publishes of three datasets that overlap in domains and in URLs, one of them replaced on the way.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let mut dice = Dice(7);
    let hosts = hosts(&mut dice, 60);
    let ids: Vec<u32> = ["a", "b", "c"].map(|n| fixture.register(DatasetInfo::named(n))).into();
    for round in 0..12 {
        let dataset = ids[round % 3];
        let more = records(&mut dice, &hosts[round..round + 40], 150, round % 2 == 0);
        fixture.ingest(dataset, more, |s| {
            s.page_rows = 32;
            if round == 8 {
                s.mode = Mode::Replace;
            }
        });
        fixture.publish();
    }
    fixture
}

#[test]
fn full_compaction_is_one_segment_with_the_seeds_keys_and_exact_counts() {
    let fixture = fixture();
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let (before, who) = (lake.pin().unwrap(), Principal::anyone());
    let compacted = run(&fixture, Compaction::Single).unwrap();
    assert!(compacted.merged.len() > 1);
    let after = lake.pin().unwrap();
    assert_eq!(after.version(), compacted.version);
    verify(&fixture);

    let version = fixture.lake.current().unwrap().current().unwrap().clone();
    let keys = version.files.unwrap();
    assert_eq!(keys.domains_txt, format!("index/{}/domains.txt.zst", version.segments[0].id));
    assert!(keys.postings_idx.ends_with("/postings/{shard}/postings.idx.zst"));

    for domain in fixture.domains() {
        let (old, new) = (before.domain(&domain, &who).unwrap(), after.domain(&domain, &who).unwrap());
        let found: Vec<_> = new.datasets.iter().map(|d| (d.dataset_id, d.url_count_est, d.distinct_urls)).collect();
        assert_eq!(found, fixture.expected_counts(&domain), "{domain}");
        for (old, new) in old.datasets.iter().zip(&new.datasets) {
            assert!(new.distinct_exact && new.distinct_urls <= old.distinct_urls);
            assert_eq!((old.first_ts, old.last_ts), (new.first_ts, new.last_ts));
            let items = all_items(&after, &domain, new.dataset_id);
            assert_eq!(items, all_items(&before, &domain, new.dataset_id), "the order of pages stays");
        }
    }
    let names = |p: &Pinned| p.domains("", None, 1000, &who).unwrap();
    assert_eq!(names(&before), names(&after));
    assert_eq!(before.stats().unwrap().rows, after.stats().unwrap().rows);
    assert_eq!(after.stats().unwrap().domains, fixture.domains().len() as u64);
    assert_eq!(run(&fixture, Compaction::Single), None, "nothing is left to do");
}

/// `manifest.json` of a fully compacted lake, cut down to the keys of the seed's example, is the example.
#[test]
fn the_manifest_of_a_compacted_lake_is_the_seeds() {
    let fixture = fixture();
    run(&fixture, Compaction::Single).unwrap();
    let text = fixture.store.get("index/manifest.json", 1 << 20).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let example = include_str!("../../store/tests/golden/seed-manifest.json");
    let mut example: serde_json::Value = serde_json::from_str(example).unwrap();
    let current = manifest["current_version"].as_str().unwrap();
    let version = manifest["versions"].as_array().unwrap().iter().find(|v| v["version"] == current).unwrap();
    let id = version["segments"][0]["id"].as_str().unwrap();
    // Only the names of version and directory are the lake's own.
    example["current_version"] = current.into();
    let wanted = example["versions"][0].as_object_mut().unwrap();
    wanted.insert("version".into(), current.into());
    for (key, value) in wanted.iter_mut() {
        let path = value.as_str().unwrap().replace("index/2025-10-20/", &format!("index/{id}/"));
        *value = path.clone().into();
        assert_eq!(version[key], path, "{key}");
        if key.ends_with("_txt") || key.ends_with("_mphf") || key.ends_with("_roar") || key.ends_with("_tsv") {
            assert!(fixture.store.exists(&path).unwrap(), "{path}");
        }
    }
    assert_eq!(example["versions"][0].as_object().unwrap().len(), 8, "all keys of the example were looked at");
    assert!(fixture.store.exists(&format!("index/{id}/postings/0/postings.idx.zst")).unwrap());
}

#[test]
fn tiered_compaction_keeps_the_list_short() {
    let mut fixture = fixture();
    let segments = |f: &Fixture| f.lake.current().unwrap().current().unwrap().segments.clone();
    // Twelve publishes were tidied on the way.
    assert!((2..=MAX_SEGMENTS).contains(&segments(&fixture).len()));
    assert!(segments(&fixture).iter().any(|s| s.level > 0), "some of them merged");
    assert_eq!(run(&fixture, Compaction::Tiered), None);
    verify(&fixture);
    // Publishing goes on as before.
    let mut dice = Dice(9);
    let hosts = hosts(&mut dice, 5);
    fixture.ingest(1, records(&mut dice, &hosts, 50, false), |_| ());
    fixture.publish();
    let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    for domain in fixture.domains() {
        let answer = pinned.domain(&domain, &Principal::anyone()).unwrap();
        let found: Vec<_> = answer.datasets.iter().map(|d| (d.dataset_id, d.url_count_est)).collect();
        let expected: Vec<_> = fixture.expected_counts(&domain).iter().map(|(id, rows, _)| (*id, *rows)).collect();
        assert_eq!(found, expected, "{domain}");
        for (told, (_, _, distinct)) in answer.datasets.iter().zip(fixture.expected_counts(&domain)) {
            let right =
                if told.distinct_exact { told.distinct_urls == distinct } else { told.distinct_urls >= distinct };
            assert!(right, "{domain}: {told:?}, counted {distinct}");
        }
    }
}

#[test]
fn compaction_and_publishing_at_once_lose_nothing() {
    let mut fixture = fixture();
    let mut dice = Dice(11);
    let hosts = hosts(&mut dice, 20);
    fixture.ingest(2, records(&mut dice, &hosts, 100, false), |_| ());
    let shared = &fixture;
    std::thread::scope(|scope| {
        scope.spawn(move || shared.publish());
        scope.spawn(move || run(shared, Compaction::Full));
    });
    let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    for domain in fixture.domains() {
        let answer = pinned.domain(&domain, &Principal::anyone()).unwrap();
        let rows: u64 = answer.datasets.iter().map(|d| d.url_count_est).sum();
        assert_eq!(rows, fixture.expected_counts(&domain).iter().map(|c| c.1).sum::<u64>(), "{domain}");
    }
    verify(&fixture);
}
