//! Where the time comes from.

use crate::UnixMillis;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where the time comes from, and how it passes.
#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> UnixMillis + Send + Sync>,
    pause: Arc<dyn Fn(Duration) + Send + Sync>,
}

impl Clock {
    /// A clock that asks `now`.
    pub fn new(now: impl Fn() -> UnixMillis + Send + Sync + 'static) -> Self {
        Clock { now: Arc::new(now), pause: Arc::new(std::thread::sleep) }
    }

    /// The same, where waiting for another process is `pause`: for tests that decide what the other does meanwhile.
    #[must_use]
    pub fn pausing(self, pause: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Clock { pause: Arc::new(pause), ..self }
    }

    /// A clock that stands still: for tests and reproducible files.
    pub fn fixed(at: UnixMillis) -> Self {
        Self::new(move || at)
    }

    /// The moment.
    pub fn now(&self) -> UnixMillis {
        (self.now)()
    }

    /// Waits.
    pub fn pause(&self, time: Duration) {
        (self.pause)(time);
    }

    /// The moment in whole seconds, as superblocks and inodes have it.
    pub fn seconds(&self) -> i64 {
        self.now().0.div_euclid(1000)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
