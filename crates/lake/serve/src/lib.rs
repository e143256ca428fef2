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
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod api;
mod failure;
mod page;
mod server;

pub use server::{Config, Error, Running, Server};
