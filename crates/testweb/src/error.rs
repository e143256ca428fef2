//! What can go wrong while the synthetic web is set up, logged or judged.

use std::path::PathBuf;

/// Why the synthetic web could not be started, or a log could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is outside its range.
    #[error("setting {setting}: expected {expected}, found {found}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// What would have been accepted.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// A listening socket could not be opened.
    #[error("cannot listen on {addr}: {source}; choose another port, or 0 for any free one")]
    Listen {
        /// The address asked for.
        addr: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file of the request log failed.
    #[error("{}: {what}: {source}", path.display())]
    Log {
        /// The log file.
        path: PathBuf,
        /// What was being done.
        what: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The certificates could not be made.
    #[error("expected to make a certificate authority: {0}")]
    Tls(String),
    /// The threads that serve could not be started.
    #[error("expected to start the server threads: {0}")]
    Runtime(std::io::Error),
}

/// The result of a call into this crate.
pub type Result<T> = std::result::Result<T, Error>;
