//! Writing a segment from records in any order.

use super::SegmentPart;
use crate::Result;
use crate::db::{Compress, Duplicates, PartedWriter, WriteSettings, WrittenParts};
use crate::types::{Content, CrawlDatum, ParseData, ParseText, encoded};
use std::collections::BTreeMap;
use std::path::Path;
use trawl_hadoop::Encode;
use trawl_hadoop::java;
use trawl_hadoop::parts::{part_of_hash, part_of_text};

/// What was written, by directory.
pub type WrittenSegment = BTreeMap<SegmentPart, WrittenParts>;

/// Learns of each record that was written: its directory, key, file inside the segment, and where it begins.
pub type OnSegmentRecord<'a> = dyn FnMut(SegmentPart, &[u8], &Path, u64) -> Result<()> + 'a;

/// Collects the records of a segment; [`SegmentWriter::finish`] writes it. A directory appears if anything was put into it, or
/// if it was asked for.
///
/// Of a URL that comes more than once, the last list entry, content, fetch, data and text are kept: a segment holds one of
/// each.
#[derive(Debug)]
pub struct SegmentWriter {
    settings: WriteSettings,
    compress: Compress,
    writers: BTreeMap<SegmentPart, PartedWriter>,
}

impl SegmentWriter {
    /// Starts a segment.
    pub fn new(compress: Compress, settings: &WriteSettings) -> Self {
        SegmentWriter { settings: settings.clone(), compress, writers: BTreeMap::new() }
    }

    /// Makes sure that a directory is written even without records.
    pub fn ensure(&mut self, part: SegmentPart) -> Result<()> {
        self.writer(part).map(drop)
    }

    fn writer(&mut self, part: SegmentPart) -> Result<&mut PartedWriter> {
        let duplicates = if part == SegmentPart::CrawlParse { Duplicates::Keep } else { Duplicates::LastWins };
        if !self.writers.contains_key(&part) {
            let pack = self.compress.pack(part.place());
            let writer = PartedWriter::new(part.class(), pack, part.shape(), duplicates, &self.settings)?;
            self.writers.insert(part, writer);
        }
        self.writers.get_mut(&part).ok_or_else(|| crate::Error::refused(Path::new(part.name()), "no writer"))
    }

    /// A URL that was to be fetched. Parts follow the host, the order inside them a hash that scatters hosts, as Nutch's
    /// generator does it.
    pub fn generate(&mut self, url: &str, datum: &CrawlDatum<'_>) -> Result<()> {
        self.generate_raw(url, &encoded(|out| datum.encode(out)), 0)
    }

    /// The same of a serialised datum; of several for a URL the one of the highest rank is kept.
    pub fn generate_raw(&mut self, url: &str, datum: &[u8], rank: i64) -> Result<()> {
        let part = part_of_hash(java::hash_string(host_of(url)), self.settings.parts);
        let mut key = Vec::new();
        key.put_text(url.as_bytes());
        key.reverse();
        let mut order = (java::hash_bytes(&key).cast_unsigned() ^ 1 << 31).to_be_bytes().to_vec();
        order.put(url.as_bytes());
        self.writer(SegmentPart::CrawlGenerate)?.push_to(part, &order, url.as_bytes(), datum, rank)
    }

    /// How a fetch ended.
    pub fn fetched(&mut self, url: &[u8], datum: &CrawlDatum<'_>) -> Result<()> {
        self.writer(SegmentPart::CrawlFetch)?.push(url, &encoded(|out| datum.encode(out)))
    }

    /// What a server sent.
    pub fn content(&mut self, url: &[u8], content: &Content<'_>) -> Result<()> {
        self.writer(SegmentPart::Content)?.push(url, &encoded(|out| content.encode(out)))
    }

    /// What parsing says of `target` to the CrawlDb: the page itself, or where it links to. Lies in the part of the page.
    pub fn crawl_parse(&mut self, page: &[u8], target: &[u8], datum: &CrawlDatum<'_>) -> Result<()> {
        let part = part_of_text(page, self.settings.parts);
        let value = encoded(|out| datum.encode(out));
        self.writer(SegmentPart::CrawlParse)?.push_to(part, page, target, &value, 0)
    }

    /// What parsing found in a page.
    pub fn parsed(&mut self, url: &[u8], text: &ParseText<'_>, data: &ParseData<'_>) -> Result<()> {
        self.writer(SegmentPart::ParseText)?.push(url, &encoded(|out| text.encode(out)))?;
        self.writer(SegmentPart::ParseData)?.push(url, &encoded(|out| data.encode(out)))
    }

    /// A record of any directory, serialised already; of several for a URL the one of the highest rank is kept.
    pub fn raw(&mut self, part: SegmentPart, url: &[u8], value: &[u8], rank: i64) -> Result<()> {
        self.writer(part)?.push_ranked(url, value, rank)
    }

    /// Writes the segment as `dir`, which must not exist: aside first, then under its name. `on_record` learns where each
    /// record of each directory went, by the name it will have.
    pub fn finish(self, dir: &Path, on_record: &mut OnSegmentRecord<'_>) -> Result<WrittenSegment> {
        let fs = self.settings.fs.clone();
        if fs.exists(dir)? {
            return Err(crate::Error::refused(dir, "it exists already, and a segment is written once"));
        }
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside = dir.with_file_name(format!(".tmp-{}-{name}", std::process::id()));
        trawl_io::remove_tree(&*fs, &aside)?;
        let mut written = WrittenSegment::new();
        for (part, writer) in self.writers {
            let done = writer.finish(&aside.join(part.name()), &mut |url, path, at| {
                on_record(part, url, path.strip_prefix(&aside).unwrap_or(path), at)
            });
            match done {
                Ok(parts) => written.insert(part, parts),
                Err(e) => {
                    // What was written aside is of no use; if it cannot be removed either, its name says what it is.
                    let _ = trawl_io::remove_tree(&*fs, &aside);
                    return Err(e);
                }
            };
        }
        fs.sync_dir(&aside)?;
        fs.rename(&aside, dir)?;
        fs.sync_dir(parent(dir))?;
        Ok(written)
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

/// The host as `java.net.URL` sees it: what stands between `//` and the next `/`, `?`, `#` or port, behind any user name.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("//").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => host,
    }
}
