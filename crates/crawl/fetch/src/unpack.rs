//! Undoing `Transfer-Encoding: gzip`, as it comes.

use flate2::write::MultiGzDecoder;
use std::io::Write;

/// Takes packed bytes, gives the page's. What is not gzip at all is given as it came: some servers say so and do not.
pub(crate) struct Unpacker {
    gzip: MultiGzDecoder<Vec<u8>>,
    state: State,
    /// Bytes taken before the first header of gzip was whole, in case it is none.
    held: Vec<u8>,
}

/// `Start --header--> Members --what is no member--> Behind`; `Start --no header--> Plain`; `Members --damage--> Broken`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Members,
    /// After the last member: padding, which counts for nothing.
    Behind,
    Plain,
    Broken,
}

/// A header of gzip may hold names of any length; one longer than this is none.
const HEADER_BYTES: usize = 64 * 1024;

impl Default for Unpacker {
    fn default() -> Self {
        Self { gzip: MultiGzDecoder::new(Vec::new()), state: State::Start, held: Vec::new() }
    }
}

impl Unpacker {
    pub(crate) fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.state {
                State::Plain => {
                    self.gzip.get_mut().extend_from_slice(bytes);
                    return;
                }
                State::Behind | State::Broken => return,
                State::Start | State::Members => {}
            }
            let written = self.gzip.write(bytes);
            let (taken, rest) = bytes.split_at(written.as_ref().map_or(bytes.len(), |n| *n));
            if self.state == State::Start {
                self.held.extend_from_slice(taken);
            }
            bytes = rest;
            let header = self.gzip.header().is_some();
            self.state = match (self.state, written) {
                (State::Start, Ok(1..)) if header => State::Members,
                (State::Start, Ok(1..)) if self.held.len() <= HEADER_BYTES => State::Start,
                (State::Start, _) => {
                    *self.gzip.get_mut() = std::mem::take(&mut self.held);
                    State::Plain
                }
                (state, Ok(1..)) => state,
                // No header behind a member that ended well.
                (_, Err(_)) if !header => State::Behind,
                _ => State::Broken,
            };
        }
    }

    /// What is unpacked by now.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.gzip.get_mut())
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.state == State::Broken
    }

    /// What is left, and whether the packed data is whole by its own account; `None` where it gives none.
    pub(crate) fn finish(mut self) -> (Vec<u8>, Option<bool>) {
        let whole = match self.state {
            State::Start => return (self.held, None),
            State::Plain => None,
            State::Behind => Some(true),
            // Without a header, what came after the last member is padding.
            State::Members | State::Broken => {
                let finished = self.gzip.try_finish().is_ok();
                Some(finished || self.state == State::Members && self.gzip.header().is_none())
            }
        };
        (self.take(), whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pack(text: &[u8]) -> Vec<u8> {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    fn unpack<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> (Vec<u8>, Option<bool>) {
        let (mut unpacker, mut out) = (Unpacker::default(), Vec::new());
        for part in parts {
            unpacker.put(part);
            out.extend(unpacker.take());
        }
        let (rest, whole) = unpacker.finish();
        out.extend(rest);
        (out, whole)
    }

    /// However it is cut into reads, the page comes out, and nothing else.
    #[test]
    fn members_padding_and_lies_cut_anywhere() {
        let page = b"a page, a page, a page".as_slice();
        let one = pack(page);
        let two = [pack(b"a page, "), pack(b"a page, a page")].concat();
        let padded = [one.clone(), vec![0; 4]].concat();
        let long = [one.clone(), vec![0; 40]].concat();
        let empty = [pack(b""), b"<garbage behind an empty member>".to_vec()].concat();
        for (packed, expected, whole) in [
            (one.as_slice(), page, Some(true)),
            (&two, page, Some(true)),
            (&padded, page, Some(true)),
            (&long, page, Some(true)),
            (&empty, b"", Some(true)),
            (page, page, None),
            (b"short", b"short", None),
            (b"", b"", None),
        ] {
            for cut in 0..=packed.len() {
                let (a, b) = packed.split_at(cut);
                assert_eq!(unpack([a, b]), (expected.to_vec(), whole), "cut at {cut} of {}", packed.len());
            }
            assert_eq!(unpack(packed.chunks(1)), (expected.to_vec(), whole));
        }
    }

    #[test]
    fn what_is_missing_or_damaged_is_told() {
        let page: Vec<u8> = (0..50_000u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let packed = pack(&page);
        let (out, whole) = unpack([&packed[..packed.len() / 2]]);
        assert_eq!(whole, Some(false));
        assert!(out.len() > 50_000 && page.starts_with(&out), "{}", out.len());
        let mut damaged = packed.clone();
        let last = damaged.len() - 6;
        damaged[last] ^= 1;
        assert_eq!(unpack([damaged.as_slice()]).1, Some(false));
        assert_eq!(unpack([damaged.as_slice(), packed.as_slice()]).1, Some(false));
    }
}
