//! What a file is: by its first bytes where those are certain, then by its name, then by what its first line looks like.

use crate::file::{Compression, ListFile};
use crate::lines::first_line;
use crate::{Error, Result};
use std::io::BufReader;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use trawl_io::{Fs, Op};
use trawl_model::SourceIdentity;

/// The kinds of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A URL a line, or a JSON object that has one.
    Lines,
    /// A JSON object a line.
    Jsonl,
    /// A CDX index with JSON.
    Cdxj,
    /// Comma-separated, with a header line.
    Csv,
    /// Tab-separated, with a header line.
    Tsv,
    /// Parquet with a column `url`.
    Parquet,
}

/// Each with its name and the endings of file names that say so.
const FORMATS: &[(Format, &str, &[&str])] = &[
    (Format::Lines, "lines", &["txt", "urls", "lst", "list", "seeds"]),
    (Format::Jsonl, "jsonl", &["jsonl", "ndjson", "json"]),
    (Format::Cdxj, "cdxj", &["cdxj"]),
    (Format::Csv, "csv", &["csv"]),
    (Format::Tsv, "tsv", &["tsv"]),
    (Format::Parquet, "parquet", &["parquet"]),
];

impl Format {
    /// The names of all, for messages.
    pub fn known() -> String {
        FORMATS.iter().map(|row| row.1).collect::<Vec<_>>().join(", ")
    }

    /// By the first line that is neither blank nor a comment: of which format it is, and whether no name would say
    /// otherwise.
    pub(crate) fn of_line(line: &[u8]) -> Option<(Self, bool)> {
        let first = line.split(|b| b.is_ascii_whitespace()).next().unwrap_or_default();
        let text = first.iter().all(|b| *b > b' ' && *b != 0x7f);
        match line {
            _ if line.starts_with(b"PAR1") => Some((Format::Parquet, true)),
            _ if line.starts_with(b"{") => Some((Format::Jsonl, false)),
            _ if text && first.contains(&b')') && line.contains(&b'{') => Some((Format::Cdxj, true)),
            _ if text && memchr::memmem::find(first, b"://").is_some() => Some((Format::Lines, false)),
            _ => None,
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let found = FORMATS.iter().find(|row| row.1 == text).map(|row| row.0);
        found.ok_or_else(|| format!("expected one of {}, found {text:?}", Format::known()))
    }
}

/// What can be seen of a file without reading it whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looks {
    /// Its format, if that can be told; `None` for a file without a line that says anything, too.
    pub format: Option<Format>,
    /// How it is compressed.
    pub compression: Compression,
    /// Its first line, unpacked, that is neither blank nor a comment; `None` if there is none.
    pub first_line: Option<Vec<u8>>,
}

impl Looks {
    /// The format; a text that says nothing is an empty list.
    pub fn format_of(&self, path: &str) -> Result<Format> {
        match (self.format, &self.first_line) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(Format::Lines),
            (None, Some(_)) => Err(Error::UnknownFormat {
                path: path.to_owned(),
                known: Format::known(),
                found: "another name and other first bytes".into(),
            }),
        }
    }
}

/// The ending of a file's name, in lower case, without that of a compression.
pub fn extension(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let bare = [".gz", ".zst", ".zstd"].iter().find_map(|ext| name.strip_suffix(ext)).unwrap_or(&name);
    bare.rsplit_once('.').map(|(_, extension)| extension.to_owned())
}

/// Looks at a file.
pub fn look(fs: &Arc<dyn Fs>, path: &Path) -> Result<Looks> {
    // What a file is does not depend on which one it is, so it need not be hashed.
    let identity = SourceIdentity { uri: path.display().to_string(), size: u64::MAX, tag: String::new() };
    let file = ListFile::known(fs, path, identity)?;
    let compression = file.compression;
    let by_name =
        extension(path).and_then(|extension| FORMATS.iter().find(|row| row.2.contains(&&*extension)).map(|row| row.0));
    let first_line = match first_line(BufReader::new(file.reader(0)?)) {
        Ok(line) => line,
        // A damaged file of a known name is reported when it is read, with the place of the damage.
        Err(_) if by_name.is_some() => return Ok(Looks { format: by_name, compression, first_line: None }),
        Err(e) => return Err(trawl_io::Error::io(Op::Read, path, e).into()),
    };
    let by_content = first_line.as_deref().and_then(Format::of_line);
    let certain = by_content.filter(|(_, certain)| *certain).or(None).map(|(format, _)| format);
    let format = certain.or(by_name).or(by_content.map(|(format, _)| format));
    Ok(Looks { format, compression, first_line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::file_of;

    #[test]
    fn content_that_is_certain_then_names_then_content() {
        let of = |name: &str, bytes: &[u8]| {
            let file = file_of(name, bytes);
            look(&file.fs, &file.path).unwrap().format
        };
        let cdxj = b"com,a)/ 20260624010203 {\"url\":\"http://a.com/\"}\n";
        for (name, bytes, format) in [
            ("x.txt", &b"a.com\n"[..], Some(Format::Lines)),
            ("x.TXT.gz", b"a.com\n", Some(Format::Lines)),
            ("x.txt", cdxj, Some(Format::Cdxj)),
            ("x", cdxj, Some(Format::Cdxj)),
            ("x", b"# c\n\n{\"url\":1}", Some(Format::Jsonl)),
            ("x.txt", b"{\"url\":1}", Some(Format::Lines)),
            ("x.csv", b"http://a.com/,x\n", Some(Format::Csv)),
            ("x", b"http://a.com/,x\n", Some(Format::Lines)),
            ("x.parquet", b"", Some(Format::Parquet)),
            ("x.txt", b"PAR1\0", Some(Format::Parquet)),
            ("x", b"", None),
            ("x", b"a.com\n", None),
            ("x", b"#\n\0\x01\x02", None),
        ] {
            assert_eq!(of(name, bytes), format, "{name} {}", String::from_utf8_lossy(bytes));
        }
        assert_eq!("jsonl".parse(), Ok(Format::Jsonl));
        assert!("xls".parse::<Format>().unwrap_err().contains("lines, jsonl"));
    }
}
