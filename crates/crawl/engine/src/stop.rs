//! Asking a crawl to stop.

use std::sync::Arc;
use tokio::sync::watch;

/// A switch that stops a crawl: fetches under way get some time to end, everything finished is made durable, and the run
/// can be resumed. Clones are the same switch.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// A switch that is off.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the crawl to stop. May be called from any thread, and more than once.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }

    /// Whether a stop was asked for.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    pub(crate) async fn asked(&self) {
        let mut receiver = self.0.subscribe();
        // The sender lives as long as `self`.
        let _ = receiver.wait_for(|asked| *asked).await;
    }
}
