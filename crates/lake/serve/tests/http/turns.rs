//! Questions that wait for their turn, and those that nobody waits for any more. The store holds rows back, so that the test
//! decides how long an answer takes.

#[path = "../../../store/tests/doubles/mod.rs"]
mod doubles;

use crate::fixture::{Fixture, connect, get};
use doubles::{CountingStore, GatedStore};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trawl_serve::{Config, Running};
use trawl_store::{DirStore, Store};

const HOUR: Duration = Duration::from_secs(3600);
/// Rows that a filter looks at in one read.
const STEP: usize = 5000;

fn serve(fixture: &Fixture, config: Config) -> (Running, Arc<GatedStore>) {
    let gate = Arc::new(GatedStore::new(Arc::new(DirStore::new(fixture.path("lake"))), "urls/"));
    let server = fixture.serve_from(gate.clone() as Arc<dyn Store>, config).unwrap();
    (server, gate)
}

fn gauge(at: SocketAddr, name: &str) -> u64 {
    let text = get(at, "/metrics").text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A page that nobody has asked for before.
fn page(n: u32) -> String {
    format!("/v1/domain/x.com/datasets/all/urls?limit={n}")
}

#[test]
fn a_burst_waits_for_its_turn_and_what_is_too_much_is_refused() {
    let fixture = Fixture::new();
    fixture.add("all", "http://x.com/1\nhttp://x.com/2\n");
    let (server, gate) = serve(
        &fixture,
        Config { max_concurrent: 1, max_waiting: 2, max_wait: HOUR, timeout: HOUR, ..Config::default() },
    );
    let at = server.address();
    gate.shut();
    std::thread::scope(|scope| {
        let mut askers = vec![scope.spawn(move || get(at, &page(1)).status)];
        until("the first one reads", || gate.came() == 1);
        askers.extend([2, 3].map(|n| scope.spawn(move || get(at, &page(n)).status)));
        until("two wait", || gauge(at, "trawl_questions_waiting") == 2);
        let refused = get(at, &page(4));
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        assert_eq!(refused.json()["error"], "busy");
        gate.open();
        for asker in askers {
            assert_eq!(asker.join().unwrap(), 200);
        }
    });
    assert_eq!((gauge(at, "trawl_questions_waiting"), gauge(at, "trawl_questions")), (0, 0));
}

#[test]
fn a_queue_that_does_not_move_is_left() {
    let fixture = Fixture::new();
    fixture.add("all", "http://x.com/1\nhttp://x.com/2\n");
    let max_wait = Duration::from_millis(50);
    let (server, gate) = serve(&fixture, Config { max_concurrent: 1, max_wait, timeout: HOUR, ..Config::default() });
    let at = server.address();
    gate.shut();
    std::thread::scope(|scope| {
        let first = scope.spawn(move || get(at, &page(1)).status);
        until("the first one reads", || gate.came() == 1);
        assert_eq!(get(at, &page(2)).status, 503);
        gate.open();
        assert_eq!(first.join().unwrap(), 200);
        until("its place is free", || gauge(at, "trawl_questions") == 0);
        assert_eq!(get(at, &page(2)).status, 200);
    });
}

/// A filter that no row passes looks at all of them; when its asker leaves, the read at hand is the last one.
#[test]
fn a_question_whose_asker_left_stops() {
    let fixture = Fixture::new();
    let rows = 8 * STEP;
    fixture.add("all", &(0..rows).map(|n| format!("http://x.com/{n:05}\n")).collect::<String>());
    let (server, gate) =
        serve(&fixture, Config { max_concurrent: 1, timeout: HOUR, budget: HOUR, ..Config::default() });
    let (at, path) = (server.address(), "/v1/domain/x.com/datasets/all/urls?status=404");
    assert_eq!(get(at, path).status, 200);
    let of_all = gate.came();
    assert!(of_all >= (rows / STEP) as u64, "{of_all} reads of all rows");

    gate.shut();
    let mut asker = connect(at);
    // Not the same question: its answer is kept.
    asker.write_all(format!("GET {path}&limit=7 HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
    until("it reads", || gate.came() == 1);
    drop(asker);
    // The one that asks for this number is the one that is left.
    until("the server sees it leave", || gauge(at, "trawl_connections") == 1);
    gate.open();
    until("its place is free", || gauge(at, "trawl_questions") == 0);
    assert_eq!(gate.came(), 1, "it went on reading for nobody");
}

/// A browser that shows a page asks for all captures of it at once.
#[test]
fn a_burst_of_streams_waits_for_its_turn() {
    let fixture = Fixture::new();
    fixture.add("all", "http://x.com/1\nhttp://x.com/2\n");
    let (server, gate) =
        serve(&fixture, Config { max_streams: 1, max_waiting: 2, max_wait: HOUR, timeout: HOUR, ..Config::default() });
    let at = server.address();
    gate.shut();
    std::thread::scope(|scope| {
        let ask = move || get(at, "/cdx?url=x.com/1").status;
        let mut askers = vec![scope.spawn(ask)];
        until("the first one reads", || gate.came() >= 1);
        askers.extend([scope.spawn(ask), scope.spawn(ask)]);
        // The one that asks for this number is one of them.
        until("all are there", || gauge(at, "trawl_connections") == 4);
        gate.open();
        for asker in askers {
            assert_eq!(asker.join().unwrap(), 200);
        }
    });
    until("all places are free", || gauge(at, "trawl_streams") == 0);
}

/// Either way nothing comes in time. An operator looks for a lake that is away elsewhere than for a question that takes long.
#[test]
fn a_store_that_hangs_is_not_a_slow_answer() {
    let fixture = Fixture::new();
    fixture.add("all", "http://x.com/1\n");
    let short = Duration::from_millis(500);
    let config = || Config { timeout: short, stream_timeout: short, ..Config::default() };
    let (urls, export) = (page(1), "/v1/datasets/all/export?format=ndjson");
    let failure = |at, path: &str| {
        let reply = get(at, path);
        (reply.status, reply.json()["error"].as_str().unwrap().to_owned())
    };
    let (server, gate) = serve(&fixture, config());
    gate.shut();
    for path in [urls.as_str(), export] {
        assert_eq!(failure(server.address(), path), (504, "timeout".to_owned()), "{path}");
    }
    gate.open();
    let store = Arc::new(CountingStore::new(Arc::new(DirStore::new(fixture.path("lake")))));
    let server = fixture.serve_from(store.clone() as Arc<dyn Store>, config()).unwrap();
    let held = store.hold();
    for path in [urls.as_str(), export, "/readyz"] {
        assert_eq!(failure(server.address(), path), (503, "lake_unavailable".to_owned()), "{path}");
    }
    drop(held);
    assert_eq!(get(server.address(), &urls).status, 200);
}
