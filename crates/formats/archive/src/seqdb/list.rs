//! What is printed of containers that hold something else than captures.

use super::text::Text;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use trawl_io::Hasher;
use trawl_model::{DoorError, Wanted};
use trawl_seqdb::{Access, FileInfo, Filesys, FsPaths, Kvseq, Settings};

/// Bytes moved at once.
const CHUNK: usize = 1 << 20;
/// A value is put into JSON up to this size; of a larger one, only its digest is printed.
const IN_JSON: u64 = 64 << 20;

/// Contents as JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Contents<'a> {
    /// As they are.
    Whole(Text<'a>),
    /// Too many, or not wanted.
    Digest {
        /// Bytes.
        length: u64,
        /// Their digest.
        sha256: String,
    },
}

/// Hands contents to `each`, part by part: `read` fills a buffer from an offset on.
fn parts(
    len: u64,
    mut read: impl FnMut(u64, &mut [u8]) -> trawl_seqdb::Result<usize>,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), DoorError> {
    let mut buf = vec![0; CHUNK.min(usize::try_from(len).unwrap_or(CHUNK))];
    let mut at = 0;
    while at < len {
        let n = read(at, &mut buf)?;
        if n == 0 {
            break;
        }
        each(buf.get(..n).unwrap_or_default())?;
        at += n as u64;
    }
    Ok(())
}

fn digest(
    len: u64,
    read: impl FnMut(u64, &mut [u8]) -> trawl_seqdb::Result<usize>,
) -> Result<Contents<'static>, DoorError> {
    let mut hash = Hasher::sha256();
    parts(len, read, |part| {
        hash.update(part);
        Ok(())
    })?;
    Ok(Contents::Digest { length: len, sha256: hash.finish().hex() })
}

/// An entry of a kvseq, a cell or a pair.
#[derive(Debug, Serialize)]
pub struct Row<'a> {
    /// Where the entry is.
    pub pointer: u64,
    /// Whether it is marked deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// The hash beside the pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Its key, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Text<'a>>,
    /// Its value, if wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Contents<'a>>,
}

impl Row<'_> {
    /// One line: columns with tabs between.
    pub fn write(&self, w: &mut dyn Write, pointers: bool) -> io::Result<()> {
        let mut columns = Vec::new();
        if pointers {
            columns.push(self.pointer.to_string());
        }
        columns.extend(self.deleted.then(|| "deleted".to_owned()));
        columns.extend(self.hash.clone());
        columns.extend(self.key.map(|key| key.to_string()));
        match &self.value {
            Some(Contents::Whole(value)) => columns.push(value.to_string()),
            Some(Contents::Digest { length, sha256 }) => columns.push(format!("({length} bytes, sha256 {sha256})")),
            None => {}
        }
        writeln!(w, "{}", columns.join("\t"))
    }
}

/// The value of an entry for a [`Row`]: itself if it is small enough and wanted, else its digest.
pub fn value<'a>(
    kv: &Kvseq,
    ptr: u64,
    len: u64,
    at_hand: Option<&'a [u8]>,
    digests: bool,
) -> Result<Contents<'a>, DoorError> {
    match at_hand.filter(|_| !digests) {
        Some(value) => Ok(Contents::Whole(Text(value))),
        None => digest(len, |at, buf| kv.read_value(ptr, at, buf)),
    }
}

fn json_line(out: &mut dyn Write, row: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, row)?;
    out.write_all(b"\n")
}

/// Prints the entries of a kvseq: all that are live, those of a key, or the one at a pointer. Returns how many.
pub(super) fn cat_entries(
    path: &Path,
    wanted: &Wanted<'_>,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<u64, DoorError> {
    let kv = Kvseq::open(path, Access::Read, settings)?;
    let mut found = 0;
    let mut scan = kv.scan();
    if let Some(ptr) = wanted.offset {
        // The entry must be one: a pointer into the middle of another would show whatever lies there.
        kv.key(ptr)?;
        scan = kv.scan_from(ptr).with_deleted();
    }
    while let Some(item) = scan.next_entry()? {
        if wanted.offset.is_some_and(|ptr| ptr != item.ptr) {
            break;
        }
        if wanted.url.is_none_or(|key| key.as_bytes() == item.key) {
            let value = value(&kv, item.ptr, item.value_len, item.value, wanted.digests)?;
            let (key, value) = (Some(Text(item.key)), Some(value));
            let row = Row { pointer: item.ptr, deleted: item.deleted, hash: None, key, value };
            let written = if wanted.json { json_line(out, &row) } else { row.write(out, false) };
            written?;
            found += 1;
        }
    }
    Ok(found)
}

#[derive(Serialize)]
struct FileRow<'a> {
    name: Text<'a>,
    #[serde(rename = "type")]
    kind: char,
    bytes: u64,
    mtime: i64,
    contents: Contents<'a>,
}

/// Prints the contents of the files of a filesys, or of one. Returns how many.
pub(super) fn cat_files(
    paths: &FsPaths,
    wanted: &Wanted<'_>,
    settings: &Settings,
    out: &mut dyn Write,
) -> Result<u64, DoorError> {
    let fs = Filesys::open(paths, Access::Read, settings)?;
    if let Some(name) = wanted.url {
        return match fs.stat(name.as_bytes()) {
            Ok(info) => cat_file(&fs, &info, wanted, out).map(|()| 1),
            Err(trawl_seqdb::Error::FileNotFound { .. }) => Ok(0),
            Err(other) => Err(other.into()),
        };
    }
    let (mut files, mut found) = (fs.files(), 0);
    while let Some(info) = files.next_file()? {
        cat_file(&fs, &info, wanted, out)?;
        found += 1;
    }
    Ok(found)
}

/// Prints the contents of one file: as they are, or as JSON.
pub fn cat_file(fs: &Filesys, info: &FileInfo, wanted: &Wanted<'_>, out: &mut dyn Write) -> Result<(), DoorError> {
    let file = fs.open_listed(info)?;
    let read = |at: u64, buf: &mut [u8]| fs.read_file(&file, at, buf);
    if !wanted.json {
        return parts(file.size(), read, |part| out.write_all(part));
    }
    let mut whole = Vec::new();
    let contents = if wanted.digests || file.size() > IN_JSON {
        digest(file.size(), read)?
    } else {
        parts(file.size(), read, |part| whole.write_all(part))?;
        Contents::Whole(Text(&whole))
    };
    let row = FileRow { name: Text(&info.name), kind: info.kind, bytes: info.size, mtime: info.mtime, contents };
    Ok(json_line(out, &row)?)
}
