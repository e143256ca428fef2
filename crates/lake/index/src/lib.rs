//! Index segments: dictionary, membership, postings, counts.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod error;
pub mod paged;
pub mod seekable;

pub use error::{Error, Result};
