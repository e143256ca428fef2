//! Reading records, from any place.

use super::block::{Block, stream_error};
use super::header::{Compression, Header};
use super::window::Window;
use super::{ESCAPE, ESCAPE_BYTES};
use crate::codec::{Coder, Unpacked};
use crate::{Codec, Error, Limits, Result, crc};
use std::path::Path;
use std::sync::Arc;
use trawl_io::{Fs, ReadAt, RealFs};

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// Offset of the record, of the escape before it, or of the block that holds it.
    pub offset: u64,
    /// Which record of the block, from 0.
    pub index: u32,
}

/// A key and a value, serialised and not compressed.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Where it lies.
    pub at: At,
    /// The key.
    pub key: &'a [u8],
    /// The value.
    pub value: &'a [u8],
}

/// Bytes `start..end` of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// How a file is opened.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The file system.
    pub fs: Arc<dyn Fs>,
    /// Whether reads are checked against a `.crc` file beside the data, if there is one.
    pub verify_checksums: bool,
    /// What a file may claim.
    pub limits: Limits,
    /// Bytes read at once.
    pub read_bytes: u64,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions { fs: Arc::new(RealFs), verify_checksums: true, limits: Limits::default(), read_bytes: 256 << 10 }
    }
}

impl OpenOptions {
    /// Opens a file at its first record.
    pub fn open(&self, path: &Path) -> Result<Reader> {
        let (file, raw) = crc::open_both(&*self.fs, path, self.verify_checksums)?;
        self.over_both(file, raw)
    }

    /// Reads `file` from its first record.
    pub fn over(&self, file: Arc<dyn ReadAt>) -> Result<Reader> {
        self.over_both(file.clone(), file)
    }

    fn over_both(&self, file: Arc<dyn ReadAt>, raw: Arc<dyn ReadAt>) -> Result<Reader> {
        let header = Arc::new(Header::read(&*file)?);
        let codec = header.codec(file.name())?;
        Ok(Reader::new(file, raw, header, codec, self))
    }
}

/// Reads records one after another.
///
/// ```text
/// start --advance--> record --advance--> record … --advance--> end
///                      | error      a value that cannot be unpacked costs its record: advance moves on.
///                      |            any other damage stays where it is, every further call repeats it, until
///                      `--resync--> the next marker, or the end
/// ```
#[derive(Debug)]
pub struct Reader {
    header: Arc<Header>,
    window: Window,
    /// The file without its checksums. Markers are looked for in it: behind damage, a checked read of the damaged chunk would
    /// fail again and the search could never pass it.
    raw: Raw,
    limits: Limits,
    coder: Option<Coder>,
    /// Escapes at or behind this offset belong to another split.
    end: u64,
    block: Block,
    unpacked: Unpacked,
    current: Current,
    /// Where the record ends whose bytes failed their checksum while its lengths did not.
    behind: Option<u64>,
}

/// The record the reader stands on, in a file without blocks: lengths at the window's cursor.
#[derive(Debug, Clone, Copy, Default)]
struct Current {
    at: u64,
    key_len: usize,
    stored_len: usize,
    /// Whether `unpacked` has its value.
    loaded: bool,
    /// Whether there is a record.
    valid: bool,
}

struct Raw(Arc<dyn ReadAt>);

impl std::fmt::Debug for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Raw({})", self.0.name().display())
    }
}

/// Bytes of the two lengths in front of a record.
const LENGTHS: usize = 8;

impl Reader {
    fn new(
        file: Arc<dyn ReadAt>,
        raw: Arc<dyn ReadAt>,
        header: Arc<Header>,
        codec: Option<Codec>,
        options: &OpenOptions,
    ) -> Self {
        let mut window = Window::new(file, options.read_bytes);
        window.seek(header.end);
        Reader {
            header,
            window,
            raw: Raw(raw),
            limits: options.limits,
            coder: codec.map(Coder::new),
            end: u64::MAX,
            block: Block::default(),
            unpacked: Unpacked::default(),
            current: Current::default(),
            behind: None,
        }
    }

    /// Opens a file with the default options.
    pub fn open(path: &Path) -> Result<Self> {
        OpenOptions::default().open(path)
    }

    /// What the file says of itself.
    pub fn header(&self) -> &Arc<Header> {
        &self.header
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        self.window.file().name()
    }

    pub(super) fn file(&self) -> &Arc<dyn ReadAt> {
        self.window.file()
    }

    /// Length of the file in bytes.
    pub fn file_len(&self) -> u64 {
        self.window.file().len()
    }

    /// The next record; `None` at the end.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        self.record().map(Some)
    }

    /// The record the reader stands on, with its value unpacked.
    pub fn record(&mut self) -> Result<Record<'_>> {
        self.load_value()?;
        Ok(self.loaded_record())
    }

    /// The same for a record whose value was asked for already: of one that was not, the value is none or another's.
    pub fn loaded_record(&self) -> Record<'_> {
        Record { at: self.at(), key: self.key(), value: self.loaded_value() }
    }

    /// Moves to the next record; false at the end. Values of blocks and records stay packed until asked for.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        match self.header.compression {
            Compression::Block => self.advance_in_blocks(),
            _ => self.advance_in_records(),
        }
    }

    /// Where the current record lies.
    pub fn at(&self) -> At {
        match self.header.compression {
            Compression::Block => At { offset: self.block.offset, index: self.block.index() },
            _ => At { offset: self.current.at, index: 0 },
        }
    }

    /// The current key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.header.compression {
            Compression::Block => self.block.key(),
            _ => self.window.shown(0, self.current.key_len),
        }
    }

    /// The current value.
    pub fn value(&mut self) -> Result<&[u8]> {
        self.load_value()?;
        Ok(self.loaded_value())
    }

    fn loaded_value(&self) -> &[u8] {
        match self.header.compression {
            Compression::Block => self.block.value(),
            Compression::Record => self.unpacked.bytes(),
            Compression::None => self.window.shown(self.current.key_len, self.current.stored_len),
        }
    }

    #[inline]
    fn load_value(&mut self) -> Result<()> {
        let Some(coder) = &mut self.coder else { return Ok(()) };
        if self.header.compression == Compression::Block {
            return self.block.load_value(&mut self.window, coder, &self.limits);
        }
        if !self.current.loaded {
            let stored = self.window.shown(self.current.key_len, self.current.stored_len);
            let unpacked = coder.unpack(stored, self.limits.unpacked_bytes, &mut self.unpacked);
            unpacked.map_err(|e| stream_error(self.window.file().name(), self.current.at, "a value", e))?;
            self.current.loaded = true;
        }
        Ok(())
    }

    fn advance_in_blocks(&mut self) -> Result<bool> {
        loop {
            let path = self.window.file().name();
            if self.block.advance(path)? {
                return Ok(true);
            }
            let offset = self.window.position();
            // The block is left behind, so that a resync behind an escape that cannot be read looks behind that escape.
            self.block.reset(offset);
            if self.window.left() == 0 || offset >= self.end {
                return Ok(false);
            }
            self.window.peek(4, "a sync escape")?;
            if self.i32_at(0) != ESCAPE {
                let found = format!("{}", self.i32_at(0));
                return Err(Error::corrupt(self.path(), offset, "a sync escape (-1)", found));
            }
            self.check_marker(offset)?;
            self.window.advance(ESCAPE_BYTES as usize);
            let Some(coder) = &mut self.coder else { return Ok(false) };
            // A writer may close a file with a bare escape.
            if self.window.left() == 0 {
                return Ok(false);
            }
            if let Err(e) = self.block.read(offset, &mut self.window, coder, &self.limits) {
                self.window.seek(offset);
                self.block.reset(offset);
                return Err(e);
            }
        }
    }

    #[inline]
    fn advance_in_records(&mut self) -> Result<bool> {
        // Leave the record behind; nothing was taken of it if it could not be read.
        self.window.advance(self.current.key_len + self.current.stored_len);
        self.current = Current::default();
        self.behind = None;
        let start = self.window.position();
        let mut escape = 0;
        if self.window.left() == 0 {
            return Ok(false);
        }
        self.window.peek(4, "the length of a record")?;
        if self.i32_at(0) == ESCAPE && self.header.marker.is_some() {
            if start >= self.end {
                return Ok(false);
            }
            self.check_marker(start)?;
            escape = ESCAPE_BYTES as usize;
            // An escape may be the last thing in a file.
            if self.window.left() == escape as u64 {
                self.window.advance(escape);
                return Ok(false);
            }
        }
        self.window.peek(escape + LENGTHS, "the lengths of a record")?;
        let (total, key_len) = (self.i32_at(escape), self.i32_at(escape + 4));
        let at = start + escape as u64;
        let (Ok(total_len), Ok(key_len)) = (usize::try_from(total), usize::try_from(key_len)) else {
            return Err(Error::corrupt(self.path(), at, "lengths of a record", format!("{total} and {key_len}")));
        };
        let Some(stored_len) = total_len.checked_sub(key_len) else {
            let found = format!("a key of {key_len} bytes in a record of {total_len}");
            return Err(Error::corrupt(self.path(), at, "a key within its record", found));
        };
        if total_len as u64 > self.limits.stored_bytes {
            let (claimed, limit) = (total_len as u64, self.limits.stored_bytes);
            let path = self.path().into();
            return Err(trawl_io::Error::OverLimit { path, offset: at, what: "record", claimed, limit }.into());
        }
        let whole = escape + LENGTHS + total_len;
        if let Err(error) = self.window.peek(whole, "a record") {
            // The lengths passed their checksum, so that the next record is found by them.
            let is_checksum = matches!(error, Error::Io(trawl_io::Error::Corrupt { .. }));
            self.behind = is_checksum.then_some(start + whole as u64);
            return Err(error);
        }
        self.window.advance(escape + LENGTHS);
        self.current = Current { at: start, key_len, stored_len, loaded: false, valid: true };
        Ok(true)
    }

    #[inline]
    fn i32_at(&self, offset: usize) -> i32 {
        self.window.shown(offset, 4).first_chunk().map_or(0, |b| i32::from_be_bytes(*b))
    }

    fn check_marker(&mut self, at: u64) -> Result<()> {
        let found = self.window.peek(ESCAPE_BYTES as usize, "a sync escape")?.get(4..).unwrap_or_default();
        if self.header.marker.as_ref().is_some_and(|marker| marker == found) {
            return Ok(());
        }
        let found = data_encoding::HEXLOWER.encode(found);
        Err(Error::corrupt(self.path(), at, "the sync marker of the header", found))
    }

    /// Whether the reader stands on a record.
    pub fn has_record(&self) -> bool {
        match self.header.compression {
            Compression::Block => self.block.has_record(),
            _ => self.current.valid,
        }
    }

    /// Continues at a place that [`Reader::at`] or an index gave: a record, an escape or a block.
    pub fn seek(&mut self, offset: u64) {
        self.current = Current::default();
        self.behind = None;
        self.block.reset(0);
        self.window.seek(offset.max(self.header.end));
    }

    /// Reads about `bytes` beyond what a record needs, until told otherwise: what lies between two entries of an index
    /// is then one read.
    pub(crate) fn set_read_bytes(&mut self, bytes: u64) {
        self.window.set_piece(bytes);
    }

    /// Limits the reader to a split: the records whose preceding escape begins in `span`, and for the span that holds the
    /// file's first byte also those before the first escape. Splits that tile a file yield each record once.
    pub fn split(&mut self, span: Span) -> Result<()> {
        self.end = span.end;
        if span.start == 0 {
            self.seek(0);
            return Ok(());
        }
        let found = self.find_marker(span.start)?;
        self.seek(found.filter(|at| *at < span.end).unwrap_or(self.file_len()));
        Ok(())
    }

    /// Moves on behind damage: behind a record whose key or value alone is damaged, else to the next escape. Returns what was
    /// passed over; the records in it are lost. At the end of the file the span ends there, and the next
    /// [`Reader::advance`] gives the end.
    pub fn resync(&mut self) -> Result<Span> {
        let start = self.window.position();
        if self.current.valid {
            let end = start + (self.current.key_len + self.current.stored_len) as u64;
            return Ok(Span { start: self.current.at, end });
        }
        if let Some(end) = self.behind {
            self.seek(end);
            return Ok(Span { start, end });
        }
        // Behind a block that was read to its end the next escape begins right here.
        let behind_block = self.header.compression == Compression::Block && start > self.block.offset;
        let found = self.find_marker(if behind_block { start } else { start.saturating_add(1) });
        // Also where the search itself fails: a caller that reports the error and reads on comes to an end.
        let end = found.as_ref().ok().copied().flatten().unwrap_or(self.file_len());
        self.seek(end);
        found.map(|_| Span { start, end })
    }

    /// The offset of the first escape that begins at or behind `from`.
    pub fn find_marker(&self, from: u64) -> Result<Option<u64>> {
        const PIECE: u64 = 1 << 20;
        let Some(marker) = self.header.marker else { return Ok(None) };
        let finder = memchr::memmem::Finder::new(&marker);
        let file = &*self.raw.0;
        let mut at = from.max(self.header.end);
        while at + ESCAPE_BYTES <= file.len() {
            let end = at.saturating_add(PIECE).min(file.len());
            let piece = file.read_range(at..end)?;
            let mut skip = 0;
            while let Some(found) = piece.get(skip..).and_then(|rest| finder.find(rest)) {
                let marker_at = skip + found;
                // The marker counts only behind its -1: any other bytes are a coincidence, or a page that wants to be one.
                if let Some(escape) = marker_at.checked_sub(4)
                    && piece.get(escape..marker_at) == Some(&ESCAPE.to_be_bytes())
                {
                    return Ok(Some(at + escape as u64));
                }
                skip = marker_at + 1;
            }
            if end == file.len() {
                break;
            }
            at = end - (ESCAPE_BYTES - 1);
        }
        Ok(None)
    }
}
