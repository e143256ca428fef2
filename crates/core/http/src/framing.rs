//! Where a body ends.

use crate::Head;

/// How a response says where its body ends (RFC 9112, 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// No body, whatever the head says: 1xx, 204, 304.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks. Servers that say so and send none are common enough: see [`Step::Bad`](crate::Step::Bad).
    Chunked,
    /// Until the connection ends.
    Close,
}

impl Framing {
    /// Reads it off a head, forgivingly: lengths that disagree or are not numbers mean "until the end". The standard wants
    /// chunked to be the last transfer coding; here it may be any, because only the body shows whether it is.
    pub fn of(head: &Head<'_>) -> Self {
        if matches!(head.status(), Some(100..=199 | 204 | 304)) {
            return Self::None;
        }
        let codings = head.list("transfer-encoding");
        if codings.iter().any(|coding| coding == b"chunked") {
            return Self::Chunked;
        }
        if codings.iter().any(|coding| coding != b"identity") {
            return Self::Close;
        }
        let values: Vec<_> = head.all("content-length").collect();
        let mut lengths = values.iter().flat_map(|value| value.split(|b| *b == b',')).map(number);
        match lengths.next() {
            Some(Some(first)) if lengths.all(|other| other == Some(first)) => Self::Length(first),
            _ => Self::Close,
        }
    }
}

fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text.trim_ascii()).ok()?;
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_body() {
        let framing = |headers: &str| Framing::of(&Head::new(format!("HTTP/1.1 200 OK\r\n{headers}\r\n").as_bytes()));
        assert_eq!(framing("Content-Length: 5\r\n"), Framing::Length(5));
        assert_eq!(framing("Content-Length: 5\r\nContent-Length: 5, 5\r\n"), Framing::Length(5));
        assert_eq!(framing("Content-Length: 5\r\nContent-Length: 6\r\n"), Framing::Close);
        assert_eq!(framing("Content-Length: -5\r\n"), Framing::Close);
        assert_eq!(framing("Content-Length: +5\r\n"), Framing::Close);
        assert_eq!(framing("Content-Length:\r\n"), Framing::Close);
        assert_eq!(framing("Content-Length: 99999999999999999999\r\n"), Framing::Close);
        assert_eq!(framing("Content-Length: 5\r\nTransfer-Encoding: gzip, Chunked\r\n"), Framing::Chunked);
        assert_eq!(framing("Transfer-Encoding: chunked, gzip\r\n"), Framing::Chunked);
        assert_eq!(framing("Content-Length: 5\r\nTransfer-Encoding: identity\r\n"), Framing::Length(5));
        assert_eq!(framing("Content-Length: 5\r\nTransfer-Encoding:\r\n"), Framing::Length(5));
        assert_eq!(framing("Transfer-Encoding: gzip\r\n"), Framing::Close);
        assert_eq!(framing(""), Framing::Close);
        for code in [100, 199, 204, 304] {
            let head = format!("HTTP/1.1 {code} x\r\nContent-Length: 5\r\n\r\n");
            assert_eq!(Framing::of(&Head::new(head.as_bytes())), Framing::None);
        }
    }
}
