//! The way on after damage: the next place where a record can be read.

use super::{State, WarcReader};
use crate::container::Compression;
use crate::error::{Error, Result};
use crate::header::MAX_VERSION_LINE;
use crate::limits::Step;

/// Stored bytes that were skipped because nothing in them could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Where the damaged record begins.
    pub from: u64,
    /// Where the next good one begins; the end of the file if there is none.
    pub to: u64,
}

/// Bytes that may be looked at, for each that is passed, behind marks that do not begin a line; and so many in any case.
const TRIES_PER_BYTE: u64 = 16;
const FREE_BYTES: u64 = 64 << 20;

/// Stored bytes searched at a time.
const SEARCH_BYTES: usize = 64 << 10;

/// Of those, so many are looked at first.
const FIRST_LOOK_BYTES: usize = 64;

impl WarcReader {
    /// After an error: goes to the next place where a record begins, and says what was skipped. The next call of
    /// [`WarcReader::next_record`] reads from there, or ends. Does nothing if nothing was wrong.
    ///
    /// In a file the search begins right after the damaged record's first byte; in a stream, at the oldest byte still at
    /// hand.
    pub fn recover(&mut self) -> Result<Option<Gap>> {
        if self.state != State::Damaged {
            return Ok(None);
        }
        let from = self.damage_offset();
        if !self.member_was_warc() && self.arc.is_none() && self.compression() == Compression::None {
            // Nothing was read yet, so how the file is stored was guessed from bytes that may be the damaged ones. The mark of
            // a compressed member comes about by no damage; records seen inside one, stored as they are, would be no members.
            self.container.forget_codec();
        }
        let to = self.find_record(from + 1)?;
        Ok(Some(Gap { from, to }))
    }

    /// Goes to the first place at or after a stored offset that looks like the start of a record, and says where that is.
    /// For a reader that has read a record, so that it knows how the file is stored.
    pub(crate) fn seek_record(&mut self, offset: u64) -> Result<Option<u64>> {
        self.state = State::Damaged;
        let found = self.find_record(offset)?;
        Ok((self.state == State::Between).then_some(found))
    }

    /// Goes to the first place from `at` on where a record can be read, and says where that is; the end otherwise.
    fn find_record(&mut self, mut at: u64) -> Result<u64> {
        if !self.container.seek(at) {
            at = self.container.stored_offset();
        }
        self.index = 0;
        self.damage_behind = None;
        self.member_used = false;
        self.has_header = false;
        let (first, mut tried) = (at, 0);
        while let Some((candidate, begins_line)) = self.candidate(at)? {
            let guessing = !self.container.is_detected();
            // Where a line begins, a header ends at the next such place. A mark inside a line may be looked behind as far as a
            // header goes, and there may be one in every few bytes: so many of those are tried that the whole stays linear.
            let allowed = TRIES_PER_BYTE.saturating_mul(candidate - first).saturating_add(FREE_BYTES);
            let worth = begins_line || tried <= allowed;
            if worth && self.try_at(candidate, &mut tried)? {
                self.state = State::Between;
                return Ok(candidate);
            }
            if guessing {
                self.container.forget_codec();
            }
            at = candidate + 1;
            if !self.container.seek(at) {
                at = self.container.stored_offset();
            }
        }
        Ok(self.container.stored_offset())
    }

    /// [`WarcReader::recover`] after an error that came from reading a block rather than from [`WarcReader::next_record`].
    pub(crate) fn recover_from_here(&mut self) -> Result<Option<Gap>> {
        self.give_up();
        self.recover()
    }

    /// The first byte of what could not be read: a record, or the member after the last good one.
    fn damage_offset(&self) -> u64 {
        match self.compression() {
            Compression::None => self.start.offset,
            _ => self.start.offset.max(self.container.at().offset),
        }
    }

    /// The next stored offset from `at` on that has the mark of a member or record, and whether a line begins there, or what
    /// has no lines.
    fn candidate(&mut self, at: u64) -> Result<Option<(u64, bool)>> {
        let marks: &[&[u8]] = match self.compression() {
            _ if !self.container.is_detected() => &[b"WARC/", b"warc/", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"],
            Compression::None if self.arc.is_some() => &[b"\nhttp", b"\ndns:", b"\nfiledesc:"],
            Compression::None => &[b"WARC/", b"warc/"],
            Compression::Gzip => &[b"\x1f\x8b\x08"],
            Compression::Zstd => &[b"\x28\xb5\x2f\xfd"],
        };
        let plain = self.compression() == Compression::None;
        let longest = marks.iter().map(|m| m.len()).max().unwrap_or(1);
        let skip_line_end = u64::from(marks.iter().any(|m| m.starts_with(b"\n")));
        let window = self.container.window();
        debug_assert_eq!(window.offset(), at);
        loop {
            let data = window.fill(SEARCH_BYTES)?;
            if let Some(found) = first_of(marks, data) {
                let before = found.checked_sub(1).and_then(|before| data.get(before));
                // What stands before the first byte that was looked at is not known.
                let begins_line = skip_line_end > 0 || !plain || before.is_none_or(|b| *b == b'\n');
                let offset = window.offset() + found as u64 + skip_line_end;
                window.seek(offset);
                return Ok(Some((offset, begins_line)));
            }
            let keep = if window.ended() { 0 } else { longest - 1 };
            let n = window.data().len().saturating_sub(keep);
            window.consume(n);
            if window.ended() && window.data().is_empty() {
                return Ok(None);
            }
        }
    }

    /// Whether a record can be read at `candidate`, where the container stands. Leaves it standing there.
    fn try_at(&mut self, candidate: u64, tried: &mut u64) -> Result<bool> {
        let good = match self.container.next_member().and_then(|open| Ok(open && self.header_follows(tried)?)) {
            Err(e) if !e.is_damage() => return Err(e),
            result => result.unwrap_or(false),
        };
        Ok(self.container.seek(candidate) && good)
    }

    /// Whether the header of a record is next; adds the bytes that were looked at to `tried`.
    fn header_follows(&mut self, tried: &mut u64) -> Result<bool> {
        if self.arc.is_some() {
            return self.arc_line_follows();
        }
        let mut want = 64;
        loop {
            let data = self.container.fill(want)?;
            let parsed = self.header.parse(data, &self.limits, self.lenient);
            *tried += match &parsed {
                Ok(Step::Done { used, .. }) => *used as u64,
                Err(Error::Corrupt { at, .. }) => at.inside + MAX_VERSION_LINE as u64,
                _ => data.len().min(self.limits.header_bytes) as u64,
            };
            match parsed? {
                Step::Done { .. } => return Ok(true),
                Step::NeedMore { .. } if data.len() < want => return Ok(false),
                Step::NeedMore { at_least } => want = at_least,
            }
        }
    }
}

/// Where the first of the marks begins. No mark may overlap another.
///
/// Looks at a few bytes first, then at twice as many: looking for each mark through all of the data would cost the whole of
/// it for every candidate, as long as one of the marks is rare and another one frequent.
fn first_of(marks: &[&[u8]], data: &[u8]) -> Option<usize> {
    let mut part = data.get(..FIRST_LOOK_BYTES).unwrap_or(data);
    loop {
        let found = marks.iter().filter_map(|mark| memchr::memmem::find(part, mark)).min();
        if found.is_some() || part.len() == data.len() {
            return found;
        }
        part = data.get(..part.len() * 2).unwrap_or(data);
    }
}

#[cfg(test)]
mod tests {
    use super::first_of;
    use proptest::prelude::*;

    proptest! {
        /// The same place as a look at every byte gives, wherever the looks end.
        #[test]
        fn the_first_mark_is_found(pieces in prop::collection::vec(prop::sample::select(vec!["WARC/", "warc/", "\x1f\x08", "W", "wa", "x", "0123456789012345678901234567890"]), 0..40)) {
            let marks: [&[u8]; 3] = [b"WARC/", b"warc/", b"\x1f\x08"];
            let data = pieces.concat().into_bytes();
            let wanted = (0..data.len()).find(|at| marks.iter().any(|mark| data[*at..].starts_with(mark)));
            prop_assert_eq!(first_of(&marks, &data), wanted);
        }
    }
}
