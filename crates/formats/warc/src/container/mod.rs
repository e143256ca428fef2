//! How records are stored: bytes as they are, gzip members, zstd frames. Knows nothing of records.
//!
//! A container is a sequence of members, each inflated on its own. An uncompressed file is one member that is as long
//! as the file; only there may an offset point into the middle. What goes on from one member into the next (bgzip and others
//! cut where it suits them) is read by joining the two.

mod gzip;
mod input;
mod zstd;

pub(crate) use input::{Input, Window};
pub use trawl_io::Compression;

use crate::error::{At, Result};
use crate::limits::Limits;
use gzip::Gzip;
use zstd::Zstd;

enum Codec {
    Undetected,
    None,
    Gzip(Box<Gzip>),
    Zstd(Box<Zstd>),
}

/// The inflated side of a file.
pub(crate) struct Container {
    window: Window,
    codec: Codec,
    limits: Limits,
    /// Stored offset of the open member.
    member: u64,
    /// Inflated bytes of the open member already consumed.
    inside: u64,
    open: bool,
    /// Where the open member ends, once somebody asked; `Some(None)` if that could not be found out.
    end: Option<Option<u64>>,
    /// Bytes in front of those that the codec gives: the rest of the member before, and what followed it. Empty most of the time.
    carried: Carried,
}

#[derive(Default)]
struct Carried {
    bytes: Vec<u8>,
    /// Bytes that were read.
    at: usize,
    /// For each member that has bytes here: its stored offset, where the first of them lies in it, and where here.
    members: Vec<(u64, u64, usize)>,
}

impl Carried {
    fn unread(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Drops what was read, once that is most of it: members of a few bytes must not cost a copy of everything each.
    fn trim(&mut self) {
        if self.at * 2 < self.bytes.len() {
            return;
        }
        let (at, place) = (self.at, self.place());
        self.bytes.drain(..at);
        self.members.retain(|(_, _, first)| *first > at);
        self.members.iter_mut().for_each(|(_, _, first)| *first -= at);
        self.members.splice(0..0, place.map(|(member, inside)| (member, inside, 0)));
        self.at = 0;
    }

    /// Member of the next byte, and where in it that lies.
    fn place(&self) -> Option<(u64, u64)> {
        let after = self.members.partition_point(|(_, _, first)| *first <= self.at);
        let (member, inside, first) = self.members.get(after.checked_sub(1)?)?;
        Some((*member, inside + (self.at - first) as u64))
    }
}

/// Bytes of a member that are put behind what is carried, at least: a header asks for one more byte again and again.
const CARRY_BYTES: usize = 16 << 10;

impl Container {
    pub(crate) fn new(window: Window, limits: Limits) -> Self {
        let member = window.offset();
        let (codec, carried) = (Codec::Undetected, Carried::default());
        Container { window, codec, limits, member, inside: 0, open: false, end: None, carried }
    }

    /// How the file is stored, once anything was read.
    pub(crate) fn compression(&self) -> Compression {
        match self.codec {
            Codec::Undetected | Codec::None => Compression::None,
            Codec::Gzip(_) => Compression::Gzip,
            Codec::Zstd(_) => Compression::Zstd,
        }
    }

    /// Where the next inflated byte lies.
    pub(crate) fn at(&self) -> At {
        let file = self.window.name().clone();
        match self.codec {
            Codec::Undetected | Codec::None => At { file, offset: self.window.offset(), inside: 0 },
            _ => {
                let (offset, inside) = self.carried.place().unwrap_or((self.member, self.inside));
                At { file, offset, inside }
            }
        }
    }

    /// Stored offset of the first byte that belongs to nothing read so far.
    pub(crate) fn stored_offset(&self) -> u64 {
        self.window.offset()
    }

    fn detect(&mut self) -> Result<()> {
        if let Codec::Undetected = self.codec {
            self.codec = match Compression::detect(self.window.fill(4)?) {
                Compression::None => Codec::None,
                Compression::Gzip => Codec::Gzip(Box::new(Gzip::new())),
                Compression::Zstd => Codec::Zstd(Box::new(Zstd::new(&self.limits))),
            };
        }
        Ok(())
    }

    /// Whether something at the front of the file may be needed to read its middle: a zstd dictionary.
    pub(crate) fn needs_front(&mut self) -> Result<bool> {
        self.detect()?;
        Ok(matches!(self.codec, Codec::Zstd(_)))
    }

    /// Reads what is at the front of the file, unless that is stored otherwise.
    pub(crate) fn read_front(&mut self) -> Result<()> {
        if self.seek(0) && Compression::detect(self.window.fill(4)?) == self.compression() {
            self.next_member()?;
        }
        Ok(())
    }

    /// Opens the next member, dropping what is left of this one; `false` at the end of the file.
    pub(crate) fn next_member(&mut self) -> Result<bool> {
        self.detect()?;
        self.open = false;
        self.carried = Carried::default();
        if self.window.fill(1)?.is_empty() {
            return Ok(false);
        }
        self.member = self.window.offset();
        self.inside = 0;
        self.end = None;
        let start = At { file: self.window.name().clone(), offset: self.member, inside: 0 };
        match &mut self.codec {
            Codec::Undetected | Codec::None => {}
            Codec::Gzip(gzip) => gzip.open(&mut self.window, &start)?,
            Codec::Zstd(zstd) => {
                if !zstd.open(&mut self.window, &start)? {
                    return Ok(false);
                }
                // Skippable frames and the dictionary lie before the frame that was opened.
                self.member = zstd.frame_offset();
            }
        }
        self.open = true;
        Ok(true)
    }

    /// What is odd about the header of the open member, told once.
    pub(crate) fn take_oddity(&mut self) -> Option<&'static str> {
        match &mut self.codec {
            Codec::Gzip(gzip) => gzip.take_bad_header().then_some("a gzip header whose checksum is not its own"),
            _ => None,
        }
    }

    /// The first bytes of the member behind the open one, up to `n` of them; `None` if there is none, or where the open one has not
    /// ended.
    pub(crate) fn peek_next(&mut self, n: usize) -> Result<Option<Vec<u8>>> {
        let start = At { file: self.window.name().clone(), offset: self.window.offset(), inside: 0 };
        match &mut self.codec {
            _ if !self.open => Ok(None),
            Codec::Gzip(gzip) if gzip.is_ended() && !self.window.fill(1)?.is_empty() => {
                gzip.peek(&mut self.window, &start, n).map(Some)
            }
            Codec::Zstd(zstd) if zstd.is_ended() => zstd.peek(&mut self.window, &start, n),
            _ => Ok(None),
        }
    }

    /// The first bytes, up to `n` of them, of what stands behind the bytes at hand, if it is stored otherwise than those; `None` if
    /// not, and inside of a member.
    pub(crate) fn peek_other(&mut self, n: usize) -> Result<Option<Vec<u8>>> {
        let own = self.compression();
        if !self.is_detected() || own != Compression::None && !self.data().is_empty() {
            return Ok(None);
        }
        let start = At { file: self.window.name().clone(), offset: self.window.offset(), inside: 0 };
        let stored = self.window.fill(4)?;
        match Compression::detect(stored) {
            _ if stored.is_empty() => Ok(None),
            found if found == own => Ok(None),
            Compression::None => Ok(Some(self.window.fill(n)?.iter().take(n).copied().collect())),
            Compression::Gzip => Gzip::new().peek(&mut self.window, &start, n).map(Some),
            Compression::Zstd => Zstd::new(&self.limits).peek(&mut self.window, &start, n),
        }
    }

    /// Whether a member is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether bytes of the member before are in front of those of the open one.
    pub(crate) fn carries(&self) -> bool {
        !self.carried.members.is_empty()
    }

    /// Opens the next member and puts what is left of the open one in front of it; `false` at the end of the file.
    pub(crate) fn join_next(&mut self) -> Result<bool> {
        let mut carried = std::mem::take(&mut self.carried);
        carried.trim();
        if carried.members.is_empty() {
            carried.members.push((self.member, self.inside, 0));
        }
        carried.bytes.extend_from_slice(self.inflated());
        let joined = self.next_member()?;
        carried.members.push((self.member, 0, carried.bytes.len()));
        if !carried.bytes.is_empty() {
            self.carried = carried;
        }
        Ok(joined)
    }

    /// Inflated bytes that are here already.
    pub(crate) fn data(&self) -> &[u8] {
        match self.carried.unread() {
            [] => self.inflated(),
            carried => carried,
        }
    }

    fn inflated(&self) -> &[u8] {
        match &self.codec {
            _ if !self.open => &[],
            Codec::Undetected | Codec::None => self.window.data(),
            Codec::Gzip(gzip) => gzip.data(),
            Codec::Zstd(zstd) => zstd.data(),
        }
    }

    /// Unread inflated bytes of the open member: at least `want` of them unless it ends sooner.
    pub(crate) fn fill(&mut self, want: usize) -> Result<&[u8]> {
        let carried = self.carried.unread().len();
        if carried == 0 {
            self.inflate(want)?;
        } else if carried < want {
            self.inflate(want - carried)?;
            let most = (want - carried).max(CARRY_BYTES);
            let taken = self.inflated().get(..most).unwrap_or(self.inflated()).to_vec();
            self.take(taken.len());
            self.carried.trim();
            self.carried.bytes.extend(taken);
        }
        Ok(self.data())
    }

    fn inflate(&mut self, want: usize) -> Result<()> {
        if self.open && self.inflated().len() < want {
            let start = At { file: self.window.name().clone(), offset: self.member, inside: 0 };
            match &mut self.codec {
                Codec::Undetected | Codec::None => self.window.fill(want).map(|_| ())?,
                Codec::Gzip(gzip) => gzip.fill(&mut self.window, &start, want)?,
                Codec::Zstd(zstd) => zstd.fill(&mut self.window, &start, want)?,
            }
        }
        Ok(())
    }

    /// Marks `n` of the bytes `fill` showed as read.
    pub(crate) fn consume(&mut self, n: usize) {
        match self.carried.unread().len() {
            0 => self.take(n),
            left if n < left => self.carried.at += n,
            _ => self.carried = Carried::default(),
        }
    }

    fn take(&mut self, n: usize) {
        self.inside += n as u64;
        match &mut self.codec {
            Codec::Undetected | Codec::None => self.window.consume(n),
            Codec::Gzip(gzip) => gzip.consume(n),
            Codec::Zstd(zstd) => zstd.consume(n),
        }
    }

    /// Passes over `n` inflated bytes without reading them, where bytes are stored as they are and there are so many;
    /// `false` otherwise.
    pub(crate) fn skip(&mut self, n: u64) -> bool {
        let to = self.window.offset().saturating_add(n);
        let skips = self.open && matches!(self.codec, Codec::None) && self.window.len().is_some_and(|len| to <= len);
        if skips {
            self.inside += n;
        }
        skips && self.window.seek(to)
    }

    /// Closes the open member and goes to a stored offset; `false` if the input is a stream that is past it.
    pub(crate) fn seek(&mut self, offset: u64) -> bool {
        self.open = false;
        self.carried = Carried::default();
        match &mut self.codec {
            Codec::Undetected | Codec::None => {}
            Codec::Gzip(gzip) => gzip.reset(),
            Codec::Zstd(zstd) => zstd.reset(),
        }
        self.window.seek(offset)
    }

    /// Whether how the file is stored is known.
    pub(crate) fn is_detected(&self) -> bool {
        !matches!(self.codec, Codec::Undetected)
    }

    /// Forgets how the file is stored: what is found next decides.
    pub(crate) fn forget_codec(&mut self) {
        self.open = false;
        self.codec = Codec::Undetected;
    }

    /// Stored offset right after the open member. One that has not ended yet is read a second time, once; `None` where that
    /// cannot be done, in a stream, and where the member is damaged further on.
    pub(crate) fn member_end(&mut self) -> Result<Option<u64>> {
        if let Some(known) = self.end {
            return Ok(known);
        }
        let (ended, codec) = match &self.codec {
            Codec::Undetected | Codec::None => return Ok(None),
            Codec::Gzip(gzip) => (gzip.is_ended(), Codec::Gzip(Box::new(Gzip::new()))),
            Codec::Zstd(zstd) => (zstd.is_ended(), Codec::Zstd(Box::new(zstd.another()))),
        };
        let end = match self.window.another(self.member) {
            _ if ended => Some(self.window.offset()),
            None => None,
            Some(window) => match (Container { codec, ..Container::new(window, self.limits) }).skim() {
                Err(e) if e.is_damage() => None,
                end => Some(end?),
            },
        };
        self.end = Some(end);
        Ok(end)
    }

    /// Reads the next member to its end, and says where that is.
    fn skim(mut self) -> Result<u64> {
        self.next_member()?;
        loop {
            match self.fill(1)?.len() {
                0 => return Ok(self.stored_offset()),
                n => self.consume(n),
            }
        }
    }

    /// The stored bytes, for finding a way on after damage.
    pub(crate) fn window(&mut self) -> &mut Window {
        &mut self.window
    }
}
