//! A page of rows as JSON, written straight from their columns into one buffer.
//!
//! A page has a thousand rows of a dozen fields. As [`UrlItem`]s each text of them would be allocated and copied once more
//! before it is written. A test compares every byte with what serde makes of [`UrlsAnswer`].

use crate::answer::shown_extras;
use crate::locator::Locator;
use crate::urls::digest_text;
use crate::{Filter, Page, Pinned, Principal, QueryError};
use bytes::Bytes;
use trawl_model::UnixMillis;
use trawl_rows::{Column, Rows};
use trawl_url::{url_id, without_userinfo};

/// Bytes that a row takes, about. Room for all is taken at once: growing would copy a page several times.
const ROW_BYTES: usize = 480;
/// Bytes left free in front of the items for what is known only after them. Most of it is a name of at most 253 bytes.
const HEAD_ROOM: usize = 512;

/// A [`crate::UrlsAnswer`] as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlsJson {
    /// The text.
    pub text: Bytes,
    /// Rows in it.
    pub rows: u64,
}

impl Pinned {
    /// What [`Pinned::urls`] answers, as JSON.
    pub fn urls_json(
        &self,
        name: &str,
        dataset_id: u32,
        page: &Page,
        filter: &Filter,
        who: &Principal,
    ) -> Result<UrlsJson, QueryError> {
        let mut items = Items::new(dataset_id, who);
        let (about, next) = self.urls_into(name, dataset_id, page, filter, who, &mut |rows, i| items.push(rows, i))?;
        let mut head = serde_json::to_vec(&about).map_err(QueryError::lake)?;
        let next = serde_json::to_vec(&next).map_err(QueryError::lake)?;
        let Items { mut text, rows, .. } = items;
        // Both are objects with members: the braces between them become the list.
        head.pop();
        head.extend_from_slice(b",\"items\":[");
        text.extend_from_slice(b"],");
        text.extend(next.iter().skip(1));
        Ok(UrlsJson { text: put_head(head, text), rows })
    }
}

/// Writes what is in front of the items into the room left for it; a longer one moves them.
fn put_head(head: Vec<u8>, mut text: Vec<u8>) -> Bytes {
    let start = HEAD_ROOM.saturating_sub(head.len());
    match text.get_mut(start..HEAD_ROOM).filter(|room| room.len() == head.len()) {
        Some(room) => room.copy_from_slice(&head),
        None => drop(text.splice(..HEAD_ROOM, head)),
    }
    text.shrink_to_fit();
    Bytes::from(text).slice(start..)
}

/// Items one after the other, with commas between them, behind [`HEAD_ROOM`].
struct Items<'a> {
    text: Vec<u8>,
    rows: u64,
    dataset_id: u32,
    who: &'a Principal,
    /// The URL at hand.
    url: String,
    locator: Vec<u8>,
}

impl<'a> Items<'a> {
    fn new(dataset_id: u32, who: &'a Principal) -> Self {
        Self { text: vec![0; HEAD_ROOM], rows: 0, dataset_id, who, url: String::new(), locator: Vec::new() }
    }

    fn push(&mut self, rows: &Rows, i: usize) -> Result<(), QueryError> {
        let out = &mut self.text;
        if self.rows > 0 {
            out.push(b',');
        } else {
            out.reserve(rows.len() * ROW_BYTES);
        }
        self.rows += 1;
        self.url.clear();
        rows.url_into(i, &mut self.url);
        out.extend_from_slice(b"{\"url_id\":\"");
        out.extend_from_slice(&hex(url_id(self.url.as_bytes())));
        out.extend_from_slice(b"\",\"url\":");
        let shown = without_userinfo(&self.url);
        put_text(out, if self.who.wants_credentials() { self.url.as_str() } else { &shown })?;
        let ts = rows.ts(i);
        if let Some(ts) = ts {
            out.extend_from_slice(b",\"ts\":\"");
            match time(ts) {
                Some(text) => out.extend_from_slice(&text),
                None => out.extend_from_slice(ts.to_string().as_bytes()),
            }
            out.push(b'"');
        }
        put_number(out, b",\"status\":", rows.unsigned::<u16>(Column::Status, i).map(u64::from));
        put_member(out, b",\"content_type\":", rows.text(Column::ContentType, i))?;
        put_member(out, b",\"digest\":", rows.text(Column::Digest, i).map(digest_text).as_deref())?;
        put_number(out, b",\"body_length\":", rows.unsigned(Column::BodyLength, i));
        let (file, offset) = (rows.text(Column::WarcFile, i), rows.unsigned(Column::WarcOffset, i));
        put_member(out, b",\"warc_file\":", file)?;
        put_number(out, b",\"warc_offset\":", offset);
        put_number(out, b",\"warc_length\":", rows.unsigned(Column::WarcLength, i));
        if let (Some(_), Some(offset)) = (file, offset) {
            out.extend_from_slice(b",\"locator\":\"");
            Locator::encode_into(self.dataset_id, ts, offset, &shown, &mut self.locator, out);
            out.push(b'"');
        }
        if let Some(extras) = rows.text(Column::Extras, i) {
            out.extend_from_slice(b",\"extras\":");
            serde_json::to_writer(&mut *out, &shown_extras(extras, self.who)).map_err(QueryError::lake)?;
        }
        out.push(b'}');
        Ok(())
    }
}

fn put_member(out: &mut Vec<u8>, name: &[u8], text: Option<&str>) -> Result<(), QueryError> {
    let Some(text) = text else { return Ok(()) };
    out.extend_from_slice(name);
    put_text(out, text)
}

fn put_number(out: &mut Vec<u8>, name: &[u8], number: Option<u64>) {
    let Some(mut number) = number else { return };
    out.extend_from_slice(name);
    // The longest has 20 digits.
    let mut digits = [b'0'; 20];
    let mut len = 0;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        len += 1;
        if number == 0 {
            break;
        }
    }
    out.extend(digits.iter().skip(digits.len() - len));
}

/// A string. Hardly any has something to escape, and to find that out takes a look at all bytes at once.
fn put_text(out: &mut Vec<u8>, text: &str) -> Result<(), QueryError> {
    let escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    if text.bytes().fold(false, |any, byte| any | escaped(byte)) {
        return serde_json::to_writer(out, text).map_err(QueryError::lake);
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
    Ok(())
}

/// An id: `0x` and sixteen hex digits.
pub(crate) fn hex(id: u64) -> [u8; 18] {
    let mut text = *b"0x0000000000000000";
    for (at, digit) in text.iter_mut().skip(2).enumerate() {
        let value = (id >> (60 - 4 * at) & 15) as u8;
        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
    }
    text
}

/// A time as `Display` writes it, if its year has four digits.
pub(crate) fn time(at: UnixMillis) -> Option<[u8; 24]> {
    let (year, month, day, hour, minute, second, milli) = at.civil();
    let year = u32::try_from(year).ok().filter(|year| *year <= 9999)?;
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (end, digits, mut value) in
        [(4, 4, year), (7, 2, month), (10, 2, day), (13, 2, hour), (16, 2, minute), (19, 2, second), (23, 3, milli)]
    {
        for digit in text.iter_mut().take(end).rev().take(digits) {
            *digit = b'0' + (value % 10) as u8;
            value /= 10;
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_any_length() {
        for len in [0, 1, HEAD_ROOM - 1, HEAD_ROOM, HEAD_ROOM + 1, 3 * HEAD_ROOM] {
            let text = [vec![0; HEAD_ROOM], b"rest".to_vec()].concat();
            assert_eq!(put_head(vec![b'h'; len], text), [vec![b'h'; len], b"rest".to_vec()].concat());
        }
    }

    #[test]
    fn texts_and_numbers_are_written_as_serde_does() {
        for text in ["", "plain", "a\"b", "back\\slash", "tab\tnew\nline\u{1}\u{1f}\u{7f}", "ü€😀\u{202e}", "</script>"]
        {
            let mut out = Vec::new();
            put_text(&mut out, text).unwrap();
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(text).unwrap());
        }
        for number in [0, 1, 9, 10, 99, 100, 12_345, u64::MAX] {
            let mut out = Vec::new();
            put_number(&mut out, b"n:", Some(number));
            assert_eq!(String::from_utf8(out).unwrap(), format!("n:{number}"));
        }
        let mut out = Vec::new();
        put_number(&mut out, b"n:", None);
        assert!(out.is_empty());
    }
}
