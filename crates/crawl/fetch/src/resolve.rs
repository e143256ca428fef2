//! Names to addresses, by a resolver of our own: it tells how long an answer holds, and what a name server really said.

use crate::config::DnsLimits;
use crate::error::{class_of, failure};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use trawl_model::{ErrorClass, Failure};

type Answer = Result<Addresses, (Failure, Instant)>;

/// The addresses of a name.
#[derive(Debug, Clone)]
pub(crate) struct Addresses {
    pub ips: Arc<[IpAddr]>,
    /// When to ask again.
    pub until: Instant,
}

impl Addresses {
    /// An address that was written where a name could stand.
    pub(crate) fn literal(ip: IpAddr) -> Self {
        Self { ips: [ip].into(), until: Instant::now() + Duration::from_secs(86_400) }
    }
}

/// A bounded cache in front of a resolver. Askers for the same name share one lookup.
pub(crate) struct Resolver {
    limits: DnsLimits,
    /// Or why there is none: who never needs a name need not hear of it.
    resolver: Result<TokioResolver, String>,
    permits: Semaphore,
    names: Mutex<HashMap<String, Arc<OnceCell<Answer>>>>,
    /// When a name server last said anything.
    heard: Mutex<Instant>,
}

impl Resolver {
    pub(crate) fn new(limits: DnsLimits) -> Self {
        let resolver = build(&limits).map_err(|e| format!("the settings of the system's resolver: {e}"));
        let permits = Semaphore::new(limits.concurrent.clamp(1, Semaphore::MAX_PERMITS));
        Self { limits, resolver, permits, names: Mutex::default(), heard: Mutex::new(Instant::now()) }
    }

    pub(crate) async fn resolve(&self, host: &str) -> Result<Addresses, Failure> {
        let cell = self.cell(host);
        let answer = cell.get_or_init(|| self.ask(host)).await;
        answer.clone().map_err(|(failed, _)| failed)
    }

    /// The shared cell of a name, a new one if the old has expired.
    fn cell(&self, host: &str) -> Arc<OnceCell<Answer>> {
        let now = Instant::now();
        let fresh = |cell: &OnceCell<Answer>| match cell.get() {
            None => true,
            Some(Ok(addresses)) => now < addresses.until,
            Some(Err((_, until))) => now < *until,
        };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = names.get(host).filter(|cell| fresh(cell)) {
            return cell.clone();
        }
        if names.len() >= self.limits.names {
            names.retain(|_, cell| fresh(cell));
            if names.len() >= self.limits.names {
                // Full of fresh names: forgetting them costs lookups, a finer choice would cost bookkeeping on every hit.
                names.clear();
            }
        }
        let cell = Arc::new(OnceCell::new());
        names.insert(host.to_owned(), cell.clone());
        cell
    }

    async fn ask(&self, host: &str) -> Answer {
        let Some(name) = name_of(host) else {
            let failed =
                failure(ErrorClass::DnsNxdomain, "no such name can exist: it, or a part of it, is empty or too long");
            return Err((failed, Instant::now() + self.limits.keep_failure));
        };
        // Waiting for a slot takes as long as it takes: only the lookup itself has a limit.
        let permit = self.permits.acquire().await;
        let begun = Instant::now();
        let (v4, v6) = match &self.resolver {
            Ok(resolver) => both(resolver, &name, begun + self.limits.timeout).await,
            Err(why) => return Err((failure(ErrorClass::LocalResource, why.clone()), begun)),
        };
        drop(permit);
        let now = Instant::now();
        let failed = |failed: Failure, keep: Duration| Err((failed, now + keep));
        let (mut ips, mut until) = (Vec::new(), now + self.limits.keep_most);
        let answered = |found: &Result<Lookup, NetError>| match found {
            Ok(_) => true,
            Err(e) => !matches!(describe(e).0, ErrorClass::DnsTimeout | ErrorClass::LocalResource),
        };
        if [&v4, &v6].into_iter().any(answered) {
            self.hear(now);
        }
        for found in [&v4, &v6].into_iter().flatten() {
            let before = ips.len();
            for ip in found.answers().iter().filter_map(|record| record.data.ip_addr()) {
                if !ips.contains(&ip) {
                    ips.push(ip);
                }
            }
            if ips.len() > before {
                until = until.min(Instant::from_std(found.valid_until()));
            }
        }
        if !ips.is_empty() {
            return Ok(Addresses { ips: ips.into(), until: until.max(now + self.limits.keep_least) });
        }
        let errors = [v4, v6].into_iter().filter_map(Result::err);
        // A server that says of one kind of address that there is none has not said it of the other.
        let error = errors.max_by_key(|error| describe(error).0 != ErrorClass::DnsNxdomain);
        let Some(error) = error else {
            return failed(failure(ErrorClass::DnsNxdomain, "the name has no address"), self.limits.keep_failure);
        };
        let (class, message) = describe(&error);
        match class {
            // Others were answered meanwhile: it is this name. Else it is the name server, which is not the host's fault.
            ErrorClass::DnsTimeout if !self.heard_since(begun) => {
                let message = format!("no name server answered within {:?}", self.limits.timeout);
                failed(failure(ErrorClass::LocalResource, message), Duration::ZERO)
            }
            ErrorClass::LocalResource => failed(failure(class, message), Duration::ZERO),
            // A name server in trouble may be well again soon; a name that does not exist seldom comes to be.
            ErrorClass::DnsNxdomain => failed(failure(class, message), self.limits.keep_failure),
            _ => failed(failure(class, message), self.limits.keep_failure.min(Duration::from_secs(1))),
        }
    }

    fn hear(&self, now: Instant) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn heard_since(&self, then: Instant) -> bool {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) >= then
    }
}

/// A host as DNS writes it. It is ASCII already; what else may stand in a name, only its name server knows: many have `_` in
/// them, and hyphens where the resolver's own reading of a text would refuse them.
fn name_of(host: &str) -> Option<Name> {
    let mut name = Name::from_labels(host.trim_end_matches('.').split('.').map(str::as_bytes)).ok()?;
    // A name with a dot is whole: suffixes of this machine's own domain are not for the web.
    name.set_fqdn(host.contains('.'));
    Some(name)
}

/// How long the answer about one kind of address waits for the other: some name servers never answer about IPv6.
const SECOND_ANSWER: Duration = Duration::from_millis(500);

/// Asks for both kinds of addresses at once. Each has until `deadline`, less when the other has brought an address.
async fn both(
    resolver: &TokioResolver,
    name: &Name,
    deadline: Instant,
) -> (Result<Lookup, NetError>, Result<Lookup, NetError>) {
    let ask = async |kind| match timeout_at(deadline, resolver.lookup(name.clone(), kind)).await {
        Ok(found) => found,
        Err(_) => Err(NetError::Timeout),
    };
    let has_address = |found: &Result<Lookup, NetError>| {
        found.as_ref().is_ok_and(|found| found.answers().iter().any(|record| record.data.ip_addr().is_some()))
    };
    let (v4, v6) = (ask(RecordType::A), ask(RecordType::AAAA));
    tokio::pin!(v4, v6);
    let patience = |found: &_| if has_address(found) { SECOND_ANSWER } else { Duration::MAX };
    let late = |_| Err(NetError::Timeout);
    tokio::select! {
        first = &mut v4 => {
            let second = timeout(patience(&first), v6).await.unwrap_or_else(late);
            (first, second)
        }
        first = &mut v6 => {
            let second = timeout(patience(&first), v4).await.unwrap_or_else(late);
            (second, first)
        }
    }
}

fn build(limits: &DnsLimits) -> Result<TokioResolver, NetError> {
    let mut builder = match limits.servers.is_empty() {
        true => TokioResolver::builder_tokio()?,
        false => {
            let servers = limits.servers.iter().map(|server| {
                let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
                connections.iter_mut().for_each(|connection| connection.port = server.port());
                NameServerConfig::new(server.ip(), true, connections)
            });
            let config = ResolverConfig::from_name_servers(servers.collect());
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        }
    };
    let attempts = limits.attempts.max(1);
    let options = builder.options_mut();
    options.timeout = limits.timeout / u32::try_from(attempts).unwrap_or(u32::MAX);
    options.attempts = attempts - 1;
    // The cache is ours: it also holds back askers for a name that is being looked up, and failures.
    options.cache_size = 0;
    options.max_active_requests = limits.concurrent.saturating_mul(4).max(32);
    builder.build()
}

/// What the resolver says, as a class and in words.
fn describe(error: &NetError) -> (ErrorClass, String) {
    let of_code = |code: ResponseCode| match code {
        ResponseCode::NXDomain => (ErrorClass::DnsNxdomain, "the name does not exist".to_owned()),
        ResponseCode::NoError => (ErrorClass::DnsNxdomain, "the name has no address".to_owned()),
        ResponseCode::ServFail => (ErrorClass::DnsServfail, "the name server could not find out (SERVFAIL)".to_owned()),
        ResponseCode::Refused => (ErrorClass::DnsRefused, "the name server refused to answer (REFUSED)".to_owned()),
        other => (ErrorClass::DnsFailure, format!("the name server answered {other}")),
    };
    match error {
        NetError::Dns(DnsError::ResponseCode(code)) => of_code(*code),
        NetError::Dns(DnsError::NoRecordsFound(none)) => of_code(none.response_code),
        NetError::Timeout => (ErrorClass::DnsTimeout, "no answer about the name in time".to_owned()),
        NetError::Busy | NetError::NoConnections => (ErrorClass::DnsTimeout, error.to_string()),
        NetError::Io(io) => match class_of(io, ErrorClass::DnsTimeout) {
            ErrorClass::LocalResource => (ErrorClass::LocalResource, format!("asking a name server: {io}")),
            _ => (ErrorClass::DnsTimeout, format!("asking a name server: {io}")),
        },
        other => (ErrorClass::DnsFailure, other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn localhost_resolves_and_the_cache_stays_bounded() {
        let resolver = Resolver::new(DnsLimits { names: 2, ..DnsLimits::default() });
        let localhost = resolver.resolve("localhost").await.unwrap();
        assert!(localhost.ips.iter().all(IpAddr::is_loopback));
        for n in 0..10 {
            let _ = resolver.cell(&format!("n{n}.invalid"));
            assert!(resolver.names.lock().unwrap().len() <= 2);
        }
    }

    /// A name server: `answer` gives the addresses of a name, an error code, or nothing at all.
    async fn name_server(answer: impl Fn(&str, RecordType) -> Reply + Send + 'static) -> std::net::SocketAddr {
        use hickory_resolver::proto::op::Message;
        use hickory_resolver::proto::rr::{RData, Record};
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let addr = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buf = [0; 1500];
            while let Ok((n, peer)) = socket.recv_from(&mut buf).await {
                let asked = Message::from_vec(&buf[..n]).unwrap();
                let query = asked.queries[0].clone();
                let mut reply = Message::response(asked.metadata.id, asked.metadata.op_code);
                reply.add_query(query.clone());
                match answer(&query.name().to_utf8(), query.query_type()) {
                    Reply::Silence => continue,
                    Reply::Code(code) => reply.metadata.response_code = code,
                    Reply::Address(ip) => {
                        let ip: IpAddr = ip.parse().unwrap();
                        reply.add_answer(Record::from_rdata(query.name().clone(), 60, RData::from(ip)));
                    }
                }
                socket.send_to(&reply.to_vec().unwrap(), peer).await.unwrap();
            }
        });
        addr
    }

    enum Reply {
        Silence,
        Code(ResponseCode),
        Address(&'static str),
    }

    #[tokio::test]
    async fn names_are_asked_for_as_they_are_written() {
        let server = name_server(|name, kind| match kind {
            RecordType::A if name.ends_with(".example.") => Reply::Address("192.0.2.1"),
            _ => Reply::Code(ResponseCode::NoError),
        })
        .await;
        let resolver = Resolver::new(DnsLimits { servers: vec![server], ..DnsLimits::default() });
        for name in [
            "a_b.example",
            "_a.example",
            "r1---sn-x.example",
            "-a.example",
            "a-.example.",
            "xn--a.example",
            "1.example",
        ] {
            let found = resolver.resolve(name).await.unwrap_or_else(|failed| panic!("{name}: {failed:?}"));
            assert_eq!(*found.ips, ["192.0.2.1".parse::<IpAddr>().unwrap()], "{name}");
        }
        let long = [&"a".repeat(64), ".example"].concat();
        for name in [&long, "a..example", &"a.".repeat(130)] {
            assert_eq!(resolver.resolve(name).await.unwrap_err().class, ErrorClass::DnsNxdomain, "{name}");
        }
    }

    /// One kind of address is enough, whatever becomes of the other; and one kind that is missing is not all.
    #[tokio::test]
    async fn each_kind_of_address_has_its_own_answer() {
        let server = name_server(|name, kind| match (name, kind) {
            ("mute6.example.", RecordType::A) => Reply::Address("192.0.2.1"),
            ("mute4.example.", RecordType::AAAA) => Reply::Address("2001:db8::1"),
            ("failing6.example." | "silent6.example.", RecordType::A) => Reply::Code(ResponseCode::NoError),
            ("failing6.example.", RecordType::AAAA) => Reply::Code(ResponseCode::ServFail),
            ("failing4.example.", RecordType::A) => Reply::Code(ResponseCode::ServFail),
            ("failing4.example.", RecordType::AAAA) => Reply::Code(ResponseCode::NXDomain),
            ("none.example.", _) => Reply::Code(ResponseCode::NoError),
            _ => Reply::Silence,
        })
        .await;
        let limits = DnsLimits { servers: vec![server], timeout: Duration::from_secs(2), ..DnsLimits::default() };
        let resolver = Resolver::new(limits);
        for (name, ip) in [("mute6.example", "192.0.2.1"), ("mute4.example", "2001:db8::1")] {
            let found = resolver.resolve(name).await.unwrap();
            assert_eq!(*found.ips, [ip.parse::<IpAddr>().unwrap()], "{name}");
        }
        for (name, class) in [
            ("failing6.example", ErrorClass::DnsServfail),
            ("failing4.example", ErrorClass::DnsServfail),
            ("silent6.example", ErrorClass::DnsTimeout),
            ("none.example", ErrorClass::DnsNxdomain),
        ] {
            assert_eq!(resolver.resolve(name).await.unwrap_err().class, class, "{name}");
        }
    }
}
