//! Finds lines by binary search: a lookup costs a few reads, whatever the size of the index.

use crate::error::{At, Error, Result, shown};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_io::read_at::Cursor;

/// Bytes read at a time.
const READ_BYTES: u64 = 16 << 10;
/// And where the order of many lines is checked.
const CHECK_BYTES: usize = 256 << 10;
/// A line longer than this is not one.
const MAX_LINE: u64 = 1 << 20;
/// Bytes a block may inflate to.
const MAX_BLOCK: u64 = 64 << 20;

/// A sorted index as plain text.
#[derive(Clone)]
pub struct CdxjFile {
    file: Arc<dyn ReadAt>,
}

/// Yields lines, without their ends, in order.
pub struct Lines {
    source: Source,
    prefix: Vec<u8>,
}

enum Source {
    Plain { file: CdxjFile, at: u64 },
    Blocks { cluster: ZipNum, at: u64, lines: VecDeque<Vec<u8>>, from: Vec<u8> },
}

impl CdxjFile {
    /// An index in a file.
    pub fn new(file: Arc<dyn ReadAt>) -> Self {
        CdxjFile { file }
    }

    /// Lines that begin with `prefix` (`com,example)/a ` for one key, `com,example)` for a host), in order.
    pub fn lines(&self, prefix: &[u8]) -> Result<Lines> {
        let at = self.lower_bound(prefix)?;
        Ok(Lines { source: Source::Plain { file: self.clone(), at }, prefix: prefix.to_vec() })
    }

    /// Refuses an index whose keys are not in order, as far as its first `up_to` bytes show: other tools write such
    /// (cdxj-indexer without `--sort`, wget, `cat` of two indexes), and a search in it would miss lines without a word.
    pub fn check_order(&self, up_to: u64) -> Result<()> {
        // Whole lines only: the beginning of one may sort elsewhere.
        let end = if up_to < self.file.len() { self.line_end(up_to)? } else { self.file.len() };
        let mut lines = BufReader::with_capacity(CHECK_BYTES, Cursor::new(self.file.clone()).take(end));
        let (mut at, mut line, mut last) = (0, Vec::new(), Vec::new());
        loop {
            line.clear();
            let n = lines.read_until(b'\n', &mut line).map_err(|source| Error::Io { at: self.at(at), source })?;
            if n == 0 {
                return Ok(());
            }
            // Lines of one key may come in any order, and blank ones are none.
            let text = line.trim_ascii_end();
            let key = text.split(|b| *b == b' ').next().unwrap_or_default();
            if !line.iter().all(|b| is_line_end(*b)) {
                if key < last.as_slice() {
                    let expected = "lines sorted by their keys, as a search needs them (`LC_ALL=C sort` sorts them)";
                    return Err(Error::corrupt(self.at(at), expected, shown(text)));
                }
                last.clear();
                last.extend_from_slice(key);
            }
            at += n as u64;
        }
    }

    fn at(&self, offset: u64) -> At {
        At { file: self.file.name().to_string_lossy().into(), offset, inside: 0 }
    }

    /// Offset of the first line that does not sort before `key`.
    fn lower_bound(&self, key: &[u8]) -> Result<u64> {
        // Invariant: the line that begins at or after `low` and none before it may be the one; `high` is past it.
        let (mut low, mut high) = (0, self.file.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let start = if middle == 0 { 0 } else { self.line_end(middle - 1)? };
            if start >= high {
                high = middle;
                continue;
            }
            match self.line_at(start)? {
                Some((line, end)) if line.as_slice() < key => low = end,
                _ => high = middle,
            }
        }
        Ok(if low == 0 { 0 } else { self.line_end(low - 1)? })
    }

    /// Offset after the first line end at or after `at`.
    fn line_end(&self, at: u64) -> Result<u64> {
        let len = self.file.len();
        let mut from = at;
        while from < len {
            let bytes = self.file.read_range(from..(from + READ_BYTES).min(len))?;
            if let Some(found) = memchr::memchr(b'\n', &bytes) {
                return Ok(from + found as u64 + 1);
            }
            from += bytes.len() as u64;
            if from - at > MAX_LINE {
                let (claimed, limit) = (from - at, MAX_LINE);
                return Err(Error::OverLimit { at: self.at(at), what: "CDXJ line", claimed, limit });
            }
        }
        Ok(len)
    }

    /// Where the first line at or after `at` begins that is not blank. Taken for lines, blank ones would sort before every
    /// key, and a search would not look at what stands before them.
    fn skip_blank(&self, at: u64) -> Result<u64> {
        let len = self.file.len();
        let mut from = at;
        while from < len {
            let bytes = self.file.read_range(from..(from + READ_BYTES).min(len))?;
            if let Some(found) = bytes.iter().position(|b| !is_line_end(*b)) {
                return Ok(from + found as u64);
            }
            from += bytes.len() as u64;
        }
        Ok(len)
    }

    /// The first line at or after `at` that is not blank, and where the next one begins; `None` at the end.
    fn line_at(&self, at: u64) -> Result<Option<(Vec<u8>, u64)>> {
        let at = self.skip_blank(at)?;
        if at >= self.file.len() {
            return Ok(None);
        }
        let end = self.line_end(at)?;
        let bytes = self.file.read_range(at..end)?;
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        Ok(Some((line.strip_suffix(b"\r").unwrap_or(line).to_vec(), end)))
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

type OpenBlocks = Arc<dyn Fn(&str) -> Result<Arc<dyn ReadAt>> + Send + Sync>;

/// A sorted index in gzip blocks, found through `cluster.idx` or the `index.idx` of a WACZ file.
#[derive(Clone)]
pub struct ZipNum {
    index: CdxjFile,
    open: OpenBlocks,
    /// The block file, where the index names it once.
    named: Option<String>,
}

impl ZipNum {
    /// Blocks listed in `index`, in files that `open` finds by the names the index gives.
    pub fn new(
        index: Arc<dyn ReadAt>,
        open: impl Fn(&str) -> Result<Arc<dyn ReadAt>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let index = CdxjFile::new(index);
        let named = match index.line_at(0)? {
            Some((line, _)) if line.starts_with(b"!meta ") => {
                let json = line.iter().position(|b| *b == b'{').and_then(|at| line.get(at..)).unwrap_or_default();
                let meta: serde_json::Value = serde_json::from_slice(json).unwrap_or_default();
                meta.get("filename").and_then(|f| f.as_str()).map(str::to_owned)
            }
            _ => None,
        };
        Ok(ZipNum { index, open: Arc::new(open), named })
    }

    /// Lines that begin with `prefix`, in order.
    pub fn lines(&self, prefix: &[u8]) -> Result<Lines> {
        // Lines may begin in the block before the first whose own first line sorts at or after the prefix.
        let at = self.index.lower_bound(prefix)?;
        let before = self.line_start_before(at)?;
        let cluster = self.clone();
        let source = Source::Blocks { cluster, at: before, lines: VecDeque::new(), from: prefix.to_vec() };
        Ok(Lines { source, prefix: prefix.to_vec() })
    }

    /// Where the line before the one at `at` begins.
    fn line_start_before(&self, at: u64) -> Result<u64> {
        let mut span = 4096.min(at);
        loop {
            let from = at - span;
            let bytes = self.index.file.read_range(from..at)?;
            let body = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            if let Some(lf) = memchr::memrchr(b'\n', body) {
                return Ok(from + lf as u64 + 1);
            }
            if from == 0 || span > MAX_LINE {
                return Ok(from);
            }
            span = (span * 4).min(at);
        }
    }

    /// Reads the block listed at `at` in the index; also says where the next entry is. `None` at the end.
    fn block_at(&self, at: u64) -> Result<Option<(Vec<Vec<u8>>, u64)>> {
        let Some((line, next)) = self.index.line_at(at)? else { return Ok(None) };
        if line.starts_with(b"!meta ") || line.is_empty() {
            return Ok(Some((Vec::new(), next)));
        }
        let bad = || Error::corrupt(self.index.at(at), "a block entry: file, offset, length", shown(&line));
        let (name, offset, length) = self.entry(&line).ok_or_else(bad)?;
        let blocks = (self.open)(&name)?;
        let stored = blocks.read_range(offset..offset.saturating_add(length))?;
        let mut text = Vec::new();
        flate2::read::MultiGzDecoder::new(&stored[..])
            .take(MAX_BLOCK + 1)
            .read_to_end(&mut text)
            .map_err(|e| Error::corrupt(self.index.at(at), "a gzip block", e.to_string()))?;
        if text.len() as u64 > MAX_BLOCK {
            let (claimed, limit) = (text.len() as u64, MAX_BLOCK);
            return Err(Error::OverLimit { at: self.index.at(at), what: "index block", claimed, limit });
        }
        let lines = text.split(|b| *b == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect();
        Ok(Some((lines, next)))
    }

    fn entry(&self, line: &[u8]) -> Option<(String, u64, u64)> {
        let text = std::str::from_utf8(line).ok()?;
        // A key may hold a brace, but neither a tab nor a blank.
        if let Some((_, json)) = text.split_once(" {").filter(|_| !text.contains('\t')) {
            let entry: serde_json::Value = serde_json::from_str(&format!("{{{json}")).ok()?;
            let name = entry.get("filename").and_then(|f| f.as_str()).map(str::to_owned);
            return Some((
                name.or_else(|| self.named.clone())?,
                entry.get("offset")?.as_u64()?,
                entry.get("length")?.as_u64()?,
            ));
        }
        let mut parts = text.split('\t').skip(1);
        Some((parts.next()?.to_owned(), parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }
}

impl Lines {
    fn next_line(&mut self) -> Result<Option<Vec<u8>>> {
        match &mut self.source {
            Source::Plain { file, at } => {
                let Some((line, next)) = file.line_at(*at)? else { return Ok(None) };
                *at = next;
                Ok(Some(line))
            }
            Source::Blocks { cluster, at, lines, from } => loop {
                match lines.pop_front() {
                    Some(line) if line.as_slice() < from.as_slice() => {}
                    Some(line) => return Ok(Some(line)),
                    None => {
                        let Some((block, next)) = cluster.block_at(*at)? else { return Ok(None) };
                        *at = next;
                        lines.extend(block);
                    }
                }
            },
        }
    }
}

impl Iterator for Lines {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_line() {
            Ok(Some(line)) if line.starts_with(&self.prefix) => Some(Ok(line)),
            Ok(_) => None,
            Err(e) => Some(Err(e)),
        }
    }
}
