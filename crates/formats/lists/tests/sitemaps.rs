//! Sitemaps and feeds with known answers, from `tests/data/sitemaps/cases.txt`, and their limits.
//!
//! ```text
//! case NAME          a new document; its lines follow, each after "| "
//! | LINE             with \r \n \xHH \uHHHH decoded; a final \ means no line feed
//! url URL            where it was found, if not http://www.example.com/sitemap.xml
//! kind KIND, entry URL [DATE], updated DATE, not-web N, damaged, error: what must come out
//! ```

mod common;

use std::io::Write;

use trawl_lists::Error;
use trawl_lists::sitemap::{Document, Options, parse};
use trawl_model::UnixMillis;

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

/// What a document says, in the words of the case file.
fn show(result: &Result<Document, Error>) -> Vec<String> {
    let Ok(document) = result else { return vec!["error".into()] };
    let mut out = vec![format!("kind {:?}", document.kind)];
    out.extend(document.updated.map(|date| format!("updated {}", date.rfc3339_seconds())));
    for entry in &document.entries {
        let date = entry.lastmod.map(|date| format!(" {}", date.rfc3339_seconds())).unwrap_or_default();
        out.push(format!("entry {}{date}", entry.url));
    }
    if document.not_web > 0 {
        out.push(format!("not-web {}", document.not_web));
    }
    if document.damaged {
        out.push("damaged".into());
    }
    assert!(!document.over_limit);
    out
}

struct Case {
    name: String,
    url: String,
    document: Vec<u8>,
    want: Vec<String>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let file = include_str!("data/sitemaps/cases.txt");
    for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "case" {
            cases.push(Case {
                name: rest.to_owned(),
                url: "http://www.example.com/sitemap.xml".into(),
                document: Vec::new(),
                want: Vec::new(),
            });
            continue;
        }
        let case = cases.last_mut().unwrap();
        match word {
            "|" => case.document.extend(common::decode(rest)),
            "url" => case.url = rest.to_owned(),
            _ => case.want.push(line.to_owned()),
        }
    }
    cases
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn known_answers() {
    let cases = cases();
    assert!(cases.len() > 30);
    for case in cases {
        let found = show(&parse(&case.document, &case.url, NOW, &Options::default()));
        assert_eq!(found, case.want, "{}", case.name);
    }
}

#[test]
fn known_answers_in_gzip() {
    for case in cases() {
        // Two members, as tools that append write them.
        let (head, tail) = case.document.split_at(case.document.len() / 2);
        let zipped = [gzip(head), gzip(tail)].concat();
        assert_eq!(show(&parse(&zipped, &case.url, NOW, &Options::default())), case.want, "{}", case.name);
    }
}

#[test]
fn known_answers_in_utf16() {
    for case in cases() {
        let Ok(text) = std::str::from_utf8(&case.document) else { continue };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let units = || std::iter::once(0xFEFF).chain(text.encode_utf16());
        let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
        for bytes in [little, big] {
            assert_eq!(show(&parse(&bytes, &case.url, NOW, &Options::default())), case.want, "{}", case.name);
        }
    }
}

/// Whatever is cut off, what came before is kept: the entries of a prefix are a prefix of the entries. Only an entry
/// whose container was still open may lack its date.
#[test]
fn every_prefix_keeps_its_entries() {
    for case in cases() {
        let Ok(whole) = parse(&case.document, &case.url, NOW, &Options::default()) else { continue };
        // Long documents repeat themselves: every seventh byte of those.
        let step = if case.document.len() > 1500 { 7 } else { 1 };
        for cut in (0..case.document.len()).step_by(step) {
            let Ok(part) = parse(&case.document[..cut], &case.url, NOW, &Options::default()) else { continue };
            if whole.kind == trawl_lists::sitemap::Kind::Text {
                continue; // a line that is cut may still be a URL
            }
            for (i, (found, want)) in part.entries.iter().zip(&whole.entries).enumerate() {
                let last = i + 1 == part.entries.len();
                assert!(found.url == want.url && (last || found.lastmod == want.lastmod), "{} at {cut}", case.name);
            }
            assert!(part.entries.len() <= whole.entries.len(), "{} at {cut}", case.name);
        }
    }
}

#[test]
fn broken_gzip_keeps_what_was_read() {
    let xml: String = (0..500).map(|i| format!("<url><loc>http://h.example/{i}{}</loc></url>", i * 7919)).collect();
    let zipped = gzip(format!("<urlset>{xml}</urlset>").as_bytes());
    let cut = parse(&zipped[..zipped.len() / 2], "http://h.example/", NOW, &Options::default()).unwrap();
    assert!(cut.damaged && cut.entries.len() > 50 && cut.entries.len() < 500, "{}", cut.entries.len());
    for bit in (0..zipped.len() * 8).step_by(13) {
        let mut flipped = zipped.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let _ = parse(&flipped, "http://h.example/", NOW, &Options::default());
    }
}

/// The limits of crawler-commons' SiteMapParserLimitsTest, in its partial mode.
#[test]
fn limits() {
    let formats: [(&str, &str, &str); 5] = [
        ("<urlset>", "<url><loc>http://h.example/page{}.html</loc></url>\n", "</urlset>"),
        ("<sitemapindex>", "<sitemap><loc>http://h.example/page{}.html</loc></sitemap>\n", "</sitemapindex>"),
        ("<rss><channel>", "<item><link>http://h.example/page{}.html</link></item>\n", "</channel></rss>"),
        ("<feed>", "<entry><link href=\"http://h.example/page{}.html\"/></entry>\n", "</feed>"),
        ("", "http://h.example/page{}.html\n", ""),
    ];
    let generate = |(head, item, foot): (&str, &str, &str), count: usize| {
        let items: String = (0..count).map(|i| item.replace("{}", &i.to_string())).collect();
        format!("{head}{items}{foot}").into_bytes()
    };
    let ten = Options { max_urls: 10, ..Options::default() };
    for format in formats {
        for zip in [false, true] {
            let read = |count, options: &Options| {
                let plain = generate(format, count);
                let bytes = if zip { gzip(&plain) } else { plain };
                parse(&bytes, "http://h.example/", NOW, options).unwrap()
            };
            let exact = read(10, &ten);
            assert_eq!((exact.entries.len(), exact.over_limit), (10, false), "{format:?}");
            let more = read(25, &ten);
            assert_eq!((more.entries.len(), more.over_limit, more.left_out), (10, true, 15), "{format:?}");
            assert_eq!(more.entries[9].url.as_str(), "http://h.example/page9.html");

            let mut options = Options { max_bytes: generate(format, 100).len(), ..Options::default() };
            let exact = read(100, &options);
            assert_eq!((exact.entries.len(), exact.over_limit), (100, false), "{format:?}");
            options.max_bytes = options.max_bytes / 2 + 25;
            let part = read(100, &options);
            assert!(part.over_limit && part.entries.len() > 30 && part.entries.len() < 70, "{format:?}");
            assert!(part.entries.iter().all(|entry| entry.url.ends_with(".html")), "{format:?}");
        }
    }
    let many = generate(formats[0], 50_001);
    let all = parse(&many, "http://h.example/", NOW, &Options::default()).unwrap();
    assert_eq!((all.entries.len(), all.over_limit), (50_000, true));
}

#[test]
fn a_bomb_is_cut_at_the_limit() {
    let xml: String =
        (0..2048).map(|i| format!("<url><loc>http://h.example/{i}</loc></url>{}", " ".repeat(1024))).collect();
    let zipped = gzip(format!("<urlset>{xml}</urlset>").as_bytes());
    let options = Options { max_bytes: 1 << 20, ..Options::default() };
    assert!(zipped.len() < options.max_bytes);
    let part = parse(&zipped, "http://h.example/", NOW, &options).unwrap();
    assert!(part.over_limit && part.entries.len() < 1024);
}
