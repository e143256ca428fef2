//! Who sees what: access lists, the deny list, filters.

mod common;
#[path = "../../store/tests/doubles/mod.rs"]
mod doubles;

use common::Fixture;
use doubles::CountingStore;
use std::sync::Arc;
use trawl_model::{UnixMillis, UrlRecord};
use trawl_query::{Filter, Lake, Options, Page, Principal};
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{Acl, DatasetInfo, Store};

fn named(name: &str, acl: Acl) -> DatasetInfo {
    DatasetInfo { acl, ..DatasetInfo::named(name) }
}

fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let open = fixture.register(named("open", Acl::Public));
    let closed = fixture.register(named("closed", Acl::Principals(vec!["ann".into()])));
    let url = |u: &str| UrlRecord::bare(u);
    fixture.ingest(open, vec![url("http://both.com/1"), url("http://open.com/1")], |_| ());
    fixture.ingest(
        closed,
        vec![url("http://both.com/2"), url("http://both.com/3"), url("http://closed.com/1")],
        |_| (),
    );
    fixture.publish();
    fixture
}

#[test]
fn hidden_is_absent() {
    let fixture = fixture();
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let pinned = lake.pin().unwrap();
    let (anyone, ann) = (Principal::anyone(), Principal::named(["ann".to_owned()]));
    let ids = |name: &str, who: &Principal| {
        pinned.domain(name, who).map(|a| a.datasets.iter().map(|d| d.dataset_id).collect::<Vec<_>>())
    };
    assert_eq!(ids("both.com", &anyone).unwrap(), [1]);
    assert_eq!(ids("both.com", &ann).unwrap(), [1, 2]);
    assert_eq!(ids("both.com", &Principal::operator()).unwrap(), [1, 2]);
    assert_eq!(ids("closed.com", &ann).unwrap(), [2]);
    let hidden = ids("closed.com", &anyone).unwrap_err().to_string();
    let absent = ids("nobody.com", &anyone).unwrap_err().to_string();
    assert_eq!(hidden.replace("closed.com", "nobody.com"), absent);

    let urls = |name: &str, id, who: &Principal| pinned.urls(name, id, &Page::default(), &Filter::default(), who);
    assert_eq!(urls("both.com", 2, &ann).unwrap().items.len(), 2);
    let hidden = urls("both.com", 2, &anyone).unwrap_err().to_string();
    assert_eq!(hidden.replace("dataset 2", "dataset 9"), urls("both.com", 9, &anyone).unwrap_err().to_string());
    assert_eq!(urls("closed.com", 2, &anyone).unwrap_err().code(), "unknown_domain");

    let names = |who: &Principal| {
        pinned.domains("", None, 10, who).unwrap().into_iter().map(|s| (s.domain, s.rows)).collect::<Vec<_>>()
    };
    assert_eq!(names(&anyone), [("both.com".to_owned(), 1), ("open.com".to_owned(), 1)]);
    assert_eq!(names(&ann), [("both.com".to_owned(), 3), ("closed.com".to_owned(), 1), ("open.com".to_owned(), 1)]);
    assert_eq!((pinned.datasets(&anyone).unwrap().len(), pinned.datasets(&ann).unwrap().len()), (1, 2));
    let stats = pinned.stats().unwrap();
    assert_eq!((stats.datasets, stats.rows, stats.domains), (1, 2, 2));
    let stats = pinned.stats_for(&ann).unwrap();
    assert_eq!((stats.datasets, stats.rows, stats.domains), (2, 5, 3));
}

type Question<'a> = dyn Fn(&trawl_query::Pinned, &str) + 'a;

#[test]
fn hidden_and_absent_take_the_same_reads() {
    let fixture = fixture();
    let counting = Arc::new(CountingStore::new(fixture.store.clone()));
    let cost = |name: &str, id: u32| {
        // A new lake each time: no cache remembers what was asked before.
        let options = Options { resident_bytes: 0, cache_bytes: 0 };
        let pinned = Lake::open(counting.clone() as Arc<dyn Store>, options).unwrap().pin().unwrap();
        counting.take();
        pinned.urls(name, id, &Page::default(), &Filter::default(), &Principal::anyone()).unwrap_err();
        counting.take().rounds
    };
    assert_eq!(cost("both.com", 2), cost("both.com", 9));
    assert_eq!(cost("closed.com", 2), cost("nobody.com", 2));
    assert!(cost("closed.com", 2) > 0, "nothing was compared");
    // The other questions about a domain that only others may see, and about one that is nowhere.
    let asked = |name: &str, question: &Question<'_>| {
        let options = Options { resident_bytes: 0, cache_bytes: 0 };
        let pinned = Lake::open(counting.clone() as Arc<dyn Store>, options).unwrap().pin().unwrap();
        counting.take();
        question(&pinned, name);
        counting.take().rounds
    };
    let anyone = Principal::anyone();
    let questions: [&Question<'_>; 4] = [
        &|pinned, name| assert!(pinned.domain(name, &anyone).is_err()),
        &|pinned, name| assert!(pinned.url(&format!("http://{name}/1"), 9, &anyone).unwrap().items.is_empty()),
        &|pinned, name| assert!(pinned.capture(None, &format!("http://{name}/1"), None, &anyone).is_err()),
        &|pinned, name| {
            let query = trawl_query::CdxQuery { url: format!("http://{name}/1"), ..Default::default() };
            assert_eq!(pinned.cdx(&query, &anyone).unwrap().total(), 0);
        },
    ];
    for (n, question) in questions.into_iter().enumerate() {
        assert_eq!(asked("closed.com", question), asked("nobody.com", question), "question {n}");
    }
}

#[test]
fn what_is_denied_is_gone_at_the_next_request() {
    let fixture = fixture();
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let who = Principal::operator();
    let deny = |target: DenyTarget| {
        let since = fixture.now().to_string();
        fixture
            .lake
            .commit(fixture.now(), &fixture.writer(), |m| {
                m.deny.push(Deny { target: target.clone(), since: since.clone(), reason: None });
                Ok(())
            })
            .unwrap();
        lake.pin().unwrap()
    };
    let urls = |p: &trawl_query::Pinned| -> Vec<String> {
        let answer = p.urls("both.com", 2, &Page::default(), &Filter::default(), &who);
        answer.map(|a| a.items.into_iter().map(|i| i.url).collect()).unwrap_or_default()
    };
    assert_eq!(urls(&lake.pin().unwrap()).len(), 2);
    assert_eq!(urls(&deny(DenyTarget::Url("HTTP://both.com:80/2#x".into()))), ["http://both.com/3"]);
    assert_eq!(urls(&deny(DenyTarget::Prefix("http://both.com/3".into()))), [""; 0]);
    let pinned = deny(DenyTarget::Domain("closed.com".into()));
    assert_eq!(pinned.domain("closed.com", &who).unwrap_err().code(), "unknown_domain");
    assert!(pinned.domains("c", None, 9, &who).unwrap().is_empty());
    let pinned = deny(DenyTarget::Dataset(2));
    assert_eq!(pinned.domain("both.com", &who).unwrap().datasets.len(), 1);
    assert_eq!(pinned.datasets(&who).unwrap().len(), 1);
}

#[test]
fn filters_keep_what_fits_and_page_by_cursor() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    let record = |n: i64| UrlRecord {
        ts: (n % 5 != 0).then_some(UnixMillis(n * 1000)),
        status: Some([200, 404][(n % 2) as usize]),
        ..UrlRecord::bare(format!(
            "http://{}.x.com/{}/{n:04}",
            ["a", "b"][(n % 3 == 0) as usize],
            ["p", "q"][(n % 7 == 0) as usize]
        ))
    };
    let records: Vec<_> = (0..3000).map(record).collect();
    fixture.ingest(id, records.clone(), |s| s.page_rows = 64);
    fixture.publish();
    let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    let none = Filter::default();
    let at = |n: i64| Some(UnixMillis(n));
    for (filter, keep) in [
        (
            Filter { host: Some("b.x.com".into()), ..none.clone() },
            (|r| r.url.contains("//b.")) as fn(&UrlRecord) -> bool,
        ),
        (Filter { path_prefix: Some("/q/00".into()), ..none.clone() }, |r| r.url.contains("/q/00")),
        (Filter { status: Some(404), ..none.clone() }, |r| r.status == Some(404)),
        (Filter { from: at(500_000), until: at(900_000), ..none.clone() }, |r| {
            r.ts.is_some_and(|t| (500_000..900_000).contains(&t.0))
        }),
        (Filter { status: Some(200), host: Some("a.x.com".into()), ..none.clone() }, |r| {
            r.status == Some(200) && r.url.contains("//a.")
        }),
        (Filter { host: Some("x.com".into()), ..none.clone() }, |_| false),
    ] {
        let mut expected: Vec<_> = records.iter().filter(|r| keep(r)).map(|r| r.url.clone()).collect();
        expected.sort_unstable();
        let mut found = Vec::new();
        let mut page = Page::at(0, 100);
        loop {
            let answer = pinned.urls("x.com", id, &page, &filter, &Principal::anyone()).unwrap();
            assert!(answer.items.len() <= 100 && answer.next_offset.is_none());
            found.extend(answer.items.into_iter().map(|i| i.url));
            let Some(cursor) = answer.next_cursor else { break };
            page = Page::from_cursor(cursor, 100);
        }
        found.sort_unstable();
        assert_eq!(found, expected, "{filter:?}");
    }
}
