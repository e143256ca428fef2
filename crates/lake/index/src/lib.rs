//! Index segments: dictionary, membership, postings, counts.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod blob;
mod cache;
pub mod counts;
mod error;
pub mod lines;
pub mod membership;
pub mod mphf;
pub mod paged;
pub mod pages;
pub mod postings;
mod scratch;
pub mod seekable;

pub use blob::Blob;
pub use cache::Caches;
pub use error::{Error, Result};
pub use scratch::Scratch;
