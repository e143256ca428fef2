//! Writes a WACZ file from WARC files.

use super::zip_write::{Written, ZipWriter};
use crate::cdxj::{BlockIndex, BlockWriter, CdxjLine, CdxjOptions, CdxjSorter, Unlisted, index_records};
use crate::error::{Error, Result};
use crate::reader::WarcReader;
use crate::writer::spool_error;
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::format::{About, Creation};
use trawl_io::read_at::{Cursor, FileReader};
use trawl_io::{ReadAt, SpoolWriter};
use trawl_model::{OnProgress, Progress, UnixMillis};

/// Lines of an index block: what cdxj-indexer uses in WACZ files.
const LINES: usize = 300;
/// Bytes of index and page list kept in memory before they go to a file.
const SPOOL_BYTES: usize = 4 << 20;

/// Records that are named of those that the index cannot list.
const MAX_EXAMPLES: usize = 20;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct WaczSummary {
    /// WARC files.
    pub files: u64,
    /// Records in them.
    pub records: u64,
    /// Lines of the index.
    pub captures: u64,
    /// Pages listed.
    pub pages: u64,
    /// Bytes of the WACZ file.
    pub bytes: u64,
    /// Records in them that the index does not list, because they do not say of which URL they are, or lists as of 1970, because
    /// they do not say when.
    pub unlisted: u64,
    /// The first of those.
    pub examples: Vec<String>,
}

/// Packs WARC files into a WACZ file at `path`.
pub fn write_wacz(
    creation: &Creation,
    path: &Path,
    warcs: &[PathBuf],
    progress: OnProgress<'_>,
) -> Result<WaczSummary> {
    let fs = &creation.fs;
    let mut summary = WaczSummary { files: warcs.len() as u64, ..WaczSummary::default() };
    let mut sorter = CdxjSorter::new(&creation.temp_dir, creation.memory_bytes)?;
    let mut pages = SpoolWriter::new(fs.clone(), &creation.temp_dir, SPOOL_BYTES);
    pages.put(b"{\"format\": \"json-pages-1.0\", \"id\": \"pages\", \"title\": \"All Pages\"}\n")?;
    let mut zip = ZipWriter::create(fs, path)?;
    let mut names: Vec<String> = Vec::new();
    let mut done = Progress::default();
    for warc in warcs {
        let file: Arc<dyn ReadAt> = Arc::new(FileReader::open_in(&**fs, warc)?);
        let base = warc.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if names.contains(&base) {
            let reason = "two files of this name cannot be in one WACZ file".to_owned();
            return Err(Error::Refused { file: base, reason });
        }
        done.total_bytes = file.len();
        done.bytes = 0;
        index(&file, &mut sorter, &mut pages, &mut summary)?;
        zip.add(&format!("archive/{base}"), file.len(), &mut Cursor::new(file.clone()), &mut |n| {
            done.bytes += n;
            progress(done);
        })?;
        names.push(base);
    }
    add_index(creation, &mut zip, sorter, &mut summary)?;
    let pages = pages.finish()?;
    zip.add("pages/pages.jsonl", pages.len(), &mut pages.reader(), &mut |_| {})?;
    let package = datapackage(zip.entries(), &creation.about, creation.clock.now());
    let digest = zip.add_bytes("datapackage.json", package.as_bytes())?.sha256.clone();
    let digest = format!("{{\n  \"path\": \"datapackage.json\",\n  \"hash\": \"sha256:{digest}\"\n}}\n");
    zip.add_bytes("datapackage-digest.json", digest.as_bytes())?;
    summary.bytes = zip.finish()?;
    Ok(summary)
}

fn index(
    file: &Arc<dyn ReadAt>,
    sorter: &mut CdxjSorter,
    pages: &mut SpoolWriter,
    summary: &mut WaczSummary,
) -> Result<()> {
    let mut reader = WarcReader::builder().lenient(true).over(file.clone());
    let mut each = |line: CdxjLine| {
        if let Some(page) = page_line(&line) {
            pages.write_all(page.as_bytes()).map_err(spool_error)?;
            summary.pages += 1;
        }
        sorter.push(&line)
    };
    let (mut unlisted, mut examples) = (0, Vec::new());
    let mut pass = |found| match found {
        // Damage is not packed: an index that passes over it would be all that a player sees.
        Unlisted::Damage(error) => Err(error),
        // A page of 1970 would be shown as one; in the list of what is wrong somebody sees it.
        Unlisted::Incomplete(error) | Unlisted::Undated(error) => {
            unlisted += 1;
            if examples.len() < MAX_EXAMPLES {
                examples.push(error.to_string());
            }
            Ok(())
        }
    };
    let records = index_records(&mut reader, &CdxjOptions::default(), &mut each, &mut pass)?;
    summary.records += records;
    summary.unlisted += unlisted;
    examples.truncate(MAX_EXAMPLES.saturating_sub(summary.examples.len()));
    summary.examples.append(&mut examples);
    Ok(())
}

/// A page is what a person would open: HTML that was really there.
fn page_line(line: &CdxjLine) -> Option<String> {
    let html = matches!(line.get("mime"), Some("text/html" | "application/xhtml+xml"));
    if !html || line.get("status") != Some("200") {
        return None;
    }
    let url = line.get("url")?;
    let ts = UnixMillis::parse(&line.timestamp).ok()?.rfc3339_seconds();
    // The id only has to be unique in the list: the place of the record is.
    let id = format!("{}-{}", line.get("filename")?, line.get("offset")?);
    Some(format!("{}\n", serde_json::json!({"id": id, "url": url, "ts": ts})))
}

fn add_index(creation: &Creation, zip: &mut ZipWriter, sorter: CdxjSorter, summary: &mut WaczSummary) -> Result<()> {
    let spool = || SpoolWriter::new(creation.fs.clone(), &creation.temp_dir, SPOOL_BYTES);
    let mut blocks = BlockWriter::new(spool(), spool(), BlockIndex::Wacz, "index.cdx.gz", LINES)?;
    summary.captures = sorter.finish(&mut |line| blocks.push(line))?;
    let (data, index) = blocks.finish()?;
    for (name, spool) in [("indexes/index.cdx.gz", data.finish()?), ("indexes/index.idx", index.finish()?)] {
        zip.add(name, spool.len(), &mut spool.reader(), &mut |_| {})?;
    }
    Ok(())
}

fn datapackage(entries: &[Written], about: &About, created: UnixMillis) -> String {
    let mut names = HashSet::new();
    let resource = |entry: &Written| {
        let name = resource_name(&entry.name, &mut names);
        let hash = format!("sha256:{}", entry.sha256);
        serde_json::json!({"name": name, "path": entry.name, "hash": hash, "bytes": entry.size})
    };
    let mut package = serde_json::json!({
        "profile": "data-package",
        "wacz_version": "1.1.1",
        "software": about.software,
        "created": created.rfc3339_seconds(),
        "resources": entries.iter().map(resource).collect::<Vec<_>>(),
    });
    if let (Some(title), Some(map)) = (&about.title, package.as_object_mut()) {
        map.insert("title".into(), title.as_str().into());
    }
    format!("{package:#}\n")
}

/// The name of a resource. A data package wants it in these characters, and each name once; `path` keeps what the file is called.
fn resource_name(path: &str, taken: &mut HashSet<String>) -> String {
    let base = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let is_odd = |c: char| !matches!(c, 'a'..='z' | '0'..='9' | '-' | '.' | '_');
    let plain = base.replace(is_odd, "-");
    let mut name = plain.clone();
    // From the number of all: to count from 1 would take ever longer where many archives have one name.
    let mut others = taken.len();
    while !taken.insert(name.clone()) {
        others += 1;
        name = format!("{plain}-{others}");
    }
    name
}
