//! The crawl loop
