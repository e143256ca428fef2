//! A small client that reports exactly what came over the wire.
#![allow(dead_code)] // each test binary uses a part

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use trawl_testweb::{Character, Config, Node, PageId, Resource, Shares, World};

pub const AGENT: &str = "trawl/0.1 (+test)";

/// What came back.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    /// How reading ended, if not as the head announced.
    pub error: Option<String>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = |line: &'_ str| line.split_once(':').is_some_and(|(n, _)| n.eq_ignore_ascii_case(name));
        self.head.lines().find(|l| line(l)).and_then(|l| l.split_once(':')).map(|(_, v)| v.trim())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection of any kind.
pub trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

pub fn tcp(addr: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

type TlsStream = rustls::StreamOwned<rustls::ClientConnection, TcpStream>;

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Settings of a client that trusts the authority.
pub fn trusting(ca_pem: &str) -> rustls::ClientConfig {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth()
}

/// Settings of a client that takes any certificate, as crawlers do.
pub fn credulous() -> rustls::ClientConfig {
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().unwrap().dangerous();
    builder.with_custom_certificate_verifier(Arc::new(AnyCertificate(provider()))).with_no_client_auth()
}

#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A TLS connection that trusts the authority.
pub fn tls(addr: SocketAddr, ca_pem: &str, name: &str) -> Result<TlsStream, String> {
    tls_with(addr, Arc::new(trusting(ca_pem)), name, Duration::from_secs(60))
}

/// A TLS connection with these settings, whose reads give up after a while.
pub fn tls_with(
    addr: SocketAddr,
    config: Arc<rustls::ClientConfig>,
    name: &str,
    patience: Duration,
) -> Result<TlsStream, String> {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = rustls::ClientConnection::new(config, name).unwrap();
    let mut stream = tcp(addr);
    stream.set_read_timeout(Some(patience)).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|e| e.to_string())?;
    }
    Ok(rustls::StreamOwned::new(connection, stream))
}

/// Sends a GET with more header lines and reads the answer.
pub fn get(stream: &mut dyn Wire, host: &str, target: &str, more: &str) -> Answer {
    // One write: a head in pieces would wait for delayed acknowledgements.
    let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\n{more}\r\n");
    if let Err(error) = stream.write_all(head.as_bytes()).and_then(|()| stream.flush()) {
        return Answer { error: Some(error.to_string()), ..Answer::default() };
    }
    read(stream)
}

/// Reads one answer, understanding lengths, chunks and the end of the connection.
pub fn read(stream: &mut dyn Wire) -> Answer {
    let mut answer = Answer::default();
    let mut bytes = Vec::new();
    if let Err(error) = read_answer(stream, &mut answer, &mut bytes) {
        answer.error = Some(error);
    }
    answer
}

fn read_answer(stream: &mut dyn Wire, answer: &mut Answer, bytes: &mut Vec<u8>) -> Result<(), String> {
    let more = |stream: &mut dyn Wire, bytes: &mut Vec<u8>| {
        let mut piece = [0; 16 << 10];
        match stream.read(&mut piece) {
            Ok(0) => Err("closed".to_owned()),
            Ok(n) => {
                bytes.extend_from_slice(&piece[..n]);
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    };
    let end = loop {
        match bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            Some(at) => break at + 4,
            None => more(stream, bytes)?,
        }
    };
    answer.head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    answer.status = answer.head.split(' ').nth(1).and_then(|s| s.get(..3)?.parse().ok()).unwrap_or(0);
    bytes.drain(..end);
    if matches!(answer.status, 204 | 304) {
        return Ok(());
    }
    if answer.header("transfer-encoding").is_some() {
        loop {
            let line = loop {
                match bytes.windows(2).position(|w| w == b"\r\n") {
                    Some(at) => break at,
                    None => more(stream, bytes)?,
                }
            };
            let size = String::from_utf8_lossy(&bytes[..line]).into_owned();
            let size = usize::from_str_radix(size.split(';').next().unwrap(), 16).map_err(|e| e.to_string())?;
            bytes.drain(..line + 2);
            if size == 0 {
                while !bytes.windows(4).any(|w| w == b"\r\n\r\n") {
                    more(stream, bytes)?;
                }
                return Ok(());
            }
            while bytes.len() < size + 2 {
                more(stream, bytes)?;
            }
            answer.body.extend_from_slice(&bytes[..size]);
            bytes.drain(..size + 2);
        }
    }
    let length = answer.header("content-length").map(|l| l.parse::<usize>().unwrap());
    let result = loop {
        if length.is_some_and(|l| bytes.len() >= l) {
            break Ok(());
        }
        match more(stream, bytes) {
            Ok(()) => {}
            Err(error) if length.is_none() && error == "closed" => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    answer.body = std::mem::take(bytes);
    result
}

/// A web in which everything that can be has this character, and nothing else is special.
pub fn only(characters: &[Character]) -> Config {
    let mut shares = Shares::default();
    for &character in characters {
        shares.set(character, 1000);
    }
    Config { domains: 20, seeds: 1, pages: 600, slow_ms: 200, bomb_bytes: 8 << 20, shares, ..Config::default() }
}

/// The first page that satisfies a condition.
pub fn find_page(world: &World, wanted: impl Fn(PageId) -> bool) -> (PageId, Node) {
    let page = world.host_ids().flat_map(|id| world.pages(id)).find(|&page| wanted(page)).unwrap();
    (page, world.node(page.host, Resource::Page(page.number)))
}

/// Host name and request target of a node.
pub fn parts(world: &World, node: Node) -> (String, String) {
    let url = world.url_of(node);
    let rest = url.split_once("://").unwrap().1;
    let slash = rest.find('/').unwrap();
    (rest[..slash].to_owned(), rest[slash..].to_owned())
}
