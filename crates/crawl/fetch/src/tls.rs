//! TLS that takes any certificate and writes down what it is worth.
//!
//! An archive wants the page behind an expired certificate too, so the handshake checks only that the peer holds the
//! key it shows; afterwards the chain is judged as a browser would, and the verdict recorded or, on request, enforced.

use crate::config::{TlsMode, TlsVersions};
use crate::error::{Error, class_of, failure};
use crate::old_tls::OldTls;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use trawl_model::{ErrorClass, Failure, TlsFacts, UnixMillis};

/// What is offered to be spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// HTTP/2, and HTTP/1.1 where the server has no more.
    Both,
    /// HTTP/1.1 alone.
    Http1,
}

pub(crate) struct Tls {
    both: TlsConnector,
    http1: TlsConnector,
    judge: Arc<WebPkiServerVerifier>,
    /// Certificates (DER) that the operator trusts, whatever they were made for.
    trusted: Vec<Vec<u8>>,
    mode: TlsMode,
    /// For servers with which the others cannot agree.
    pub(crate) old: Option<OldTls>,
}

impl Tls {
    pub(crate) fn new(mode: TlsMode, versions: TlsVersions, extra_roots: &[Vec<u8>]) -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for der in extra_roots {
            roots.add(CertificateDer::from(der.clone()))?;
        }
        let judge = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(|e| rustls::Error::General(e.to_string()))?;
        let old = match (versions, mode) {
            (TlsVersions::Old, TlsMode::Verify) => {
                return Err(Error::Setting {
                    setting: "tls version",
                    expected: "any, 1.2 or 1.3 where certificates are verified: over old versions they are not checked",
                    found: "old".into(),
                });
            }
            (TlsVersions::Old, TlsMode::Record) => Some(OldTls::new()?),
            _ => None,
        };
        let versions: &[_] = match versions {
            TlsVersions::Any | TlsVersions::Old => &[&TLS13, &TLS12],
            TlsVersions::Only12 => &[&TLS12],
            TlsVersions::Only13 => &[&TLS13],
        };
        let mut config = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let http1 = TlsConnector::from(Arc::new(config.clone()));
        config.alpn_protocols.insert(0, b"h2".to_vec());
        let both = TlsConnector::from(Arc::new(config));
        Ok(Self { both, http1, judge, trusted: extra_roots.to_vec(), mode, old })
    }

    /// Shakes hands; the certificate is judged as of `now`.
    pub(crate) async fn connect(
        &self,
        host: &str,
        tcp: TcpStream,
        now: UnixMillis,
        protocols: Protocols,
    ) -> Result<(TlsStream<TcpStream>, TlsFacts), Failure> {
        let connector = match protocols {
            Protocols::Both => &self.both,
            Protocols::Http1 => &self.http1,
        };
        let refuse = |message: String| failure(ErrorClass::TlsFailure, message);
        let name = ServerName::try_from(host.to_owned()).map_err(|e| refuse(e.to_string()))?;
        let stream =
            connector.connect(name.clone(), tcp).await.map_err(|e| match class_of(&e, ErrorClass::TlsFailure) {
                ErrorClass::TlsFailure | ErrorClass::NoRoute => refuse(in_words(&e.to_string())),
                class => failure(class, format!("tls handshake: {e}")),
            })?;
        let facts = self.judge(stream.get_ref().1, &name, now);
        match (&facts.refused, self.mode) {
            (Some(why), TlsMode::Verify) => Err(refuse(format!("certificate refused: {why}"))),
            _ => Ok((stream, facts)),
        }
    }

    fn judge(&self, connection: &ClientConnection, name: &ServerName<'_>, now: UnixMillis) -> TlsFacts {
        let seconds = u64::try_from(now.0 / 1000).unwrap_or(0);
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let refused = match connection.peer_certificates().and_then(<[_]>::split_first) {
            None => Some("no certificate".to_owned()),
            Some((leaf, chain)) => match self.judge.verify_server_cert(leaf, chain, name, &[], now) {
                Ok(_) => None,
                // Made as an authority's, as `openssl req -x509` does, and shown by a server. It was judged valid at this
                // time before that was found, and the operator trusts it: its names are left to check.
                Err(e) if is_authoritys(&e) && self.trusted.iter().any(|der| der == leaf.as_ref()) => {
                    let named = ParsedCertificate::try_from(leaf).and_then(|leaf| verify_server_name(&leaf, name));
                    named.err().map(|e| verdict(&e))
                }
                Err(e) => Some(verdict(&e)),
            },
        };
        let version = match connection.protocol_version() {
            Some(rustls::ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(rustls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "",
        };
        let suite = connection.negotiated_cipher_suite().and_then(|s| s.suite().as_str()).unwrap_or_default();
        // The library writes TLS13_AES_128_GCM_SHA256 where the registry has TLS_AES_128_GCM_SHA256.
        TlsFacts { version: version.into(), cipher_suite: suite.replacen("TLS13_", "TLS_", 1), refused }
    }
}

/// Whether all that is wrong with a certificate is that it is an authority's.
fn is_authoritys(error: &rustls::Error) -> bool {
    use rustls::Error::InvalidCertificate;
    // The library does not name the error, and its type belongs to a crate below.
    matches!(error, InvalidCertificate(CertificateError::Other(OtherError(inner)))
        if inner.to_string() == "CaUsedAsEndEntity")
}

/// What is wrong with a certificate, in words.
fn verdict(error: &rustls::Error) -> String {
    use rustls::Error::InvalidCertificate;
    match error {
        _ if is_authoritys(error) => "invalid peer certificate: it is an authority's, not a server's".into(),
        InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
            format!("invalid peer certificate: {}", in_words(&inner.to_string()))
        }
        InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented }) => {
            let names: Vec<&str> = presented.iter().map(|name| bare_name(name)).collect();
            let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            format!("invalid peer certificate: it is for {names}, not for {}", expected.to_str())
        }
        other => in_words(&other.to_string()),
    }
}

/// `own.test` of `DnsName("own.test")`.
fn bare_name(text: &str) -> &str {
    text.split_once('(').map_or(text, |(_, inner)| inner.trim_end_matches(')').trim_matches('"'))
}

/// The library's words without Rust's names in them: `HandshakeFailure` becomes "handshake failure".
fn in_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for word in text.split_inclusive([' ', '(', ')']) {
        let inner = word.trim_end_matches([' ', '(', ')', ',']);
        let is_name = inner.len() > 1
            && inner.starts_with(|c: char| c.is_ascii_uppercase())
            && inner.contains(|c: char| c.is_ascii_lowercase())
            && inner.chars().all(|c| c.is_ascii_alphanumeric());
        if !is_name {
            out.push_str(word);
            continue;
        }
        for (at, c) in word.char_indices() {
            if at > 0 && c.is_ascii_uppercase() {
                out.push(' ');
            }
            out.push(c.to_ascii_lowercase());
        }
    }
    out
}

#[cfg(test)]
#[test]
fn errors_are_told_in_words() {
    assert_eq!(in_words("received fatal alert: HandshakeFailure"), "received fatal alert: handshake failure");
    assert_eq!(in_words("invalid peer certificate: UnknownIssuer"), "invalid peer certificate: unknown issuer");
    assert_eq!(
        in_words("peer is incompatible: NoCipherSuitesInCommon"),
        "peer is incompatible: no cipher suites in common"
    );
    assert_eq!(in_words("TLS 1.3 (RFC 8446) ends"), "TLS 1.3 (RFC 8446) ends");
}

/// Checks that the peer holds the key of the certificate it shows, and nothing else about it.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
