//! Session ids that crawlers of the early web learned to take out of URLs before comparing them.

/// Takes `(S(…))/` and `(…)/` out of the path of an ASP.NET page.
pub(super) fn strip_path(path: &[u8]) -> Vec<u8> {
    let nested = strip_once(path, |inner| {
        let mut rest = inner;
        let mut count = 0;
        while let [letter, b'(', after @ ..] = rest
            && letter.is_ascii_alphabetic()
            && is_id(after, 24)
            && let Some(after) = after.get(24..).and_then(|a| a.strip_prefix(b")"))
        {
            rest = after;
            count += 1;
        }
        (count > 0).then_some(inner.len() - rest.len())
    });
    strip_once(&nested, |inner| is_id(inner, 24).then_some(24))
}

fn is_id(bytes: &[u8], len: usize) -> bool {
    bytes.get(..len).is_some_and(|id| id.iter().all(u8::is_ascii_alphanumeric))
}

/// Takes the last `/(X)/` out for which `inside` recognises X and an `.aspx` page follows.
fn strip_once(path: &[u8], inside: impl Fn(&[u8]) -> Option<usize>) -> Vec<u8> {
    let opens: Vec<usize> = memchr::memmem::find_iter(path, b"/(").collect();
    for open in opens.into_iter().rev() {
        let (front, rest) = path.split_at(open + 1);
        let Some(inner) = rest.get(1..) else { continue };
        let Some(len) = inside(inner) else { continue };
        let Some(page) = inner.get(len..).and_then(|after| after.strip_prefix(b")/")) else { continue };
        let aspx = memchr::memmem::find(page, b".aspx").or_else(|| memchr::memmem::find(page, b".ASPX"));
        let before_query = page.iter().position(|b| *b == b'?').unwrap_or(page.len());
        if aspx.is_some_and(|at| at > 0 && at < before_query) {
            return [front, page].concat();
        }
    }
    path.to_vec()
}

/// Takes the well-known session parameters out of a query, each once.
pub(super) fn strip_query(query: &[u8]) -> Vec<u8> {
    let mut query = query.to_vec();
    for key in ["jsessionid=", "phpsessid=", "sid="] {
        query = strip(query, key, |value| is_id(value, 32).then_some(32));
    }
    query = strip(query, "aspsessionid", |value| {
        let letters =
            |from: usize, to: usize| value.get(from..to).is_some_and(|v| v.iter().all(u8::is_ascii_alphabetic));
        (letters(0, 8) && value.get(8) == Some(&b'=') && letters(9, 33)).then_some(33)
    });
    strip(query, "cfid=", |value| {
        let token = b"&cftoken=";
        let id = value.iter().position(|b| *b == b'&').filter(|at| *at > 0)?;
        let rest = value.get(id..)?;
        let matches = rest.get(..token.len())?.eq_ignore_ascii_case(token);
        let rest = rest.get(token.len()..)?;
        let end = rest.iter().position(|b| *b == b'&').unwrap_or(rest.len());
        (matches && end > 0).then_some(id + token.len() + end)
    })
}

/// Takes the last `key` out whose value `value_len` recognises and after which the parameter ends.
fn strip(query: Vec<u8>, key: &str, value_len: impl Fn(&[u8]) -> Option<usize>) -> Vec<u8> {
    let lower = query.to_ascii_lowercase();
    let starts: Vec<usize> = memchr::memmem::find_iter(&lower, key.as_bytes()).collect();
    for start in starts.into_iter().rev() {
        let Some(value) = query.get(start + key.len()..) else { continue };
        let Some(len) = value_len(value) else { continue };
        let rest = match value.get(len..) {
            Some([]) | None => &[][..],
            Some([b'&', rest @ ..]) => rest,
            Some(_) => continue,
        };
        return [query.get(..start).unwrap_or_default(), rest].concat();
    }
    query
}
