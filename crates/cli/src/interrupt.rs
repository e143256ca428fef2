//! Ctrl-c and `kill`: the first asks for an orderly end, the second ends at once.

use anyhow::Context;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Set once somebody wants us to stop.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts listening for signals. To be called once per process.
    pub fn install() -> anyhow::Result<Self> {
        let interrupt = Self::default();
        let flag = Arc::clone(&interrupt.0);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::SeqCst) {
                // 128 + SIGINT, as shells report it. Files are recovered by the next start, by design.
                std::process::exit(130);
            }
        })
        .context("cannot listen for ctrl-c")?;
        Ok(interrupt)
    }

    /// Calls `act` once somebody wants us to stop, from a thread that waits for it.
    pub fn on_stop(&self, act: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
        let waiting = self.clone();
        let name = std::thread::Builder::new().name("interrupt".into());
        name.spawn(move || {
            waiting.wait();
            act();
        })?;
        Ok(())
    }

    /// Whether somebody wants us to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Sleeps until somebody wants us to stop.
    pub fn wait(&self) {
        while !self.is_set() {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
