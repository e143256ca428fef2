//! Items of a list that are not records.

use crate::file::text_of;
use std::fmt;
use trawl_model::{Advice, DoorError, Place};

/// Why an item of a source is not a record, with a code for machines and the item itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadItem {
    /// A name that never changes: `json`, `no_url`, `columns`, `line_too_long`, …
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
    /// The item, cut to [`BadItem::MAX_TEXT`] bytes, before bytes that are not UTF-8 are escaped.
    pub text: String,
}

impl BadItem {
    /// Longest text of an item that is kept.
    pub const MAX_TEXT: usize = 2048;

    /// An item that is not a record.
    pub fn new(code: &'static str, message: impl Into<String>, text: &[u8]) -> Self {
        let text = text.get(..Self::MAX_TEXT).unwrap_or(text);
        Self { code, message: message.into(), text: text_of(text).into_owned() }
    }

    /// As a door reports a source that as a whole is not what was expected.
    pub fn ends(self, place: Place) -> DoorError {
        DoorError::new(Advice::Stop, self).at(place)
    }

    /// As a door reports it.
    pub fn at(self, place: Place) -> DoorError {
        DoorError::new(Advice::Skip, self).at(place)
    }
}

impl fmt::Display for BadItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadItem {}
