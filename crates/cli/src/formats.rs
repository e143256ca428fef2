//! Which format a file has, by its first bytes, and the files of a path. A new format is one line in [`FORMATS`].

use anyhow::{Context, bail};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::read_at::FileReader;
use trawl_io::{Compression, ReadAt, RealFs};
use trawl_seqdb::design;
use trawl_warc::WarcReader;

/// A format this binary knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// WARC or ARC, in any compression.
    Warc,
    /// WACZ.
    Wacz,
    /// captures.parquet.
    Captures,
    /// A file of a seqdb container.
    Seqdb,
}

/// A format's name and how it is told.
type Row = (Format, &'static str, fn(&Path, &[u8]) -> bool);

/// Every format, the cheap tests first.
const FORMATS: &[Row] = &[
    (Format::Captures, "captures.parquet", |_, head| head.starts_with(b"PAR1")),
    (Format::Wacz, "wacz", |_, head| head.starts_with(b"PK\x03\x04")),
    (Format::Seqdb, "seqdb", |path, head| looks_like_seqdb(path, head)),
    (Format::Warc, "warc", |path, head| looks_like_warc(path, head)),
];

/// The format of a file; `None` when it is none of ours.
pub fn detect(path: &Path) -> anyhow::Result<Option<Format>> {
    let head = head(path)?;
    Ok(FORMATS.iter().find(|row| (row.2)(path, &head)).map(|row| row.0))
}

/// The first bytes of a file.
fn head(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut head = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let wanted = trawl_seqdb::HEAD_BYTES as u64;
    file.take(wanted).read_to_end(&mut head).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(head)
}

/// Containers begin with a word of their own. A file that others say is of their filesys is one too, so that a damaged
/// file is reported and not passed over.
fn looks_like_seqdb(path: &Path, head: &[u8]) -> bool {
    head.starts_with(&design::MAGIC) || trawl_seqdb::filesys_around(path, &RealFs).is_some()
}

/// Whether a container file is a part of a filesys whose data file lies beside it, and speaks for it.
fn is_spoken_for(path: &Path) -> anyhow::Result<bool> {
    let data = path.with_extension(design::DATA_SUFFIX);
    if data == path || !data.is_file() {
        return Ok(false);
    }
    let purpose = trawl_seqdb::purpose_of(&head(path)?).map(|purpose| purpose.to_string());
    let parts = [design::PURPOSE_INDEX, design::PURPOSE_TIME, design::PURPOSE_URLS];
    let part = purpose.is_some_and(|purpose| parts.contains(&purpose.as_str()))
        || trawl_seqdb::filesys_around(path, &RealFs).is_some();
    Ok(part && detect(&data)? == Some(Format::Seqdb))
}

/// Whether a file is what a compaction is at, or has left: `NAME.new.data` beside `NAME.data`, `NAME.new` beside `NAME`. A
/// check of the container tells of it.
fn is_copy(path: &Path) -> anyhow::Result<bool> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((&name, ""));
    let original = match stem.strip_suffix(design::NEW_SUFFIX) {
        Some(stem) => format!("{stem}.{suffix}"),
        None => name.strip_suffix(design::NEW_SUFFIX).unwrap_or_default().to_owned(),
    };
    let original = path.with_file_name(original);
    Ok(original.is_file() && detect(&original)? == Some(Format::Seqdb))
}

/// Archives begin with a version line, bare or in gzip or zstd; only the first record tells a compressed one from any
/// other compressed file. A name that says so is believed, so that a damaged file is reported and not passed over.
fn looks_like_warc(path: &Path, head: &[u8]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let named = name.contains(".warc") || trawl_warc::is_arc_name(&name);
    let compressed = Compression::detect(head) != Compression::None;
    let first_record = || {
        let reader = WarcReader::builder().lenient(true).open(path);
        reader.is_ok_and(|mut reader| matches!(reader.next_record(), Ok(Some(_))))
    };
    head.starts_with(b"WARC/") || head.starts_with(b"filedesc://") || named || compressed && first_record()
}

/// A file and its format.
#[derive(Debug, Clone)]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
}

impl Found {
    /// The file, to be read at any place.
    pub fn open(&self) -> anyhow::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(FileReader::open(&self.path)?))
    }
}

/// The files of a path: the file itself, or everything in the directory that has one of our formats, by name. A filesys
/// is named as BASE/NAME too; in a directory its data file stands for the rest.
pub fn files(path: &Path) -> anyhow::Result<Vec<Found>> {
    let data = trawl_seqdb::FsPaths::of(path).map(|paths| paths.data()).ok().filter(|data| data.is_file());
    let path = data.as_deref().filter(|_| !path.exists()).unwrap_or(path);
    let meta = std::fs::metadata(path).with_context(|| format!("cannot find {}", path.display()))?;
    if !meta.is_dir() {
        let Some(format) = detect(path)? else {
            let known: Vec<_> = FORMATS.iter().map(|row| row.1).collect();
            bail!("{} is in no format known here ({})", path.display(), known.join(", "));
        };
        return Ok(vec![Found { path: path.to_owned(), format }]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut paths = entries.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths.into_iter().filter(|p| p.is_file()) {
        if let Some(format) = detect(&path)? {
            if format == Format::Seqdb && (is_spoken_for(&path)? || is_copy(&path)?) {
                continue;
            }
            found.push(Found { path, format });
        }
    }
    if found.is_empty() {
        bail!("{} holds no file in a format known here", path.display());
    }
    Ok(found)
}
