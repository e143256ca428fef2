//! The name of a capture: its URL, a tab, its time in 17 digits; for a further capture of the same moment a tab and a
//! number more.

use crate::design;
use crate::filesys::inode::MAX_NAME;
use trawl_model::UnixMillis;

/// Years that 17 digits can write: 0000 to 9999.
const MIN_TIME: i64 = -62_167_219_200_000;
const MAX_TIME: i64 = 253_402_300_799_999;

/// How an event is stored, told by the type of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// As it is.
    Plain,
    /// gzip members.
    Gzip,
    /// zstd frames.
    Zstd,
    /// Anything else.
    Other(char),
}

impl Form {
    /// From a file type.
    pub fn from_type(kind: char) -> Self {
        match kind {
            design::TYPE_PLAIN => Form::Plain,
            design::TYPE_GZIP => Form::Gzip,
            design::TYPE_ZSTD => Form::Zstd,
            other => Form::Other(other),
        }
    }

    /// As a file type.
    pub fn to_type(self) -> char {
        match self {
            Form::Plain => design::TYPE_PLAIN,
            Form::Gzip => design::TYPE_GZIP,
            Form::Zstd => design::TYPE_ZSTD,
            Form::Other(kind) => kind,
        }
    }
}

/// Longest URL in a name: the rest of it always fits.
const MAX_URL: usize = MAX_NAME - 60;

/// What an event can be called by: a URL that is too long, and a time that no calendar has, are in its records only.
pub fn nameable(url: &[u8], time: UnixMillis) -> (&[u8], UnixMillis) {
    let url = if url.len() <= MAX_URL { url } else { &[] };
    (url, if can_write(time) { time } else { UnixMillis(0) })
}

/// The parts of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub url: &'a [u8],
    pub time: UnixMillis,
    /// 0 for the first capture of this URL and moment.
    pub nth: u64,
}

/// Whether a time can be written in 17 digits.
pub(crate) fn can_write(time: UnixMillis) -> bool {
    (MIN_TIME..=MAX_TIME).contains(&time.0)
}

/// The name of the `nth` capture of `url` at `time`.
pub(crate) fn join(url: &[u8], time: UnixMillis, nth: u64) -> Vec<u8> {
    let mut name = url.to_vec();
    name.push(b'\t');
    name.extend_from_slice(time.digits17().as_bytes());
    if nth > 0 {
        name.push(b'\t');
        name.extend_from_slice(nth.to_string().as_bytes());
    }
    name
}

/// The parts of a name; `None` if it is none of a capture.
pub(crate) fn split(name: &[u8]) -> Option<Parts<'_>> {
    let (front, last) = split_last(name)?;
    if let Some(time) = time_of(last) {
        return Some(Parts { url: front, time, nth: 0 });
    }
    let (url, time) = split_last(front)?;
    let nth = std::str::from_utf8(last).ok().filter(|n| n.len() < 17)?.parse().ok().filter(|n| *n > 0)?;
    Some(Parts { url, time: time_of(time)?, nth })
}

fn split_last(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = name.iter().rposition(|b| *b == b'\t')?;
    let (front, rest) = name.split_at(tab);
    Some((front, rest.get(1..)?))
}

fn time_of(digits: &[u8]) -> Option<UnixMillis> {
    let text = std::str::from_utf8(digits).ok().filter(|t| t.len() == 17 && t.bytes().all(|b| b.is_ascii_digit()))?;
    UnixMillis::parse(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_lead_back() {
        let time = UnixMillis(1_782_262_923_456);
        assert_eq!(join(b"http://e.com/", time, 0), b"http://e.com/\t20260624010203456");
        assert_eq!(join(b"", time, 12), b"\t20260624010203456\t12");
        for name in ["", "x", "x\t", "x\t2026", "x\t20261324010203456", "x\t20260624010203456\t0", "\t1\t1"] {
            assert_eq!(split(name.as_bytes()), None, "{name}");
        }
        for kind in ['f', 'c', 'z', 'q'] {
            assert_eq!(Form::from_type(kind).to_type(), kind);
        }
        assert!(can_write(time) && !can_write(UnixMillis(i64::MAX)));
    }

    proptest! {
        #[test]
        fn any_url_even_with_tabs(url in "[a-z\t0-9]{0,40}", ms in MIN_TIME..=MAX_TIME, nth in 0u64..1000) {
            let (time, name) = (UnixMillis(ms), join(url.as_bytes(), UnixMillis(ms), nth));
            prop_assert_eq!(split(&name), Some(Parts { url: url.as_bytes(), time, nth }));
        }
    }
}
