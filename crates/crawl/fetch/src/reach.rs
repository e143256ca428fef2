//! Whether it is the host that does not answer, or this machine that cannot reach anybody.
//!
//! A cable that is pulled, a router that gives up or a link that is full makes every host look dead. So before a timeout is held
//! against a host: if no server answered since its fetch began, servers that answered before are tried. If none of
//! them opens, the trouble is ours.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

/// Servers remembered, the latest ones.
const KNOWN: usize = 8;
/// Fewer servers than this say nothing: they may be down together.
const LEAST: usize = 3;
/// How long a knock may take: longer than any round trip.
const KNOCK: Duration = Duration::from_secs(3);
/// How long its result is used. Servers are knocked at this often at most.
const KEEP: Duration = Duration::from_secs(10);

pub(crate) struct Reach {
    begun: Instant,
    /// Milliseconds since `begun` when anybody was heard last.
    heard_ms: AtomicU64,
    known: Mutex<VecDeque<SocketAddr>>,
    knock: Mutex<(Instant, Arc<OnceCell<bool>>)>,
}

impl Reach {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Reach {
            begun: now,
            heard_ms: AtomicU64::new(0),
            known: Mutex::default(),
            knock: Mutex::new((now, Arc::default())),
        }
    }

    /// Somebody sent something.
    pub(crate) fn heard(&self) {
        self.heard_ms.fetch_max(self.millis(Instant::now()), Ordering::Relaxed);
    }

    /// A server took a connection.
    pub(crate) fn connected(&self, server: SocketAddr) {
        self.heard();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.iter().any(|other| other.ip() == server.ip()) {
            return;
        }
        if known.len() >= KNOWN {
            known.pop_front();
        }
        known.push_back(server);
    }

    /// Whether a fetch that began then, and timed out at this address, tells nothing of its host.
    pub(crate) async fn is_down(&self, since: Instant, asked: Option<IpAddr>) -> bool {
        if self.heard_since(since) {
            return false;
        }
        let known: Vec<_> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.iter().copied().filter(|server| Some(server.ip()) != asked).collect()
        };
        if known.len() < LEAST {
            return false;
        }
        let cell = {
            let mut knock = self.knock.lock().unwrap_or_else(PoisonError::into_inner);
            if knock.1.initialized() && knock.0.elapsed() >= KEEP {
                *knock = (Instant::now(), Arc::default());
            }
            knock.1.clone()
        };
        let opened = *cell.get_or_init(|| knock(known)).await;
        if opened {
            self.heard();
        }
        !opened
    }

    fn heard_since(&self, then: Instant) -> bool {
        self.heard_ms.load(Ordering::Relaxed) > self.millis(then)
    }

    fn millis(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.begun).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Whether any of these servers takes a connection.
async fn knock(servers: Vec<SocketAddr>) -> bool {
    let mut knocks = JoinSet::new();
    for server in servers {
        knocks.spawn(timeout(KNOCK, TcpStream::connect(server)));
    }
    while let Some(done) = knocks.join_next().await {
        if let Ok(Ok(Ok(_))) = done {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// An address of this machine whose port is closed.
    async fn gone(ip: &str) -> SocketAddr {
        TcpListener::bind((ip, 0)).await.unwrap().local_addr().unwrap()
    }

    #[tokio::test]
    async fn a_host_is_dead_while_others_answer() {
        let reach = Reach::new();
        let since = Instant::now();
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(!reach.is_down(since, None).await, "nobody is known");
        for n in 1..=4 {
            reach.connected(gone(&format!("127.0.3.{n}")).await);
        }
        assert!(!reach.is_down(since, None).await, "somebody was heard meanwhile");
        tokio::time::sleep(Duration::from_millis(2)).await;
        let since = Instant::now();
        assert!(reach.is_down(since, None).await, "nobody was heard, and nobody opens");
        // One server that opens is enough.
        let reach = Reach::new();
        let listener = TcpListener::bind("127.0.3.9:0").await.unwrap();
        reach.connected(listener.local_addr().unwrap());
        for n in 1..=4 {
            reach.connected(gone(&format!("127.0.3.{n}")).await);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        let since = Instant::now();
        assert!(!reach.is_down(since, None).await);
    }

    #[tokio::test]
    async fn two_servers_may_be_down_together() {
        let reach = Reach::new();
        for n in 1..=3 {
            reach.connected(gone(&format!("127.0.3.{n}")).await);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        let since = Instant::now();
        assert!(!reach.is_down(since, Some("127.0.3.2".parse().unwrap())).await);
        assert!(reach.is_down(since, None).await);
    }
}
