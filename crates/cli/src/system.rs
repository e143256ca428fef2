//! Time and chance: asked for here and nowhere below. And how much of the machine may be used.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use trawl_archive::Registry;
use trawl_io::{Fs, RealFs};
use trawl_model::{Clock, IdSource, UnixMillis};

/// The time.
pub fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The time, for those who ask again and again.
pub fn clock() -> Clock {
    Clock::new(now)
}

/// 16 random bytes.
pub fn random_bytes() -> anyhow::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("the system has no randomness: {error}"))?;
    Ok(bytes)
}

/// A name no other writer has: 32 hex digits.
pub fn nonce() -> anyhow::Result<String> {
    Ok(format!("{:032x}", u128::from_be_bytes(random_bytes()?)))
}

/// Record ids. A page takes several, so they are drawn in blocks: one system call for 256 of them.
pub fn ids() -> anyhow::Result<Arc<dyn IdSource>> {
    // Asked once before the work begins: a system without randomness is reported then, not in the middle of a crawl.
    random_bytes()?;
    let drawn = Mutex::new(Vec::new());
    Ok(Arc::new(move || {
        let mut drawn = drawn.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(id) = drawn.pop() {
                return id;
            }
            let mut block = [0; 4096];
            if getrandom::fill(&mut block).is_err() {
                // It worked before; a repeated id would be worse than stopping.
                std::process::abort();
            }
            drawn.extend(block.as_chunks::<16>().0);
        }
    }))
}

/// The files of this machine, and the formats of archives there are.
pub fn archives() -> (Arc<dyn Fs>, Registry) {
    (Arc::new(RealFs), Registry::default())
}

/// Open files that are enough for any number of workers; some systems refuse more than the second.
const OPEN_FILES: [u64; 2] = [65_536, 10_240];

/// Lets this process open as many files as it may. A crawl is connected to hundreds of hosts at a time, and what a shell
/// starts with (often 1024, or 256) is a default, not the limit.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    for enough in OPEN_FILES {
        let wanted = maximum.map_or(enough, |most| most.min(enough));
        // No limit, or one that is high enough, stays; where more is refused, things are as they were.
        if current.is_none_or(|now| now >= wanted)
            || setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok()
        {
            return;
        }
    }
}
