//! The lake over HTTP: the API under `/v1`, a CDX server and Memento for web-archive clients, and the explorer page.
//!
//! ```text
//! GET /v1/domain/{domain}                                 which datasets hold it, with counts
//! GET /v1/domain/{domain}/datasets/{dataset}/urls         which URLs, page by page; …/export all of them
//! GET /v1/url   /v1/domains   /v1/datasets   /v1/stats    one URL everywhere; names; the catalogue; the lake in numbers
//! GET /v1/datasets/{dataset}/domains   …/export   …/diff/{other}
//! GET /v1/capture/{dataset}                               the bytes of a capture
//! GET /cdx   /timemap/link/{url}   /timegate/{url}   /web/{time}id_/{url}
//! GET /healthz   /readyz   /metrics   /openapi.json   /docs
//! GET /                                                   the explorer page
//! ```
//! ```text
//! socket ─ listen ─► connection ─ front ─► routes ─► handler ─┬─ work: pin, ask, JSON ─┐ on blocking threads,
//!           limits, TLS, h1/h2    CORS,     one list,         └─ stream: pieces ───────┘ cancelled when the client leaves
//!                                 counting  also OpenAPI
//! ```
//!
//! Handlers are thin. A failure is `{"error": "<code>", "message": "<for people>"}` with the status of its kind. Nothing is
//! logged here; what happens goes to the `on_event` of [`Config`], and answers say nothing of files.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::io::{Read, Write};
//! use std::sync::Arc;
//! use trawl_serve::{Config, Server};
//! # let dir = std::env::temp_dir().join(format!("trawl-serve-doc-{}", std::process::id()));
//! # let store: Arc<dyn trawl_store::Store> = Arc::new(trawl_store::DirStore::new(&dir));
//! # trawl_store::Lake::init(store.clone(), trawl_model::UnixMillis(1_782_262_923_456), "w1", b"com\norg\n")?;
//! let lake = Arc::new(trawl_query::Lake::open(store, trawl_query::Options::default())?);
//! let server = Server::start(lake, Config { listen: ([127, 0, 0, 1], 0).into(), ..Config::default() })?;
//! let mut stream = std::net::TcpStream::connect(server.address())?;
//! stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: lake\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK"));
//! server.stop()?;
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod access;
mod archive;
mod asker;
mod bare;
mod connections;
mod event;
mod failure;
mod front;
mod listen;
mod meta;
mod metrics;
mod openapi;
mod page;
mod params;
mod routes;
mod server;
mod stream;
mod tls;
mod v1;
mod watch;
mod work;

pub use access::{AccessRules, TokenRule};
pub use event::{Event, Facts, RequestLog};
pub use server::{Config, Error, Running, Server};
pub use tls::TlsFiles;
