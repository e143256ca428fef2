//! The stored bytes, seen through a window that moves forward.

use crate::error::{At, Error, Result};
use std::io::{self, Read};
use std::sync::Arc;
use trawl_io::ReadAt;

/// Where stored bytes come from.
pub(crate) enum Input {
    /// A stream: read once.
    Stream(Box<dyn Read + Send>),
    /// A file or anything else with offsets.
    At(Arc<dyn ReadAt>),
}

/// A window over the input: unread bytes from `offset` on.
pub(crate) struct Window {
    input: Input,
    name: Arc<str>,
    buf: Vec<u8>,
    start: usize,
    /// Input offset of `buf[start]`.
    offset: u64,
    ended: bool,
    /// Bytes to ask for next.
    ask: usize,
}

/// Bytes asked of the input at first: a single record by its offset should not cost more than it must.
const FIRST_READ_BYTES: usize = 32 << 10;
/// Bytes asked of the input at a time once reading goes on.
const READ_BYTES: usize = 256 << 10;

impl Window {
    pub(crate) fn new(input: Input, name: Arc<str>, offset: u64) -> Self {
        Window { input, name, buf: Vec::new(), start: 0, offset, ended: false, ask: FIRST_READ_BYTES }
    }

    /// A window of its own over the same input, from `offset` on; `None` over a stream.
    pub(crate) fn another(&self, offset: u64) -> Option<Window> {
        match &self.input {
            Input::Stream(_) => None,
            Input::At(file) => Some(Window::new(Input::At(file.clone()), self.name.clone(), offset)),
        }
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Bytes of the input; `None` for a stream.
    pub(crate) fn len(&self) -> Option<u64> {
        match &self.input {
            Input::Stream(_) => None,
            Input::At(file) => Some(file.len()),
        }
    }

    /// Input offset of the first unread byte.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Unread bytes that are here already.
    pub(crate) fn data(&self) -> &[u8] {
        self.buf.get(self.start..).unwrap_or_default()
    }

    /// Whether nothing follows what is here.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Reads until `want` bytes are here or the input ends.
    pub(crate) fn fill(&mut self, want: usize) -> Result<&[u8]> {
        while self.data().len() < want && !self.ended {
            self.more()?;
        }
        Ok(self.data())
    }

    /// A few bytes at another offset, fewer at the end of the input, without going there; none of a stream.
    pub(crate) fn peek(&self, offset: u64) -> Result<Vec<u8>> {
        const PEEKED: usize = 8;
        let here = offset.checked_sub(self.offset).and_then(|ahead| usize::try_from(ahead).ok());
        if let Some(near) = here.and_then(|at| self.data().get(at..at.checked_add(PEEKED)?)) {
            return Ok(near.to_vec());
        }
        let Input::At(file) = &self.input else { return Ok(Vec::new()) };
        let left = usize::try_from(file.len().saturating_sub(offset)).unwrap_or(PEEKED);
        let mut bytes = vec![0; left.min(PEEKED)];
        file.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Marks `n` bytes as read.
    pub(crate) fn consume(&mut self, n: usize) {
        let n = n.min(self.data().len());
        self.start += n;
        self.offset += n as u64;
    }

    /// Goes to another offset; `false` if the input is a stream that is past it.
    pub(crate) fn seek(&mut self, offset: u64) -> bool {
        let here = self.offset..=self.offset + self.data().len() as u64;
        if here.contains(&offset) {
            self.consume(usize::try_from(offset - self.offset).unwrap_or(usize::MAX));
            return true;
        }
        // The bytes just before may still be in the buffer: damage is often found right after it was read.
        let back = self.offset.saturating_sub(offset);
        if offset < self.offset && back <= self.start as u64 {
            self.start -= usize::try_from(back).unwrap_or(0);
            self.offset = offset;
            return true;
        }
        if let Input::Stream(_) = self.input {
            return false;
        }
        self.buf.clear();
        self.start = 0;
        self.offset = offset;
        self.ended = false;
        self.ask = FIRST_READ_BYTES;
        true
    }

    fn more(&mut self) -> Result<()> {
        if self.start > 0 {
            self.buf.drain(..self.start);
            self.start = 0;
        }
        let have = self.buf.len();
        let at = self.offset.saturating_add(have as u64);
        let fail = |name: &Arc<str>, source: io::Error| {
            Error::from_io(At { file: name.clone(), offset: at, inside: 0 }, source)
        };
        let room = match &self.input {
            Input::Stream(_) => self.ask,
            Input::At(file) => usize::try_from(file.len().saturating_sub(at)).unwrap_or(usize::MAX).min(self.ask),
        };
        self.ask = (self.ask * 2).min(READ_BYTES);
        self.buf.resize(have + room, 0);
        let target = self.buf.get_mut(have..).unwrap_or_default();
        let read = match &mut self.input {
            Input::At(file) => file.read_at(at, target).map(|()| room).map_err(Error::from),
            Input::Stream(stream) => loop {
                match stream.read(target) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    result => break result.map_err(|e| fail(&self.name, e)),
                }
            },
        };
        self.buf.truncate(have + read.as_ref().copied().unwrap_or(0));
        self.ended = read? == 0;
        Ok(())
    }
}
