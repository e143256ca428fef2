//! Links out of pages with known answers, in every encoding, cut, flipped, and fed without end.

use encoding_rs::Encoding;
use trawl_parse::charset::Source;
use trawl_parse::links::{LinkExtractor, Options, Page, links};

const BASE: &str = "http://h.example/dir/page";

const CORPUS: [(&str, &[u8], &str); 3] = [
    ("mixed", include_bytes!("data/links/mixed.html"), include_str!("data/links/mixed.expected")),
    ("old", include_bytes!("data/links/old.html"), include_str!("data/links/old.expected")),
    ("broken", include_bytes!("data/links/broken.html"), include_str!("data/links/broken.expected")),
];

fn options() -> Options {
    Options { forms: true, ..Options::default() }
}

/// A page in the words of the `.expected` files.
fn show(page: &Page) -> Vec<String> {
    let or_dash = |url: Option<&str>| url.unwrap_or("-").to_owned();
    let refresh =
        page.refresh.as_ref().map(|refresh| format!("{} {}", refresh.delay_seconds, or_dash(refresh.url.as_deref())));
    let mut lines = vec![
        format!("base {}", page.base),
        format!("canonical {}", or_dash(page.canonical.as_deref())),
        format!("refresh {}", or_dash(refresh.as_deref())),
        format!("charset {} {:?}", page.charset, page.charset_source),
    ];
    for link in &page.links {
        let rel = [(link.rel.nofollow, " nofollow"), (link.rel.ugc, " ugc"), (link.rel.sponsored, " sponsored")];
        let rel: String = rel.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        lines.push(format!("{:?} {}{rel}", link.kind, link.url));
    }
    lines
}

fn urls(page: &Page) -> Vec<&str> {
    page.links.iter().map(|link| link.url.as_str()).collect()
}

#[test]
fn known_answers() {
    for (name, html, expected) in CORPUS {
        let found = show(&links(html, BASE, None, &options()));
        assert_eq!(found.join("\n"), expected.trim_end(), "{name}");
    }
}

/// The links of a prefix are a prefix of the links, once `<base>` has been seen.
#[test]
fn cut_at_every_byte() {
    for (name, html, _) in CORPUS {
        let whole = links(html, BASE, Some("text/html; charset=utf-8"), &options());
        let whole = urls(&whole);
        let base_end = memchr::memmem::find(html, b"<base href=\"/base/\">").map_or(0, |at| at + 20);
        let mut longest = 0;
        for cut in 0..=html.len() {
            let part = links(&html[..cut], BASE, Some("text/html; charset=utf-8"), &options());
            if cut >= base_end {
                assert!(whole.starts_with(&urls(&part)), "{name} at {cut}");
                longest = longest.max(part.links.len());
            }
        }
        assert_eq!(longest, whole.len(), "{name}");
    }
}

#[test]
fn pieces_cut_at_every_byte_give_the_same_page() {
    for (name, html, _) in CORPUS {
        let whole = links(html, BASE, None, &options());
        for cut in 0..=html.len() {
            let mut extractor = LinkExtractor::new(options(), None);
            extractor.push(&html[..cut]);
            extractor.push(&html[cut..]);
            assert_eq!(extractor.finish(BASE), whole, "{name} at {cut}");
        }
    }
}

#[test]
fn every_bit_flipped() {
    for (_, html, _) in CORPUS {
        let mut page = html.to_vec();
        for bit in 0..html.len() * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            let found = links(&page, BASE, None, &options());
            assert!(found.links.len() < 200);
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// One word in the script of each encoding, long enough to guess from, and how it looks in a URL's query there.
const TEXTS: [(&str, &str, &str); 10] = [
    ("windows-1252", "café", "caf%E9"),
    ("windows-1251", "правительство", "%EF%F0%E0%E2%E8%F2%E5%EB%FC%F1%F2%E2%EE"),
    ("KOI8-R", "правительство", "%D0%D2%C1%D7%C9%D4%C5%CC%D8%D3%D4%D7%CF"),
    ("Shift_JIS", "表示", "%95\\%8E%A6"),
    ("EUC-JP", "日本語", "%C6%FC%CB%DC%B8%EC"),
    ("GBK", "中文", "%D6%D0%CE%C4"),
    ("Big5", "中文", "%A4%A4%A4%E5"),
    ("EUC-KR", "한국어", "%C7%D1%B1%B9%BE%EE"),
    ("ISO-8859-2", "łódź", "%B3%F3d%BC"),
    ("UTF-8", "ünïcödé", "%C3%BCn%C3%AFc%C3%B6d%C3%A9"),
];

fn encode(label: &str, text: &str) -> Vec<u8> {
    let (bytes, encoding, unmapped) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
    assert!(!unmapped && encoding.name() == label, "{label}");
    bytes.into_owned()
}

#[test]
fn declared_encodings() {
    for (label, word, query) in TEXTS {
        let body = format!("<a href='/{word}?{word}'>");
        let utf8: String =
            word.bytes().map(|b| if b.is_ascii() { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
        let want = format!("http://h.example/{utf8}?{query}");
        let by_header =
            links(&encode(label, &body), BASE, Some(&format!("text/html; charset=\"{label}\"")), &options());
        let meta = format!("<meta charset={label}>{body}");
        let by_meta = links(&encode(label, &meta), BASE, None, &options());
        let http_equiv = format!("{body}<meta http-equiv=Content-Type content='text/html;charset = {label}'>");
        let by_http_equiv = links(&encode(label, &http_equiv), BASE, None, &options());
        for (page, source) in
            [(by_header, Source::Header), (by_meta, Source::Declared), (by_http_equiv, Source::Declared)]
        {
            assert_eq!((page.charset, page.charset_source), (label, source));
            assert_eq!(urls(&page), [&want], "{label} {source:?}");
        }
    }
}

#[test]
fn the_order_of_evidence() {
    let html = |start: &[u8]| [start, b"<meta charset=windows-1251><a href=/\xEF>"].concat();
    let by_bom = links(&html(b"\xEF\xBB\xBF"), BASE, Some("text/html; charset=koi8-r"), &options());
    assert_eq!((by_bom.charset, by_bom.charset_source), ("UTF-8", Source::ByteOrderMark));
    let by_header = links(&html(b""), BASE, Some("text/html; charset=koi8-r"), &options());
    assert_eq!((by_header.charset, by_header.charset_source), ("KOI8-R", Source::Header));
    let unknown_header = links(&html(b""), BASE, Some("text/html; charset=nonsense"), &options());
    assert_eq!((unknown_header.charset, unknown_header.charset_source), ("windows-1251", Source::Declared));
    // A page that is read as ASCII cannot be in UTF-16, whatever it says.
    let utf16_meta = links(b"<meta charset=utf-16><a href=/x>", BASE, None, &options());
    assert_eq!((utf16_meta.charset, utf16_meta.links.len()), ("UTF-8", 1));
}

#[test]
fn utf16_and_iso_2022_jp_are_decoded_first() {
    let html = "<meta charset=iso-2022-jp><a href='/表示?日本'><!-- 漢字 --><a href=/b>";
    let units = || html.encode_utf16();
    let marked = |unit: [u8; 2], bytes: Vec<u8>| [unit.to_vec(), bytes].concat();
    let little = marked([0xFF, 0xFE], units().flat_map(u16::to_le_bytes).collect());
    let big = marked([0xFE, 0xFF], units().flat_map(u16::to_be_bytes).collect());
    let want = ["http://h.example/%E8%A1%A8%E7%A4%BA?%E6%97%A5%E6%9C%AC", "http://h.example/b"];
    for (bytes, charset) in [(little, "UTF-16LE"), (big, "UTF-16BE")] {
        let page = links(&bytes, BASE, None, &options());
        assert_eq!((page.charset, urls(&page)), (charset, want.to_vec()));
        let unmarked = links(&bytes[2..], BASE, Some(&format!("text/html; charset={charset}")), &options());
        assert_eq!(urls(&unmarked), want);
        // The same in pieces that split characters.
        let mut extractor = LinkExtractor::new(options(), None);
        bytes.chunks(3).for_each(|piece| extractor.push(piece));
        assert_eq!(extractor.finish(BASE), page);
    }
    // In ISO-2022-JP the bytes of these characters include `<` and letters.
    let page =
        links(&encode("ISO-2022-JP", "<meta charset=iso-2022-jp><p>式次第</p><a href=/b>"), BASE, None, &options());
    assert_eq!((page.charset, urls(&page)), ("ISO-2022-JP", vec!["http://h.example/b"]));
}

#[test]
fn guessed_encodings() {
    let texts = [
        ("windows-1251", "ru", "Правительство России утвердило новые правила для школ и больниц."),
        ("Shift_JIS", "jp", "日本語のページです。これは文字コードの判定のための文章です。"),
        ("EUC-KR", "kr", "한국어로 작성된 문서입니다. 문자 인코딩을 판별하기 위한 문장입니다."),
        ("GBK", "cn", "这是一个中文网页，用来检测字符编码。今天的新闻很多。"),
        ("windows-1252", "fr", "L'été dernier, les élèves français ont étudié à l'étranger."),
        ("ISO-8859-7", "gr", "Η κυβέρνηση ανακοίνωσε νέα μέτρα για τα σχολεία της χώρας."),
        ("UTF-8", "de", "Straßen und Plätze in Köln: größer, schöner, älter."),
        ("UTF-8", "ru", "Правительство России утвердило новые правила."),
    ];
    for (label, tld, text) in texts {
        let html = encode(label, &format!("<html><p>{text}</p><a href='/x'></html>"));
        let page = links(&html, &format!("http://h.{tld}/"), None, &options());
        assert_eq!((page.charset, page.charset_source), (label, Source::Detected), "{text}");
    }
    let ascii = links(b"<a href=/x>", BASE, None, &options());
    assert_eq!((ascii.charset, ascii.charset_source), ("UTF-8", Source::Detected));
}

#[test]
fn what_an_encoding_lacks_is_sent_as_a_reference() {
    let page = links("<meta charset=windows-1251><a href='?a=&#26085;b'>".as_bytes(), BASE, None, &options());
    assert_eq!(urls(&page), ["http://h.example/dir/page?a=%26%2326085%3Bb"]);
}
