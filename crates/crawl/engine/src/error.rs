//! Why a crawl cannot start or go on.

use std::io;
use std::path::PathBuf;
use trawl_model::{Advice, DoorError, ErrorClass};

/// Why a crawl cannot start or go on. What was acknowledged before is safe in every case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A seed list could not be read.
    #[error("{}", of_seeds(.input, .source))]
    Seeds {
        /// Path, URL or `-`.
        input: String,
        /// What the list or the system said.
        source: DoorError,
    },
    /// A host that was named without a scheme, and whose name cannot be looked up.
    #[error("there is no file {name}, and no host of this name could be found ({class}: {message})")]
    Host {
        /// The host.
        name: String,
        /// What went wrong.
        class: ErrorClass,
        /// In words.
        message: String,
    },
    /// Too many items were not URLs.
    #[error("{found} items of the seeds are not URLs, more than the {limit} allowed; see rejects.jsonl")]
    TooManyRejects {
        /// Items rejected.
        found: u64,
        /// The setting.
        limit: u64,
    },
    /// The directory holds another run.
    #[error("{} already holds a crawl ({found}): continue it with --resume, replace it with --overwrite, or choose another directory with --out", .dir.display())]
    Occupied {
        /// The directory.
        dir: PathBuf,
        /// A file of that run.
        found: String,
    },
    /// The directory holds archives that no crawl wrote there.
    #[error("{} is not empty and holds no crawl (it holds {found}): choose a new or empty directory with --out", .dir.display())]
    Foreign {
        /// The directory.
        dir: PathBuf,
        /// One of these archives.
        found: String,
    },
    /// There is nothing to resume.
    #[error("{} holds no crawl that can be resumed: its .crawl directory is missing", .dir.display())]
    NothingToResume {
        /// The directory.
        dir: PathBuf,
    },
    /// A setting that cannot be used, or not with what is in the directory.
    #[error("{setting}: expected {expected}, found {found}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A row that waits for the index is not one.
    #[error("{}@{offset}: expected {expected}, found {found}", .path.display())]
    Spool {
        /// The spool.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What should be there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// The frontier's log keeps something for the crawl that a crawl did not write.
    #[error("the log of the frontier: expected {what}, found {found}")]
    Note {
        /// What should be there.
        what: &'static str,
        /// What is there.
        found: String,
    },
    /// The frontier failed.
    #[error("frontier: {0}")]
    Frontier(trawl_frontier::Error),
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] trawl_io::Error),
    /// Another process crawls into this directory.
    #[error(transparent)]
    Lock(#[from] trawl_io::LockError),
    /// The archive could not be written.
    #[error("archive: {0}")]
    Archive(#[from] DoorError),
    /// The capture index could not be written.
    #[error("captures: {0}")]
    Captures(DoorError),
    /// The fetcher refused its settings.
    #[error(transparent)]
    Fetch(#[from] trawl_fetch::Error),
    /// Threads could not be started, or one of them failed.
    #[error("{what}: {source}")]
    Thread {
        /// Which.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// What is wrong with seeds. Errors about the inside of a file name it themselves.
fn of_seeds(input: &str, source: &DoorError) -> String {
    let (input, text) = (trawl_url::without_userinfo(input), source.to_string());
    match text.strip_prefix("cannot open ") {
        Some(rest) if rest.starts_with(&*input) => text,
        _ if text.starts_with(&*input) => format!("seeds {text}"),
        _ => format!("seeds {input}: {text}"),
    }
}

impl From<trawl_frontier::Error> for Error {
    fn from(error: trawl_frontier::Error) -> Self {
        match error {
            trawl_frontier::Error::Setting { setting, expected, found, .. } => {
                // How URLs are compared follows from the depth, which is what a user sets.
                let (setting, expected, found) = match (setting, expected.as_str()) {
                    ("identity", "exact") => ("depth", "0".to_owned(), "a higher one".to_owned()),
                    ("identity", _) => ("depth", "1 or more".to_owned(), "0".to_owned()),
                    _ => (setting, expected, found),
                };
                Self::Setting { setting, expected: format!("{expected}, as when the run began"), found }
            }
            other => Self::Frontier(other),
        }
    }
}

impl Error {
    /// What the caller may do: a held lock can be helped, a full disk needs a person.
    pub fn advice(&self) -> Advice {
        match self {
            Self::Lock(_) => Advice::Retry,
            Self::Archive(e) | Self::Captures(e) => e.advice,
            Self::Frontier(e) => e.advice(),
            _ => Advice::Stop,
        }
    }
}
