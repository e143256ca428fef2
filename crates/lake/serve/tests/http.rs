//! The API over real sockets: answers, refusals, versions that change, requests that are no good.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trawl_ingest::{IngestSettings, ingest, source};
use trawl_io::{Fs, RealFs};
use trawl_model::UnixMillis;
use trawl_serve::{Config, Running, Server};
use trawl_store::{DatasetInfo, DirStore, Store};

const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

struct Fixture {
    dir: tempfile::TempDir,
    lake: trawl_store::Lake,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(DirStore::new(dir.path().join("lake")));
        std::fs::create_dir_all(dir.path().join("lake")).unwrap();
        let list = trawl_url::SuffixList::builtin().text();
        let lake = trawl_store::Lake::init(store, NOW, "probe", list.as_bytes()).unwrap();
        Self { dir, lake }
    }

    fn add(&self, name: &str, text: &str) -> u32 {
        let path = self.dir.path().join(format!("{name}.txt"));
        std::fs::write(&path, text).unwrap();
        let info = DatasetInfo { archive_base: vec!["file:///secret/".into()], ..DatasetInfo::named(name) };
        let id = self.lake.register_dataset(NOW, "test", &info).unwrap();
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let sources = [source::open(&fs, &path, None).unwrap()];
        let settings = IngestSettings::new(format!("writer-{name}"), self.dir.path());
        ingest(&self.lake, id, &sources, &settings, &|| NOW, &|_| {}).unwrap();
        let options = trawl_index::BuildOptions::new(self.dir.path());
        trawl_index::publish(&self.lake, &|| NOW, &format!("publish-{name}"), &options, &|_| {}).unwrap();
        id
    }

    fn serve(&self, config: Config) -> Running {
        let store: Arc<dyn Store> = Arc::new(DirStore::new(self.dir.path().join("lake")));
        let lake = trawl_query::Lake::open(store, trawl_query::Options::default()).unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Server::start(Arc::new(lake), Config { listen, ..config }).unwrap()
    }
}

fn send(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: SocketAddr, path: &str) -> (u16, serde_json::Value) {
    let answer = send(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|e| panic!("{path}: {e}: {body}")))
}

#[test]
fn the_two_calls_of_the_api() {
    let fixture = Fixture::new();
    let urls: String = (0..250).map(|n| format!("https://www.example.com/a/{n:03}\n")).collect();
    let id = fixture.add("first", &format!("{urls}http://other.co.uk/\n"));
    let server = fixture.serve(Config::default());
    let at = server.address();

    let (status, answer) = get(at, "/v1/domain/example.com");
    assert_eq!(status, 200);
    assert_eq!(answer["domain"], "example.com");
    assert_eq!(answer["datasets"][0]["dataset_id"], id);
    assert_eq!(answer["datasets"][0]["url_count_est"], 250);
    assert_eq!(get(at, "/v1/domain/WWW.Example.COM.").1["datasets"], answer["datasets"]);

    let mut seen = Vec::new();
    let mut offset = Some(0);
    while let Some(from) = offset {
        let (status, page) = get(at, &format!("/v1/domain/example.com/datasets/{id}/urls?offset={from}&limit=99"));
        assert_eq!((status, page["total_est"].as_u64()), (200, Some(250)));
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["url"].as_str().unwrap().to_owned()));
        offset = page["next_offset"].as_u64();
    }
    assert_eq!(seen, urls.lines().collect::<Vec<_>>());

    let (_, names) = get(at, "/v1/domains?prefix=ex");
    assert_eq!(names["domains"][0]["domain"], "example.com");
    let (_, datasets) = get(at, "/v1/datasets");
    assert_eq!(datasets["datasets"][0]["archive_base"].as_array().unwrap().len(), 0, "a path of this machine leaked");
    server.stop().unwrap();
}

#[test]
fn refusals_have_a_status_and_a_code() {
    let fixture = Fixture::new();
    let id = fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config::default());
    for (path, status, code) in [
        ("/v1/domain/absent.example".to_owned(), 404, "unknown_domain"),
        ("/v1/domain/com".to_owned(), 404, "unknown_domain"),
        ("/v1/domain/%20".to_owned(), 400, "bad_domain"),
        ("/v1/domain/%ff".to_owned(), 400, "bad_request"),
        ("/v1/domain/example.com/datasets/99/urls".to_owned(), 404, "unknown_dataset"),
        ("/v1/domain/example.com/datasets/x/urls".to_owned(), 400, "bad_request"),
        (format!("/v1/domain/example.com/datasets/+{id}/urls"), 400, "bad_request"),
        (format!("/v1/domain/example.com/datasets/0{id}/urls"), 400, "bad_request"),
        (format!("/v1/domain/example.com/datasets/{id}/urls?limit=-1"), 400, "bad_request"),
        (format!("/v1/domain/example.com/datasets/{id}/urls?limitt=1"), 400, "bad_request"),
        (format!("/v1/domain/example.com/datasets/{id}/urls?cursor=rubbish"), 400, "bad_cursor"),
        (format!("/v1/domain/example.com/datasets/{id}/urls?from=yesterday"), 400, "bad_request"),
        ("/v2/domain/example.com".to_owned(), 404, "unknown_path"),
    ] {
        let (got, answer) = get(server.address(), &path);
        assert_eq!((got, answer["error"].as_str()), (status, Some(code)), "{path}: {answer}");
    }
    let post =
        send(server.address(), "POST /v1/stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert!(post.starts_with("HTTP/1.1 405"), "{post}");
    assert!(send(server.address(), "nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
}

#[test]
fn what_is_published_meanwhile_is_served() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config::default());
    assert_eq!(get(server.address(), "/v1/domain/example.org").0, 404);
    fixture.add("second", "http://example.org/\nhttp://example.com/x\n");
    assert_eq!(get(server.address(), "/v1/domain/example.org").0, 200);
    assert_eq!(get(server.address(), "/v1/domain/example.com").1["datasets"].as_array().unwrap().len(), 2);
}

#[test]
fn the_page_runs_only_our_own_scripts() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config::default());
    let page = send(server.address(), "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(page.contains("content-security-policy: default-src 'none'; script-src 'self'"), "{page}");
    assert!(!page.contains("<script>") && !page.contains("style="), "inline code would be refused by the policy");
}

#[test]
fn a_damaged_lake_is_told_to_the_operator_and_not_to_the_asker() {
    let fixture = Fixture::new();
    let id = fixture.add("first", "http://example.com/\n");
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let server = fixture.serve(Config {
        on_error: Box::new(move |error| sink.lock().unwrap().push(error.to_string())),
        ..Config::default()
    });
    damage_parquet(&fixture.dir.path().join("lake/urls"));
    let (status, answer) = get(server.address(), &format!("/v1/domain/example.com/datasets/{id}/urls"));
    assert_eq!((status, answer["error"].as_str()), (500, Some("lake_error")));
    assert!(!answer.to_string().contains(".parquet"), "{answer}");
    assert!(heard.lock().unwrap().iter().any(|text| text.contains(".parquet")), "{heard:?}");
}

/// Overwrites the data of every Parquet file below `dir`.
fn damage_parquet(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() {
            damage_parquet(&entry);
        } else if entry.extension().is_some_and(|e| e == "parquet") {
            let len = std::fs::metadata(&entry).unwrap().len();
            std::fs::write(&entry, vec![0xa5; usize::try_from(len).unwrap()]).unwrap();
        }
    }
}
