//! Where asking for the newest state costs a wait, it is asked for only so often; a denial counts from then on.

mod common;
#[path = "../../store/tests/doubles/mod.rs"]
mod doubles;

use common::Fixture;
use doubles::{CountingStore, GatedStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trawl_model::UrlRecord;
use trawl_query::{Lake, Options, Principal};
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{DatasetInfo, Store};

/// A clock that is set by hand.
#[derive(Clone, Default)]
struct Millis(Arc<AtomicU64>);

impl Millis {
    fn set(&self, to: u64) {
        self.0.store(to, Ordering::Relaxed);
    }
}

/// A lake of two domains, asked as if it were in a bucket.
fn served(every: Duration) -> (Fixture, Arc<CountingStore>, Lake, Millis) {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    fixture.ingest(id, ["http://a.com/", "http://b.com/"].map(UrlRecord::bare).into(), |_| ());
    fixture.publish();
    let store = Arc::new(CountingStore::polled(fixture.store.clone(), every));
    let millis = Millis::default();
    let clock = millis.clone();
    let passed = move || Duration::from_millis(clock.0.load(Ordering::Relaxed));
    let lake = Lake::open_at(store.clone() as Arc<dyn Store>, Options::default(), passed).unwrap();
    (fixture, store, lake, millis)
}

fn deny(fixture: &Fixture, domain: &str) {
    let deny = Deny { target: DenyTarget::Domain(domain.into()), since: fixture.now().to_string(), reason: None };
    let add = |manifest: &mut trawl_store::Manifest| {
        manifest.deny.push(deny.clone());
        Ok(())
    };
    fixture.lake.commit(fixture.now(), &fixture.writer(), add).unwrap();
}

fn shows(lake: &Lake, domain: &str) -> bool {
    lake.ask(|pinned| pinned.domain(domain, &Principal::anyone())).is_ok()
}

#[test]
fn a_denial_counts_within_the_polling_interval() {
    let (fixture, store, lake, millis) = served(Duration::from_secs(1));
    assert!(shows(&lake, "a.com"));
    deny(&fixture, "a.com");
    store.take();
    millis.set(499);
    assert!(shows(&lake, "a.com"), "nobody has asked since");
    assert_eq!(store.take().rounds, 0, "and nobody asks in the first half of an interval");
    // The request that asks sees it, and so do all behind it.
    millis.set(500);
    assert!(!shows(&lake, "a.com") && shows(&lake, "b.com"));
    deny(&fixture, "b.com");
    millis.set(1500);
    assert!(!shows(&lake, "b.com"), "at the end of the interval");
}

/// The one request that asks may wait long for its answer: the others do not go on with what they know past the interval.
#[test]
fn a_store_that_is_slow_to_answer_does_not_prolong_the_interval() {
    let (fixture, store, lake, millis) = served(Duration::from_secs(1));
    assert!(shows(&lake, "a.com"));
    store.take();
    std::thread::scope(|scope| {
        let held = store.hold();
        millis.set(600);
        let asker = scope.spawn(|| shows(&lake, "a.com"));
        held.came();
        assert!(shows(&lake, "b.com"), "the others do not wait for it");
        deny(&fixture, "b.com");
        millis.set(999);
        assert!(shows(&lake, "b.com"));
        millis.set(1000);
        let other = scope.spawn(|| shows(&lake, "b.com"));
        drop(held);
        assert!(asker.join().unwrap());
        assert!(!other.join().unwrap(), "what was known is too old");
    });
}

#[test]
fn without_an_interval_a_denial_counts_at_once() {
    let (fixture, _, lake, _) = served(Duration::ZERO);
    assert!(shows(&lake, "a.com"));
    deny(&fixture, "a.com");
    assert!(!shows(&lake, "a.com") && shows(&lake, "b.com"));
}

/// A store that is asked before every answer may be far away all the same.
#[test]
fn without_an_interval_segments_are_opened_at_the_same_time() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    for url in ["http://a.com/", "http://b.com/"] {
        fixture.ingest(id, vec![UrlRecord::bare(url)], |_| ());
        fixture.publish();
    }
    // Segments are the only objects below index/ whose names begin with a year.
    let gate = Arc::new(GatedStore::remote(fixture.store.clone(), "index/2"));
    assert!(gate.poll_every().is_zero());
    gate.shut();
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| Lake::open(gate.clone() as Arc<dyn Store>, Options::default()).map(drop));
        let begun = Instant::now();
        while gate.came() < 2 && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let came = gate.came();
        gate.open();
        opened.join().unwrap().unwrap();
        assert!(came >= 2, "the second segment waits for the first");
    });
}
