//! Time and chance: asked for here and nowhere below.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use trawl_model::UnixMillis;

/// The time.
pub fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The time, for those who ask again and again.
pub fn clock() -> trawl_engine::Clock {
    Arc::new(now)
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

/// Record ids.
pub fn ids() -> anyhow::Result<Arc<dyn trawl_engine::IdSource>> {
    // Asked once before the work begins: a system without randomness is told then, not in the middle of a crawl.
    random_bytes()?;
    Ok(Arc::new(|| {
        let mut bytes = [0; 16];
        match getrandom::fill(&mut bytes) {
            Ok(()) => bytes,
            // It worked before; a repeated id would be worse than stopping.
            Err(_) => std::process::abort(),
        }
    }))
}
