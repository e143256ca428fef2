//! seqdb containers: a few large files instead of one file per document, friendly to the page cache, appended to.
//!
//! | file | what it is |
//! | --- | --- |
//! | [`Kvseq`] | a sequence of keys and values; deleted entries are marked |
//! | [`Hindex`] | a hash table from keys to entries of a kvseq |
//! | [`Map`] | both together: a map on disk |
//! | [`Perm`] | pointers into a kvseq that can be grouped by key |
//! | [`Filesys`] | many files in a few large ones, append-only if wanted |
//! | [`Pages`] | captures in an append-only filesys, found by URL |
//!
//! ```
//! use std::path::Path;
//! use trawl_io::fault::FaultFs;
//! use trawl_model::UnixMillis;
//! use trawl_seqdb::{Access, Clock, CreateHindex, CreateKvseq, Map, MapFiles, Settings};
//!
//! # fn main() -> trawl_seqdb::Result<()> {
//! // A disk in memory, for the example; without `on` it is the machine's.
//! let disk = FaultFs::new();
//! let settings = Settings::new(Clock::fixed(UnixMillis(0)), "an example").on(disk.shared());
//! let files = MapFiles::named(Path::new("/words"));
//! let mut words = Map::create(&files, &CreateKvseq::default(), &CreateHindex::default(), &settings)?;
//! words.put(b"apple", b"red")?;
//! words.put(b"apple", b"yellow")?;
//! words.close()?;
//!
//! let words = Map::open(&files, Access::Read, &settings)?;
//! assert_eq!(words.get(b"apple")?.as_deref(), Some(&b"yellow"[..]));
//! assert_eq!(words.get(b"pear")?, None);
//! # Ok(())
//! # }
//! ```
//! All integers are big-endian. The formats have no checksums: a broken length is noticed, a flipped bit in a value is
//! not. `docs/formats/seqdb.md` is the byte-level description; [`design`] holds every constant that the published
//! description leaves open.
//!
//! Writers assume that a disk writes a sector of 512 bytes whole or not at all; nothing else is assumed about what a
//! power cut leaves of writes that were not synced.
//!
//! ```
//! use trawl_io::fault::FaultFs;
//! use trawl_model::{Clock, UnixMillis};
//! use trawl_seqdb::{Access, CreateHindex, CreateKvseq, Map, MapFiles, Settings};
//!
//! let settings = Settings::new(Clock::fixed(UnixMillis(0)), "example").on(FaultFs::new().shared());
//! let files = MapFiles::named("/bodies".as_ref());
//! let mut map = Map::create(&files, &CreateKvseq::default(), &CreateHindex::default(), &settings)?;
//! map.put(b"key", b"value")?;
//! map.close()?;
//! assert_eq!(Map::open(&files, Access::Read, &settings)?.get(b"key")?.as_deref(), Some(b"value".as_slice()));
//! # Ok::<(), trawl_seqdb::Error>(())
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod aside;
pub mod design;
mod error;
mod file;
pub mod filesys;
mod findings;
mod hash;
pub mod hindex;
mod inspect;
mod kind;
pub mod kvseq;
mod lock;
pub mod map;
mod num;
pub mod pages;
pub mod perm;
mod progress;
mod settings;
mod sorting;
mod store;
pub mod superblock;
mod together;
mod whole;

pub use error::{Error, Result};
pub use filesys::{Base, CreateFilesys, FileHandle, FileInfo, FileReader, Filesys, FsPaths, WriteFlags};
pub use findings::{Finding, Findings, Severity};
pub use hash::h64;
pub use hindex::{CreateHindex, Hindex, Keyed, Keys};
pub use inspect::{Inspection, Variable, filesys_around, filesys_of, inspect, set_variables, variables};
pub use kind::{HEAD_BYTES, Kind, is_seqdb, purpose_of};
pub use kvseq::{CreateKvseq, Item, KvEntry, Kvseq, Repr, Scan};
pub use map::{BundleFiles, Map, MapFiles};
pub use pages::{CreatePages, Form, Page, Pages};
pub use perm::{CreatePerm, Perm};
pub use progress::{OnProgress, Progress, silent};
pub use settings::{Access, Settings, SyncPolicy};
pub use superblock::{Name, Purpose, Superblock};
pub use trawl_model::Clock;
pub use whole::{Counted, Repaired, Whole};
