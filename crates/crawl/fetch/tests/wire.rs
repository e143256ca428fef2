//! The client against servers that misbehave, byte by byte, on loopback.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::sleep;
use trawl_fetch::{Ask, FetchConfig, Fetcher, Limits, PoolLimits};
use trawl_io::RealFs;
use trawl_model::{Body, Capture, ErrorClass, Message, Outcome, Truncated, UnixMillis};
use trawl_url::WebUrl;

const NOW: UnixMillis = UnixMillis(1_782_262_923_456);

/// Serves each connection with `serve(stream, connection number)`; counts connections.
async fn server<F, R>(serve: F) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Fn(TcpStream, usize) -> R + Send + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = count.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let n = counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve(stream, n));
        }
    });
    (addr, count)
}

/// Reads one request head.
async fn request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => text.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(text).unwrap()
}

fn config(addr: SocketAddr) -> FetchConfig {
    FetchConfig {
        user_agent: "trawl-test/1".into(),
        connect_to: vec![format!("::{}:{}", addr.ip(), addr.port()).parse().unwrap()],
        // No limit on time is near: a test that wants one met sets it, so that no other test depends on the machine.
        limits: Limits { head_bytes: 4096, body_bytes: 1000, memory_body: 100, ..Limits::default() },
        pool: PoolLimits { settle: Duration::ZERO, ..PoolLimits::default() },
        ..FetchConfig::default()
    }
}

fn fetcher(config: FetchConfig) -> Fetcher {
    Fetcher::new(config, Arc::new(RealFs)).unwrap()
}

async fn get(fetcher: &Fetcher, url: &str) -> Capture<'static> {
    fetcher.fetch(Ask::new(WebUrl::parse(url).unwrap(), NOW)).await
}

/// One server, one answer to every request on every connection, which then closes.
async fn answer(bytes: impl Into<Vec<u8>>) -> Capture<'static> {
    let bytes = bytes.into();
    let (addr, _) = server(move |mut stream, _| {
        let bytes = bytes.clone();
        async move {
            request(&mut stream).await;
            let _ = stream.write_all(&bytes).await;
        }
    })
    .await;
    get(&fetcher(config(addr)), "http://a.example/").await
}

fn response(fetched: Capture<'static>) -> (String, Vec<u8>, Option<Truncated>) {
    match fetched.outcome {
        Outcome::Response { message: Message { head, mut body }, truncated, .. } => {
            (String::from_utf8_lossy(&head).into_owned(), body.read_to_bytes(1 << 20).unwrap().to_vec(), truncated)
        }
        other => panic!("{other:?}"),
    }
}

fn failed(fetched: &Capture<'static>) -> ErrorClass {
    match &fetched.outcome {
        Outcome::Failed(failure) => failure.class,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_plain_exchange_is_kept_as_it_went() {
    let (sent, mut received) = tokio::sync::mpsc::channel(1);
    let (addr, _) = server(move |mut stream, _| {
        let sent = sent.clone();
        async move {
            sent.send(request(&mut stream).await).await.unwrap();
            stream
                .write_all(b"HTTP/1.1 200 Fine  by me\r\nx-ODD:  value \r\nContent-Length: 5\r\n\r\nhello")
                .await
                .unwrap();
        }
    })
    .await;
    let config = FetchConfig { contact: "ops@example.org".into(), ..config(addr) };
    let fetched = get(&fetcher(config), "http://www.example.com:8080/a?b=c").await;
    let capture = &fetched;
    let request = received.recv().await.unwrap();
    assert_eq!(capture.request.as_ref().unwrap().head, request.as_bytes());
    assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\nHost: www.example.com:8080\r\nUser-Agent: trawl-test/1\r\n"));
    assert!(request.contains("From: ops@example.org\r\n"));
    assert_eq!((capture.url.as_str(), capture.started_at), ("http://www.example.com:8080/a?b=c", NOW));
    assert_eq!(capture.facts.ip, Some(addr.ip()));
    assert_eq!(capture.facts.protocol.as_deref(), Some("http/1.1"));
    assert!(capture.facts.fetched_at >= NOW);
    assert!(capture.facts.timings.ttfb_ms.is_some() && capture.facts.timings.connect_ms.is_some());
    let (head, body, truncated) = response(fetched);
    assert_eq!(head, "HTTP/1.1 200 Fine  by me\r\nx-ODD:  value \r\nContent-Length: 5\r\n\r\n");
    assert_eq!((body.as_slice(), truncated), (&b"hello"[..], None));
}

#[tokio::test]
async fn malformed_but_understandable() {
    for (bytes, head, body) in [
        ("HTTP/1.1 200\nA: b\n\nto the end", "HTTP/1.1 200\nA: b\n\n", "to the end"),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.0 200 OK\r\n\r\nx",
            "HTTP/1.0 200 OK\r\n\r\n",
            "x",
        ),
        (
            "HTTP/2 200\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx",
            "HTTP/2 200\r\nContent-Length: 1\r\n\r\n",
            "x",
        ),
        ("HTTP/1.1 204 Nothing\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 Nothing\r\nContent-Length: 0\r\n\r\n", ""),
        (
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 77\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nX-Crawler-Content-Length: 77\r\nContent-Length: 0\r\n\r\n",
            "",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 5\r\nX-Crawler-Content-Length: 9\r\n\r\n",
            "hello",
        ),
        // Ends after its last chunk, without the empty line: all of the content came.
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
            "HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            "hello",
        ),
        // Says chunked and is not: what came is what is kept.
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nabc<html>",
            "HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n",
            "abc<html>",
        ),
        // More than it promised: the promise counts.
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", "ab"),
    ] {
        let (found_head, found_body, truncated) = response(answer(bytes).await);
        assert_eq!((found_head.as_str(), found_body.as_slice(), truncated), (head, body.as_bytes(), None), "{bytes}");
    }
}

#[tokio::test]
async fn what_is_not_http_fails_with_its_class() {
    assert_eq!(failed(&answer("<html>hello</html>").await), ErrorClass::ProtocolError);
    assert_eq!(failed(&answer("SSH-2.0-OpenSSH_9\r\n").await), ErrorClass::ProtocolError);
    assert_eq!(failed(&answer("ICY 200 OK\r\n\r\nx").await), ErrorClass::ProtocolError);
    assert_eq!(failed(&answer("").await), ErrorClass::Reset);
    assert_eq!(failed(&answer("HTTP/1.1 200 OK\r\nA: ").await), ErrorClass::Reset);
    assert_eq!(failed(&answer(format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(5000))).await), ErrorClass::TooLarge);
    assert_eq!(failed(&answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await), ErrorClass::Reset);
    // Endless interim responses are a head without end.
    assert_eq!(failed(&answer("HTTP/1.1 100 Continue\r\n\r\n".repeat(500)).await), ErrorClass::TooLarge);
}

#[tokio::test]
async fn cut_bodies_are_kept_and_marked() {
    let (head, body, truncated) = response(answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello").await);
    assert_eq!(head, "HTTP/1.1 200 OK\r\nX-Crawler-Content-Length: 9\r\nContent-Length: 5\r\n\r\n");
    assert_eq!((body.as_slice(), truncated), (&b"hello"[..], Some(Truncated::Disconnect)));
    let (_, body, truncated) =
        response(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9\r\nwor").await);
    assert_eq!((body.as_slice(), truncated), (&b"hellowor"[..], Some(Truncated::Disconnect)));
    let (_, body, truncated) =
        response(answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXXX").await);
    assert_eq!((body.as_slice(), truncated), (&b"hello"[..], Some(Truncated::Disconnect)));
    // Over the limit of 1000, in all three framings; exactly at it is whole.
    for (long, whole) in [(1001, false), (1000, true)] {
        let text = "x".repeat(long);
        for bytes in [
            format!("HTTP/1.1 200 OK\r\nContent-Length: {long}\r\n\r\n{text}"),
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{long:x}\r\n{text}\r\n0\r\n\r\n"),
            format!("HTTP/1.1 200 OK\r\n\r\n{text}"),
        ] {
            let (_, body, truncated) = response(answer(bytes).await);
            assert_eq!((body.len(), truncated), (1000, (!whole).then_some(Truncated::Length)));
        }
    }
}

/// Sends a piece of an answer and is silent from then on.
async fn silent_after(bytes: &'static [u8]) -> SocketAddr {
    let (addr, _) = server(move |mut stream, _| async move {
        request(&mut stream).await;
        let _ = stream.write_all(bytes).await;
        std::future::pending().await
    })
    .await;
    addr
}

#[tokio::test]
async fn each_wait_has_its_own_limit() {
    const SHORT: Duration = Duration::from_millis(100);
    let mut silent = config(silent_after(b"").await);
    silent.limits.first_byte = SHORT;
    assert_eq!(failed(&get(&fetcher(silent), "http://a/").await), ErrorClass::HeaderTimeout);
    for (bytes, class) in [
        (&b"HTTP/1.1 200 OK\r\n"[..], ErrorClass::HeaderTimeout),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", ErrorClass::BodyTimeout),
    ] {
        let mut config = config(silent_after(bytes).await);
        config.limits.idle = SHORT;
        assert_eq!(failed(&get(&fetcher(config), "http://a/").await), class);
    }
    let mut half = config(silent_after(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await);
    half.limits.idle = SHORT;
    let (_, body, truncated) = response(get(&fetcher(half), "http://a/").await);
    assert_eq!((body.as_slice(), truncated), (&b"hello"[..], Some(Truncated::Time)));
}

#[tokio::test]
async fn a_dripping_server_meets_the_total_limit() {
    let (addr, _) = server(|mut stream, _| async move {
        request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nxxxxx").await;
        while stream.write_all(b"x").await.is_ok() {
            sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let mut config = config(addr);
    config.limits.total = Duration::from_secs(8);
    let fetched = get(&fetcher(config), "http://a/").await;
    // All of it would take 45 seconds.
    assert!(fetched.facts.timings.total_ms.unwrap() < 30_000);
    let (_, body, truncated) = response(fetched);
    assert!(body.len() > 3 && truncated == Some(Truncated::Time));
}

#[tokio::test]
async fn connections_are_used_again_and_dead_ones_replaced() {
    let (addr, count) = server(|mut stream, n| async move {
        // The first connection serves two requests, the others one; none says that it closes.
        for _ in 0..(if n == 0 { 2 } else { 1 }) {
            if request(&mut stream).await.is_empty() {
                return;
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
        }
    })
    .await;
    let fetcher = fetcher(config(addr));
    for (n, connections) in [(0, 1), (1, 1), (2, 2), (3, 3)] {
        let fetched = get(&fetcher, "http://a/").await;
        assert_eq!(fetched.facts.ip, Some(addr.ip()));
        assert_eq!(response(fetched).1, b"ok", "request {n}");
        assert_eq!(count.load(Ordering::SeqCst), connections, "request {n}");
    }
    // Another origin never gets this one's connection.
    get(&fetcher, "http://b/").await;
    assert_eq!(count.load(Ordering::SeqCst), 4);
}

/// Nothing was asked on such a connection, so that the host need not be left alone once more.
#[tokio::test]
async fn a_connection_that_was_closed_while_idle_costs_no_wait() {
    let (addr, count) = server(|mut stream, _| async move {
        request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
    })
    .await;
    let fetcher = fetcher(config(addr));
    for n in 1..4 {
        let spacing = Duration::from_secs(3600);
        let ask = Ask { spacing, ..Ask::new(WebUrl::parse("http://a/").unwrap(), NOW) };
        let fetched = tokio::time::timeout(Duration::from_secs(60), fetcher.fetch(ask)).await.unwrap();
        assert_eq!(response(fetched).1, b"ok");
        assert_eq!(count.load(Ordering::SeqCst), n);
        sleep(Duration::from_millis(200)).await;
    }
}

/// Of a robots.txt all is wanted, however little is kept of pages.
#[tokio::test]
async fn a_limit_of_its_own_goes_before_the_setting() {
    let (addr, _) = server(|mut stream, _| async move {
        request(&mut stream).await;
        let text = "x".repeat(2000);
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n{text}").as_bytes()).await;
    })
    .await;
    for (body_limit, len, why) in [(None, 1000, Some(Truncated::Length)), (Some(5000), 2000, None)] {
        let ask = Ask { body_limit, ..Ask::new(WebUrl::parse("http://a/").unwrap(), NOW) };
        let (_, body, truncated) = response(fetcher(config(addr)).fetch(ask).await);
        assert_eq!((body.len(), truncated), (len, why));
    }
}

#[tokio::test]
async fn connections_are_not_used_again_when_unsafe() {
    for answer in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 Smuggled\r\n\r\n",
    ] {
        let (addr, count) = server(move |mut stream, _| async move {
            while !request(&mut stream).await.is_empty() {
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        })
        .await;
        let fetcher = fetcher(config(addr));
        for _ in 0..2 {
            assert_eq!(response(get(&fetcher, "http://a/").await).1, b"ok");
        }
        assert_eq!(count.load(Ordering::SeqCst), 2, "{answer}");
    }
}

#[tokio::test]
async fn addresses_of_the_operators_own_network_are_refused() {
    let (addr, count) = server(|mut stream, _| async move {
        request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    })
    .await;
    let plain = FetchConfig { connect_to: Vec::new(), ..config(addr) };
    let url = format!("http://127.0.0.1:{}/", addr.port());
    let by_name = format!("http://localhost:{}/", addr.port());
    assert_eq!(failed(&get(&fetcher(plain.clone()), &url).await), ErrorClass::PrivateAddress);
    assert_eq!(failed(&get(&fetcher(plain.clone()), &by_name).await), ErrorClass::PrivateAddress);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let allowed = FetchConfig { allow_private: vec!["localhost".into()], ..plain.clone() };
    assert_eq!(response(get(&fetcher(allowed.clone()), &by_name).await).1, b"ok");
    assert_eq!(failed(&get(&fetcher(allowed), &url).await), ErrorClass::PrivateAddress);
    for name in ["::1", "[::1]"] {
        let v6 = FetchConfig { allow_private: vec![name.into()], ..plain.clone() };
        // Whether somebody listens there or not, it was not refused.
        let fetched = get(&fetcher(v6), "http://[::1]:9/").await;
        assert!(!matches!(&fetched.outcome, Outcome::Failed(f) if f.class == ErrorClass::PrivateAddress), "{name}");
    }
    let all = FetchConfig { allow_private: vec!["*".into()], ..plain };
    assert_eq!(response(get(&fetcher(all), &url).await).1, b"ok");
}

#[tokio::test]
async fn failures_before_a_connection() {
    // A port that is taken, so that nobody else gets it, and at which nobody listens.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let addr = socket.local_addr().unwrap();
    let fetcher = fetcher(config(addr));
    assert_eq!(failed(&get(&fetcher, "http://a/").await), ErrorClass::ConnectRefused);
    assert!(Fetcher::new(FetchConfig::default(), Arc::new(RealFs)).is_err(), "no user agent");
    let injected = FetchConfig { user_agent: "a\r\nX: y".into(), ..FetchConfig::default() };
    assert!(Fetcher::new(injected, Arc::new(RealFs)).is_err());
}

#[tokio::test]
async fn large_bodies_go_to_a_file_without_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let text: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", text.len()).into_bytes();
    bytes.extend(&text);
    let (addr, _) = server(move |mut stream, _| {
        let bytes = bytes.clone();
        async move {
            request(&mut stream).await;
            let _ = stream.write_all(&bytes).await;
        }
    })
    .await;
    let mut config = FetchConfig { spool_dir: dir.path().into(), ..config(addr) };
    (config.limits.body_bytes, config.limits.memory_body) = (10 << 20, 1 << 16);
    let fetched = get(&fetcher(config), "http://a/").await;
    let Outcome::Response { message: Message { mut body, .. }, .. } = fetched.outcome else { panic!() };
    assert!(matches!(body, Body::Spooled(_)));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(body.read_to_bytes(10 << 20).unwrap(), text);
    assert_eq!(body.read_to_bytes(10 << 20).unwrap(), text);
}

/// Bytes that no response owns wait on a connection: whoever uses it again archives them under another URL.
#[tokio::test]
async fn surplus_bytes_are_never_the_next_answer() {
    for first in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n",
    ] {
        let (addr, connections) = server(move |mut stream, n| async move {
            let mut asked = 0;
            while !request(&mut stream).await.is_empty() {
                asked += 1;
                if n == 0 && asked == 1 {
                    stream.write_all(first.as_bytes()).await.unwrap();
                    // Later than the response, as if by another machine.
                    sleep(Duration::from_millis(30)).await;
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong").await;
                } else {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright").await;
                }
            }
        })
        .await;
        let fetcher = fetcher(config(addr));
        get(&fetcher, "http://a.example/1").await;
        sleep(Duration::from_millis(200)).await;
        let (_, body, _) = response(get(&fetcher, "http://a.example/2").await);
        assert_eq!(String::from_utf8_lossy(&body), "right", "{first:?}");
        assert_eq!(connections.load(Ordering::SeqCst), 2, "{first:?}");
        // Who sent too much once may do it again, and later: no connection of this origin is used twice. The last of them was
        // not looked at again, because its head alone forbade that.
        response(get(&fetcher, "http://a.example/3").await);
        let expected = if first.contains("Content-Length: 9") { 2 } else { 3 };
        assert_eq!(connections.load(Ordering::SeqCst), expected, "{first:?}");
    }
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright";
const WRONG: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong";

/// A response sent too much comes only after the next request might have been made.
#[tokio::test]
async fn surplus_that_comes_late_is_waited_for() {
    let (addr, connections) = server(|mut stream, _| async move {
        while !request(&mut stream).await.is_empty() {
            let _ = stream.write_all(OK).await;
            sleep(Duration::from_millis(30)).await;
            let _ = stream.write_all(WRONG).await;
        }
    })
    .await;
    let fetcher = fetcher(FetchConfig { pool: PoolLimits::default(), ..config(addr) });
    for n in 1..=6 {
        let (_, body, _) = response(get(&fetcher, "http://a.example/").await);
        assert_eq!(String::from_utf8_lossy(&body), "right", "request {n}");
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(connections.load(Ordering::SeqCst), 6);
}

/// Of two responses to one request on a connection used before, nobody knows which is the answer.
#[tokio::test]
async fn a_doubtful_answer_is_asked_for_again() {
    let garbage = b"ten bytes.HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright".to_vec();
    let timeout = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
    for second in [[WRONG, OK].concat(), garbage, timeout] {
        let (addr, connections) = server(move |mut stream, n| {
            let second = second.clone();
            async move {
                let mut asked = 0;
                while !request(&mut stream).await.is_empty() {
                    asked += 1;
                    let answer = if n == 0 && asked == 2 { &second } else { OK };
                    let _ = stream.write_all(answer).await;
                }
            }
        })
        .await;
        let fetcher = fetcher(config(addr));
        for n in 1..=3 {
            let (_, body, _) = response(get(&fetcher, "http://a.example/").await);
            assert_eq!(String::from_utf8_lossy(&body), "right", "request {n}");
        }
        assert!(connections.load(Ordering::SeqCst) >= 2);
    }
}

/// A redirect or an error is told by its head; whether the page that explains it comes matters little.
#[tokio::test]
async fn a_head_that_answers_is_kept_without_its_body() {
    for status in ["301 Moved", "404 Not Found", "503 Busy"] {
        for end in ["Content-Length: 100\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n"] {
            let (head, body, truncated) =
                response(answer(format!("HTTP/1.1 {status}\r\nLocation: /there\r\n{end}")).await);
            assert!(head.contains("Location: /there"), "{head}");
            assert_eq!((body.len(), truncated), (0, Some(Truncated::Disconnect)), "{head}");
        }
    }
    let page = answer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n").await;
    assert_eq!(failed(&page), ErrorClass::Reset);
}

/// Nothing is packed in a message without a body; padding behind packed data, or a server that does not close, cut nothing.
#[tokio::test]
async fn transfer_codings_of_odd_messages() {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"a page").unwrap();
    let packed = gzip.finish().unwrap();
    let coded = |head: &str, body: &[u8]| [format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), body].concat();
    let gzip = "Transfer-Encoding: gzip";
    let with_length = format!("200 OK\r\n{gzip}\r\nContent-Length: {}", packed.len());
    for (message, page) in [
        (coded(&format!("204 Nothing\r\n{gzip}, chunked"), b""), ""),
        (coded(&format!("304 Same\r\n{gzip}"), b""), ""),
        (coded(&format!("200 OK\r\n{gzip}, chunked"), b"0\r\n\r\n"), ""),
        (coded(&format!("200 OK\r\n{gzip}"), &[&packed[..], &[0; 4]].concat()), "a page"),
        (coded(&with_length, &packed), "a page"),
    ] {
        let shown = String::from_utf8_lossy(&message).into_owned();
        let (addr, _) = server(move |mut stream, _| {
            let message = message.clone();
            async move {
                request(&mut stream).await;
                let _ = stream.write_all(&message).await;
                // Kept open for a while, as servers do.
                sleep(Duration::from_millis(400)).await;
            }
        })
        .await;
        let mut config = config(addr);
        config.limits.idle = Duration::from_millis(200);
        let (_, body, truncated) = response(get(&fetcher(config), "http://a.example/").await);
        assert_eq!((String::from_utf8_lossy(&body).as_ref(), truncated), (page, None), "{shown}");
    }
}

/// A body that finds no room on the disk is not the host's fault, and will not fit next time either.
#[tokio::test]
async fn a_disk_that_fails_is_told() {
    let body = vec![b'x'; 2000];
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let message = [head.as_bytes(), &body].concat();
    let (addr, _) = server(move |mut stream, _| {
        let message = message.clone();
        async move {
            request(&mut stream).await;
            let _ = stream.write_all(&message).await;
        }
    })
    .await;
    let mut config = FetchConfig { spool_dir: "/nowhere/at/all".into(), ..config(addr) };
    config.limits.body_bytes = 5000;
    let fetcher = fetcher(config);
    assert!(fetcher.take_storage_error().is_none());
    assert_eq!(failed(&get(&fetcher, "http://a/").await), ErrorClass::LocalResource);
    let error = fetcher.take_storage_error().unwrap().to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
    assert!(fetcher.take_storage_error().is_none(), "told once");
}

/// Most machines have no IPv6: an address that cannot be reached from here does not excuse one that refuses.
#[tokio::test]
async fn the_address_that_can_be_reached_speaks_for_the_host() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let dns = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = dns.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buf = [0; 512];
        while let Ok((n, peer)) = dns.recv_from(&mut buf).await {
            // The question ends with its type and class, 1 or 28 for the kind of address. fe80:: without a zone and
            // multicast addresses are refused by the system before anything is sent.
            let mut at = 12;
            while buf[at] != 0 {
                at += usize::from(buf[at]) + 1;
            }
            let kind = buf[at + 2];
            let address: &[u8] =
                if kind == 1 { &[127, 0, 0, 1] } else { &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] };
            let mut reply = [&buf[..2], &[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0], &buf[12..at + 5]].concat();
            reply.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, address.len() as u8]);
            reply.extend(address);
            let _ = (n, dns.send_to(&reply, peer).await);
        }
    });
    let mut config = FetchConfig { user_agent: "t".into(), allow_private: vec!["*".into()], ..FetchConfig::default() };
    config.dns.servers = vec![server];
    config.limits.connect = Duration::from_secs(1);
    let fetched = get(&fetcher(config), &format!("http://dual.example:{port}/")).await;
    let class = failed(&fetched);
    // Where the machine has IPv6 after all, the documentation address times out or is unreachable.
    let has_v6 = std::net::UdpSocket::bind("[::]:0").and_then(|s| s.connect(("2001:db8::1", 9))).is_ok();
    assert!(has_v6 || class == ErrorClass::ConnectRefused, "{fetched:?}");
    assert!(class != ErrorClass::LocalResource, "{fetched:?}");
}

/// Refused at once, and the message says how to allow it.
#[tokio::test]
async fn private_addresses_have_a_class_of_their_own() {
    let fetched =
        get(&fetcher(FetchConfig { user_agent: "t".into(), ..FetchConfig::default() }), "http://127.0.0.1/").await;
    assert_eq!(failed(&fetched), ErrorClass::PrivateAddress);
    let Outcome::Failed(failure) = &fetched.outcome else { panic!() };
    assert!(failure.message.contains("--allow-private 127.0.0.1"), "{}", failure.message);
}

/// What is packed only on its way is unpacked; the stored head and body agree.
#[tokio::test]
async fn transfer_codings_are_no_part_of_the_page() {
    use std::io::Write;
    let page = b"a page that is long enough to be packed, a page that is long enough to be packed".as_slice();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(page).unwrap();
    let packed = gzip.finish().unwrap();
    let (first, second) = packed.split_at(20);
    let mut chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_vec();
    for part in [first, second, b""] {
        chunked.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        chunked.extend_from_slice(part);
        chunked.extend_from_slice(b"\r\n");
    }
    let mut closed = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n".to_vec();
    let cut = [&closed[..], first].concat();
    let lie = [&closed[..], page].concat();
    closed.extend_from_slice(&packed);
    for message in [chunked, closed, lie] {
        let (head, body, truncated) = response(answer(message).await);
        assert_eq!((body.as_slice(), truncated), (page, None), "{head}");
        assert!(
            head.contains("X-Crawler-Transfer-Encoding: gzip") && head.contains("Content-Length: 80\r\n"),
            "{head}"
        );
    }
    let fetched = answer(cut).await;
    assert!(matches!(
        &fetched.outcome,
        Outcome::Response { truncated: Some(Truncated::Disconnect), .. } | Outcome::Failed(_)
    ));
}
