//! A line of what a CDX server answers as text, whatever fields it was asked for.
//!
//! ```text
//! http://a.example/ -                                  fl=original,statuscode, of a revisit
//! 20080430204825 http://a.example/ text/html           fl=timestamp,original,mimetype
//! ```
//! All of its fields, and the first seven of them, are CDX (`cdx.rs`). As part of the URL they would make it that of a page that does
//! not exist.

use super::{is_status, is_time};
use crate::Options;
use crate::fields::{Roles, Value};
use trawl_model::UrlRecord;

/// Most fields that a server has of a capture.
const MAX_WORDS: usize = 11;
/// Characters of a SHA-1 in Base32.
const DIGEST: usize = 32;
/// The first halves of media types, and what indexes write in their place.
const MEDIA_TYPES: &[&str] =
    &["text", "image", "application", "audio", "video", "font", "message", "model", "multipart", "warc"];
const NO_MEDIA_TYPES: &[&str] = &["unk", "no-type"];
/// Second halves that say by themselves that a word is a media type, with those of `x-` and `vnd.`. Others do beside a status, a dash, a
/// time or a digest: `My image/a` is the rest of an address.
const USUAL_TYPES: &str = "html plain css xml javascript json pdf xhtml+xml octet-stream rss+xml atom+xml zip gzip msword font-woff jpeg jpg \
                           png gif webp svg+xml bmp tiff mp4 mpeg ogg webm calendar rdf+xml woff woff2 revisit";

/// The record of such a line: one URL with its scheme, and beside it, apart by single blanks, only what such a server says of captures.
/// `None` for any other line. A number or a status alone may be a word of an address that was not escaped.
pub(super) fn record(options: &Options, text: &str) -> Option<UrlRecord> {
    if !text.contains(' ') || text.contains('\t') {
        return None;
    }
    let words: Vec<&str> = text.split(' ').take(MAX_WORDS + 1).collect();
    let mut urls = words.iter().filter(|word| word.contains("://"));
    let url = urls.next().filter(|_| urls.next().is_none() && words.len() <= MAX_WORDS)?;
    url.split_once("://").filter(|(scheme, _)| scheme.bytes().all(|b| b.is_ascii_alphanumeric()))?;
    let (mut named, mut has_status) = (Vec::new(), false);
    for (n, word) in (1..).zip(&words).filter(|(_, word)| *word != url) {
        let name = name(word, n, has_status)?;
        has_status |= name == "status";
        named.push((name, *word));
    }
    // What no word of an address looks like. A dash may be one between others: `Artist - 2010`.
    let has = |wanted: &str| named.iter().any(|(name, _)| name == wanted);
    let beside_others = has("status") || has("none");
    let is_certain = named.iter().any(|(name, word)| match name.as_str() {
        "ts" | "digest" | "urlkey" => true,
        "content_type" => beside_others || is_usual_type(word),
        _ => false,
    });
    if !is_certain && !named.iter().all(|(name, _)| name == "none") {
        return None;
    }
    // A dash says that a value is not known, as in all indexes.
    let roles = Roles::of(options, true, named.iter().map(|(name, _)| name.as_str()));
    let mut fields = roles.fields();
    fields.set_url(url);
    for (role, (name, word)) in roles.each.iter().zip(&named) {
        fields.put(*role, name, Value::Text(word));
    }
    fields.finish()
}

/// Whether a word that looks like a media type is one whatever stands beside it.
fn is_usual_type(word: &str) -> bool {
    let is_usual = |sub: &str| {
        sub.starts_with("x-")
            || sub.starts_with("vnd.")
            || USUAL_TYPES.split_ascii_whitespace().any(|usual| usual == sub)
    };
    NO_MEDIA_TYPES.contains(&word) || word.split_once('/').is_some_and(|(_, sub)| is_usual(sub))
}

/// What a word is called that says something of a capture; `n` is its number in the line. Of several numbers that may be a status the
/// first one is: lengths and offsets come behind it.
fn name(word: &str, n: usize, has_status: bool) -> Option<String> {
    // `video/clip.mp4` is the rest of an address, and so is `(2010)/x`.
    let is_subtype = |sub: &str| {
        let is_registered = ["vnd.", "x-", "prs."].iter().any(|tree| sub.starts_with(tree));
        !sub.is_empty()
            && sub.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-_".contains(&b) || b == b'.' && is_registered)
    };
    let is_media_type = || {
        NO_MEDIA_TYPES.contains(&word)
            || word.split_once('/').is_some_and(|(kind, sub)| MEDIA_TYPES.contains(&kind) && is_subtype(sub))
    };
    let is_key = || {
        let host = word.split_once(")/").map(|(host, _)| host).unwrap_or_default();
        n == 1 && !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b",-_.:".contains(&b))
    };
    let is_digest = || word.len() == DIGEST && word.bytes().all(|b| matches!(b, b'A'..=b'Z' | b'2'..=b'7'));
    let known = match () {
        () if word == "-" => "none",
        () if is_time(word) => "ts",
        () if is_status(word) && !has_status => "status",
        () if is_media_type() => "content_type",
        () if is_digest() => "digest",
        () if is_key() => "urlkey",
        // A length or an offset, or how often something was seen.
        () if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) => return Some(format!("column_{n}")),
        () => return None,
    };
    Some(known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_model::UnixMillis;

    const SHA1: &str = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ";

    #[test]
    fn fields_of_a_server_are_no_part_of_the_url() {
        let of = |text: &str| record(&Options::default(), text);
        let bare = UrlRecord::bare("http://a.com/");
        let dated = UrlRecord { ts: Some(UnixMillis(1000)), ..bare.clone() };
        let html = |record: &UrlRecord| UrlRecord { content_type: Some("text/html".into()), ..record.clone() };
        for (text, expected) in [
            ("http://a.com/ -", bare.clone()),
            ("http://a.com/ - -", bare.clone()),
            ("http://a.com/ text/html", html(&bare)),
            ("19700101000001 http://a.com/", dated.clone()),
            ("http://a.com/ 19700101000001 text/html", html(&dated)),
            ("19700101000001 http://a.com/ text/html -", html(&dated)),
            ("http://a.com/ 19700101000001 text/html 404", UrlRecord { status: Some(404), ..html(&dated) }),
        ] {
            assert_eq!(of(text), Some(expected), "{text:?}");
        }
        for kind in [
            "image/x-icon",
            "application/vnd.ms-fontobject",
            "application/zip",
            "- chemical",
            "404 model/obj",
            "- model/obj",
        ] {
            let line = of(&format!("http://a.com/ {kind}"));
            assert_eq!(line.map(|line| line.url), (kind != "- chemical").then(|| "http://a.com/".into()), "{kind}");
        }
        let digest = of(&format!("http://a.com/ 200 {SHA1} 512")).unwrap();
        assert_eq!((digest.url.as_str(), digest.status), ("http://a.com/", Some(200)));
        assert_eq!(digest.digest.unwrap().to_string(), format!("sha1:{SHA1}"));
        assert_eq!(digest.extras.as_deref(), Some(r#"{"column_4":"512"}"#));
        let key = of("com,a)/ 19700101000001 http://a.com/").unwrap();
        assert_eq!((key.url.as_str(), key.extras.as_deref()), ("http://a.com/", Some(r#"{"urlkey":"com,a)/"}"#)));
        let seed = record(&Options::crawl(), "19700101000001 http://a.com/ text/html -").unwrap();
        assert_eq!(seed.extras.as_deref(), Some(r#"{"ts":"19700101000001","content_type":"text/html"}"#));
    }

    #[test]
    fn other_lines_are_none() {
        for text in [
            "http://a.com/",
            "http://a.com/ 200",
            "http://a.com/ 15",
            "15 http://a.com/",
            "http://a.com/my file -",
            "http://a.com/a b",
            "http://a.com/ - Title",
            // Names of files that were not escaped.
            "http://a.com/Movies/Inception (2010)/Inception.mkv",
            "http://a.com/Wedding video/clip.mp4",
            "http://a.com/full text/doc.pdf",
            "http://a.com/my application/index.html",
            "http://a.com/Artist - audio/01.mp3",
            "http://a.com/Artist - 2010",
            "http://a.com/Chapter - 100",
            "http://a.com/My image/a",
            "http://a.com/  -",
            "http://a.com/\t-",
            "- http://a.com/ http://b.com/",
            "-x://a.com/ -",
            "a.com -",
            "http://a.com/ - - - - - - - - - - -",
        ] {
            assert_eq!(record(&Options::default(), text), None, "{text:?}");
        }
    }
}
