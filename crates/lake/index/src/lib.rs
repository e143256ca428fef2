//! Index segments: dictionary, membership, postings, counts.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod cache;
mod error;
pub mod lines;
pub mod mphf;
pub mod paged;
pub mod seekable;

pub use cache::Caches;
pub use error::{Error, Result};
