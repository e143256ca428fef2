//! Lines of a text file: plain files in splits, compressed ones as a whole.

use super::BadItem;
use super::grown::Start;
use flate2::read::MultiGzDecoder;
use std::borrow::Cow;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::{File, Fs, Mode};
use trawl_model::{Advice, DoorError, Grown, Items, Place, SourceIdentity, Split, Stamp, UrlRecord};
use xxhash_rust::xxh3::Xxh3;

/// Longest line that is read; a longer one is an item that is none.
pub(crate) const MAX_LINE: usize = 4 << 20;
const BUFFER: usize = 256 << 10;
/// U+FEFF, which some programs put before a UTF-8 text. It is no part of the first line.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";
/// Largest window a zstd file may ask for, as a power of two: 128 MiB, what `zstd --long` writes.
const MAX_ZSTD_WINDOW: u32 = 27;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, of any number of members.
    Gzip,
    /// zstd, of any number of frames.
    Zstd,
}

impl Compression {
    /// What the first `bytes` of such a file look like: too few do not tell.
    pub(crate) fn of_first(self, bytes: u64) -> Self {
        match self {
            Compression::Gzip if bytes < 2 => Compression::None,
            Compression::Zstd if bytes < 4 => Compression::None,
            other => other,
        }
    }
}

/// A file that is a source: as many bytes of it as its identity says, however long it has become since.
#[derive(Debug, Clone)]
pub(crate) struct SourceFile {
    pub fs: Arc<dyn Fs>,
    pub path: PathBuf,
    pub compression: Compression,
    pub identity: SourceIdentity,
    /// What its file system says of it.
    pub stamp: Option<Stamp>,
    /// From where on it is read.
    pub start: Start,
    /// What it was, if it is read from there on since the rest is known.
    pub grown: Option<Grown>,
    /// What the dataset had of its name, if that was told.
    pub known_by_name: Option<Vec<SourceIdentity>>,
}

impl SourceFile {
    /// Opens a file and hashes it: a source is the same one if its bytes are.
    #[cfg(test)]
    pub fn open(fs: Arc<dyn Fs>, path: &Path, compression: Compression) -> trawl_io::Result<Self> {
        Ok(Self::open_marked(fs, path, compression, &[])?.0)
    }

    /// As `open`, and hashes how the file begins: as much of it as each of `marks` says. Those that are longer than the file
    /// are left out; they must rise.
    pub fn open_marked(
        fs: Arc<dyn Fs>,
        path: &Path,
        compression: Compression,
        marks: &[u64],
    ) -> trawl_io::Result<(Self, Vec<String>)> {
        let file = fs.open(path, Mode::Read)?;
        let mut hasher = Xxh3::new();
        let mut buffer = vec![0; BUFFER];
        let (mut size, mut tags) = (0u64, Vec::new());
        let mut marks = marks.iter().copied().peekable();
        loop {
            while marks.next_if_eq(&size).is_some() {
                tags.push(tag(&hasher));
            }
            let room = marks.peek().map_or(usize::MAX, |mark| usize::try_from(mark - size).unwrap_or(usize::MAX));
            match file.read_at(size, buffer.get_mut(..room.min(BUFFER)).unwrap_or_default())? {
                0 => break,
                n => {
                    hasher.update(buffer.get(..n).unwrap_or_default());
                    size += n as u64;
                }
            }
        }
        let uri = path.to_string_lossy().into_owned();
        let identity = SourceIdentity { uri, size, tag: tag(&hasher) };
        Ok((Self::new(fs, path, compression, identity, None), tags))
    }

    /// A file that is known without reading it.
    pub fn new(
        fs: Arc<dyn Fs>,
        path: &Path,
        compression: Compression,
        identity: SourceIdentity,
        stamp: Option<Stamp>,
    ) -> Self {
        let path = path.into();
        Self { fs, path, compression, identity, stamp, start: Start::default(), grown: None, known_by_name: None }
    }

    pub fn file(&self) -> Result<Box<dyn File>, DoorError> {
        self.fs.open(&self.path, Mode::Read).map_err(|e| DoorError::new(Advice::Stop, e))
    }

    /// Newline-aligned parts of a plain file; one part of a compressed one.
    pub fn splits(&self, target_bytes: u64) -> Vec<Split> {
        let size = self.identity.size;
        if self.compression != Compression::None {
            return vec![Split { start: 0, end: size }];
        }
        let target = target_bytes.max(1);
        // A first line that begins behind a mark of the byte order is found by reading from the mark.
        let first = if self.start.at <= BOM.len() as u64 { 0 } else { self.start.at };
        let starts = (0..size.saturating_sub(first).div_ceil(target)).map(|i| first + i * target);
        starts.map(|start| Split { start, end: size.min(start.saturating_add(target)) }).collect()
    }

    /// The contents from `start` on, decompressed.
    pub fn reader(&self, start: u64) -> Result<Box<dyn Read>, DoorError> {
        let raw = FileReader { file: self.file()?, at: start, end: self.identity.size };
        Ok(match self.compression {
            Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, raw))),
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(BUFFER, raw));
                let mut decoder = decoder.map_err(|e| DoorError::new(Advice::Stop, e))?;
                decoder.window_log_max(MAX_ZSTD_WINDOW).map_err(|e| DoorError::new(Advice::Stop, e))?;
                Box::new(decoder)
            }
        })
    }

    /// Hands over every line that begins in `split`, without its line end, and its offset (in the decompressed file).
    pub fn lines(
        &self,
        split: Split,
        each: &mut dyn FnMut(u64, Line<'_>) -> Result<(), DoorError>,
    ) -> Result<(), DoorError> {
        let whole = self.compression != Compression::None;
        // One byte before the split tells whether a line begins right at it.
        let start = if whole { 0 } else { split.start.saturating_sub(1) };
        let mut lines = LineReader::new(self.reader(start)?, start);
        if !whole && split.start > 0 {
            lines.next_line().map_err(|e| self.failed(start, e))?;
        }
        loop {
            let at = lines.offset();
            if !whole && at >= split.end {
                return Ok(());
            }
            match lines.next_line().map_err(|e| self.failed(at, e))? {
                None => return Ok(()),
                Some(Line::Whole(line)) if at == 0 && line.starts_with(BOM) => {
                    each(BOM.len() as u64, Line::Whole(line.get(BOM.len()..).unwrap_or_default()))?;
                }
                Some(line) => each(at, line)?,
            }
        }
    }

    /// Lets `each` have what is not known yet.
    pub fn fresh<'a, 'b>(
        &self,
        each: &'a mut Items<'b>,
    ) -> impl FnMut(u64, Result<UrlRecord, DoorError>) -> Result<(), DoorError> + use<'a, 'b> {
        let mut start = self.start;
        move |at, item| if start.passes(at, item.is_ok()) { each(at, item) } else { Ok(()) }
    }

    pub fn place(&self, offset: u64, length: usize) -> Place {
        Place::new(&*self.identity.uri, offset, length as u64)
    }

    fn failed(&self, at: u64, error: io::Error) -> DoorError {
        DoorError::new(Advice::Stop, error).at(self.place(at, 0))
    }
}

fn tag(hasher: &Xxh3) -> String {
    format!("xxh3:{:016x}", hasher.digest())
}

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Its bytes, without line end and carriage return.
    Whole(&'a [u8]),
    /// Longer than [`MAX_LINE`]; it was skipped, and this is how it begins.
    TooLong(&'a [u8]),
}

struct FileReader {
    file: Box<dyn File>,
    at: u64,
    end: u64,
}

impl Read for FileReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX).min(buf.len());
        let n = self.file.read_at(self.at, buf.get_mut(..left).unwrap_or_default())?;
        self.at += n as u64;
        Ok(n)
    }
}

/// Cuts a stream into lines within bounded memory.
pub(crate) struct LineReader<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Where the unread part of the buffer begins.
    from: usize,
    /// Up to where the unread part is known to have no line end.
    searched: usize,
    offset: u64,
    ended: bool,
    /// The beginning of a line that is too long.
    head: Vec<u8>,
}

impl<R: Read> LineReader<R> {
    pub fn new(inner: R, offset: u64) -> Self {
        Self { inner, buffer: Vec::new(), from: 0, searched: 0, offset, ended: false, head: Vec::new() }
    }

    /// Offset of the next line.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut too_long = false;
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let found = memchr::memchr(b'\n', unsearched).map(|at| self.searched + at);
            if let Some(end) = found {
                return Ok(Some(self.cut(end, 1, too_long)));
            }
            self.searched = self.buffer.len();
            if self.ended {
                let left = self.searched > self.from || too_long;
                return Ok(left.then(|| self.cut(self.buffer.len(), 0, too_long)));
            }
            if self.searched - self.from > MAX_LINE {
                // Forget what there is of it, but remember how it began.
                if !too_long {
                    let line = self.buffer.get(self.from..).unwrap_or_default();
                    self.head = line.get(..BadItem::MAX_TEXT).unwrap_or(line).to_vec();
                }
                too_long = true;
                self.offset += (self.searched - self.from) as u64;
                self.from = self.searched;
            }
            self.fill()?;
        }
    }

    fn cut(&mut self, end: usize, line_end: usize, too_long: bool) -> Line<'_> {
        let start = self.from;
        self.from = end + line_end;
        self.searched = self.from;
        self.offset += (self.from - start) as u64;
        if too_long {
            return Line::TooLong(&self.head);
        }
        let line = self.buffer.get(start..end).unwrap_or_default();
        Line::Whole(line.strip_suffix(b"\r").unwrap_or(line))
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.from);
        self.searched -= self.from;
        self.from = 0;
        let len = self.buffer.len();
        self.buffer.resize(len + BUFFER, 0);
        let read = loop {
            match self.inner.read(self.buffer.get_mut(len..).unwrap_or_default()) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
        self.ended = read? == 0;
        Ok(())
    }
}

/// A URL in bytes as text; what is no UTF-8 is escaped as a URL would.
pub(crate) fn text_of(line: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut out = String::with_capacity(line.len() + 16);
            for chunk in line.utf8_chunks() {
                out.push_str(chunk.valid());
                chunk.invalid().iter().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
            }
            Cow::Owned(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all_lines(bytes: &[u8]) -> Vec<(u64, Option<Vec<u8>>)> {
        let mut reader = LineReader::new(bytes, 0);
        let mut out = Vec::new();
        loop {
            let at = reader.offset();
            match reader.next_line().unwrap() {
                None => return out,
                Some(Line::Whole(line)) => out.push((at, Some(line.to_vec()))),
                Some(Line::TooLong(head)) => {
                    assert_eq!(head, [b'x'; BadItem::MAX_TEXT]);
                    out.push((at, None));
                }
            }
        }
    }

    #[test]
    fn lines_and_their_offsets() {
        assert_eq!(all_lines(b""), []);
        let line = |at, text: &[u8]| (at, Some(text.to_vec()));
        assert_eq!(all_lines(b"a\r\n\nbc"), [line(0, b"a"), line(3, b""), line(4, b"bc")]);
        assert_eq!(all_lines(b"a\n"), [line(0, b"a")]);
        let long = vec![b'x'; MAX_LINE * 3];
        let text = [b"a\n", &long[..], b"\nb\n", &long[..]].concat();
        let after = MAX_LINE as u64 * 3 + 3;
        assert_eq!(all_lines(&text), [line(0, b"a"), (2, None), line(after, b"b"), (after + 2, None)]);
    }

    fn source(bytes: &[u8], compression: Compression) -> SourceFile {
        let fs = trawl_io::fault::FaultFs::new().shared();
        fs.open(Path::new("f"), Mode::Truncate).unwrap().write_at(0, bytes).unwrap();
        SourceFile::open(fs, Path::new("f"), compression).unwrap()
    }

    fn read_splits(source: &SourceFile, target: u64) -> Vec<(u64, Vec<u8>)> {
        let mut out = Vec::new();
        for split in source.splits(target) {
            source
                .lines(split, &mut |at, line| {
                    if let Line::Whole(line) = line {
                        out.push((at, line.to_vec()));
                    }
                    Ok(())
                })
                .unwrap();
        }
        out
    }

    proptest! {
        #[test]
        fn splits_together_are_the_whole(text in "[ab\n]{0,40}", target in 1u64..50) {
            let source = source(text.as_bytes(), Compression::None);
            prop_assert_eq!(read_splits(&source, target), read_splits(&source, u64::MAX));
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line_and_of_that_alone() {
        let text = b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n";
        let expected = [(3, b"a".to_vec()), (5, b"\xef\xbb\xbfb".to_vec())];
        for target in [1, 2, 3, 4, 100] {
            assert_eq!(read_splits(&source(text, Compression::None), target), expected, "{target}");
        }
        let zst = zstd::encode_all(&text[..], 1).unwrap();
        assert_eq!(read_splits(&source(&zst, Compression::Zstd), 100), expected);
        assert_eq!(read_splits(&source(b"\xef\xbb", Compression::None), 100), [(0, b"\xef\xbb".to_vec())]);
    }

    #[test]
    fn compressed_files_read_alike_and_cut_ones_fail() {
        let text = "http://a.com/\n".repeat(50_000);
        let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut gz, text.as_bytes()).unwrap();
        let gz = [&gz.finish().unwrap()[..]; 2].concat();
        let plain = read_splits(&source(text.as_bytes(), Compression::None), 1000);
        assert_eq!(plain.len(), 50_000);
        assert_eq!(read_splits(&source(&zst, Compression::Zstd), 1000), plain);
        assert_eq!(read_splits(&source(&gz, Compression::Gzip), 1000).len(), 100_000, "every gzip member counts");
        for (bytes, compression) in [(zst, Compression::Zstd), (gz, Compression::Gzip)] {
            let source = source(&bytes[..bytes.len() - 5], compression);
            let split = source.splits(1)[0];
            assert!(source.lines(split, &mut |_, _| Ok(())).is_err(), "{compression:?}");
        }
    }

    #[test]
    fn identity_follows_the_bytes() {
        let of = |bytes: &[u8]| source(bytes, Compression::None).identity;
        assert_eq!(of(b"a"), of(b"a"));
        assert_ne!(of(b"a").tag, of(b"b").tag);
        assert_eq!(of(b"abc").size, 3);
    }
}
