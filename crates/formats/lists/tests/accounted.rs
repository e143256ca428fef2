//! No item of a document vanishes, whole, cut or flipped: a valid document gives as many items as a second, simpler count
//! finds, and damage shows as a rejected item or an error.

use proptest::prelude::*;
use serde_json::Value;
use trawl_lists::{Format, Options, read_stream};

const ITEMS: usize = 20;

/// Rows and rejected items, or the error that ended the reading.
fn read(format: Format, bytes: &[u8]) -> Result<(usize, usize), String> {
    let (mut rows, mut rejects) = (0, 0);
    let mut each = |_, item: Result<_, _>| {
        *(if item.is_ok() { &mut rows } else { &mut rejects }) += 1;
        Ok(())
    };
    read_stream("f", Some(format), bytes, &Options::default(), &mut each).map_err(|e| e.to_string())?;
    Ok((rows, rejects))
}

fn many(item: impl Fn(usize) -> String, between: &str) -> String {
    (0..ITEMS).map(item).collect::<Vec<_>>().join(between)
}

/// How a format is written, and what a simple count finds in a text of it; `None` where the text is not valid.
type Case = (&'static str, Format, String, fn(&[u8]) -> Option<usize>);

fn cases() -> Vec<Case> {
    let url = |n| format!("http://a{n}.example/p?x=1");
    let object = |n| format!("{{\"url\": \"{}\", \"n\": [{n}]}}", url(n));
    let entry = |n| {
        let request = format!("{{\"method\":\"GET\",\"url\":\"{}\",\"headers\":[]}}", url(n));
        format!(
            "{{\"startedDateTime\":\"2026-01-02T03:04:05Z\",\"request\":{request},\"response\":{{\"status\":200}}}}"
        )
    };
    let row = |n| format!("{n},\"{}\",\"a, \"\"b\"\"\nc\"\n", url(n));
    let link = |n| format!("<DT><A HREF=\"{}\" ADD_DATE=\"1700000000\">Title {n}</A>\n", url(n));
    let page = |n| format!("<url><loc>{}</loc><lastmod>2026-01-02</lastmod></url>\n", url(n));
    let item = |n| format!("<item><title>t</title><link>{}</link></item>\n", url(n));
    let atom = |n| format!("<entry><title>t</title><link rel=\"alternate\" href=\"{}\"/></entry>\n", url(n));
    let bookmarks = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<TITLE>x</TITLE>\n<DL><p>\n";
    vec![
        ("array", Format::Json, format!("[{}]", many(object, ",\n")), in_array),
        ("texts", Format::Json, format!("[{}]", many(|n| format!("\"{}\"", url(n)), ",\n")), in_array),
        ("table", Format::Json, format!("[[\"url\"],\n{}]", many(|n| format!("[\"{}\"]", url(n)), ",")), in_table),
        ("objects", Format::Json, many(object, "\n"), in_objects),
        (
            "har",
            Format::Har,
            format!("{{\"log\": {{\"version\":\"1.2\",\"entries\":[{}]}}}}", many(entry, ",")),
            in_har,
        ),
        ("csv", Format::Csv, format!("n,url,x\n{}", many(row, "")), in_csv),
        ("bookmarks", Format::Bookmarks, format!("{bookmarks}{}</DL><p>\n", many(link, "")), |text| {
            in_markup(text, "a")
        }),
        ("sitemap", Format::Sitemap, format!("<urlset>{}</urlset>", many(page, "")), |text| in_markup(text, "url")),
        (
            "rss",
            Format::Sitemap,
            format!("<rss><channel><link>http://a.example/</link>{}</channel></rss>", many(item, "")),
            |text| in_markup(text, "item"),
        ),
        ("atom", Format::Sitemap, format!("<feed>{}</feed>", many(atom, "")), |text| in_markup(text, "entry")),
    ]
}

fn in_array(text: &[u8]) -> Option<usize> {
    serde_json::from_slice::<Vec<Value>>(text).ok().map(|list| list.len())
}

fn in_table(text: &[u8]) -> Option<usize> {
    in_array(text).map(|rows| rows - 1)
}

fn in_objects(text: &[u8]) -> Option<usize> {
    serde_json::Deserializer::from_slice(text)
        .into_iter::<Value>()
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .map(|all| all.len())
}

fn in_har(text: &[u8]) -> Option<usize> {
    serde_json::from_slice::<Value>(text).ok()?.get("log")?.get("entries")?.as_array().map(Vec::len)
}

/// Rows behind the first: line ends with an even number of quotes before them, those of blank rows left out.
fn in_csv(text: &[u8]) -> Option<usize> {
    let (mut rows, mut begins, mut quotes) = (0, 0, 0);
    for (at, byte) in text.iter().chain(b"\n").enumerate() {
        quotes += usize::from(*byte == b'"');
        if *byte == b'\n' && quotes % 2 == 0 {
            let blank = text[begins..at.min(text.len())].iter().all(|b| b.is_ascii_whitespace());
            rows += usize::from(!blank);
            begins = at + 1;
        }
    }
    // A quote in the middle of a field is data, so a count by quotes says nothing then.
    let odd = text.iter().enumerate().any(|(at, b)| {
        let beside = |at: Option<usize>| at.and_then(|at| text.get(at)).is_none_or(|b| b"\",\n".contains(b));
        *b == b'"' && !beside(at.checked_sub(1)) && !beside(at.checked_add(1))
    });
    (quotes % 2 == 0 && !odd).then(|| rows - 1)
}

/// Start tags of a name. Whether a text is valid this does not tell: it is if it was not damaged in a tag.
fn in_markup(text: &[u8], name: &str) -> Option<usize> {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    Some(text.split('<').filter(|tag| tag.split([' ', '>', '\n']).next() == Some(name)).count())
}

#[test]
fn every_item_of_a_whole_document() {
    for (name, format, text, count) in cases() {
        assert_eq!(count(text.as_bytes()), Some(ITEMS), "{name}");
        assert_eq!(read(format, text.as_bytes()), Ok((ITEMS, 0)), "{name}");
    }
}

/// Compressed documents too: cut ones fail.
#[test]
fn every_item_of_a_document_cut_anywhere() {
    for (name, format, text, count) in cases() {
        let bytes = text.as_bytes();
        // White space and what says nothing may be cut off.
        let end = text.trim_end().trim_end_matches("<p>").trim_end().trim_end_matches("</DL>").trim_end().len();
        for cut in 1..end {
            let Ok((rows, rejects)) = read(format, &bytes[..cut]) else { continue };
            let counted = count(&bytes[..cut]);
            assert!(rejects > 0 || counted == Some(rows), "{name} cut at {cut}: {rows} rows, {counted:?} are there");
            assert!(
                rejects > 0 || !matches!(name, "sitemap" | "rss" | "atom" | "har" | "array"),
                "{name} cut at {cut}"
            );
        }
        let packed = zstd::encode_all(bytes, 1).unwrap();
        assert_eq!(read(format, &packed), Ok((ITEMS, 0)), "{name}");
        for cut in 5..packed.len() {
            assert!(read(format, &packed[..cut]).is_err(), "{name}: zstd cut at {cut}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_item_of_a_flipped_document(which in 0usize..10, at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let (name, format, text, count) = cases().swap_remove(which);
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok((rows, rejects)) = read(format, &bytes) {
            // Items that damage joined or tore apart are rejected; their number is then not known any more.
            let counted = count(&bytes);
            let all = rows + rejects;
            prop_assert!(
                rejects > 0 || Some(rows) == counted || rows == ITEMS,
                "{} bit {} of byte {}: {} rows, {:?} are there", name, bit, at, rows, counted
            );
            prop_assert!(all >= counted.unwrap_or(0).min(ITEMS), "{} bit {} of byte {}: {} of {:?}", name, bit, at, all, counted);
            prop_assert!(all + 1 >= ITEMS || counted.is_some_and(|counted| counted <= all), "{} bit {} of byte {}: {}", name, bit, at, all);
        }
    }
}
