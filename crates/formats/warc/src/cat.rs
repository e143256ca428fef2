//! A record as JSON, for people and scripts that want to see it.

use crate::digest::Hasher;
use crate::error::Result;
use crate::reader::Record;
use std::io::BufRead;
use trawl_http::Head;
use trawl_model::Algorithm;

/// What is done with blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LongValues {
    /// They are shown whole, up to this many bytes, which is an error past them: as text if they are, else in Base64.
    Whole(u64),
    /// Their SHA-256 and their length are shown.
    Digest,
}

/// A record, ready to be printed.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RecordView {
    /// `WARC-Type`.
    #[serde(rename = "type")]
    pub record_type: String,
    /// Where it begins.
    pub offset: u64,
    /// Stored bytes; absent where several records share a member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Which record of its member it is, if not the first.
    #[serde(skip_serializing_if = "is_zero")]
    pub index: u32,
    /// Names and values of the header, in order.
    pub header: Vec<(String, String)>,
    /// First line of the HTTP head inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Names and values of the HTTP head inside, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http_header: Vec<(String, String)>,
    /// Bytes of the block, or of the HTTP body.
    pub body_length: u64,
    /// The block, or the HTTP body, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The same in Base64, where it is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// SHA-256 of the same, lower-case hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_sha256: Option<String>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a record to its end and describes it.
pub fn view_record(mut record: Record<'_>, long: LongValues) -> Result<RecordView> {
    let header = record.header();
    let place = record.place();
    let mut view = RecordView {
        record_type: header.text("WARC-Type").unwrap_or_default().into_owned(),
        offset: place.offset,
        length: None,
        index: place.index,
        header: header.fields().map(|(name, value)| (text(name), text(value))).collect(),
        http: None,
        http_header: Vec::new(),
        body_length: 0,
        body: None,
        body_base64: None,
        body_sha256: None,
    };
    if header.is_http()
        && let Some(head) = record.take_http_head()?
    {
        let head = Head::new(&head);
        view.http = Some(text(head.start_line()));
        view.http_header = head.fields().map(|field| (text(field.name), text(&field.value))).collect();
    }
    view.body_length = record.left();
    match long {
        LongValues::Whole(limit) => {
            let body = record.read_block(limit)?;
            match std::str::from_utf8(&body) {
                Ok(text) => view.body = Some(text.to_owned()),
                Err(_) => view.body_base64 = Some(data_encoding::BASE64.encode(&body)),
            }
        }
        LongValues::Digest => view.body_sha256 = sha256(&mut record)?,
    }
    view.length = Some(record.finish()?.length).filter(|n| *n > 0);
    Ok(view)
}

fn sha256(record: &mut Record<'_>) -> Result<Option<String>> {
    let Some(mut hasher) = Hasher::new(Algorithm::Sha256) else { return Ok(None) };
    loop {
        let chunk = record.chunk()?;
        if chunk.is_empty() {
            return Ok(Some(hasher.finish().hex()));
        }
        hasher.update(chunk);
        let n = chunk.len();
        record.consume(n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WarcReader;
    use bytes::Bytes;
    use std::sync::Arc;

    #[test]
    fn a_record_is_shown() {
        let file = include_bytes!("writer/golden/event.warc");
        let mut reader = WarcReader::builder().over(Arc::new(Bytes::from_static(file)));
        reader.next_record().unwrap();
        let view = view_record(reader.next_record().unwrap().unwrap(), LongValues::Whole(100)).unwrap();
        assert_eq!((view.record_type.as_str(), view.http.as_deref()), ("response", Some("HTTP/1.1 200 OK")));
        assert_eq!((view.body.as_deref(), view.body_length), (Some("hello"), 5));
        assert_eq!(view.header[0], ("WARC-Type".into(), "response".into()));
        let view = view_record(reader.next_record().unwrap().unwrap(), LongValues::Digest).unwrap();
        let json = serde_json::to_string(&view).unwrap();
        assert!(json.starts_with(r#"{"type":"request","offset":"#) && !json.contains("body_base64"), "{json}");
        assert_eq!(view.body_sha256.unwrap().len(), 64);
        assert!(view_record(reader.next_record().unwrap().unwrap(), LongValues::Whole(3)).is_err());
    }
}
