//! How many reads a question costs, once the segments are open.
#![allow(clippy::print_stdout, reason = "times are told, not bounded")]

mod common;
#[path = "../../store/tests/doubles/mod.rs"]
mod doubles;

use common::Fixture;
use doubles::CountingStore;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trawl_model::{UnixMillis, UrlRecord};
use trawl_query::{Filter, Lake, Options, Page, Principal};
use trawl_store::{DatasetInfo, Store};

/// One dataset with one large domain and 20,000 small ones.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("tail"));
    let url = |host: String, n: u32| UrlRecord {
        ts: Some(UnixMillis(1_600_000_000_000 + i64::from(n) * 1000)),
        status: Some(200),
        ..UrlRecord::bare(format!("https://{host}/some/path/page-{n}.html?session={}", n * 7919))
    };
    let mut records: Vec<UrlRecord> = (0..40_000).map(|n| url(format!("www.tail{}.example", n / 2), n)).collect();
    records.extend((0..30_000).map(|n| url("big.example".into(), n)));
    fixture.ingest(id, records, |s| s.row_group_bytes = 2 << 20);
    fixture.publish();
    fixture
}

#[test]
fn questions_cost_few_reads() {
    let fixture = fixture();
    let counting = Arc::new(CountingStore::new(fixture.store.clone()));
    let store: Arc<dyn Store> = counting.clone();
    let lake = Lake::open(store, Options::default()).unwrap();
    let pinned = lake.pin().unwrap();
    let who = Principal::anyone();
    counting.take();

    for i in 0..500 {
        pinned.domain(&format!("tail{i}.example"), &who).unwrap();
        pinned.domain(&format!("stranger{i}.example"), &who).unwrap_err();
    }
    assert_eq!(counting.take().reads, 0, "domain → datasets needs no read once the segment is open");

    pinned.urls("tail19999.example", 1, &Page::default(), &Filter::default(), &who).unwrap();
    counting.take();
    for i in [0, 1, 777, 9_999, 19_998] {
        let answer = pinned.urls(&format!("tail{i}.example"), 1, &Page::default(), &Filter::default(), &who).unwrap();
        assert_eq!(answer.items.len(), 2);
        let cost = counting.take();
        assert!(cost.rounds <= 2, "{} rounds", cost.rounds);
        assert!(cost.bytes_read <= 1 << 20, "{} bytes", cost.bytes_read);
    }

    let first = pinned.urls("big.example", 1, &Page::at(0, 1000), &Filter::default(), &who).unwrap();
    let cost_first = counting.take();
    let late = pinned.urls("big.example", 1, &Page::at(29_000, 1000), &Filter::default(), &who).unwrap();
    let cost_late = counting.take();
    assert_eq!((first.total_est, first.items.len(), late.items.len()), (30_000, 1000, 1000));
    assert!(
        cost_late.bytes_read < cost_first.bytes_read * 3,
        "skipped rows are not read: {cost_late:?}, {cost_first:?}"
    );
    assert!(cost_late.rounds <= 2);
}

/// A lake that was just opened: the first page of any domain takes two rounds, one after the other, and few bytes. Prints what
/// each took with 20 ms a round; once more, from memory; and what opening the lake took.
#[test]
fn the_first_page_of_a_lake_just_opened_takes_two_rounds() {
    let fixture = fixture();
    let who = Principal::anyone();
    let ask = |pinned: &trawl_query::Pinned, domain: &str| {
        let begun = Instant::now();
        let page = pinned.urls(domain, 1, &Page::at(0, 100), &Filter::default(), &who).unwrap();
        assert!(!page.items.is_empty());
        begun.elapsed()
    };
    let mut times = Vec::new();
    let tails = (0..20).map(|n| format!("tail{}.example", n * 1000 + 7));
    for domain in tails.chain(["big.example".to_owned()]) {
        let counting = Arc::new(CountingStore::delayed(fixture.store.clone(), Duration::from_millis(20)));
        let lake = Lake::open(counting.clone() as Arc<dyn Store>, Options::default()).unwrap();
        let pinned = lake.pin().unwrap();
        let opened = counting.take();
        times.push(ask(&pinned, &domain));
        let cost = counting.take();
        assert!(cost.rounds <= 2, "{domain}: {cost:?}");
        assert!(cost.bytes_read <= 1 << 20, "{domain}: {cost:?}");
        // Only rows are read again: what tells where they are is known.
        let again = ask(&pinned, &domain);
        let warm = counting.take();
        assert!(warm.rounds <= 1 && warm.bytes_read <= cost.bytes_read, "{domain}: {warm:?}");
        if domain == "big.example" {
            println!("to open the lake: {opened:?}; first page of {domain}: {cost:?}; again: {warm:?}, {again:?}");
        }
    }
    times.sort_unstable();
    println!(
        "first pages, caches empty, 20 ms a round: median {:?}, p95 {:?}",
        times[times.len() / 2],
        times[times.len() * 19 / 20]
    );
}

/// The same rows in few files and in many: opening costs the same.
#[test]
fn opening_does_not_grow_with_the_number_of_files() {
    let open = |file_bytes: u64, row_group_bytes: u64| {
        let mut fixture = Fixture::new();
        let id = fixture.register(DatasetInfo::named("d"));
        let url = |n| UrlRecord::bare(format!("http://d{}.example/{n}", n % 500));
        fixture.ingest(id, (0..20_000).map(url).collect(), |s| {
            (s.file_bytes, s.row_group_bytes, s.page_rows) = (file_bytes, row_group_bytes, 100);
        });
        fixture.publish();
        let files = fixture.lake.dataset_newest(id).unwrap().unwrap().files.len();
        let counting = Arc::new(CountingStore::new(fixture.store.clone()));
        let lake = Lake::open(counting.clone() as Arc<dyn Store>, Options::default()).unwrap();
        lake.pin().unwrap().domain("d7.example", &Principal::anyone()).unwrap();
        let cost = counting.take();
        let page =
            lake.pin().unwrap().urls("d7.example", id, &Page::default(), &Filter::default(), &Principal::anyone());
        assert_eq!(page.unwrap().items.len(), 40);
        (files, cost)
    };
    let (few, cost_few) = open(1 << 30, 64 << 20);
    let (many, cost_many) = open(8_000, 4_000);
    assert!(few == 1 && many > 150, "{few} and {many} files");
    assert_eq!(cost_few.rounds, cost_many.rounds);
    // Top paths are summed file by file, and numbers have more digits: that is all. What grows with the files is read at once
    // while it is short, and not at all when it is long.
    assert!(cost_many.bytes_read < cost_few.bytes_read + 4 * 64 * 1024, "{cost_few:?}, {cost_many:?}");
    assert!(cost_many.reads <= cost_few.reads, "{cost_few:?}, {cost_many:?}");
}

#[test]
fn pinning_an_unchanged_lake_moves_no_bytes() {
    let fixture = fixture();
    let counting = Arc::new(CountingStore::new(fixture.store.clone()));
    let lake = Lake::open(counting.clone() as Arc<dyn Store>, Options::default()).unwrap();
    let first = lake.pin().unwrap();
    counting.take();
    let second = lake.pin().unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(counting.take().bytes_read, 0);
}

/// Nothing resident: everything is read by ranges, and the answers are the same.
#[test]
fn without_resident_files_answers_are_the_same() {
    let fixture = fixture();
    let counting = Arc::new(CountingStore::new(fixture.store.clone()));
    let resident = Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
    let options = Options { resident_bytes: 0, cache_bytes: 1 << 20 };
    let ranged = Lake::open(counting.clone() as Arc<dyn Store>, options).unwrap().pin().unwrap();
    let who = Principal::anyone();
    for i in (0..20_000).step_by(997) {
        let name = format!("tail{i}.example");
        assert_eq!(ranged.domain(&name, &who).unwrap(), resident.domain(&name, &who).unwrap());
        let page = Page::default();
        let urls = |p: &trawl_query::Pinned| p.urls(&name, 1, &page, &Filter::default(), &who).unwrap();
        assert_eq!(urls(&ranged), urls(&resident));
    }
    counting.take();
    ranged.domain("tail12345.example", &who).unwrap();
    let cost = counting.take();
    assert!(cost.rounds <= 9 && cost.bytes_read < 64 << 10, "at most two for each file on the way: {cost:?}");
    assert!(cost.rounds > 0);
    ranged.domain("tail12345.example", &who).unwrap();
    assert_eq!(counting.take().reads, 0, "what was read a moment ago is kept");
}

/// One URL of a domain that is in very many files, or in very many row groups: rounds grow with neither.
#[test]
fn a_url_is_found_without_reading_its_domain() {
    let record =
        |n: u32| UrlRecord::bare(format!("https://big.example/some/path/page-{n:06}.html?session={}", n * 7919));
    let mut fixture = Fixture::new();
    let (many_groups, many_files) =
        (fixture.register(DatasetInfo::named("groups")), fixture.register(DatasetInfo::named("files")));
    fixture.ingest(many_groups, (0..60_000).map(record).collect(), |s| s.row_group_bytes = 32 << 10);
    for file in 0..90 {
        fixture.ingest(many_files, (0..50).map(|n| record(n * 90 + file)).collect(), |_| ());
    }
    fixture.publish();
    let counting = Arc::new(CountingStore::new(fixture.store.clone()));
    let store: Arc<dyn Store> = counting.clone();
    let pinned = Lake::open(store, Options::default()).unwrap().pin().unwrap();
    let who = Principal::anyone();
    let files = |id| fixture.lake.dataset_newest(id).unwrap().unwrap().files;
    assert!(files(many_groups)[0].row_groups > 64 && files(many_files).len() > 64);
    counting.take();
    for n in [0, 1, 777, 4_000, 4_499] {
        let url = record(n).url;
        let answer = pinned.url(&url, 10, &who).unwrap();
        let found: Vec<_> = answer.items.iter().map(|hit| (hit.dataset_id, hit.item.url.clone())).collect();
        assert_eq!(found, [(many_groups, url.clone()), (many_files, url)]);
        let cost = counting.take();
        assert!(cost.rounds <= 24 && cost.reads <= 600 && cost.bytes_read <= 512 << 10, "{cost:?}");
    }
    for (from, to) in [(100, 110), (59_990, 60_000)] {
        let path_prefix = Some(format!("/some/path/page-{:05}", from / 10));
        let filter = Filter { host: Some("big.example".into()), path_prefix, ..Filter::default() };
        let page = pinned.urls("big.example", many_groups, &Page::default(), &filter, &who).unwrap();
        let found: Vec<_> = page.items.into_iter().map(|item| item.url).collect();
        assert_eq!(found, (from..to).map(|n| record(n).url).collect::<Vec<_>>());
        assert!(counting.take().bytes_read < 1 << 20);
    }
}
