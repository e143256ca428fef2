//! The chunked transfer coding (RFC 9112, 7.1), taken off.

use std::io::{self, BufRead, Read};
use std::ops::Range;

/// Takes the chunked coding apart, whatever portions it comes in. Holds no bytes itself.
///
/// ```text
/// Size --LF--> Data(n) --n bytes--> DataEnd --LF--> Size        Size(0) --LF--> Trailer --empty line--> Done
/// ```
#[derive(Debug)]
pub struct Chunked {
    state: State,
    /// The size whose digits are being read.
    size: u64,
    /// Bytes of size lines and trailers since the last data: a server may not send those for ever.
    overhead: usize,
    started: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the digits of a size.
    Start,
    Size,
    /// Blanks after the digits.
    SizeEnd,
    Extension,
    Data(u64),
    DataEnd,
    /// In a trailer line; whether something stands on it.
    Trailer(bool),
    Done,
}

/// What a portion of a body holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These bytes are content, and all up to their end are used.
    Data(Range<usize>),
    /// All bytes are used; more are needed.
    More,
    /// The body is complete; this many bytes are used.
    Done(usize),
    /// Not the chunked coding. `first`: already the first size line was not, so the body is not chunked at all.
    Bad {
        /// Whether no size line was read whole before.
        first: bool,
    },
}

const MAX_OVERHEAD: usize = 16 * 1024;

impl Chunked {
    /// Before the first byte of a body.
    #[expect(clippy::new_without_default, reason = "a decoder has a beginning, not a default")]
    pub fn new() -> Self {
        Self { state: State::Start, size: 0, overhead: 0, started: false }
    }

    /// Whether a body that begins like this can be chunked. Some tools take the chunks apart and keep the header.
    pub fn may_begin(start: &[u8]) -> bool {
        Self::new().step(start) != Step::Bad { first: true }
    }

    /// Whether a size line was read whole.
    pub fn started(&self) -> bool {
        self.started
    }

    /// Whether the last chunk came. A body that ends here is complete (RFC 9112, 8), its trailer fields missing or not.
    pub fn is_whole(&self) -> bool {
        matches!(self.state, State::Trailer(_) | State::Done)
    }

    /// Looks at what comes next. Bytes that a step used must not be shown again.
    pub fn step(&mut self, input: &[u8]) -> Step {
        for (at, byte) in input.iter().enumerate() {
            if let State::Data(left) = self.state {
                let here = (input.len() - at) as u64;
                self.overhead = 0;
                self.state = if left <= here { State::DataEnd } else { State::Data(left - here) };
                let len = usize::try_from(left).map_or(input.len() - at, |left| left.min(input.len() - at));
                return Step::Data(at..at + len);
            }
            self.overhead += 1;
            if self.overhead > MAX_OVERHEAD || !self.byte(*byte) {
                return Step::Bad { first: !self.started };
            }
            if self.state == State::Done {
                return Step::Done(at + 1);
            }
        }
        Step::More
    }

    /// One byte outside of data; `false` if it cannot be.
    fn byte(&mut self, byte: u8) -> bool {
        self.state = match (self.state, byte) {
            (State::Start | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).map(u64::from);
                let Some(size) = self.size.checked_mul(16).zip(digit).and_then(|(size, digit)| size.checked_add(digit))
                else {
                    return false;
                };
                self.size = size;
                State::Size
            }
            (State::Start, b' ' | b'\t') => State::Start,
            (State::Size | State::SizeEnd, b' ' | b'\t' | b'\r') => State::SizeEnd,
            (State::Size | State::SizeEnd, b';') => State::Extension,
            (State::Size | State::SizeEnd | State::Extension, b'\n') => {
                self.started = true;
                match std::mem::take(&mut self.size) {
                    0 => State::Trailer(false),
                    size => State::Data(size),
                }
            }
            (State::Extension, _) => State::Extension,
            (State::DataEnd, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Start,
            (State::Trailer(false), b'\n') => State::Done,
            (State::Trailer(_), b'\n') => State::Trailer(false),
            (State::Trailer(written), b'\r') => State::Trailer(written),
            (State::Trailer(_), _) => State::Trailer(true),
            _ => return false,
        };
        true
    }

    fn expected(&self) -> &'static str {
        match self.state {
            State::Start | State::Size | State::SizeEnd | State::Extension => "a chunk size in hex",
            State::Data(_) => "the rest of a chunk",
            State::DataEnd => "a line end after a chunk",
            State::Trailer(_) | State::Done => "the end of the trailer fields",
        }
    }
}

/// Reads a chunked body and yields what the chunks hold. Trailer fields are skipped. What is not the chunked coding, or ends
/// before its last chunk, is an error of kind `InvalidData`.
#[derive(Debug)]
pub struct Dechunk<R> {
    inner: R,
    chunked: Chunked,
    /// Bytes of content in front of `inner`.
    ready: usize,
}

impl<R: BufRead> Dechunk<R> {
    /// Reads chunks from `inner`.
    pub fn new(inner: R) -> Self {
        Dechunk { inner, chunked: Chunked::new(), ready: 0 }
    }
}

impl<R: BufRead> Read for Dechunk<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.ready == 0 && !buf.is_empty() && self.chunked.state != State::Done {
            let input = self.inner.fill_buf()?;
            if input.is_empty() && self.chunked.is_whole() {
                break;
            }
            let used = match self.chunked.step(input) {
                _ if input.is_empty() => return Err(bad(&self.chunked, "the end")),
                Step::Data(range) => {
                    self.ready = range.len();
                    range.start
                }
                Step::More => input.len(),
                Step::Done(used) => used,
                Step::Bad { .. } => {
                    let start = input.get(..input.len().min(40)).unwrap_or_default();
                    return Err(bad(&self.chunked, &format!("{:?}", String::from_utf8_lossy(start))));
                }
            };
            self.inner.consume(used);
        }
        let n = self.ready.min(buf.len());
        let got = self.inner.read(buf.get_mut(..n).unwrap_or_default())?;
        self.ready -= got;
        Ok(got)
    }
}

fn bad(chunked: &Chunked, found: &str) -> io::Error {
    let message = format!("chunked body: expected {}, found {found}", chunked.expected());
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// How it ended, what the chunks held, and how much was used.
    fn decode(input: &[u8], portion: usize) -> (Step, Vec<u8>, usize) {
        let (mut chunked, mut out, mut used) = (Chunked::new(), Vec::new(), 0);
        for part in input.chunks(portion) {
            let mut at = 0;
            while at < part.len() {
                let rest = &part[at..];
                at += match chunked.step(rest) {
                    Step::Data(range) => {
                        out.extend_from_slice(&rest[range.clone()]);
                        range.end
                    }
                    Step::More => rest.len(),
                    Step::Done(n) => return (Step::Done(n), out, used + at + n),
                    bad => return (bad, out, used),
                };
            }
            used += part.len();
        }
        (Step::More, out, used)
    }

    fn dechunk(data: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Dechunk::new(data).read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn chunks_in_every_portion() {
        let good = b"5;ext=\"x\"\r\nhello\r\n 006 \r\n world\n0\r\nTrailer: x\r\n\r\nNEXT";
        for portion in 1..good.len() {
            let (step, out, used) = decode(good, portion);
            assert!(matches!(step, Step::Done(_)), "{portion}");
            assert_eq!((out.as_slice(), used), (&b"hello world"[..], good.len() - 4), "{portion}");
            let mut reader = Dechunk::new(io::BufReader::with_capacity(portion, &good[..]));
            let (mut out, mut buf) = (Vec::new(), [0; 3]);
            loop {
                match reader.read(&mut buf).unwrap() {
                    0 => break,
                    n => out.extend_from_slice(&buf[..n]),
                }
            }
            assert_eq!(out, b"hello world", "{portion}");
        }
        for (bytes, first) in [
            (&b"<html>"[..], true),
            (b"3\r\nabcX", false),
            (b"fffffffffffffffff\r\n", true),
            (b"\r\n", true),
            (b"1 0\r\n", true),
            (b"bad request\r\n", true),
            (&[b'1'; 20_000], true),
            (&[&b"0\r\n"[..], &[b'x'; 20_000]].concat(), false),
        ] {
            assert_eq!(
                decode(bytes, 99).0,
                Step::Bad { first },
                "{:?}",
                String::from_utf8_lossy(&bytes[..6.min(bytes.len())])
            );
        }
        assert!(Chunked::may_begin(b"1a\r\nabc") && Chunked::may_begin(b"1\r\nabc") && Chunked::may_begin(b"1"));
        assert!(!Chunked::may_begin(b"<html>\r\n"));
    }

    #[test]
    fn chunks_are_joined() {
        assert_eq!(dechunk(b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n").unwrap(), b"hello world");
        assert_eq!(dechunk(b"0\r\n\r\n").unwrap(), b"");
        // All of the content came: what follows the last chunk may be missing.
        assert_eq!(dechunk(b"1\na\n0\n").unwrap(), b"a");
        assert_eq!(dechunk(b"1\na\n0\nTrail").unwrap(), b"a");
        for (text, expected) in [
            ("", "expected a chunk size in hex, found the end"),
            ("x\r\n", "expected a chunk size in hex, found \"x\\r\\n\""),
            ("5\r\nhell", "expected the rest of a chunk, found the end"),
            ("5\r\nhello!!\r\n0\r\n\r\n", "expected a line end after a chunk, found \"!!"),
            ("fffffffffffffffff\r\n", "a chunk size in hex"),
            ("1\r\na\r\n", "expected a chunk size in hex, found the end"),
            ("1\r\na\r\n0", "expected a chunk size in hex, found the end"),
        ] {
            let error = dechunk(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains(expected), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..6), portion in 1usize..40) {
            let mut coded = Vec::new();
            for part in &parts {
                coded.extend(format!("{:x}\r\n", part.len()).bytes());
                coded.extend(part);
                coded.extend(b"\r\n");
            }
            coded.extend(b"0\r\n\r\n");
            let (step, out, used) = decode(&coded, portion);
            prop_assert!(matches!(step, Step::Done(_)));
            prop_assert_eq!(&out, &parts.concat());
            prop_assert_eq!(used, coded.len());
            prop_assert_eq!(dechunk(&coded).unwrap(), out);
            // Cut before its last chunk, it is an error.
            let end = coded.len() - 4;
            for cut in 0..end {
                prop_assert!(dechunk(&coded[..cut]).is_err());
            }
        }

        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), portion in 1usize..40) {
            let (_, out, _) = decode(&bytes, portion);
            if let Ok(read) = dechunk(&bytes) {
                prop_assert_eq!(read, out);
            }
        }
    }
}
