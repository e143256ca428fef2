//! A lake in a directory, a server over it, and a client that sends exactly the bytes it is told to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trawl_ingest::{IngestSettings, ingest, source};
use trawl_io::{Fs, RealFs};
use trawl_model::UnixMillis;
use trawl_query::Archives;
use trawl_serve::{Config, Running, Server};
use trawl_store::manifest::Deny;
pub use trawl_store::manifest::DenyTarget;
use trawl_store::{Acl, DatasetInfo, DirStore, Store};

pub const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

pub struct Fixture {
    pub dir: tempfile::TempDir,
    pub lake: trawl_store::Lake,
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let lake = init(&dir.path().join("lake"), "probe");
        Self { dir, lake }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A dataset of a list of URLs.
    pub fn add(&self, name: &str, text: &str) -> u32 {
        self.add_file(name, &format!("{name}.txt"), text.as_bytes(), Acl::Public)
    }

    /// A dataset of a file, whose captures are read from it.
    pub fn add_file(&self, name: &str, file: &str, bytes: &[u8], acl: Acl) -> u32 {
        let path = self.path(file);
        std::fs::write(&path, bytes).unwrap();
        let base = format!("file://{}/", self.dir.path().display());
        self.take(&self.lake, name, &path, acl, vec![base])
    }

    pub fn take(&self, lake: &trawl_store::Lake, name: &str, path: &Path, acl: Acl, archive_base: Vec<String>) -> u32 {
        let info = DatasetInfo { archive_base, acl, ..DatasetInfo::named(name) };
        let id = lake.register_dataset(NOW, &format!("register-{name}"), &info).unwrap();
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        let sources = [source::open(&fs, path, None).unwrap()];
        let settings = IngestSettings::new(format!("writer-{name}"), self.dir.path());
        ingest(lake, id, &sources, &settings, &|| NOW, &|_| {}).unwrap();
        let options = trawl_index::BuildOptions::new(self.dir.path());
        trawl_index::publish(lake, &|| NOW, &format!("publish-{name}"), &options, &|_| {}).unwrap();
        id
    }

    pub fn serve(&self, config: Config) -> Running {
        self.try_serve(config).unwrap()
    }

    pub fn try_serve(&self, config: Config) -> Result<Running, trawl_serve::Error> {
        self.serve_from(Arc::new(DirStore::new(self.path("lake"))), config)
    }

    /// Serves the lake in a store.
    pub fn serve_from(&self, store: Arc<dyn Store>, config: Config) -> Result<Running, trawl_serve::Error> {
        let lake = trawl_query::Lake::open(store, trawl_query::Options::default()).unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let archives = Some(Archives::new(Arc::new(RealFs)));
        Server::start(Arc::new(lake), Config { listen, archives, ..config })
    }
}

/// Denies something from now on.
pub fn deny(lake: &trawl_store::Lake, target: DenyTarget) {
    let deny = Deny { target, since: NOW.to_string(), reason: None };
    lake.commit(NOW, "deny", |manifest| {
        manifest.deny.push(deny.clone());
        Ok(())
    })
    .unwrap();
}

/// A lake without datasets.
pub fn init(dir: &Path, nonce: &str) -> trawl_store::Lake {
    std::fs::create_dir_all(dir).unwrap();
    let store: Arc<dyn Store> = Arc::new(DirStore::new(dir));
    let list = trawl_url::SuffixList::builtin().text();
    trawl_store::Lake::init(store, NOW, nonce, list.as_bytes()).unwrap()
}

/// An answer.
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Sends bytes and reads until the server closes.
pub fn send(address: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    // A server that has refused a request may close before it has read all of it.
    let _ = stream.read_to_end(&mut answer);
    answer
}

pub fn parse(answer: &[u8]) -> Reply {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or_else(|| panic!("no head in {answer:?}"));
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = answer[end + 4..].to_vec();
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        let mut plain = Vec::new();
        trawl_http::Dechunk::new(&body[..]).read_to_end(&mut plain).unwrap();
        body = plain;
    }
    Reply { status, head, body }
}

pub fn request(address: SocketAddr, method: &str, path: &str, headers: &str) -> Reply {
    let text = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    parse(&send(address, text.as_bytes()))
}

pub fn get(address: SocketAddr, path: &str) -> Reply {
    request(address, "GET", path, "")
}

/// Status and JSON.
pub fn ask(address: SocketAddr, path: &str) -> (u16, serde_json::Value) {
    let reply = get(address, path);
    (reply.status, reply.json())
}

/// One WARC record.
pub fn record(kind: &str, id: u32, more: &str, block: &[u8]) -> Vec<u8> {
    let mut all = format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{id:012}>\r\n{more}\
         Content-Length: {}\r\n\r\n",
        block.len()
    )
    .into_bytes();
    all.extend_from_slice(block);
    all.extend_from_slice(b"\r\n\r\n");
    all
}

/// A response record.
pub fn response(id: u32, url: &str, date: &str, http: &[u8]) -> Vec<u8> {
    let more =
        format!("WARC-Date: {date}\r\nWARC-Target-URI: {url}\r\nContent-Type: application/http;msgtype=response\r\n");
    record("response", id, &more, http)
}

/// How a connection of HTTP/2 begins.
pub const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of HTTP/2.
pub fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut all = vec![0, 0, u8::try_from(payload.len()).unwrap(), kind, flags, 0, 0, 0, stream];
    all.extend_from_slice(payload);
    all
}

/// The fields of a GET request of HTTP/2: method and scheme by number, the path and the authority as they are.
pub fn h2_get(path: &str) -> Vec<u8> {
    [&[0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()], path.as_bytes(), &[0x41, 1, b'x']].concat()
}
