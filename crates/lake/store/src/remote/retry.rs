//! What is tried again, when, and how often.
//!
//! Each request waits longer before each further attempt, up to half of it by chance, and ends after a number of attempts or
//! a time. Besides, all requests of a store share a budget: a server that is down gets few retries, not all of everybody's.

use crate::{Error, Result};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::Instant;

/// How failed requests are retried.
#[derive(Debug, Clone)]
pub struct Retries {
    /// Attempts of one request at most, the first included.
    pub attempts: u32,
    /// Time from the first attempt after which no further one begins.
    pub within: Duration,
    /// Pause before the second attempt; it doubles from then on.
    pub first_pause: Duration,
    /// Longest pause.
    pub longest_pause: Duration,
    /// Retries that may be used up before successes earn new ones: a retry costs ten, a success gives one back.
    pub budget: u32,
    /// Where chance begins.
    pub seed: u64,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 8,
            within: Duration::from_secs(60),
            first_pause: Duration::from_millis(50),
            longest_pause: Duration::from_secs(5),
            budget: 100,
            seed: 0,
        }
    }
}

/// What was asked of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Requests sent, retries included.
    pub requests: u64,
    /// Those of them that were retries.
    pub retries: u64,
    /// Bytes of bodies received and used.
    pub bytes_read: u64,
}

const COST: i64 = 10;

#[derive(Debug)]
pub(super) struct Retry {
    how: Retries,
    budget: AtomicI64,
    requests: AtomicU64,
    retries: AtomicU64,
    bytes_read: AtomicU64,
    chance: AtomicU64,
}

impl Retry {
    pub(super) fn new(how: Retries) -> Self {
        let (budget, chance) = (AtomicI64::new(i64::from(how.budget) * COST), AtomicU64::new(how.seed));
        let [requests, retries, bytes_read] = [const { AtomicU64::new(0) }; 3];
        Self { how, budget, requests, retries, bytes_read, chance }
    }

    pub(super) fn usage(&self) -> Usage {
        let [requests, retries, bytes_read] =
            [&self.requests, &self.retries, &self.bytes_read].map(|count| count.load(Relaxed));
        Usage { requests, retries, bytes_read }
    }

    pub(super) fn count_bytes(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Relaxed);
    }

    /// Waits before attempt `attempt + 2`.
    pub(super) async fn pause(&self, attempt: u32) {
        let doubled = self.how.first_pause.saturating_mul(1 << attempt.min(16)).min(self.how.longest_pause);
        let random = mix(self.chance.fetch_add(1, Relaxed));
        // Between half of it and all of it.
        let share = 0.5 + (random >> 11) as f64 / (1u64 << 53) as f64 / 2.0;
        tokio::time::sleep(doubled.mul_f64(share)).await;
    }

    pub(super) async fn run<T, F>(
        &self,
        place: &str,
        path: &str,
        op: &'static str,
        request: impl Fn() -> F,
    ) -> Result<T>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let begun = Instant::now();
        for attempt in 0.. {
            self.requests.fetch_add(1, Relaxed);
            let error = match request().await {
                Ok(value) => {
                    let most = i64::from(self.how.budget) * COST;
                    let _ = self.budget.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_add(1).min(most)));
                    return Ok(value);
                }
                Err(error) => error,
            };
            let found = |reason: &str| Error::Remote {
                place: place.to_owned(),
                path: path.to_owned(),
                op,
                attempts: attempt + 1,
                cause: format!("{}{reason}", brief(&error)),
            };
            use object_store::Error as E;
            match &error {
                E::NotFound { .. } => return Err(Error::NotFound { path: path.to_owned() }),
                E::AlreadyExists { .. } => return Err(Error::Exists { path: path.to_owned() }),
                E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
                    return Err(found(" (are the credentials, the region and the endpoint right?)"));
                }
                // Asked again it is still not there; no client makes one by itself.
                E::Generic { source, .. } if source.to_string().contains("NoSuchBucket") => {
                    return Err(found(" (there is no such bucket)"));
                }
                E::Generic { .. } | E::JoinError { .. } => {}
                _ => return Err(found("")),
            }
            if attempt + 1 >= self.how.attempts || begun.elapsed() >= self.how.within {
                // The address at which a cloud machine gives out the credentials of its role: asked where there are no others.
                let no_role = error.to_string().contains("169.254.169.254");
                let hint = " (no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)";
                return Err(found(if no_role { hint } else { "" }));
            }
            if self.budget.fetch_sub(COST, Relaxed) < COST {
                self.budget.fetch_add(COST, Relaxed);
                return Err(found(" (the retry budget of this store is used up)"));
            }
            self.retries.fetch_add(1, Relaxed);
            self.pause(attempt).await;
        }
        Err(Error::Contended { path: path.to_owned(), attempts: u32::MAX })
    }
}

/// An error with its causes in one line of bounded length: servers answer with pages of XML. The HTTP library says "error sending
/// request" and leaves "connection refused" to its causes.
fn brief(error: &object_store::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(400).collect()
}

/// SplitMix64: enough to keep clients from retrying in step.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    #[error("error sending request")]
    struct Request(#[source] io::Error);

    #[test]
    fn an_error_names_its_last_cause() {
        let refused = Request(io::ErrorKind::ConnectionRefused.into());
        let error = object_store::Error::Generic { store: "HTTP", source: Box::new(refused) };
        assert_eq!(brief(&error), "Generic HTTP error: error sending request: connection refused");
    }
}
