//! Session ids that CDXJ keys do without. The text is in lower case already.
//!
//! Each kind is cut once, at its last occurrence, as the tools' patterns do.

use memchr::memmem;

/// Cuts the ASP.NET session segments `(a(24 characters)b(…))/` and `(24 characters)/` that precede an `.aspx` page.
pub fn cut_from_path(path: &mut String) {
    for session in [asp_net_groups as fn(&[u8]) -> Option<usize>, asp_net_plain] {
        let mut end = path.len();
        let found = path.rsplit('?').find_map(|piece| {
            let (bytes, base) = (piece.as_bytes(), end - piece.len());
            end = base.saturating_sub(1);
            // A page follows a session if the last page does: looking for the next one each time would not be linear.
            let page = memmem::rfind(bytes, b".aspx")?;
            let mut starts = memchr::memrchr_iter(b'/', bytes.get(..page)?).map(|slash| slash + 1);
            starts.find_map(|start| {
                let len = session(bytes.get(start..)?)?;
                (start + len < page).then_some(base + start..base + start + len)
            })
        });
        if let Some(range) = found {
            path.drain(range);
        }
    }
}

/// `(x(24)…)/`, by its length.
fn asp_net_groups(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    if text.first() != Some(&b'(') {
        return None;
    }
    loop {
        match text.get(at..)? {
            [b')', b'/', ..] if at > 1 => return Some(at + 2),
            [letter, b'(', rest @ ..] if letter.is_ascii_alphabetic() && closes(rest, 24) => at += 27,
            _ => return None,
        }
    }
}

/// `(24)/`, by its length.
fn asp_net_plain(text: &[u8]) -> Option<usize> {
    let inner = text.strip_prefix(b"(")?;
    (closes(inner, 24) && inner.get(25) == Some(&b'/')).then_some(27)
}

/// `count` letters or digits, then `)`.
fn closes(text: &[u8], count: usize) -> bool {
    text.get(..count).is_some_and(|id| id.iter().all(u8::is_ascii_alphanumeric)) && text.get(count) == Some(&b')')
}

/// Cuts `jsessionid=`, `phpsessid=` and `sid=` with 32 characters, `aspsessionid????????=` with 24 letters, and `cfid=` with its
/// `cftoken=`, each with the `&` behind it.
pub fn cut_from_query(query: &mut String) {
    for name in ["jsessionid=", "phpsessid=", "sid="] {
        cut_last(query, name, |id| alphanumeric(id, 32));
    }
    cut_last(query, "aspsessionid", |id| {
        let (name, value) = id.split_at_checked(8)?;
        let value = value.strip_prefix(b"=")?.get(..24)?;
        (name.iter().chain(value).all(u8::is_ascii_alphabetic)).then_some(33)
    });
    cut_cold_fusion(query);
}

fn alphanumeric(text: &[u8], count: usize) -> Option<usize> {
    text.get(..count)?.iter().all(u8::is_ascii_alphanumeric).then_some(count)
}

/// Cuts the last `name` whose value `id` measures, if the value ends a piece; the `&` behind it goes too.
fn cut_last(query: &mut String, name: &str, id: impl Fn(&[u8]) -> Option<usize>) {
    let bytes = query.as_bytes();
    let mut end = bytes.len();
    while let Some(at) = memmem::rfind(bytes.get(..end).unwrap_or_default(), name.as_bytes()) {
        let value = bytes.get(at + name.len()..).unwrap_or_default();
        if let Some(len) = id(value) {
            let stop = at + name.len() + len;
            match bytes.get(stop) {
                None => return query.truncate(at),
                Some(b'&') => {
                    query.drain(at..=stop);
                    return;
                }
                Some(_) => {}
            }
        }
        end = (at + name.len()).saturating_sub(1);
    }
}

/// `cfid=…&cftoken=…`: found by its second piece, so that every byte is looked at only a few times.
fn cut_cold_fusion(query: &mut String) {
    const TOKEN: &[u8] = b"&cftoken=";
    let bytes = query.as_bytes();
    let mut end = bytes.len();
    while let Some(amp) = memmem::rfind(bytes.get(..end).unwrap_or_default(), TOKEN) {
        end = amp;
        let value = amp + TOKEN.len();
        let rest = bytes.get(value..).unwrap_or_default();
        let len = memchr::memchr(b'&', rest).unwrap_or(rest.len());
        let before = bytes.get(..amp).unwrap_or_default();
        let piece = memchr::memrchr(b'&', before).map_or(0, |amp| amp + 1);
        // At least one byte must follow `cfid=`.
        let Some(room) = bytes.get(piece..amp.saturating_sub(1)) else { continue };
        if let (true, Some(at)) = (len > 0, memmem::rfind(room, b"cfid=")) {
            let stop = (value + len + 1).min(bytes.len());
            query.drain(piece + at..stop);
            return;
        }
    }
}
