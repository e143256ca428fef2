//! URL records to sorted, partitioned Parquet.
//!
//! ```text
//!  UrlSource ── splits ──► parse, normalise (threads) ──► sort within a budget ──► Parquet (threads) ──► commit
//!      lines · JSONL · CDXJ · …         │ rejected: counted, kept with a reason
//! ```
//! [`ingest`] is the whole way. Equal sources and settings give equal rows in equal order; a source is taken once, and one
//! that has grown only from where it was cut.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use trawl_ingest::{IngestSettings, ingest, source};
//! # let dir = std::env::temp_dir().join(format!("trawl-ingest-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let now = || trawl_model::UnixMillis(1_782_262_923_456);
//! std::fs::write(dir.join("urls.txt"), "https://www.example.org/a\nhttps://example.org/b\nno url\n")?;
//! let fs: Arc<dyn trawl_io::Fs> = Arc::new(trawl_io::RealFs);
//! let urls = source::open(&fs, &dir.join("urls.txt"), None)?;
//!
//! let lake = trawl_store::Lake::init(Arc::new(trawl_store::DirStore::new(dir.join("lake"))), now(), "w1", b"com\norg\n")?;
//! let id = lake.register_dataset(now(), "w2", &trawl_store::DatasetInfo::named("news"))?;
//! let report = ingest(&lake, id, &[urls], &IngestSettings::new("w3", &dir), &now, &|_| ())?;
//! assert_eq!((report.rows, report.rejected, report.files), (2, 1, 1));
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod error;
mod ingest;
pub mod job;
mod join;
mod map;
mod record;
mod reduce;
mod rejects;
mod replace;
mod rewrite;
mod run;
mod settings;
pub mod source;
mod stale;

pub use error::{Error, Result};
pub use ingest::ingest;
pub use map::{MapInput, MapReport, Mapped, Tails, map, plan};
pub use reduce::{Records, reduce};
pub use rejects::{Oddity, Rejected};
pub use rewrite::{Files, Rewrite, RewriteReport, rewrite};
pub use settings::{IngestReport, IngestSettings, Mode};
pub use trawl_store::{Progress, Stage};
