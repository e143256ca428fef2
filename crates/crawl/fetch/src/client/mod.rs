//! One URL in, one capture out.

mod http1;

use crate::address::is_public;
use crate::body::Terms;
use crate::config::FetchConfig;
use crate::conn::{Link, Waiting};
use crate::connect_to::ConnectTo;
use crate::dial::{Dialling, Target, in_turn};
use crate::error::{Error, failure};
use crate::http2::{self, Http2};
use crate::places::{Place, Places};
use crate::pool::Pool;
use crate::reach::Reach;
use crate::resolve::{Addresses, Resolver};
use crate::target::Origin;
use crate::tls::{Protocols, Tls};
use bytes::Bytes;
use std::borrow::Cow;
use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use trawl_http::Head;
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
    /// Another limit on body bytes than the settings.
    pub body_limit: Option<u64>,
    /// How long the host is left alone before the request is made again on another connection.
    pub spacing: Duration,
    /// What is known of an earlier capture: the server may answer that nothing changed.
    pub validators: Validators,
}

/// What makes a request conditional.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validators {
    /// The `ETag` of the earlier response, quotes and all.
    pub etag: Option<String>,
    /// Its `Last-Modified`, as it was sent.
    pub last_modified: Option<String>,
}

impl Validators {
    /// Whether a 304 speaks of another version than the one that was asked about. Some servers look at `If-Modified-Since` alone,
    /// which they must not if there is an `If-None-Match`.
    pub fn are_contradicted_by(&self, head: &Head<'_>) -> bool {
        let opaque = |etag: &str| etag.trim().trim_start_matches("W/").to_owned();
        let (sent, got) = (self.etag.as_deref().map(opaque), head.text("etag").as_deref().map(opaque));
        head.status() == Some(304) && sent.zip(got).is_some_and(|(sent, got)| sent != got)
    }
}

impl Ask {
    /// A URL of which nothing else is known.
    pub fn new(url: WebUrl, started_at: UnixMillis) -> Self {
        let (facts, validators) = (CaptureFacts::default(), Validators::default());
        Self { url, started_at, facts, body_limit: None, spacing: Duration::ZERO, validators }
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
    reach: Reach,
    places: Arc<Places>,
    /// Origins that are asked by HTTP/1.1 alone: they asked for it, or broke HTTP/2.
    http1_only: Mutex<HashSet<Origin>>,
    /// Bodies that may be in files at a time.
    spools: Arc<Semaphore>,
    /// Why bodies can no longer be put into files.
    storage: Mutex<Option<trawl_io::Error>>,
}

/// What is known of a fetch so far, also when it fails.
#[derive(Default)]
pub(crate) struct Notes {
    pub timings: Timings,
    pub ip: Option<IpAddr>,
    pub tls: Option<TlsFacts>,
    pub request: Option<Bytes>,
    /// Room at the address, as long as the fetch takes.
    pub place: Place,
}

/// Origins kept in mind for not speaking HTTP/2.
const HTTP1_ONLY: usize = 65_536;

struct Response {
    /// What was spoken, where the head does not say it.
    protocol: Option<&'static str>,
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
        let places = Places::new(config.per_address, config.exempt.clone());
        let (reach, http1_only, storage) = (Reach::new(), Mutex::default(), Mutex::default());
        let shared = Shared { config, fs, pool, resolver, tls, reach, places, http1_only, spools, storage };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Whether a rule of `--connect-to` sends the host of a URL to another: such hosts share addresses by choice.
    pub fn is_redirected(&self, url: &WebUrl) -> bool {
        self.shared.is_redirected(&Origin::of(url))
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
    pub async fn fetch(&self, mut ask: Ask) -> Capture<'static> {
        let begun = Instant::now();
        let mut notes = Notes::default();
        let mut result = self.shared.exchange(&ask, begun, &mut notes).await;
        if let Ok(response) = &result
            && ask.validators.are_contradicted_by(&Head::new(&response.head))
        {
            // The page is another one by now, and this answer does not have it.
            ask.validators = Validators::default();
            notes = Notes::default();
            self.shared.make_room(&ask, begun).await;
            result = self.shared.exchange(&ask, Instant::now(), &mut notes).await;
        }
        if let Err(failed) = &mut result
            && is_timeout(failed.class)
            && self.shared.reach.is_down(begun, notes.ip).await
        {
            let why = format!("no server answers, nor do those that did: {}", failed.message);
            *failed = failure(ErrorClass::LocalResource, why);
        }
        let total_ms = millis_since(begun);
        notes.timings.total_ms = Some(total_ms);
        let Ask { url, started_at, mut facts, .. } = ask;
        facts.fetched_at = UnixMillis(started_at.0.saturating_add(i64::from(total_ms)));
        (facts.ip, facts.tls, facts.timings) = (notes.ip, notes.tls, notes.timings);
        let request = notes.request.map(|head| Message { head, body: Body::empty() });
        let outcome = match result {
            Err(failed) => Outcome::Failed(failed),
            Ok(Response { protocol, head, body, truncated }) => {
                let parsed = Head::new(&head);
                facts.protocol = Some(protocol.map_or_else(|| parsed.protocol().into(), str::to_owned));
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
    fn is_redirected(&self, Origin { host, port, .. }: &Origin) -> bool {
        let rule = self.config.connect_to.iter().find(|rule| rule.apply(host, *port).is_some());
        rule.is_some_and(ConnectTo::moves_host)
    }

    async fn exchange(&self, ask: &Ask, begun: Instant, notes: &mut Notes) -> Result<Response, Failure> {
        let mut total = begun + self.config.limits.total;
        let origin = Origin::of(&ask.url);
        // A pooled connection may have been closed by its server just now, or what comes on it may not be the answer to
        // our request: then the request is made again on a new one.
        while let Some(link) = self.pool.take(&origin) {
            match self.on_idle(link, &origin, ask, total, notes).await {
                Err(Attempt::Stale) => {
                    (notes.ip, notes.tls, notes.place) = (None, None, None);
                    total = self.make_room(ask, total).await;
                }
                // Nothing was asked on it, so that no host need be left alone: servers that close sooner than their delay is over
                // would be asked half as often.
                Err(Attempt::Closed) => (notes.ip, notes.tls, notes.place) = (None, None, None),
                Err(Attempt::Http1) => {
                    self.only_http1(&origin);
                    total = self.make_room(ask, total).await;
                }
                Err(Attempt::NoMore) => break,
                Err(Attempt::Broken(failed)) => {
                    self.only_http1(&origin);
                    return Err(failed);
                }
                Err(Attempt::Failed(failed)) => return Err(failed),
                Ok(response) => return Ok(response),
            }
        }
        let target = self.target(&origin).await?;
        // Waiting for a lookup of ours is no fault of the host's: its time begins here.
        total = total.max(Instant::now() + self.config.limits.total);
        let (limits, tls, now) = (&self.config.limits, &self.tls, ask.started_at);
        let mut http1_only = !self.config.http2 || !origin.https;
        loop {
            let both = !http1_only && !self.is_only_http1(&origin);
            let protocols = if both { Protocols::Both } else { Protocols::Http1 };
            // That of an earlier connection: with it in hand, room for the next one might never come.
            notes.place = None;
            let places = (!self.is_redirected(&origin)).then_some(&self.places);
            let dialling = Dialling { origin: &origin, limits, tls, now, total, protocols, places };
            let link = dialling.connect(&target, notes).await?;
            if let Some(ip) = notes.ip {
                self.reach.connected(SocketAddr::new(ip, target.port));
            }
            let is_http2 = matches!(link, Link::Http2(_));
            match self.on_link(link, &origin, ask, total, notes).await {
                Ok(response) => return Ok(response),
                Err(Attempt::Failed(failed)) => return Err(failed),
                Err(Attempt::Broken(failed)) => {
                    self.only_http1(&origin);
                    return Err(failed);
                }
                // Once: the next connection is offered HTTP/1.1 alone.
                Err(Attempt::Http1) if is_http2 => {
                    self.only_http1(&origin);
                    http1_only = true;
                    total = self.make_room(ask, total).await;
                }
                Err(Attempt::Http1 | Attempt::Stale | Attempt::Closed | Attempt::NoMore) => {
                    return Err(failure(ErrorClass::Reset, "the connection ended before a response"));
                }
            }
        }
    }

    /// Leaves the host alone for a while: it may have seen the request, and then the next one is one more of ours. The fetch
    /// has its whole time again.
    async fn make_room(&self, ask: &Ask, total: Instant) -> Instant {
        tokio::time::sleep(ask.spacing).await;
        total.max(Instant::now() + self.config.limits.total)
    }

    /// An exchange on a connection that idled, if nothing waits on it.
    async fn on_idle(
        &self,
        mut link: Link,
        origin: &Origin,
        ask: &Ask,
        total: Instant,
        notes: &mut Notes,
    ) -> Result<Response, Attempt> {
        if let Link::Http1(conn) = &mut link {
            match conn.waiting() {
                Waiting::Nothing => {}
                Waiting::Bytes => {
                    self.pool.distrust(origin);
                    return Err(Attempt::NoMore);
                }
                Waiting::End => return Err(Attempt::Closed),
            }
        }
        if !self.is_redirected(origin) {
            notes.place = match timeout_at(total, self.places.take(link.peer())).await {
                Ok(place) => place,
                Err(_) => return Err(Attempt::NoMore),
            };
        }
        self.on_link(link, origin, ask, total, notes).await
    }

    async fn on_link(
        &self,
        link: Link,
        origin: &Origin,
        ask: &Ask,
        total: Instant,
        notes: &mut Notes,
    ) -> Result<Response, Attempt> {
        match link {
            Link::Http1(conn) => self.on(conn, origin, &self.request(ask), ask, total, notes).await,
            Link::Http2(conn) => self.on_http2(conn, origin, ask, total, notes).await,
        }
    }

    fn only_http1(&self, origin: &Origin) {
        let mut origins = self.http1_only.lock().unwrap_or_else(PoisonError::into_inner);
        if origins.len() >= HTTP1_ONLY {
            // Forgotten ones are found out again in the same way.
            origins.clear();
        }
        origins.insert(origin.clone());
    }

    fn is_only_http1(&self, origin: &Origin) -> bool {
        self.http1_only.lock().unwrap_or_else(PoisonError::into_inner).contains(origin)
    }

    /// Header fields of a request, behind its `Host`.
    fn fields<'a>(&'a self, ask: &'a Ask) -> Vec<(&'static str, &'a str)> {
        let config = &self.config;
        let coding = if config.accept_encoding.is_empty() { "identity" } else { &config.accept_encoding };
        let mut fields =
            vec![("User-Agent", config.user_agent.as_str()), ("Accept", "*/*"), ("Accept-Encoding", coding)];
        if !config.contact.is_empty() {
            fields.push(("From", &config.contact));
        }
        let Validators { etag, last_modified } = &ask.validators;
        let validators = [("If-None-Match", etag), ("If-Modified-Since", last_modified)];
        fields.extend(validators.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?))));
        // A value with a line end in it would begin another field.
        fields.retain(|(_, value)| !value.bytes().any(|b| b < b' ' && b != b'\t' || b == 0x7f));
        fields
    }

    /// The request as HTTP/1.1 writes it; stored so whatever was spoken.
    fn request(&self, ask: &Ask) -> Bytes {
        let mut text = format!("GET {} HTTP/1.1\r\nHost: {}\r\n", ask.url.path_query(), ask.url.authority());
        for (name, value) in self.fields(ask) {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
        text.into()
    }

    /// One exchange by HTTP/2.
    async fn on_http2(
        &self,
        mut conn: Http2,
        origin: &Origin,
        ask: &Ask,
        total: Instant,
        notes: &mut Notes,
    ) -> Result<Response, Attempt> {
        (notes.ip, notes.tls) = (Some(conn.peer), Some(conn.tls.clone()));
        let uri = ask.url.as_str().parse().map_err(|_| Attempt::Http1)?;
        let answer = conn.request(uri, &self.fields(ask), &self.config.limits, total, notes).await;
        if !matches!(answer, Err(Attempt::Stale | Attempt::Closed | Attempt::Http1)) {
            notes.request = Some(self.request(ask));
        }
        let answer = answer?;
        self.reach.heard();
        let head = http2::head_of(&answer);
        let (received, broken) = http2::receive(answer.into_body(), self.terms(&Head::new(&head), ask, total)).await;
        if broken {
            self.only_http1(origin);
        }
        let received = received.map_err(Attempt::Failed)?;
        self.reach.heard();
        if received.at_end {
            conn.reused = true;
            self.pool.put(origin, Link::Http2(conn));
        }
        Ok(Response { protocol: Some("h2"), head, body: received.body, truncated: received.truncated })
    }

    /// Deadlines and limits of the body behind a head.
    fn terms<'a>(&'a self, head: &Head<'_>, ask: &Ask, total: Instant) -> Terms<'a> {
        let limits = &self.config.limits;
        // What is asked for with a limit of its own, a robots.txt, is wanted whatever its media type is, and however little is
        // kept of pages: half of it may lack the rule that matters.
        let body_bytes = match ask.body_limit {
            Some(own) => own,
            None => limits.body_bytes_for(head.text("content-type").as_deref()),
        };
        Terms {
            idle: limits.idle,
            total,
            body_bytes,
            memory_body: limits.memory_body,
            fs: &self.fs,
            spool_dir: &self.config.spool_dir,
            spools: &self.spools,
            packed: is_packed(head),
            head_answers: !matches!(head.status(), Some(200..=299)),
            storage: &self.storage,
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
        addresses.ips = in_turn(addresses.ips.iter().copied().filter(allowed)).into();
        if addresses.ips.is_empty() {
            return Err(failure(
                ErrorClass::PrivateAddress,
                format!("{0} has only private addresses: allow them by --allow-private {0}", origin.host),
            ));
        }
        Ok(Target { addresses, port })
    }

    fn may_be_private(&self, host: &str) -> bool {
        let same = |name: &str| name == "*" || name.eq_ignore_ascii_case(host);
        self.config.allow_private.iter().any(|name| same(name.trim_matches(['[', ']'])))
    }
}

/// What became of an exchange on one connection.
pub(crate) enum Attempt {
    /// The pooled connection died, perhaps after the server saw the request.
    Stale,
    /// The pooled connection was dead already: nothing was sent.
    Closed,
    /// Pooled connections of this origin are not to be used.
    NoMore,
    /// The server does not speak HTTP/2 as we do, or asks for HTTP/1.1.
    Http1,
    /// It failed for good, and HTTP/2 with it: the next fetch is by HTTP/1.1.
    Broken(Failure),
    /// It failed for good.
    Failed(Failure),
}

/// Whether a failure is that nothing came in time, or that there was no way: by itself, it says nothing of who is at fault.
fn is_timeout(class: ErrorClass) -> bool {
    use ErrorClass as E;
    matches!(class, E::ConnectTimeout | E::HeaderTimeout | E::BodyTimeout | E::NoRoute | E::TlsFailure)
}

/// Whether a message is packed on its way, besides its content coding.
fn is_packed(head: &Head<'_>) -> bool {
    let is_gzip = |coding: &[u8]| {
        let coding = coding.trim_ascii();
        coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip")
    };
    head.all("transfer-encoding").any(|value| value.split(|b| *b == b',').any(is_gzip))
}

pub(crate) fn millis_since(begun: Instant) -> u32 {
    u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX)
}
