//! The error of this crate.

use std::path::PathBuf;
use trawl_model::{Advice, Capability, DoorError};

/// Result with the error of every door, which may be an [`Error`].
pub type Result<T, E = DoorError> = std::result::Result<T, E>;

/// Why an archive cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of another format.
    #[error("{}: expected an archive ({known}), found {found}", .path.display())]
    UnknownFile {
        /// Which file.
        path: PathBuf,
        /// The formats there are.
        known: String,
        /// What it looks like.
        found: String,
    },
    /// A directory without archives.
    #[error("{}: expected archives ({known}), found none in this directory", .path.display())]
    NoFiles {
        /// Which directory.
        path: PathBuf,
        /// The formats there are.
        known: String,
    },
    /// A lake, which holds URLs and no captures.
    #[error("{} is a lake, not an archive: `trawl query` asks it, `trawl lake verify` checks it", .path.display())]
    IsLake {
        /// Which directory.
        path: PathBuf,
    },
    /// A tree of directories that is too deep to be walked.
    #[error("{}: expected at most {limit} directories below one another, found more: name a directory further down", .path.display())]
    TooDeep {
        /// Where the walk stopped.
        path: PathBuf,
        /// The most there may be.
        limit: usize,
    },
    /// A name that no format is made under.
    #[error("{}: expected a name that ends in {endings}", .path.display())]
    NoTarget {
        /// Which name.
        path: PathBuf,
        /// The endings there are.
        endings: String,
    },
    /// No format of this name.
    #[error("format: expected one of {known}, found {found:?}")]
    NoFormat {
        /// Which name.
        found: String,
        /// The formats there are.
        known: String,
    },
    /// Something that holds no captures.
    #[error("{}: expected captures, found a file that holds none", .path.display())]
    NoCaptures {
        /// Which file.
        path: PathBuf,
    },
    /// Something that has no rows of a frontier to choose from.
    #[error("{}: --host, --due-before and --status choose rows of a frontier, found another format", .path.display())]
    NoRows {
        /// Which file.
        path: PathBuf,
    },
    /// The target cannot carry all of it, and nothing may be dropped.
    #[error("{}: {format} cannot carry {}", trawl_url::without_userinfo(.url), .lost.iter().map(|lost| lost.as_str()).collect::<Vec<_>>().join(", "))]
    Dropped {
        /// Which capture, or which kind of record.
        url: String,
        /// The target.
        format: &'static str,
        /// What it cannot carry.
        lost: Vec<Capability>,
    },
    /// A source holds more than captures, and nothing may be left out.
    #[error("{}: {count} records of {name} are not captures, and cannot be converted", .path.display())]
    LeftOut {
        /// Which source.
        path: PathBuf,
        /// What it is.
        name: String,
        /// How many.
        count: u64,
    },
    /// No such compression.
    #[error("compression of {format}: expected {}, found {found:?}", if .known.is_empty() { "none" } else { .known })]
    NoCompression {
        /// Which name.
        found: String,
        /// The format.
        format: &'static str,
        /// What it has.
        known: String,
    },
    /// A store of digests that is something else.
    #[error("digests: expected a store of digests, or none yet, found {found}")]
    NoDigests {
        /// What is there.
        found: String,
    },
}

impl From<Error> for DoorError {
    fn from(e: Error) -> Self {
        DoorError::new(Advice::Stop, e)
    }
}
