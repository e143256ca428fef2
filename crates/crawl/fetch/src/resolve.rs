//! Names to addresses, by a resolver of our own: it tells how long an answer holds, and what a name server really said.

use crate::config::DnsLimits;
use crate::error::{class_of, failure};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout};
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
        // Waiting for a slot takes as long as it takes: only the lookup itself has a limit.
        let permit = self.permits.acquire().await;
        let begun = Instant::now();
        // A name with a dot is whole: suffixes of this machine's own domain are not for the web.
        let name = if host.contains('.') { format!("{}.", host.trim_end_matches('.')) } else { host.to_owned() };
        let found = match &self.resolver {
            Ok(resolver) => timeout(self.limits.timeout, resolver.lookup_ip(name)).await,
            Err(why) => return Err((failure(ErrorClass::LocalResource, why.clone()), begun)),
        };
        drop(permit);
        let now = Instant::now();
        let failed = |failed: Failure, keep: Duration| Err((failed, now + keep));
        let error = match found {
            Ok(Ok(found)) => {
                self.hear(now);
                let mut ips: Vec<IpAddr> = Vec::new();
                found.iter().for_each(|ip| {
                    if !ips.contains(&ip) {
                        ips.push(ip);
                    }
                });
                let keep = Instant::from_std(found.valid_until()).saturating_duration_since(now);
                let until = now + keep.clamp(self.limits.keep_least, self.limits.keep_most);
                return match ips.is_empty() {
                    true => {
                        failed(failure(ErrorClass::DnsNxdomain, "the name has no address"), self.limits.keep_failure)
                    }
                    false => Ok(Addresses { ips: ips.into(), until }),
                };
            }
            Ok(Err(error)) => error,
            Err(_) => NetError::Timeout,
        };
        let (class, message) = describe(&error);
        if !matches!(class, ErrorClass::DnsTimeout | ErrorClass::LocalResource) {
            self.hear(now);
        }
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
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
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
}
