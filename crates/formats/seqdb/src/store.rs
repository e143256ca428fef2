//! A file that grows at its end: gathers appended bytes, changes bytes in place, and tidies the page cache behind it.
//!
//! ```text
//! 0 .......................... written ......... end
//! |  in the file               |  `tail`, memory |
//!       `patch`: a few bytes that must reach the file after the tail and before the superblock
//!       `late`: bytes that point at what is new, and must reach the file after the superblock
//! ```

use crate::{Error, Result, Settings};
use std::path::Path;
use trawl_io::{File, Hint};

/// The largest step in which a file grows, whatever it says of itself: room in advance is a favour, not a duty.
const MAX_STEP: u64 = 256 << 20;
/// Written bytes between two requests to drop pages.
const DROP_WINDOW: u64 = 8 << 20;

/// A length prefix that grew: readers must not see it before the bytes it counts.
#[derive(Debug)]
struct Patch {
    at: u64,
    bytes: [u8; 8],
    len: usize,
}

impl Patch {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// Changed bytes that are held back.
#[derive(Debug)]
struct Late {
    at: u64,
    bytes: Vec<u8>,
}

/// So many changes are held back at most: every read looks at them.
const MAX_LATE: usize = 32;

#[derive(Debug)]
pub(crate) struct Store {
    file: Box<dyn File>,
    written: u64,
    tail: Vec<u8>,
    patch: Option<Patch>,
    late: Vec<Late>,
    /// Bytes the file has, used or not.
    room: u64,
    /// The file grows to multiples of this.
    step: u64,
    buffer: usize,
    /// Drop pages behind the writer.
    drop_behind: bool,
    /// Up to here pages were asked to be dropped twice, and up to here once: the first request only starts write-back.
    dropped: u64,
    started: u64,
    /// Up to here everything was synced and dropped.
    tidy: u64,
    /// Something was written since the last sync.
    touched: bool,
    poisoned: bool,
}

impl Store {
    /// `end` is where the next byte is appended, `step` how the file grows (0 or 1: exactly).
    pub fn new(file: Box<dyn File>, room: u64, end: u64, step: u64, settings: &Settings) -> Self {
        Store {
            file,
            written: end,
            tail: Vec::new(),
            patch: None,
            late: Vec::new(),
            room,
            step: step.clamp(1, MAX_STEP),
            buffer: settings.buffer_bytes,
            drop_behind: !settings.data_caching,
            dropped: end,
            started: end,
            tidy: end,
            touched: false,
            poisoned: false,
        }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    pub fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Where the next byte goes.
    #[inline]
    pub fn end(&self) -> u64 {
        self.written + self.tail.len() as u64
    }

    /// How much of it is in the file.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether something was written, or is to be, since the last sync.
    pub fn touched(&self) -> bool {
        self.touched || !self.tail.is_empty() || self.patch.is_some() || !self.late.is_empty()
    }

    fn alive(&self) -> Result<()> {
        if self.poisoned { Err(Error::Poisoned { path: self.path().into() }) } else { Ok(()) }
    }

    /// Appends. After an error the end is where it was, or a part further: see [`Store::cut`].
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.tail.len() + bytes.len() > self.buffer {
            self.spill()?;
            if bytes.len() >= self.buffer {
                self.put(bytes)?;
                self.written += bytes.len() as u64;
                return Ok(());
            }
        }
        self.tail.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends zeros.
    pub fn append_zeros(&mut self, mut n: u64) -> Result<()> {
        let zeros = [0; 4096];
        while n > 0 {
            let part = zeros.get(..usize::try_from(n).unwrap_or(usize::MAX).min(zeros.len())).unwrap_or(&zeros);
            self.append(part)?;
            n -= part.len() as u64;
        }
        Ok(())
    }

    /// Takes back what was appended after `end`.
    pub fn cut(&mut self, end: u64) {
        match end.checked_sub(self.written).map(usize::try_from) {
            Some(keep) => self.tail.truncate(keep.unwrap_or(usize::MAX)),
            None => {
                self.tail.clear();
                self.written = end;
                self.dropped = self.dropped.min(end);
                self.started = self.started.min(end);
                self.tidy = self.tidy.min(end);
            }
        }
    }

    /// Forgets everything after `end`, and what should have been written with it.
    pub fn abandon(&mut self, end: u64) {
        self.patch = None;
        self.late.clear();
        self.cut(end);
    }

    /// Hands the gathered bytes to the file.
    pub fn spill(&mut self) -> Result<()> {
        self.alive()?;
        if self.tail.is_empty() {
            return Ok(());
        }
        let tail = std::mem::take(&mut self.tail);
        let result = self.put(&tail);
        self.tail = tail;
        result?;
        self.written += self.tail.len() as u64;
        self.tail.clear();
        self.drop_written()
    }

    /// Hands over everything, the patch last.
    pub fn flush(&mut self) -> Result<()> {
        self.spill()?;
        if let Some(patch) = &self.patch {
            self.touched = true;
            self.file.write_at(patch.at, patch.bytes())?;
            self.patch = None;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.alive()?;
        let end = self.written.saturating_add(bytes.len() as u64);
        if end > self.room {
            self.room = self.make_room(end)?;
        }
        self.touched = true;
        Ok(self.file.write_at(self.written, bytes)?)
    }

    /// Makes the file longer than `end` by up to a step, if there is space; returns how long it is, or is about to be.
    fn make_room(&self, end: u64) -> Result<u64> {
        // Writing makes the file longer by itself; only room in advance needs a call.
        let room = end.checked_next_multiple_of(self.step).unwrap_or(end);
        if room == end {
            return Ok(end);
        }
        match self.file.allocate(room) {
            Ok(()) => Ok(room),
            Err(e) if e.kind() == std::io::ErrorKind::StorageFull => Ok(end),
            Err(e) => Err(e.into()),
        }
    }

    /// Overwrites bytes before the end, at once where they are in the file.
    pub fn overwrite(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.alive()?;
        self.drop_patch(at, bytes)?;
        for late in &mut self.late {
            lay_over(&mut late.bytes, late.at, at, bytes);
        }
        let in_file = usize::try_from(self.written.saturating_sub(at)).unwrap_or(usize::MAX).min(bytes.len());
        let (filed, tailed) = bytes.split_at_checked(in_file).unwrap_or((bytes, &[]));
        if !filed.is_empty() {
            self.touched = true;
            self.file.write_at(at, filed)?;
        }
        if !tailed.is_empty() {
            let start = usize::try_from(at.saturating_sub(self.written)).unwrap_or(usize::MAX);
            if let Some(target) = self.tail.get_mut(start..).and_then(|t| t.get_mut(..tailed.len())) {
                target.copy_from_slice(tailed);
            }
        }
        Ok(())
    }

    /// Overwrites up to eight bytes, in the file only after what has been appended so far.
    pub fn overwrite_after_tail(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        if at >= self.written || bytes.len() > 8 {
            return self.overwrite(at, bytes);
        }
        // One at a time: another one's order to ours does not matter once both are in the file. And a patch lies wholly
        // in the file, so that reading knows where to look for it.
        if self.patch.as_ref().is_some_and(|p| p.at != at) {
            self.flush()?;
        } else if at + bytes.len() as u64 > self.written {
            self.spill()?;
        }
        let mut patch = Patch { at, bytes: [0; 8], len: bytes.len() };
        patch.bytes.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.patch = Some(patch);
        Ok(())
    }

    /// Overwrites bytes that are in the file once [`Store::flush_late`] is called; reading has them at once.
    pub fn overwrite_late(&mut self, at: u64, bytes: &[u8]) {
        // What takes an earlier one's place comes after all that was changed since: it may count that.
        self.late.retain(|late| late.at != at || late.bytes.len() != bytes.len());
        self.late.push(Late { at, bytes: bytes.to_vec() });
    }

    /// Whether enough is held back.
    #[inline]
    pub fn late_is_full(&self) -> bool {
        self.late.len() >= MAX_LATE
    }

    /// Hands over what was held back, in the order it came.
    pub fn flush_late(&mut self) -> Result<()> {
        self.alive()?;
        while let Some(late) = self.late.first() {
            self.touched = true;
            self.file.write_at(late.at, &late.bytes)?;
            self.late.remove(0);
        }
        Ok(())
    }

    /// A write over the patched bytes replaces the patch.
    fn drop_patch(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        match &self.patch {
            Some(p) if at < p.at + p.len as u64 && p.at < at.saturating_add(bytes.len() as u64) => self.flush(),
            _ => Ok(()),
        }
    }

    /// Fills `buf` from `at`; the caller keeps within the end.
    pub fn read(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        let in_file = usize::try_from(self.written.saturating_sub(at)).unwrap_or(usize::MAX).min(buf.len());
        let (filed, tailed) = buf.split_at_mut(in_file);
        if !filed.is_empty() {
            self.file.read_exact_at(at, filed)?;
            if let Some(patch) = &self.patch {
                lay_over(filed, at, patch.at, patch.bytes());
            }
            for late in &self.late {
                lay_over(filed, at, late.at, &late.bytes);
            }
        }
        if !tailed.is_empty() {
            let start = usize::try_from(at.saturating_sub(self.written)).unwrap_or(usize::MAX);
            match self.tail.get(start..).and_then(|t| t.get(..tailed.len())) {
                Some(found) => tailed.copy_from_slice(found),
                None => {
                    let (wanted, found) = (tailed.len() as u64, self.end().saturating_sub(at));
                    return Err(trawl_io::Error::Short { path: self.path().into(), offset: at, wanted, found }.into());
                }
            }
        }
        Ok(())
    }

    /// Writes the superblock, which lies before everything this type counts.
    pub fn write_head(&mut self, bytes: &[u8]) -> Result<()> {
        self.alive()?;
        self.touched = true;
        Ok(self.file.write_at(0, bytes)?)
    }

    /// Makes what is in the file durable. A failure is final: see [`Error::Poisoned`].
    pub fn sync(&mut self) -> Result<()> {
        self.alive()?;
        if let Err(e) = self.file.sync_data() {
            self.poisoned = true;
            return Err(e.into());
        }
        self.touched = false;
        Ok(())
    }

    /// Nothing on disk has to keep up: treat what was written as synced.
    pub fn skip_sync(&mut self) {
        self.touched = false;
    }

    /// Asks for pages to be dropped once a window's worth was written.
    fn drop_written(&mut self) -> Result<()> {
        if self.drop_behind && self.written.saturating_sub(self.started) >= DROP_WINDOW {
            self.file.advise(self.dropped..self.written, Hint::Done)?;
            self.dropped = self.started;
            self.started = self.written;
        }
        Ok(())
    }

    /// Drops what a sync has made clean.
    pub fn drop_synced(&mut self) -> Result<()> {
        if self.drop_behind {
            // From the start of its page: a page of which only a part is named stays.
            let page = self.tidy - self.tidy % 4096;
            self.file.advise(page..self.written, Hint::Done)?;
            (self.dropped, self.started, self.tidy) = (self.written, self.written, self.written);
        }
        Ok(())
    }
}

/// Puts the part of `bytes`, which belong at `from`, into `buf`, which begins at `at`.
fn lay_over(buf: &mut [u8], at: u64, from: u64, bytes: &[u8]) {
    let index = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (into, skip) = (index(from.saturating_sub(at)), index(at.saturating_sub(from)));
    let (Some(into), Some(bytes)) = (buf.get_mut(into..), bytes.get(skip..)) else { return };
    into.iter_mut().zip(bytes).for_each(|(to, b)| *to = *b);
}
