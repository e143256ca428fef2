//! Why a question has no answer.

/// Why a question has no answer. [`QueryError::code`] and [`QueryError::status`] are what the API says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// No dataset that the asker may see holds the domain. Hidden and absent are the same answer.
    #[error("no dataset holds domain {domain:?}")]
    UnknownDomain {
        /// The domain as it was looked up.
        domain: String,
    },
    /// The dataset does not hold the domain, does not exist, or may not be seen.
    #[error("dataset {dataset_id} holds no urls of domain {domain:?}")]
    UnknownDataset {
        /// The domain as it was looked up.
        domain: String,
        /// The dataset asked for.
        dataset_id: u32,
    },
    /// The dataset does not exist or may not be seen.
    #[error("there is no dataset {dataset_id}")]
    NoDataset {
        /// The dataset asked for.
        dataset_id: u32,
    },
    /// No dataset has the name, or it may not be seen.
    #[error("there is no dataset named {name:?}")]
    NoDatasetNamed {
        /// The name asked for, cut to a length fit for a message.
        name: String,
    },
    /// The dataset holds no capture of the URL, or the URL and dataset are not there at all.
    #[error("dataset {dataset_id} has no capture of this url")]
    NoCapture {
        /// The dataset asked for.
        dataset_id: u32,
    },
    /// The lake knows the capture, but its bytes cannot be had: its archive is not where the dataset says.
    #[error("the archive of this capture cannot be read: {why}")]
    NoArchive {
        /// What is missing, without paths.
        why: &'static str,
    },
    /// The asker gave up, or the server had no more time.
    #[error("the client no longer waits for the answer")]
    Cancelled,
    /// The text is not a host name.
    #[error("expected a domain name, found {found:?}: {why}")]
    BadDomain {
        /// What was asked for, cut to a length fit for a message.
        found: String,
        /// What is wrong with it.
        why: String,
    },
    /// What was asked for is no URL that a lake takes.
    #[error("expected a url, found {found:?}: {why}")]
    BadUrl {
        /// What was asked for, cut to a length fit for a message.
        found: String,
        /// What is wrong with it.
        why: String,
    },
    /// A cursor that this lake did not hand out, or for another question.
    #[error("expected a cursor from an earlier answer to the same question: {why}")]
    BadCursor {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The filter or page cannot be used as asked.
    #[error("{why}")]
    BadRequest {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The version a cursor belongs to is no longer kept, or was collected while it was being read.
    #[error("version {version:?} is no longer kept: start again, without a cursor")]
    Gone {
        /// The version.
        version: String,
    },
    /// The rows that an answer went through are no longer all shown, so the place where it ended is now that of other rows.
    #[error("{why}: start again")]
    Moved {
        /// What changed.
        why: &'static str,
    },
    /// No dataset has a capture of the URL that can be replayed.
    #[error("there is no capture of {url:?}")]
    NoMemento {
        /// The URL asked for, cut to a length fit for a message.
        url: String,
    },
    /// Not even the state of the lake could be read: it is away, or what is there is not a lake.
    #[error("{source}")]
    Unavailable {
        /// What happened.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The lake could not be read, or is damaged.
    #[error("{source}")]
    Lake {
        /// What happened, with file and offset.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<trawl_store::Error> for QueryError {
    fn from(error: trawl_store::Error) -> Self {
        Self::lake(error)
    }
}

impl From<trawl_index::Error> for QueryError {
    fn from(error: trawl_index::Error) -> Self {
        Self::lake(error)
    }
}

impl QueryError {
    /// Trouble with the lake itself.
    pub(crate) fn lake(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        QueryError::Lake { source: Box::new(error) }
    }

    /// The file of the lake whose bytes were not what they should be, if that was it.
    pub(crate) fn damaged(&self) -> Option<&str> {
        let (Self::Lake { source } | Self::Unavailable { source }) = self else { return None };
        let index = source.downcast_ref::<trawl_index::Error>();
        let store = match index {
            Some(trawl_index::Error::Store(error)) => Some(error),
            _ => source.downcast_ref::<trawl_store::Error>(),
        };
        match (store, index) {
            (Some(trawl_store::Error::Corrupt { path, .. }), _) => Some(path),
            (Some(trawl_store::Error::Io(error)), _) | (_, Some(trawl_index::Error::File(error))) => match error {
                trawl_io::Error::Corrupt { path, .. } => path.to_str(),
                _ => None,
            },
            (_, Some(trawl_index::Error::Mismatch { right, .. })) => Some(right),
            _ => None,
        }
    }

    /// A stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            QueryError::UnknownDomain { .. } => "unknown_domain",
            QueryError::UnknownDataset { .. } | QueryError::NoDataset { .. } | QueryError::NoDatasetNamed { .. } => {
                "unknown_dataset"
            }
            QueryError::NoCapture { .. } => "unknown_capture",
            QueryError::NoMemento { .. } => "unknown_capture",
            QueryError::NoArchive { .. } => "archive_unavailable",
            QueryError::Unavailable { .. } => "lake_unavailable",
            QueryError::Cancelled => "timeout",
            QueryError::BadDomain { .. } => "bad_domain",
            QueryError::BadUrl { .. } => "bad_url",
            QueryError::BadCursor { .. } => "bad_cursor",
            QueryError::BadRequest { .. } => "bad_request",
            QueryError::Gone { .. } | QueryError::Moved { .. } => "gone",
            QueryError::Lake { .. } => "lake_error",
        }
    }

    /// The HTTP status that says the same.
    pub fn status(&self) -> u16 {
        match self {
            QueryError::UnknownDomain { .. }
            | QueryError::UnknownDataset { .. }
            | QueryError::NoDataset { .. }
            | QueryError::NoDatasetNamed { .. }
            | QueryError::NoMemento { .. }
            | QueryError::NoCapture { .. } => 404,
            QueryError::NoArchive { .. } => 502,
            QueryError::Unavailable { .. } => 503,
            QueryError::Cancelled => 504,
            QueryError::BadDomain { .. }
            | QueryError::BadUrl { .. }
            | QueryError::BadCursor { .. }
            | QueryError::BadRequest { .. } => 400,
            QueryError::Gone { .. } | QueryError::Moved { .. } => 410,
            QueryError::Lake { .. } => 500,
        }
    }
}
