//! Lines of bounded length.

use std::io::{self, BufRead, BufReader, Read as IoRead};

/// No line may be longer: a URL has at most 64 KiB, the rest is metadata.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// Reads lines, without their ends.
pub(crate) struct Lines {
    source: BufReader<Box<dyn IoRead + Send>>,
    line: Vec<u8>,
}

/// One reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Read<'a> {
    Line(&'a [u8]),
    /// A longer line, passed over; its start.
    TooLong(&'a [u8]),
    End,
}

impl Lines {
    pub(crate) fn new(source: Box<dyn IoRead + Send>) -> Self {
        Self { source: BufReader::with_capacity(1 << 16, source), line: Vec::new() }
    }

    pub(crate) fn next(&mut self) -> io::Result<Read<'_>> {
        self.line.clear();
        let (mut any, mut too_long) = (false, false);
        loop {
            let chunk = match self.source.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = chunk.iter().position(|b| *b == b'\n');
            let (text, used) = match end {
                Some(at) => (chunk.get(..at).unwrap_or_default(), at + 1),
                None => (chunk, chunk.len()),
            };
            let room = MAX_BYTES - self.line.len();
            too_long |= text.len() > room;
            self.line.extend_from_slice(text.get(..room.min(text.len())).unwrap_or_default());
            self.source.consume(used);
            if end.is_some() {
                break;
            }
        }
        Ok(match (any, too_long) {
            (false, _) => Read::End,
            (true, true) => Read::TooLong(&self.line),
            (true, false) => Read::Line(&self.line),
        })
    }
}
