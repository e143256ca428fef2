//! The ground a lake stands on: an object store, the layout of its paths, and the commits that move it from one state
//! to the next.
//!
//! ```text
//!   Lake ── manifests 1, 2, 3 …        which versions, segments and datasets there are
//!    │  ├── dataset commits 1, 2 …     which Parquet files a dataset consists of
//!    │  └── deny records 1, 2 …        what must not be answered, once more
//!   Store ── DirStore (a directory)    create-if-absent has exactly one winner: everything rests on that
//! ```
//! A commit is the creation of the next number of a series; the loser of a race reads the winner's state and tries again
//! on top of it. Nothing here asks the clock: time is an argument.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod audit;
mod commit;
mod counting;
pub mod denial;
mod dir;
mod error;
mod fill;
mod gc;
mod heartbeat;
mod lake;
pub mod layout;
mod loss;
mod lost_answers;
pub mod manifest;
mod name;
mod object;
mod registry;
mod restore;
pub mod rows;
mod series;
mod verify;

pub use audit::{verify_files, verify_states};
pub use commit::{COMMIT_FORMAT, CommitMode, DataFile, DatasetCommit, KnownSource, Stamp};
pub use counting::{CountingStore, Counts};
pub use denial::{DENY_FORMAT, DenyRecord, deny_record};
pub use dir::DirStore;
pub use error::{Error, Result};
pub use gc::{GcReport, GcSettings, collect};
pub use heartbeat::{AtWork, Heartbeat};
pub use lake::{Committed, Lake, suffix_list_hash};
pub use loss::{LostCommits, WentOn, lost_commits};
pub use lost_answers::{Lost, LostAnswers};
pub use manifest::{Acl, Dataset, DatasetInfo, Manifest, SegmentRef, Version};
pub use name::{MAX_PATH_LEN, check_name, check_path};
pub use object::{Created, Listed, RangeRead, Store, Upload, probe};
pub use restore::{Remains, remains, stored_list};
pub use verify::{DatasetVerified, Fault, verify_dataset};
