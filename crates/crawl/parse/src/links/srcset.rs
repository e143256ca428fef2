//! `srcset`: a list of images, each with descriptors such as `2x` or `640w`.

/// The URLs of a `srcset`, in order.
pub(super) fn urls(srcset: &str) -> impl Iterator<Item = &str> {
    let mut rest = srcset;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        let end = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
        let (candidate, after) = rest.split_at_checked(end).filter(|(candidate, _)| !candidate.is_empty())?;
        let url = candidate.trim_end_matches(',');
        // A comma right after the URL ends the candidate; otherwise descriptors follow, up to a comma outside parentheses.
        rest = if url.len() < candidate.len() { after } else { after_descriptors(after) };
        Some(url)
    })
}

fn after_descriptors(text: &str) -> &str {
    let mut inside = false;
    let end = text.bytes().position(|byte| {
        match byte {
            b'(' => inside = true,
            b')' => inside = false,
            _ => {}
        }
        byte == b',' && !inside
    });
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::urls;

    #[test]
    fn candidates() {
        for (srcset, want) in [
            ("", &[][..]),
            (" , ,", &[]),
            ("a.png", &["a.png"]),
            ("a.png 1x, b.png 2x", &["a.png", "b.png"]),
            ("a.png,b.png", &["a.png,b.png"]),
            ("a.png, b.png", &["a.png", "b.png"]),
            ("a.png 100w 50h,b.png 200w", &["a.png", "b.png"]),
            ("data:,a 1x, b 2x", &["data:,a", "b"]),
            ("a (x,y) 1x, b", &["a", "b"]),
            ("a\n\t2x ,\n b,,", &["a", "b"]),
        ] {
            assert_eq!(urls(srcset).collect::<Vec<_>>(), want, "{srcset}");
        }
    }
}
