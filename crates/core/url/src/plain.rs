//! Plain ASCII URLs, read without the full parser: those that it would leave as they are. Most links of a crawl are.
//!
//! Lower-case `http` or `https`, a host that is a name (letters in lower case, no punycode, no empty label, a last label that
//! starts with a letter and so is no number), no port, a path without dot segments, and no byte that is escaped, cut or changed.

use crate::{MAX_HOST_LEN, WebUrl};

const HOST: u8 = 1;
const PATH: u8 = 2;
const QUERY: u8 = 4;

/// Where each byte may stand.
const CLASSES: [u8; 256] = classes();

#[allow(clippy::indexing_slicing, reason = "the index is below 256, and the compiler runs this")]
const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' => HOST | PATH | QUERY,
            b'A'..=b'Z' | b'_' | b'~' | b'!' | b'$' | b'&' | b'(' | b')' | b'*' | b'+' => PATH | QUERY,
            b',' | b';' | b'=' | b':' | b'@' | b'/' | b'%' => PATH | QUERY,
            b'?' => QUERY,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

fn is(class: u8) -> impl Fn(&u8) -> bool {
    move |byte| CLASSES.get(usize::from(*byte)).is_some_and(|classes| classes & class != 0)
}

/// The URL, if it is plain.
pub fn read(raw: &str) -> Option<WebUrl> {
    let (host_start, port) = match raw.strip_prefix("http")?.as_bytes() {
        [b':', b'/', b'/', ..] => (7, 80),
        [b's', b':', b'/', b'/', ..] => (8, 443),
        _ => return None,
    };
    let rest = raw.as_bytes().get(host_start..)?;
    let host_len = rest.iter().position(|byte| !is(HOST)(byte))?;
    let (host, tail) = rest.split_at_checked(host_len)?;
    if !tail.starts_with(b"/") || host_len > MAX_HOST_LEN || !is_plain_host(host) {
        return None;
    }
    let path_len = tail.iter().position(|byte| !is(PATH)(byte)).unwrap_or(tail.len());
    let (path, query) = tail.split_at_checked(path_len)?;
    let query_is_plain = query.is_empty() || query.starts_with(b"?") && query.iter().all(is(QUERY));
    if !query_is_plain || has_dots(path) {
        return None;
    }
    let host_end = host_start + host_len;
    let [host_start, host_end] = [host_start, host_end].map(|at| at as u32);
    Some(WebUrl { text: raw.into(), host_start, host_end, path_start: host_end, port })
}

fn is_plain_host(host: &[u8]) -> bool {
    let last = memchr::memrchr(b'.', host).map_or(0, |dot| dot + 1);
    let is_name = host.get(last).is_some_and(u8::is_ascii_lowercase) && !host.starts_with(b".");
    is_name && !host.windows(2).any(|pair| pair == b"--" || pair == b"..")
}

/// Whether a segment may be `.` or `..`, spelled out or escaped.
fn has_dots(path: &[u8]) -> bool {
    memchr::memchr2_iter(b'.', b'%', path).any(|at| match path.get(at) {
        Some(b'.') => at.checked_sub(1).and_then(|before| path.get(before)) == Some(&b'/'),
        _ => matches!(path.get(at + 1..at + 3), Some([b'2', b'e' | b'E'])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the full parser makes of it.
    fn full(raw: &str) -> Option<String> {
        let mut url = url::Url::parse(raw).ok()?;
        url.set_fragment(None);
        Some(url.into())
    }

    #[test]
    fn what_is_plain_and_what_is_not() {
        for plain in [
            "http://example.org/",
            "https://www.a-b.example.org/a/b.html?x=1&y=%20z?",
            "http://h0.example/%41/a.../a..b/%zz;p=1,2@c:d",
            "http://localhost//",
        ] {
            let url = read(plain).unwrap_or_else(|| panic!("{plain}"));
            assert_eq!((url.as_str(), full(plain).as_deref()), (plain, Some(plain)));
            assert_eq!(url.path_query(), &plain[plain[8..].find('/').unwrap() + 8..]);
        }
        for other in [
            "http://example.org",
            "HTTP://example.org/",
            "http://Example.org/",
            "http://example.org:80/",
            "http://u@example.org/",
            "http://192.0.2.1/",
            "http://a.0x7f/",
            "http://example.org./",
            "http://a..b/",
            "http://.a/",
            "http://xn--a.example/",
            "http://example.org/a/../b",
            "http://example.org/.",
            "http://example.org/.../",
            "http://example.org/%2e%2E/b",
            "http://example.org/a\\b",
            "http://example.org/a#b",
            "http://example.org/a b",
            "http://example.org/?it's",
            "http:///example.org/",
            " http://example.org/",
            "ftp://example.org/",
            "http://",
        ] {
            assert!(read(other).is_none(), "{other}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn the_full_parser_changes_nothing(
            raw in "https?://[a-z0-9.-]{1,12}[./]?[a-z]{0,3}/[ -~]{0,16}|https?://[a-z.]{1,9}/[a-z./%2eE?&=;:@!$()*+,_~A-]{0,24}",
        ) {
            if let Some(url) = read(&raw) {
                prop_assert_eq!(full(&raw), Some(raw.clone()));
                let parsed = url::Url::parse(&raw).unwrap();
                prop_assert_eq!(Some(url.host()), parsed.host_str());
                prop_assert_eq!(Some(url.port()), parsed.port_or_known_default());
                prop_assert_eq!(url.path_query(), &parsed[url::Position::BeforePath..]);
                prop_assert_eq!(url.authority(), url.host());
            }
        }
    }
}
