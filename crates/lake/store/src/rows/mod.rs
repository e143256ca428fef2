//! Reading rows of the Parquet files of a lake, page by page.
//!
//! ```text
//!   page table (kept by the index) ── Plan ──► ranges ── one round ──► checksums ──► Rows
//! ```
//! A [`GroupTable`] says where every page of a row group lies. A [`Plan`] picks the pages that hold some rows of some
//! columns; any number of plans is fetched in one round ([`read`]). [`FilePages`] makes the tables from the file itself.

mod column;
mod decode;
mod footer;
mod guard;
mod plan;
#[allow(clippy::module_inception)]
mod rows;
mod table;

pub use column::{Column, Columns, Kind, SCHEMA};
pub use footer::{FilePages, ZSTD_LEVEL, hash};
pub use guard::{chunk_range, guarded};
pub use plan::{Plan, read};
pub use rows::{Rows, UrlRow};
pub use table::GroupTable;
