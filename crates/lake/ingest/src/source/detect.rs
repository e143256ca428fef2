//! What a file is, by its name and its first bytes.

use super::text::{BOM, Compression, Line, SourceFile};
use crate::Result;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use trawl_io::{Fs, Mode};
use trawl_model::{Advice, DoorError, SourceIdentity, Split};

/// The formats of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// A URL a line.
    Lines,
    /// A JSON object a line.
    Jsonl,
    /// A CDX index with JSON.
    Cdxj,
    /// Comma-separated, with a header line.
    Csv,
    /// Tab-separated, with a header line.
    Tsv,
    /// WARC or ARC, of any compression.
    Warc,
    /// Parquet with a column `url`.
    Parquet,
    /// A seqdb container of captures: its data file.
    Seqdb,
}

impl Format {
    /// Their names, for messages.
    pub const KNOWN: &'static str = "lines, jsonl, cdxj, csv, tsv, warc, parquet, seqdb";

    fn of_extension(extension: &str) -> Option<Self> {
        match extension.to_ascii_lowercase().as_str() {
            "txt" | "urls" | "lst" | "list" | "seeds" => Some(Format::Lines),
            "jsonl" | "ndjson" | "json" => Some(Format::Jsonl),
            "cdxj" => Some(Format::Cdxj),
            "csv" => Some(Format::Csv),
            "tsv" => Some(Format::Tsv),
            "warc" | "arc" => Some(Format::Warc),
            "parquet" => Some(Format::Parquet),
            _ => None,
        }
    }

    /// By the first bytes, decompressed.
    fn of_bytes(head: &[u8]) -> Option<Self> {
        if head.starts_with(b"PAR1") {
            return Some(Format::Parquet);
        }
        if head.starts_with(b"WARC/") || head.starts_with(b"filedesc://") {
            return Some(Format::Warc);
        }
        let head = head.strip_prefix(BOM).unwrap_or(head);
        let line =
            head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).find(|l| !l.is_empty() && !l.starts_with(b"#"))?;
        if line.starts_with(b"{") {
            return Some(Format::Jsonl);
        }
        let first = line.split(|b| b.is_ascii_whitespace()).next().unwrap_or_default();
        let text = first.iter().all(|b| *b > b' ' && *b != 0x7f);
        match () {
            () if text && first.contains(&b')') && line.contains(&b'{') => Some(Format::Cdxj),
            () if text && memchr::memmem::find(first, b"://").is_some() => Some(Format::Lines),
            () => None,
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "lines" => Ok(Format::Lines),
            "jsonl" => Ok(Format::Jsonl),
            "cdxj" => Ok(Format::Cdxj),
            "csv" => Ok(Format::Csv),
            "tsv" => Ok(Format::Tsv),
            "warc" => Ok(Format::Warc),
            "parquet" => Ok(Format::Parquet),
            "seqdb" => Ok(Format::Seqdb),
            _ => Err(format!("expected one of {}, found {text:?}", Format::KNOWN)),
        }
    }
}

/// The format of a text by its first line that says something, however many say nothing before it; a text without one is
/// an empty list.
pub(super) fn of_lines(fs: &Arc<dyn Fs>, path: &Path, compression: Compression) -> Option<Format> {
    let file = unhashed(fs, path, compression);
    let mut first = None;
    let read = file.lines(Split { start: 0, end: u64::MAX }, &mut |_, line| {
        let (Line::Whole(line) | Line::TooLong(line)) = line;
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(());
        }
        first = Some(Format::of_bytes(line));
        Err(DoorError::new(Advice::Stop, "enough"))
    });
    // What cannot be read to its end is not known to be empty.
    first.unwrap_or_else(|| read.is_ok().then_some(Format::Lines))
}

/// The format of a file, if it can be told, and its compression. The name decides, then the first bytes; compression is
/// always by the bytes.
pub fn detect(fs: &Arc<dyn Fs>, path: &Path) -> Result<(Option<Format>, Compression)> {
    let file = fs.open(path, Mode::Read)?;
    let mut magic = [0; trawl_seqdb::HEAD_BYTES];
    let n = file.read_at(0, &mut magic)?;
    let magic = magic.get(..n).unwrap_or_default();
    let compression = match magic {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
        _ => Compression::None,
    };
    // Before the name: the indexes of a container end in .urls and .idx, and hold none.
    if let Some(purpose) = trawl_seqdb::purpose_of(magic) {
        let is_data = purpose.to_string() == trawl_seqdb::design::PURPOSE_DATA;
        return Ok((is_data.then_some(Format::Seqdb), compression));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bare = [".gz", ".zst", ".zstd"].iter().find_map(|ext| name.strip_suffix(ext)).unwrap_or(&name);
    let by_name = bare.rsplit_once('.').and_then(|(_, extension)| Format::of_extension(extension));
    if by_name.is_some() {
        return Ok((by_name, compression));
    }
    let mut head = Vec::new();
    unhashed(fs, path, compression)
        .reader(0)?
        .take(4096)
        .read_to_end(&mut head)
        .map_err(|e| trawl_io::Error::io(trawl_io::Op::Read, path, e))?;
    Ok((Format::of_bytes(&head), compression))
}

/// A file to look into: what it is does not depend on which one it is.
fn unhashed(fs: &Arc<dyn Fs>, path: &Path, compression: Compression) -> SourceFile {
    let identity = SourceIdentity { uri: path.display().to_string(), size: u64::MAX, tag: String::new() };
    SourceFile::new(fs.clone(), path, compression, identity, None)
}
