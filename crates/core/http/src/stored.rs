//! Makes a head agree with the body that is stored beside it.
//!
//! The body is stored without chunks and possibly cut, so a head kept verbatim would lie about its length and framing, and
//! strict readers refuse such records. What is changed is kept under another name:
//!
//! ```text
//! Transfer-Encoding: chunked     X-Crawler-Transfer-Encoding: chunked, and Content-Length: 512 (what is stored)
//! Content-Length: 9000           X-Crawler-Content-Length: 9000, and Content-Length: 512, if they differ
//! ```

use crate::{Head, head_len};
use std::borrow::Cow;

impl<'a> Head<'a> {
    /// The head to store beside a body of `stored` bytes; borrowed when it contradicts nothing.
    pub fn stored(&self, stored: u64) -> Cow<'a, [u8]> {
        let (bytes, stored) = (self.bytes(), stored.to_string());
        let lengths: Vec<_> = self.all("content-length").collect();
        let coded = self.all("transfer-encoding").next().is_some();
        let right = matches!(lengths.as_slice(), [only] if **only == *stored.as_bytes());
        if !coded && (right || lengths.is_empty()) {
            return bytes.into();
        }
        let mut out = Vec::with_capacity(bytes.len() + 96);
        let (mut at, mut length_written) = (0, right);
        for field in self.fields() {
            let length = field.is("content-length") && !right;
            if !length && !field.is("transfer-encoding") {
                continue;
            }
            let line = bytes.get(field.line.clone()).unwrap_or_default();
            let line_end = if line.ends_with(b"\n") && !line.ends_with(b"\r\n") { "\n" } else { "\r\n" };
            out.extend_from_slice(bytes.get(at..field.line.start).unwrap_or_default());
            // An old value equal to the stored length (one of several) need not be kept beside it.
            if !length || *field.value != *stored.as_bytes() {
                out.extend_from_slice(b"X-Crawler-");
                out.extend_from_slice(line);
                if !line.ends_with(b"\n") {
                    out.extend_from_slice(b"\r\n");
                }
            }
            if !length_written {
                out.extend_from_slice(format!("Content-Length: {stored}{line_end}").as_bytes());
                length_written = true;
            }
            at = field.line.end;
        }
        out.extend_from_slice(bytes.get(at..).unwrap_or_default());
        if head_len(bytes, 0).is_none() {
            // It was cut; with an empty line it is a head again, and its body cannot be taken for more of it.
            out.extend_from_slice(if out.ends_with(b"\n") { b"\r\n" } else { b"\r\n\r\n" });
        }
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_stored_head_is_the_received_one_when_nothing_contradicts() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-LENGTH:   5  \r\nX: y\r\n\r\n",
            "HTTP/1.1 200\nX: y\n\n",
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5",
        ] {
            assert!(matches!(Head::new(text.as_bytes()).stored(5), Cow::Borrowed(same) if same == text.as_bytes()));
        }
    }

    #[test]
    fn what_contradicts_the_body_is_renamed() {
        for (text, stored) in [
            (
                "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\nC: d\r\n\r\n",
                "HTTP/1.1 200 OK\r\nA: b\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 5\r\nC: d\r\n\r\n",
            ),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n",
                "HTTP/1.1 200 OK\r\nX-Crawler-content-length: 99\r\nContent-Length: 5\r\n\r\n",
            ),
            // Bare line feeds stay bare; folded lines stay with their header.
            (
                "HTTP/1.1 200 OK\nTransfer-Encoding:\n chunked\nContent-Length: 5\n\n",
                "HTTP/1.1 200 OK\nX-Crawler-Transfer-Encoding:\n chunked\nContent-Length: 5\n\n",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 5\r\n\r\n",
                "HTTP/1.1 200 OK\r\nX-Crawler-Content-Length: 7\r\nContent-Length: 5\r\n\r\n",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            ),
            // Cut within the head.
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 7 \r\nA: b",
                "HTTP/1.1 200 OK\r\nX-Crawler-Content-Length: 7 \r\nContent-Length: 5\r\nA: b\r\n\r\n",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 7",
                "HTTP/1.1 200 OK\r\nX-Crawler-Content-Length: 7\r\nContent-Length: 5\r\n\r\n",
            ),
        ] {
            assert_eq!(String::from_utf8(Head::new(text.as_bytes()).stored(5).into_owned()).unwrap(), stored);
        }
    }

    proptest! {
        #[test]
        fn the_length_is_always_true(lines in proptest::collection::vec("[ -~\t]{0,30}|Content-Length: [0-9]{1,3}|Transfer-Encoding: chunked", 0..8), crlf: bool, cut in 0usize..20, n in 0u64..1000) {
            let end = if crlf { "\r\n" } else { "\n" };
            let mut text = format!("HTTP/1.1 200 OK{end}");
            for line in &lines {
                text += line;
                text += end;
            }
            text += end;
            text.truncate(text.len() - cut.min(text.len()));
            let stored = Head::new(text.as_bytes()).stored(n).into_owned();
            let again = Head::new(&stored);
            prop_assert!(again.get("transfer-encoding").is_none());
            let lengths: Vec<_> = again.all("content-length").collect();
            prop_assert!(lengths.len() <= 1);
            if let Some(length) = lengths.first() {
                prop_assert_eq!(length.to_vec(), n.to_string().into_bytes());
            }
            // Storing again changes nothing.
            prop_assert_eq!(again.stored(n), &stored[..]);
            if stored != text.as_bytes() {
                prop_assert!(head_len(&stored, 0).is_some());
            }
        }
    }
}
