//! Dot segments and empty segments of a path.

/// Appends `path` with its `.` and `..` segments resolved; the result starts with `/`.
///
/// This is the reference rule of the key form. It differs from RFC 3986 only in how many leading empty segments survive a `..`
/// at the root (`/..//x` is `/x`), so once empty segments are collapsed, as in the lake form, the two agree.
/// An empty path stays empty. The work is linear: each byte is appended once and cut at most once.
pub fn remove(path: &str, out: &mut String) {
    if path.is_empty() {
        return;
    }
    let base = out.len();
    // The drawing builds "/" + rest, then drops one slash if the rest starts with one.
    out.push('/');
    let root = out.len();
    let mut first = true;
    let mut last = "";
    for segment in path.split('/') {
        last = segment;
        match segment {
            "." => first = false,
            ".." => {
                let kept = out.as_bytes().get(root..).unwrap_or_default();
                match memchr::memrchr(b'/', kept) {
                    Some(slash) => out.truncate(root + slash),
                    None => {
                        out.truncate(root);
                        first = true;
                    }
                }
            }
            _ => {
                if !first {
                    out.push('/');
                }
                out.push_str(segment);
                first = false;
            }
        }
    }
    if matches!(last, "." | "..") {
        out.push('/');
    }
    if out.as_bytes().get(root) == Some(&b'/') {
        out.remove(base);
    }
}

/// What a path that starts with `/` needs: whether a segment is `.` or `..`, and whether one that is not the last is empty.
pub fn look(path: &str) -> (bool, bool) {
    let bytes = path.as_bytes();
    let (mut dotted, mut doubled) = (false, false);
    for slash in memchr::memchr_iter(b'/', bytes) {
        match bytes.get(slash + 1..).unwrap_or_default() {
            [b'/', ..] => doubled = true,
            [b'.'] | [b'.', b'/', ..] | [b'.', b'.'] | [b'.', b'.', b'/', ..] => dotted = true,
            _ => {}
        }
    }
    (dotted, doubled)
}

/// Appends `path` with every run of `/` cut to one.
pub fn collapse(path: &str, out: &mut String) {
    let mut slash = false;
    for piece in path.split_inclusive('/') {
        if piece == "/" && slash {
            continue;
        }
        out.push_str(piece);
        slash = piece.ends_with('/');
    }
}
