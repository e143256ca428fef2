//! Reads pieces of a body, checking the pages they lie in: each time where a read goes to the store, once where the file
//! is mapped or in memory.

use super::{FOOTER, MAGIC, PAGE};
use crate::{Blob, Error, Result};
use bytes::Bytes;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_io::crc::{crc32c, crc32c_of};
use trawl_io::slice::{SliceError, SliceReader};

const PAGE_U64: u64 = PAGE as u64;
/// First read of a file: its last bytes, enough for the checksums of 64 MiB.
const TAIL: u64 = 64 * 1024;

/// An open file: the checksums in memory, the body read on demand.
#[derive(Clone)]
pub struct PagedReader {
    source: Blob,
    body_len: u64,
    sums: Bytes,
    /// A bit for each page that was found good; none where every read brings other bytes. A lookup touches six pages,
    /// and checking them anew would be half its time.
    good: Option<Arc<[AtomicU64]>>,
}

impl PagedReader {
    /// Reads the checksums: one read, or two where there are many.
    pub fn open(source: impl Into<Blob>) -> Result<Self> {
        let source = source.into();
        let len = source.len();
        let name = source.name();
        let short = |wanted| Error::from(trawl_io::Error::Short { path: name.into(), offset: 0, wanted, found: len });
        let body_and_sums = len.checked_sub(FOOTER as u64).ok_or_else(|| short(FOOTER as u64))?;
        // b + 4 ceil(b / PAGE) grows with b, so the sum determines b.
        let pages = body_and_sums.div_ceil(PAGE_U64 + 4);
        let sums_len = pages * 4;
        let body_len = body_and_sums.checked_sub(sums_len).ok_or_else(|| short(sums_len))?;
        let tail_at = len.saturating_sub(TAIL).min(body_len);
        let tail = source.read_range(tail_at..len)?;
        let start = usize::try_from(body_len - tail_at).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(sums_len).unwrap_or(usize::MAX));
        let (sums, footer) =
            (tail.slice(start.min(tail.len())..end.min(tail.len())), tail.slice(end.min(tail.len())..));
        let Some((&claimed, rest)) = footer.split_first_chunk::<8>() else { return Err(short(len + 1)) };
        let (crc, magic) = rest.split_at_checked(4).unwrap_or_default();
        if magic != MAGIC {
            let found = format!("{magic:02x?}");
            return Err(Error::corrupt(name, len - 4, "page checksum magic \"TPCK\"", found));
        }
        if crc32c_of(&[&sums, &claimed]).to_le_bytes() != crc {
            return Err(Error::corrupt(name, body_len, "page checksums with their crc32c", "another checksum"));
        }
        if u64::from_le_bytes(claimed) != body_len || body_len.div_ceil(PAGE_U64) != pages {
            let found = format!("{} of {body_and_sums}", u64::from_le_bytes(claimed));
            return Err(Error::corrupt(name, len - FOOTER as u64, "the length of the body", found));
        }
        let words = usize::try_from(pages.div_ceil(64)).unwrap_or(0);
        let good = (!source.is_remote()).then(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        Ok(Self { source, body_len, sums, good })
    }

    /// Opens a body that begins with a magic and a version, which `what` names, and ends with a footer: gives where that
    /// begins, and its bytes.
    pub(crate) fn open_framed(
        source: impl Into<Blob>,
        magic: [u8; 4],
        version: u32,
        what: &'static str,
        footer_len: u64,
    ) -> Result<(Self, u64, Bytes)> {
        const HEADER: u64 = 4 + 4;
        let file = Self::open(source)?;
        let (name, len) = (file.name(), file.len());
        let footer_at = len.checked_sub(footer_len).filter(|at| *at >= HEADER);
        let footer_at = footer_at.ok_or_else(|| Error::corrupt(name, 0, "a header and a footer", len))?;
        let [header, footer] = file.read_many(&[0..HEADER, footer_at..len])?.try_into().unwrap_or_default();
        let mut r = SliceReader::new(&header);
        let found = (r.array::<4>("magic"), r.u32("version"));
        if found != (Ok(magic), Ok(version)) {
            return Err(Error::corrupt(name, 0, what, format!("{found:02x?}")));
        }
        Ok((file, footer_at, footer))
    }

    /// What was parsed from its bytes; an error gets the name of the file.
    pub(crate) fn parsed<T>(&self, parse: impl FnOnce() -> Result<T, SliceError>) -> Result<T> {
        Ok(parse().map_err(|e| e.in_file(self.name()))?)
    }

    /// Bytes of the body.
    pub fn len(&self) -> u64 {
        self.body_len
    }

    /// The name of the file, for messages.
    pub fn name(&self) -> &Path {
        self.source.name()
    }

    /// The bytes of one range, every page it touches checked.
    pub fn read(&self, range: Range<u64>) -> Result<Bytes> {
        trawl_io::read_at::check_range(self.name(), self.body_len, &range)?;
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let aligned = self.aligned(&range);
        if let Some(bytes) = self.recall(&aligned) {
            return Ok(slice(&range, aligned.start, &bytes));
        }
        let bytes = self.source.read_range(aligned.clone())?;
        let cut = self.cut(&range, aligned.start, bytes.clone())?;
        self.remember(aligned.start, &bytes);
        Ok(cut)
    }

    /// As [`PagedReader::read`], borrowed where the file is mapped or in memory: a lookup makes six of these, and
    /// counting references to a map costs as much as reading it.
    pub fn piece(&self, range: Range<u64>) -> Result<Piece<'_>> {
        if let Some(all) = self.source.local() {
            let aligned = self.aligned(&range);
            let len = usize::try_from(aligned.end - aligned.start).unwrap_or(usize::MAX);
            if range.end <= self.body_len && self.known_good(aligned.start, len) {
                let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
                if let Some(bytes) = all.get(index(range.start)..index(range.end)) {
                    return Ok(Piece::Borrowed(bytes));
                }
            }
        }
        self.read(range).map(Piece::Read)
    }

    /// The bytes of many ranges, in one round.
    pub fn read_many(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        for range in ranges {
            trawl_io::read_at::check_range(self.name(), self.body_len, range)?;
        }
        let aligned: Vec<_> = ranges.iter().map(|r| self.aligned(r)).collect();
        let read = self.source.read_ranges(&aligned)?;
        ranges.iter().zip(aligned).zip(read).map(|((range, a), bytes)| self.cut(range, a.start, bytes)).collect()
    }

    /// Checks every page; faults go to `each` with their offset.
    pub fn check_all(&self, each: &mut dyn FnMut(Error)) {
        const STEP: u64 = 256 * PAGE_U64;
        for at in (0..self.body_len).step_by(256 * PAGE) {
            let end = (at + STEP).min(self.body_len);
            match self.source.read_range(at..end) {
                Ok(bytes) => self.pages(at, &bytes).for_each(|(at, ok)| {
                    if !ok {
                        each(self.bad_page(at));
                    }
                }),
                Err(e) => each(e.into()),
            }
        }
    }

    fn aligned(&self, range: &Range<u64>) -> Range<u64> {
        let start = range.start / PAGE_U64 * PAGE_U64;
        start..range.end.next_multiple_of(PAGE_U64).min(self.body_len).max(start)
    }

    fn cut(&self, range: &Range<u64>, at: u64, bytes: Bytes) -> Result<Bytes> {
        if !self.known_good(at, bytes.len()) {
            if let Some((at, _)) = self.pages(at, &bytes).find(|(_, ok)| !ok) {
                return Err(self.bad_page(at));
            }
            self.remember_good(at, bytes.len());
        }
        Ok(slice(range, at, &bytes))
    }

    /// Whole pages that were read and checked a moment ago.
    fn recall(&self, aligned: &Range<u64>) -> Option<Bytes> {
        let (key, caches) = self.source.cache()?;
        let mut pages = Self::numbers(aligned.start, aligned.end - aligned.start)
            .map(|page| caches.slices.get(&(*key, page)))
            .collect::<Option<Vec<_>>>()?;
        match pages.len() {
            1 => pages.pop(),
            _ => Some(pages.concat().into()),
        }
    }

    /// Keeps pages that were found good.
    fn remember(&self, at: u64, bytes: &Bytes) {
        let Some((key, caches)) = self.source.cache() else { return };
        for (i, page) in Self::numbers(at, bytes.len() as u64).enumerate() {
            let piece = bytes.slice((i * PAGE).min(bytes.len())..((i + 1) * PAGE).min(bytes.len()));
            // A copy: a slice would keep the whole reading alive.
            caches.slices.insert((*key, page), Bytes::copy_from_slice(&piece));
        }
    }

    /// Numbers of the pages of `len` bytes at `at`.
    fn numbers(at: u64, len: u64) -> impl Iterator<Item = usize> {
        let first = at / PAGE_U64;
        (first..first + len.div_ceil(PAGE_U64)).map(|page| usize::try_from(page).unwrap_or(usize::MAX))
    }

    /// The word and bit of each page of `len` bytes at `at`.
    fn bits(at: u64, len: usize) -> impl Iterator<Item = (usize, u64)> {
        Self::numbers(at, len as u64).map(|page| (page / 64, 1 << (page % 64)))
    }

    fn known_good(&self, at: u64, len: usize) -> bool {
        let Some(good) = &self.good else { return false };
        // Nothing else is published by these bits, so their order among other reads does not matter.
        Self::bits(at, len).all(|(word, bit)| good.get(word).is_some_and(|w| w.load(Ordering::Relaxed) & bit != 0))
    }

    fn remember_good(&self, at: u64, len: usize) {
        let Some(good) = &self.good else { return };
        for (word, bit) in Self::bits(at, len) {
            if let Some(word) = good.get(word) {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// Each page of `bytes`, which start at page-aligned `at`: its offset and whether its checksum holds.
    fn pages<'a>(&'a self, at: u64, bytes: &'a [u8]) -> impl Iterator<Item = (u64, bool)> + 'a {
        let first = usize::try_from(at / PAGE_U64 * 4).unwrap_or(usize::MAX);
        let sums = self.sums.get(first..).unwrap_or_default().chunks_exact(4);
        let offsets = (0..).map(move |i: u64| at + i * PAGE_U64);
        offsets.zip(bytes.chunks(PAGE).zip(sums)).map(|(at, (page, sum))| (at, crc32c(page).to_le_bytes() == sum))
    }

    fn bad_page(&self, at: u64) -> Error {
        Error::corrupt(self.name(), at, "a page with its crc32c", "another checksum")
    }
}

/// Bytes of a file, borrowed or read.
pub enum Piece<'a> {
    /// Part of a file that is mapped or in memory.
    Borrowed(&'a [u8]),
    /// Read just now, or a moment ago.
    Read(Bytes),
}

impl std::ops::Deref for Piece<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Piece::Borrowed(bytes) => bytes,
            Piece::Read(bytes) => bytes,
        }
    }
}

/// The part of `bytes`, which begin at `at`, that is in `range`.
fn slice(range: &Range<u64>, at: u64, bytes: &Bytes) -> Bytes {
    let start = usize::try_from(range.start - at).unwrap_or(usize::MAX).min(bytes.len());
    let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
    bytes.slice(start..start.saturating_add(len).min(bytes.len()))
}
