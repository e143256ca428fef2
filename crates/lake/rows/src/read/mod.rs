//! From a file to rows, page by page.
//!
//! ```text
//!   page table (kept by the index) ── Plan ──► ranges ── one round ──► checksums ──► Rows
//! ```
//! A [`GroupTable`] says where every page of a row group lies. A [`Plan`] picks the pages that hold some rows of some
//! columns; any number of plans is fetched in one round ([`read`]). [`FilePages`] makes the tables from the file itself.

mod decode;
mod file;
mod page;
mod plan;
mod table;

#[cfg(test)]
mod tests;

pub use file::{FilePages, Scan, Step, ZSTD_LEVEL};
pub use plan::{Plan, read};
pub use table::GroupTable;
