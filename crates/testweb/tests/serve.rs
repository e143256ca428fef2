//! The server over real sockets: every expected page is there, keep-alive holds, and the log tells what happened.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use trawl_testweb::{Config, TestWeb};

fn get(stream: &mut BufReader<TcpStream>, host: &str, target: &str) -> (u16, Vec<u8>) {
    // One write: a head in pieces would wait for delayed acknowledgements.
    let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: test\tagent\r\n\r\n");
    stream.get_mut().write_all(head.as_bytes()).unwrap();
    let (mut status, mut length, mut line) = (0, 0, String::new());
    loop {
        line.clear();
        assert!(stream.read_line(&mut line).unwrap() > 0, "closed early");
        if let Some(rest) = line.strip_prefix("HTTP/1.1 ") {
            status = rest[..3].parse().unwrap();
        } else if let Some(rest) = line.strip_prefix("Content-Length: ") {
            length = rest.trim().parse().unwrap();
        } else if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (status, body)
}

#[test]
fn one_connection_reads_every_page_and_the_log_has_every_line() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests.log");
    let config = Config { domains: 30, pages: 300, log: Some(log.clone()), ..Config::default() };
    let web = TestWeb::start(config).unwrap();
    assert!(web.addr().ip().is_loopback());
    let mut stream = BufReader::new(TcpStream::connect(web.addr()).unwrap());
    let expected = web.world().expected_pages(u32::MAX);
    for url in &expected {
        let rest = url.strip_prefix("http://").unwrap();
        let slash = rest.find('/').unwrap();
        let (status, body) = get(&mut stream, &rest[..slash], &rest[slash..]);
        assert_eq!(status, 200, "{url}");
        assert!(body.ends_with(b"</html>\n"), "{url}");
    }
    assert_eq!(get(&mut stream, "nobody.example", "/").0, 421);
    let host = web.world().hosts()[0].name.clone();
    assert_eq!(get(&mut stream, &host, "/nothing").0, 404);
    web.stop().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    let kinds = |k: &str| text.lines().filter(|l| l.starts_with(k)).count();
    assert!(text.starts_with("testweb-log 1\tseed=1\tunix_us="));
    assert_eq!((kinds("C\t"), kinds("R\t"), kinds("X\t")), (1, expected.len() + 2, 1));
    let last: Vec<&str> = text.lines().rfind(|l| l.starts_with("R\t")).unwrap().split('\t').collect();
    assert_eq!(last[6..10], [host.as_str(), "GET", "/nothing", "404"]);
    assert_eq!(last[11..], ["test\\x09agent", "-", "-", "ok"]);
}

#[test]
fn nonsense_closes_the_connection_and_is_logged() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests.log");
    let web = TestWeb::start(Config { log: Some(log.clone()), ..Config::default() }).unwrap();
    let mut stream = TcpStream::connect(web.addr()).unwrap();
    stream.write_all(b"\x16\x03\x01 what is this\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 400 "));
    drop(web);
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("\\x16\\x03\\x01 what is this\\x0d\\x0a\\x0d\\x0a\t400\t"), "{text}");
}
