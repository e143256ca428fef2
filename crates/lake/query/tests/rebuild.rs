//! The index is derived: built anew from Parquet and commit files it answers as before.

mod common;

use common::{Dice, Fixture, hosts, records};
use std::collections::BTreeMap;
use trawl_index::{Compaction, compact, rebuild};
use trawl_ingest::{Files, IngestSettings, Mode, Rewrite, rewrite};
use trawl_model::UrlRecord;
use trawl_query::{DomainAnswer, Filter, Lake, Options, Page, Principal, UrlItem};
use trawl_rows::verify_dataset;
use trawl_store::DatasetInfo;
use trawl_url::SuffixList;

/// Everything there is to ask: each domain's answer, and all rows of each of its datasets in the order of pages.
type Answers = BTreeMap<String, (DomainAnswer, Vec<Vec<UrlItem>>)>;

fn answers(fixture: &Fixture) -> Answers {
    let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    let who = Principal::anyone();
    let mut all = Answers::new();
    for summary in pinned.domains("", None, 10_000, &who).unwrap() {
        let mut answer = pinned.domain(&summary.domain, &who).unwrap();
        answer.version.clear();
        let rows = answer.datasets.iter().map(|dataset| {
            let (page, any) = (Page::at(0, 10_000), Filter::default());
            let urls = pinned.urls(&summary.domain, dataset.dataset_id, &page, &any, &who).unwrap();
            assert_eq!(urls.total_est, dataset.url_count_est);
            assert_eq!(urls.items.len() as u64, dataset.url_count_est);
            urls.items
        });
        let rows = rows.collect();
        all.insert(summary.domain, (answer, rows));
    }
    all
}

/// Without what only a full compaction knows.
fn rough(mut answers: Answers) -> Answers {
    for dataset in answers.values_mut().flat_map(|(answer, _)| &mut answer.datasets) {
        dataset.distinct_urls = 0;
        dataset.distinct_exact = false;
        dataset.top_paths.clear();
    }
    answers
}

fn compact_fully(fixture: &Fixture) {
    let options = fixture.build_options();
    compact(&fixture.lake, &|| fixture.now(), &fixture.writer(), Compaction::Full, &options, &|_| ()).unwrap();
}

/// Throws the whole index away, then builds it anew; answers are the same before and after.
fn check(fixture: &Fixture, what: &str) {
    let before = answers(fixture);
    assert_eq!(
        before.keys().cloned().collect::<Vec<_>>(),
        fixture.domains().into_iter().collect::<Vec<_>>(),
        "{what}: the domains of a brute-force recomputation"
    );
    for segment in &fixture.lake.current().unwrap().current().unwrap().segments {
        for listed in fixture.store.list(&format!("index/{}", segment.id)).unwrap() {
            fixture.store.delete(&listed.path).unwrap();
        }
    }
    assert!(Lake::open(fixture.store.clone(), Options::default()).is_err(), "{what}: nothing is left");
    let options = fixture.build_options();
    rebuild(&fixture.lake, None, &|| fixture.now(), &fixture.writer(), &options, &|_| ()).unwrap();
    let after = answers(fixture);
    assert_eq!(rough(after), rough(before.clone()), "{what}");
    // Distinct counts of several days of a dataset are bounds, in either index; compacted they are exact.
    compact_fully(fixture);
    let exact = answers(fixture);
    for (domain, (answer, _)) in &exact {
        let found: Vec<_> = answer.datasets.iter().map(|d| (d.dataset_id, d.url_count_est, d.distinct_urls)).collect();
        assert_eq!(found, fixture.expected_counts(domain), "{what}: {domain}");
        assert!(answer.datasets.iter().all(|d| d.distinct_exact), "{what}: {domain}");
    }
    assert_eq!(rough(exact), rough(before), "{what}: compacted");
}

#[test]
fn a_rebuilt_index_answers_as_before() {
    let mut fixture = Fixture::new();
    let mut dice = Dice(42);
    let hosts = hosts(&mut dice, 60);
    let ids: Vec<u32> = ["a", "b", "c"].map(|n| fixture.register(DatasetInfo::named(n))).into();
    for id in &ids {
        fixture.ingest(*id, records(&mut dice, &hosts, 200, *id % 2 == 0), |s| s.prefix_digits = Some(1));
        fixture.publish();
    }
    check(&fixture, "one commit each");
    for day in 0..3 {
        let more = records(&mut dice, &hosts[day..], 100, true);
        fixture.ingest(ids[day % 2], more, |_| ());
        fixture.publish();
    }
    check(&fixture, "appended days");
    fixture.ingest(ids[1], records(&mut dice, &hosts[..20], 150, true), |s| s.mode = Mode::Replace);
    fixture.publish();
    check(&fixture, "a replaced dataset");
    purge(&mut fixture, ids[0], "news");
    fixture.publish();
    check(&fixture, "purged rows");
    fixture.lake.drop_dataset(fixture.now(), &fixture.writer(), ids[2]).unwrap();
    fixture.rows.retain(|(dataset, _), _| *dataset != ids[2]);
    fixture.publish();
    check(&fixture, "a dropped dataset");
    for dataset in fixture.lake.current().unwrap().datasets.iter().filter(|d| !d.dropped) {
        let commit = fixture.lake.dataset_newest(dataset.id).unwrap().unwrap();
        let mut faults = Vec::new();
        verify_dataset(&*fixture.store, &commit, SuffixList::builtin(), &mut |f| faults.push(f.to_string())).unwrap();
        assert_eq!(faults, [""; 0]);
    }
}

/// Removes every row with `text` in its URL, from the files and from what is expected.
fn purge(fixture: &mut Fixture, dataset: u32, text: &str) {
    let keep = |record: &UrlRecord| !record.url.contains(text);
    let what = Rewrite { keep: &keep, files: Files::Losing(&|_| true), suffix_list: None };
    let mut settings = IngestSettings::new(fixture.writer(), fixture.dir.path().join("tmp"));
    settings.memory_bytes = 32 << 20;
    rewrite(&fixture.lake, dataset, &what, &settings, &|| fixture.now(), &|_| ()).unwrap();
    for ((id, _), rows) in &mut fixture.rows {
        if *id == dataset {
            rows.retain(|row| keep(&row.record));
        }
    }
    fixture.rows.retain(|_, rows| !rows.is_empty());
}
