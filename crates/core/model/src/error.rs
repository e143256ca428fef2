//! What a caller is to do about an error.

use crate::Place;
use std::io;

/// What the caller should do: an error that cannot answer this is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The same call may succeed later (a 503, a busy lock).
    Retry,
    /// This item is lost, the next one may be fine (a bad record).
    Skip,
    /// Going on would lose data or never succeed (a full disk, a wrong magic).
    Stop,
}

impl Advice {
    /// What to do about a system error: a passing condition retries, a bad or absent item is skipped, everything else stops,
    /// since a full disk, a read-only or failing device and missing rights do not get better by trying the next file.
    pub fn of(kind: io::ErrorKind) -> Self {
        use io::ErrorKind as K;
        match kind {
            K::Interrupted
            | K::WouldBlock
            | K::TimedOut
            | K::ResourceBusy
            | K::Deadlock
            | K::StaleNetworkFileHandle => Advice::Retry,
            K::NotFound
            | K::InvalidData
            | K::UnexpectedEof
            | K::InvalidFilename
            | K::IsADirectory
            | K::NotADirectory => Advice::Skip,
            _ => Advice::Stop,
        }
    }
}

/// The error of every door: the format's own error, where it happened and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{}{source}", .at.as_ref().map(|p| format!("{p}: ")).unwrap_or_default())]
pub struct DoorError {
    /// Where, if the format's own message does not say so already.
    pub at: Option<Place>,
    /// What to do.
    pub advice: Advice,
    /// What happened, in the words of the format.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

impl DoorError {
    /// Wraps a format's error whose message already says where.
    pub fn new(advice: Advice, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { at: None, advice, source: source.into() }
    }

    /// Adds the place to an error that does not name it.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.at = Some(place);
        self
    }
}

impl From<io::Error> for DoorError {
    fn from(e: io::Error) -> Self {
        Self::new(Advice::of(e.kind()), e)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_the_place_once() {
        let bare = DoorError::new(Advice::Skip, "expected a record");
        assert_eq!(bare.to_string(), "expected a record");
        assert_eq!(bare.at(Place::new("a.warc.gz", 81920, 10)).to_string(), "a.warc.gz@81920: expected a record");
    }
}
