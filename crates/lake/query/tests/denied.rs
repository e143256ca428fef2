//! Pages of a domain with denied rows, against the rows left when they are taken out by hand.

mod common;

use common::Fixture;
use trawl_model::UrlRecord;
use trawl_query::{Filter, Lake, Options, Page, Principal};
use trawl_store::DatasetInfo;
use trawl_store::manifest::{Deny, DenyTarget};

fn is_denied(url: &str) -> bool {
    url.starts_with("http://b.x.com/1")
        || url == "http://a.x.com/0007"
        || url.contains("//c.x.com/")
        || url.contains(".c.x.com/")
}

#[test]
fn every_page_is_a_piece_of_what_is_shown() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    // http and https alternate, so that denied rows lie between others; each part is a segment of its own.
    let url = |n: u64| {
        let host = ["a", "b", "c", "d.c", "cc"][(n % 5) as usize];
        format!("{}://{host}.x.com/{:04}", ["http", "https"][(n / 5 % 2) as usize], n / 10 * 7 % 2000)
    };
    let all: Vec<String> = (0..3000).map(url).chain(["http://a.x.com/0007".to_owned()]).collect();
    for part in all.chunks(1100) {
        fixture.ingest(id, part.iter().map(UrlRecord::bare).collect(), |s| s.page_rows = 64);
        fixture.publish();
    }
    let targets = [
        DenyTarget::Prefix("http://b.x.com/1".into()),
        DenyTarget::Url("http://a.x.com/0007".into()),
        DenyTarget::Domain("c.x.com".into()),
    ];
    let who = Principal::anyone();
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let none = Filter::default();
    let before = lake.pin().unwrap();
    let whole = |filter: &Filter| {
        let (mut urls, mut page) = (Vec::new(), Page::at(0, 1000));
        loop {
            let answer = lake.pin().unwrap().urls("x.com", id, &page, filter, &who).unwrap();
            urls.extend(answer.items.into_iter().map(|item| item.url));
            let Some(cursor) = answer.next_cursor else { return urls };
            page.cursor = Some(cursor);
        }
    };
    let mut left = whole(&none);
    assert_eq!(left.len(), all.len());
    let old_cursor = before.urls("x.com", id, &Page::at(0, 300), &none, &who).unwrap().next_cursor;
    let rest_of_old = left.iter().skip(300).filter(|url| !is_denied(url)).count();
    left.retain(|url| !is_denied(url));
    assert!(left.len() < all.len() - 600, "the list denies many");

    for target in targets {
        let deny = Deny { target, since: fixture.now().to_string(), reason: None };
        let add = |m: &mut trawl_store::Manifest| {
            m.deny.push(deny.clone());
            Ok(())
        };
        fixture.lake.commit(fixture.now(), &fixture.writer(), add).unwrap();
    }
    let pinned = lake.pin().unwrap();
    assert_eq!(whole(&none), left);
    for limit in [1, 7, 500, 1000] {
        for offset in [0, 1, 299, 300, left.len() - 1, left.len(), left.len() + 5] {
            let answer = pinned.urls("x.com", id, &Page::at(offset as u64, limit), &none, &who).unwrap();
            let urls: Vec<_> = answer.items.iter().map(|item| item.url.clone()).collect();
            let from = offset.min(left.len());
            let until = (from + limit as usize).min(left.len());
            assert_eq!(urls, left[from..until], "{offset} {limit}");
            assert_eq!(answer.total_est, left.len() as u64);
            assert_eq!(answer.next_offset, (until < left.len()).then_some(until as u64), "{offset} {limit}");
        }
    }
    let rest = pinned.urls("x.com", id, &Page { cursor: old_cursor, ..Page::at(0, 1000) }, &none, &who).unwrap();
    assert_eq!(rest.items.len(), rest_of_old.min(1000), "a cursor from before goes on among what is left");
    let of_host = Filter { host: Some("b.x.com".into()), ..none.clone() };
    let expected: Vec<_> = left.iter().filter(|url| url.contains("//b.x.com/")).cloned().collect();
    assert_eq!(whole(&of_host), expected);
    assert_eq!(pinned.domain("x.com", &who).unwrap().datasets[0].url_count_est, left.len() as u64);
}

/// A domain in which every other row is denied, in files of segments that overlap.
fn alternating(fixture: &mut Fixture, id: u32) {
    let part = |from: u64| {
        let times = |n: u64| Some(trawl_model::UnixMillis((1_000_000 + n * 7919 % 4000) as i64));
        let url = move |n: u64| UrlRecord { ts: times(n), ..UrlRecord::bare(format!("http://x.com/{:05}", n / 2)) };
        let secure = |n: u64, r: UrlRecord| {
            if n.is_multiple_of(2) { UrlRecord { url: r.url.replace("http", "https"), ..r } } else { r }
        };
        (from..from + 4000).map(|n| secure(n, url(n))).collect::<Vec<_>>()
    };
    // The first segment is made of two commits, whose files have URLs in common.
    fixture.ingest(id, part(0), |s| s.page_rows = 64);
    fixture.ingest(id, part(3000), |s| (s.page_rows, s.row_group_bytes) = (64, 4000));
    fixture.publish();
    fixture.ingest(id, part(6500), |s| s.page_rows = 64);
    fixture.publish();
    let target = DenyTarget::Prefix("http://x.com/".into());
    let deny = Deny { target, since: fixture.now().to_string(), reason: None };
    let add = |m: &mut trawl_store::Manifest| {
        m.deny.push(deny.clone());
        Ok(())
    };
    fixture.lake.commit(fixture.now(), &fixture.writer(), add).unwrap();
}

/// Whatever memory there is for where denied rows are: answers are the same, and the memory is kept to.
#[test]
fn a_tiny_memory_gives_the_same_answers() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    alternating(&mut fixture, id);
    let open = |cache_bytes| Lake::open(fixture.store.clone(), Options { cache_bytes, ..Options::default() }).unwrap();
    let who = Principal::anyone();
    let large = open(1 << 30);
    let expected = large.pin().unwrap();
    let (none, total) = (Filter::default(), 6000u64);
    let filters = [
        none.clone(),
        Filter { host: Some("x.com".into()), path_prefix: Some("/01".into()), ..none.clone() },
        Filter { from: Some(trawl_model::UnixMillis(1_003_990)), ..none.clone() },
    ];
    for cache_bytes in [0, 16 << 10, 64 << 10] {
        let small = open(cache_bytes);
        let pinned = small.pin().unwrap();
        assert_eq!(pinned.domain("x.com", &who).unwrap(), expected.domain("x.com", &who).unwrap());
        for (offset, limit) in
            [(0, 1), (0, 0), (1, 700), (1999, 2), (2000, 1), (2777, 1000), (5999, 9), (6000, 1), (9999, 5)]
        {
            let page = Page::at(offset, limit);
            let answer = pinned.urls("x.com", id, &page, &none, &who).unwrap();
            assert_eq!(answer, expected.urls("x.com", id, &page, &none, &who).unwrap(), "{offset} {limit}");
            let rest = total.saturating_sub(offset).min(u64::from(limit));
            assert_eq!((answer.total_est, answer.items.len() as u64), (total, rest), "{offset} {limit}");
            assert!(answer.items.iter().all(|item| item.url.starts_with("https:")));
        }
        for filter in &filters {
            let mut page = Page::at(0, 333);
            loop {
                let answer = pinned.urls("x.com", id, &page, filter, &who).unwrap();
                assert_eq!(answer, expected.urls("x.com", id, &page, filter, &who).unwrap(), "{page:?} {filter:?}");
                let Some(cursor) = answer.next_cursor else { break };
                page.cursor = Some(cursor);
            }
        }
        assert!(small.denied_memory() <= cache_bytes / 16, "{} bytes", small.denied_memory());
    }
    // Each of them is known where there is room: 40 bytes a gap and more.
    assert!(large.denied_memory() > 6000 * 24, "{} bytes", large.denied_memory());
    let answer = expected.domain("x.com", &who).unwrap().datasets.remove(0);
    let urls: std::collections::BTreeSet<_> = fixture.rows[&(id, "x.com".to_owned())]
        .iter()
        .filter(|row| row.record.url.starts_with("https:"))
        .map(|row| (row.record.url.as_str(), row.record.ts))
        .collect();
    let times = urls.iter().filter_map(|(_, ts)| *ts);
    assert_eq!((answer.first_ts, answer.last_ts), (times.clone().min(), times.max()));
    assert!(
        answer.distinct_urls >= urls.iter().map(|(url, _)| url).collect::<std::collections::BTreeSet<_>>().len() as u64
    );
}

/// The sums of the catalogue and of the lake are those of the answers, and only the operator hears of the rest.
#[test]
fn sums_are_of_what_is_shown() {
    let mut fixture = Fixture::new();
    let (a, b) = (fixture.register(DatasetInfo::named("a")), fixture.register(DatasetInfo::named("b")));
    let bare = |urls: &[&str]| urls.iter().map(|url| UrlRecord::bare(*url)).collect::<Vec<_>>();
    let of_a = ["http://x.com/1", "http://x.com/2", "http://gone.com/1", "http://y.com/1", "http://z.org/1"];
    fixture.ingest(a, bare(&of_a), |_| ());
    fixture.ingest(b, bare(&["http://x.com/1", "http://gone.com/2", "http://w.co.uk/", "http://v.co.uk/"]), |_| ());
    fixture.publish();
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let (anyone, operator) = (Principal::anyone(), Principal::operator());
    let sums = |who: &Principal| {
        let pinned = lake.pin().unwrap();
        let stats = pinned.stats_for(who).unwrap();
        let datasets = pinned.datasets(who).unwrap();
        assert_eq!(stats.rows, datasets.iter().map(|d| d.rows).sum::<u64>());
        // What a walk through all domains comes to.
        let names = pinned.domains("", None, 1000, who).unwrap();
        assert_eq!((stats.domains, stats.rows), (names.len() as u64, names.iter().map(|n| n.rows).sum()));
        assert!(stats.domains_exact && datasets.iter().all(|d| d.domains_exact));
        let of = datasets.iter().map(|d| (d.rows, d.denied_rows, d.domains)).collect::<Vec<_>>();
        (stats.rows, stats.denied_rows, stats.domains, of)
    };
    assert_eq!(sums(&anyone), (9, None, 6, vec![(5, None, 4), (4, None, 4)]));
    assert_eq!(sums(&operator), (9, Some(0), 6, vec![(5, Some(0), 4), (4, Some(0), 4)]));
    let steps: [(DenyTarget, _); 4] = [
        (DenyTarget::Domain("gone.com".into()), (7, Some(2), 5, vec![(4, Some(1), 3), (3, Some(1), 3)])),
        (DenyTarget::Url("http://x.com/1".into()), (5, Some(4), 5, vec![(3, Some(2), 3), (2, Some(2), 2)])),
        (DenyTarget::Prefix("http://y.com/".into()), (4, Some(5), 4, vec![(2, Some(3), 2), (2, Some(2), 2)])),
        // A suffix: its domains are found although none of them is on the list.
        (DenyTarget::Domain("co.uk".into()), (2, Some(7), 2, vec![(2, Some(3), 2), (0, Some(4), 0)])),
    ];
    for (target, expected) in steps {
        let deny = Deny { target, since: fixture.now().to_string(), reason: None };
        let add = |m: &mut trawl_store::Manifest| {
            m.deny.push(deny.clone());
            Ok(())
        };
        fixture.lake.commit(fixture.now(), &fixture.writer(), add).unwrap();
        assert_eq!(sums(&operator), expected);
        let public = expected.3.iter().map(|(rows, _, domains)| (*rows, None, *domains)).collect();
        assert_eq!(sums(&anyone), (expected.0, None, expected.2, public));
    }
    fixture.ingest(a, bare(&["http://x.com/3"]), |_| ());
    fixture.publish();
    let pinned = lake.pin().unwrap();
    let stats = pinned.stats().unwrap();
    assert_eq!(
        (stats.rows, stats.domains, stats.domains_exact),
        (3, 2, true),
        "x.com is in two segments, and counted once"
    );
    let datasets = pinned.datasets(&anyone).unwrap();
    assert_eq!(datasets.iter().map(|d| (d.domains, d.domains_exact)).collect::<Vec<_>>(), [(2, true), (0, true)]);
}
