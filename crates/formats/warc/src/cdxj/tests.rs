use super::*;
use bytes::Bytes;
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_io::read_at::Counting;

/// Keys as cdxj-indexer 1.5 makes them.
const KEYS: &[(&str, &str)] = &[
    ("http://example.com", "com,example)/"),
    ("https://www2.Example.com:443/A/../B/?y=2&x=1#f", "com,example)/b?x=1&y=2"),
    ("http://user:pass@www.example.com:8080/", "com,example:8080)/"),
    ("http://example.com/a%20b//c/./d/", "com,example)/a%20b/c/d"),
    ("http://example.com/%2541", "com,example)/a"),
    ("http://example.com/?", "com,example)/"),
    ("http://example.com/?a=&b&a", "com,example)/?a&a=&b"),
    ("http://example.com/x?jsessionid=0123456789abcdef0123456789ABCDEF&z=1", "com,example)/x?z=1"),
    ("http://example.com/x?z=1&sid=0123456789abcdef0123456789ABCDEF", "com,example)/x?&z=1"),
    ("http://example.com/(S(4hqa0555fwsecu455xqckv45))/mileg.aspx", "com,example)/mileg.aspx"),
    ("http://192.168.1.1/x", "1,1,168,192)/x"),
    ("http://3279880203/blah", "11,0,127,195)/blah"),
    ("dns:example.com", "dns:example.com"),
    ("http://bücher.example/ä", "example,xn--bcher-kva)/%c3%a4"),
    ("http:////////www.vikings.com/x", "com,vikings)/x"),
    ("http://https://example.com/", "com,example)/"),
    ("example.org/x", "org,example)/x"),
    ("http://example.com:bad/x", "http://example.com:bad/x"),
    ("http://[2001:db8::1]:81/x", "2001:db8::1:81)/x"),
    ("filedesc:foo", "filedesc:foo"),
    ("", "-"),
    ("http://example.com/../x/..", "com,example)/.."),
    ("http://example..com./", "com,example)/"),
    ("ftp://www.example.com/Pub/", "com,example)/pub"),
    ("urn:uuid:ABC", "urn:uuid:abc"),
];

#[test]
fn keys_are_those_of_other_tools() {
    for (url, key) in KEYS {
        assert_eq!(surt_key(url), *key, "{url}");
    }
}

#[test]
fn keys_of_anything_do_not_panic() {
    use proptest::prelude::*;
    proptest!(|(url in "(?s).{0,60}")| { surt_key(&url); });
    proptest!(|(url in "(http://)?[a-z0-9.:@\\[\\]%/?&=();#-]{0,60}")| { surt_key(&url); });
}

fn line(n: usize) -> CdxjLine {
    let url = format!("http://h{:03}.example/p/{n}", n % 100);
    let mut line = CdxjLine::new(&url, trawl_model::UnixMillis(1_782_262_923_000));
    for (name, value) in [
        ("url", url.as_str()),
        ("mime", "text/html"),
        ("status", "200"),
        ("length", "10"),
        ("offset", "20"),
        ("filename", "a.gz"),
    ] {
        line.put(name, value);
    }
    line
}

fn sorted_text(n: usize) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let mut sorter = CdxjSorter::new(dir.path(), 1 << 20).unwrap();
    (0..n).rev().chain([0]).for_each(|i| sorter.push(&line(i)).unwrap());
    let mut out = Vec::new();
    assert_eq!(sorter.write(&mut out).unwrap(), n as u64);
    out
}

#[test]
fn lines_come_back() {
    let mut odd = line(7);
    odd.put("title", "\"é\u{1F600}\\\n");
    let text = odd.to_text();
    assert!(text.contains(r#""title": "\"\u00e9\ud83d\ude00\\\n""#), "{text}");
    assert_eq!(CdxjLine::parse(text.as_bytes()).unwrap(), odd);
    assert_eq!(odd.place().unwrap(), trawl_model::Place::new("a.gz", 20, 10));
    assert_eq!(odd.to_record().status, Some(200));
    let numbers = CdxjLine::parse(br#"a 2026 {"status": 200, "offset": 5}"#).unwrap();
    assert_eq!(numbers.get("status"), Some("200"));
    for bad in ["", "a", "a 2026", "a x {}", "a 2026 []", "a 2026 {", "a 202606240102034567 {}"] {
        assert!(CdxjLine::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn every_line_is_found_in_a_few_reads() {
    let text = sorted_text(2000);
    let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').filter(|l| !l.is_empty()).collect();
    assert!(lines.is_sorted());
    let counting = Arc::new(Counting::new(Bytes::from(text.clone())));
    let file = CdxjFile::new(counting.clone());
    for i in 0..2000 {
        let wanted = line(i);
        let found: Vec<_> = file.lines(format!("{} ", wanted.key).as_bytes()).unwrap().map(Result::unwrap).collect();
        assert_eq!(found, [wanted.to_text().into_bytes()]);
    }
    assert_eq!(file.lines(b"example,h042)").unwrap().count(), 20);
    assert_eq!(file.lines(b"").unwrap().count(), 2000);
    assert_eq!(file.lines(b"zzz").unwrap().count(), 0);
    assert_eq!(file.lines(b"!").unwrap().count(), 0);
    let empty = CdxjFile::new(Arc::new(Bytes::new()));
    assert_eq!(empty.lines(b"a").unwrap().count(), 0);
}

/// Of lines that are not in order a search finds some, or none.
#[test]
fn an_index_that_is_not_sorted_is_refused() {
    let check = |text: &[u8], up_to| CdxjFile::new(Arc::new(Bytes::from(text.to_vec()))).check_order(up_to);
    let sorted = sorted_text(300);
    check(&sorted, u64::MAX).unwrap();
    // Lines of one key in any order, other headers, a key that begins as another does.
    check(b" CDX N b a\n!meta 0 {}\na)/ 2 {}\na)/ 1 {}\n\na)/!x 1 {}\nb)/ 1 {}", u64::MAX).unwrap();
    let joined = [&sorted[..], &sorted].concat();
    let error = check(&joined, u64::MAX).unwrap_err().to_string();
    assert!(error.contains(&format!("@{}: expected lines sorted by their keys", sorted.len())), "{error}");
    // As far as was asked for, by whole lines.
    for up_to in [0, 1, sorted.len() as u64 - 1] {
        check(&joined, up_to).unwrap();
    }
}

/// Blank lines are none: a search found nothing before one, and the lines of a key ended at one.
#[test]
fn blank_lines_hide_nothing() {
    let text = sorted_text(300);
    let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    for (blank, every) in [(&b"\n"[..], 1), (b"\r\n", 7), (b"\n\n\n", 100)] {
        let spread: Vec<u8> = lines.chunks(every).flat_map(|some| [&some.concat()[..], blank].concat()).collect();
        let file = CdxjFile::new(Arc::new(Bytes::from(spread)));
        file.check_order(u64::MAX).unwrap();
        for i in 0..300 {
            let wanted = line(i);
            let found = file.lines(format!("{} ", wanted.key).as_bytes()).unwrap().map(Result::unwrap);
            assert_eq!(found.collect::<Vec<_>>(), [wanted.to_text().into_bytes()]);
        }
        assert_eq!(file.lines(b"").unwrap().count(), 300);
    }
}

type Result<T> = crate::Result<T>;

#[test]
fn blocks_give_the_same_answers() {
    let text = sorted_text(1000);
    for style in [BlockIndex::Cluster, BlockIndex::Wacz] {
        let mut writer = BlockWriter::new(Vec::new(), Vec::new(), style.clone(), "cdx-00000.gz", 64).unwrap();
        for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            writer.push(line).unwrap();
        }
        let (data, index) = writer.finish().unwrap();
        let data = Bytes::from(data);
        let zipnum = ZipNum::new(Arc::new(Bytes::from(index)), move |name| {
            assert_eq!(name, "cdx-00000.gz");
            Ok(Arc::new(data.clone()) as Arc<dyn ReadAt>)
        })
        .unwrap();
        let plain = CdxjFile::new(Arc::new(Bytes::from(text.clone())));
        let prefixes =
            (0..1000).map(|i| format!("{} ", line(i).key)).chain(["".into(), "example,h05".into(), "x".into()]);
        for prefix in prefixes {
            let collect = |lines: Result<Lines>| lines.unwrap().map(std::result::Result::unwrap).collect::<Vec<_>>();
            assert_eq!(collect(zipnum.lines(prefix.as_bytes())), collect(plain.lines(prefix.as_bytes())), "{prefix}");
        }
    }
}

/// A key keeps the braces of its URL, so a brace does not show where the key of a block ends.
#[test]
fn keys_with_braces_are_found_in_blocks() {
    let mut lines: Vec<String> = (0..60)
        .map(|i| format!("example,h)/{}{i:02} 20260624010203 {{\"url\": \"x\"}}", ["", "{", "x{y}"][i % 3]))
        .collect();
    lines.sort();
    for (style, size) in (1..9).flat_map(|size| [(BlockIndex::Cluster, size), (BlockIndex::Wacz, size)]) {
        let mut writer = BlockWriter::new(Vec::new(), Vec::new(), style, "cdx-00000.gz", size).unwrap();
        lines.iter().for_each(|line| writer.push(line.as_bytes()).unwrap());
        let (data, index) = writer.finish().unwrap();
        let data = Bytes::from(data);
        let open = move |_: &str| Ok(Arc::new(data.clone()) as Arc<dyn ReadAt>);
        let zipnum = ZipNum::new(Arc::new(Bytes::from(index)), open).unwrap();
        for line in &lines {
            let key = &line[..=line.find(' ').unwrap()];
            let found: Vec<_> = zipnum.lines(key.as_bytes()).unwrap().map(Result::unwrap).collect();
            assert_eq!(found, [line.as_bytes()], "{key} in blocks of {size}");
        }
    }
}

#[test]
fn sorted_indexes_merge_and_unsorted_ones_are_named() {
    let text = sorted_text(300);
    let lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
    let part = |keep: fn(usize) -> bool| {
        let bytes: Vec<u8> = lines.iter().enumerate().filter(|(i, _)| keep(*i)).flat_map(|(_, l)| l.to_vec()).collect();
        Box::new(std::io::Cursor::new(bytes)) as Box<dyn std::io::BufRead>
    };
    let inputs =
        vec![("a".into(), part(|i| i % 3 == 0)), ("b".into(), part(|i| i % 3 != 0)), ("c".into(), part(|i| i < 50))];
    let mut merged = Vec::new();
    assert_eq!(merge_cdxj(inputs, &mut |line| write_lines(&mut merged, &[line])).unwrap(), 300);
    assert_eq!(merged, text);
    let bad: Box<dyn std::io::BufRead> = Box::new(std::io::Cursor::new(b"b 1 {}\na 1 {}\n".to_vec()));
    let error = merge_cdxj(vec![("bad.cdxj".into(), bad)], &mut |_| Ok(())).unwrap_err().to_string();
    assert_eq!(error, "bad.cdxj@7: expected sorted lines, found \"a 1 {}\"");
}

/// A record without a time is listed as of the first moment, so that it can be found and reported; one without a URL is reported. The
/// next one is read, and not one that a block may hold.
#[test]
fn records_without_a_time_or_url_are_named() {
    let record = |date: &str, url: &str, block: &str| {
        let length = block.len();
        format!("WARC/1.0\r\nWARC-Type: response\r\n{date}{url}Content-Length: {length}\r\n\r\n{block}\r\n\r\n")
    };
    let (date, url) = ("WARC-Date: 2026-06-24T01:02:03Z\r\n", "WARC-Target-URI: http://a.example/\r\n");
    let good = record(date, url, "x");
    let bytes = [record("WARC-Date: soon\r\n", url, &good), record("", url, ""), record(date, "", ""), good].concat();
    let mut reader = crate::WarcReader::builder().lenient(true).over(Arc::new(Bytes::from(bytes)));
    let (mut lines, mut errors) = (Vec::new(), Vec::new());
    let mut each = |line: CdxjLine| {
        lines.push(line.timestamp);
        Ok(())
    };
    let mut on_damage = |found: Unlisted| {
        errors.push(found.into_error().to_string());
        Ok(())
    };
    index_records(&mut reader, &CdxjOptions::default(), &mut each, &mut on_damage).unwrap();
    assert_eq!(lines, ["19700101000000", "19700101000000", "20260624010203"]);
    let expected = [
        "expected a time in WARC-Date, found \"soon\"",
        "a time in WARC-Date, found none",
        "a URL in WARC-Target-URI, found none",
    ];
    assert_eq!(errors.len(), 3, "{errors:?}");
    errors.iter().zip(expected).for_each(|(error, expected)| assert!(error.contains(expected), "{error}"));
}

/// Dates as ARC files of the wild have them: each record is a line.
#[test]
fn odd_dates_of_arc_files_are_lines() {
    let dates = ["20080430204826", "2008043020482", "200804302048260000", "abcdef12345678", "0", "-", "20081330204826"];
    let mut file = b"filedesc://x.arc 0.0.0.0 20080430204825 text/plain 0\n\n".to_vec();
    for (n, date) in dates.iter().enumerate() {
        file.extend(format!("http://h{n}.example/ 192.0.2.1 {date} text/html 5\nHTTP/\n").bytes());
    }
    let mut reader = crate::WarcReader::builder().lenient(true).over(Arc::new(Bytes::from(file)));
    let (mut lines, mut undated) = (Vec::new(), 0);
    let mut each = |line: CdxjLine| {
        lines.push(line.timestamp);
        Ok(())
    };
    let mut on_odd = |found: Unlisted| {
        undated += u64::from(matches!(found, Unlisted::Undated(_)));
        Ok(())
    };
    index_records(&mut reader, &CdxjOptions::default(), &mut each, &mut on_odd).unwrap();
    let none = "19700101000000";
    assert_eq!(lines, ["20080430204826", "20080430204800", "20080430204826", none, none, none, none]);
    assert_eq!(undated, 4);
}

/// What a line shows has no user name and no password, in whatever spelling.
#[test]
fn lines_are_shown_without_credentials() {
    for (url, key, shown) in [
        ("//u:pw@h.example/", "example,h)/", "//h.example/"),
        ("http://us\ter:pw@h.example/", "example,h)/", "http://h.example/"),
        ("http:/u:pw@h.example/", "example,h)/", "http:/h.example/"),
        ("http://u:pw@h.example/x", "example,h)/x", "http://h.example/x"),
    ] {
        let mut line = CdxjLine::new(url, trawl_model::UnixMillis(0));
        line.put("url", url);
        let text = CdxjLine::without_credentials(line.to_text().as_bytes()).unwrap();
        let parsed = CdxjLine::parse(text.as_bytes()).unwrap();
        assert_eq!((parsed.key.as_str(), parsed.get("url")), (key, Some(shown)), "{url}");
        assert!(!text.contains("pw"), "{text}");
    }
    let plain = r#"example,h)/@ 2026 {"url": "http://h.example/@"}"#;
    assert_eq!(CdxjLine::without_credentials(plain.as_bytes()), None);
}
