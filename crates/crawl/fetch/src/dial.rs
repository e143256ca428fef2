//! New connections: TCP to the address that answers first, then TLS and what was agreed on to speak.
//!
//! Addresses are tried as RFC 8305 says ("Happy Eyeballs"): kinds of addresses alternate, the next one is tried when one has
//! failed or has not answered for a quarter of a second, and the first that answers is taken.

use crate::client::{Notes, millis_since};
use crate::config::Limits;
use crate::conn::{Conn, Link, Stream, within};
use crate::error::{class_of, failure, has_no_way};
use crate::http2::Http2;
use crate::places::{Place, Places};
use crate::resolve::Addresses;
use crate::target::Origin;
use crate::tls::{Protocols, Tls};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use trawl_model::{ErrorClass, Failure, TlsFacts, UnixMillis};

/// How long an address has for itself before the next one is tried beside it: RFC 8305, 8.
const HEAD_START: Duration = Duration::from_millis(250);

/// Where to connect to.
pub(crate) struct Target {
    pub addresses: Addresses,
    pub port: u16,
}

/// How a connection is made.
pub(crate) struct Dialling<'a> {
    pub origin: &'a Origin,
    pub limits: &'a Limits,
    pub tls: &'a Tls,
    /// When the certificate is judged.
    pub now: UnixMillis,
    /// The end of the whole fetch.
    pub total: Instant,
    /// What is offered.
    pub protocols: Protocols,
    /// Room at addresses; none is asked for where the operator said which address to use.
    pub places: Option<&'a Arc<Places>>,
}

/// Kinds of addresses in turn, each kind in its order, IPv6 first.
pub(crate) fn in_turn(ips: impl IntoIterator<Item = IpAddr>) -> Vec<IpAddr> {
    let (v6, v4): (Vec<_>, Vec<_>) = ips.into_iter().partition(IpAddr::is_ipv6);
    let most = v6.len().max(v4.len());
    (0..most).flat_map(|n| [v6.get(n), v4.get(n)]).flatten().copied().collect()
}

impl Dialling<'_> {
    /// Connects and shakes hands.
    pub(crate) async fn connect(&self, target: &Target, notes: &mut Notes) -> Result<Link, Failure> {
        let (tcp, peer) = self.tcp(target, notes).await?;
        if !self.origin.https {
            return Ok(self.http1(tcp, peer, None, notes));
        }
        let failed = match self.secure(tcp, peer, notes).await {
            Err(failed) if matches!(failed.class, ErrorClass::TlsFailure | ErrorClass::Reset) => failed,
            done => return done,
        };
        let Some(old) = &self.tls.old else { return Err(failed) };
        // The room of the connection that failed: at an address with room for one the next would wait for it for ever.
        notes.place = None;
        let (tcp, peer) = self.tcp(target, notes).await?;
        let (stream, facts) = self.handshake(old.connect(&self.origin.host, tcp), notes).await?;
        Ok(self.http1(stream, peer, Some(facts), notes))
    }

    async fn tcp(
        &self,
        Target { addresses, port }: &Target,
        notes: &mut Notes,
    ) -> Result<(TcpStream, IpAddr), Failure> {
        let mut rest = addresses.ips.iter().copied();
        // Ended with everything that is under way as soon as one has answered.
        let mut under_way: JoinSet<(IpAddr, Dialled)> = JoinSet::new();
        let mut told: Option<(Failure, IpAddr)> = None;
        let mut next = rest.next();
        let mut start_at = Instant::now();
        loop {
            tokio::select! {
                biased;
                Some(done) = under_way.join_next(), if !under_way.is_empty() => match done {
                    Ok((ip, Ok((stream, connect_ms, place)))) => {
                        (notes.ip, notes.timings.connect_ms, notes.place) = (Some(ip), Some(connect_ms), place);
                        return Ok((stream, ip));
                    }
                    Ok((ip, Err(Dial { failed, no_way }))) => {
                        // Used up here: then nothing is known of the host.
                        if !no_way && failed.class == ErrorClass::LocalResource {
                            return Err(failed);
                        }
                        // An address that we have no way to, IPv6 on most machines, says nothing of the host: the others do.
                        if !no_way || told.is_none() {
                            told = Some((failed, ip));
                        }
                        start_at = Instant::now();
                    }
                    Err(e) => return Err(failure(ErrorClass::LocalResource, format!("connecting: {e}"))),
                },
                () = sleep_until(start_at), if next.is_some() => {
                    if let Some(ip) = next {
                        let (limit, total, port) = (self.limits.connect, self.total, *port);
                        let places = self.places.cloned();
                        under_way.spawn(async move {
                            let place = match places {
                                Some(places) => match timeout_at(total, places.take(ip)).await {
                                    Ok(place) => place,
                                    Err(_) => return (ip, Err(Dial::no_room(ip))),
                                },
                                None => None,
                            };
                            let dialled = dial(SocketAddr::new(ip, port), limit, total).await;
                            (ip, dialled.map(|(stream, connect_ms)| (stream, connect_ms, place)))
                        });
                    }
                    next = rest.next();
                    start_at = Instant::now() + HEAD_START;
                }
                else => break,
            }
        }
        let none = || (failure(ErrorClass::DnsFailure, format!("{} has no address", self.origin.host)), None);
        let (failed, ip) = told.map_or_else(none, |(failed, ip)| (failed, Some(ip)));
        notes.ip = ip;
        Err(failed)
    }

    async fn secure(&self, tcp: TcpStream, peer: IpAddr, notes: &mut Notes) -> Result<Link, Failure> {
        let shake = self.tls.connect(&self.origin.host, tcp, self.now, self.protocols);
        let (stream, facts) = self.handshake(shake, notes).await?;
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            return Http2::start(stream, peer, facts, self.limits).await.map(Link::Http2);
        }
        Ok(self.http1(stream, peer, Some(facts), notes))
    }

    async fn handshake<T>(
        &self,
        shake: impl Future<Output = Result<T, Failure>>,
        notes: &mut Notes,
    ) -> Result<T, Failure> {
        let begun = Instant::now();
        let done = within(self.limits.tls, self.total, ErrorClass::TlsFailure, "tls handshake", shake).await?;
        notes.timings.tls_ms = Some(millis_since(begun));
        Ok(done)
    }

    fn http1(&self, stream: impl Stream + 'static, peer: IpAddr, tls: Option<TlsFacts>, notes: &Notes) -> Link {
        let round_trip = Duration::from_millis(notes.timings.connect_ms.unwrap_or(0).into());
        let (stream, buf) = (Box::new(stream), Default::default());
        Link::Http1(Conn { stream, buf, peer, tls, reused: false, round_trip })
    }
}

/// A connection, how many milliseconds it took, and the room it has at its address.
type Dialled = Result<(TcpStream, u32, Place), Dial>;

/// Why there is no connection to one address.
struct Dial {
    failed: Failure,
    /// Whether it is this machine that cannot reach it.
    no_way: bool,
}

impl Dial {
    /// Our own limit kept it waiting: nothing is known of the host.
    fn no_room(ip: IpAddr) -> Self {
        let why = format!("waiting for fetches at {ip} to end: there may be no more at a time");
        Dial { failed: failure(ErrorClass::LocalResource, why), no_way: false }
    }
}

async fn dial(address: SocketAddr, limit: Duration, total: Instant) -> Result<(TcpStream, u32), Dial> {
    let begun = Instant::now();
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
    let dialled = within(limit, total, ErrorClass::ConnectTimeout, &part, dial).await;
    dialled.map(|stream| (stream, millis_since(begun))).map_err(|failed| Dial { failed, no_way })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{TlsMode, TlsVersions};
    use tokio::net::{TcpListener, TcpSocket};

    #[test]
    fn kinds_of_addresses_take_turns() {
        let ips = |text: &str| text.split(' ').map(|ip| ip.parse().unwrap()).collect::<Vec<IpAddr>>();
        assert_eq!(in_turn(ips("1.1.1.1 2.2.2.2 ::1 ::2 ::3")), ips("::1 1.1.1.1 ::2 2.2.2.2 ::3"));
        assert_eq!(in_turn(ips("1.1.1.1")), ips("1.1.1.1"));
    }

    /// An address that takes no more connections: its queue is full, and packets to it are dropped.
    async fn silent(ip: &str) -> (TcpListener, Vec<TcpStream>) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(ip.parse().unwrap(), 0)).unwrap();
        let listener = socket.listen(1).unwrap();
        let (addr, mut filling) = (listener.local_addr().unwrap(), Vec::new());
        while let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(addr)).await {
            filling.push(stream);
        }
        (listener, filling)
    }

    /// The first address would keep it waiting for an hour.
    #[tokio::test]
    async fn an_address_that_is_silent_does_not_hold_up_the_next() {
        let (listener, _filling) = silent("127.0.9.1").await;
        let port = listener.local_addr().unwrap().port();
        let _answers = TcpListener::bind(("127.0.9.2", port)).await.unwrap();
        let origin = Origin { https: false, host: "a.example".into(), port };
        let limits = Limits { connect: Duration::from_secs(3600), ..Limits::default() };
        let tls = Tls::new(TlsMode::Record, TlsVersions::Any, &[]).unwrap();
        let total = Instant::now() + Duration::from_secs(7200);
        let (now, protocols) = (UnixMillis(0), Protocols::Http1);
        let places = Places::new(Some(1), Vec::new());
        let dialling =
            Dialling { origin: &origin, limits: &limits, tls: &tls, now, total, protocols, places: Some(&places) };
        let ips = ["127.0.9.1", "127.0.9.2"].map(|ip| ip.parse().unwrap());
        let addresses = Addresses { ips: ips.into(), until: total };
        let mut notes = Notes::default();
        let target = Target { addresses, port };
        let link = dialling.connect(&target, &mut notes).await;
        assert!(matches!(link, Ok(Link::Http1(_))));
        assert_eq!(notes.ip, Some(ips[1]));
        // There is room for one at the address that answers, whichever of a name's it is.
        let mut others = Notes::default();
        let waits = tokio::time::timeout(Duration::from_millis(500), dialling.connect(&target, &mut others)).await;
        assert!(waits.is_err());
        drop(notes);
        assert!(dialling.connect(&target, &mut others).await.is_ok());
    }
}
