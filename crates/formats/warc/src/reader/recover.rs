//! The way on after damage: the next place where a record can be read.

use super::{State, WarcReader};
use crate::arc::ARC_LINES;
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
        // What is not compressed is one member without an end.
        let has_members = self.compression() != Compression::None;
        let to = match self.shared && has_members && self.find_inside()? {
            true => self.container.at().offset,
            false => {
                if self.mixed {
                    self.container.forget_codec();
                }
                // Where a damaged member ends is its own word: cut short, it seems to go on into the members behind it.
                self.find_record(from + 1)?
            }
        };
        Ok(Some(Gap { from, to }))
    }

    /// Goes on from where the reader stands, inside the open member and into those behind it, to the next record. `false` if those
    /// bytes cannot be inflated, or there is none.
    ///
    /// A record whose length is too large takes the records in it along: going back would inflate a large member once for each
    /// damaged record.
    fn find_inside(&mut self) -> Result<bool> {
        if self.container.at() == self.start {
            self.container.consume(usize::from(!self.container.data().is_empty()));
        }
        self.forget_record();
        let found = loop {
            match self.skip_to_record() {
                Ok(false) => {}
                found => break found,
            }
            // Either the file ends here, or the next member begins with a record, or with what is not a member.
            match self.container.next_member() {
                Ok(true) => {}
                ended => break ended,
            }
        };
        let found = match found {
            Err(e) if e.is_damage() => false,
            found => found?,
        };
        if found {
            self.state = State::Between;
        }
        Ok(found)
    }

    /// Goes to the next place where the header of a record begins a line, in the open member and those that go on from it; opens
    /// a member if none is. `false` if there is none.
    pub(super) fn skip_to_record(&mut self) -> Result<bool> {
        if self.container.data().is_empty() && self.fill(1)?.is_empty() && !self.container.next_member()? {
            return Ok(false);
        }
        let marks: &[&[u8]] = if self.arc.is_some() { &ARC_LINES } else { &[b"\nWARC/", b"\nwarc/"] };
        let longest = marks.iter().map(|mark| mark.len()).max().unwrap_or(1);
        let mut looked_at = 0;
        loop {
            // Bytes at the start of a member may begin a line: what came before is not known. Unlike the first record of a file, one
            // inside others must say what it is: pages quote version lines.
            let states_type = |reader: &Self| reader.arc.is_some() || reader.header.get("WARC-Type").is_some();
            if self.header_follows(&mut looked_at)? && states_type(self) {
                return Ok(true);
            }
            loop {
                // Not more than that: what was inflated before damage is searched, too.
                let data = self.fill(longest + 1)?;
                let (found, have) = (first_of(marks, data), data.len());
                match found {
                    Some(line_end) => {
                        self.container.consume(line_end + 1);
                        break;
                    }
                    None if have <= longest => return Ok(false),
                    None => self.container.consume(have - longest),
                }
            }
        }
    }

    fn forget_record(&mut self) {
        self.damage_behind = None;
        self.has_header = false;
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
        self.counts = false;
        self.forget_record();
        let (first, mut tried) = (at, 0);
        while let Some((candidate, begins_line)) = self.candidate(at)? {
            let guessing = !self.container.is_detected();
            // Where a line begins, a header ends at the next such place. A mark inside a line may be looked behind as far as a
            // header goes, and there may be one in every few bytes: so many of those are tried that the whole stays linear.
            let allowed = TRIES_PER_BYTE.saturating_mul(candidate - first).saturating_add(FREE_BYTES);
            let worth = begins_line || tried <= allowed;
            let mut reached = candidate;
            if worth && self.try_at(candidate, &mut tried, &mut reached)? {
                self.state = State::Between;
                return Ok(reached);
            }
            if guessing {
                self.container.forget_codec();
            }
            at = reached + 1;
            if !self.container.seek(at) {
                at = self.container.stored_offset();
            }
        }
        let is_plain = self.container.is_detected() && self.compression() == Compression::None;
        if self.shared || is_plain {
            return Ok(self.container.stored_offset());
        }
        // No member begins with a record. If members were cut elsewhere, records begin inside of them.
        self.shared = true;
        self.find_record(first)
    }

    /// Lets [`WarcReader::recover`] look for records inside of members even if none was found there yet.
    pub(crate) fn expect_shared(&mut self) {
        self.shared = true;
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
            Compression::None if self.arc.is_some() => &ARC_LINES,
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

    /// Whether a record can be read at `candidate`, where the container stands, or inside the member there, if records of this
    /// file begin there. Leaves it standing at that record. Otherwise says how far it looked for one.
    fn try_at(&mut self, candidate: u64, tried: &mut u64, reached: &mut u64) -> Result<bool> {
        let good = match self.container.next_member().and_then(|open| Ok(open && self.header_follows(tried)?)) {
            Err(e) if !e.is_damage() => return Err(e),
            result => result.unwrap_or(false),
        };
        if good || !self.shared || self.compression() == Compression::None {
            return Ok(self.container.seek(candidate) && good);
        }
        // Where members do not begin with records, one may begin inside of this.
        self.container.seek(candidate);
        let found = match self.skip_to_record() {
            Err(e) if e.is_damage() => Ok(false),
            found => found,
        };
        *reached = self.container.at().offset.max(candidate);
        found
    }

    /// Whether the header of a record is next; adds the bytes that were looked at to `tried`.
    fn header_follows(&mut self, tried: &mut u64) -> Result<bool> {
        if self.arc.is_some() {
            return self.arc_record_follows();
        }
        let mut want = 64;
        loop {
            self.fill(want)?;
            let data = self.container.data();
            let parsed = self.header.parse(data, &self.limits, self.lenient);
            *tried += match &parsed {
                Ok(Step::Done { used, .. }) => *used as u64,
                Err(Error::Corrupt { at, .. }) => at.inside + MAX_VERSION_LINE as u64,
                _ => data.len().min(self.limits.header_bytes) as u64,
            };
            match parsed {
                Ok(Step::Done { .. }) => return Ok(true),
                Ok(Step::NeedMore { at_least }) if data.len() >= want => want = self.more_than(at_least),
                Ok(_) | Err(_) => return Ok(false),
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
