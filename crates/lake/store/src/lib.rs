//! The ground a lake stands on: an object store, the layout of its paths, and the commits that move it from one state
//! to the next.
//!
//! ```text
//!   Lake ── manifests 1, 2, 3 …        which versions, segments and datasets there are
//!    │  ├── dataset commits 1, 2 …     which Parquet files a dataset consists of
//!    │  └── deny records 1, 2 …        what must not be answered, once more
//!   Store ── DirStore (a directory)    create-if-absent has exactly one winner: everything rests on that
//!         ── RemoteStore (s3://…)      with CachedStore in front of it
//!         ── MemStore
//! ```
//! A commit is the creation of the next number of a series; the loser of a race reads the winner's state and tries again
//! on top of it. Nothing here asks the clock: time is an argument.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use trawl_store::{DatasetInfo, DirStore, Lake};
//! # let dir = std::env::temp_dir().join(format!("trawl-store-doc-{}", std::process::id()));
//! let now = trawl_model::UnixMillis(1_782_262_923_456);
//! let lake = Lake::init(std::sync::Arc::new(DirStore::new(&dir)), now, "writer-1", b"com\norg\n")?;
//! let id = lake.register_dataset(now, "writer-2", &DatasetInfo::named("news"))?;
//! assert_eq!(lake.current()?.dataset_named("news").map(|dataset| dataset.id), Some(id));
//! assert_eq!(lake.dataset_newest(id)?, None, "it has no commit yet");
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod cached;
mod commit;
mod commit_copy;
pub mod conformance;
pub mod denial;
mod dir;
mod error;
mod fault;
mod fill;
mod heartbeat;
mod lake;
pub mod layout;
pub mod manifest;
mod memory;
mod mend;
mod name;
mod object;
mod progress;
mod registry;
mod remote;
mod series;
mod task;

pub use cached::{BlockCache, CacheUsage, CachedStore};
pub use commit::{COMMIT_FORMAT, CommitMode, DataFile, DatasetCommit, KnownSource, RejectsFile, Stamp};
pub use commit_copy::{commit_copy, newest_commit};
pub use denial::{DENY_FORMAT, DenyRecord, deny_record};
pub use dir::DirStore;
pub use error::{Error, Result};
pub use fault::Fault;
pub use heartbeat::{AtWork, Heartbeat, Pulse};
pub use lake::{Committed, Lake, Sizes, read_list, read_list_copy, read_suffix_list, suffix_list_hash};
pub use manifest::{Acl, Dataset, DatasetInfo, Manifest, SegmentRef, Version};
pub use memory::MemStore;
pub use name::{MAX_PATH_LEN, check_name, check_path};
pub use object::{Created, HashedUpload, Listed, RangeRead, Store, Upload, object_hash, probe};
pub use progress::{Cancel, Progress, Stage};
pub use registry::dataset_number;
pub use remote::{RemoteFs, RemoteSettings, RemoteStore, Retries, Usage, is_address, is_remote};
pub use series::{Known, MAX_STATE_BYTES, Series, State};
pub use task::{OwnFiles, create_task, read_task};
