//! One URL in, one capture out.
//!
//! ```text
//! Ask ─► pool ─┬─ idle connection ──────────────────────────► request ─► head ─► body ─► Capture
//!              └─ name ─► address guard ─► TCP ─► [TLS] ───┘             │       └ memory, spool, cut at a limit
//!                                                                        └ 1xx passed over
//! ```
//!
//! HTTP/1.1 over tokio and rustls, by a client of our own because an archive keeps heads as they came. Every part has its
//! own limit; what came before a limit is kept and marked. Redirects are not followed here: each hop is a capture, and
//! the scheduler decides about the next. Nothing here asks for the date: it is part of the [`Ask`].
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod address;
mod body;
mod client;
mod config;
mod conn;
mod connect_to;
mod error;
mod pool;
mod resolve;
mod target;
mod tls;

pub use address::is_public;
pub use client::{Ask, Fetcher};
pub use config::{DnsLimits, FetchConfig, Limits, PoolLimits, TlsMode};
pub use connect_to::{ConnectTo, ConnectToError};
pub use error::Error;
