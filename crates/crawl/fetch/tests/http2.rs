//! HTTP/2: heads written as HTTP/1.1 writes them, and the way back to HTTP/1.1.

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use rcgen::{CertificateParams, KeyPair};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;
use trawl_fetch::{Ask, FetchConfig, Fetcher, Limits, TypeLimit, Validators};
use trawl_io::RealFs;
use trawl_model::{Capture, ErrorClass, Message, Outcome, Truncated, UnixMillis};
use trawl_url::WebUrl;

const NOW: UnixMillis = UnixMillis(1_782_262_923_456);

/// How many connections were made, and how many of them agreed on HTTP/2.
#[derive(Default)]
struct Counts {
    all: AtomicUsize,
    http2: AtomicUsize,
}

/// A server that agrees on HTTP/2 where it is offered, and then does `serve`; by HTTP/1.1 it says so.
async fn server<F, R>(serve: F) -> (SocketAddr, Arc<Counts>)
where
    F: Fn(TlsStream<TcpStream>) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
    let key = KeyPair::generate().unwrap();
    let cert = CertificateParams::new(vec!["a.example".into()]).unwrap().self_signed(&key).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, counts) = (listener.local_addr().unwrap(), Arc::new(Counts::default()));
    let (counter, serve) = (counts.clone(), Arc::new(serve));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, serve, counter) = (acceptor.clone(), serve.clone(), counter.clone());
            counter.all.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    counter.http2.fetch_add(1, Ordering::SeqCst);
                    serve(stream).await;
                    return;
                }
                let mut buf = [0; 4096];
                while stream.read(&mut buf).await.is_ok_and(|n| n > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold").await;
                }
            });
        }
    });
    (addr, counts)
}

/// Serves every request of a connection with `answer`.
async fn by_h2(
    stream: TlsStream<TcpStream>,
    answer: impl Fn(Request<RecvStream>, SendResponse<Bytes>) + Send + 'static,
) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        answer(request, respond);
    }
}

fn page(mut respond: SendResponse<Bytes>, content_type: &str, body: &'static [u8]) {
    let response = Response::builder().status(200).header("content-type", content_type).header("x-odd", "\u{e9}");
    let mut stream = respond.send_response(response.body(()).unwrap(), false).unwrap();
    stream.reserve_capacity(body.len());
    stream.send_data(Bytes::from_static(body), true).unwrap();
}

fn config(addr: SocketAddr) -> FetchConfig {
    FetchConfig {
        user_agent: "trawl-test/1".into(),
        connect_to: vec![format!("::{}:{}", addr.ip(), addr.port()).parse().unwrap()],
        limits: Limits { body_bytes: 100_000, ..Limits::default() },
        ..FetchConfig::default()
    }
}

fn fetcher(config: FetchConfig) -> Fetcher {
    Fetcher::new(config, Arc::new(RealFs)).unwrap()
}

async fn get(fetcher: &Fetcher, url: &str) -> Capture<'static> {
    fetcher.fetch(Ask::new(WebUrl::parse(url).unwrap(), NOW)).await
}

fn parts(capture: &mut Capture<'static>) -> (String, Vec<u8>, Option<Truncated>) {
    match &mut capture.outcome {
        Outcome::Response { message: Message { head, body }, truncated, .. } => {
            let body = body.read_to_bytes(u64::MAX).unwrap().to_vec();
            (String::from_utf8_lossy(head).into_owned(), body, *truncated)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_head_is_written_as_http_1_writes_it() {
    let (addr, counts) = server(|stream| {
        by_h2(stream, |request, respond| {
            assert_eq!(request.uri().to_string(), "https://a.example/x?y=%20z");
            assert_eq!(request.headers()["user-agent"], "trawl-test/1");
            assert_eq!(request.headers()["if-none-match"], "\"v1\"");
            page(respond, "text/html", b"hello");
        })
    })
    .await;
    let fetcher = fetcher(config(addr));
    for _ in 0..3 {
        let mut ask = Ask::new(WebUrl::parse("https://a.example/x?y=%20z").unwrap(), NOW);
        ask.validators = Validators { etag: Some("\"v1\"".into()), last_modified: None };
        let mut fetched = fetcher.fetch(ask).await;
        let (head, body, truncated) = parts(&mut fetched);
        assert_eq!(head, "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nx-odd: \u{e9}\r\n\r\n");
        assert_eq!((body.as_slice(), truncated), (&b"hello"[..], None));
        assert_eq!(fetched.facts.protocol.as_deref(), Some("h2"));
        assert!(fetched.facts.tls.is_some() && fetched.facts.ip.is_some());
        let request = String::from_utf8_lossy(&fetched.request.unwrap().head).into_owned();
        assert!(request.starts_with("GET /x?y=%20z HTTP/1.1\r\nHost: a.example\r\n"), "{request}");
        assert!(request.ends_with("If-None-Match: \"v1\"\r\n\r\n"), "{request}");
    }
    assert_eq!(counts.all.load(Ordering::SeqCst), 1, "one connection serves them all");
}

#[tokio::test]
async fn servers_that_ask_for_http_1_or_break_http_2_get_http_1() {
    let asks = server(|stream| by_h2(stream, |_, mut respond| respond.send_reset(Reason::HTTP_1_1_REQUIRED))).await;
    let breaks = server(|mut stream| async move {
        let mut buf = [0; 4096];
        let _ = stream.read(&mut buf).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
        let _ = stream.read(&mut buf).await;
    })
    .await;
    for (addr, counts) in [asks, breaks] {
        let fetcher = fetcher(config(addr));
        for _ in 0..2 {
            let mut fetched = get(&fetcher, "https://a.example/").await;
            assert_eq!(parts(&mut fetched).1, b"old");
            assert_eq!(fetched.facts.protocol.as_deref(), Some("http/1.1"));
        }
        assert_eq!(counts.http2.load(Ordering::SeqCst), 1, "it is asked by HTTP/2 once");
    }
}

#[tokio::test]
async fn http_2_can_be_switched_off() {
    let (addr, counts) = server(|stream| by_h2(stream, |_, respond| page(respond, "text/html", b"new"))).await;
    let fetcher = fetcher(FetchConfig { http2: false, ..config(addr) });
    assert_eq!(parts(&mut get(&fetcher, "https://a.example/").await).1, b"old");
    assert_eq!(counts.http2.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_connection_that_ended_while_idle_is_replaced() {
    let (addr, counts) = server(|stream| async move {
        let mut connection = h2::server::handshake(stream).await.unwrap();
        if let Some(Ok((_, respond))) = connection.accept().await {
            page(respond, "text/html", b"once");
            connection.graceful_shutdown();
        }
        while connection.accept().await.is_some() {}
    })
    .await;
    let fetcher = fetcher(config(addr));
    // Nothing is asked on a connection that has ended, so that the host need not be left alone.
    let spacing = Duration::from_secs(3600);
    for _ in 0..3 {
        let ask = Ask { spacing, ..Ask::new(WebUrl::parse("https://a.example/").unwrap(), NOW) };
        let mut fetched = tokio::time::timeout(Duration::from_secs(60), fetcher.fetch(ask)).await.unwrap();
        assert_eq!(parts(&mut fetched).1, b"once");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(counts.http2.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_server_that_announces_another_length_than_it_sends_gets_http_1() {
    let (addr, counts) = server(|stream| {
        by_h2(stream, |_, mut respond| {
            let response = Response::builder().status(200).header("content-length", "100").body(()).unwrap();
            let mut stream = respond.send_response(response, false).unwrap();
            stream.send_data(Bytes::from_static(b"short"), true).unwrap();
        })
    })
    .await;
    let fetcher = fetcher(config(addr));
    let first = get(&fetcher, "https://a.example/").await;
    assert!(matches!(&first.outcome, Outcome::Failed(f) if f.class == ErrorClass::Reset), "{first:?}");
    assert_eq!(parts(&mut get(&fetcher, "https://a.example/").await).1, b"old");
    assert_eq!(counts.http2.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn limits_hold_by_media_type_and_time() {
    static LARGE: [u8; 300_000] = [b'x'; 300_000];
    let (addr, _) = server(|stream| {
        by_h2(stream, |request, mut respond| match request.uri().path() {
            "/large" => page(respond, "text/html; charset=utf-8", &LARGE),
            "/video" => page(respond, "Video/MP4", &LARGE),
            "/silent" => std::mem::forget(respond),
            _ => {
                let response = Response::builder().status(200).body(()).unwrap();
                let mut stream = respond.send_response(response, false).unwrap();
                let _ = stream.send_data(Bytes::from_static(b"half"), false);
                std::mem::forget(stream);
            }
        })
    })
    .await;
    let mut config = config(addr);
    config.limits.body_bytes_of = vec![TypeLimit { media_type: "video/*".into(), bytes: 1000 }];
    config.limits.first_byte = Duration::from_millis(300);
    config.limits.idle = Duration::from_millis(300);
    let fetcher = fetcher(config);
    for (path, len, why) in
        [("large", 100_000, Truncated::Length), ("video", 1000, Truncated::Length), ("half", 4, Truncated::Time)]
    {
        let mut fetched = get(&fetcher, &format!("https://a.example/{path}")).await;
        let (_, body, truncated) = parts(&mut fetched);
        assert_eq!((body.len(), truncated), (len, Some(why)), "{path}");
    }
    let silent = get(&fetcher, "https://a.example/silent").await;
    assert!(matches!(&silent.outcome, Outcome::Failed(f) if f.class == ErrorClass::HeaderTimeout), "{silent:?}");
}
