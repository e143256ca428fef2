//! Names of the files of a run: `<prefix>-<run>-<serial>[-<shard>].warc.gz`.

use crate::container::Compression;
use crate::error::{Error, Result};

/// How a run's files are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileNames {
    prefix: String,
    run: String,
    shard: Option<String>,
    compression: Compression,
}

/// What an unfinished file's name ends in.
pub(crate) const OPEN_SUFFIX: &str = ".open";

impl FileNames {
    /// Names of a run; each part may hold letters, digits, `.`, `_` and `-`.
    pub fn new(prefix: &str, run: &str, shard: Option<&str>, compression: Compression) -> Result<Self> {
        for part in [prefix, run].into_iter().chain(shard) {
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
            if part.is_empty() || part.len() > 100 || part.starts_with('.') || !part.bytes().all(fits) {
                let reason =
                    format!("expected a name part of 1 to 100 letters, digits, '.', '_' or '-', found {part:?}");
                return Err(Error::Refused { file: "WARC file name".into(), reason });
            }
        }
        Ok(FileNames { prefix: prefix.into(), run: run.into(), shard: shard.map(Into::into), compression })
    }

    /// The final name of file number `serial`.
    pub fn name(&self, serial: u32) -> String {
        let FileNames { prefix, run, .. } = self;
        format!("{prefix}-{run}-{serial:05}{}", self.tail())
    }

    fn tail(&self) -> String {
        let shard = self.shard.as_ref().map(|s| format!("-{s}")).unwrap_or_default();
        format!("{shard}.warc{}", self.compression.suffix())
    }

    /// The serial number in a final name; `None` if the name belongs to another run.
    pub fn serial(&self, name: &str) -> Option<u32> {
        let digits = name.strip_prefix(&format!("{}-{}-", self.prefix, self.run))?.strip_suffix(&self.tail())?;
        (digits.len() >= 5 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_back() {
        let names = FileNames::new("trawl", "run-7", Some("s2"), Compression::Gzip).unwrap();
        assert_eq!(names.name(3), "trawl-run-7-00003-s2.warc.gz");
        assert_eq!(names.serial("trawl-run-7-00003-s2.warc.gz"), Some(3));
        assert_eq!(names.serial(&names.name(123_456)), Some(123_456));
        for other in ["trawl-run-7-00003.warc.gz", "trawl-run-00003-s2.warc.gz", "trawl-run-7-3-s2.warc.gz", "x"] {
            assert_eq!(names.serial(other), None, "{other}");
        }
        for bad in ["", "a/b", "..", "é"] {
            assert!(FileNames::new(bad, "r", None, Compression::Gzip).is_err(), "{bad}");
        }
    }
}
