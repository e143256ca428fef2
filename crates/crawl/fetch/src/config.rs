//! What a fetch may cost and how it introduces itself.

use crate::connect_to::ConnectTo;
use crate::error::Error;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// Everything a [`crate::Fetcher`] needs to know. `Default` is polite to this machine; the user agent must be set.
#[derive(Debug, Clone)]
pub struct FetchConfig {
    /// `User-Agent`, as sent.
    pub user_agent: String,
    /// `From`, as sent; absent when empty.
    pub contact: String,
    /// `Accept-Encoding`; empty sends `identity`.
    pub accept_encoding: String,
    /// Separate limits for each part of a fetch.
    pub limits: Limits,
    /// Whether HTTP/2 is offered to https servers.
    pub http2: bool,
    /// What is done about certificates.
    pub tls: TlsMode,
    /// Which versions of TLS are offered.
    pub tls_versions: TlsVersions,
    /// Certificates (DER) believed besides Mozilla's: an organisation's own authority.
    pub extra_roots: Vec<Vec<u8>>,
    /// Where connections go instead of where names point, first match wins.
    pub connect_to: Vec<ConnectTo>,
    /// Hosts (no port; IPv6 with or without brackets) whose private addresses may be used; `*` allows all of them.
    pub allow_private: Vec<String>,
    /// Directory of bodies past `limits.memory_body`; its files have no names.
    pub spool_dir: PathBuf,
    /// Idle connections kept.
    pub pool: PoolLimits,
    /// Name lookups.
    pub dns: DnsLimits,
    /// Fetches under way at one address; the next one waits.
    pub per_address: Option<usize>,
    /// Addresses to which that does not apply.
    pub exempt: Vec<IpAddr>,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            user_agent: String::new(),
            contact: String::new(),
            accept_encoding: "gzip, br, zstd".into(),
            limits: Limits::default(),
            http2: true,
            tls: TlsMode::Record,
            tls_versions: TlsVersions::Any,
            extra_roots: Vec::new(),
            connect_to: Vec::new(),
            allow_private: Vec::new(),
            spool_dir: std::env::temp_dir(),
            pool: PoolLimits::default(),
            dns: DnsLimits::default(),
            per_address: None,
            exempt: Vec::new(),
        }
    }
}

impl FetchConfig {
    /// Believes the certificates of a PEM file too.
    pub fn add_roots(&mut self, pem: &[u8]) -> Result<(), Error> {
        let before = self.extra_roots.len();
        let wrong =
            |found: String| Error::Setting { setting: "certificates", expected: "certificates in PEM form", found };
        for certificate in CertificateDer::pem_slice_iter(pem) {
            self.extra_roots.push(certificate.map_err(|e| wrong(e.to_string()))?.to_vec());
        }
        if self.extra_roots.len() == before { Err(wrong("none".to_owned())) } else { Ok(()) }
    }
}

/// Separate limits for each part of a fetch.
#[derive(Debug, Clone)]
pub struct Limits {
    /// TCP, each address.
    pub connect: Duration,
    /// TLS handshake.
    pub tls: Duration,
    /// Request sent until the first byte of a response.
    pub first_byte: Duration,
    /// Between two reads.
    pub idle: Duration,
    /// All of it, name lookup to last byte.
    pub total: Duration,
    /// Bytes of a response head, interim responses included.
    pub head_bytes: usize,
    /// Bytes of a body; past it the body is cut, marked `length`, and the connection dropped.
    pub body_bytes: u64,
    /// Other limits for media types, the first that fits; where a body is larger than `body_bytes` allows, too.
    pub body_bytes_of: Vec<TypeLimit>,
    /// Bytes of a body kept in memory; past it the body goes to a file.
    pub memory_body: usize,
    /// Bodies in files at a time; one more waits until the capture of another is archived. Each holds a descriptor.
    pub spools: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            tls: Duration::from_secs(10),
            first_byte: Duration::from_secs(30),
            idle: Duration::from_secs(20),
            total: Duration::from_secs(300),
            head_bytes: 64 * 1024,
            body_bytes: 32 << 20,
            body_bytes_of: Vec::new(),
            memory_body: 1 << 20,
            spools: 256,
        }
    }
}

impl Limits {
    /// Bytes that a body of this `Content-Type` may have.
    pub(crate) fn body_bytes_for(&self, content_type: Option<&str>) -> u64 {
        let found = self.body_bytes_of.iter().find(|limit| limit.applies(content_type.unwrap_or_default()));
        found.map_or(self.body_bytes, |limit| limit.bytes)
    }
}

/// A limit on bodies of one media type, or of a kind of them: `video/mp4`, `video/*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeLimit {
    /// Lower case; `*` at the end stands for anything.
    pub media_type: String,
    /// Bytes of a body.
    pub bytes: u64,
}

impl TypeLimit {
    fn applies(&self, content_type: &str) -> bool {
        // `text/html charset=utf-8` lacks its semicolon: links are read from it too.
        let end = |c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace();
        let media_type = content_type.trim_start().split(end).next().unwrap_or_default().to_ascii_lowercase();
        match self.media_type.strip_suffix('*') {
            Some(start) => media_type.starts_with(start),
            None => media_type == self.media_type,
        }
    }
}

/// What is done about certificates. What was found is recorded either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    /// Any certificate is accepted, the verdict recorded: an archive wants the page.
    #[default]
    Record,
    /// A certificate that does not verify ends the fetch.
    Verify,
}

/// Versions of TLS that are offered to servers. But for `Old` the suites are those of rustls: ephemeral keys with AES-GCM or
/// ChaCha20.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsVersions {
    /// 1.3, and 1.2 where the server has no more.
    #[default]
    Any,
    /// 1.2 alone, for servers and boxes on the way that break off when 1.3 is offered.
    Only12,
    /// 1.3 alone.
    Only13,
    /// Like `Any`. If that handshake fails, try once more on a new connection and also offer what is no longer considered safe:
    /// 1.0 and 1.1, key exchange by RSA, CBC. The certificate is then not checked, so [`TlsMode::Verify`] excludes this.
    Old,
}

/// Bounds of the pool of idle connections.
#[derive(Debug, Clone)]
pub struct PoolLimits {
    /// Idle connections to one origin.
    pub per_origin: usize,
    /// Idle connections in all.
    pub total: usize,
    /// How long a connection may idle; servers commonly hang up after 5 to 75 seconds.
    pub idle: Duration,
    /// How long a connection idles at least, besides one round trip, before it is used again; a request that comes sooner
    /// gets a new one. Some servers send more than their response: what comes in this time is seen before the next
    /// request, what comes later would be archived as its answer.
    pub settle: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { per_origin: 2, total: 512, idle: Duration::from_secs(30), settle: Duration::from_millis(100) }
    }
}

/// Bounds of name lookups.
#[derive(Debug, Clone)]
pub struct DnsLimits {
    /// Name servers to ask, each with its port; those of the system when empty.
    pub servers: Vec<SocketAddr>,
    /// Lookups at once; further ones wait, which does not count against their hosts. Each holds up to two sockets.
    pub concurrent: usize,
    /// One lookup, all its attempts together.
    pub timeout: Duration,
    /// Attempts of one lookup.
    pub attempts: usize,
    /// The shortest time an answer is used, also when its time to live is shorter.
    pub keep_least: Duration,
    /// The longest time an answer is used.
    pub keep_most: Duration,
    /// How long a failure is used; of a name that does not exist at most.
    pub keep_failure: Duration,
    /// Names kept.
    pub names: usize,
}

impl Default for DnsLimits {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            concurrent: 256,
            timeout: Duration::from_secs(10),
            attempts: 3,
            keep_least: Duration::from_secs(5),
            keep_most: Duration::from_secs(86_400),
            keep_failure: Duration::from_secs(30),
            names: 65_536,
        }
    }
}
