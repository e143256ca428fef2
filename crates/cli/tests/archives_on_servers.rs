//! Archives on a server of HTTP, which has files and lists none.

mod common;

use common::{stderr, stdout, trawl};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Serves the files of a directory until the test ends.
fn serve_files(dir: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let dir = dir.clone();
            // A client that leaves is no fault of the test.
            std::thread::spawn(move || answer(&dir, stream.unwrap()).ok());
        }
    });
    address
}

/// Answers one request, for all of a file or a range of it.
fn answer(dir: &Path, mut stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let mut words = first.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut range = None;
    for line in lines.map_while(Result::ok).take_while(|line| !line.is_empty()) {
        if let Some(wanted) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            range = wanted.split_once('-').map(|(start, end)| [start, end].map(|n| n.parse::<usize>().unwrap()));
        }
    }
    let file = dir.join(path.trim_start_matches('/'));
    let Some(all) = std::fs::read(file).ok().filter(|_| ["GET", "HEAD"].contains(&method)) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let [start, end] = range.map_or([0, all.len()], |[start, end]| [start, all.len().min(end + 1)]);
    let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Range: bytes {start}-{}/{}\r\n\
         Last-Modified: Wed, 18 Nov 2026 13:00:00 GMT\r\nConnection: close\r\n\r\n",
        end - start,
        end - 1,
        all.len()
    )?;
    if method == "GET" { stream.write_all(&all[start..end]) } else { Ok(()) }
}

struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `trawl serve`, and where it listens.
fn serve(mut command: Command) -> (Served, String) {
    let args = ["--json", "serve", "--listen", "127.0.0.1:0"];
    let mut child = Served(command.args(args).stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let facts: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = facts["address"].as_str().unwrap().to_owned();
    (child, address)
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    all
}

#[test]
fn captures_are_replayed_from_archives_on_a_server() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let block = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nthe body";
    let record = format!(
        "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
         WARC-Date: 2026-06-24T01:02:03Z\r\nWARC-Target-URI: http://a.com/\r\nContent-Type: application/http;msgtype=response\r\n\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    );
    std::fs::create_dir(dir.join("files")).unwrap();
    std::fs::write(dir.join("files/one.warc"), record).unwrap();
    let run = |args: &[&str]| {
        let output = trawl(dir).arg("--quiet").args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {} {}", stdout(&output), stderr(&output));
    };
    run(&["convert", "files/one.warc", "files/two.wacz"]);
    let server = serve_files(dir.join("files"));
    for file in ["one.warc", "two.wacz"] {
        run(&["lake", "ingest", "--dataset", &file[..3], &format!("http://{server}/{file}")]);
    }
    // An index that is named itself: its archives are beside it, here as there.
    run(&["captures", "rebuild", "files"]);
    run(&["lake", "ingest", "--dataset", "index", "files/captures.parquet"]);
    run(&["lake", "ingest", "--dataset", "far", &format!("http://{server}/captures.parquet")]);
    let (_serving, address) = serve(trawl(dir));
    for dataset in ["one", "two", "index", "far"] {
        let found = get(&address, &format!("/v1/capture/{dataset}?url=http://a.com/&part=body"));
        assert!(found.starts_with("HTTP/1.") && found.ends_with("\r\n\r\nthe body"), "{dataset}: {found}");
    }
}
