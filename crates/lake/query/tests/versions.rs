//! Versions: what is pinned stays, what is replaced goes, cursors belong to their version.

mod common;
#[path = "../../store/tests/doubles/mod.rs"]
mod doubles;

use common::{Dice, Fixture, VecSource, hosts, records};
use doubles::GatedStore;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;
use trawl_ingest::source::Source;
use trawl_ingest::{IngestSettings, Mode, ingest};
use trawl_maintain::{GcSettings, collect};
use trawl_model::{UnixMillis, UrlRecord};
use trawl_query::{Filter, Lake, Options, Page, Pinned, Principal};
use trawl_store::{DatasetInfo, Store};

fn urls(domain: &str, count: u32) -> Vec<UrlRecord> {
    (0..count).map(|n| UrlRecord::bare(format!("http://{domain}/{n:05}"))).collect()
}

#[test]
fn an_empty_lake_answers() {
    let fixture = Fixture::new();
    assert_eq!(fixture.publish().version, None);
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let pinned = lake.pin().unwrap();
    let who = Principal::anyone();
    assert_eq!(pinned.version(), "");
    assert_eq!(pinned.domain("example.com", &who).unwrap_err().code(), "unknown_domain");
    assert_eq!(pinned.stats().unwrap().rows, 0);
    assert!(pinned.domains("", None, 10, &who).unwrap().is_empty() && pinned.datasets(&who).unwrap().is_empty());
}

#[test]
fn datasets_of_no_one_and_two_domains() {
    let mut fixture = Fixture::new();
    let who = Principal::anyone();
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    for (n, records) in
        [vec![], urls("one.com", 1), [urls("one.com", 1), urls("two.com", 3)].concat()].into_iter().enumerate()
    {
        let id = fixture.register(DatasetInfo::named(format!("d{n}")));
        fixture.ingest(id, records, |_| ());
        fixture.publish();
        let pinned = lake.pin().unwrap();
        for domain in fixture.domains() {
            let found: Vec<_> = pinned
                .domain(&domain, &who)
                .unwrap()
                .datasets
                .iter()
                .map(|d| (d.dataset_id, d.url_count_est, d.distinct_urls))
                .collect();
            assert_eq!(found, fixture.expected_counts(&domain));
        }
        assert!(pinned.domain("three.com", &who).is_err());
    }
}

#[test]
fn a_pinned_version_does_not_change_and_a_cursor_keeps_to_it() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    fixture.ingest(id, urls("x.com", 10), |_| ());
    fixture.publish();
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let (old, who, all) = (lake.pin().unwrap(), Principal::anyone(), Filter::default());
    let first = old.urls("x.com", id, &Page::at(0, 4), &all, &who).unwrap();

    fixture.ingest(id, urls("x.com", 7), |_| ());
    fixture.publish();
    let new = lake.pin().unwrap();
    assert_ne!(old.version(), new.version());
    assert_eq!(old.domain("x.com", &who).unwrap().datasets[0].url_count_est, 10);
    let now = &new.domain("x.com", &who).unwrap().datasets[0];
    assert_eq!((now.url_count_est, now.distinct_urls, now.distinct_exact), (17, 17, false));

    // The cursor of the old version, given to the new one, goes on in the old one.
    let page = Page::from_cursor(first.next_cursor.clone().unwrap(), 100);
    let rest = new.urls("x.com", id, &page, &all, &who).unwrap();
    assert_eq!((rest.version.as_str(), rest.items.len(), rest.total_est), (old.version(), 6, 10));
    assert_eq!(rest.next_cursor, None);

    // In between it goes on by cursor alone: an offset would count in the new version.
    let page_of = |lake: &Pinned, limit| {
        lake.urls("x.com", id, &Page::from_cursor(first.next_cursor.clone().unwrap(), limit), &all, &who).unwrap()
    };
    let (there, here) = (page_of(&new, 2), page_of(&old, 2));
    assert!(there.next_cursor.is_some() && there.next_offset.is_none());
    assert_eq!((there.items, here.next_offset), (here.items, Some(6)));

    // Once the manifest no longer lists that version it is gone.
    let gone = old.version().to_owned();
    fixture
        .lake
        .commit(fixture.now(), &fixture.writer(), |m| {
            m.versions.retain(|v| v.version != gone);
            Ok(())
        })
        .unwrap();
    let error = lake.pin().unwrap().urls("x.com", id, &page, &all, &who).unwrap_err();
    assert_eq!((error.code(), error.status()), ("gone", 410));
}

#[test]
fn a_lake_that_is_closed_keeps_nothing() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    fixture.ingest(id, urls("x.com", 10), |_| ());
    fixture.publish();
    let before = Arc::strong_count(&fixture.store);
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let pinned = lake.pin().unwrap();
    drop(lake);
    assert!(pinned.domain("x.com", &Principal::anyone()).is_ok(), "what is pinned answers until its end");
    drop(pinned);
    assert_eq!(Arc::strong_count(&fixture.store), before, "somebody still holds the store");
}

#[test]
fn cursors_of_other_questions_are_refused() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    fixture.ingest(id, [urls("x.com", 5), urls("y.com", 5)].concat(), |_| ());
    fixture.publish();
    let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    let (who, all) = (Principal::anyone(), Filter::default());
    let cursor = pinned.urls("x.com", id, &Page::at(0, 2), &all, &who).unwrap().next_cursor.unwrap();
    let ask = |domain: &str, cursor: &str| pinned.urls(domain, id, &Page::from_cursor(cursor, 2), &all, &who);
    assert_eq!(ask("x.com", &cursor).unwrap().items[0].url, "http://x.com/00002");
    assert_eq!(ask("y.com", &cursor).unwrap_err().code(), "bad_cursor");
    assert_eq!(ask("x.com", "nonsense").unwrap_err().code(), "bad_cursor");
    let filter = Filter { status: Some(200), ..Filter::default() };
    // Rows that pass one filter and not another would be left out.
    let of_path = |path: &str| Filter { path_prefix: Some(path.into()), ..Filter::default() };
    let filtered = pinned.urls("x.com", id, &Page::at(0, 2), &of_path("/0"), &who).unwrap().next_cursor.unwrap();
    let with = |cursor: &str, filter: &Filter| pinned.urls("x.com", id, &Page::from_cursor(cursor, 2), filter, &who);
    assert_eq!(with(&filtered, &of_path("0")).unwrap().items[0].url, "http://x.com/00002", "in any spelling");
    let host = Filter { host: Some("x.com".into()), ..of_path("/0") };
    let from = Filter { from: Some(UnixMillis(0)), ..of_path("/0") };
    let until = Filter { until: Some(UnixMillis(0)), ..of_path("/0") };
    for other in [&all, &of_path("/00"), &of_path("/"), &host, &from, &until, &filter] {
        assert_eq!(with(&filtered, other).unwrap_err().code(), "bad_cursor", "{other:?}");
    }
    assert_eq!(with(&cursor, &filter).unwrap_err().code(), "bad_cursor");
    assert_eq!(pinned.urls("x.com", id, &Page::at(1, 2), &filter, &who).unwrap_err().code(), "bad_request");
}

#[test]
fn offsets_and_limits_at_their_ends() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    fixture.ingest(id, urls("x.com", 12_000), |s| {
        s.page_rows = 100;
        s.row_group_bytes = 50 << 10;
    });
    fixture.publish();
    let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    let ask = |offset, limit| {
        pinned.urls("x.com", id, &Page::at(offset, limit), &Filter::default(), &Principal::anyone()).unwrap()
    };
    assert_eq!(ask(0, 20_000).items.len(), 10_000, "the limit is capped");
    assert_eq!(ask(0, 20_000).next_offset, Some(10_000));
    assert_eq!((ask(11_999, 10).items.len(), ask(11_999, 10).next_offset), (1, None));
    for past in [12_000, 12_001, u64::MAX] {
        assert_eq!((ask(past, 10).items.len(), ask(past, 10).next_offset, ask(past, 10).total_est), (0, None, 12_000));
    }
    // No rows are wanted, and there are some: a walk goes on, and ends where there are none.
    for offset in [0, 5, 11_999] {
        let none = ask(offset, 0);
        assert_eq!((none.items.len(), none.next_offset), (0, Some(offset)));
        let page = Page::from_cursor(none.next_cursor.unwrap(), 1);
        let next = pinned.urls("x.com", id, &page, &Filter::default(), &Principal::anyone()).unwrap();
        assert_eq!(next.items[0].url, format!("http://x.com/{offset:05}"));
    }
    assert_eq!((ask(12_000, 0).next_offset, ask(12_000, 0).next_cursor), (None, None));
    for offset in (0..12_000).step_by(777) {
        let answer = ask(offset, 3);
        let expected: Vec<_> = (offset..offset + 3).map(|n| format!("http://x.com/{n:05}")).collect();
        assert_eq!(answer.items.into_iter().map(|i| i.url).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn replaced_and_dropped_datasets_leave_no_trace() {
    let mut fixture = Fixture::new();
    let mut dice = Dice(3);
    let hosts = hosts(&mut dice, 50);
    let (a, b) = (fixture.register(DatasetInfo::named("a")), fixture.register(DatasetInfo::named("b")));
    fixture.ingest(a, records(&mut dice, &hosts, 500, false), |_| ());
    fixture.ingest(b, records(&mut dice, &hosts[..30], 500, true), |_| ());
    fixture.publish();
    fixture.ingest(a, records(&mut dice, &hosts[..10], 200, true), |s| s.mode = Mode::Replace);
    fixture.publish();
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let who = Principal::anyone();
    let check = |fixture: &Fixture| {
        let pinned = lake.pin().unwrap();
        let names: Vec<_> = pinned.domains("", None, 1000, &who).unwrap().into_iter().map(|s| s.domain).collect();
        assert_eq!(names, fixture.domains().into_iter().collect::<Vec<_>>());
        for domain in &names {
            let answer = pinned.domain(domain, &who).unwrap();
            let found: Vec<_> =
                answer.datasets.iter().map(|d| (d.dataset_id, d.url_count_est, d.distinct_urls)).collect();
            assert_eq!(found, fixture.expected_counts(domain), "{domain}");
            for (dataset, rows, _) in fixture.expected_counts(domain) {
                let urls = pinned.urls(domain, dataset, &Page::default(), &Filter::default(), &who).unwrap();
                assert_eq!((urls.total_est, urls.items.len() as u64), (rows, rows));
            }
        }
    };
    check(&fixture);

    fixture.lake.commit(fixture.now(), &fixture.writer(), |m| Ok(m.dataset_mut(b).map(|d| d.dropped = true))).unwrap();
    fixture.rows.retain(|(dataset, _), _| *dataset != b);
    check(&fixture);
    fixture.publish();
    check(&fixture);
    let version = fixture.lake.current().unwrap().current().unwrap().clone();
    assert_eq!(version.segments.len(), 1, "a segment that serves nothing any more is not listed");
    assert_eq!(fixture.publish().version, None);
}

#[test]
fn publishers_race_and_nothing_is_doubled() {
    let mut fixture = Fixture::new();
    let ids: Vec<u32> = (0..3).map(|n| fixture.register(DatasetInfo::named(format!("d{n}")))).collect();
    for id in &ids {
        fixture.ingest(*id, urls("x.com", 100 + id), |_| ());
    }
    let fixture = &fixture;
    let versions: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(move || fixture.publish().version)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(versions.iter().any(Option::is_some));
    let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    let answer = pinned.domain("x.com", &Principal::anyone()).unwrap();
    let found: Vec<_> = answer.datasets.iter().map(|d| (d.dataset_id, d.url_count_est)).collect();
    assert_eq!(found, ids.iter().map(|id| (*id, u64::from(100 + id))).collect::<Vec<_>>());
    assert_eq!(pinned.stats().unwrap().segments, 1);
    assert!(fixture.lake.heartbeats().unwrap().is_empty());
}

/// Rows are replaced while they are indexed, and the collector comes, which knows of the publisher or read the heartbeats just before:
/// the version that is published names no file that is gone.
#[test]
fn what_is_replaced_while_it_is_indexed_can_be_read() {
    for is_known in [true, false] {
        let fixture = Fixture::new();
        let id = fixture.register(DatasetInfo::named("d"));
        let take = |count: u32, mode: Mode| {
            let mut settings = IngestSettings::new(fixture.writer(), fixture.dir.path().join("tmp"));
            (settings.memory_bytes, settings.mode, settings.prefix_digits) = (32 << 20, mode, fixture.split);
            let source = [Source::new(VecSource { name: format!("{count}"), records: urls("x.com", count) })];
            let long_ago = || UnixMillis(1_600_000_000_000);
            ingest(&fixture.lake, id, &source, &settings, &long_ago, &|_| ()).unwrap();
        };
        take(3, Mode::Append);
        let done = Cell::new(false);
        let is_segment = |path: &str| path.ends_with("/segment.json") && path.matches('/').count() == 2;
        let now = || {
            if !done.get() && fixture.store.list("index").unwrap().iter().any(|object| is_segment(&object.path)) {
                done.set(true);
                take(5, Mode::Replace);
                for beat in fixture.lake.heartbeats().unwrap().iter().filter(|_| !is_known) {
                    fixture.lake.end_beat(&beat.writer).unwrap();
                }
                let settings =
                    GcSettings { keep_versions: 1, keep_states: 1, grace_ms: 60_000, ..GcSettings::new("gc") };
                collect(&fixture.lake, fixture.now(), &settings).unwrap();
            }
            fixture.now()
        };
        trawl_index::publish(&fixture.lake, &now, &fixture.writer(), &fixture.build_options(), &|_| ()).unwrap();
        assert!(done.get());
        let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
        let rows = pinned.urls("x.com", id, &Page::at(0, 100), &Filter::default(), &Principal::anyone()).unwrap();
        assert_eq!(rows.items.len(), if is_known { 3 } else { 5 });
    }
}

#[test]
fn a_lost_index_is_rebuilt_from_the_rows() {
    let mut fixture = Fixture::new();
    let mut dice = Dice(21);
    let hosts = hosts(&mut dice, 40);
    let ids: Vec<u32> = ["a", "b"].map(|n| fixture.register(DatasetInfo::named(n))).into();
    for round in 0..4 {
        fixture.ingest(ids[round % 2], records(&mut dice, &hosts, 200, true), |_| ());
        fixture.publish();
    }
    for segment in &fixture.lake.current().unwrap().current().unwrap().segments {
        for listed in fixture.store.list(&format!("index/{}", segment.id)).unwrap() {
            fixture.store.delete(&listed.path).unwrap();
        }
    }
    assert!(Lake::open(fixture.store.clone(), Options::default()).is_err());
    let options = fixture.build_options();
    let rebuilt =
        trawl_index::rebuild(&fixture.lake, None, &|| fixture.now(), &fixture.writer(), &options, &|_| ()).unwrap();
    let pinned = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    assert_eq!(Some(pinned.version()), rebuilt.version.as_deref());
    assert_eq!(pinned.stats().unwrap().segments, 1);
    for domain in fixture.domains() {
        let answer = pinned.domain(&domain, &Principal::anyone()).unwrap();
        let found: Vec<_> = answer.datasets.iter().map(|d| (d.dataset_id, d.url_count_est)).collect();
        let expected: Vec<_> = fixture.expected_counts(&domain).iter().map(|(id, rows, _)| (*id, *rows)).collect();
        assert_eq!(found, expected, "{domain}");
    }
}

/// While one request opens a new version, the others answer from the one before, unless that shows too much.
#[test]
fn a_new_dataset_makes_nobody_wait_and_a_closed_one_everybody() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("old"));
    fixture.ingest(id, urls("x.com", 1), |_| ());
    fixture.publish();
    // Segments are the only objects below index/ whose names begin with a year.
    let gate = Arc::new(GatedStore::new(fixture.store.clone(), "index/2"));
    let lake = Lake::open(gate.clone() as Arc<dyn Store>, Options::default()).unwrap();
    let before = lake.pin().unwrap().version().to_owned();

    let new = fixture.register(DatasetInfo::named("new"));
    fixture.ingest(new, urls("x.com", 2), |_| ());
    fixture.publish();
    let asked = |what: &str| {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            gate.shut();
            let first = scope.spawn(|| lake.pin().unwrap().version().to_owned());
            until(|| gate.came() > 0);
            let second = scope.spawn(|| tell.send(lake.pin().unwrap().version().to_owned()).unwrap());
            let waits = if what == "new" { Duration::from_secs(60) } else { Duration::from_millis(200) };
            let early = told.recv_timeout(waits).ok();
            gate.open();
            second.join().unwrap();
            (first.join().unwrap(), early)
        })
    };
    let (opened, early) = asked("new");
    assert_eq!(early.as_deref(), Some(&*before), "the others do not wait for it");
    assert!(opened != before && lake.pin().unwrap().version() == opened);

    // Published again, and the old dataset is no longer for everyone.
    fixture.ingest(new, urls("x.com", 3), |_| ());
    fixture.publish();
    let close = |manifest: &mut trawl_store::Manifest| {
        let dataset = manifest.dataset_mut(id).unwrap();
        dataset.info.acl = trawl_store::Acl::Principals(vec!["ann".into()]);
        Ok(())
    };
    fixture.lake.commit(fixture.now(), &fixture.writer(), close).unwrap();
    let (_, early) = asked("closed");
    assert_eq!(early, None, "what it shows is not for everyone any more");
}

fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(1));
    }
}
