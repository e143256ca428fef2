//! The error of this crate: which file, which byte, what was expected, what was found.

use std::path::{Path, PathBuf};
use trawl_io::{Advice, LockError};
use trawl_model::DoorError;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a container could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not begin as every container does.
    #[error("{}@0: expected a seqdb file, which begins with \"#!WINKME\", found {found}", .path.display())]
    BadMagic {
        /// Which file.
        path: PathBuf,
        /// Its first bytes.
        found: String,
    },
    /// The superblock breaks a rule of the format.
    #[error("{}@{offset}: superblock: expected {expected}, found {found}", .path.display())]
    BadSuperblock {
        /// Which file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A container, but not of the kind asked for, or of no known kind.
    #[error("{}@32: expected {expected}, found FORMAT {found}", .path.display())]
    UnknownFormat {
        /// Which file.
        path: PathBuf,
        /// The kind wanted.
        expected: &'static str,
        /// The FORMAT variable.
        found: i64,
    },
    /// No room for another variable.
    #[error("{}: no room for variable {name} in a superblock of {sbsize} bytes", .path.display())]
    SuperblockFull {
        /// Which file.
        path: PathBuf,
        /// The variable.
        name: String,
        /// Its size.
        sbsize: u64,
    },
    /// FILESIZE claims more than there is.
    #[error("{}: FILESIZE is {filesize}, but the file has {unix} bytes", .path.display())]
    FileSizeBeyondEof {
        /// Which file.
        path: PathBuf,
        /// The claim.
        filesize: u64,
        /// The truth.
        unix: u64,
    },
    /// An entry passes the end of the file.
    #[error("{}@{ptr}: entry ends at {ends}, the file at {end}", .path.display())]
    TornEntry {
        /// Which file.
        path: PathBuf,
        /// Where the entry starts.
        ptr: u64,
        /// Where it would end.
        ends: u64,
        /// Where the file ends.
        end: u64,
    },
    /// An entry, a cell or a pair breaks a rule of the format.
    #[error("{}@{ptr}: expected {expected}, found {found}", .path.display())]
    CorruptEntry {
        /// Which file.
        path: PathBuf,
        /// Where.
        ptr: u64,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A pointer given by the caller leads to no entry.
    #[error("{}: no entry can start at {ptr}", .path.display())]
    BadPointer {
        /// Which file.
        path: PathBuf,
        /// The pointer.
        ptr: u64,
    },
    /// A string is longer than its class, a limit or the format allows.
    #[error("{}: {what} of {len} bytes is over the limit of {limit}", .path.display())]
    TooLong {
        /// Which file.
        path: PathBuf,
        /// What is too long.
        what: &'static str,
        /// Its length.
        len: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// A string is shorter than its class or the format allows.
    #[error("{}: {what} of {len} bytes is under the least of {least}", .path.display())]
    TooShort {
        /// Which file.
        path: PathBuf,
        /// What is too short.
        what: &'static str,
        /// Its length.
        len: u64,
        /// The least that is accepted.
        least: u64,
    },
    /// The file has no delete flags.
    #[error("{}: entries have no delete flag (KVDELFL is not 1)", .0.display())]
    NoDelflag(PathBuf),
    /// A stored string cannot change its length.
    #[error("{}@{ptr}: {what} of {old} bytes cannot become {new} bytes long", .path.display())]
    LengthChange {
        /// Which file.
        path: PathBuf,
        /// The entry.
        ptr: u64,
        /// Key or value.
        what: &'static str,
        /// Its length.
        old: u64,
        /// The length wanted.
        new: u64,
    },
    /// The key is in the index already.
    #[error("{}: key is already there", .0.display())]
    KeyExists(PathBuf),
    /// The last free cell is never given away.
    #[error("{}: hash table of {htsize} cells is full", .path.display())]
    TableFull {
        /// The index.
        path: PathBuf,
        /// Its cells.
        htsize: u64,
    },
    /// The file was not closed properly: repair it, or read only what was synced.
    #[error("{}: {why}; it needs a check and repair", .path.display())]
    NeedsCheck {
        /// Which file.
        path: PathBuf,
        /// What shows it.
        why: &'static str,
    },
    /// The files of a filesys do not belong together.
    #[error("{}: FSGEN is {found:016x}, the data file has {expected:016x}", .path.display())]
    GenerationMismatch {
        /// The file that differs.
        path: PathBuf,
        /// FSGEN of the data file.
        expected: i64,
        /// FSGEN of this file.
        found: i64,
    },
    /// The name of a filesys breaks a rule.
    #[error("{}: expected a filesys name of 1 to 200 bytes in UTF-8 without / and NUL that starts with no dot", .0.display())]
    BadName(PathBuf),
    /// There is a filesys of that name.
    #[error("{}: filesys exists", .0.display())]
    FilesysExists(PathBuf),
    /// There is no filesys of that name.
    #[error("{}: no such filesys", .0.display())]
    FilesysNotFound(PathBuf),
    /// The filesys has no file of that name.
    #[error("{}: no file {:?}", .0.display(), .1)]
    FileNotFound(PathBuf, String),
    /// The filesys has a file of that name.
    #[error("{}: file {:?} exists", .0.display(), .1)]
    FileExists(PathBuf, String),
    /// The file is of another type than the caller accepts.
    #[error("{}: file {name:?} is of type {found:?}, wanted {wanted:?}", .path.display())]
    TypeMismatch {
        /// The filesys.
        path: PathBuf,
        /// The name.
        name: String,
        /// Types accepted.
        wanted: String,
        /// Its type.
        found: char,
    },
    /// What an append-only filesys does not allow.
    #[error("{}: append-only: {}", .0.display(), .1)]
    AppendOnlyRestriction(PathBuf, &'static str),
    /// The file is open in this process.
    #[error("{}: file {:?} is open", .0.display(), .1)]
    AlreadyOpen(PathBuf, String),
    /// Another process writes, or checks.
    #[error(transparent)]
    LockFailed(#[from] LockError),
    /// The container was opened for reading.
    #[error("{}: open for reading only", .0.display())]
    ReadOnly(PathBuf),
    /// A parameter of the caller makes no sense.
    #[error("{}: {}", .0.display(), .1)]
    Refused(PathBuf, String),
    /// A sync failed earlier: what was written since the last good one may be gone, whatever later syncs say.
    #[error("{}: an earlier sync failed; open it again", .0.display())]
    Poisoned(PathBuf),
    /// A file operation failed; the message names the file.
    #[error(transparent)]
    Io(#[from] trawl_io::Error),
    /// Sorting failed.
    #[error(transparent)]
    Sort(#[from] trawl_sort::Error),
}

impl Error {
    /// What the caller may do about it.
    pub fn advice(&self) -> Advice {
        match self {
            Error::TornEntry { .. }
            | Error::CorruptEntry { .. }
            | Error::BadPointer { .. }
            | Error::TooLong { .. }
            | Error::TooShort { .. }
            | Error::KeyExists { .. }
            | Error::FileNotFound { .. }
            | Error::FileExists { .. }
            | Error::TypeMismatch { .. } => Advice::Skip,
            Error::LockFailed(e) => e.advice(),
            Error::AlreadyOpen { .. } => Advice::Retry,
            Error::Io(e) => e.advice(),
            Error::Sort(e) => e.advice(),
            _ => Advice::Stop,
        }
    }

    pub(crate) fn corrupt(path: &Path, ptr: u64, expected: &'static str, found: impl ToString) -> Self {
        Error::CorruptEntry { path: path.into(), ptr, expected, found: found.to_string() }
    }

    pub(crate) fn refused(path: &Path, reason: impl Into<String>) -> Self {
        Error::Refused(path.into(), reason.into())
    }
}

impl From<Error> for DoorError {
    fn from(error: Error) -> Self {
        DoorError::new(error.advice(), error)
    }
}

/// Bytes as a person may read them in a message, cut to a sensible length.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let cut: Vec<u8> = bytes.iter().take(100).copied().collect();
    String::from_utf8_lossy(&cut).into_owned()
}
