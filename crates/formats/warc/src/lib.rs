//! WARC files, read and written.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod arc;
mod cat;
pub mod cdxj;
mod container;
pub mod convert;
mod digest;
mod error;
mod header;
pub mod http;
mod inspect;
mod limits;
mod reader;
mod source;
#[cfg(test)]
mod testing;
mod url_source;
mod verify;
pub mod wacz;
mod writer;

pub use arc::is_arc_name;
pub use cat::{LongValues, RecordView, view_record};
pub use container::Compression;
pub use error::{At, Error, Result};
pub use header::{RecordHeader, RecordType, Version, record_header};
pub use inspect::{Inspection, Sample, Tally};
pub use limits::{Limits, Step};
pub use reader::{Finished, Gap, ReaderBuilder, Record, RecordFile, WarcReader, Warning};
pub use source::WarcSource;
pub use url_source::WarcUrls;
pub use verify::{Finding, Progress, Severity, Verifier, VerifyReport};
pub use writer::{
    Clock, EventIds, FileNames, IdSource, Prepared, PreparedRecord, Preparer, SinkOptions, WarcInfo, WarcSink,
    record_id,
};
