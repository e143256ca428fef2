//! One URL in, one capture out.

use crate::address::is_public;
use crate::body::{self, Terms};
use crate::config::FetchConfig;
use crate::conn::{Conn, Stop, Waiting, within};
use crate::connect_to::ConnectTo;
use crate::error::{Error, class_of, failure, has_no_way};
use crate::pool::Pool;
use crate::resolve::{Addresses, Resolver};
use crate::target::Origin;
use crate::tls::Tls;
use bytes::Bytes;
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use trawl_http::{Framing, Head, head_len, may_begin};
use trawl_io::Fs;
use trawl_model::{
    Body, Capture, CaptureFacts, ErrorClass, Failure, Message, Outcome, Timings, TlsFacts, Truncated, UnixMillis,
};
use trawl_url::WebUrl;

/// What to fetch, and what is already known of it.
#[derive(Debug, Clone)]
pub struct Ask {
    /// The URL, fetched and stored as it is.
    pub url: WebUrl,
    /// Now: the capture's date.
    pub started_at: UnixMillis,
    /// What the scheduler knows (depth, via, attempt, robots, seed metadata); the fetch fills in the rest.
    pub facts: CaptureFacts,
    /// A smaller limit on body bytes than the setting.
    pub body_limit: Option<u64>,
    /// How long the host is left alone before the request is made again on another connection.
    pub spacing: Duration,
}

impl Ask {
    /// A URL of which nothing else is known.
    pub fn new(url: WebUrl, started_at: UnixMillis) -> Self {
        Self { url, started_at, facts: CaptureFacts::default(), body_limit: None, spacing: Duration::ZERO }
    }
}

/// Fetches, one URL at a time each; any number at once. Clones share pool and caches.
#[derive(Clone)]
pub struct Fetcher {
    shared: Arc<Shared>,
}

struct Shared {
    config: FetchConfig,
    fs: Arc<dyn Fs>,
    pool: Pool,
    resolver: Resolver,
    tls: Tls,
    /// Bodies that may be in files at a time.
    spools: Arc<Semaphore>,
    /// Why bodies can no longer be put into files.
    storage: Mutex<Option<trawl_io::Error>>,
}

/// What is known of a fetch so far, also when it fails.
#[derive(Default)]
struct Notes {
    timings: Timings,
    ip: Option<IpAddr>,
    tls: Option<TlsFacts>,
    request: Option<Bytes>,
}

/// Where to connect to.
struct Target {
    addresses: Addresses,
    port: u16,
}

struct Response {
    /// As received.
    head: Bytes,
    body: Body<'static>,
    truncated: Option<Truncated>,
}

impl Fetcher {
    /// Checks the settings and prepares pool, resolver and TLS. Large bodies are spooled through `fs`.
    pub fn new(config: FetchConfig, fs: Arc<dyn Fs>) -> Result<Self, Error> {
        let header = |setting, value: &str, needed: bool| {
            let bad = value.bytes().any(|b| b < b' ' || b == 0x7f) || needed && value.trim().is_empty();
            let expected = "one line of text";
            if bad { Err(Error::Setting { setting, expected, found: value.to_owned() }) } else { Ok(()) }
        };
        header("user agent", &config.user_agent, true)?;
        header("contact", &config.contact, false)?;
        header("accept-encoding", &config.accept_encoding, false)?;
        let tls = Tls::new(config.tls, config.tls_versions, &config.extra_roots)?;
        let (pool, resolver) = (Pool::new(config.pool.clone()), Resolver::new(config.dns.clone()));
        let spools = Arc::new(Semaphore::new(config.limits.spools.clamp(1, Semaphore::MAX_PERMITS)));
        Ok(Self { shared: Arc::new(Shared { config, fs, pool, resolver, tls, spools, storage: Mutex::default() }) })
    }

    /// Whether a rule of `--connect-to` sends the host of a URL to another: such hosts share addresses by choice.
    pub fn is_redirected(&self, url: &WebUrl) -> bool {
        let Origin { host, port, .. } = Origin::of(url);
        let rule = self.shared.config.connect_to.iter().find(|rule| rule.apply(&host, port).is_some());
        rule.is_some_and(ConnectTo::moves_host)
    }

    /// The address that the next connection for a URL will be tried at first, and how long that holds.
    pub async fn address(&self, url: &WebUrl) -> Result<(IpAddr, Duration), Failure> {
        let Target { addresses, .. } = self.shared.target(&Origin::of(url)).await?;
        match addresses.ips.first() {
            Some(ip) => Ok((*ip, addresses.until.saturating_duration_since(Instant::now()))),
            None => Err(failure(ErrorClass::DnsFailure, "the name has no address")),
        }
    }

    /// Why a body could not be put into a file, if the disk is full or broken; told once. The fetch itself ended with
    /// [`ErrorClass::LocalResource`], but to make it again would only download it again.
    pub fn take_storage_error(&self) -> Option<trawl_io::Error> {
        self.shared.storage.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Fetches one URL. Every outcome, failures included, is a capture; redirects are not followed.
    pub async fn fetch(&self, ask: Ask) -> Capture<'static> {
        let begun = Instant::now();
        let mut notes = Notes::default();
        let result = self.shared.exchange(&ask, begun, &mut notes).await;
        let total_ms = millis_since(begun);
        notes.timings.total_ms = Some(total_ms);
        let Ask { url, started_at, mut facts, .. } = ask;
        facts.fetched_at = UnixMillis(started_at.0.saturating_add(i64::from(total_ms)));
        (facts.ip, facts.tls, facts.timings) = (notes.ip, notes.tls, notes.timings);
        let request = notes.request.map(|head| Message { head, body: Body::empty() });
        let outcome = match result {
            Err(failed) => Outcome::Failed(failed),
            Ok(Response { head, body, truncated }) => {
                let parsed = Head::new(&head);
                facts.protocol = Some(parsed.protocol().into());
                let head = match parsed.stored(body.len_bytes()) {
                    Cow::Borrowed(_) => head,
                    Cow::Owned(changed) => changed.into(),
                };
                Outcome::Response { message: Message { head, body }, payload_digest: None, truncated }
            }
        };
        Capture { url: url.into(), started_at, request, outcome, facts }
    }
}

impl Shared {
    async fn exchange(&self, ask: &Ask, begun: Instant, notes: &mut Notes) -> Result<Response, Failure> {
        let mut total = begun + self.config.limits.total;
        let origin = Origin::of(&ask.url);
        let request = self.request(&ask.url);
        // A pooled connection may have been closed by its server just now, or what comes on it may not be the answer to
        // our request: then the request is made again on a new one.
        while let Some(mut conn) = self.pool.take(&origin) {
            match conn.waiting() {
                Waiting::Nothing => {}
                Waiting::Bytes => {
                    self.pool.distrust(&origin);
                    break;
                }
                Waiting::End => continue,
            }
            match self.on(conn, &origin, &request, ask, total, notes).await {
                Err(Attempt::Stale) => {
                    (notes.ip, notes.tls) = (None, None);
                    // The server may have seen the request: then the next one is one more of ours, and comes no sooner.
                    tokio::time::sleep(ask.spacing).await;
                    total = total.max(Instant::now() + self.config.limits.total);
                }
                Err(Attempt::Failed(failed)) => return Err(failed),
                Ok(response) => return Ok(response),
            }
        }
        let target = self.target(&origin).await?;
        // Waiting for a lookup of ours is no fault of the host's: its time begins here.
        total = total.max(Instant::now() + self.config.limits.total);
        let conn = self.connect(&origin, target, ask.started_at, total, notes).await?;
        self.on(conn, &origin, &request, ask, total, notes).await.map_err(|attempt| match attempt {
            Attempt::Failed(failed) => failed,
            Attempt::Stale => failure(ErrorClass::Reset, "the connection ended before a response"),
        })
    }

    fn request(&self, url: &WebUrl) -> Bytes {
        let config = &self.config;
        let coding = if config.accept_encoding.is_empty() { "identity" } else { &config.accept_encoding };
        let mut text = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\nAccept: */*\r\nAccept-Encoding: {coding}\r\n",
            url.path_query(),
            url.authority(),
            config.user_agent
        );
        if !config.contact.is_empty() {
            text += &format!("From: {}\r\n", config.contact);
        }
        text += "\r\n";
        text.into()
    }

    /// One exchange on an open connection, which goes back to the pool if it can.
    async fn on(
        &self,
        mut conn: Conn,
        origin: &Origin,
        request: &Bytes,
        ask: &Ask,
        total: Instant,
        notes: &mut Notes,
    ) -> Result<Response, Attempt> {
        let limits = &self.config.limits;
        (notes.ip, notes.tls) = (Some(conn.peer), conn.tls.clone());
        let sent = conn.send(request, total.min(Instant::now() + limits.idle)).await;
        match sent {
            Err(failed) if conn.reused && failed.class == ErrorClass::Reset => return Err(Attempt::Stale),
            Err(failed) => return Err(Attempt::Failed(failed)),
            Ok(()) => notes.request = Some(request.clone()),
        }
        let head = match self.head(&mut conn, total, notes).await {
            // No response at all: what a page before it left over.
            Err(Attempt::Failed(failed)) if conn.reused && failed.class == ErrorClass::ProtocolError => {
                self.pool.distrust(origin);
                return Err(Attempt::Stale);
            }
            head => head?,
        };
        let parsed = Head::new(&head);
        // Said by a server that is about to close an idle connection, before it saw our request.
        if conn.reused && parsed.status() == Some(408) {
            return Err(Attempt::Stale);
        }
        let body_bytes = ask.body_limit.map_or(limits.body_bytes, |own| own.min(limits.body_bytes));
        let terms = Terms {
            idle: limits.idle,
            total,
            body_bytes,
            memory_body: limits.memory_body,
            fs: &self.fs,
            spool_dir: &self.config.spool_dir,
            spools: &self.spools,
            packed: is_packed(&parsed),
            head_answers: !matches!(parsed.status(), Some(200..=299)),
            storage: &self.storage,
        };
        let received = body::receive(&mut conn, Framing::of(&parsed), terms).await.map_err(Attempt::Failed)?;
        if received.at_end {
            match conn.waiting() {
                Waiting::Bytes => {
                    self.pool.distrust(origin);
                    // The first response on a connection is the answer to its only request. Later on, this may have been
                    // left over from before, and what waits behind it the answer.
                    if conn.reused {
                        return Err(Attempt::Stale);
                    }
                }
                Waiting::Nothing if may_be_reused(&parsed) => {
                    conn.acknowledge();
                    conn.reused = true;
                    self.pool.put(origin, conn);
                }
                Waiting::Nothing | Waiting::End => {}
            }
        }
        Ok(Response { head, body: received.body, truncated: received.truncated })
    }

    /// The final response head, which has a status; interim ones (1xx) are passed over.
    async fn head(&self, conn: &mut Conn, total: Instant, notes: &mut Notes) -> Result<Bytes, Attempt> {
        let limits = &self.config.limits;
        let (asked, mut looked, mut left) = (Instant::now(), 0, limits.head_bytes);
        let mut first = None;
        let failed = |class, message: String| Err(Attempt::Failed(failure(class, message)));
        loop {
            if let Some(end) = head_len(&conn.buf, looked).filter(|end| *end <= left) {
                let raw = conn.buf.split_to(end);
                let head = Head::new(&raw);
                match head.status() {
                    None => {
                        let found = show(&raw);
                        return failed(
                            ErrorClass::ProtocolError,
                            format!("expected an HTTP status line, found {found}"),
                        );
                    }
                    Some(100 | 102..=199) => (left, looked) = (left - end, 0),
                    // A head is small and lives as long as its capture: it must not keep the whole read buffer alive.
                    Some(_) => return Ok(Bytes::copy_from_slice(head.bytes())),
                }
                continue;
            }
            looked = conn.buf.len();
            if looked >= left {
                return failed(ErrorClass::TooLarge, format!("head of more than {} bytes", limits.head_bytes));
            }
            if looked >= 8 && not_http(&conn.buf) {
                return failed(
                    ErrorClass::ProtocolError,
                    format!("expected an HTTP status line, found {}", show(&conn.buf)),
                );
            }
            let idle = if first.is_none() { asked + limits.first_byte } else { Instant::now() + limits.idle };
            match conn.fill(idle, total).await {
                Ok(()) => {
                    first.get_or_insert_with(|| notes.timings.ttfb_ms = Some(millis_since(asked)));
                }
                Err(Stop::Timeout) if conn.buf.is_empty() => {
                    return failed(ErrorClass::HeaderTimeout, "no response in time".into());
                }
                Err(Stop::Timeout) => return failed(ErrorClass::HeaderTimeout, "the head did not end in time".into()),
                Err(Stop::Eof | Stop::Broken(_)) if conn.reused && first.is_none() => return Err(Attempt::Stale),
                Err(Stop::Eof) if conn.buf.is_empty() => {
                    return failed(ErrorClass::Reset, "the connection ended before a response".into());
                }
                Err(Stop::Eof) if not_http(&conn.buf) => {
                    let found = show(&conn.buf);
                    return failed(ErrorClass::ProtocolError, format!("expected an HTTP status line, found {found}"));
                }
                Err(Stop::Eof) => return failed(ErrorClass::Reset, "the connection ended inside the head".into()),
                Err(Stop::Broken(e)) => {
                    return failed(class_of(&e, ErrorClass::Reset), format!("reading the head: {e}"));
                }
            }
        }
    }

    /// Where connections for an origin go: its addresses that may be used, and a port.
    async fn target(&self, origin: &Origin) -> Result<Target, Failure> {
        let rule = self.config.connect_to.iter().find_map(|rule| rule.apply(&origin.host, origin.port));
        let redirected = rule.is_some();
        let (host, port) = rule.unwrap_or_else(|| (origin.host.clone(), origin.port));
        let mut addresses = match host.parse() {
            Ok(ip) => Addresses::literal(ip),
            Err(_) => self.resolver.resolve(&host).await?,
        };
        let allowed = |ip: &IpAddr| redirected || is_public(*ip) || self.may_be_private(&origin.host);
        if !addresses.ips.iter().all(allowed) {
            addresses.ips = addresses.ips.iter().copied().filter(allowed).collect();
        }
        if addresses.ips.is_empty() {
            return Err(failure(
                ErrorClass::PrivateAddress,
                format!("{0} has only private addresses: allow them by --allow-private {0}", origin.host),
            ));
        }
        Ok(Target { addresses, port })
    }

    /// A new connection: TCP to the first address that answers, then TLS.
    async fn connect(
        &self,
        origin: &Origin,
        Target { addresses, port }: Target,
        now: UnixMillis,
        total: Instant,
        notes: &mut Notes,
    ) -> Result<Conn, Failure> {
        let mut told = None;
        for ip in addresses.ips.iter().copied() {
            match self.tcp(SocketAddr::new(ip, port), total, notes).await {
                Ok(tcp) => return self.secure(tcp, origin, ip, now, total, notes).await,
                // An address that we have no way to, IPv6 on most machines, says nothing of the host: the others do.
                Err(Dial { no_way: true, .. }) if told.is_some() => {}
                // Used up here: then nothing is known of the host.
                Err(Dial { no_way: false, failed }) if failed.class == ErrorClass::LocalResource => return Err(failed),
                Err(Dial { failed, .. }) => told = Some((failed, ip)),
            }
        }
        let none = || (failure(ErrorClass::DnsFailure, format!("{} has no address", origin.host)), None);
        let (failed, ip) = told.map_or_else(none, |(failed, ip)| (failed, Some(ip)));
        notes.ip = ip;
        Err(failed)
    }

    async fn tcp(&self, address: SocketAddr, total: Instant, notes: &mut Notes) -> Result<TcpStream, Dial> {
        let begun = Instant::now();
        notes.ip = Some(address.ip());
        let part = format!("connecting to {address}");
        let mut no_way = false;
        let dial = async {
            let stream = TcpStream::connect(address).await.map_err(|e| {
                no_way = has_no_way(&e, address.ip());
                failure(class_of(&e, ErrorClass::ConnectRefused), format!("{part}: {e}"))
            })?;
            // Requests are one small write: waiting for more to send would only add delay.
            stream.set_nodelay(true).map_err(|e| failure(class_of(&e, ErrorClass::Reset), e.to_string()))?;
            Ok(stream)
        };
        let dialled = within(self.config.limits.connect, total, ErrorClass::ConnectTimeout, &part, dial).await;
        let stream = dialled.map_err(|failed| Dial { failed, no_way })?;
        notes.timings.connect_ms = Some(millis_since(begun));
        Ok(stream)
    }

    async fn secure(
        &self,
        tcp: TcpStream,
        origin: &Origin,
        peer: IpAddr,
        now: UnixMillis,
        total: Instant,
        notes: &mut Notes,
    ) -> Result<Conn, Failure> {
        let round_trip = Duration::from_millis(notes.timings.connect_ms.unwrap_or(0).into());
        let conn = |stream, tls| Conn { stream, buf: Default::default(), peer, tls, reused: false, round_trip };
        if !origin.https {
            return Ok(conn(Box::new(tcp), None));
        }
        let begun = Instant::now();
        let shake = self.tls.connect(&origin.host, tcp, now);
        let (stream, facts) =
            within(self.config.limits.tls, total, ErrorClass::TlsFailure, "tls handshake", shake).await?;
        notes.timings.tls_ms = Some(millis_since(begun));
        Ok(conn(Box::new(stream), Some(facts)))
    }

    fn may_be_private(&self, host: &str) -> bool {
        let same = |name: &str| name == "*" || name.eq_ignore_ascii_case(host);
        self.config.allow_private.iter().any(|name| same(name.trim_matches(['[', ']'])))
    }
}

/// Why there is no connection to one address.
struct Dial {
    failed: Failure,
    /// Whether it is this machine that cannot reach it.
    no_way: bool,
}

/// What became of an exchange on one connection.
enum Attempt {
    /// The pooled connection was dead already.
    Stale,
    /// It failed for good.
    Failed(Failure),
}

/// Whether what a head says of its connection and of its body leaves no doubt about where the next response begins.
fn may_be_reused(head: &Head<'_>) -> bool {
    let doubtful = match head.status() {
        Some(101) => true,
        // These have no body: where one is announced, it may come all the same.
        Some(204 | 205) => {
            head.text("transfer-encoding").is_some() || head.text("content-length").is_some_and(|n| n.trim() != "0")
        }
        _ => head.text("transfer-encoding").is_some() && head.text("content-length").is_some(),
    };
    head.keeps_alive() && !doubtful
}

/// Whether a message is packed on its way, besides its content coding.
fn is_packed(head: &Head<'_>) -> bool {
    let is_gzip = |coding: &[u8]| {
        let coding = coding.trim_ascii();
        coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip")
    };
    head.all("transfer-encoding").any(|value| value.split(|b| *b == b',').any(is_gzip))
}

fn not_http(buf: &[u8]) -> bool {
    let text = buf.trim_ascii_start();
    !may_begin(text, false)
}

/// The start of what came, fit for a message.
fn show(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes.get(..bytes.len().min(40)).unwrap_or_default()))
}

fn millis_since(begun: Instant) -> u32 {
    u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX)
}
