//! Flags about single fetches: who asks, how long, how much, by which protocol.

use crate::units::{bytes, duration};
use anyhow::{Context, bail};
use clap::ValueEnum;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use trawl_fetch::{ConnectTo, FetchConfig, TlsMode, TlsVersions, TypeLimit};

/// How URLs are fetched.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fetching")]
pub struct NetworkArgs {
    /// The User-Agent header; say who you are and where to complain
    #[arg(long, default_value = concat!("trawl/", env!("CARGO_PKG_VERSION")), value_name = "TEXT")]
    user_agent: String,

    /// E-mail address for the From header
    #[arg(long, default_value = "", hide_default_value = true, value_name = "ADDRESS")]
    contact: String,

    /// Longest time for one fetch
    #[arg(long, default_value = "5m", value_name = "DURATION", value_parser = duration)]
    timeout: Duration,

    /// Longest time for a TCP connection
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    connect_timeout: Duration,

    /// Longest time for a TLS handshake
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    tls_timeout: Duration,

    /// Longest time from a request to the first byte of its response
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration)]
    first_byte_timeout: Duration,

    /// Longest time between two reads of a response
    #[arg(long, default_value = "20s", value_name = "DURATION", value_parser = duration)]
    idle_timeout: Duration,

    /// Name server, as ADDR or ADDR:PORT; the system's by default
    #[arg(long, value_name = "ADDR", value_parser = resolver)]
    resolver: Vec<SocketAddr>,

    /// Longest time for one DNS lookup, with all attempts
    #[arg(long, default_value = "10s", value_name = "DURATION", value_parser = duration)]
    dns_timeout: Duration,

    /// Attempts of one DNS lookup
    #[arg(long, default_value_t = 3, value_name = "N")]
    dns_attempts: usize,

    /// DNS lookups at once
    #[arg(long, default_value_t = 256, value_name = "N")]
    dns_lookups: usize,

    /// Use a DNS answer at least this long, even if its TTL is shorter
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = duration)]
    dns_min_ttl: Duration,

    /// Use a DNS answer at most this long
    #[arg(long, default_value = "1d", value_name = "DURATION", value_parser = duration)]
    dns_max_ttl: Duration,

    /// Keep at most this many bytes of a body; a longer one is cut, and marked as such
    #[arg(long, default_value = "32MiB", value_parser = bytes, value_name = "SIZE")]
    max_body: u64,

    /// Another limit for a media type, such as video/*=1MiB or application/pdf=64MiB; the first match counts
    #[arg(long, value_name = "TYPE=SIZE", value_parser = type_limit)]
    max_body_of: Vec<TypeLimit>,

    /// Keep only bodies of these media types, such as text/html or text/*; of other responses keep the head
    #[arg(long, value_name = "TYPE", value_parser = media_type)]
    media_type: Vec<String>,

    /// Use HTTP/1.1 only, even if a server offers HTTP/2
    #[arg(long)]
    no_http2: bool,

    /// Whether to accept every certificate and record whether it is valid, or to refuse invalid ones
    #[arg(long, value_enum, default_value_t = TlsName::Record)]
    tls: TlsName,

    /// TLS versions to offer
    #[arg(long, value_enum, default_value_t = TlsVersion::Any)]
    tls_version: TlsVersion,

    /// File of CA certificates (PEM) to trust in addition to Mozilla's
    #[arg(long, value_name = "FILE")]
    ca_file: Vec<PathBuf>,

    /// Connect to ADDR:PORT instead of HOST:PORT, like curl; an empty HOST or PORT matches all
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    connect_to: Vec<ConnectTo>,

    /// Allow this host to have private addresses; `*` allows all hosts
    #[arg(long, value_name = "HOST")]
    allow_private: Vec<String>,
}

impl NetworkArgs {
    /// These flags over `fetch`.
    pub fn apply(self, fetch: &mut FetchConfig) -> anyhow::Result<()> {
        if (self.tls, self.tls_version) == (TlsName::Verify, TlsVersion::Old) {
            bail!("--tls verify and --tls-version old exclude each other: over old TLS no certificate is checked");
        }
        if self.user_agent.trim().is_empty() {
            bail!("--user-agent is empty: servers need to know who crawls them");
        }
        for (flag, time) in [
            ("--timeout", self.timeout),
            ("--connect-timeout", self.connect_timeout),
            ("--tls-timeout", self.tls_timeout),
            ("--first-byte-timeout", self.first_byte_timeout),
            ("--idle-timeout", self.idle_timeout),
            ("--dns-timeout", self.dns_timeout),
        ] {
            // Users who mean "no limit" would see every host in backoff, and wait a quarter of an hour for nothing.
            if time.is_zero() {
                bail!("{flag}: expected more than 0s, found 0s, in which no server can answer");
            }
        }
        (fetch.user_agent, fetch.contact) = (self.user_agent, self.contact);
        fetch.limits.total = self.timeout;
        (fetch.limits.connect, fetch.limits.tls) = (self.connect_timeout, self.tls_timeout);
        (fetch.limits.first_byte, fetch.limits.idle) = (self.first_byte_timeout, self.idle_timeout);
        (fetch.dns.servers, fetch.dns.timeout) = (self.resolver, self.dns_timeout);
        (fetch.dns.attempts, fetch.dns.concurrent) = (self.dns_attempts, self.dns_lookups);
        (fetch.dns.keep_least, fetch.dns.keep_most) = (self.dns_min_ttl, self.dns_max_ttl.max(self.dns_min_ttl));
        for path in &self.ca_file {
            let pem = std::fs::read(path).with_context(|| format!("cannot read --ca-file {}", path.display()))?;
            fetch.add_roots(&pem).with_context(|| format!("--ca-file {}", path.display()))?;
        }
        fetch.limits.body_bytes = self.max_body;
        fetch.limits.body_bytes_of = body_limits(self.max_body, self.max_body_of, &self.media_type);
        fetch.http2 = !self.no_http2;
        (fetch.connect_to, fetch.allow_private) = (self.connect_to, self.allow_private);
        fetch.tls = match self.tls {
            TlsName::Record => TlsMode::Record,
            TlsName::Verify => TlsMode::Verify,
        };
        fetch.tls_versions = match self.tls_version {
            TlsVersion::Any => TlsVersions::Any,
            TlsVersion::Only12 => TlsVersions::Only12,
            TlsVersion::Only13 => TlsVersions::Only13,
            TlsVersion::Old => TlsVersions::Old,
        };
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TlsName {
    /// Accept any certificate, and record whether it is valid
    Record,
    /// Refuse an invalid certificate
    Verify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TlsVersion {
    /// 1.3, or 1.2 if the server has nothing newer
    Any,
    /// Only 1.2, for servers that fail when 1.3 is offered
    #[value(name = "1.2")]
    Only12,
    /// Only 1.3
    #[value(name = "1.3")]
    Only13,
    /// Like any; if that fails, also TLS 1.0 and 1.1, RSA key exchange and CBC, which are not safe
    Old,
}

/// Reads the address of a name server; port 53 when it names none.
fn resolver(text: &str) -> Result<SocketAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = text.parse().or_else(|_| bare.parse().map(|ip: IpAddr| SocketAddr::new(ip, 53)));
    address.map_err(|_| format!("expected an address like 192.0.2.1 or [2001:db8::1]:5353, found {text:?}"))
}

/// `video/*=1MiB`.
fn type_limit(text: &str) -> Result<TypeLimit, String> {
    let (name, size) = text.split_once('=').ok_or("expected TYPE=SIZE, as video/*=1MiB")?;
    Ok(TypeLimit { media_type: media_type(name)?, bytes: bytes(size)? })
}

/// `text/html`, `text/*`, or `*`. Anything else is the type of no response: with `--media-type html`, or with several types in one
/// value, a crawl kept no body at all.
fn media_type(text: &str) -> Result<String, String> {
    let name = text.trim().to_ascii_lowercase();
    let is_token = |part: &str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b));
    let is_type = match name.split_once('/') {
        // `*` stands for anything, and only at the end.
        Some((kind, rest)) => {
            let has_both = !kind.is_empty() && !rest.is_empty();
            has_both && is_token(kind) && is_token(rest.strip_suffix('*').unwrap_or(rest))
        }
        None => name == "*",
    };
    if is_type {
        return Ok(name);
    }
    Err(format!("expected a media type such as text/html or text/*, found {text:?}; for several, repeat the flag"))
}

/// Limits by media type: those that are given; where only some types are wanted, the usual one for them and none for others.
fn body_limits(usual: u64, mut limits: Vec<TypeLimit>, wanted: &[String]) -> Vec<TypeLimit> {
    let limit = |media_type: &str, bytes| TypeLimit { media_type: media_type.trim().to_ascii_lowercase(), bytes };
    if !wanted.is_empty() {
        limits.extend(wanted.iter().map(|media_type| limit(media_type, usual)));
        limits.push(limit("*", 0));
    }
    limits
}
