//! Every answer for every domain equals what a plain loop over the records says.

mod common;

use common::{Dice, Expected, Fixture, hosts, records};
use trawl_ingest::IngestSettings;
use trawl_query::{Filter, Lake, Options, Page, Pinned, Principal, UrlItem};
use trawl_store::DatasetInfo;
use trawl_url::{domain_id, url_id};

fn small_files(settings: &mut IngestSettings) {
    settings.page_rows = 16;
    settings.row_group_bytes = 4096;
    settings.file_bytes = 16 << 10;
}

/// Four datasets: a plain one, one with captures in many small files, one of two commits with prefixes, a tiny one.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let mut dice = Dice(1);
    let hosts = hosts(&mut dice, 300);
    let ids: Vec<u32> = ["plain", "captures", "grown", "tiny"].map(|n| fixture.register(DatasetInfo::named(n))).into();
    fixture.ingest(ids[0], records(&mut dice, &hosts[..200], 2000, false), |_| ());
    fixture.publish();
    fixture.ingest(ids[1], records(&mut dice, &hosts, 3000, true), small_files);
    fixture.ingest(ids[2], records(&mut dice, &hosts[..100], 1500, true), |s| s.prefix_digits = Some(1));
    fixture.publish();
    fixture.ingest(ids[2], records(&mut dice, &hosts[50..], 1500, false), |s| s.prefix_digits = Some(2));
    fixture.ingest(ids[3], records(&mut dice, &hosts[..3], 2, false), |_| ());
    fixture.publish();
    fixture
}

/// One lake for all checks: making it takes longer than asking it.
#[test]
fn answers() {
    let fixture = fixture();
    every_domain_of_every_dataset(&fixture);
    strangers_are_404(&fixture);
    a_host_in_any_spelling_is_its_domain(&fixture);
    names_by_prefix(&fixture);
    one_url_across_datasets(&fixture);
}

fn check_item(item: &UrlItem, expected: &Expected) {
    let record = &expected.record;
    assert_eq!(item.url, record.url);
    assert_eq!(item.url_id, url_id(record.url.as_bytes()));
    assert_eq!((item.ts, item.status, &item.content_type), (record.ts, record.status, &record.content_type));
    assert_eq!(item.digest, record.digest.as_ref().map(trawl_model::Digest::column));
    assert_eq!(item.body_length, record.body_length);
    let place = record.place.as_ref().map(|p| (p.file.to_string(), p.offset, p.length));
    let found = item.warc_file.clone().zip(item.warc_offset).zip(item.warc_length).map(|((f, o), l)| (f, o, l));
    assert_eq!(found, place);
    assert_eq!(item.extras.as_ref().map(ToString::to_string), record.extras);
}

/// A page, which is the same as JSON, byte for byte.
fn page_of(pinned: &Pinned, domain: &str, dataset: u32, page: &Page, filter: &Filter) -> trawl_query::UrlsAnswer {
    let plain = Principal::anyone();
    for who in [plain.clone().with_credentials(true), plain.clone()] {
        let answer = pinned.urls(domain, dataset, page, filter, &who).unwrap();
        let json = pinned.urls_json(domain, dataset, page, filter, &who).unwrap();
        assert_eq!(json.rows, answer.items.len() as u64);
        assert_eq!(std::str::from_utf8(&json.text).unwrap(), serde_json::to_string(&answer).unwrap());
    }
    pinned.urls(domain, dataset, page, filter, &plain).unwrap()
}

fn all_urls(pinned: &Pinned, domain: &str, dataset: u32, limit: u32) -> Vec<UrlItem> {
    let (mut by_offset, mut by_cursor) = (Vec::new(), Vec::new());
    let mut page = Page::at(0, limit);
    loop {
        let answer = page_of(pinned, domain, dataset, &page, &Filter::default());
        assert!(answer.items.len() as u32 <= limit);
        by_offset.extend(answer.items);
        assert_eq!(answer.next_offset.is_some(), answer.next_cursor.is_some());
        let Some(next) = answer.next_offset else { break };
        assert_eq!(next, by_offset.len() as u64);
        page = Page::at(next, limit);
    }
    if by_offset.len() as u32 <= limit {
        return by_offset;
    }
    let mut page = Page::at(0, limit);
    loop {
        let answer = page_of(pinned, domain, dataset, &page, &Filter::default());
        by_cursor.extend(answer.items);
        let Some(next) = answer.next_cursor else { break };
        page = Page::from_cursor(next, limit);
    }
    assert_eq!(by_offset, by_cursor, "{domain}: cursor and offset paging differ");
    by_offset
}

fn every_domain_of_every_dataset(fixture: &Fixture) {
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let pinned = lake.pin().unwrap();
    let who = Principal::anyone();
    assert_eq!(pinned.manifest().current().unwrap().segments.len(), 3);
    let domains = fixture.domains();
    assert!(domains.len() > 200 && domains.contains("[2001:db8::1]") && domains.contains("co.uk"));
    for domain in &domains {
        let answer = pinned.domain(domain, &who).unwrap();
        assert_eq!((&answer.domain, answer.domain_id), (domain, domain_id(domain)));
        let expected = fixture.expected_counts(domain);
        assert_eq!(answer.datasets.len(), expected.len(), "{domain}");
        for (found, (dataset, rows, distinct)) in answer.datasets.iter().zip(&expected) {
            assert_eq!((found.dataset_id, found.url_count_est), (*dataset, *rows), "{domain}");
            let rows = &fixture.rows[&(*dataset, domain.clone())];
            assert!(found.distinct_urls >= *distinct, "{domain}");
            if found.distinct_exact {
                assert_eq!(found.distinct_urls, *distinct, "{domain} in {dataset}");
            } else {
                assert_eq!(found.name, "grown", "only the dataset of two commits may be inexact");
            }
            let times = || rows.iter().filter_map(|r| r.record.ts);
            assert_eq!((found.first_ts, found.last_ts), (times().min(), times().max()));
            let items = all_urls(&pinned, domain, *dataset, 25.max(rows.len() as u32 / 3));
            assert_eq!(items.len(), rows.len());
            items.iter().zip(rows).for_each(|(item, row)| check_item(item, row));
            // Filters, one that is looked up and one that is not: their answers have members of their own.
            let filter = Filter { path_prefix: Some("/a".into()), ..Filter::default() };
            page_of(&pinned, domain, *dataset, &Page::at(0, 3), &filter);
            let url = trawl_url::LakeUrl::parse(&items[0].url, trawl_url::SuffixList::builtin()).unwrap();
            let filter = Filter { host: Some(url.host().to_owned()), status: Some(200), ..Filter::default() };
            page_of(&pinned, domain, *dataset, &Page::at(0, 3), &filter);
        }
    }
    let stats = pinned.stats().unwrap();
    assert_eq!(stats.rows, fixture.rows.values().map(|r| r.len() as u64).sum::<u64>());
    assert_eq!((stats.datasets, stats.segments), (4, 3));
    for info in pinned.datasets(&who).unwrap() {
        let rows = fixture.rows.iter().filter(|((id, _), _)| *id == info.dataset_id).map(|(_, r)| r.len() as u64);
        assert_eq!(info.rows, rows.sum::<u64>(), "{}", info.name);
    }
}

fn strangers_are_404(fixture: &Fixture) {
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let pinned = lake.pin().unwrap();
    let who = Principal::anyone();
    for i in 0..20_000 {
        let stranger = format!("stranger{i}.com");
        let error = pinned.domain(&stranger, &who).unwrap_err();
        assert_eq!((error.code(), error.status()), ("unknown_domain", 404));
    }
    for name in fixture.domains() {
        // One letter more or less is another name.
        for stranger in [format!("q{name}"), name[1..].to_owned()] {
            if let Ok(answer) = pinned.domain(&stranger, &who) {
                assert!(fixture.domains().contains(&answer.domain), "{stranger} gave {}", answer.domain);
                assert_eq!(answer.domain, pinned.domain_of(&stranger).unwrap());
            }
        }
    }
    let urls = |domain: &str, dataset| pinned.urls(domain, dataset, &Page::default(), &Filter::default(), &who);
    assert_eq!(urls("nowhere.com", 1).unwrap_err().code(), "unknown_domain");
    assert_eq!(urls("example.com", 99).unwrap_err().code(), "unknown_dataset");
}

fn a_host_in_any_spelling_is_its_domain(fixture: &Fixture) {
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let pinned = lake.pin().unwrap();
    let who = Principal::anyone();
    for (asked, domain) in [
        ("www.example.com", "example.com"),
        ("EXAMPLE.COM.", "example.com"),
        ("x.y.example.co.uk", "example.co.uk"),
        ("WWW.BÜCHER.com", "xn--bcher-kva.com"),
        ("2001:db8::1", "[2001:db8::1]"),
    ] {
        assert_eq!(pinned.domain(asked, &who).unwrap(), pinned.domain(domain, &who).unwrap());
        assert_eq!(pinned.domain(asked, &who).unwrap().domain, domain);
    }
    assert_eq!(pinned.domain("http://example.com/", &who).unwrap_err().status(), 400);
}

fn names_by_prefix(fixture: &Fixture) {
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let pinned = lake.pin().unwrap();
    let who = Principal::anyone();
    let domains = fixture.domains();
    for prefix in ["", "a", "site1", "xn--", "zz", "example.c", "[2001"] {
        let expected: Vec<_> = domains.iter().filter(|d| d.starts_with(prefix)).cloned().collect();
        let mut found: Vec<String> = Vec::new();
        loop {
            let batch = pinned.domains(prefix, found.last().map(String::as_str), 37, &who).unwrap();
            for summary in &batch {
                let counts = fixture.expected_counts(&summary.domain);
                assert_eq!(summary.datasets, counts.len() as u64);
                assert_eq!(summary.rows, counts.iter().map(|c| c.1).sum::<u64>());
            }
            if batch.is_empty() {
                break;
            }
            found.extend(batch.into_iter().map(|s| s.domain));
        }
        assert_eq!(found, expected, "{prefix}");
    }
    assert_eq!(pinned.domains("EXAMPLE", None, 1, &who).unwrap()[0].domain, "example.co.uk");
    assert!(pinned.domains("", None, 0, &who).unwrap().is_empty());
}

/// Every URL, asked for in its own spelling, gives all rows that normalise to the same, from every dataset.
fn one_url_across_datasets(fixture: &Fixture) {
    let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    let psl = trawl_url::SuffixList::builtin();
    let normal = |url: &str| trawl_url::LakeUrl::parse(url, psl).unwrap().as_str().to_owned();
    let mut all: std::collections::BTreeMap<String, Vec<(u32, String)>> = Default::default();
    for ((dataset, _), rows) in &fixture.rows {
        for row in rows {
            all.entry(normal(&row.record.url)).or_default().push((*dataset, row.record.url.clone()));
        }
    }
    for (i, (url, expected)) in all.iter().enumerate() {
        if i % 25 != 0 && expected.len() < 8 {
            continue;
        }
        let asked = &expected[i % expected.len()].1;
        let answer = pinned.url(asked, 1000, &Principal::anyone()).unwrap();
        assert_eq!((&answer.normalised, answer.more), (url, false));
        let mut found: Vec<_> = answer.items.iter().map(|hit| (hit.dataset_id, hit.item.url.clone())).collect();
        let mut expected = expected.clone();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{asked}");
        let one = pinned.url(asked, 1, &Principal::anyone()).unwrap();
        assert_eq!((one.items.len(), one.more), (1, expected.len() > 1));
    }
    let none = pinned.url("http://example.com/no/such/page", 10, &Principal::anyone()).unwrap();
    assert!(none.items.is_empty());
    assert_eq!(pinned.url("mailto:x", 10, &Principal::anyone()).unwrap_err().code(), "bad_url");
}
