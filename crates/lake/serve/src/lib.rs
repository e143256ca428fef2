//! The lake over HTTP: the API under `/v1`, and the explorer page.
//!
//! ```text
//! GET /v1/domain/{domain}                                 which datasets hold it, with counts
//! GET /v1/domain/{domain}/datasets/{dataset_id}/urls      which URLs: ?offset= &limit= &cursor=
//!                                                         &host= &path_prefix= &from= &until= &status=
//! GET /v1/domains                                         names: ?prefix= &after= &limit=
//! GET /v1/datasets   GET /v1/stats   GET /health
//! GET /                                                   the explorer page
//! ```
//!
//! Handlers are thin: each pins the newest version, asks it on a blocking thread and writes the answer. A failure is
//! `{"error": "<code>", "message": "<for people>"}` with the status of its kind. Nothing is logged here; what went
//! wrong inside the lake goes to the `on_error` of [`Config`], and answers say only that it did.
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
//! stream.write_all(b"GET /health HTTP/1.1\r\nHost: lake\r\nConnection: close\r\n\r\n")?;
//! let mut answer = String::new();
//! stream.read_to_string(&mut answer)?;
//! assert!(answer.starts_with("HTTP/1.1 200 OK"));
//! server.stop()?;
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod api;
mod failure;
mod page;
mod server;

pub use server::{Config, Error, Running, Server};
