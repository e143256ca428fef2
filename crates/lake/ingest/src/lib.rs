//! URL records to sorted, partitioned Parquet.
//!
//! ```text
//!  UrlSource ── splits ──► parse, normalise (threads) ──► sort within a budget ──► Parquet (threads) ──► commit
//!      lines · JSONL · CDXJ · …         │ rejected: counted, kept with a reason
//! ```
//! [`ingest`] is the whole way. Equal sources and settings give equal rows in equal order; a source is taken once, and one
//! that has grown only from where it was cut.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod error;
mod ingest;
mod join;
mod map;
mod purge;
mod record;
mod rejects;
mod rewrite;
mod run;
mod settings;
pub mod source;
mod stale;
mod writer;

pub use error::{Error, Result};
pub use ingest::ingest;
pub use purge::{Losses, losses, lost_rejects, purge_rejects};
pub use rewrite::{Files, Rewrite, RewriteReport, rewrite};
pub use settings::{IngestReport, IngestSettings, Mode, Progress, Stage};
