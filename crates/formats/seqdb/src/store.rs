//! A file that grows at its end: gathers appended bytes, changes bytes in place, and tidies the page cache behind it.
//!
//! ```text
//! 0 .......................... written ......... end
//! |  in the file               |  `tail`, memory |
//!       `after_tail`: lengths that grew; they must reach the file after the tail and before the superblock
//!       `late`: bytes that point at what is new, and must reach the file after the superblock
//! ```

use crate::num::index;
use crate::{Error, Result, Settings};
use std::path::Path;
use trawl_io::{File, Hint};

/// The largest step in which a file grows, whatever it says of itself: room in advance is a favour, not a duty.
const MAX_STEP: u64 = 256 << 20;
/// Written bytes between two requests to drop pages.
const DROP_WINDOW: u64 = 8 << 20;
/// So many changes are held back at most: every read looks at them.
const MAX_HELD: usize = 32;

/// Changed bytes that are held back. They lie wholly in the file.
#[derive(Debug)]
struct Held {
    at: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Store {
    file: Box<dyn File>,
    written: u64,
    tail: Vec<u8>,
    after_tail: Vec<Held>,
    late: Vec<Held>,
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
    /// The file grows in steps of `step` bytes (0 or 1: exactly).
    pub fn new(file: Box<dyn File>, step: u64, settings: &Settings) -> Result<Self> {
        let room = file.len()?;
        Ok(Store {
            file,
            written: 0,
            tail: Vec::new(),
            after_tail: Vec::new(),
            late: Vec::new(),
            room,
            step: step.clamp(1, MAX_STEP),
            buffer: settings.buffer_bytes,
            drop_behind: !settings.data_caching,
            dropped: 0,
            started: 0,
            tidy: 0,
            touched: false,
            poisoned: false,
        })
    }

    /// The next byte is appended at `end`.
    pub fn start_at(&mut self, end: u64) {
        (self.written, self.dropped, self.started, self.tidy) = (end, end, end, end);
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    pub fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Bytes the file had when it was opened, or has been given since.
    pub fn room(&self) -> u64 {
        self.room
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
        self.touched || !self.tail.is_empty() || !self.after_tail.is_empty() || !self.late.is_empty()
    }

    /// An error after a failed sync.
    #[inline]
    pub fn alive(&self) -> Result<()> {
        if self.poisoned { Err(self.dead()) } else { Ok(()) }
    }

    #[cold]
    fn dead(&self) -> Error {
        Error::Poisoned(self.path().into())
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
        const ZEROS: &[u8] = &[0; 4096];
        while let Some(rest) = n.checked_sub(ZEROS.len() as u64) {
            self.append(ZEROS)?;
            n = rest;
        }
        let (part, _) = ZEROS.split_at(index(n));
        self.append(part)
    }

    /// Takes back what was appended after `end`.
    pub fn cut(&mut self, end: u64) {
        if let Some(keep) = end.checked_sub(self.written) {
            self.tail.truncate(index(keep));
            return;
        }
        self.tail.clear();
        let cut = |at: u64| at.min(end);
        (self.written, self.dropped) = (end, cut(self.dropped));
        (self.started, self.tidy) = (cut(self.started), cut(self.tidy));
    }

    /// Forgets everything after `end`, and what should have been written with it.
    pub fn abandon(&mut self, end: u64) {
        self.after_tail.clear();
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

    /// Hands over everything but what comes late.
    pub fn flush(&mut self) -> Result<()> {
        self.spill()?;
        hand_over(&mut self.after_tail, &*self.file, &mut self.touched)
    }

    /// Hands over what comes late.
    pub fn flush_late(&mut self) -> Result<()> {
        self.alive()?;
        hand_over(&mut self.late, &*self.file, &mut self.touched)
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
        for held in self.after_tail.iter_mut().chain(&mut self.late) {
            lay_over(&mut held.bytes, held.at, at, bytes);
        }
        lay_over(&mut self.tail, self.written, at, bytes);
        let in_file = index(self.written.saturating_sub(at)).min(bytes.len());
        let (filed, _) = bytes.split_at(in_file);
        if !filed.is_empty() {
            self.touched = true;
            self.file.write_at(at, filed)?;
        }
        Ok(())
    }

    /// Overwrites bytes, in the file only after what has been appended so far.
    pub fn overwrite_after_tail(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        if at >= self.written {
            return self.overwrite(at, bytes);
        }
        if self.after_tail.len() >= MAX_HELD {
            self.flush()?;
        } else if at + bytes.len() as u64 > self.written {
            self.spill()?;
        }
        hold(&mut self.after_tail, at, bytes);
        Ok(())
    }

    /// Overwrites bytes that are in the file once [`Store::flush_late`] is called; reading has them at once.
    pub fn overwrite_late(&mut self, at: u64, bytes: &[u8]) {
        hold(&mut self.late, at, bytes);
    }

    /// Whether enough is held back.
    #[inline]
    pub fn late_is_full(&self) -> bool {
        self.late.len() >= MAX_HELD
    }

    /// Fills `buf` from `at`; the caller keeps within the end.
    pub fn read(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        let in_file = index(self.written.saturating_sub(at)).min(buf.len());
        let (filed, tailed) = buf.split_at_mut(in_file);
        if !filed.is_empty() {
            self.file.read_exact_at(at, filed)?;
            let lay_over = |held: &Held| lay_over(filed, at, held.at, &held.bytes);
            self.after_tail.iter().chain(&self.late).for_each(lay_over);
        }
        if tailed.is_empty() {
            return Ok(());
        }
        let start = index(at.saturating_sub(self.written));
        match self.tail.get(start..).and_then(|tail| tail.get(..tailed.len())) {
            Some(found) => tailed.copy_from_slice(found),
            None => {
                let (wanted, found) = (tailed.len() as u64, self.end().saturating_sub(at));
                return Err(trawl_io::Error::Short { path: self.path().into(), offset: at, wanted, found }.into());
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
        self.file.sync_data().inspect_err(|_| self.poisoned = true)?;
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
            self.start_at(self.written);
        }
        Ok(())
    }
}

/// Holds a change back. What takes an earlier one's place comes after all that was changed since: it may count that.
fn hold(held: &mut Vec<Held>, at: u64, bytes: &[u8]) {
    held.retain(|held| held.at != at || held.bytes.len() != bytes.len());
    held.push(Held { at, bytes: bytes.to_vec() });
}

/// Writes changes in the order they came.
fn hand_over(held: &mut Vec<Held>, file: &dyn File, touched: &mut bool) -> Result<()> {
    while let Some(change) = held.first() {
        *touched = true;
        file.write_at(change.at, &change.bytes)?;
        held.remove(0);
    }
    Ok(())
}

/// Puts the part of `bytes`, which belong at `from`, into `buf`, which begins at `at`.
fn lay_over(buf: &mut [u8], at: u64, from: u64, bytes: &[u8]) {
    let (into, skip) = (index(from.saturating_sub(at)), index(at.saturating_sub(from)));
    let (Some(into), Some(bytes)) = (buf.get_mut(into..), bytes.get(skip..)) else { return };
    let n = into.len().min(bytes.len());
    into.split_at_mut(n).0.copy_from_slice(bytes.split_at(n).0);
}
