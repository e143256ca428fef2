//! The error of this crate.

use trawl_model::Advice;

/// Result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something in a lake could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file layer failed; its message names the file.
    #[error(transparent)]
    Io(#[from] trawl_io::Error),
    /// Nothing has this path.
    #[error("{path}: expected an object, found none")]
    NotFound {
        /// Path inside the lake.
        path: String,
    },
    /// A create-if-absent put found an object there. Stores answer [`crate::Created::Exists`] instead of this.
    #[error("{path}: expected no object, found one")]
    Exists {
        /// Path inside the lake.
        path: String,
    },
    /// A server did not do what was asked, or gave no answer.
    #[error("{place}: {op} of {path} failed after {attempts} attempt{}: {cause}", if *.attempts == 1 { "" } else { "s" })]
    Remote {
        /// Which store.
        place: String,
        /// Path inside the lake.
        path: String,
        /// What was asked.
        op: &'static str,
        /// How often.
        attempts: u32,
        /// What it answered last.
        cause: String,
    },
    /// A path or name from outside that no lake may hold.
    #[error("expected {expected}, found {found:?}")]
    BadName {
        /// What is allowed.
        expected: &'static str,
        /// What was given, cut to a length fit for a message.
        found: String,
    },
    /// The bytes are not what the format demands.
    #[error("{path}@{offset}: expected {expected}, found {found}")]
    Corrupt {
        /// Path inside the lake.
        path: String,
        /// Byte offset.
        offset: u64,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// An object is larger than the reader's limit.
    #[error("{path}: expected at most {limit} bytes, found {found}")]
    OverLimit {
        /// Path inside the lake.
        path: String,
        /// Its length.
        found: u64,
        /// The limit of this call.
        limit: u64,
    },
    /// Written by a later Trawl.
    #[error("{path}: expected format {supported} or older, found {found}")]
    TooNew {
        /// Path inside the lake.
        path: String,
        /// The format number in the file.
        found: u32,
        /// The newest this program reads.
        supported: u32,
    },
    /// No lake lives here.
    #[error("{place}: expected a lake, found no index/manifest.json and no index/manifests")]
    NotALake {
        /// Which store.
        place: String,
    },
    /// A lake of an earlier program, whose commits lie elsewhere.
    #[error(
        "{place}: expected a lake of this program, found one of an earlier one, which kept its commits below urls/: \
         `trawl lake upgrade --lake {place}` moves them"
    )]
    OldLayout {
        /// Which store.
        place: String,
    },
    /// A lake lives here already.
    #[error("{place}: expected an empty place, found a lake")]
    AlreadyALake {
        /// Which store.
        place: String,
    },
    /// The store let a second writer create what the first had created: commits would be lost.
    #[error("{place}: expected the second create of {path} to be refused, but the store accepted it")]
    NotExclusive {
        /// Which store.
        place: String,
        /// The object created twice.
        path: String,
    },
    /// Other writers were faster, every time.
    #[error("{path}: expected to commit within {attempts} attempts, but others were faster each time")]
    Contended {
        /// The name that was always taken.
        path: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// The store's answer to a commit got lost, and the object cannot be read back: it may be there, or yet appear.
    #[error(
        "{path}: Trawl cannot tell whether this was written: {cause}. It removed nothing; run the same command again, which \
             adds no row twice"
    )]
    Unsettled {
        /// Path inside the lake.
        path: String,
        /// Why it is not known.
        cause: Box<Error>,
    },
    /// A collector took this writer for dead and may have removed its files.
    #[error("`trawl lake gc` took writer {writer} for dead and may have deleted its files: run the command again")]
    Revoked {
        /// The writer.
        writer: String,
    },
    /// The registry has no such dataset.
    #[error("expected a registered dataset, found {found}")]
    UnknownDataset {
        /// Id or name.
        found: String,
    },
    /// The dataset was dropped, perhaps while this writer worked.
    #[error(
        "dataset {dataset_id} was dropped, so nothing can be added to it; its name is free for a new dataset (if it is still \
             listed, the drop was interrupted: repeat it)"
    )]
    Dropped {
        /// Its id.
        dataset_id: u32,
    },
    /// A commit that the lake serves is gone, and so is every later one of its dataset.
    #[error(
        "{path}: expected the published commit of dataset {dataset_id}, or a later one, found {}: `trawl lake rebuild` \
             restores it from the index; otherwise restore it from a copy of the lake, or `trawl lake rebuild --accept-loss` \
             continues with what is left",
        if *.newest == 0 { "none".to_owned() } else { format!("none after {}", .newest) }
    )]
    Lost {
        /// The dataset.
        dataset_id: u32,
        /// The newest commit that is left; 0 for none.
        newest: u64,
        /// Path inside the lake of the one that is served.
        path: String,
    },
    /// A Parquet file that the lake answers from is gone.
    #[error(
        "{path}: expected a file with {rows} rows of dataset {dataset_id}, found none: put it back from a copy, or ingest the \
             dataset again with --replace"
    )]
    LostRows {
        /// Path inside the lake.
        path: String,
        /// The dataset.
        dataset_id: u32,
        /// Rows of the file.
        rows: u64,
    },
    /// The caller wanted the work to end ([`crate::Cancel`]).
    #[error("cancelled")]
    Cancelled,
    /// What was asked for contradicts what is there.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
    },
}

impl Error {
    /// A name refused, with the name cut to a length fit for a message.
    pub fn bad_name(expected: &'static str, found: &str) -> Self {
        Error::BadName { expected, found: found.chars().take(120).collect() }
    }

    /// This error as the reason why it is unknown whether `path` was written.
    pub(crate) fn unsettled(self, path: &str) -> Self {
        match self {
            Error::Unsettled { .. } => self,
            cause => Error::Unsettled { path: path.to_owned(), cause: Box::new(cause) },
        }
    }

    /// Whether the object asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        match self {
            Error::Io(e) => e.is_not_found(),
            Error::NotFound { .. } | Error::LostRows { .. } => true,
            _ => false,
        }
    }

    /// What a caller is to do.
    pub fn advice(&self) -> Advice {
        match self {
            Error::Io(e) => match e.advice() {
                trawl_io::Advice::Retry => Advice::Retry,
                trawl_io::Advice::Skip => Advice::Skip,
                trawl_io::Advice::Stop => Advice::Stop,
            },
            Error::Contended { .. } | Error::Unsettled { .. } | Error::Remote { .. } => Advice::Retry,
            Error::NotFound { .. } | Error::LostRows { .. } | Error::Corrupt { .. } | Error::OverLimit { .. } => {
                Advice::Skip
            }
            _ => Advice::Stop,
        }
    }
}
