//! One URL in, one capture out.
//!
//! ```text
//! Ask ─► pool ─┬─ idle connection ──────────────────────────► request ─► head ─► body ─► Capture
//!              └─ name ─► address guard ─► TCP ─► [TLS] ───┘             │       └ memory, spool, cut at a limit
//!                         (two at a time)   └ HTTP/2 or HTTP/1.1         └ 1xx passed over
//! ```
//!
//! HTTP/1.1 over tokio and rustls, by a client of our own because an archive keeps heads as they came; HTTP/2, which has no
//! such heads, by the h2 library. Every part has its
//! own limit; what came before a limit is kept and marked. Redirects are not followed here: each hop is a capture, and
//! the scheduler decides about the next. Nothing here asks for the date: it is part of the [`Ask`].
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use trawl_fetch::{Ask, FetchConfig, Fetcher};
//! use trawl_model::{Outcome, UnixMillis};
//! # use std::io::{Read, Write};
//! # let server = std::net::TcpListener::bind("127.0.0.1:0")?;
//! # let at = server.local_addr()?;
//! # std::thread::spawn(move || {
//! #     for stream in server.incoming() {
//! #         let mut stream = stream.unwrap();
//! #         let _ = stream.read(&mut [0; 4096]);
//! #         stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello").unwrap();
//! #     }
//! # });
//! // A server on this machine, which has a private address.
//! let config = FetchConfig {
//!     user_agent: "my-crawler/1.0".into(),
//!     allow_private: vec!["127.0.0.1".into()],
//!     ..FetchConfig::default()
//! };
//! let fetcher = Fetcher::new(config, std::sync::Arc::new(trawl_io::RealFs))?;
//! let url = trawl_url::WebUrl::parse(&format!("http://{at}/"))?;
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let capture = runtime.block_on(fetcher.fetch(Ask::new(url, UnixMillis(0))));
//! let Outcome::Response { message, .. } = capture.outcome else { panic!("no response") };
//! assert!(message.head.starts_with(b"HTTP/1.1 200 OK"));
//! # Ok(()) }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod address;
mod body;
mod client;
mod config;
mod conn;
mod connect_to;
mod dial;
mod error;
mod http2;
mod old_tls;
mod places;
mod pool;
mod reach;
mod resolve;
mod target;
mod tls;
mod unpack;

pub use address::is_public;
pub use client::{Ask, Fetcher, Validators};
pub use config::{DnsLimits, FetchConfig, Limits, PoolLimits, TlsMode, TlsVersions, TypeLimit};
pub use connect_to::{ConnectTo, ConnectToError};
pub use error::Error;
