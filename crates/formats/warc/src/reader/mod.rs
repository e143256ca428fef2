//! Reads records one after another, from any container, front to back or from an offset.
//!
//! ```text
//! next_record ─► header ─► block (streams) ─► finish: rest of the block, CR LF CR LF, stored length
//!      │ damage
//!      └─► error once, then the end; or recover(): the next record that is whole
//! ```

mod at;
mod record;
mod recover;

pub use at::RecordFile;
pub use record::{Finished, Record};
pub use recover::Gap;

use crate::arc::{ArcState, arc_line_begins};
use crate::container::{Compression, Container, Input, Window};
use crate::error::{At, Error, Result};
use crate::header::{BEGINNING_BYTES, RecordHeader, begins_record, may_begin_record};
use crate::limits::{Limits, Step};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use trawl_io::ReadAt;

/// Something a lenient reader accepted although the standard does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub at: At,
    /// What.
    pub what: String,
}

/// Bytes of a member in which the line of an ARC record is looked for.
const ARC_LINE_BYTES: usize = 4 << 10;

type OnWarning = Box<dyn FnMut(Warning) + Send>;

/// Options of a reader.
#[derive(Default)]
pub struct ReaderBuilder {
    limits: Limits,
    lenient: bool,
    on_warning: Option<OnWarning>,
}

impl ReaderBuilder {
    /// Sets the limits; [`Limits::default`] otherwise.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Accepts what is wrong but harmless, and reports it; strict otherwise.
    #[must_use]
    pub fn lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// Called with every oddity that a lenient reader accepts.
    #[must_use]
    pub fn on_warning(mut self, tell: impl FnMut(Warning) + Send + 'static) -> Self {
        self.on_warning = Some(Box::new(tell));
        self
    }

    /// Opens a file of the machine.
    pub fn open(self, path: &Path) -> Result<WarcReader> {
        let file = trawl_io::read_at::FileReader::open(path)?;
        Ok(self.over(Arc::new(file)))
    }

    /// Reads anything with offsets; the name for messages and places is its own.
    pub fn over(self, file: Arc<dyn ReadAt>) -> WarcReader {
        self.over_from(file, 0)
    }

    /// [`ReaderBuilder::over`], beginning with the record at `offset`.
    pub fn over_from(self, file: Arc<dyn ReadAt>, offset: u64) -> WarcReader {
        let name: Arc<str> = file.name().to_string_lossy().into();
        let base: Arc<str> = match file.name().file_name() {
            Some(base) => base.to_string_lossy().into(),
            None => name.clone(),
        };
        WarcReader::new(self, Window::new(Input::At(file), name, offset), base)
    }

    /// Reads a stream called `name`.
    pub fn from_read(self, stream: impl Read + Send + 'static, name: &str) -> WarcReader {
        let name: Arc<str> = name.into();
        WarcReader::new(self, Window::new(Input::Stream(Box::new(stream)), name.clone(), 0), name)
    }
}

/// What the reader is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a record.
    Between,
    /// In a block with this many bytes left.
    Block(u64),
    /// After damage: only `recover` leads on.
    Damaged,
}

/// Reads the records of a WARC or ARC file.
pub struct WarcReader {
    container: Container,
    limits: Limits,
    lenient: bool,
    on_warning: Option<OnWarning>,
    base_name: Arc<str>,
    header: RecordHeader,
    state: State,
    /// Where the current record begins.
    start: At,
    /// Whether `header` is that of the current record.
    has_header: bool,
    /// How many records began before the current one in the member where it begins.
    index: u32,
    /// Whether a record went on from one member into the next.
    spread: bool,
    /// Whether a record began behind the start of a member: then the way on after damage may lie inside one.
    shared: bool,
    /// Whether members and plain records were found in one file.
    mixed: bool,
    /// Whether the current record is followed by others in order, so that those of a member can be counted.
    counts: bool,
    /// Damage of a member behind the last of several records in it, all of which could be read.
    damage_behind: Option<Error>,
    /// How far blocks of records reached that turned out to be damaged, in an uncompressed file. A record that begins before is
    /// not believed its length before its end was looked at: each of many could claim most of the file.
    doubted: u64,
    arc: Option<ArcState>,
}

impl WarcReader {
    /// Options for a reader.
    pub fn builder() -> ReaderBuilder {
        ReaderBuilder::default()
    }

    fn new(options: ReaderBuilder, window: Window, base_name: Arc<str>) -> Self {
        WarcReader {
            container: Container::new(window, options.limits),
            limits: options.limits,
            lenient: options.lenient,
            on_warning: options.on_warning,
            base_name,
            header: RecordHeader::default(),
            state: State::Between,
            start: At::default(),
            has_header: false,
            index: 0,
            spread: false,
            shared: false,
            mixed: false,
            counts: false,
            damage_behind: None,
            doubted: 0,
            arc: None,
        }
    }

    /// How the file is stored, once a record was read.
    pub fn compression(&self) -> Compression {
        self.container.compression()
    }

    /// Whether the file turned out to be an ARC file.
    pub fn is_arc(&self) -> bool {
        self.arc.is_some()
    }

    /// Whether a record of a compressed file went on from one member into the next: such records cannot be read alone.
    pub fn is_spread(&self) -> bool {
        self.spread
    }

    /// Stored bytes read so far: for progress.
    pub fn stored_offset(&self) -> u64 {
        self.container.stored_offset()
    }

    /// The next record; `None` at the end. After an error, `None` unless [`WarcReader::recover`] finds a way on.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>> {
        if self.state == State::Damaged {
            return Ok(None);
        }
        match self.advance() {
            Ok(true) => Ok(Some(Record { reader: self })),
            Ok(false) => Ok(None),
            Err(e) => {
                self.state = State::Damaged;
                Err(e)
            }
        }
    }

    fn advance(&mut self) -> Result<bool> {
        if let State::Block(_) = self.state {
            self.finish_record()?;
        }
        self.has_header = false;
        if let Some(damage) = self.damage_behind.take() {
            return Err(damage);
        }
        if !self.next_start()? {
            return Ok(false);
        }
        let start = self.container.at();
        let follows = self.counts && self.compression() != Compression::None && start.offset == self.start.offset;
        self.index = if follows { self.index.saturating_add(1) } else { 0 };
        self.start = start;
        self.shared |= self.index > 0;
        if self.arc.is_some() || self.looks_like_arc()? {
            return self.arc_record();
        }
        self.warc_header()?;
        Ok(true)
    }

    /// Goes to the first byte of the next record, into the next member if need be.
    fn next_start(&mut self) -> Result<bool> {
        loop {
            // A record never begins with a blank line; writers that add one too many are common enough.
            let blank = self.line_ends()?;
            if blank == 0 && self.lenient && self.is_stored_otherwise()? {
                continue;
            }
            let data = self.container.data();
            if blank > 0 && (self.lenient || self.arc.is_some()) {
                let at = self.container.at();
                self.container.consume(blank);
                if self.arc.is_none() {
                    self.warn(at, "blank lines before a record");
                }
                continue;
            }
            let (ended, zero) = (data.is_empty(), data.first() == Some(&0));
            let between = ended || zero && self.compression() == Compression::None;
            // Padding is what a torn write of a preallocated file leaves behind.
            if between && self.lenient && self.zeros_to_the_end()? {
                return Ok(false);
            }
            if !self.container.data().is_empty() {
                return Ok(true);
            }
            if !self.container.next_member()? {
                return Ok(false);
            }
            self.check_member()?;
        }
    }

    /// Whether the next record is stored otherwise than the one before, as in files that were put together with `cat`; the container
    /// then stands in front of it.
    fn is_stored_otherwise(&mut self) -> Result<bool> {
        let first = match self.container.peek_other(self.beginning_bytes()) {
            Err(e) if e.is_damage() => return Ok(false),
            first => first?,
        };
        // What is not the beginning of a record may be the rest of a damaged one.
        if !first.is_some_and(|first| self.begins(&first)) {
            return Ok(false);
        }
        self.container.forget_codec();
        self.mixed = true;
        self.warn(self.container.at(), "records are compressed otherwise than those before them");
        Ok(true)
    }

    /// Bytes by which [`WarcReader::begins`] can tell.
    fn beginning_bytes(&self) -> usize {
        if self.arc.is_some() { ARC_LINE_BYTES } else { BEGINNING_BYTES }
    }

    /// Whether bytes are the beginning of a record for certain.
    fn begins(&self, bytes: &[u8]) -> bool {
        if self.arc.is_some() { arc_line_begins(bytes) } else { begins_record(bytes) }
    }

    fn zeros_to_the_end(&mut self) -> Result<bool> {
        let at = At { offset: self.container.stored_offset(), ..self.container.at() };
        let window = self.container.window();
        if window.fill(1)?.first() != Some(&0) {
            return Ok(false);
        }
        while let data @ [_, ..] = window.fill(1)? {
            if data.iter().any(|b| *b != 0) {
                // The zeros are what cannot be read, not the record before them.
                self.start = at.clone();
                return Err(Error::corrupt(at, "a record or the end of the file", "zeros, then more"));
            }
            let n = data.len();
            window.consume(n);
        }
        self.warn(at, "zeros at the end of the file");
        Ok(true)
    }

    fn warc_header(&mut self) -> Result<()> {
        let mut want = 1;
        let used = loop {
            self.fill(want)?;
            let data = self.container.data();
            let found = data.len();
            match self.header.parse(data, &self.limits, self.lenient) {
                Ok(Step::Done { used, .. }) => break used,
                Ok(Step::NeedMore { at_least }) => {
                    if found < want {
                        let (at, found) = (self.start.clone(), found as u64);
                        return Err(Error::Truncated { at, expected: "a whole record header", found });
                    }
                    want = self.more_than(at_least);
                }
                Err(e) => return Err(e.within(&self.start)),
            }
        };
        for odd in self.header.oddities().to_vec() {
            self.warn(self.start.clone(), odd);
        }
        self.container.consume(used);
        self.begin_block(self.header.content_length())
    }

    fn begin_block(&mut self, length: u64) -> Result<()> {
        let limit = self.limits.block_bytes;
        if length > limit {
            return Err(Error::OverLimit { at: self.start.clone(), what: "record block", claimed: length, limit });
        }
        self.counts = true;
        self.has_header = true;
        self.state = State::Block(length);
        self.check_end(length)
    }

    /// Looks at where a block ends before it is read, in a file that is not compressed: one that claims more than the file has
    /// would be read to the end of the file, and the next one again.
    fn check_end(&mut self, length: u64) -> Result<()> {
        if self.compression() != Compression::None {
            return Ok(());
        }
        let (is_doubted, lenient) = (self.start.offset < self.doubted && self.arc.is_none(), self.lenient);
        let at = self.container.at();
        let window = self.container.window();
        let Some(file) = window.len() else { return Ok(()) };
        let from = window.offset();
        let end = from.saturating_add(length);
        if end > file {
            let (at, found) = (At { offset: file.max(from), ..at }, file.saturating_sub(from));
            return Err(Error::Truncated { at, expected: "the rest of a record block", found });
        }
        if !is_doubted {
            return Ok(());
        }
        let behind = window.peek(end)?;
        let ends = behind.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let is_end = behind.len() == ends || ends > 0 || may_begin_record(&behind);
        if behind.starts_with(b"\r\n\r\n") || lenient && is_end {
            return Ok(());
        }
        Err(Error::corrupt(At { offset: end, ..at }, "CR LF CR LF after the block", crate::error::shown(&behind)))
    }

    /// Reads what is left of the current record and says how long it is as stored.
    fn finish_record(&mut self) -> Result<Finished> {
        let State::Block(mut left) = self.state else {
            return Ok(Finished { length: 0, block_end: 0 });
        };
        if self.container.skip(left) {
            left = 0;
        }
        while left > 0 {
            let here = self.block_chunk(left)?.len();
            self.container.consume(here);
            left -= here as u64;
        }
        self.state = State::Between;
        let block_end = self.container.at().offset;
        if let Err(e) = self.record_end() {
            if self.compression() == Compression::None {
                self.doubted = self.doubted.max(block_end);
            }
            return Err(e);
        }
        // Driving the container to the member's end also checks its checksum. Which of several records a wrong one is about
        // is unknown: all of them are handed out, and then the damage.
        let (start, end) = (self.start.offset, self.container.at());
        match self.container.fill(1) {
            Err(e) if e.is_damage() && (self.index > 0 || end.offset > start) => self.damage_behind = Some(e),
            result => drop(result?),
        }
        let length = match self.compression() {
            Compression::None => end.offset - start,
            // The member behind the record's last byte was opened to see whether the record goes on there.
            _ if end.inside == 0 && end.offset > start => end.offset - start,
            _ => self.container.member_end()?.map_or(0, |end| end.saturating_sub(start)),
        };
        let plain = self.compression() == Compression::None;
        Ok(Finished { length, block_end: if plain { block_end - start } else { length } })
    }

    /// The next bytes of the block, of which `left` are still to come: at least one.
    fn block_chunk(&mut self, left: u64) -> Result<&[u8]> {
        let at = self.container.at();
        let total = self.header.content_length();
        self.fill(1)?;
        let data = self.container.data();
        if data.is_empty() {
            return Err(Error::Truncated {
                at,
                expected: "the rest of a record block",
                found: total.saturating_sub(left),
            });
        }
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(data.len());
        Ok(data.get(..n).unwrap_or_default())
    }

    /// Two line ends close a WARC record, one an ARC record.
    fn record_end(&mut self) -> Result<()> {
        if self.arc.is_some() {
            // ARC writers disagree about how many: in a member of its own all of them belong to the record. In a plain file the
            // others follow in `next_start`.
            let plain = self.compression() == Compression::None;
            while let n @ 1.. = self.line_ends()?.min(if plain { 1 } else { usize::MAX }) {
                self.container.consume(n);
                if plain {
                    break;
                }
            }
            return Ok(());
        }
        let at = self.container.at();
        let data = self.fill(4)?;
        if data.starts_with(b"\r\n\r\n") {
            self.container.consume(4);
            return Ok(());
        }
        let found = crate::error::shown(data.get(..4).unwrap_or(data));
        let ends = data.iter().take(4).take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let last = data.len() == ends;
        let next_fits = data.get(ends..).is_some_and(|rest| rest.len() >= 5 && may_begin_record(rest));
        if !self.lenient || !(last || ends > 0 || next_fits) {
            return Err(Error::corrupt(at, "CR LF CR LF after the block", found));
        }
        self.container.consume(ends);
        self.warn(at, "a block is not followed by CR LF CR LF");
        Ok(())
    }

    /// Unread bytes of the current record and what follows it: at least `want` of them unless the file ends sooner, or a member
    /// that is not followed by the rest of the record.
    pub(crate) fn fill(&mut self, want: usize) -> Result<&[u8]> {
        while self.container.fill(want)?.len() < want && self.join()? {}
        Ok(self.container.data())
    }

    /// Bytes to ask for where at least `want` are needed: of members of a few bytes, half as many again, or a header would be read
    /// from its start once for each of them.
    fn more_than(&self, want: usize) -> usize {
        if self.container.carries() { want.saturating_add(want / 2) } else { want }
    }

    /// Goes on into the next member, inside a record. Not if that one begins with a record: then it is this record that is cut,
    /// and everything behind it is sound.
    fn join(&mut self) -> Result<bool> {
        let next = match self.container.peek_next(self.beginning_bytes()) {
            Err(e) if e.is_damage() => return Ok(false),
            next => next?,
        };
        let Some(next) = next else { return Ok(false) };
        if self.begins(&next) || !self.container.join_next()? {
            return Ok(false);
        }
        self.check_member()?;
        // The empty member that ends a file of bgzip holds nothing of a record.
        self.spread |= !next.is_empty();
        self.shared |= self.spread;
        Ok(true)
    }

    /// Looks at what is odd about the member that was opened.
    fn check_member(&mut self) -> Result<()> {
        let Some(odd) = self.container.take_oddity() else { return Ok(()) };
        let at = self.container.at();
        if !self.lenient {
            return Err(Error::corrupt(at, "a gzip header with its checksum", odd));
        }
        self.warn(at, odd);
        Ok(())
    }

    /// How many of the bytes at hand are line ends.
    fn line_ends(&mut self) -> Result<usize> {
        Ok(self.container.fill(1)?.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count())
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether this reader has read a WARC record: then the file is not an ARC file.
    pub(crate) fn member_was_warc(&self) -> bool {
        !self.header.raw().is_empty()
    }

    pub(crate) fn arc_container(&mut self) -> &mut Container {
        &mut self.container
    }

    pub(crate) fn set_arc(&mut self) {
        self.arc = Some(ArcState);
    }

    /// Begins the block of an ARC record whose header was made up.
    pub(crate) fn set_arc_header(&mut self, raw: &[u8], length: u64) -> Result<()> {
        self.header.set(raw, &self.limits).map_err(|e| e.within(&self.start))?;
        self.begin_block(length)
    }

    /// The URL of the current record, if its header could be read.
    pub(crate) fn url_of_record(&self) -> Option<String> {
        self.header.target_uri().filter(|_| self.has_header).map(|url| url.into_owned())
    }

    /// Marks the current record as unreadable, so that [`WarcReader::recover`] looks for the next one.
    pub(crate) fn give_up(&mut self) {
        self.state = State::Damaged;
    }

    pub(crate) fn warn(&mut self, at: At, what: &str) {
        if let Some(tell) = &mut self.on_warning {
            tell(Warning { at, what: what.to_owned() });
        }
    }
}

#[cfg(test)]
mod tests;
