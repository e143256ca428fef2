//! The error of this crate: where, what was expected, what was found.

use std::fmt;
use std::io;
use std::sync::Arc;
use trawl_model::{Advice, DoorError, Finding, Severity};

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A seekable place in an archive: the stored offset of a member (or of a record in an uncompressed file) and, inside
/// a compressed member, how many inflated bytes further.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct At {
    /// The file, as it was named when opened.
    pub file: Arc<str>,
    /// Stored byte offset.
    pub offset: u64,
    /// Inflated bytes past the start of the member at `offset`.
    pub inside: u64,
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.file, self.offset)?;
        if self.inside > 0 { write!(f, "+{}", self.inside) } else { Ok(()) }
    }
}

/// Why an archive could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused to read or write.
    #[error("{at}: {source}")]
    Io {
        /// Where.
        at: At,
        /// What the system said.
        source: io::Error,
    },
    /// A file operation failed; the message names the file.
    #[error(transparent)]
    File(#[from] trawl_io::Error),
    /// The bytes are not what the format demands.
    #[error("{at}: expected {expected}, found {found}")]
    Corrupt {
        /// Where.
        at: At,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// The file ends before what it announced.
    #[error("{at}: expected {expected}, found the end after {found} bytes")]
    Truncated {
        /// Where.
        at: At,
        /// What should be there.
        expected: &'static str,
        /// How much of it is there.
        found: u64,
    },
    /// A length is larger than the caller's limit.
    #[error("{at}: {what} of {claimed} bytes is over the limit of {limit}")]
    OverLimit {
        /// Where.
        at: At,
        /// What has the length.
        what: &'static str,
        /// The length claimed, or reached.
        claimed: u64,
        /// The most that is accepted.
        limit: u64,
    },
    /// A value cannot be written as the format demands.
    #[error("{file}: {reason}")]
    Refused {
        /// The file being written.
        file: String,
        /// Why.
        reason: String,
    },
}

impl Error {
    /// What a caller may do: the next record may be fine after a bad one; a refused write or a failing disk is the end.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Io { source, .. } => Advice::of(source.kind()),
            Error::File(e) => e.advice(),
            Error::Corrupt { .. } | Error::Truncated { .. } | Error::OverLimit { .. } => Advice::Skip,
            Error::Refused { .. } => Advice::Stop,
        }
    }

    /// Whether bytes were bad, rather than the machine or the caller.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Corrupt { .. } | Error::Truncated { .. } | Error::OverLimit { .. })
    }

    /// The place in the archive, where the error has one.
    pub fn at(&self) -> Option<&At> {
        match self {
            Error::Io { at, .. }
            | Error::Corrupt { at, .. }
            | Error::Truncated { at, .. }
            | Error::OverLimit { at, .. } => Some(at),
            Error::File(_) | Error::Refused { .. } => None,
        }
    }

    /// Moves an error found while parsing a buffer to where that buffer begins.
    pub(crate) fn within(mut self, start: &At) -> Self {
        if let Error::Io { at, .. }
        | Error::Corrupt { at, .. }
        | Error::Truncated { at, .. }
        | Error::OverLimit { at, .. } = &mut self
        {
            at.file = start.file.clone();
            at.offset = start.offset;
            at.inside = at.inside.saturating_add(start.inside);
        }
        self
    }

    pub(crate) fn corrupt(at: At, expected: &'static str, found: impl Into<String>) -> Self {
        Error::Corrupt { at, expected, found: found.into() }
    }

    /// Keeps the message, and the kind that says what to do, through `Read`.
    pub(crate) fn into_io(self) -> io::Error {
        let kind = match &self {
            Error::Io { source, .. } => source.kind(),
            Error::File(e) => e.kind(),
            Error::Truncated { .. } => io::ErrorKind::UnexpectedEof,
            Error::Corrupt { .. } | Error::OverLimit { .. } => io::ErrorKind::InvalidData,
            Error::Refused { .. } => io::ErrorKind::InvalidInput,
        };
        io::Error::new(kind, self)
    }

    /// Takes back an error that went through `Read`.
    pub(crate) fn from_io(at: At, e: io::Error) -> Self {
        match e.downcast::<Error>() {
            Ok(own) => own,
            Err(source) => Error::Io { at, source },
        }
    }
}

impl From<Error> for DoorError {
    fn from(e: Error) -> Self {
        DoorError::new(e.advice(), e)
    }
}

/// Something that is not as it should be at `at`.
pub(crate) fn finding(at: &At, severity: Severity, kind: &'static str, detail: impl Into<String>) -> Finding {
    Finding { severity, file: at.file.to_string(), offset: Some(at.offset), kind, detail: detail.into() }
}

/// Up to 40 bytes of `bytes` in a form fit for a message.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let cut = bytes.get(..40).unwrap_or(bytes);
    if cut.is_empty() { "nothing".into() } else { format!("\"{}\"", cut.escape_ascii()) }
}
