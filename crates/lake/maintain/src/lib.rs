//! Looking after a lake: verify, rebuild, compact, collect, purge, drop, deny, as calls of a library.
//!
//! ```text
//!  Keeper { name, temp_dir, now, tell, cancel, .. }
//!    ├ verify(lake, manifest, ..)       is everything as it is said to be?      → faults
//!    ├ rebuild(store, ..)               the index anew, of commits and rows     → a version
//!    ├ publish(lake)                    a version of what is committed
//!    ├ compact(lake, ..)                fewer and larger files
//!    ├ deny, allow, purge, drop_dataset what must not be answered; and what goes for good
//!    └ mend(lake)                       what is lost or damaged, again from other records
//!
//!  collect(lake, now, settings)         deletes what no kept version needs
//!  copy, upgrade, restore, accept_loss  a lake in another place, of an earlier program, without manifests, without some commits
//!  run_task, commit_job                 an ingest that many processes share, up to a version
//! ```
//! A [`Keeper`] does not ask the system for the time, for chance, or for room: its caller gives them, gets progress and facts
//! ([`Event`]), and can end the work ([`trawl_store::Cancel`]). Every act leaves a lake that answers as before or as asked
//! for, whenever it ends. This crate prints nothing and names no flag but where a person has to decide.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::{cell::RefCell, sync::Arc};
//! use trawl_maintain::{Event, Keeper};
//! # let dir = std::env::temp_dir().join(format!("trawl-maintain-doc-{}", std::process::id()));
//! # let now = || trawl_model::UnixMillis(1_782_262_923_456);
//! let store = Arc::new(trawl_store::DirStore::new(&dir));
//! let lake = trawl_store::Lake::init(store, now(), "first", b"com\norg\n")?;
//!
//! let faults = RefCell::new(Vec::new());
//! let tell = |event| {
//!     if let Event::Fault { fault, .. } = event {
//!         faults.borrow_mut().push(fault);
//!     }
//! };
//! let keeper = Keeper::new("keeper", dir.join("tmp"), &now, &tell);
//! assert_eq!(keeper.verify(&lake, &*lake.current()?, false)?.faults, 0);
//! assert!(faults.borrow().is_empty());
//! # std::fs::remove_dir_all(dir)?;
//! # Ok(())
//! # }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod compact;
mod copy;
mod deny;
mod error;
mod event;
mod gc;
mod job;
mod keeper;
mod loss;
mod mend;
mod metadata;
mod purge;
mod rebuild;
mod restore;
mod states;
pub mod temp;
mod upgrade;
mod verify;

pub use compact::Compact;
pub use copy::{Copied, copy};
pub use deny::{Named, Resolver, dataset};
pub use error::{Error, Result};
pub use event::{Dropped, Event, Merged, Part};
pub use gc::{GcReport, GcSettings, collect};
pub use job::{IndexDone, JobCommit, TaskDone, commit_job, run_task};
pub use keeper::Keeper;
pub use loss::{LostCommits, WentOn, accept_loss, lost_commits};
pub use metadata::{Metadata, metadata};
pub use purge::{Losses, purge_rejects};
pub use rebuild::{Rebuild, Rebuilt, is_lost};
pub use restore::{Remains, remains, restore, stored_list};
pub use states::{verify_files, verify_states};
pub use upgrade::{Upgraded, upgrade};
pub use verify::LakeVerified;
