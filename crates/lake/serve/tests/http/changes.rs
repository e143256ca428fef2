//! A lake that changes under the server: remade, put back, moved away and back, published every moment.

use crate::fixture::{DenyTarget, Fixture, ask, deny, init};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use trawl_serve::{Config, Event, Running};
use trawl_store::Acl;

fn serve(fixture: &Fixture) -> (Running, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let server = fixture.serve(Config {
        poll: Duration::from_millis(100),
        on_event: Box::new(move |event| {
            if let Event::LakeChanged(text) = event {
                sink.lock().unwrap().push((*text).to_owned());
            }
        }),
        ..Config::default()
    });
    (server, heard)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(30));
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to)
        } else {
            std::fs::copy(entry.path(), to).map(|_| ()).unwrap()
        }
    }
}

#[test]
fn a_lake_that_is_put_back_or_remade_is_answered_from_what_is_there() {
    let fixture = Fixture::new();
    fixture.add("first", "http://first.com/\n");
    copy(&fixture.path("lake"), &fixture.path("backup"));
    fixture.add("second", "http://second.com/\n");
    let (server, heard) = serve(&fixture);
    let status = |name: &str| ask(server.address(), &format!("/v1/domain/{name}")).0;
    assert_eq!((status("first.com"), status("second.com")), (200, 200));

    std::fs::remove_dir_all(fixture.path("lake")).unwrap();
    copy(&fixture.path("backup"), &fixture.path("lake"));
    until("the old state answers", || (status("first.com"), status("second.com")) == (200, 404));
    until("it is told", || ask(server.address(), "/readyz").1["lake_changes"].as_u64() >= Some(1));

    // Another lake, with as many states and other names.
    let made = fixture.path("made");
    let lake = init(&made, "other");
    std::fs::write(fixture.path("third.txt"), "http://third.com/\n").unwrap();
    fixture.take(&lake, "third", &fixture.path("third.txt"), Acl::Public, Vec::new());
    std::fs::rename(fixture.path("lake"), fixture.path("old")).unwrap();
    std::fs::rename(&made, fixture.path("lake")).unwrap();
    until("the other lake answers", || (status("first.com"), status("third.com")) == (404, 200));
    let reopened = trawl_store::Lake::open(Arc::new(trawl_store::DirStore::new(fixture.path("lake")))).unwrap();
    deny(&reopened, DenyTarget::Domain("third.com".into()));
    assert_eq!(status("third.com"), 404, "a denial counts from the next request on");
    assert!(
        heard.lock().unwrap().iter().any(|text| text.contains("another lake") || text.contains("went back")),
        "{heard:?}"
    );
}

#[test]
fn a_lake_that_is_changed_for_a_longer_one_or_put_back_and_written_to_is_told() {
    let fixture = Fixture::new();
    fixture.add("first", "http://first.com/\n");
    let made = fixture.path("made");
    let other = init(&made, "other");
    for name in ["third", "fourth"] {
        std::fs::write(fixture.path(&format!("{name}.txt")), format!("http://{name}.com/\n")).unwrap();
        fixture.take(&other, name, &fixture.path(&format!("{name}.txt")), Acl::Public, Vec::new());
    }
    // It no longer keeps a state of the number that the server knows: only its identity tells it from one that went on.
    let known = fixture.lake.current().unwrap().sequence;
    assert!(other.current().unwrap().sequence > known);
    for number in 1..=known {
        std::fs::remove_file(made.join(format!("index/manifests/{number:010}.json"))).unwrap();
    }
    let (server, heard) = serve(&fixture);
    let status = |name: &str| ask(server.address(), &format!("/v1/domain/{name}")).0;
    let told = |what: &str| heard.lock().unwrap().iter().any(|text| text.contains(what));
    assert_eq!(status("first.com"), 200);
    copy(&fixture.path("made"), &fixture.path("backup"));
    std::fs::rename(fixture.path("lake"), fixture.path("old")).unwrap();
    std::fs::rename(&made, fixture.path("lake")).unwrap();
    until("the other lake answers", || (status("first.com"), status("fourth.com")) == (404, 200));
    until("it is told", || told("another lake"));
    let ready = ask(server.address(), "/readyz").1;
    assert_eq!((&ready["lake_changes"], &ready["last_change"]), (&1.into(), &"another lake is in its place".into()));

    // Put back, and written to at once: there is a state of the known number, and it is not the known one.
    let open = |dir: &str| trawl_store::Lake::open(Arc::new(trawl_store::DirStore::new(fixture.path(dir)))).unwrap();
    deny(&open("lake"), DenyTarget::Domain("third.com".into()));
    until("the denial counts", || status("third.com") == 404);
    // Seen by the watch as well as by requests.
    std::thread::sleep(Duration::from_millis(400));
    std::fs::write(fixture.path("fifth.txt"), "http://fifth.com/\n").unwrap();
    fixture.take(&open("backup"), "fifth", &fixture.path("fifth.txt"), Acl::Public, Vec::new());
    std::fs::rename(fixture.path("lake"), fixture.path("older")).unwrap();
    std::fs::rename(fixture.path("backup"), fixture.path("lake")).unwrap();
    until("what was put back answers", || (status("third.com"), status("fifth.com")) == (200, 200));
    until("it is told", || told("went back"));
}

#[test]
fn a_lake_that_could_not_be_opened_is_replaced_by_another() {
    let fixture = Fixture::new();
    fixture.add("first", "http://first.com/\n");
    // Two lakes with as many states; of one the index is gone.
    for name in ["second", "third"] {
        let source = fixture.path(&format!("{name}.txt"));
        std::fs::write(&source, format!("http://{name}.com/\n")).unwrap();
        let lake = init(&fixture.path(name), name);
        fixture.take(&lake, name, &source, Acl::Public, Vec::new());
    }
    for entry in std::fs::read_dir(fixture.path("second/index")).unwrap().map(|entry| entry.unwrap()) {
        if entry.path().join("segment.json").exists() {
            std::fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    let (server, heard) = serve(&fixture);
    let status = |name: &str| ask(server.address(), &format!("/v1/domain/{name}.com")).0;
    assert_eq!(status("first"), 200);
    std::fs::rename(fixture.path("lake"), fixture.path("old")).unwrap();
    std::fs::rename(fixture.path("second"), fixture.path("lake")).unwrap();
    until("it cannot be opened", || status("second") == 503);
    until("it is told", || heard.lock().unwrap().iter().any(|text| text.contains("segment.json")));
    std::fs::rename(fixture.path("lake"), fixture.path("broken")).unwrap();
    std::fs::rename(fixture.path("third"), fixture.path("lake")).unwrap();
    until("the third answers", || (status("first"), status("third")) == (404, 200));
}

#[test]
fn a_lake_that_is_away_is_a_503_and_comes_back() {
    let fixture = Fixture::new();
    fixture.add("first", "http://first.com/\n");
    let (server, heard) = serve(&fixture);
    std::fs::rename(fixture.path("lake"), fixture.path("away")).unwrap();
    until("it is missed", || ask(server.address(), "/v1/domain/first.com").0 == 503);
    assert_eq!(ask(server.address(), "/v1/domain/first.com").1["error"], "lake_unavailable");
    assert_eq!(ask(server.address(), "/readyz").0, 503);
    assert_eq!(ask(server.address(), "/healthz").0, 200);
    until("it is told", || heard.lock().unwrap().iter().any(|text| text.contains("cannot be reached")));
    std::fs::rename(fixture.path("away"), fixture.path("lake")).unwrap();
    until("it answers again", || ask(server.address(), "/v1/domain/first.com").0 == 200);
    until("that is told too", || heard.lock().unwrap().iter().any(|text| text.contains("can be reached again")));
}

#[test]
fn new_versions_during_load_never_fail_or_mix() {
    let fixture = Fixture::new();
    fixture.add("d0", "http://x.com/0\n");
    let (server, _) = serve(&fixture);
    let (at, stop) = (server.address(), Arc::new(AtomicBool::new(false)));
    let askers: Vec<_> = (0..3)
        .map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                let mut asked = 0;
                while !stop.load(Ordering::Relaxed) {
                    let (status, answer) = ask(at, "/v1/domain/x.com");
                    assert_eq!(status, 200, "{answer}");
                    // Dataset n holds n + 1 rows: a mixed answer would have one without the others.
                    for (n, dataset) in answer["datasets"].as_array().unwrap().iter().enumerate() {
                        assert_eq!(dataset["url_count_est"].as_u64(), Some(n as u64 + 1), "{answer}");
                    }
                    asked += 1;
                }
                asked
            })
        })
        .collect();
    for n in 1..6 {
        let urls: String = (0..=n).map(|k| format!("http://x.com/{k}\n")).collect();
        fixture.add(&format!("d{n}"), &urls);
    }
    stop.store(true, Ordering::Relaxed);
    let asked: u64 = askers.into_iter().map(|asker| asker.join().unwrap()).sum();
    assert!(asked > 10);
    assert_eq!(ask(at, "/v1/domain/x.com").1["datasets"].as_array().unwrap().len(), 6);
}
