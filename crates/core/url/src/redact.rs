//! Text that is printed, without the user names and passwords in its URLs.

use memchr::{memchr, memchr_iter, memrchr};
use std::borrow::Cow;
use std::io::{self, Write};

/// A line is held back up to this length; of a longer one what can no longer change is handed on.
const MAX_HELD: usize = 1 << 20;

/// What printed text looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printed {
    /// Lines for people: a URL may be anywhere.
    Text,
    /// JSON: a URL is a string of its own, or anywhere in a longer one.
    Json,
}

/// Leaves out `user:password@` of every URL in a text that has a scheme, or begins with `//`. Contents of archives do not come by
/// here: they stay as they are. What is known to be a URL, whatever its spelling, is shown by [`crate::without_userinfo`].
///
/// ```
/// use trawl_url::{Printed, redact};
///
/// assert_eq!(redact(b"1 http://me:secret@a.example/x@y ok", Printed::Text), &b"1 http://a.example/x@y ok"[..]);
/// assert_eq!(redact(br#"{"u":"ftp://me@a.example","t":"at ftp://x@y"}"#, Printed::Json), &br#"{"u":"ftp://a.example","t":"at ftp://y"}"#[..]);
/// ```
pub fn redact(text: &[u8], printed: Printed) -> Cow<'_, [u8]> {
    let mut out = Vec::new();
    // What was handed on; where the last authority may begin, and whether it does; where the next look begins. Each byte is
    // looked at once: a line may consist of nothing but `@`.
    let (mut kept, mut start, mut begins, mut looked) = (0, 0, Begins::No, 0);
    for at in memchr_iter(b'@', text) {
        let ended = (looked..at).rev().find(|at| ends_authority(text, *at, printed));
        if let Some(end) = ended {
            start = end + 1;
            begins = Begins::behind(text.get(..start).unwrap_or_default(), printed);
        }
        // Browsers drop line ends and tabs from a URL, but inside a text they end it.
        if begins == Begins::Inside && printed == Printed::Json {
            let piece = text.get(start.max(looked)..at).unwrap_or_default();
            if memchr_iter(b'\\', piece).any(|at| is_blank_escape(piece.get(at + 1))) {
                begins = Begins::No;
            }
        }
        looked = at;
        if begins != Begins::No {
            // An `@` inside a password: what stands before was left out already.
            out.extend_from_slice(text.get(kept..start.max(kept)).unwrap_or_default());
            kept = at + 1;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.extend_from_slice(text.get(kept..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether no authority reaches across the byte at `at`.
fn ends_authority(text: &[u8], at: usize, printed: Printed) -> bool {
    let byte = |at: usize| text.get(at).copied();
    let is_escaped = || printed == Printed::Json && at.checked_sub(1).and_then(byte) == Some(b'\\');
    match byte(at) {
        Some(b'/' | b'?' | b'#') => true,
        Some(b'"') => !is_escaped(),
        // In JSON a backslash is written twice, and one by itself escapes what follows. Lines for people may hold JSON, too.
        Some(b'\\') if printed == Printed::Text => !is_blank_escape(byte(at + 1).as_ref()),
        Some(b'\\') => byte(at + 1) == Some(b'\\') || is_escaped(),
        Some(b) => b.is_ascii_whitespace(),
        None => false,
    }
}

/// Whether a backslash in front of this byte stands for a tab or a line end.
fn is_blank_escape(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b't' | b'n' | b'r'))
}

/// Whether an authority begins behind a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    No,
    /// In the middle of a text.
    Inside,
    /// At the beginning of a JSON string, which is a URL as a whole.
    Whole,
}

impl Begins {
    /// One does behind a scheme, a colon and slashes, and behind two slashes that begin a word.
    fn behind(text: &[u8], printed: Printed) -> Self {
        let before = trim_end(text, |b| matches!(b, b'/' | b'\\'));
        let outside = match before.strip_suffix(b":").filter(|_| before.len() < text.len()) {
            Some(scheme) => {
                let outside = trim_end(scheme, |b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
                Some(outside).filter(|outside| outside.len() < scheme.len())
            }
            None => {
                let begins_word = before.last().is_none_or(|b| b.is_ascii_whitespace() || b"\"'<(,=".contains(b));
                Some(before).filter(|_| text.ends_with(b"//") && begins_word)
            }
        };
        let Some(outside) = outside else { return Begins::No };
        // White space and `<` may stand before a URL, as WARC files have it.
        match trim_end(outside, |b| matches!(b, b' ' | b'<')) {
            [.., b'\\', b'"'] => Begins::Inside,
            rest if printed == Printed::Json && rest.ends_with(b"\"") => Begins::Whole,
            _ => Begins::Inside,
        }
    }
}

fn trim_end(text: &[u8], is: impl Fn(u8) -> bool) -> &[u8] {
    let end = text.iter().rposition(|b| !is(*b)).map_or(0, |at| at + 1);
    text.get(..end).unwrap_or_default()
}

/// A writer of text that leaves out user names and passwords of URLs. Holds back an unfinished line until it is flushed.
#[derive(Debug)]
pub struct Redacted<W: Write> {
    inner: W,
    printed: Printed,
    line: Vec<u8>,
}

impl<W: Write> Redacted<W> {
    /// Over a writer.
    pub fn new(inner: W, printed: Printed) -> Self {
        Redacted { inner, printed, line: Vec::new() }
    }

    /// The writer itself, for bytes that have to stay as they are; what was written before goes out first.
    pub fn exact(&mut self) -> io::Result<&mut W> {
        self.hand_on(self.line.len())?;
        Ok(&mut self.inner)
    }

    fn hand_on(&mut self, len: usize) -> io::Result<()> {
        self.inner.write_all(&redact(self.line.get(..len).unwrap_or_default(), self.printed))?;
        self.line.drain(..len.min(self.line.len()));
        Ok(())
    }
}

impl<W: Write> Write for Redacted<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match memrchr(b'\n', buf) {
            // The usual case: whole lines without any.
            Some(end) if self.line.is_empty() && end + 1 == buf.len() && memchr(b'@', buf).is_none() => {
                self.inner.write_all(buf)?;
            }
            Some(end) => {
                let held = self.line.len();
                self.line.extend_from_slice(buf);
                self.hand_on(held + end + 1)?;
            }
            None => self.line.extend_from_slice(buf),
        }
        if self.line.len() > MAX_HELD {
            // A URL has no white space and no quotes; one that is longer than all of this is handed on.
            let end = self.line.iter().rposition(|b| b.is_ascii_whitespace() || *b == b',');
            self.hand_on(end.filter(|end| *end > 0).unwrap_or(self.line.len()))?;
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.exact()?.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(line: &str) -> String {
        String::from_utf8(redact(line.as_bytes(), Printed::Text).into_owned()).unwrap()
    }

    #[test]
    fn urls_anywhere_in_a_text() {
        for (line, expected) in [
            ("http://u:p@h/", "http://h/"),
            ("a\tHTTPS://u@h b ftp://x:y@z:1/?q", "a\tHTTPS://h b ftp://z:1/?q"),
            ("<http://u:p@x@h/>", "<http://h/>"),
            ("http:\\\\u:p@h\\x http:////u:p@h", "http:\\\\h\\x http:////h"),
            ("http://it's:p@h/", "http://h/"),
            (
                "me@h http://h/@x http://h?a@b http://h#a@b a//u@h :x@y",
                "me@h http://h/@x http://h?a@b http://h#a@b a//u@h :x@y",
            ),
            ("//u:p@h/ (//u:p@h) http:/u:p@h/", "//h/ (//h) http:/h/"),
            (r#"{"url": "http://us\ter:p@h/"}"#, r#"{"url": "http://h/"}"#),
            ("x://@", "x://"),
            ("", ""),
        ] {
            assert_eq!(text(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_of_marks_take_no_longer_than_others() {
        for (unit, printed) in [("@", Printed::Text), ("a:/@", Printed::Text), ("\"a://@", Printed::Json)] {
            let line = unit.repeat(4 << 20);
            assert!(redact(line.as_bytes(), printed).len() <= line.len());
        }
    }

    #[test]
    fn in_json_urls_and_urls_inside_texts() {
        for (line, expected) in [
            (r#"["http://u:p@h/",1]"#, r#"["http://h/",1]"#),
            (r#"["<http://u:p@h/>"," x://u@h"]"#, r#"["<http://h/>"," x://h"]"#),
            (r#"["http://u:p\"q@h/"]"#, r#"["http://h/"]"#),
            (r#"["http:\\\\u:p@h\\"]"#, r#"["http:\\\\h\\"]"#),
            (r#"{"found":"found \"http://u:p@h/\""}"#, r#"{"found":"found \"http://h/\""}"#),
            (r#"["//u:p@h/","http://us\ter:p@h/"]"#, r#"["//h/","http://h/"]"#),
            (r#"["see http://h\nme@x and http://u:p@h"]"#, r#"["see http://h\nme@x and http://h"]"#),
            (r#"["http://h","a@b"]"#, r#"["http://h","a@b"]"#),
        ] {
            assert_eq!(redact(line.as_bytes(), Printed::Json), expected.as_bytes(), "{line}");
        }
    }

    #[test]
    fn exact_bytes_go_out_as_they_are_and_in_order() {
        let mut out = Vec::new();
        let mut redacted = Redacted::new(&mut out, Printed::Text);
        redacted.write_all(b"1 http://u:").unwrap();
        redacted.write_all(b"p@h/\nhttp://").unwrap();
        redacted.write_all(b"u@h/").unwrap();
        redacted.exact().unwrap().write_all(b" http://u@h/").unwrap();
        redacted.flush().unwrap();
        assert_eq!(out, b"1 http://h/\nhttp://h/ http://u@h/");
        let mut out = Vec::new();
        let mut redacted = Redacted::new(&mut out, Printed::Text);
        let long = "a ".repeat(MAX_HELD);
        redacted.write_all(long.as_bytes()).unwrap();
        redacted.write_all(b"http://u@h/").unwrap();
        redacted.flush().unwrap();
        assert!(out.ends_with(b"a http://h/") && out.len() == long.len() + 9);
    }

    proptest! {
        /// However it is written in parts, the same comes out as of the whole.
        #[test]
        fn parts_are_as_the_whole(text in "[a:/@\" \n]{0,40}", cuts in prop::collection::vec(0usize..40, 0..5)) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).chain([0, text.len()]).collect();
            cuts.sort_unstable();
            let mut out = Vec::new();
            let mut redacted = Redacted::new(&mut out, Printed::Text);
            for pair in cuts.windows(2) {
                redacted.write_all(&text.as_bytes()[pair[0]..pair[1]]).unwrap();
            }
            redacted.flush().unwrap();
            drop(redacted);
            prop_assert_eq!(out, redact(text.as_bytes(), Printed::Text).into_owned());
        }
    }
}
