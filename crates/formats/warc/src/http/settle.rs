//! Makes a head agree with the body that is stored beside it.
//!
//! The body is stored de-chunked and possibly cut, so a head kept verbatim would lie about its length and framing, and
//! strict readers refuse such records. What is changed is kept under another name:
//!
//! ```text
//! Transfer-Encoding: chunked     X-Crawler-Transfer-Encoding: chunked, and Content-Length added
//! Content-Length: 9000           X-Crawler-Content-Length: 9000, and Content-Length: 512 (what is stored), if they differ
//! ```

use std::borrow::Cow;
use trawl_model::{Head, raw_line};

/// The head to store beside a body of `stored_len` bytes; borrowed when nothing has to change.
pub fn settle_head(head: &[u8], stored_len: u64) -> Cow<'_, [u8]> {
    let transfer = Head::new(head).fields().any(|(name, _)| name.eq_ignore_ascii_case(b"Transfer-Encoding"));
    let stored = stored_len.to_string();
    let lengths: Vec<_> =
        Head::new(head).fields().filter(|(name, _)| name.eq_ignore_ascii_case(b"Content-Length")).collect();
    let agrees = match lengths.as_slice() {
        [] => true,
        [(_, value)] => *value == stored.as_bytes(),
        _ => false,
    };
    if !transfer && agrees {
        return Cow::Borrowed(head);
    }
    let mut out = Vec::with_capacity(head.len() + 64);
    let mut rest = head;
    let mut written = false;
    let mut length_line = |out: &mut Vec<u8>| {
        if !written {
            out.extend_from_slice(b"Content-Length: ");
            out.extend_from_slice(stored.as_bytes());
            out.extend_from_slice(b"\r\n");
            written = true;
        }
    };
    while let Some((line, after)) = raw_line(rest) {
        rest = after;
        let name = line.split(|b| *b == b':').next().unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"Transfer-Encoding") {
            out.extend_from_slice(b"X-Crawler-");
            out.extend_from_slice(line);
        } else if name.eq_ignore_ascii_case(b"Content-Length") && !agrees {
            out.extend_from_slice(b"X-Crawler-");
            out.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                out.extend_from_slice(b"\r\n");
            }
            length_line(&mut out);
        } else {
            out.extend_from_slice(line);
        }
    }
    if lengths.is_empty() {
        if !out.ends_with(b"\n") {
            out.extend_from_slice(b"\r\n");
        }
        length_line(&mut out);
    }
    out.extend_from_slice(if rest.is_empty() { b"\r\n" } else { rest });
    Cow::Owned(out)
}
