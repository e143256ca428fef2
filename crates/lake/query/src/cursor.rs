//! Cursors: where a page ended, opaque to clients.

use crate::{Filter, QueryError};
use data_encoding::BASE64URL_NOPAD;
use trawl_io::crc::crc32c;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::put_uvarint;

/// Longest text that is decoded.
const MAX_LEN: usize = 300;
const VERSION: u8 = 2;

/// The next row to return, and for which question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// The version it belongs to.
    pub version: String,
    /// xxh3_64 of the domain.
    pub domain_id: u64,
    pub dataset_id: u32,
    /// Which rows were asked for: see [`mark_of`].
    pub filter: u32,
    /// Place of the segment in the version.
    pub segment: u32,
    pub file_id: u32,
    pub row_group: u32,
    /// Row within the row group.
    pub row: u64,
}

impl Cursor {
    pub fn encode(&self) -> String {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.domain_id.to_le_bytes());
        bytes.extend_from_slice(&self.filter.to_le_bytes());
        for number in [self.dataset_id, self.segment, self.file_id, self.row_group] {
            put_uvarint(&mut bytes, u64::from(number));
        }
        put_uvarint(&mut bytes, self.row);
        bytes.extend_from_slice(self.version.as_bytes());
        bytes.extend_from_slice(&crc32c(&bytes).to_le_bytes());
        BASE64URL_NOPAD.encode(&bytes)
    }

    pub fn decode(text: &str) -> Result<Self, QueryError> {
        let bad = |why| QueryError::BadCursor { why };
        if text.len() > MAX_LEN {
            return Err(bad("it is too long"));
        }
        let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).map_err(|_| bad("it is not one"))?;
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or(bad("it is too short"))?;
        if crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(bad("it was changed"));
        }
        parse(body).ok().flatten().ok_or(bad("it is not one"))
    }
}

/// By what a filter, in the spelling of rows, is known again.
pub(crate) fn mark_of(filter: &Filter) -> u32 {
    let Filter { host, path_prefix, from, until, status, error_class } = filter;
    let told = (host, path_prefix, from.map(|ts| ts.0), until.map(|ts| ts.0), status, error_class);
    crc32c(format!("{told:?}").as_bytes())
}

fn parse(body: &[u8]) -> Result<Option<Cursor>, SliceError> {
    let mut r = SliceReader::new(body);
    if r.u8("version")? != VERSION {
        return Ok(None);
    }
    let domain_id = r.u64("domain id")?;
    let filter = r.u32("filter")?;
    let mut small = [0u32; 4];
    for number in &mut small {
        let Ok(value) = u32::try_from(r.uvarint("number")?) else { return Ok(None) };
        *number = value;
    }
    let [dataset_id, segment, file_id, row_group] = small;
    let row = r.uvarint("row")?;
    let Ok(version) = std::str::from_utf8(r.rest()) else { return Ok(None) };
    Ok(Some(Cursor { version: version.to_owned(), domain_id, dataset_id, filter, segment, file_id, row_group, row }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_come_back_and_changed_ones_do_not() {
        let cursor = Cursor {
            version: "2026-06-24T01:02:03.456Z".into(),
            domain_id: u64::MAX,
            dataset_id: 7,
            filter: 9,
            segment: 1,
            file_id: u32::MAX,
            row_group: 3,
            row: 1 << 40,
        };
        let text = cursor.encode();
        assert_eq!(Cursor::decode(&text).unwrap(), cursor);
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(Cursor::decode(std::str::from_utf8(&changed).unwrap()).is_err(), "byte {at}");
            assert!(Cursor::decode(&text[..at]).is_err(), "cut at {at}");
        }
        assert!(Cursor::decode(&"A".repeat(400)).is_err() && Cursor::decode("ü").is_err());
    }
}
