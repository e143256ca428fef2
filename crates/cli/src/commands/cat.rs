//! `trawl cat`: the entries of a container.

use crate::containers;
use crate::exit::Status;
use crate::formats::{self, Format, Found};
use crate::output::Output;
use anyhow::{Context, bail};
use serde::Serialize;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use trawl_captures::CapturesReader;
use trawl_http::{Dechunk, Framing, Head, decode_content};
use trawl_io::ReadAt;
use trawl_seqdb::{Access, Pages, Whole};
use trawl_warc::wacz::Wacz;
use trawl_warc::{Limits, Record, RecordFile, WarcReader};

/// A block is put into JSON up to this size; a larger one is told by its digest.
const JSON_BLOCK: u64 = 64 << 20;

/// Prints the entries of a container
///
/// Without flags: every record, uncompressed, as it is stored. --url and --offset choose; --head and --body give the HTTP
/// head or the body of what was chosen; --json gives one object per record. Exit code 1 when nothing was found.
///
/// Of a seqdb container: the records of captures (--url gives the newest one, by two reads), the contents of files (--url
/// is a file's name then), or the entries of a kvseq, as `trawl seqdb list` has them (--url is a key, --offset a pointer).
///
/// Examples:
///   trawl cat crawl/ --url https://example.com/ --body > page.html
///   trawl cat crawl.warc.gz --offset 81920
///   trawl cat crawl.warc.gz --json --digests
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// A file, or a directory of files
    path: PathBuf,

    /// Only records of this URL
    #[arg(long)]
    url: Option<String>,

    /// Only the record at this stored offset
    #[arg(long, value_name = "N")]
    offset: Option<u64>,

    /// Only records of this type: response, request, metadata, warcinfo …
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,

    /// Print the HTTP head of responses
    #[arg(long, conflicts_with = "body")]
    head: bool,

    /// Print the body of responses, as stored
    #[arg(long)]
    body: bool,

    /// With --body: undo chunking and content codings
    #[arg(long, requires = "body")]
    decode: bool,

    /// With --json: digests in place of blocks
    #[arg(long)]
    digests: bool,
}

/// A record as JSON.
#[derive(Debug, Serialize)]
struct Entry<'a> {
    file: &'a str,
    offset: u64,
    #[serde(rename = "type")]
    kind: &'a str,
    fields: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_head: Option<String>,
    #[serde(flatten)]
    block: Block,
}

/// What follows the heads: text where it is text.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Block {
    Text { text: String },
    Base64 { base64: String },
    Digest { length: u64, sha256: String },
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let mut found = 0u64;
    for file in formats::files(&args.path)? {
        match file.format {
            Format::Warc => found += args.archive(file.open()?, out)?,
            Format::Wacz => {
                let wacz = Wacz::open(file.open()?)?;
                for entry in wacz.warc_entries() {
                    found += args.archive(wacz.warc(&entry.name)?, out)?;
                }
            }
            // Beside its archive an index has nothing to add.
            Format::Captures if args.path.is_dir() => {}
            Format::Captures => found += args.rows(&file, out)?,
            Format::Seqdb => found += args.container(&file, out)?,
        }
    }
    Ok(Status::from_findings(found == 0))
}

impl Args {
    fn archive(&self, file: Arc<dyn ReadAt>, out: &mut Output) -> anyhow::Result<u64> {
        if let Some(offset) = self.offset {
            let records = RecordFile::new(file).limits(Limits::default()).lenient(true);
            let mut reader = records.reader_at(offset, 0)?;
            let record = reader.next_record()?.context("there is no record at that offset")?;
            return self.record(record, out).map(u64::from);
        }
        self.records(WarcReader::builder().lenient(true).over(file), out)
    }

    fn records(&self, mut reader: WarcReader, out: &mut Output) -> anyhow::Result<u64> {
        let mut found = 0;
        while let Some(record) = reader.next_record()? {
            if self.wants(&record) {
                found += u64::from(self.record(record, out)?);
            }
        }
        Ok(found)
    }

    fn wants(&self, record: &Record<'_>) -> bool {
        let header = record.header();
        let http_only = self.head || self.body;
        let url_fits = self.url.as_ref().is_none_or(|url| header.target_uri().is_some_and(|uri| uri == url.as_str()));
        let kind = header.record_type().as_str();
        let kind_fits = match &self.kind {
            Some(wanted) => kind == wanted,
            None => !http_only || matches!(kind, "response" | "resource" | "conversion"),
        };
        url_fits && kind_fits
    }

    fn record(&self, mut record: Record<'_>, out: &mut Output) -> anyhow::Result<bool> {
        if out.json() {
            self.json(record, out)?;
            return Ok(true);
        }
        if !self.head && !self.body {
            out.write_all(record.header().raw())?;
            io::copy(&mut record, out)?;
            out.write_all(b"\r\n\r\n")?;
            return Ok(true);
        }
        let head = record.take_http_head()?;
        if self.head {
            let Some(head) = head else { return Ok(false) };
            out.write_all(&head)?;
            return Ok(true);
        }
        let limit = record.limits().decoded_bytes;
        match head.filter(|_| self.decode) {
            Some(head) => {
                let head = Head::new(&head);
                let body: Box<dyn Read + '_> = match Framing::of(&head) {
                    Framing::Chunked => Box::new(Dechunk::new(record.body())),
                    _ => Box::new(record.body()),
                };
                io::copy(&mut decode_content(body, &head.content_codings(), limit)?, out)?;
            }
            None => {
                io::copy(&mut record, out)?;
            }
        }
        Ok(true)
    }

    fn json(&self, mut record: Record<'_>, out: &mut Output) -> anyhow::Result<()> {
        let at = record.at().clone();
        let header = record.header().clone();
        let http_head = if header.is_http() { record.take_http_head()? } else { None };
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let block = if self.digests || record.left() > JSON_BLOCK {
            digest(&mut record)?
        } else {
            let block = record.read_block(JSON_BLOCK)?;
            match String::from_utf8(block.to_vec()) {
                Ok(text) => Block::Text { text },
                Err(bytes) => Block::Base64 { base64: data_encoding::BASE64.encode(bytes.as_bytes()) },
            }
        };
        let fields = header.fields().map(|(name, value)| (lossy(name), lossy(value))).collect();
        let http_head = http_head.map(|head| lossy(&head));
        let kind = header.record_type().as_str();
        out.json_line(&Entry { file: &at.file, offset: at.offset, kind, fields, http_head, block })?;
        Ok(())
    }

    fn container(&self, file: &Found, out: &mut Output) -> anyhow::Result<u64> {
        let settings = containers::settings("trawl cat");
        let path = &file.path;
        let key = self.url.as_deref().map(str::as_bytes);
        let records_only = self.head || self.body || self.kind.is_some();
        match Whole::of(path, &settings)? {
            Whole::Pages(_) if self.offset.is_some() => self.archive(file.open()?, out),
            Whole::Pages(paths) => {
                let pages = Pages::open(&paths, Access::Read, &settings)?;
                if let Some(url) = key {
                    let Some(page) = pages.newest(url)? else { return Ok(0) };
                    let event = Arc::new(bytes::Bytes::from(page.event));
                    let found = self.records(WarcReader::builder().lenient(true).over(event), out)?;
                    if found > 0 {
                        return Ok(found);
                    }
                    // The newest has nothing of the kind asked for, as a revisit has no body: an older one may.
                }
                let mut found = 0;
                containers::each_event(&pages, &settings, &mut |event| {
                    let reader = WarcReader::builder().lenient(true).over_from(event.file, event.offset);
                    found += self.records(reader, out)?;
                    Ok(())
                })?;
                Ok(found)
            }
            _ if records_only => bail!("{}: --head, --body and --type are for captures", path.display()),
            Whole::Filesys(_) if self.offset.is_some() => {
                bail!("{}: a file is chosen by its name: --url NAME", path.display())
            }
            Whole::Filesys(paths) => containers::cat_files(&paths, key, self.digests, &settings, out),
            Whole::Kvseq(_) | Whole::Map(_) => {
                containers::cat_entries(path, key, self.offset, self.digests, &settings, out)
            }
            Whole::Hindex(..) | Whole::Perm(..) => {
                bail!("{} is an index: see `trawl seqdb list`", path.display())
            }
        }
    }

    fn rows(&self, file: &Found, out: &mut Output) -> anyhow::Result<u64> {
        if self.head || self.body || self.offset.is_some() {
            bail!("{} is an index: it has rows, not records", file.path.display());
        }
        let mut found = 0;
        for row in CapturesReader::over(file.open()?)? {
            let row = row?;
            if self.url.as_ref().is_none_or(|url| *url == row.url) {
                found += 1;
                out.json_line(&row)?;
            }
        }
        Ok(found)
    }
}

fn digest(record: &mut Record<'_>) -> anyhow::Result<Block> {
    use sha2::{Digest as _, Sha256};
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut length = 0;
    loop {
        let n = record.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        hash.update(buffer.get(..n).unwrap_or_default());
        length += n as u64;
    }
    Ok(Block::Digest { length, sha256: data_encoding::HEXLOWER.encode(&hash.finalize()) })
}
