//! Certificates: accepted and judged, or enforced.

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use trawl_fetch::{Ask, FetchConfig, Fetcher, TlsMode, TlsVersions};
use trawl_io::RealFs;
use trawl_model::{Capture, ErrorClass, Failure, Outcome, UnixMillis};
use trawl_url::WebUrl;

const NOW: UnixMillis = UnixMillis(1_782_262_923_456);

/// A server with a certificate of its own making for `good.example`, and that certificate.
async fn server() -> (SocketAddr, Vec<u8>) {
    server_with(CertificateParams::new(vec!["good.example".into()]).unwrap()).await
}

async fn server_with(params: CertificateParams) -> (SocketAddr, Vec<u8>) {
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    let der = cert.der().to_vec();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut buf = [0; 1024];
                let _ = stream.read(&mut buf).await;
                // No close_notify: the connection just ends, as with many old servers.
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nsecret").await;
                let _ = stream.flush().await;
            });
        }
    });
    (addr, der)
}

async fn get(addr: SocketAddr, mode: TlsMode, roots: Vec<Vec<u8>>, url: &str) -> Capture<'static> {
    let config = FetchConfig {
        user_agent: "trawl-test/1".into(),
        tls: mode,
        extra_roots: roots,
        connect_to: vec![format!("::{}:{}", addr.ip(), addr.port()).parse().unwrap()],
        ..FetchConfig::default()
    };
    let fetcher = Fetcher::new(config, Arc::new(RealFs)).unwrap();
    fetcher.fetch(Ask::new(WebUrl::parse(url).unwrap(), NOW)).await
}

#[tokio::test]
async fn any_certificate_is_accepted_and_the_verdict_recorded() {
    let (addr, der) = server().await;
    for (roots, url, good) in [
        (vec![], "https://good.example/", false),
        (vec![der.clone()], "https://good.example/", true),
        (vec![der], "https://other.example/", false),
    ] {
        let fetched = get(addr, TlsMode::Record, roots, url).await;
        assert!(matches!(fetched.outcome, Outcome::Response { truncated: None, .. }), "{:?}", fetched);
        let tls = fetched.facts.tls.unwrap();
        assert_eq!((tls.version.as_str(), tls.refused.is_none()), ("TLSv1.3", good), "{url}: {:?}", tls.refused);
        assert!(tls.cipher_suite.starts_with("TLS_"), "{}", tls.cipher_suite);
        assert!(fetched.facts.timings.tls_ms.is_some());
    }
}

#[tokio::test]
async fn verify_enforces() {
    let (addr, der) = server().await;
    for (roots, url, good) in [
        (vec![], "https://good.example/", false),
        (vec![der.clone()], "https://good.example/", true),
        (vec![der], "https://other.example/", false),
    ] {
        match get(addr, TlsMode::Verify, roots, url).await.outcome {
            Outcome::Response { .. } => assert!(good, "{url}"),
            Outcome::Failed(failure) => assert!(!good && failure.class == ErrorClass::TlsFailure, "{failure:?}"),
            Outcome::Revisit(_) => panic!("a revisit"),
        }
    }
}

#[tokio::test]
async fn plain_http_on_a_tls_port_is_a_tls_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let fetched = get(addr, TlsMode::Record, vec![], "https://a.example/").await;
    assert!(matches!(fetched.outcome, Outcome::Failed(f) if f.class == ErrorClass::TlsFailure));
}

/// What `openssl req -x509` makes calls itself an authority: trusted by name and date if the operator says so.
#[tokio::test]
async fn a_certificate_trusted_itself_need_not_be_a_servers() {
    let params = |ends: i32| {
        let mut params = CertificateParams::new(vec!["good.example".into()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_after = rcgen::date_time_ymd(ends, 1, 1);
        params
    };
    let (addr, der) = server_with(params(2100)).await;
    let trusted = vec![der];
    let fetched = get(addr, TlsMode::Verify, trusted.clone(), "https://good.example/").await;
    assert!(matches!(fetched.outcome, Outcome::Response { .. }), "{fetched:?}");
    let verdict = |fetched: Capture<'static>| match fetched.outcome {
        Outcome::Failed(failure) => failure.message,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        verdict(get(addr, TlsMode::Verify, trusted, "https://other.example/").await),
        "certificate refused: invalid peer certificate: it is for good.example, not for other.example"
    );
    assert_eq!(
        verdict(get(addr, TlsMode::Verify, vec![], "https://good.example/").await),
        "certificate refused: invalid peer certificate: it is an authority's, not a server's"
    );
    let (addr, der) = server_with(params(2020)).await;
    let expired = verdict(get(addr, TlsMode::Verify, vec![der], "https://good.example/").await);
    assert!(expired.contains("expired"), "{expired}");
}

#[tokio::test]
async fn versions_are_a_setting() {
    let (addr, _) = server().await;
    for (versions, expected) in
        [(TlsVersions::Any, "TLSv1.3"), (TlsVersions::Only12, "TLSv1.2"), (TlsVersions::Only13, "TLSv1.3")]
    {
        let config = FetchConfig {
            user_agent: "trawl-test/1".into(),
            tls_versions: versions,
            connect_to: vec![format!("::{}:{}", addr.ip(), addr.port()).parse().unwrap()],
            ..FetchConfig::default()
        };
        let fetcher = Fetcher::new(config, Arc::new(RealFs)).unwrap();
        let fetched = fetcher.fetch(Ask::new(WebUrl::parse("https://good.example/").unwrap(), NOW)).await;
        assert_eq!(fetched.facts.tls.unwrap().version, expected);
    }
}

/// A server that has TLS 1.0 to 1.2 with RSA key exchange and CBC alone; it counts connections.
async fn old_server() -> (SocketAddr, Arc<AtomicUsize>) {
    let mut config = s2n_tls::config::Builder::new();
    config.set_security_policy(&s2n_tls::security::Policy::from_version("20140601").unwrap()).unwrap();
    config.load_pem(include_bytes!("data/old-tls-cert.pem"), include_bytes!("data/old-tls-key.pem")).unwrap();
    config.set_max_blinding_delay(0).unwrap();
    let acceptor = s2n_tls_tokio::TlsAcceptor::new(config.build().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut buf = [0; 1024];
                while stream.read(&mut buf).await.is_ok_and(|n| n > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold").await;
                    let _ = stream.flush().await;
                }
            });
        }
    });
    (addr, connections)
}

fn old_fetcher(addr: SocketAddr, versions: TlsVersions, mode: TlsMode) -> Result<Fetcher, trawl_fetch::Error> {
    let config = FetchConfig {
        user_agent: "trawl-test/1".into(),
        tls: mode,
        tls_versions: versions,
        connect_to: vec![format!("::{}:{}", addr.ip(), addr.port()).parse().unwrap()],
        ..FetchConfig::default()
    };
    Fetcher::new(config, Arc::new(RealFs))
}

#[tokio::test]
async fn old_versions_and_suites_are_a_setting() {
    let (addr, connections) = old_server().await;
    let ask = || Ask::new(WebUrl::parse("https://old.example/").unwrap(), NOW);
    let fetcher = old_fetcher(addr, TlsVersions::Any, TlsMode::Record).unwrap();
    // Its alert, or the reset behind it, whichever is noticed first.
    let fetched = fetcher.fetch(ask()).await;
    let failed = |f: &Failure| matches!(f.class, ErrorClass::TlsFailure | ErrorClass::Reset);
    assert!(matches!(&fetched.outcome, Outcome::Failed(f) if failed(f)), "{fetched:?}");
    assert_eq!(connections.load(Ordering::SeqCst), 1);

    let fetcher = old_fetcher(addr, TlsVersions::Old, TlsMode::Record).unwrap();
    let fetched = fetcher.fetch(ask()).await;
    assert!(matches!(fetched.outcome, Outcome::Response { truncated: None, .. }), "{fetched:?}");
    let tls = fetched.facts.tls.unwrap();
    assert_eq!(tls.version, "TLSv1.2");
    assert!(tls.cipher_suite.starts_with("TLS_") && tls.cipher_suite.contains("_CBC_"), "{}", tls.cipher_suite);
    assert!(tls.refused.is_some_and(|why| why.contains("not checked")));
    assert_eq!(connections.load(Ordering::SeqCst), 3);
    // The connection is kept, and used again once it has been idle for a moment.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert!(matches!(fetcher.fetch(ask()).await.outcome, Outcome::Response { .. }));
    assert_eq!(connections.load(Ordering::SeqCst), 3);

    // A server that has more is spoken to as without the setting.
    let (addr, _) = server().await;
    let fetched = old_fetcher(addr, TlsVersions::Old, TlsMode::Record).unwrap().fetch(ask()).await;
    assert_eq!(fetched.facts.tls.unwrap().version, "TLSv1.3");
}

/// A certificate that is refused would otherwise be accepted on the second connection.
#[test]
fn old_versions_are_refused_where_certificates_are_verified() {
    let addr = "127.0.0.1:1".parse().unwrap();
    assert!(old_fetcher(addr, TlsVersions::Old, TlsMode::Verify).is_err());
}
