//! Heads as they came over the wire, understood without judging them.
//!
//! ```text
//! head    = *( CR | LF ) start *line empty             lines end in LF or CRLF, mixed as they like
//! start   = "HTTP/" version SP code [ SP reason ]      of a response; any version
//! line    = name *SP ":" value, folded lines belong to the one before; a line without a colon is kept, and means nothing
//! ```
//!
//! Nothing is parsed ahead: a head has some hundred bytes, and one more pass over them costs less than a list of its fields.

use std::borrow::Cow;
use std::ops::Range;

/// Length of the head at the start of `data`, its empty line included; `None` if that line is not there yet. `looked` is how
/// many bytes an earlier call had without finding it, 0 at first.
pub fn head_len(data: &[u8], looked: usize) -> Option<usize> {
    // The line end before an empty line may be among the bytes looked at.
    let from = looked.saturating_sub(3).max(blank_len(data));
    memchr::memchr_iter(b'\n', data.get(from..)?).find_map(|lf| match data.get(from + lf + 1..)? {
        [b'\n', ..] => Some(from + lf + 2),
        [b'\r', b'\n', ..] => Some(from + lf + 3),
        _ => None,
    })
}

/// Whether bytes that begin like this can be an HTTP message. Of a request, whose method may be any word, little is demanded.
pub fn may_begin(data: &[u8], request: bool) -> bool {
    if request {
        return data.first().is_none_or(u8::is_ascii_graphic);
    }
    b"HTTP/".starts_with(data.get(..5).unwrap_or(data))
}

/// Line ends in front of a head: some servers send one too many after the message before.
fn blank_len(data: &[u8]) -> usize {
    data.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count()
}

/// The end of the line that begins at `at`, one past its line feed.
fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + memchr::memchr(b'\n', rest).map_or(rest.len(), |lf| lf + 1)
}

/// An HTTP head, with or without its empty line.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    bytes: &'a [u8],
}

/// One field of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field<'a> {
    /// As written, without white space around it.
    pub name: &'a [u8],
    /// Without white space around it; a folded value is joined by single spaces.
    pub value: Cow<'a, [u8]>,
    /// Where it lies in the head, line end and folded lines included.
    pub line: Range<usize>,
}

impl Field<'_> {
    /// Whether the field is called so, in whatever case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }
}

impl<'a> Head<'a> {
    /// Looks into a head. Line ends in front of it are passed over.
    pub fn new(bytes: &'a [u8]) -> Self {
        Head { bytes: bytes.get(blank_len(bytes)..).unwrap_or_default() }
    }

    /// The bytes, from the start line on.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The first line, without its line end.
    pub fn start_line(&self) -> &'a [u8] {
        self.bytes.get(..line_end(self.bytes, 0)).unwrap_or_default().trim_ascii_end()
    }

    /// The status code of a response, 100 to 999; `None` if this is not one.
    pub fn status(&self) -> Option<u16> {
        let mut words = self.start_line().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let code = words.next().filter(|version| version.starts_with(b"HTTP/")).and(words.next())?;
        // "200OK" is seen; "2000" is something else.
        let (digits, rest) = code.split_at_checked(3)?;
        if !digits.iter().all(u8::is_ascii_digit) || rest.first().is_some_and(u8::is_ascii_digit) {
            return None;
        }
        let code = digits.iter().fold(0, |n, digit| n * 10 + u16::from(digit - b'0'));
        (code >= 100).then_some(code)
    }

    /// The version as the start line of a request or response spells it: `HTTP/1.1`.
    pub fn version(&self) -> Option<&'a [u8]> {
        let mut words = self.start_line().split(u8::is_ascii_whitespace);
        let is_version = |word: &&[u8]| word.starts_with(b"HTTP/");
        words.next().filter(is_version).or_else(|| words.next_back().filter(is_version))
    }

    /// The fields in order.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let bytes = self.bytes;
        let mut at = line_end(bytes, 0);
        std::iter::from_fn(move || {
            loop {
                let (start, end) = (at, line_end(bytes, at));
                let line = bytes.get(start..end).filter(|line| !matches!(*line, b"" | b"\n" | b"\r\n"))?;
                at = end;
                while matches!(bytes.get(at), Some(b' ' | b'\t')) {
                    at = line_end(bytes, at);
                }
                let Some(colon) = memchr::memchr(b':', line) else { continue };
                // A folded line right below the start line continues nothing.
                if line.first().is_some_and(|b| matches!(b, b' ' | b'\t')) {
                    continue;
                }
                let name = line.get(..colon)?.trim_ascii_end();
                let value = bytes.get(start + colon + 1..at)?;
                return Some(Field { name, value: unfold(value, at > end), line: start..at });
            }
        })
    }

    /// The values of the fields called `name`, in whatever case.
    pub fn all<'n>(&self, name: &'n str) -> impl Iterator<Item = Cow<'a, [u8]>> + use<'a, 'n> {
        self.fields().filter(move |field| field.is(name)).map(|field| field.value)
    }

    /// The value of the first field called `name`.
    pub fn get(&self, name: &str) -> Option<Cow<'a, [u8]>> {
        self.all(name).next()
    }

    /// [`Head::get`] as text: bytes that are not UTF-8 replaced, control characters by spaces.
    pub fn text(&self, name: &str) -> Option<String> {
        Some(String::from_utf8_lossy(&self.get(name)?).replace(char::is_control, " "))
    }

    /// The elements of the fields called `name`, which are lists separated by commas; empty ones are left out.
    pub(crate) fn list(&self, name: &str) -> Vec<Vec<u8>> {
        let values: Vec<_> = self.all(name).collect();
        let parts = values.iter().flat_map(|value| value.split(|b| *b == b','));
        parts.map(|part| part.trim_ascii().to_ascii_lowercase()).filter(|part| !part.is_empty()).collect()
    }

    /// The content codings of the body, in lower case, in the order they were applied; `identity` is none.
    pub fn content_codings(&self) -> Vec<String> {
        let codings = self.list("content-encoding").into_iter().filter(|coding| coding != b"identity");
        codings.map(|coding| String::from_utf8_lossy(&coding).into_owned()).collect()
    }

    /// The codings that have to be undone to read the body. If any of them is unknown (`none`, `utf-8`), the header is taken for a
    /// mistake and the body is read as it is, as browsers do.
    pub fn known_codings(&self) -> Vec<String> {
        let codings = self.content_codings();
        if codings.iter().all(|coding| crate::coding::KNOWN.contains(&&**coding)) { codings } else { Vec::new() }
    }

    /// Where a response redirects to, as written; bytes that are not UTF-8 are escaped, so that different places stay different.
    pub fn redirect(&self) -> Option<String> {
        let location =
            self.status().filter(|code| matches!(code, 301 | 302 | 303 | 307 | 308)).and(self.get("location"))?;
        // Bytes that are not UTF-8 are sent back as they came, as browsers do: they are the server's own.
        let mut text = String::with_capacity(location.len());
        for chunk in location.utf8_chunks() {
            text.push_str(chunk.valid());
            chunk.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
        }
        Some(text)
    }

    /// `http/1.1`, or `http/1.0` for the versions that close connections by default.
    pub fn protocol(&self) -> &'static str {
        if matches!(self.version(), Some(b"HTTP/1.0" | b"HTTP/0.9")) { "http/1.0" } else { "http/1.1" }
    }

    /// Whether the server means to keep the connection.
    pub fn keeps_alive(&self) -> bool {
        let options = self.list("connection");
        let has = |word: &[u8]| options.iter().any(|option| option == word);
        !has(b"close") && (self.protocol() == "http/1.1" || has(b"keep-alive"))
    }
}

fn unfold(value: &[u8], folded: bool) -> Cow<'_, [u8]> {
    if !folded {
        return value.trim_ascii().into();
    }
    let parts = value.split(|b| *b == b'\n').map(<[u8]>::trim_ascii).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(&b' ').into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=1;\r\n b=2\r\nno colon here\r\ncontent-length:  5 \r\n\r\nhello";

    #[test]
    fn a_head_ends_at_its_empty_line() {
        assert_eq!(head_len(RESPONSE, 0), Some(RESPONSE.len() - 5));
        assert_eq!(head_len(b"HTTP/1.0 200 OK\nA: b\n\nbody", 0), Some(22));
        assert_eq!(head_len(b"HTTP/1.0 200 OK\r\n\r\n", 0), Some(19));
        assert_eq!(head_len(b"HTTP/1.0 200 OK\r\n", 0), None);
        assert_eq!(head_len(b"HTTP/1.1 200 OK\r\nA: b\r\n", 0), None);
        assert_eq!(head_len(b"\r\n\nHTTP/1.1 200 OK\n\nx", 0), Some(20));
    }

    #[test]
    fn a_head_is_looked_into() {
        let head = Head::new(&RESPONSE[..head_len(RESPONSE, 0).unwrap()]);
        assert_eq!(head.status(), Some(200));
        assert_eq!(head.version(), Some(&b"HTTP/1.1"[..]));
        assert_eq!(head.get("CONTENT-LENGTH").as_deref(), Some(&b"5"[..]));
        assert_eq!(head.text("set-cookie").unwrap(), "a=1; b=2");
        assert_eq!(head.fields().count(), 3);
        let field = head.fields().nth(1).unwrap();
        assert_eq!(&RESPONSE[field.line], b"Set-Cookie: a=1;\r\n b=2\r\n");
        let request = Head::new(b"GET /x HTTP/1.0\r\n\r\n");
        assert_eq!((request.status(), request.version()), (None, Some(&b"HTTP/1.0"[..])));
        assert_eq!(Head::new(b"HTTP/1.1 200 OK\r\nA: x\x01y\r\n\r\n").text("a").unwrap(), "x y");
    }

    #[test]
    fn odd_heads_are_understood() {
        for (text, status, alive) in [
            ("HTTP/1.1 200 OK\r\n\r\n", 200, true),
            ("HTTP/1.1 200\r\n\r\n", 200, true),
            ("HTTP/1.1  404   Not here\n\n", 404, true),
            ("HTTP/1.1 200 ok\nA: b\r\n\n", 200, true),
            ("\r\n\r\nHTTP/1.1 301 Moved\r\n\r\n", 301, true),
            ("HTTP/1.0 200 OK\r\n\r\n", 200, false),
            ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", 200, true),
            ("HTTP/1.1 200 OK\r\nconnection: foo, CLOSE\r\n\r\n", 200, false),
            ("HTTP/2 200\r\n\r\n", 200, true),
            ("HTTP/2 204", 204, true),
            ("HTTP/1.2 299 Custom\r\n\r\n", 299, true),
            ("HTTP/0.9 200 OK\r\n\r\n", 200, false),
            ("HTTP/1.1 999 No\r\n\r\n", 999, true),
            ("HTTP/1.1 200OK\r\n\r\n", 200, true),
        ] {
            let head = Head::new(text.as_bytes());
            assert_eq!((head.status(), head.keeps_alive()), (Some(status), alive), "{text:?}");
        }
        for text in [
            "<html>\n\n",
            "HTTP/1.1\r\n\r\n",
            "HTTP/1.1 OK\r\n\r\n",
            "HTTP/1.1 99 x\r\n\r\n",
            "HTTP/1.1 99x",
            "HTTP/1.1 2000 x\r\n\r\n",
            "ICY 200",
        ] {
            assert_eq!(Head::new(text.as_bytes()).status(), None, "{text:?}");
        }
    }

    #[test]
    fn fields_repeat_fold_and_lack_colons() {
        let head = Head::new(
            "HTTP/1.1 200 OK\r\n no: field\r\nA: 1\r\na : 2\r\n  folded\r\n \r\n\tonce more\r\nnonsense\r\n x: y\r\n: empty\r\nB:\r\nC: \u{e9}\r\n\r\nD: body"
                .as_bytes(),
        );
        assert_eq!(head.all("A").collect::<Vec<_>>(), [&b"1"[..], b"2 folded once more"]);
        assert_eq!(head.text("b").as_deref(), Some(""));
        assert_eq!(head.text("c").as_deref(), Some("\u{e9}"));
        for name in ["nonsense", "no", "x", "d"] {
            assert_eq!(head.text(name), None);
        }
    }

    #[test]
    fn codings_and_redirects() {
        let head = Head::new(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: GZIP, identity\r\nContent-Encoding: br,\r\nLocation: /x\r\n\r\n",
        );
        assert_eq!(head.content_codings(), ["gzip", "br"]);
        assert_eq!(head.known_codings(), ["gzip", "br"]);
        assert!(Head::new(b"HTTP/1.1 200 OK\r\nContent-Encoding: UTF-8, gzip\r\n\r\n").known_codings().is_empty());
        assert_eq!(head.redirect(), None);
        assert_eq!(Head::new(b"HTTP/1.1 302 x\r\nlocation: /a\tb\r\n\r\n").redirect().as_deref(), Some("/a\tb"));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0usize..200) {
            let whole = head_len(&bytes, 0);
            // Looking in two steps finds the same end.
            let cut = cut.min(bytes.len());
            let stepwise = head_len(&bytes[..cut], 0).or_else(|| head_len(&bytes, cut));
            prop_assert_eq!(whole, stepwise);
            let head = Head::new(&bytes);
            let _ = (head.status(), head.version(), head.keeps_alive(), head.redirect());
            let mut end = 0;
            for field in head.fields() {
                prop_assert!(field.line.start >= end && field.line.end <= head.bytes().len());
                end = field.line.end;
            }
        }
    }
}
