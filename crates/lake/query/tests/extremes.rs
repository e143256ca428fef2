//! Names that collide, names in any spelling, one domain with a million URLs, a million domains with one.

mod common;

use common::Fixture;
use trawl_index::{Compaction, compact, rebuild};
use trawl_ingest::{IngestSettings, ingest};
use trawl_model::{DoorError, Items, Place, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource};
use trawl_query::{CdxQuery, Filter, Lake, Locator, Options, Page, Pinned, Principal};
use trawl_store::DatasetInfo;
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_url::{domain_id, url_id};

/// Two domains with one xxh3_64, found by search: 2^33 names were hashed.
const TWINS: [&str; 2] = ["r2deyr3jki4ad.com", "5w2dpz6xkgqnl.com"];
/// Two URLs with one xxh3_64.
const TWIN_URLS: [&str; 2] = ["http://a.com/73z6ts7whkgyd", "http://a.com/iqj2q7432tpji"];

fn pin(fixture: &Fixture) -> std::sync::Arc<Pinned> {
    Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap()
}

fn urls(pinned: &Pinned, domain: &str, dataset: u32) -> Vec<String> {
    let answer = pinned.urls(domain, dataset, &Page::at(0, 1000), &Filter::default(), &Principal::anyone());
    answer.map(|a| a.items.into_iter().map(|i| i.url).collect()).unwrap_or_default()
}

#[test]
fn domains_with_one_id_are_two_domains() {
    assert_eq!(domain_id(TWINS[0]), domain_id(TWINS[1]), "they do collide");
    let who = Principal::anyone();
    for store_ids in [false, true] {
        let mut fixture = Fixture::new();
        let (a, b) = (fixture.register(DatasetInfo::named("a")), fixture.register(DatasetInfo::named("b")));
        let url = |twin: usize, n: u32| UrlRecord::bare(format!("http://www.{}/{n}", TWINS[twin]));
        let both = vec![url(0, 1), url(1, 1), url(1, 2), UrlRecord::bare("http://other.com/")];
        fixture.ingest(a, both, |s| (s.store_ids, s.prefix_digits) = (store_ids, Some(2)));
        fixture.ingest(b, vec![url(0, 3)], |s| s.store_ids = store_ids);
        fixture.publish();
        let check = |what: &str| {
            let pinned = pin(&fixture);
            for (twin, domain) in TWINS.iter().enumerate() {
                let answer = pinned.domain(domain, &who).unwrap();
                assert_eq!((answer.domain.as_str(), answer.domain_id), (*domain, domain_id(TWINS[0])), "{what}");
                let found: Vec<_> = answer.datasets.iter().map(|d| (d.dataset_id, d.url_count_est)).collect();
                assert_eq!(found, [vec![(a, 1), (b, 1)], vec![(a, 2)]][twin], "{what}: {domain}");
                assert!(urls(&pinned, domain, a).iter().all(|url| url.contains(domain)), "{what}: {domain}");
            }
            assert_eq!(pinned.stats().unwrap().rows, 5);
        };
        check("published");
        let options = fixture.build_options();
        let (now, writer) = (|| fixture.now(), || fixture.writer());
        compact(&fixture.lake, &now, &writer(), Compaction::Full, &options, &|_| ()).unwrap();
        check("compacted");
        rebuild(&fixture.lake, None, &now, &writer(), &options, &|_| ()).unwrap();
        check("rebuilt");
        // What is denied for one is not for the other.
        let target = DenyTarget::Domain(TWINS[0].into());
        let deny = Deny { target, since: "2026-01-01T00:00:00Z".into(), reason: None };
        let add = |m: &mut trawl_store::Manifest| {
            m.deny.push(deny.clone());
            Ok(())
        };
        fixture.lake.commit(fixture.now(), &fixture.writer(), add).unwrap();
        let pinned = pin(&fixture);
        assert!(pinned.domain(TWINS[0], &who).is_err() && pinned.domain(TWINS[1], &who).is_ok());
    }
    // Where only one is, the other is a stranger.
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("a"));
    fixture.ingest(id, vec![UrlRecord::bare(format!("http://{}/", TWINS[0]))], |_| ());
    fixture.publish();
    assert_eq!(pin(&fixture).domain(TWINS[1], &who).unwrap_err().code(), "unknown_domain");
}

#[test]
fn urls_with_one_id_are_two_urls() {
    assert_eq!(url_id(TWIN_URLS[0].as_bytes()), url_id(TWIN_URLS[1].as_bytes()), "they do collide");
    let who = Principal::anyone();
    for store_ids in [false, true] {
        let mut fixture = Fixture::new();
        let id = fixture.register(DatasetInfo::named("a"));
        let records = TWIN_URLS.iter().chain(&TWIN_URLS[..1]).map(|url| UrlRecord::bare(*url)).collect();
        fixture.ingest(id, records, |s| s.store_ids = store_ids);
        fixture.publish();
        let pinned = pin(&fixture);
        let counts = pinned.domain_counts("a.com", &who).unwrap();
        assert_eq!((counts[0].rows, counts[0].distinct_urls, counts[0].distinct_exact), (3, 2, true));
        for (url, rows) in TWIN_URLS.iter().zip([2, 1]) {
            let answer = pinned.url(url, 10, &who).unwrap();
            assert_eq!(answer.items.len(), rows, "{url}");
            assert!(answer.items.iter().all(|hit| hit.item.url == *url && hit.item.url_id == answer.url_id));
        }
        // Counted again from the rows of two segments.
        fixture.ingest(id, vec![UrlRecord::bare(TWIN_URLS[1])], |s| s.store_ids = store_ids);
        fixture.publish();
        let options = fixture.build_options();
        compact(&fixture.lake, &|| fixture.now(), &fixture.writer(), Compaction::Full, &options, &|_| ()).unwrap();
        let counts = pin(&fixture).domain_counts("a.com", &who).unwrap();
        assert_eq!((counts[0].rows, counts[0].distinct_urls, counts[0].distinct_exact), (4, 2, true));
    }
}

#[test]
fn spellings_of_one_host_are_one_domain() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("a"));
    let groups: [(&str, &[&str]); 5] = [
        (
            "xn--bcher-kva.com",
            &["bücher.com", "BÜCHER.com", "xn--bcher-kva.com", "XN--BCHER-KVA.COM", "www.bücher.com."],
        ),
        ("example.com", &["example.com", "Example.COM", "example.com.", "www.example.com", "EXAMPLE.com:80"]),
        ("192.0.2.1", &["192.0.2.1", "0xC0.0.2.1", "3221225985", "192.0.2.1:80", "192.0.513"]),
        (
            "[2001:db8::1]",
            &["[2001:db8::1]", "[2001:DB8:0:0::1]", "[2001:db8::0:1]", "[2001:db8::1]:80", "[2001:0db8::1]"],
        ),
        ("co.uk", &["co.uk", "CO.UK", "co.uk.", "Co.Uk:80", "CO.uk."]),
    ];
    let records = groups.iter().flat_map(|(_, hosts)| hosts.iter());
    fixture.ingest(id, records.map(|host| UrlRecord::bare(format!("http://{host}/x"))).collect(), |_| ());
    fixture.publish();
    let (pinned, who) = (pin(&fixture), Principal::anyone());
    let mut names: Vec<_> = groups.iter().map(|(domain, _)| *domain).collect();
    names.sort_unstable();
    let found: Vec<_> = pinned.domains("", None, 100, &who).unwrap().into_iter().map(|s| s.domain).collect();
    assert_eq!(found, names);
    for (domain, hosts) in groups {
        let rows = pinned.domain_counts(domain, &who).unwrap()[0];
        assert_eq!((rows.rows, rows.distinct_urls), (5, 5), "{domain}: raw spellings differ");
        for host in hosts {
            let asked = host.strip_suffix(":80").unwrap_or(host);
            assert_eq!(pinned.domain(asked, &who).unwrap().domain, domain, "{asked}");
            let url = format!("http://{host}/x");
            let hits = pinned.url(&url, 10, &who).unwrap().items;
            assert!(hits.iter().any(|hit| hit.item.url == url), "{url}: {hits:?}");
        }
    }
    for stranger in ["uk", "x.co.uk", "192.0.2.2", "[2001:db8::2]", "xn--bcher-kva.org"] {
        assert_eq!(pinned.domain(stranger, &who).unwrap_err().code(), "unknown_domain", "{stranger}");
    }
}

/// Made as it is read.
struct Made(u64, fn(u64) -> String);

impl UrlSource for Made {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity { uri: "made".into(), size: self.0, tag: String::new() }
    }

    fn splits(&self, _: u64) -> Result<Vec<Split>, DoorError> {
        Ok(vec![Split { start: 0, end: self.0 / 2 }, Split { start: self.0 / 2, end: self.0 }])
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        (split.start..split.end).try_for_each(|n| each(n, Ok(UrlRecord::bare((self.1)(n)))))
    }
}

fn make(count: u64, url: fn(u64) -> String) -> Fixture {
    let fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("made"));
    let settings =
        IngestSettings { memory_bytes: 256 << 20, ..IngestSettings::new("w", fixture.dir.path().join("tmp")) };
    let source = vec![trawl_ingest::source::Source::new(Made(count, url))];
    let report = ingest(&fixture.lake, id, &source, &settings, &|| fixture.now(), &|_| ()).unwrap();
    assert_eq!((report.rows, report.rejected), (count, 0));
    fixture.publish();
    fixture
}

const MILLION: u64 = 1_000_000;

#[test]
fn a_million_urls_in_one_domain() {
    let url = |n: u64| format!("http://wide.com/{n:07}");
    let fixture = make(MILLION, url);
    let (pinned, who) = (pin(&fixture), Principal::anyone());
    let counts = pinned.domain_counts("wide.com", &who).unwrap()[0];
    assert_eq!((counts.rows, counts.distinct_urls, counts.distinct_exact), (MILLION, MILLION, true));
    for offset in (0..MILLION).step_by(99_991).chain([MILLION - 1]) {
        let answer = pinned.urls("wide.com", 1, &Page::at(offset, 3), &Filter::default(), &who).unwrap();
        let expected: Vec<_> = (offset..MILLION.min(offset + 3)).map(url).collect();
        assert_eq!(answer.items.into_iter().map(|i| i.url).collect::<Vec<_>>(), expected);
        assert_eq!(answer.total_est, MILLION);
    }
    assert_eq!(pinned.url(&url(777_777), 10, &who).unwrap().items.len(), 1);
}

#[test]
fn a_million_domains_with_one_url() {
    let fixture = make(MILLION, |n| format!("http://d{n}.com/"));
    let (pinned, who) = (pin(&fixture), Principal::anyone());
    assert_eq!(pinned.stats().unwrap().domains, MILLION);
    for n in (0..MILLION).step_by(9_973).chain([MILLION - 1]) {
        let domain = format!("d{n}.com");
        assert_eq!(pinned.domain_counts(&domain, &who).unwrap()[0].rows, 1, "{domain}");
        assert_eq!(urls(&pinned, &domain, 1), [format!("http://{domain}/")]);
        assert!(pinned.domain_counts(&format!("x{n}.com"), &who).is_err());
    }
    let names = pinned.domains("d99999", None, 100, &who).unwrap();
    assert_eq!(names.len(), 11, "d99999 and d999990 to d999999");
}

/// One URL fetched more often than an answer has rows: the nearest capture is found among all of them, also by its locator.
#[test]
fn a_capture_is_chosen_among_all_of_its_url() {
    const COUNT: i64 = 12_000;
    let time = |n: i64| UnixMillis(1_600_000_000_000 + n * 700);
    let capture = |n: i64| UrlRecord {
        ts: Some(time(n)),
        status: Some(200),
        place: Some(Place::new("a.warc", n as u64 * 10, 10)),
        ..UrlRecord::bare("http://often.com/")
    };
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("a"));
    fixture.ingest(id, (0..COUNT).map(capture).collect(), |_| ());
    fixture.publish();
    let (pinned, who) = (pin(&fixture), Principal::anyone());
    let found = |ts: Option<UnixMillis>| pinned.capture(None, "http://often.com/", ts, &who).unwrap().item;
    assert_eq!(found(None).ts, Some(time(COUNT - 1)));
    for n in [0, 1, 5000, 11_000, COUNT - 1] {
        assert_eq!(found(Some(UnixMillis(time(n).0 + 1))).warc_offset, Some(n as u64 * 10));
        let locator = Locator::decode(&found(Some(UnixMillis(time(n).0 + 1))).locator.unwrap()).unwrap();
        assert_eq!(pinned.located(&locator, &who).unwrap().item.ts, Some(time(n)));
    }
    // A whole second is that second, though the capture before it (700 ms apart) may be nearer to its beginning.
    for n in [1, 2, 3, 11_001] {
        let second = time(n).0 / 1000 * 1000;
        assert_eq!(found(Some(UnixMillis(second))).ts.unwrap().0 / 1000 * 1000, second);
    }
}

/// A source may have the text of each page beside its URL. Fifty thousand rows are held at a time, for clients that see none of it.
#[test]
fn rows_of_a_cdx_answer_hold_no_texts() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("a"));
    let row = |n: i64, extras: &str| UrlRecord {
        ts: Some(UnixMillis(1_700_000_000_000 + n * 1000)),
        extras: Some(extras.to_owned()),
        ..UrlRecord::bare("http://a.com/")
    };
    let rows = vec![
        row(1, r#"{"text":"of a page"}"#),
        row(2, r#"{"record_type":"revisit","text":"of a page"}"#),
        row(3, r#"{"record_type":"conversion"}"#),
    ];
    fixture.ingest(id, rows, |_| ());
    fixture.publish();
    let (pinned, who) = (pin(&fixture), Principal::anyone());
    let query = CdxQuery { url: "a.com".into(), ..CdxQuery::default() };
    let rows = pinned.cdx(&query, &who).unwrap();
    let page = rows.page(0).unwrap();
    let found: Vec<_> = page.iter().map(|row| row.item.extras.clone()).collect();
    assert_eq!(found, [None, Some(serde_json::json!({ "record_type": "revisit" }))]);
}

/// Long texts that are alike take next to nothing on disk, and ten thousand of them would be one answer.
#[test]
fn a_page_of_long_texts_is_shorter() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("a"));
    let extras = format!("{{\"text\":\"{}\"}}", "x".repeat(1_000_000));
    let rows = 40u64;
    let record =
        |n: u64| UrlRecord { extras: Some(extras.clone()), ..UrlRecord::bare(format!("http://a.example/{n:02}")) };
    fixture.ingest(id, (0..rows).map(record).collect(), |_| ());
    fixture.publish();
    let (pinned, who) = (pin(&fixture), Principal::anyone());
    for filter in [Filter::default(), Filter { path_prefix: Some("/".into()), ..Filter::default() }] {
        let (mut page, mut found, mut pages) = (Page::at(0, 1000), Vec::new(), 0);
        loop {
            let answer = pinned.urls("a.example", id, &page, &filter, &who).unwrap();
            assert!((1..20).contains(&answer.items.len()), "{} rows of a megabyte", answer.items.len());
            assert_eq!(answer.total_est, rows);
            found.extend(answer.items.into_iter().map(|item| item.url));
            pages += 1;
            if filter == Filter::default() && pages < 3 {
                assert_eq!(answer.next_offset, Some(found.len() as u64));
            }
            let Some(cursor) = answer.next_cursor else { break };
            page = Page { cursor: Some(cursor), ..Page::at(0, 1000) };
        }
        assert_eq!(found, (0..rows).map(|n| format!("http://a.example/{n:02}")).collect::<Vec<_>>());
        assert_eq!(pages, 3);
    }
}

/// Rows have their parameters sorted, but people ask for what they see.
#[test]
fn the_beginning_of_a_query_is_found_in_any_order() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("a"));
    let all = ["/t?p=1", "/t?t=12&f=3", "/t?f=3&t=1", "/t?u=1&t=2", "/t/x?t=1", "/tt?t=1"];
    fixture.ingest(id, all.iter().map(|path| UrlRecord::bare(format!("http://a.example{path}"))).collect(), |_| ());
    fixture.publish();
    let (pinned, who) = (pin(&fixture), Principal::anyone());
    for (prefix, expected, is_range) in [
        ("/t?", vec!["/t?f=3&t=1", "/t?t=12&f=3", "/t?p=1", "/t?u=1&t=2"], true),
        ("/t?t=1", vec!["/t?f=3&t=1", "/t?t=12&f=3"], false),
        ("/t?t=1&f=3", vec!["/t?f=3&t=1"], false),
        ("/t?t=12&f", vec!["/t?t=12&f=3"], false),
        ("/t?f=3&t=1", vec!["/t?f=3&t=1", "/t?t=12&f=3"], false),
        ("/t?u=1&", vec!["/t?u=1&t=2"], false),
        ("/t?x", vec![], false),
    ] {
        for host in [None, Some("a.example".to_owned())] {
            let filter = Filter { path_prefix: Some(prefix.into()), host, ..Filter::default() };
            let answer = pinned.urls("a.example", id, &Page::at(0, 10), &filter, &who).unwrap();
            let urls = answer.items.iter().map(|item| &*item.url);
            let found: Vec<_> = urls.filter_map(|url| url.strip_prefix("http://a.example")).collect();
            assert_eq!(found, expected, "{prefix}");
            assert_eq!(answer.total_filtered.is_some(), is_range && filter.host.is_some(), "{prefix}");
        }
    }
}
