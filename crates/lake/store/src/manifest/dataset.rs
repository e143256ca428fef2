//! The registry's entries, and what must not be answered.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};

/// A registered dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dataset {
    /// Its id, given at registration.
    pub id: u32,
    /// What its owner says of it.
    #[serde(flatten)]
    pub info: DatasetInfo,
    /// When it was registered, RFC 3339.
    pub created: String,
    /// Dropped: it is answered nowhere, its files go with the next collection, its id stays taken.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

/// What a dataset's owner says of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatasetInfo {
    /// Unique among the datasets that are not dropped.
    pub name: String,
    /// Where its records come from, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Who may see it.
    #[serde(default)]
    pub acl: Acl,
    /// URIs (file, s3, https) below which `warc_file` is found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub archive_base: Vec<String>,
    /// A JSON Schema of the `extras` column, if the owner has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extras_schema: Option<serde_json::Value>,
}

impl DatasetInfo {
    /// A public dataset of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Refuses a name that no dataset may have.
    pub fn check(&self) -> Result<()> {
        let fits = (1..=200).contains(&self.name.len())
            && self.name.trim() == self.name
            && !self.name.chars().any(|c| c.is_control() || turns(c))
            // A number is that of a dataset.
            && !self.name.bytes().all(|byte| byte.is_ascii_digit());
        let expected =
            "a dataset name of 1 to 200 bytes without control characters or outer spaces that is not a number";
        if fits { Ok(()) } else { Err(Error::bad_name(expected, &self.name)) }
    }
}

/// Whether a character changes the direction of writing or ends a line: a name with such looks like another.
fn turns(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Who may see a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acl {
    /// Everybody.
    #[default]
    Public,
    /// These principals only; an empty list hides it from all.
    Principals(Vec<String>),
}

impl Acl {
    /// Whether somebody who is all of `principals` may see it.
    pub fn allows(&self, principals: &[String]) -> bool {
        match self {
            Acl::Public => true,
            Acl::Principals(list) => list.iter().any(|p| principals.contains(p)),
        }
    }
}

/// One entry of the deny list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deny {
    /// What is denied.
    #[serde(flatten)]
    pub target: DenyTarget,
    /// Since when, RFC 3339.
    pub since: String,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a deny entry covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenyTarget {
    /// One URL, in every spelling that normalises to the same.
    Url(String),
    /// Every URL whose normalised form begins so.
    Prefix(String),
    /// A registrable domain, punycode.
    Domain(String),
    /// A dataset.
    Dataset(u32),
}
