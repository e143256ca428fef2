//! What a check found.

use crate::{Error, Result};
use std::path::{Path, PathBuf};

/// Faults kept in full; more are only counted.
const MAX_KEPT: usize = 1000;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// A rule is broken: something cannot be read, or would be answered wrongly.
    Fault,
    /// Odd, but harmless.
    Warning,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Which file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}: expected {}, found {}", self.path.display(), self.offset, self.expected, self.found)
    }
}

/// Collects findings; bounded, however broken a file is.
#[derive(Debug, Default)]
pub struct Findings {
    kept: Vec<Finding>,
    faults: u64,
    warnings: u64,
}

impl Findings {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first thousand, in the order they were found.
    pub fn list(&self) -> &[Finding] {
        &self.kept
    }

    /// How many faults there are.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// How many warnings there are.
    pub fn warnings(&self) -> u64 {
        self.warnings
    }

    /// Whether there is no fault.
    pub fn is_sound(&self) -> bool {
        self.faults == 0
    }

    pub(crate) fn fault(&mut self, path: &Path, offset: u64, expected: impl Into<String>, found: impl Into<String>) {
        self.faults += 1;
        self.keep(Severity::Fault, path, offset, expected.into(), found.into());
    }

    pub(crate) fn warning(&mut self, path: &Path, offset: u64, expected: impl Into<String>, found: impl Into<String>) {
        self.warnings += 1;
        self.keep(Severity::Warning, path, offset, expected.into(), found.into());
    }

    fn keep(&mut self, severity: Severity, path: &Path, offset: u64, expected: String, found: String) {
        if self.kept.len() < MAX_KEPT {
            self.kept.push(Finding { severity, path: path.into(), offset, expected, found });
        }
    }

    /// Takes an error that means a broken file as a fault; others are passed on.
    pub fn take(&mut self, error: Error) -> Result<()> {
        match error {
            Error::BadMagic { path, found } => {
                self.fault(&path, 0, "a seqdb file, which begins with \"#!WINKME\"", found)
            }
            Error::BadSuperblock { path, offset, expected, found } => self.fault(&path, offset, expected, found),
            Error::UnknownFormat { path, expected, found } => {
                self.fault(&path, 32, expected, format!("FORMAT {found}"));
            }
            Error::FileSizeBeyondEof { path, filesize, unix } => {
                let found = format!("FILESIZE {filesize} in a file of {unix} bytes");
                self.fault(&path, 0, "FILESIZE within the file", found);
            }
            Error::TornEntry { path, ptr, ends, end } => {
                self.fault(&path, ptr, format!("an entry that ends by {end}"), format!("one that ends at {ends}"));
            }
            Error::CorruptEntry { path, ptr, expected, found } => self.fault(&path, ptr, expected, found),
            Error::BadPointer { path, ptr } => self.fault(&path, ptr, "an entry", "no place for one"),
            Error::TooLong { path, what, len, limit } => {
                self.fault(&path, 0, format!("{what} of at most {limit} bytes"), format!("{len} bytes"));
            }
            Error::GenerationMismatch { path, expected, found } => {
                self.fault(&path, 0, format!("FSGEN {expected:016x}"), format!("{found:016x}"));
            }
            Error::NeedsCheck { path, why } => self.fault(&path, 0, "a file closed properly", why),
            other => return Err(other),
        }
        Ok(())
    }
}
