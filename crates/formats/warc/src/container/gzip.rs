//! Gzip members (RFC 1952), one after another. Knows nothing of records.
//!
//! ```text
//!  off size field
//!   0   2   1f 8b
//!   2   1   8 (deflate)
//!   3   1   flags: 1 text, 2 header crc, 4 extra, 8 name, 16 comment; a reader refuses any other bit
//!   4   6   mtime, extra flags, system
//!  10   .   extra: u16 length + bytes; name, comment: zero-ended; header crc: u16
//!   .   .   deflate stream
//!   .   4   crc32 of the inflated bytes, little-endian
//!   .   4   their number modulo 2^32
//! ```
//!
//! Two ways to inflate. A member whose end is in sight (the next member's magic, or the end of the file) is inflated in
//! one call by libdeflate, which is two to three times as fast as any streaming inflater. Everything else, and
//! everything the guess was wrong about, streams through zlib-rs in bounded memory; that path is exact and gives the error
//! messages.

use super::input::Window;
use crate::error::{At, Error, Result, shown};
use crate::limits::Step;
use flate2::{Decompress, FlushDecompress, Status};
use trawl_io::{Inflated, Inflater};

/// How far to look for the end of a member before streaming it.
const LOOKAHEAD_BYTES: usize = 2 << 20;
/// Members that inflate to more than this stream.
const WHOLE_BYTES: usize = 8 << 20;
/// Stored bytes to look through at first: most members are short.
const FIRST_LOOK_BYTES: usize = 64 << 10;
/// Stored bytes in which the first bytes of a member are looked for at first.
const FIRST_PEEK_BYTES: usize = 1 << 10;
/// Deflate cannot do better than this many to one; a trailer that claims more is not one.
const MAX_RATIO: usize = 1032;
/// Inflated bytes gathered at a time when streaming.
const STREAM_BYTES: usize = 64 << 10;
/// A name, comment or extra field longer than this is not believed.
const MAX_HEADER_BYTES: usize = 128 << 10;
/// The most bytes of the name, and of the comment, in a member's header. Where no zero ends them they are searched for as far as this
/// at every mark of a member: with 128 KiB instead, verifying a file of marks took 4 us a byte.
const MAX_TEXT_BYTES: usize = 8 << 10;

/// The inflated side of a gzip file.
pub(crate) struct Gzip {
    /// None where there was no memory for it: everything streams then.
    whole: Option<Inflater>,
    stream: Decompress,
    /// Inflated bytes; `out[at..end]` is unread.
    out: Vec<u8>,
    at: usize,
    end: usize,
    state: State,
    crc: crc32fast::Hasher,
    size: u64,
    /// Whether the header of the open member has a checksum that is not its own.
    bad_header: bool,
    /// Damage behind the unread bytes: told when somebody wants more than those.
    damage: Option<Error>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// No member is open.
    Between,
    /// A member is being streamed.
    Streaming,
    /// The open member is inflated to its end.
    Ended,
    /// The open member is inflated up to damage.
    Damaged,
}

impl Gzip {
    pub(crate) fn new() -> Self {
        Gzip {
            whole: Inflater::new(),
            stream: Decompress::new(false),
            out: Vec::new(),
            at: 0,
            end: 0,
            state: State::Between,
            crc: crc32fast::Hasher::new(),
            size: 0,
            bad_header: false,
            damage: None,
        }
    }

    /// Whether the header of the open member has a checksum that is not its own; told once.
    pub(crate) fn take_bad_header(&mut self) -> bool {
        std::mem::take(&mut self.bad_header)
    }

    /// Unread inflated bytes that are here already.
    pub(crate) fn data(&self) -> &[u8] {
        self.out.get(self.at..self.end).unwrap_or_default()
    }

    pub(crate) fn consume(&mut self, n: usize) {
        self.at = (self.at + n).min(self.end);
    }

    /// Whether the open member is inflated to its end.
    pub(crate) fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Forgets the open member.
    pub(crate) fn reset(&mut self) {
        self.at = 0;
        self.end = 0;
        self.state = State::Between;
        self.damage = None;
    }

    /// The first inflated bytes, up to `n`, of the member at the window's start, without opening it. For when the open one has ended.
    pub(crate) fn peek(&mut self, window: &mut Window, start: &At, n: usize) -> Result<Vec<u8>> {
        let (header, _) = header(window, start)?;
        let mut out = vec![0; n];
        let mut want = header + FIRST_PEEK_BYTES;
        loop {
            let data = window.fill(want)?.get(header..).unwrap_or_default();
            let have = data.len();
            self.stream.reset(false);
            let status = self.stream.decompress(data, &mut out, FlushDecompress::None);
            let status = status.map_err(|e| Error::corrupt(start.clone(), "a valid deflate stream", e.to_string()))?;
            let got = usize::try_from(self.stream.total_out()).unwrap_or(n);
            if got >= n || status == Status::StreamEnd || window.ended() || have >= LOOKAHEAD_BYTES {
                out.truncate(got);
                return Ok(out);
            }
            want = header + have * 4;
        }
    }

    /// Opens the member at the window's start.
    pub(crate) fn open(&mut self, window: &mut Window, start: &At) -> Result<()> {
        self.reset();
        let (header, sound) = header(window, start)?;
        self.bad_header = !sound;
        if self.inflate_whole(window, header)? {
            self.state = State::Ended;
            return Ok(());
        }
        window.consume(header);
        self.stream.reset(false);
        self.crc = crc32fast::Hasher::new();
        self.size = 0;
        self.state = State::Streaming;
        Ok(())
    }

    /// Inflates until `want` unread bytes are here or the member ends. What was inflated before damage, a wrong checksum of the
    /// whole member included, is handed out first: there may be many records in it.
    pub(crate) fn fill(&mut self, window: &mut Window, start: &At, want: usize) -> Result<()> {
        while self.state == State::Streaming && self.end - self.at < want {
            if self.at > 0 {
                self.out.copy_within(self.at..self.end, 0);
                self.end -= self.at;
                self.at = 0;
            }
            let room = self.end + STREAM_BYTES;
            if self.out.len() < room {
                self.out.resize(room, 0);
            }
            match self.inflate_some(window, start) {
                Err(e) if e.is_damage() => {
                    self.state = State::Damaged;
                    self.damage = Some(e);
                }
                result => result?,
            }
        }
        match self.damage.take_if(|_| self.end - self.at < want) {
            Some(damage) => Err(damage),
            None => Ok(()),
        }
    }

    fn inflate_some(&mut self, window: &mut Window, start: &At) -> Result<()> {
        let at = || At { inside: self.size, ..start.clone() };
        let input = window.fill(1)?;
        if input.is_empty() {
            return Err(Error::Truncated { at: at(), expected: "the rest of a gzip member", found: self.size });
        }
        let target = self.out.get_mut(self.end..self.end + STREAM_BYTES).unwrap_or_default();
        let (in_before, out_before) = (self.stream.total_in(), self.stream.total_out());
        let status = self.stream.decompress(input, target, FlushDecompress::None);
        let status = status.map_err(|e| Error::corrupt(at(), "a valid deflate stream", e.to_string()));
        let step = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(0);
        let used = step(self.stream.total_in(), in_before);
        let got = step(self.stream.total_out(), out_before);
        let is_stuck = used == 0 && got == 0 && status.as_ref().is_ok_and(|status| *status != Status::StreamEnd);
        if is_stuck {
            return Err(Error::corrupt(at(), "a deflate stream that goes on", "one that stands still"));
        }
        window.consume(used);
        self.crc.update(self.out.get(self.end..self.end + got).unwrap_or_default());
        self.end += got;
        self.size += got as u64;
        // What was inflated before the damage counts.
        if status? == Status::StreamEnd {
            self.trailer(window, start)?;
            self.state = State::Ended;
        }
        Ok(())
    }

    fn trailer(&mut self, window: &mut Window, start: &At) -> Result<()> {
        let at = At { inside: self.size, ..start.clone() };
        let found = window.fill(8)?;
        let Some((crc, size)) = trailer_at(found, 8) else {
            return Err(Error::Truncated { at, expected: "a gzip trailer of 8 bytes", found: found.len() as u64 });
        };
        let actual = self.crc.clone().finalize();
        if crc != actual {
            return Err(Error::corrupt(
                at,
                "the crc32 that the gzip trailer states",
                format!("{actual:08x}, not {crc:08x}"),
            ));
        }
        if u64::from(size) != self.size & u64::from(u32::MAX) {
            return Err(Error::corrupt(at, "the size that the gzip trailer states", self.size.to_string()));
        }
        window.consume(8);
        Ok(())
    }

    /// Inflates the member in one call if its end can be guessed, and checks the guess. `false`: stream it.
    fn inflate_whole(&mut self, window: &mut Window, header: usize) -> Result<bool> {
        let Some(end) = guess_end(window, header)? else { return Ok(false) };
        let data = window.data();
        let Some((crc, size)) = trailer_at(data, end) else { return Ok(false) };
        let size = size as usize;
        if size > WHOLE_BYTES || size > end.saturating_mul(MAX_RATIO) {
            return Ok(false);
        }
        if self.out.len() < size {
            self.out.resize(size, 0);
        }
        let Some(deflated) = data.get(header..end - 8) else { return Ok(false) };
        let Some(out) = self.out.get_mut(..size) else { return Ok(false) };
        // A stream that ended sooner is followed by something else than its trailer: equal members with damage between them.
        let whole = Inflated { used: deflated.len(), written: size };
        let fits = self.whole.as_mut().and_then(|inflater| inflater.inflate(deflated, out)) == Some(whole);
        if fits && libdeflater::crc32(out) == crc {
            self.end = size;
            window.consume(end);
            return Ok(true);
        }
        Ok(false)
    }
}

/// Where the member at the window's start seems to end: at the next mark of a member, or at the end of the file. A wrong
/// guess costs time, not a wrong result: the stream must end there, and the trailer must fit what was inflated.
fn guess_end(window: &mut Window, header: usize) -> Result<Option<usize>> {
    let mut look = FIRST_LOOK_BYTES;
    let mut from = header;
    loop {
        let data = window.fill(look)?;
        while let Some(found) = data.get(from..).and_then(|rest| memchr::memmem::find(rest, b"\x1f\x8b\x08")) {
            let at = from + found;
            match data.get(at + 3) {
                // Nothing else of a header can be relied on: Apple's zlib, for one, writes 19 for the system.
                Some(flags) if flags & 0xe0 == 0 => return Ok(Some(at)),
                Some(_) => from = at + 1,
                None => break,
            }
        }
        let have = data.len();
        if window.ended() {
            return Ok(Some(have));
        }
        if have >= LOOKAHEAD_BYTES {
            return Ok(None);
        }
        // A header may straddle the end of what was searched.
        from = from.max(have.saturating_sub(10)).max(header);
        look = have.saturating_mul(2).min(LOOKAHEAD_BYTES);
    }
}

/// Crc and size of a trailer that ends at `end`.
fn trailer_at(data: &[u8], end: usize) -> Option<(u32, u32)> {
    let (crc, rest) = data.get(end.checked_sub(8)?..end)?.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*crc), u32::from_le_bytes(*rest.first_chunk::<4>()?)))
}

/// Length of the member header at the window's start, and whether its checksum, if it has one, is right: what follows can be
/// read either way.
fn header(window: &mut Window, start: &At) -> Result<(usize, bool)> {
    let mut want = 10;
    loop {
        let data = window.fill(want)?;
        match parse_header(data) {
            Ok(Step::Done { used, value }) => return Ok((used, value)),
            Ok(Step::NeedMore { at_least }) => {
                if at_least > MAX_HEADER_BYTES {
                    let (claimed, limit) = (at_least as u64, MAX_HEADER_BYTES as u64);
                    return Err(Error::OverLimit { at: start.clone(), what: "gzip header", claimed, limit });
                }
                if data.len() < at_least && window.ended() {
                    let found = window.data().len() as u64;
                    return Err(Error::Truncated { at: start.clone(), expected: "a gzip header", found });
                }
                want = at_least;
            }
            Err(expected) => {
                return Err(Error::corrupt(start.clone(), expected, shown(data.get(..10).unwrap_or(data))));
            }
        }
    }
}

fn parse_header(data: &[u8]) -> Result<Step<bool>, &'static str> {
    let Some((fixed, _)) = data.split_first_chunk::<10>() else {
        if !b"\x1f\x8b\x08".starts_with(data.get(..3).unwrap_or(data)) {
            return Err("a gzip member");
        }
        return Ok(Step::NeedMore { at_least: 10 });
    };
    let [0x1f, 0x8b, 8, flags, ..] = *fixed else { return Err("a gzip member") };
    if flags & 0xe0 != 0 {
        return Err("a gzip header without reserved flags");
    }
    let mut at = 10usize;
    if flags & 4 != 0 {
        let Some(len) = data.get(at..).and_then(|d| d.first_chunk::<2>()) else {
            return Ok(Step::NeedMore { at_least: at + 2 });
        };
        at += 2 + usize::from(u16::from_le_bytes(*len));
    }
    for _ in 0..(flags >> 3 & 1) + (flags >> 4 & 1) {
        let rest = data.get(at..).unwrap_or_default();
        match memchr::memchr(0, rest.get(..MAX_TEXT_BYTES).unwrap_or(rest)) {
            Some(zero) => at += zero + 1,
            None if rest.len() >= MAX_TEXT_BYTES => {
                return Err("a name and a comment of at most 8 KiB in a gzip header");
            }
            None => return Ok(Step::NeedMore { at_least: data.len().max(at) + 1 }),
        }
    }
    let fields = at;
    if flags & 2 != 0 {
        at += 2;
    }
    let Some(header) = data.get(..at) else { return Ok(Step::NeedMore { at_least: at }) };
    let (covered, stated) = header.split_at(fields);
    let [low, high, ..] = crc32fast::hash(covered).to_le_bytes();
    Ok(Step::Done { value: stated.is_empty() || stated == [low, high], used: at })
}
