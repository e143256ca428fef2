//! Something that is wrong with a file of a lake.

use serde::Serialize;
use std::fmt;

/// Something a reader could not rely on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The file.
    pub file: String,
    /// Row group and row in it, if it is about a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<(u32, u32)>,
    /// What should be there.
    pub expected: &'static str,
    /// What is there.
    pub found: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((group, row)) = self.row {
            write!(f, ", row group {group}, row {row}")?;
        }
        write!(f, ": expected {}, found {}", self.expected, self.found)
    }
}
