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
    /// What was asked for is no host name.
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

    /// A stable name for machines.
    pub fn code(&self) -> &'static str {
        match self {
            QueryError::UnknownDomain { .. } => "unknown_domain",
            QueryError::UnknownDataset { .. } | QueryError::NoDataset { .. } => "unknown_dataset",
            QueryError::BadDomain { .. } => "bad_domain",
            QueryError::BadUrl { .. } => "bad_url",
            QueryError::BadCursor { .. } => "bad_cursor",
            QueryError::BadRequest { .. } => "bad_request",
            QueryError::Gone { .. } => "gone",
            QueryError::Lake { .. } => "lake_error",
        }
    }

    /// The HTTP status that says the same.
    pub fn status(&self) -> u16 {
        match self {
            QueryError::UnknownDomain { .. } | QueryError::UnknownDataset { .. } | QueryError::NoDataset { .. } => 404,
            QueryError::BadDomain { .. }
            | QueryError::BadUrl { .. }
            | QueryError::BadCursor { .. }
            | QueryError::BadRequest { .. } => 400,
            QueryError::Gone { .. } => 410,
            QueryError::Lake { .. } => 500,
        }
    }
}
