//! Names to addresses, by the system's resolver on threads of its own.

use crate::config::DnsLimits;
use crate::error::failure;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::{Instant, timeout};
use trawl_model::{ErrorClass, Failure};

type Answer = Result<Arc<[IpAddr]>, Failure>;

/// A bounded cache in front of the system's resolver. Askers for the same name share one lookup.
pub(crate) struct Resolver {
    limits: DnsLimits,
    permits: Arc<Semaphore>,
    names: Mutex<HashMap<String, Entry>>,
}

struct Entry {
    at: Instant,
    answer: Arc<OnceCell<Answer>>,
}

impl Resolver {
    pub(crate) fn new(limits: DnsLimits) -> Self {
        let permits = Arc::new(Semaphore::new(limits.concurrent.max(1)));
        Self { limits, permits, names: Mutex::default() }
    }

    pub(crate) async fn resolve(&self, host: &str) -> Answer {
        let cell = self.cell(host);
        cell.get_or_init(|| self.ask(host.to_owned())).await.clone()
    }

    /// The shared cell of a name, a new one if the old has expired.
    fn cell(&self, host: &str) -> Arc<OnceCell<Answer>> {
        let now = Instant::now();
        let fresh = |entry: &Entry| {
            let keep = match entry.answer.get() {
                Some(Err(_)) => self.limits.keep_failure,
                _ => self.limits.keep,
            };
            now.duration_since(entry.at) < keep
        };
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = names.get(host)
            && fresh(entry)
        {
            return entry.answer.clone();
        }
        if names.len() >= self.limits.names {
            names.retain(|_, entry| fresh(entry));
            if names.len() >= self.limits.names {
                // Full of fresh names: forgetting them costs lookups, a finer choice would cost bookkeeping on every hit.
                names.clear();
            }
        }
        let answer = Arc::new(OnceCell::new());
        names.insert(host.to_owned(), Entry { at: now, answer: answer.clone() });
        answer
    }

    async fn ask(&self, host: String) -> Answer {
        let permits = self.permits.clone();
        let job = async {
            let permit = permits.acquire_owned().await.map_err(|e| e.to_string());
            // The thread keeps the permit: a lookup that was given up still occupies its thread.
            tokio::task::spawn_blocking(move || {
                let _permit = permit;
                (host.as_str(), 0).to_socket_addrs().map(|all| all.map(|a| a.ip()).collect::<Vec<_>>())
            })
            .await
        };
        match timeout(self.limits.timeout, job).await {
            Err(_) => Err(failure(ErrorClass::DnsTimeout, format!("no answer within {:?}", self.limits.timeout))),
            Ok(Err(join)) => Err(failure(ErrorClass::LocalResource, join.to_string())),
            Ok(Ok(Err(e))) => Err(failure(class(&e), e.to_string())),
            Ok(Ok(Ok(mut all))) => {
                let mut seen = Vec::with_capacity(all.len());
                all.retain(|ip| {
                    !seen.contains(ip) && {
                        seen.push(*ip);
                        true
                    }
                });
                match all.is_empty() {
                    true => Err(failure(ErrorClass::DnsNxdomain, "the name has no address")),
                    false => Ok(all.into()),
                }
            }
        }
    }
}

/// The standard library keeps only getaddrinfo's words, which are English while nobody sets a locale.
fn class(error: &io::Error) -> ErrorClass {
    let text = error.to_string();
    let says = |words: &[&str]| words.iter().any(|w| text.contains(w));
    if says(&["not known", "No address associated", "nodename nor servname", "does not exist"]) {
        ErrorClass::DnsNxdomain
    } else if says(&["Temporary failure", "try again", "timed out"]) {
        ErrorClass::DnsTimeout
    } else {
        ErrorClass::DnsFailure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_resolver() {
        let of = |text: &str| class(&io::Error::other(format!("failed to lookup address information: {text}")));
        assert_eq!(of("Name or service not known"), ErrorClass::DnsNxdomain);
        assert_eq!(of("No address associated with hostname"), ErrorClass::DnsNxdomain);
        assert_eq!(of("Temporary failure in name resolution"), ErrorClass::DnsTimeout);
        assert_eq!(of("Non-recoverable failure in name resolution"), ErrorClass::DnsFailure);
    }

    #[tokio::test]
    async fn localhost_resolves_and_the_cache_stays_bounded() {
        let resolver = Resolver::new(DnsLimits { names: 2, ..DnsLimits::default() });
        let localhost = resolver.resolve("localhost").await.unwrap();
        assert!(localhost.iter().all(IpAddr::is_loopback));
        for n in 0..10 {
            let _ = resolver.cell(&format!("n{n}.invalid"));
            assert!(resolver.names.lock().unwrap().len() <= 2);
        }
    }
}
