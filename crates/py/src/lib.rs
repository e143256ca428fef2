//! The native half of the `trawl` Python package: a lake asked, archives read and written, URLs normalised.
//!
//! What it is not: a second implementation. Every call goes into the library that the command line and the server use.
//!
//! ```text
//! python/trawl/*.py   names and documentation that users see
//!   └ _trawl          this crate
//!       lake.rs       Lake: questions, answers as dicts or Rows
//!       domain.rs     domains, and columns of names looked up
//!       diff.rs       two datasets side by side
//!       ingest.rs     files and tables into a dataset
//!       job.rs        an ingest that many processes share
//!       covered.rs    what would bring the same captures in twice
//!       upkeep.rs     publish, compact, collect, verify, deny, purge, drop
//!       rows.rs       Rows: a table that is read again by every consumer, through Arrow's PyCapsule protocol
//!       feed.rs       a thread that makes batches, and the bounded channel they come through
//!       archive.rs    captures of any container: iterate, one by place, tables; writers
//!       url.rs        one URL, or a column of them
//!       work.rs       long calls that Ctrl-C ends
//!       place.rs      stores, files, time and chance
//!       column.rs     Arrow columns in and out: the only module with unsafe code
//! ```
//! Nothing here holds the interpreter while it reads, and no thread that makes batches ever touches Python.

mod archive;
mod column;
mod covered;
mod diff;
mod domain;
mod error;
mod feed;
mod ingest;
mod job;
mod json;
mod lake;
mod place;
mod rows;
mod table;
mod time;
mod upkeep;
mod url;
mod work;
mod writer;

use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; what a thread that panicked held is as good as it was.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The native half of the `trawl` package; its parts are documented where `trawl` exports them.
#[pymodule]
mod _trawl {
    #[pymodule_export]
    use crate::archive::{Capture, Captures, archive_at, archive_captures, archive_read};
    #[pymodule_export]
    use crate::column::Column;
    #[pymodule_export]
    use crate::diff::Diff;
    #[pymodule_export]
    use crate::domain::Domain;
    #[pymodule_export]
    use crate::error::{Corrupt, Error, Gone, NotFound, Refused};
    #[pymodule_export]
    use crate::job::{job_commit, job_knows, job_missing, job_plan, job_spool, job_task};
    #[pymodule_export]
    use crate::lake::Lake;
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::url::{url_domain, url_id, url_key, url_normalise, url_parse, url_surt};
    #[pymodule_export]
    use crate::writer::Writer;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
