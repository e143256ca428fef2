//! A lake's Parquet files: which columns they have, how rows get into them, and how they come out again.
//!
//! ```text
//!  Row ─► Writer ─► part files, page by page        sorted rows in, files and what their commit says of them out
//!                        │
//!  page tables ─► Plan ──┴─► Rows ─► RecordBatch     some rows of some columns: only the pages that hold them are read
//! ```
//! Encoder and decoder stand side by side ([`Column`] lists the columns, `page/` has what pages are made of), since each
//! relies on what the other does. Any Parquet reader reads the files; this one reads little of them, and nothing that was
//! not checked.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use trawl_rows::{Column, Columns, FilePages, Row, WriteSettings, Writer};
//! # let dir = std::env::temp_dir().join(format!("trawl-rows-doc-{}", std::process::id()));
//! let store = trawl_store::DirStore::new(&dir);
//! let settings = WriteSettings {
//!     dataset_id: 7,
//!     writer: "w1".into(),
//!     columns: Column::of_files(false),
//!     suffix_list: "0123456789abcdef".into(),
//!     zstd_level: 6,
//!     page_rows: 4096,
//!     row_group_bytes: 64 << 20,
//!     file_bytes: 4 << 30,
//!     threads: 1,
//! };
//! let mut writer = Writer::new(&store, settings)?;
//! let row = Row { domain: "a.com", key: "com,a)/x", scheme: "https", host: "a.com", path_query: "/x", ..Row::default() };
//! writer.push("all", &row)?;
//! let files = writer.finish()?;
//!
//! let pages = FilePages::read(&store, &files[0])?;
//! for batch in pages.scan(&store, Columns::of(&[Column::Host, Column::Ts]), 1000)?.batches() {
//!     assert_eq!((batch?.num_rows(), files[0].rows), (1, 1));
//! }
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod column;
mod distinct;
mod error;
mod page;
mod read;
mod rows;
mod values;
mod verify;
mod write;

pub use column::{Column, Columns, Kind, SCHEMA, Shape, arrow_schema};
pub use distinct::Distinct;
pub use error::{Error, Result};
pub use read::{FilePages, GroupTable, Plan, Scan, Step, ZSTD_LEVEL, read};
pub use rows::Rows;
pub use verify::{DatasetVerified, describe, verify_dataset};
pub use write::{Row, WriteSettings, Writer};
