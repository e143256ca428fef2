//! HTTP heads as they came over the wire, looked into without judging them.

/// Length of the head at the start of `data`, its empty line included; `None` if the empty line is not there yet.
/// Bare line feeds count as line ends: servers send them.
pub fn head_len(data: &[u8]) -> Option<usize> {
    let ends = memchr::memchr_iter(b'\n', data);
    ends.filter_map(|lf| data.get(lf + 1..).map(|rest| (lf, rest))).find_map(|(lf, rest)| match rest {
        [b'\n', ..] => Some(lf + 2),
        [b'\r', b'\n', ..] => Some(lf + 3),
        _ => None,
    })
}

/// An HTTP head, read leniently: whatever a server sent that can be understood is.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// Looks into a head.
    pub fn new(bytes: &'a [u8]) -> Self {
        Head { bytes }
    }

    /// The first line, without its line end.
    pub fn start_line(&self) -> &'a [u8] {
        lines(self.bytes).next().unwrap_or_default()
    }

    /// The status code of a response.
    pub fn status(&self) -> Option<u16> {
        let line = self.start_line().strip_prefix(b"HTTP/")?;
        let code = line.split(|b| *b == b' ').skip(1).find(|part| !part.is_empty())?;
        let text = std::str::from_utf8(code.get(..3)?).ok()?;
        text.parse().ok().filter(|code| (100..1000).contains(code))
    }

    /// The version as the start line spells it: `HTTP/1.1`.
    pub fn version(&self) -> Option<&'a [u8]> {
        let line = self.start_line();
        if line.starts_with(b"HTTP/") {
            return line.split(|b| *b == b' ').next();
        }
        line.rsplit(|b| *b == b' ').next().filter(|v| v.starts_with(b"HTTP/"))
    }

    /// The method of a request.
    pub fn method(&self) -> Option<&'a [u8]> {
        self.start_line().split(|b| *b == b' ').next().filter(|m| !m.is_empty() && !m.starts_with(b"HTTP/"))
    }

    /// Names and values in order, trimmed. A line without a colon is skipped; a folded line is part of the value above.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        fields(self.bytes)
    }

    /// The value of the first field called `name`, in whatever case.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.fields().find(|(n, _)| n.eq_ignore_ascii_case(name.as_bytes())).map(|(_, v)| v)
    }

    /// [`Head::get`] as text: bytes that are not UTF-8 replaced, line ends and other control characters by spaces.
    pub fn text(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(self.get(name)?).into_owned();
        if text.contains(char::is_control) {
            return Some(text.split(char::is_control).map(str::trim).collect::<Vec<_>>().join(" "));
        }
        Some(text)
    }

    /// Whether the body's transfer coding is (or ends in) chunked.
    pub fn is_chunked(&self) -> bool {
        let last = self.fields().filter(|(n, _)| n.eq_ignore_ascii_case(b"Transfer-Encoding")).last();
        last.and_then(|(_, v)| v.rsplit(|b| *b == b',').next())
            .is_some_and(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"chunked"))
    }
}

/// Names and values of a head, trimmed.
fn fields(head: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let start = memchr::memchr(b'\n', head).map_or(head.len(), |lf| lf + 1);
    let mut rest = head.get(start..).unwrap_or_default();
    std::iter::from_fn(move || {
        loop {
            let (line, after) = raw_line(rest)?;
            rest = after;
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            return Some((line.get(..colon)?.trim_ascii(), line.get(colon + 1..)?.trim_ascii()));
        }
    })
}

/// The first line of `rest` with those that continue it, and what follows; `None` at the empty line or the end.
pub fn raw_line(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    if matches!(rest, [] | [b'\n', ..] | [b'\r', b'\n', ..]) {
        return None;
    }
    let mut end = 0;
    loop {
        let tail = rest.get(end..)?;
        end += memchr::memchr(b'\n', tail).map_or(tail.len(), |lf| lf + 1);
        if !matches!(rest.get(end), Some(b' ' | b'\t')) {
            return rest.split_at_checked(end);
        }
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=1;\r\n b=2\r\nno colon here\r\ncontent-length:  5 \r\n\r\nhello";

    #[test]
    fn a_head_ends_at_its_empty_line() {
        assert_eq!(head_len(RESPONSE), Some(RESPONSE.len() - 5));
        assert_eq!(head_len(b"HTTP/1.0 200 OK\nA: b\n\nbody"), Some(22));
        assert_eq!(head_len(b"HTTP/1.0 200 OK\r\n\r\n"), Some(19));
        assert_eq!(head_len(b"HTTP/1.0 200 OK\r\n"), None);
    }

    #[test]
    fn a_head_is_looked_into() {
        let head = Head::new(&RESPONSE[..head_len(RESPONSE).unwrap()]);
        assert_eq!(head.status(), Some(200));
        assert_eq!(head.version(), Some(&b"HTTP/1.1"[..]));
        assert_eq!(head.get("CONTENT-LENGTH"), Some(&b"5"[..]));
        assert_eq!(head.text("set-cookie").unwrap(), "a=1;  b=2");
        assert_eq!(head.fields().count(), 3);
        for (line, status) in
            [("HTTP/1.1  404 x", Some(404)), ("HTTP/2 204", Some(204)), ("ICY 200", None), ("HTTP/1.1 99x", None)]
        {
            assert_eq!(Head::new(line.as_bytes()).status(), status, "{line}");
        }
        let request = Head::new(b"GET /x HTTP/1.0\r\n\r\n");
        assert_eq!((request.method(), request.version()), (Some(&b"GET"[..]), Some(&b"HTTP/1.0"[..])));
    }
}
