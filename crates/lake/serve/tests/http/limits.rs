//! Limits of number and time.

use crate::fixture::{Fixture, H2_PREFACE, ask, connect, frame, get, h2_get};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trawl_serve::{Config, TlsFiles};

#[test]
fn idle_connections_make_room_for_others() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config { max_connections: 20, ..Config::default() });
    let idle: Vec<_> = (0..200).map(|_| connect(server.address())).collect();
    for _ in 0..10 {
        assert_eq!(ask(server.address(), "/v1/domain/example.com").0, 200);
    }
    let open = get(server.address(), "/metrics").text();
    let count: usize = open.lines().find_map(|l| l.strip_prefix("trawl_connections ")).unwrap().parse().unwrap();
    assert!(count <= 20, "{count}");
    drop(idle);
}

#[test]
fn heads_that_trickle_in_and_idle_ones_are_cut_off() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let second = Duration::from_secs(1);
    let server = fixture.serve(Config { head_timeout: second, idle_timeout: second, ..Config::default() });
    let mut slow = connect(server.address());
    let begun = Instant::now();
    let mut sent = 0;
    for byte in b"GET /v1/stats HTTP/1.1\r\nHost: a-very-long-name-that-takes-a-while.example\r\n\r\n" {
        if slow.write_all(&[*byte]).is_err() || begun.elapsed() > Duration::from_secs(20) {
            break;
        }
        sent += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(sent < 60 && begun.elapsed() < Duration::from_secs(15), "{sent} bytes in {:?}", begun.elapsed());
    let mut idle = connect(server.address());
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut all = Vec::new();
    let begun = Instant::now();
    idle.read_to_end(&mut all).unwrap();
    assert!(all.starts_with(b"HTTP/1.1 200") && begun.elapsed() < Duration::from_secs(15));
}

/// The time for a head runs from its first byte: a connection that is only idle stays open for the longer of the two times.
#[test]
fn the_time_for_a_head_does_not_run_between_requests() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let (short, long) = (Duration::from_millis(300), Duration::from_secs(60));
    let server = fixture.serve(Config { head_timeout: short, idle_timeout: long, ..Config::default() });
    let mut kept = connect(server.address());
    for _ in 0..3 {
        kept.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = vec![0; 4096];
        let len = kept.read(&mut answer).unwrap();
        assert!(answer[..len].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer[..len]));
        std::thread::sleep(short * 4);
    }
    kept.write_all(b"GET /hea").unwrap();
    let begun = Instant::now();
    kept.read_to_end(&mut Vec::new()).unwrap();
    assert!(begun.elapsed() < long / 2, "a head that stops coming was waited for {:?}", begun.elapsed());
}

/// What is refused for want of room is answered, also where the request lies unread in the socket.
#[test]
fn a_connection_without_room_gets_an_answer() {
    let fixture = Fixture::new();
    let urls: String = (0..60_000).map(|n| format!("http://big.com/{n:060}\n")).collect();
    fixture.add("all", &urls);
    let server = fixture.serve(Config { max_connections: 1, ..Config::default() });
    let mut busy = connect(server.address());
    busy.write_all(b"GET /v1/datasets/all/export HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    busy.read_exact(&mut [0; 1000]).unwrap();
    for _ in 0..50 {
        let refused = get(server.address(), "/v1/stats");
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    }
}

#[test]
fn a_client_may_ask_only_so_much_at_once() {
    let fixture = Fixture::new();
    let urls: String = (0..60_000).map(|n| format!("http://big.com/{n:060}\n")).collect();
    fixture.add("all", &urls);
    let server = fixture.serve(Config { max_per_client: 1, ..Config::default() });
    let mut slow = connect(server.address());
    slow.write_all(b"GET /v1/datasets/all/export HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    slow.read_exact(&mut [0; 1000]).unwrap();
    let refused = get(server.address(), "/v1/stats");
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    assert_eq!(refused.json()["error"], "too_many_requests");
}

/// With HTTP/2 a client says how much of each answer it takes. One that takes nothing must not keep its connection, nor the place of
/// an export, although its system takes every byte that is sent.
#[test]
fn a_client_of_http_2_that_takes_nothing_is_cut_off() {
    let fixture = Fixture::new();
    let urls: String = (0..20_000).map(|n| format!("http://big.com/{n:060}\n")).collect();
    fixture.add("all", &urls);
    let write_timeout = Duration::from_secs(1);
    let server = fixture.serve(Config { max_streams: 1, write_timeout, ..Config::default() });
    for path in ["/v1/domain/big.com/datasets/all/urls", "/v1/datasets/all/export"] {
        let mut greedy = connect(server.address());
        // A window of no bytes for every answer.
        let settings = frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
        greedy.write_all(&[H2_PREFACE, &settings, &frame(1, 5, 1, &h2_get(path))].concat()).unwrap();
        let begun = Instant::now();
        let mut taken = Vec::new();
        let _ = greedy.read_to_end(&mut taken);
        assert!(begun.elapsed() < Duration::from_secs(20), "{path}: it is still open");
        assert!(taken.len() < 10_000, "{path}: {} bytes were sent into a window of none", taken.len());
    }
    let begun = Instant::now();
    while get(server.address(), "/v1/datasets/all/export").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(20), "the place of the export stays taken");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_server_that_stops_finishes_what_it_has_begun() {
    let fixture = Fixture::new();
    let urls: String = (0..20_000).map(|n| format!("http://big.com/{n:060}\n")).collect();
    fixture.add("all", &urls);
    let server = fixture.serve(Config::default());
    let at = server.address();
    let mut open = connect(at);
    open.write_all(b"GET /v1/datasets/all/export HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    open.read_exact(&mut [0; 1000]).unwrap();
    let stopping = std::thread::spawn(move || server.stop().unwrap());
    std::thread::sleep(Duration::from_millis(200));
    let mut rest = Vec::new();
    open.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"0\r\n\r\n"), "the export was cut off");
    stopping.join().unwrap();
    assert!(std::net::TcpStream::connect(at).is_err());
}

fn certificate(fixture: &Fixture, name: &str) -> rcgen::CertifiedKey<rcgen::KeyPair> {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let pem = |label: &str, der: &[u8]| {
        let lines: Vec<String> = data_encoding::BASE64
            .encode(der)
            .as_bytes()
            .chunks(64)
            .map(|c| String::from_utf8(c.to_vec()).unwrap())
            .collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    };
    std::fs::write(fixture.path("cert.pem"), pem("CERTIFICATE", made.cert.der())).unwrap();
    std::fs::write(fixture.path("key.pem"), pem("PRIVATE KEY", &made.signing_key.serialize_der())).unwrap();
    made
}

fn tls_get(at: std::net::SocketAddr, trusted: &rcgen::Certificate, name: &'static str) -> std::io::Result<String> {
    use tokio_rustls::rustls;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.der().clone()).unwrap();
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name.try_into().unwrap()).unwrap();
    let mut socket = connect(at);
    let mut stream = rustls::Stream::new(&mut client, &mut socket);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    Ok(answer)
}

#[test]
fn certificates_are_read_again_when_they_change() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let first = certificate(&fixture, "one.example");
    let tls = Some(TlsFiles { certificate: fixture.path("cert.pem"), key: fixture.path("key.pem") });
    let server = fixture.serve(Config { tls, poll: Duration::from_millis(100), ..Config::default() });
    assert!(tls_get(server.address(), &first.cert, "one.example").unwrap().starts_with("HTTP/1.1 200"));
    let second = certificate(&fixture, "two.example");
    let begun = Instant::now();
    while tls_get(server.address(), &second.cert, "two.example").is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the new certificate was never used");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(tls_get(server.address(), &first.cert, "one.example").is_err());
}

/// Who says nothing before the handshake is idle as well.
#[test]
fn connections_without_a_handshake_make_room_for_others() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let trusted = certificate(&fixture, "one.example");
    let tls = Some(TlsFiles { certificate: fixture.path("cert.pem"), key: fixture.path("key.pem") });
    let head_timeout = Duration::from_secs(600);
    let server = fixture.serve(Config { tls, max_connections: 20, head_timeout, ..Config::default() });
    let mut silent: Vec<_> = (0..100).map(|_| connect(server.address())).collect();
    silent.iter().for_each(|one| one.set_nonblocking(true).unwrap());
    assert!(tls_get(server.address(), &trusted.cert, "one.example").unwrap().starts_with("HTTP/1.1 200"));
    let begun = Instant::now();
    while silent.iter_mut().filter_map(|one| one.read(&mut [0; 1]).ok()).count() < 80 {
        assert!(begun.elapsed() < Duration::from_secs(20), "they keep their places");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// HTTP/1.0, which proxies still speak, ends an answer of unknown length by closing the connection.
#[test]
fn an_answer_of_http_1_0_that_is_cut_off_does_not_end_like_a_whole_one() {
    let fixture = Fixture::new();
    // More than the system takes for a client that does not read.
    let urls: String = (0..20_000).map(|n| format!("http://big.com/{n:01000}\n")).collect();
    fixture.add("all", &urls);
    let server = fixture.serve(Config { grace: Duration::from_millis(100), ..Config::default() });
    let export = || {
        let mut open = connect(server.address());
        open.write_all(b"GET /v1/datasets/all/export HTTP/1.0\r\n\r\n").unwrap();
        open.read_exact(&mut [0; 1000]).unwrap();
        open
    };
    let mut rest = Vec::new();
    export().read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"}\n") && rest.len() > 20_000_000, "{} bytes", rest.len());
    let mut cut = export();
    server.stop().unwrap();
    rest.clear();
    assert_eq!(cut.read_to_end(&mut rest).unwrap_err().kind(), ErrorKind::ConnectionReset);
}
