//! The error of this crate, and what a caller may do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use trawl_model::{Advice, DoorError};

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The act on a file that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Opening an existing file.
    Open,
    /// Creating a file, or opening it for writing.
    Create,
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
    /// Changing a file's length.
    SetLen,
    /// Syncing a file's data.
    Sync,
    /// Syncing a directory.
    SyncDir,
    /// Giving a file another name.
    Rename,
    /// Removing a file or directory.
    Remove,
    /// Creating a directory.
    CreateDir,
    /// Listing a directory.
    List,
    /// Asking for length or kind. Messages call it "open": it is the first thing done with a file that a user names.
    Metadata,
    /// Locking a file.
    Lock,
    /// Mapping a file into memory.
    Map,
    /// Telling the system how a file will be used.
    Advise,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Op::Open => "open",
            Op::Create => "create",
            Op::Read => "read",
            Op::Write => "write",
            Op::SetLen => "change the length of",
            Op::Sync => "sync",
            Op::SyncDir => "sync directory",
            Op::Rename => "rename a file to",
            Op::Remove => "remove",
            Op::CreateDir => "create directory",
            Op::List => "list",
            Op::Metadata => "open",
            Op::Lock => "lock",
            Op::Map => "map",
            Op::Advise => "read ahead in",
        })
    }
}

/// Why a file operation, or the reading of something in a file, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation.
    #[error("cannot {op} {}{}: {source}", .path.display(), at(.offset))]
    Io {
        /// What was attempted.
        op: Op,
        /// On which file.
        path: PathBuf,
        /// At which byte, where that means something.
        offset: Option<u64>,
        /// What the system said.
        source: io::Error,
    },
    /// The file ends before what it should hold.
    #[error("{}@{offset}: expected {wanted} bytes, found {found}", .path.display())]
    Short {
        /// Which file.
        path: PathBuf,
        /// Where the bytes should start.
        offset: u64,
        /// How many were asked for.
        wanted: u64,
        /// How many there are.
        found: u64,
    },
    /// A length in the file is larger than the reader's limit.
    #[error("{}@{offset}: {what} claims {claimed} bytes, limit {limit}", .path.display())]
    OverLimit {
        /// Which file.
        path: PathBuf,
        /// Where the claim stands.
        offset: u64,
        /// What has the length.
        what: &'static str,
        /// The length the file claims.
        claimed: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// The bytes are not what the format demands.
    #[error("{}@{offset}: expected {expected}, found {found}", .path.display())]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A caller's value cannot be written (too large, empty, or after a failure that made the writer useless).
    #[error("{}: {reason}", .path.display())]
    Refused {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

fn at(offset: &Option<u64>) -> String {
    offset.map(|o| format!("@{o}")).unwrap_or_default()
}

impl Error {
    /// An I/O error on `path`.
    pub fn io(op: Op, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Error::Io { op, path: path.into(), offset: None, source }
    }

    /// An I/O error at a byte offset of `path`.
    pub fn io_at(op: Op, path: impl Into<PathBuf>, offset: u64, source: io::Error) -> Self {
        Error::Io { op, path: path.into(), offset: Some(offset), source }
    }

    /// The file the error is about.
    pub fn path(&self) -> &Path {
        match self {
            Error::Io { path, .. }
            | Error::Short { path, .. }
            | Error::OverLimit { path, .. }
            | Error::Corrupt { path, .. }
            | Error::Refused { path, .. } => path,
        }
    }

    /// The `io::ErrorKind` closest to this error.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Error::Io { source, .. } => source.kind(),
            Error::Short { .. } => io::ErrorKind::UnexpectedEof,
            Error::OverLimit { .. } | Error::Corrupt { .. } => io::ErrorKind::InvalidData,
            Error::Refused { .. } => io::ErrorKind::InvalidInput,
        }
    }

    /// Whether the file or directory asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }

    /// What the caller may do: see [`Advice`].
    pub fn advice(&self) -> Advice {
        match self {
            Error::Io { source, .. } => Advice::of(source.kind()),
            Error::Short { .. } | Error::OverLimit { .. } | Error::Corrupt { .. } => Advice::Skip,
            Error::Refused { .. } => Advice::Stop,
        }
    }
}

impl From<Error> for io::Error {
    /// Keeps the kind, so that `Read` and `Write` adapters do not hide it.
    fn from(e: Error) -> Self {
        io::Error::new(e.kind(), e)
    }
}

impl From<Error> for DoorError {
    fn from(e: Error) -> Self {
        DoorError::new(e.advice(), e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_where_and_what() {
        let source = || io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(Error::io(Op::Rename, "a/b", source()).to_string(), "cannot rename a file to a/b: no storage space");
        assert_eq!(
            Error::io_at(Op::Write, "a/b", 81920, source()).to_string(),
            "cannot write a/b@81920: no storage space"
        );
        let missing = Error::io(Op::Metadata, "a/b", io::ErrorKind::NotFound.into());
        assert_eq!(missing.to_string(), "cannot open a/b: entity not found");
        let short = Error::Short { path: "f".into(), offset: 3, wanted: 8, found: 2 };
        assert_eq!(short.to_string(), "f@3: expected 8 bytes, found 2");
    }

    #[test]
    fn advice_follows_the_kind_even_through_io_errors() {
        for (kind, advice) in [
            (io::ErrorKind::StorageFull, Advice::Stop),
            (io::ErrorKind::PermissionDenied, Advice::Stop),
            (io::ErrorKind::ReadOnlyFilesystem, Advice::Stop),
            (io::ErrorKind::Other, Advice::Stop),
            (io::ErrorKind::NotFound, Advice::Skip),
            (io::ErrorKind::InvalidData, Advice::Skip),
            (io::ErrorKind::Interrupted, Advice::Retry),
            (io::ErrorKind::TimedOut, Advice::Retry),
        ] {
            let error = Error::io(Op::Read, "f", kind.into());
            assert_eq!(error.advice(), advice, "{kind}");
            let error = io::Error::from(error);
            assert_eq!(error.kind(), kind);
            assert_eq!(Advice::of(error.kind()), advice);
        }
        assert_eq!(Error::Short { path: "f".into(), offset: 0, wanted: 1, found: 0 }.advice(), Advice::Skip);
    }
}
