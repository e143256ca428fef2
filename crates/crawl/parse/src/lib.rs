//! Pure functions over bytes: links, robots.txt, sitemaps, feeds
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod robots;
