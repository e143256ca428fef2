//! CDX: an index of captures in columns, as Heritrix, OpenWayback and the Wayback Machine write it.
//!
//! ```text
//!  CDX N b a m s k r M S V g
//! com,a)/ 20080430204825 http://a.com/ text/html 200 3I42H3S6… - - 10 5 x.warc.gz
//! ```
//! A first line names the columns by letters; without it 11, 10, 9 or 7 of them are the usual ones: 7 is what the Wayback Machine
//! answers.

use crate::fields::{Role, Roles, Value};
use crate::file::text_of;
use crate::{BadItem, Options};
use trawl_model::UrlRecord;

/// The columns of a file, by letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Legend(Vec<u8>);

/// The names that letters stand for, as a CDX server writes them.
const NAMES: &[(u8, &str)] = &[
    (b'N', "urlkey"),
    (b'A', "urlkey"),
    (b'b', "timestamp"),
    (b'a', "url"),
    (b'm', "mime"),
    (b's', "status"),
    (b'k', "digest"),
    (b'c', "digest"),
    (b'r', "redirect"),
    (b'M', "robotflags"),
    (b'S', "length"),
    (b'V', "offset"),
    (b'g', "filename"),
];

impl Legend {
    /// The columns that a header line names.
    pub fn of_header(line: &[u8]) -> Option<Self> {
        let mut words = line.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty());
        if words.next() != Some(b"CDX") {
            return None;
        }
        let letters: Option<Vec<u8>> =
            words.map(|word| if let [letter] = word { Some(*letter) } else { None }).collect();
        letters.filter(|letters| !letters.is_empty()).map(Self)
    }

    /// The usual columns of a line without a header.
    pub fn usual(line: &[u8]) -> Option<Self> {
        let columns: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
        let letters = match columns.len() {
            11 => "NbamskrMSVg",
            10 => "NbamskrMVg",
            9 => "NbamskrVg",
            7 => "NbamskS",
            _ => return None,
        };
        let is_time = |word: &&[u8]| word.len() == 14 && word.iter().all(u8::is_ascii_digit);
        columns.get(1).filter(|word| is_time(word)).map(|_| Self(letters.into()))
    }

    /// The record of a line; `None` for a header, which is taken over.
    pub fn record(legend: &mut Option<Self>, options: &Options, line: &[u8]) -> Result<Option<UrlRecord>, BadItem> {
        if let Some(found) = Self::of_header(line) {
            *legend = Some(found);
            return Ok(None);
        }
        let bad = |message: &str| BadItem::new("cdx", message, line);
        let usual = Self::usual(line);
        let Some(Legend(letters)) = legend.as_ref().or(usual.as_ref()) else {
            return Err(bad("expected 7, 9, 10 or 11 columns, the second a time of 14 digits"));
        };
        let text = text_of(line);
        let columns: Vec<&str> = text.split(' ').collect();
        if columns.len() != letters.len() {
            return Err(bad("expected as many columns as the header has"));
        }
        let names =
            letters.iter().map(|letter| NAMES.iter().find(|(known, _)| known == letter).map_or("", |(_, name)| *name));
        let roles = Roles::of(options, true, names.clone());
        let mut fields = roles.fields();
        let (mut key, mut other) = ("", String::new());
        for (((role, name), letter), text) in roles.each.iter().zip(names).zip(letters).zip(columns) {
            match name {
                "urlkey" => key = text,
                "" => {
                    other.clear();
                    other.push_str("cdx_");
                    other.push(char::from(*letter));
                    fields.put(Role::Extra, &other, Value::Text(text));
                }
                name => fields.put(*role, name, Value::Text(text)),
            }
        }
        fields.set_url_of_key(key);
        fields.finish().map(Some).ok_or_else(|| BadItem::new("no_url", "expected a url, found none", line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_model::{Place, UnixMillis};

    fn record(legend: &mut Option<Legend>, line: &[u8]) -> Result<Option<UrlRecord>, BadItem> {
        Legend::record(legend, &Options::default(), line)
    }

    #[test]
    fn eleven_and_nine_columns() {
        let line = b"com,a)/ 20080430204825 http://a.com/\xe4 text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 10 5 x.warc.gz";
        let found = record(&mut None, line).unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.status), ("http://a.com/%E4", Some(200)));
        assert_eq!(found.ts, UnixMillis::parse("20080430204825").ok());
        assert_eq!(found.place, Some(Place::new("x.warc.gz", 5, 10)));
        assert!(found.digest.is_some() && found.extras.is_none());
        let nine = b"com,a)/ 20080430204825 http://a.com/ text/html - 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ http://b.com/ 5 x.arc.gz";
        let found = record(&mut None, nine).unwrap().unwrap();
        assert_eq!((found.status, found.place), (None, Some(Place::new("x.arc.gz", 5, 0))));
        assert_eq!(found.extras.as_deref(), Some(r#"{"redirect":"http://b.com/"}"#));
    }

    /// `web.archive.org/cdx/search/cdx?url=…`
    #[test]
    fn answers_of_the_wayback_machine() {
        let line = b"com,a)/ 20080430204825 http://a.com/ text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ 1234";
        let found = record(&mut None, line).unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.status, found.place), ("http://a.com/", Some(200), None));
        assert_eq!(found.extras.as_deref(), Some(r#"{"warc_length":1234}"#));
    }

    #[test]
    fn a_header_says_what_columns_are() {
        let mut legend = None;
        assert_eq!(record(&mut legend, b" CDX a b X s"), Ok(None));
        let found = record(&mut legend, b"http://a.com/ 20080430204825 x 404").unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.status), ("http://a.com/", Some(404)));
        assert_eq!(found.extras.as_deref(), Some(r#"{"cdx_X":"x"}"#));
        assert_eq!(record(&mut legend, b"http://a.com/ 20080430204825 x 404 5").unwrap_err().code, "cdx");
        // Without the URL itself there is its key.
        assert_eq!(record(&mut legend, b" CDX N b"), Ok(None));
        assert_eq!(record(&mut legend, b"com,a)/x 2008").unwrap().unwrap().url, "http://a.com/x");
        assert_eq!(record(&mut legend, b"- 2008").unwrap_err().code, "no_url");
    }

    #[test]
    fn other_lines_are_rejected() {
        for line in [&b"com,a)/ 20080430204825 http://a.com/"[..], b"a b c d e f g h i j k", b" CDX"] {
            assert_eq!(record(&mut None, line).unwrap_err().code, "cdx");
        }
    }
}
