//! A text that names one capture to a client that got it in an answer.
//!
//! It says what to look up, not where to read: whether the row is there, denied or hidden is found out each time.

use crate::QueryError;
use data_encoding::BASE64URL_NOPAD;
use trawl_io::crc::crc32c;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::put_uvarint;
use trawl_model::UnixMillis;

const VERSION: u8 = 1;
/// Longest text that is decoded: a URL of the greatest length and the few numbers beside it.
const MAX_LEN: usize = (trawl_url::MAX_URL_LEN + 64) / 3 * 4 + 4;

/// One row that is a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locator {
    /// Number of the dataset.
    pub dataset_id: u32,
    /// Its time, where it has one.
    pub ts: Option<UnixMillis>,
    /// Where its record begins.
    pub offset: u64,
    /// The URL without user name and password: anybody can read a locator.
    pub url: String,
}

impl Locator {
    pub(crate) fn encode(dataset_id: u32, ts: Option<UnixMillis>, offset: u64, url: &str) -> String {
        BASE64URL_NOPAD.encode(Self::bytes(dataset_id, ts, offset, url, &mut Vec::new()))
    }

    /// Appends the same to `out`; `room` is used on the way.
    pub(crate) fn encode_into(
        dataset_id: u32,
        ts: Option<UnixMillis>,
        offset: u64,
        url: &str,
        room: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let bytes = Self::bytes(dataset_id, ts, offset, url, room);
        let at = out.len();
        out.resize(at + BASE64URL_NOPAD.encode_len(bytes.len()), 0);
        out.get_mut(at..).into_iter().for_each(|text| BASE64URL_NOPAD.encode_mut(bytes, text));
    }

    fn bytes<'a>(dataset_id: u32, ts: Option<UnixMillis>, offset: u64, url: &str, room: &'a mut Vec<u8>) -> &'a [u8] {
        room.clear();
        room.reserve(url.len() + 32);
        room.push(VERSION);
        put_uvarint(room, u64::from(dataset_id));
        room.push(u8::from(ts.is_some()));
        room.extend_from_slice(&ts.unwrap_or_default().0.to_le_bytes());
        put_uvarint(room, offset);
        room.extend_from_slice(url.as_bytes());
        room.extend_from_slice(&crc32c(room).to_le_bytes());
        room
    }

    /// Reads one that an answer had.
    pub fn decode(text: &str) -> Result<Self, QueryError> {
        let bad = || QueryError::BadRequest { why: "expected a locator from an earlier answer" };
        if text.len() > MAX_LEN {
            return Err(bad());
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| bad())?;
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(bad)?;
        if crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(bad());
        }
        parse(body).ok().flatten().ok_or_else(bad)
    }
}

fn parse(body: &[u8]) -> Result<Option<Locator>, SliceError> {
    let mut r = SliceReader::new(body);
    if r.u8("version")? != VERSION {
        return Ok(None);
    }
    let Ok(dataset_id) = u32::try_from(r.uvarint("dataset")?) else { return Ok(None) };
    let has_ts = r.u8("whether there is a time")? == 1;
    let ts = UnixMillis(r.u64("time")?.cast_signed());
    let offset = r.uvarint("offset")?;
    let Ok(url) = std::str::from_utf8(r.rest()) else { return Ok(None) };
    Ok(Some(Locator { dataset_id, ts: has_ts.then_some(ts), offset, url: url.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locators_come_back_and_changed_ones_do_not() {
        for ts in [None, Some(UnixMillis(-5)), Some(UnixMillis(1 << 40))] {
            let text = Locator::encode(7, ts, 1 << 40, "http://ü.example/?a");
            let back = Locator::decode(&text).unwrap();
            assert_eq!(back, Locator { dataset_id: 7, ts, offset: 1 << 40, url: "http://ü.example/?a".into() });
            for at in 0..text.len() {
                assert!(Locator::decode(&text[..at]).is_err(), "cut at {at}");
                let mut changed = text.clone().into_bytes();
                changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
                assert!(Locator::decode(std::str::from_utf8(&changed).unwrap()).is_err(), "byte {at}");
            }
        }
        assert!(Locator::decode(&"A".repeat(MAX_LEN + 1)).is_err());
    }
}
