//! Why a frontier cannot go on.

use std::path::PathBuf;
use trawl_model::Advice;

/// Why a frontier cannot go on. What was durable before is safe in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] trawl_io::Error),
    /// A run or base is damaged, or could not be written.
    #[error(transparent)]
    Meguri(#[from] trawl_meguri::Error),
    /// Another process has this frontier.
    #[error(transparent)]
    Lock(#[from] trawl_io::LockError),
    /// A file of the frontier says what it may not.
    #[error("{}: expected {expected}, found {found}", .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What it should say.
        expected: &'static str,
        /// What it says.
        found: String,
    },
    /// It was made with another setting, which cannot change.
    #[error("{}: created with {setting} {expected}, but opened with {found}: use the same setting, or start a new frontier", .path.display())]
    Setting {
        /// The frontier.
        path: PathBuf,
        /// Which setting.
        setting: &'static str,
        /// As it was made.
        expected: String,
        /// As it was opened.
        found: String,
    },
    /// An order that cannot be carried out.
    #[error("expected {what}, found {found}")]
    Order {
        /// What can be.
        what: &'static str,
        /// What was asked for.
        found: String,
    },
    /// A thread of ours could not be started, or panicked.
    #[error("frontier thread: {0}")]
    Thread(String),
}

impl Error {
    /// What the caller may do: a held lock may be free later, all else needs a person.
    pub fn advice(&self) -> Advice {
        match self {
            Self::Lock(e) => e.advice(),
            Self::Io(e) => e.advice(),
            Self::Meguri(e) => e.advice(),
            _ => Advice::Stop,
        }
    }
}

/// The result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
