//! TLS and HTTP/2: good and bad certificates, both protocols, and what the log says of them.

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use common::{find_page, get, only, parts, tcp, tls};
use trawl_testweb::{Character, Config, Running, TestWeb};

fn last_host(web: &Running, wanted: Character) -> String {
    web.world().hosts().iter().rfind(|h| h.characters().any(|c| c == wanted)).unwrap().name.clone()
}

#[test]
fn https_hosts_serve_pages_and_redirect_http() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let web = TestWeb::start(Config { log: Some(log.clone()), ..only(&[Character::Https]) }).unwrap();
    let (_, node) = find_page(web.world(), |page| page.number == 5);
    let (host, target) = parts(web.world(), node);
    assert!(web.world().url_of(node).starts_with("https://"));
    let mut stream = tls(web.addr(), web.ca_pem().unwrap(), &host).unwrap();
    for _ in 0..2 {
        let answer = get(&mut stream, &host, &target, "");
        assert_eq!((answer.status, answer.error.as_deref()), (200, None));
    }
    let plain = get(&mut tcp(web.addr()), &host, &target, "");
    assert_eq!((plain.status, plain.header("location").unwrap()), (301, web.world().url_of(node).as_str()));
    web.stop().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains(&format!("\t{host}\thttp/1.1\n")), "{text}");
    assert!(text.contains("\thttps/1\t") && text.contains("\thttp/1\t"), "{text}");
}

#[test]
fn bad_certificates_are_refused_for_their_reason() {
    use Character::*;
    for (fault, reason) in [
        (CertSelfSigned, "UnknownIssuer"),
        (CertExpired, "expired"),
        (CertWrongName, "not valid for name"),
        (CertBroken, ""),
    ] {
        let web = TestWeb::start(only(&[Https, fault])).unwrap();
        let error = tls(web.addr(), web.ca_pem().unwrap(), &last_host(&web, fault)).err().unwrap();
        assert!(error.contains(reason), "{fault:?}: {error}");
        // The seed host is sound whatever the shares say.
        assert!(tls(web.addr(), web.ca_pem().unwrap(), &web.world().hosts()[0].name).is_ok());
    }
}

/// A body over HTTP/2; the error of a stream that broke.
async fn get_h2(web: &Running, urls: Vec<(String, String)>) -> Vec<Result<(u16, Vec<u8>), String>> {
    use rustls::pki_types::ServerName;
    let mut config = common::trusting(web.ca_pem().unwrap());
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = tokio::net::TcpStream::connect(web.addr()).await.unwrap();
    let name = ServerName::try_from(urls[0].0.clone()).unwrap();
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut out = Vec::new();
    for (host, target) in urls {
        let request = http::Request::get(format!("https://{host}{target}")).header("user-agent", common::AGENT);
        client = client.ready().await.unwrap();
        let (response, _) = client.send_request(request.body(()).unwrap(), true).unwrap();
        let read = async {
            let response = response.await.map_err(|e| e.to_string())?;
            let status = response.status().as_u16();
            let (mut stream, mut body) = (response.into_body(), Vec::new());
            while let Some(piece) = stream.data().await {
                let piece: Bytes = piece.map_err(|e| e.to_string())?;
                let _ = stream.flow_control().release_capacity(piece.len());
                body.extend_from_slice(&piece);
            }
            Ok((status, body))
        };
        out.push(read.await);
    }
    out
}

#[test]
fn http2_hosts_serve_the_same_pages() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let config = Config { log: Some(log.clone()), ..only(&[Character::Http2, Character::Chunked]) };
    let web = TestWeb::start(config).unwrap();
    let host = web.world().host_ids().max_by_key(|&id| web.world().host(id).unwrap().pages).unwrap();
    let nodes: Vec<_> = web.world().pages(host).map(|page| web.world().find(&web.world().url(page)).unwrap()).collect();
    let mut urls: Vec<_> = nodes.iter().map(|&node| parts(web.world(), node)).collect();
    urls.push((urls[0].0.clone(), "/robots.txt".into()));
    urls.push((urls[0].0.clone(), "/no-such-thing".into()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answers = runtime.block_on(get_h2(&web, urls));
    for (node, answer) in nodes.iter().zip(&answers) {
        let mut html = String::new();
        web.world().render(*node, web.time(), &mut html);
        assert_eq!(answer.as_ref().unwrap(), &(200, html.into_bytes()));
    }
    assert_eq!(answers[nodes.len() + 1].as_ref().unwrap().0, 404);
    drop(runtime);
    web.stop().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert_eq!(text.lines().filter(|l| l.contains("\thttps/2\t") && l.ends_with("\tok")).count(), answers.len());
}

#[test]
fn http2_streams_break_too() {
    use Character::*;
    for fate in [ResetBody, EndlessBody] {
        let web = TestWeb::start(Config { endless_bytes: 1 << 20, ..only(&[Http2, fate]) }).unwrap();
        let (_, node) = find_page(web.world(), |page| web.world().fate(page) == Some(fate));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let answers = runtime.block_on(get_h2(&web, vec![parts(web.world(), node)]));
        let error = answers[0].as_ref().unwrap_err();
        assert!(!error.is_empty());
    }
}

#[test]
fn a_stop_within_another_runtime_cuts_streams_and_logs_them() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let config = Config { log: Some(log.clone()), ..only(&[Character::Http2, Character::Stall]) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let web = Arc::new(TestWeb::start(config).unwrap());
        let (_, node) = find_page(web.world(), |page| web.world().fate(page).is_some());
        let (urls, other) = (vec![parts(web.world(), node)], Arc::clone(&web));
        let client = tokio::spawn(async move { get_h2(&other, urls).await });
        let until = Instant::now() + Duration::from_secs(60);
        while web.requests() == 0 {
            assert!(Instant::now() < until, "no request comes");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        client.abort();
        let _ = client.await;
        Arc::into_inner(web).unwrap().stop().unwrap();
    });
    let text = std::fs::read_to_string(&log).unwrap();
    let (request, end) = (text.find("\nR\t").unwrap(), text.find("\nX\t").unwrap());
    assert!(request < end && text.contains("\tcut\n"), "{text}");
}
