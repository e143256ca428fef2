//! Chunked transfer coding (RFC 9112, 7.1), taken off while reading.

use std::io::{self, BufRead, Read};

/// A chunk-size line longer than this, extensions included, is not one.
const MAX_LINE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before a chunk-size line.
    Size,
    /// In a chunk with this many bytes left.
    Data(u64),
    /// Before the line end that closes a chunk.
    DataEnd,
    /// In the trailer fields after the last chunk, or past them.
    End,
}

/// Reads a chunked body and yields what the chunks hold. Trailer fields are skipped.
#[derive(Debug)]
pub struct Dechunk<R> {
    inner: R,
    state: State,
}

impl<R: BufRead> Dechunk<R> {
    /// Reads chunks from `inner`.
    pub fn new(inner: R) -> Self {
        Dechunk { inner, state: State::Size }
    }

    /// Whether a body that begins like this can be chunked. Some tools take the chunks apart and keep the header.
    pub fn may_begin(data: &[u8]) -> bool {
        let line = data.split(|b| *b == b'\n').next().unwrap_or_default();
        parse_size(line).is_some() && (line.len() < data.len() || data.len() < MAX_LINE)
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        (&mut self.inner).take(MAX_LINE as u64).read_until(b'\n', &mut line)?;
        match line.last() {
            Some(b'\n') => Ok(line),
            _ => Err(bad("the end of a line", &line)),
        }
    }

    fn step(&mut self) -> io::Result<()> {
        self.state = match self.state {
            State::Size => {
                let line = self.line()?;
                match parse_size(&line) {
                    Some(0) => self.trailers()?,
                    Some(size) => State::Data(size),
                    None => return Err(bad("a chunk size in hex", &line)),
                }
            }
            State::Data(0) => State::DataEnd,
            State::DataEnd => {
                let line = self.line()?;
                if !line.trim_ascii().is_empty() {
                    return Err(bad("a line end after a chunk", &line));
                }
                State::Size
            }
            other => other,
        };
        Ok(())
    }

    fn trailers(&mut self) -> io::Result<State> {
        // A body that ends right after the last chunk is whole: its content is.
        while !self.inner.fill_buf()?.is_empty() {
            if self.line()?.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(State::End)
    }
}

impl<R: BufRead> Read for Dechunk<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        loop {
            match self.state {
                State::End => return Ok(0),
                State::Data(left) if left > 0 => {
                    let n = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
                    let got = self.inner.read(buf.get_mut(..n).unwrap_or_default())?;
                    if got == 0 {
                        return Err(bad("the rest of a chunk", b""));
                    }
                    self.state = State::Data(left - got as u64);
                    return Ok(got);
                }
                _ => self.step()?,
            }
        }
    }
}

fn parse_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|b| *b == b';').next()?.trim_ascii();
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0u64, |n, b| {
        let digit = char::from(*b).to_digit(16)?;
        n.checked_mul(16)?.checked_add(u64::from(digit))
    })
}

fn bad(expected: &str, found: &[u8]) -> io::Error {
    let found = crate::error::shown(found);
    io::Error::new(io::ErrorKind::InvalidData, format!("chunked body: expected {expected}, found {found}"))
}
