//! What the operator hears: the library itself writes no log.

use serde::Serialize;
use trawl_query::QueryError;

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request was answered.
    Request(&'a RequestLog<'a>),
    /// The lake could not answer, and not through a fault of the asker.
    LakeError(&'a QueryError),
    /// The lake went back to an older state, became another one, went away or came back.
    LakeChanged(&'a str),
    /// A file that the server watches (tokens, certificates) was read again, or could not be.
    Reloaded {
        /// Which one.
        what: &'static str,
        /// Why the old one stays in use; `None` if the new one is in use now.
        error: Option<&'a str>,
    },
}

/// What of an answer may be logged: ids and counts, no names and no URLs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// xxh3_64 of the domain asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain_id: Option<u64>,
    /// The dataset asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset_id: Option<u32>,
    /// Rows, names or datasets in the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
}

/// One request.
#[derive(Debug, Serialize)]
pub struct RequestLog<'a> {
    /// The method, as far as it is a known one.
    pub method: &'a str,
    /// The address as the API declares it, without what stood in its place: `/v1/domain/{domain}`.
    pub route: &'a str,
    /// HTTP status.
    pub status: u16,
    /// Microseconds until the answer began.
    pub micros: u64,
    /// Whose token it was; `None` for anyone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<&'a str>,
    /// What was answered.
    #[serde(flatten)]
    pub facts: Facts,
}
