//! What a fetch may cost and how it introduces itself.

use crate::connect_to::ConnectTo;
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
    /// What is done about certificates.
    pub tls: TlsMode,
    /// Certificates (DER) believed besides Mozilla's: an organisation's own authority.
    pub extra_roots: Vec<Vec<u8>>,
    /// Where connections go instead of where names point, first match wins.
    pub connect_to: Vec<ConnectTo>,
    /// Hosts (lower case, no port) whose private addresses may be used; `*` allows all of them.
    pub allow_private: Vec<String>,
    /// Directory of bodies past `limits.memory_body`; its files have no names.
    pub spool_dir: PathBuf,
    /// Idle connections kept.
    pub pool: PoolLimits,
    /// Name lookups.
    pub dns: DnsLimits,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            user_agent: String::new(),
            contact: String::new(),
            accept_encoding: "gzip, br, zstd".into(),
            limits: Limits::default(),
            tls: TlsMode::Record,
            extra_roots: Vec::new(),
            connect_to: Vec::new(),
            allow_private: Vec::new(),
            spool_dir: std::env::temp_dir(),
            pool: PoolLimits::default(),
            dns: DnsLimits::default(),
        }
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
    /// Bytes of a body kept in memory; past it the body goes to a file.
    pub memory_body: usize,
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
            memory_body: 1 << 20,
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

/// Bounds of the pool of idle connections.
#[derive(Debug, Clone)]
pub struct PoolLimits {
    /// Idle connections to one origin.
    pub per_origin: usize,
    /// Idle connections in all.
    pub total: usize,
    /// How long a connection may idle; servers commonly hang up after 5 to 75 seconds.
    pub idle: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self { per_origin: 2, total: 512, idle: Duration::from_secs(30) }
    }
}

/// Bounds of name lookups.
#[derive(Debug, Clone)]
pub struct DnsLimits {
    /// Lookups at once; each occupies a thread.
    pub concurrent: usize,
    /// One lookup.
    pub timeout: Duration,
    /// How long an answer is used: the system resolver does not tell a time to live.
    pub keep: Duration,
    /// How long a failure is used.
    pub keep_failure: Duration,
    /// Names kept.
    pub names: usize,
}

impl Default for DnsLimits {
    fn default() -> Self {
        Self {
            concurrent: 16,
            timeout: Duration::from_secs(10),
            keep: Duration::from_secs(300),
            keep_failure: Duration::from_secs(30),
            names: 65_536,
        }
    }
}
