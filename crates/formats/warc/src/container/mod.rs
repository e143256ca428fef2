//! How records are stored: bytes as they are, gzip members, zstd frames. Knows nothing of records.
//!
//! A container is a sequence of members, each inflated on its own. An uncompressed file is one member that is as long
//! as the file; only there may an offset point into the middle.

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
}

impl Container {
    pub(crate) fn new(window: Window, limits: Limits) -> Self {
        let member = window.offset();
        Container { window, codec: Codec::Undetected, limits, member, inside: 0, open: false, end: None }
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
            _ => At { file, offset: self.member, inside: self.inside },
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

    /// Reads what is at the front of the file.
    pub(crate) fn read_front(&mut self) -> Result<()> {
        if self.seek(0) {
            self.next_member()?;
        }
        Ok(())
    }

    /// Opens the next member, dropping what is left of this one; `false` at the end of the file.
    pub(crate) fn next_member(&mut self) -> Result<bool> {
        self.detect()?;
        self.open = false;
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

    /// Inflated bytes that are here already.
    pub(crate) fn data(&self) -> &[u8] {
        match &self.codec {
            _ if !self.open => &[],
            Codec::Undetected | Codec::None => self.window.data(),
            Codec::Gzip(gzip) => gzip.data(),
            Codec::Zstd(zstd) => zstd.data(),
        }
    }

    /// Unread inflated bytes of the open member: at least `want` of them unless it ends sooner.
    pub(crate) fn fill(&mut self, want: usize) -> Result<&[u8]> {
        if self.open && self.data().len() < want {
            let start = At { file: self.window.name().clone(), offset: self.member, inside: 0 };
            match &mut self.codec {
                Codec::Undetected | Codec::None => self.window.fill(want).map(|_| ())?,
                Codec::Gzip(gzip) => gzip.fill(&mut self.window, &start, want)?,
                Codec::Zstd(zstd) => zstd.fill(&mut self.window, &start, want)?,
            }
        }
        Ok(self.data())
    }

    /// Marks `n` of the bytes `fill` showed as read.
    pub(crate) fn consume(&mut self, n: usize) {
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
