//! Where a body ends, and the chunked coding.

use crate::head::Head;

/// How a response says where its body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body, whatever the head says.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// Until the connection ends.
    Close,
}

impl Framing {
    /// Reads it off a head, forgivingly: lengths that disagree or are no numbers mean "until the end".
    pub(crate) fn of(head: &Head) -> Self {
        if matches!(head.status(), 100..=199 | 204 | 304) {
            return Self::None;
        }
        if head.has_token("transfer-encoding", "chunked") {
            return Self::Chunked;
        }
        if head.all("transfer-encoding").any(|v| !v.is_empty() && !v.eq_ignore_ascii_case(b"identity")) {
            return Self::Close;
        }
        let mut lengths = head.all("content-length").flat_map(|v| v.split(|b| *b == b',')).map(number);
        match lengths.next() {
            Some(Some(first)) if lengths.all(|other| other == Some(first)) => Self::Length(first),
            _ => Self::Close,
        }
    }
}

fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Takes the chunked coding apart, a read at a time.
///
/// ```text
/// Size --LF--> Data(n) --n bytes--> DataEnd --LF--> Size        Size(0) --LF--> Trailer --empty line--> Done
/// ```
#[derive(Debug)]
pub(crate) struct Chunked {
    state: State,
    /// Digits of the size so far.
    size: u64,
    digits: u32,
    /// Bytes of size lines and trailers since the last data: a server may not send those for ever.
    overhead: usize,
    started: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Extension,
    Data(u64),
    DataEnd,
    /// In a trailer line, with its length so far.
    Trailer(usize),
    Done,
}

/// What came of feeding bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fed {
    /// All of it is used up; more is needed.
    More,
    /// The body is complete; this many bytes were used.
    Done(usize),
    /// Not the chunked coding; `first`: already the first size line was not.
    Bad { first: bool },
}

const MAX_OVERHEAD: usize = 16 * 1024;

impl Chunked {
    pub(crate) fn new() -> Self {
        Self { state: State::Size, size: 0, digits: 0, overhead: 0, started: false }
    }

    /// Whether a size line was read whole.
    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// Feeds bytes; decoded ones go to `out`.
    pub(crate) fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Fed {
        let mut at = 0;
        while let Some(byte) = input.get(at).copied() {
            if let State::Data(left) = self.state {
                let here = input.len() - at;
                let take = usize::try_from(left).unwrap_or(usize::MAX).min(here);
                out.extend_from_slice(input.get(at..at + take).unwrap_or_default());
                at += take;
                self.overhead = 0;
                self.state = match left - take as u64 {
                    0 => State::DataEnd,
                    rest => State::Data(rest),
                };
                continue;
            }
            at += 1;
            self.overhead += 1;
            if self.overhead > MAX_OVERHEAD || !self.step(byte) {
                return Fed::Bad { first: !self.started };
            }
            if self.state == State::Done {
                return Fed::Done(at);
            }
        }
        Fed::More
    }

    /// One byte outside of data; `false` if it cannot be.
    fn step(&mut self, byte: u8) -> bool {
        self.state = match (self.state, byte) {
            (State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = char::from(byte).to_digit(16).unwrap_or(0);
                let Some(size) = self.size.checked_mul(16).and_then(|s| s.checked_add(u64::from(digit))) else {
                    return false;
                };
                self.size = size;
                self.digits += 1;
                State::Size
            }
            (State::Size, b' ' | b'\t' | b'\r') => State::Size,
            (State::Size, b';') if self.digits > 0 => State::Extension,
            (State::Size | State::Extension, b'\n') if self.digits > 0 => {
                let size = self.size;
                (self.size, self.digits, self.started) = (0, 0, true);
                if size == 0 { State::Trailer(0) } else { State::Data(size) }
            }
            (State::Extension, _) => State::Extension,
            (State::DataEnd, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Size,
            (State::Trailer(0), b'\n') => State::Done,
            (State::Trailer(n), b'\r') => State::Trailer(n),
            (State::Trailer(_), b'\n') => State::Trailer(0),
            (State::Trailer(n), _) => State::Trailer(n + 1),
            _ => return false,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;

    fn framing(headers: &str) -> Framing {
        Framing::of(&Head::parse(Bytes::from(format!("HTTP/1.1 200 OK\r\n{headers}\r\n"))).unwrap())
    }

    #[test]
    fn the_end_of_a_body() {
        assert_eq!(framing("Content-Length: 5\r\n"), Framing::Length(5));
        assert_eq!(framing("Content-Length: 5\r\nContent-Length: 5, 5\r\n"), Framing::Length(5));
        assert_eq!(framing("Content-Length: 5\r\nContent-Length: 6\r\n"), Framing::Close);
        assert_eq!(framing("Content-Length: -5\r\n"), Framing::Close);
        assert_eq!(framing("Content-Length: +5\r\n"), Framing::Close);
        assert_eq!(framing("Content-Length: 99999999999999999999\r\n"), Framing::Close);
        assert_eq!(framing("Content-Length: 5\r\nTransfer-Encoding: gzip, Chunked\r\n"), Framing::Chunked);
        assert_eq!(framing("Content-Length: 5\r\nTransfer-Encoding: identity\r\n"), Framing::Length(5));
        assert_eq!(framing("Transfer-Encoding: gzip\r\n"), Framing::Close);
        assert_eq!(framing(""), Framing::Close);
        let head = Head::parse(Bytes::from_static(b"HTTP/1.1 304 x\r\nContent-Length: 5\r\n\r\n")).unwrap();
        assert_eq!(Framing::of(&head), Framing::None);
    }

    fn decode(input: &[u8], step: usize) -> (Fed, Vec<u8>, usize) {
        let (mut chunked, mut out, mut used) = (Chunked::new(), Vec::new(), 0);
        for part in input.chunks(step) {
            match chunked.feed(part, &mut out) {
                Fed::More => used += part.len(),
                Fed::Done(n) => return (Fed::Done(n), out, used + n),
                bad => return (bad, out, used),
            }
        }
        (Fed::More, out, used)
    }

    #[test]
    fn chunks_in_every_portion() {
        let good = b"5;ext=\"x\"\r\nhello\r\n 006 \r\n world\n0\r\nTrailer: x\r\n\r\nNEXT";
        for step in 1..good.len() {
            let (fed, out, used) = decode(good, step);
            assert!(matches!(fed, Fed::Done(_)), "{step}");
            assert_eq!((out.as_slice(), used), (&b"hello world"[..], good.len() - 4), "{step}");
        }
        assert_eq!(decode(b"<html>", 10).0, Fed::Bad { first: true });
        assert_eq!(decode(b"3\r\nabcX", 10).0, Fed::Bad { first: false });
        assert_eq!(decode(b"fffffffffffffffff\r\n", 99).0, Fed::Bad { first: true });
        assert_eq!(decode(b"\r\n", 99).0, Fed::Bad { first: true });
        assert_eq!(decode(&vec![b'1'; 20_000], 99).0, Fed::Bad { first: true });
        assert_eq!(decode(&[&b"0\r\n"[..], &vec![b'x'; 20_000]].concat(), 99).0, Fed::Bad { first: false });
    }

    proptest! {
        #[test]
        fn round_trip(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..50), 0..6), step in 1usize..40) {
            let mut coded = Vec::new();
            for part in &parts {
                coded.extend(format!("{:x}\r\n", part.len()).bytes());
                coded.extend(part);
                coded.extend(b"\r\n");
            }
            coded.extend(b"0\r\n\r\n");
            let (fed, out, used) = decode(&coded, step);
            prop_assert!(matches!(fed, Fed::Done(_)));
            prop_assert_eq!(out, parts.concat());
            prop_assert_eq!(used, coded.len());
        }

        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), step in 1usize..40) {
            let _ = decode(&bytes, step);
        }
    }
}
