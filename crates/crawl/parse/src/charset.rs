//! Which encoding a page is in: byte order mark, then header, then `<meta>`, then a guess.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// How an encoding was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The page starts with a byte order mark.
    ByteOrderMark,
    /// The `Content-Type` header names it.
    Header,
    /// A `<meta>` tag or an XML declaration names it.
    Declared,
    /// Guessed from the bytes.
    Detected,
}

/// The encoding named by a `Content-Type` value such as `text/html; charset="utf-8"`.
pub fn from_content_type(value: &str) -> Option<&'static Encoding> {
    label_in(value.as_bytes()).and_then(Encoding::for_label)
}

/// The encoding a byte order mark at the start of `bytes` stands for.
pub fn from_bom(bytes: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_bom(bytes).map(|(encoding, _)| encoding)
}

/// Guesses the encoding of a text without any label, as browsers do; `tld` is a hint such as `jp`.
pub fn guess(bytes: &[u8], tld: Option<&str>) -> &'static Encoding {
    let mut guesser = Guesser::default();
    guesser.feed(bytes);
    guesser.finish(tld)
}

/// The `charset=` parameter in a header value or in the `content` of a `<meta>`.
pub(crate) fn label_in(value: &[u8]) -> Option<&[u8]> {
    let mut rest = value;
    loop {
        let at = rest.windows(7).position(|word| word.eq_ignore_ascii_case(b"charset"))?;
        rest = rest.get(at + 7..)?.trim_ascii_start();
        let Some(label) = rest.strip_prefix(b"=").map(<[u8]>::trim_ascii_start) else { continue };
        let label = match label.split_first() {
            Some((quote @ (b'"' | b'\''), inner)) => inner.split(|b| b == quote).next()?,
            _ => label.split(|b| b.is_ascii_whitespace() || matches!(b, b';' | b',')).next()?,
        };
        return Some(label.trim_ascii()).filter(|label| !label.is_empty());
    }
}

/// The encoding a `<meta>` means: one that is read as ASCII cannot be in UTF-16.
pub(crate) fn for_meta(label: &[u8]) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(label)?;
    Some(match encoding {
        _ if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        _ if encoding == X_USER_DEFINED => WINDOWS_1252,
        _ => encoding,
    })
}

/// Guesses from the first bytes that are not ASCII.
pub(crate) struct Guesser {
    detector: Option<EncodingDetector>,
    budget: usize,
}

/// How much text after the first byte that is not ASCII is looked at: browsers look at less.
const GUESS_BYTES: usize = 64 << 10;

impl Default for Guesser {
    fn default() -> Self {
        Guesser { detector: None, budget: GUESS_BYTES }
    }
}

impl std::fmt::Debug for Guesser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guesser").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl Guesser {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.budget == 0 {
            return;
        }
        let from = match self.detector {
            Some(_) => 0,
            None => Encoding::ascii_valid_up_to(bytes),
        };
        let text = bytes.get(from..).unwrap_or_default();
        let text = text.get(..self.budget).unwrap_or(text);
        if text.is_empty() {
            return;
        }
        self.budget -= text.len();
        self.detector.get_or_insert_with(|| EncodingDetector::new(Iso2022JpDetection::Deny)).feed(text, false);
    }

    pub(crate) fn finish(&self, tld: Option<&str>) -> &'static Encoding {
        // The detector panics on anything else.
        let label = |tld: &&str| tld.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let tld = tld.filter(label);
        match &self.detector {
            // ASCII is valid UTF-8, and everything else too.
            None => UTF_8,
            Some(detector) => detector.guess(tld.map(str::as_bytes), Utf8Detection::Allow),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_hint_is_taken() {
        for tld in [None, Some("ru"), Some("RU"), Some("a.b"), Some(""), Some("рф"), Some("xn--p1ai")] {
            assert_eq!(guess("Правительство".as_bytes(), tld), UTF_8, "{tld:?}");
        }
    }

    #[test]
    fn labels_in_headers() {
        for (value, want) in [
            ("text/html; charset=utf-8", Some("UTF-8")),
            ("text/html;CHARSET = 'Latin1' ; x", Some("windows-1252")),
            ("text/html; charset=\"koi8-r\"", Some("KOI8-R")),
            ("text/html; charset charset=gbk,", Some("GBK")),
            ("text/html; charset=", None),
            ("text/html; charset=nonsense", None),
            ("text/html", None),
        ] {
            assert_eq!(from_content_type(value).map(Encoding::name), want, "{value}");
        }
    }
}
