//! What the tests share, and what holds for every kind of list: nothing in it vanishes, and reading it takes time in proportion.

use crate::{Format, ListFile, Options, over, read_stream};
use std::io::Write;
use std::path::Path;
use trawl_io::Mode;
use trawl_io::fault::FaultFs;
use trawl_model::{DoorError, UrlRecord, UrlSource};

/// A file on a file system of its own.
pub fn file_of(name: &str, bytes: &[u8]) -> ListFile {
    let fs = FaultFs::new().shared();
    fs.open(Path::new(name), Mode::Truncate).unwrap().write_at(0, bytes).unwrap();
    ListFile::open(&fs, Path::new(name)).unwrap()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Where an item begins, and what it is.
pub type Found = (u64, Result<UrlRecord, String>);

/// Every item of every split.
pub fn read_all(source: &dyn UrlSource, target: u64) -> Result<Vec<Found>, DoorError> {
    let mut out = Vec::new();
    for split in source.splits(target)? {
        source.read(split, &mut |at, item| {
            out.push((at, item.map_err(|e| e.to_string())));
            Ok(())
        })?;
    }
    Ok(out)
}

/// Every kind of list, in a shape that has all there is to it, with the number of its records.
fn lists() -> Vec<(&'static str, Format, Vec<u8>, usize)> {
    let lines = "http://a.com/1\n# a remark\nhttp://b.com/2\t2026-06-24T01:02:03Z\r\n\nnonsense:\n{\"url\":\"http://c.com/\"}\n{bad}\nlast.com";
    let jsonl = "{\"url\":\"http://a.com/1\",\"x\":[1,{\"y\":\"z\"}]}\n{\"uri\":1}\n\n{\"urlkey\":\"k\",\"url\":\"http://b.com/\",\"mime\":\"m\",\"filename\":\"f\",\"offset\":1,\"length\":2}\nbad\n";
    let json = "[\n  {\n    \"url\": \"http://a.com/1\",\n    \"x\": [1, \"]}\\\"\"]\n  },\n  \"http://b.com/\",\n  {\"x\": 1},\n  5\n]\n";
    let rows =
        "[[\"urlkey\",\"timestamp\",\"original\"],[\"com,a)/\",\"20260624\",\"http://a.com/\"],[\"x\"],[1,2,3,4]]";
    let cdxj = "!meta 0 {}\ncom,a)/ 20260624010203 {\"url\": \"http://a.com/\"}\ncom,b)/ 20260624 {\"status\": \"200\"}\nbad\n";
    let cdx = " CDX N b a m s k r M S V g\ncom,a)/ 20080430204825 http://a.com/ text/html 200 3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - - 10 5 x.warc.gz\nbad line\n";
    let csv = "n;url;ts\n1;http://a.com/1;2026\n2;\"http://b.com/;\n\"\"x\";\n;;\n3;;\n1;2;3;4\n";
    let bare = "1,google.com\n2,youtube.com\n3,\n4,5,6\n";
    let har = "{\"log\": {\"version\": \"1.2\", \"entries\": [\n {\"startedDateTime\": \"2026-06-24T01:02:03.000Z\", \"request\": {\"method\": \"POST\", \"url\": \"http://a.com/\"}, \"response\": {\"status\": 200, \"content\": {\"size\": 5, \"mimeType\": \"text/html\", \"text\": \"}]\"}}},\n {\"request\": {}},\n 5], \"pages\": []}}";
    let bookmarks = "<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DL><p>\n<DT><H3>f</H3>\n<DT><A HREF=\"http://a.com/?a&amp;b\" ADD_DATE=\"1\">A</A>\n<DT><A>b</A>\n</DL>\n";
    let sitemap = "<?xml version=\"1.0\"?>\n<urlset><url><loc>http://a.com/</loc><lastmod>2026-01-02</lastmod></url><url><priority>1</priority></url>\n</urlset>\n";
    let feed = "<rss><channel><title>x</title><item><link>http://a.com/1</link></item><item><guid isPermaLink=\"false\">g</guid></item></channel></rss>";
    vec![
        ("lines", Format::Lines, lines.into(), 6),
        ("jsonl", Format::Jsonl, jsonl.into(), 4),
        ("json", Format::Json, json.into(), 4),
        ("rows", Format::Json, rows.into(), 3),
        ("cdxj", Format::Cdxj, cdxj.into(), 3),
        ("cdx", Format::Cdx, cdx.into(), 2),
        ("csv", Format::Csv, csv.into(), 4),
        ("bare", Format::Csv, bare.into(), 4),
        ("har", Format::Har, har.into(), 3),
        ("bookmarks", Format::Bookmarks, bookmarks.into(), 2),
        ("sitemap", Format::Sitemap, sitemap.into(), 2),
        ("feed", Format::Sitemap, feed.into(), 2),
    ]
}

/// Records and rejects of a list, as a file in splits, and as a stream; both must say the same.
fn items_of(format: Format, bytes: &[u8]) -> Result<Vec<Found>, String> {
    let source = over(file_of("f", bytes), format, &Options::default()).map_err(|e| e.to_string())?;
    let file = read_all(&*source, 7).map_err(|e| e.to_string());
    let mut streamed = Vec::new();
    let stream = read_stream("f", Some(format), bytes, &Options::default(), &mut |at, item| {
        streamed.push((at, item.map_err(|e| e.to_string())));
        Ok(())
    });
    assert_eq!(file.is_ok(), stream.is_ok(), "{}", String::from_utf8_lossy(bytes));
    if let Ok(items) = &file {
        assert_eq!(items, &streamed, "{}", String::from_utf8_lossy(bytes));
    }
    file
}

/// How many records a text holds, found by another way than the reader's.
fn records_in(format: Format, bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let lines = || bytes.split(|b| matches!(b, b'\n' | b'\r')).map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let none = |line: &&[u8], marks: &[u8]| !line.first().is_some_and(|first| marks.contains(first));
    match format {
        Format::Lines => lines().filter(|line| none(line, b"#")).count(),
        Format::Jsonl => lines().count(),
        Format::Cdxj => lines().filter(|line| none(line, b"#!")).count(),
        Format::Cdx => lines().filter(|line| crate::cdx::Legend::of_header(line).is_none()).count(),
        // A link is a start tag of that name; an entry is one that is not inside another, which whole documents have not.
        Format::Bookmarks => {
            text.to_ascii_lowercase().matches("<a>").count() + text.to_ascii_lowercase().matches("<a ").count()
        }
        _ => unreachable!("counted by hand"),
    }
}

#[test]
fn rows_and_rejects_are_all_records() {
    for (name, format, bytes, records) in lists() {
        assert_eq!(items_of(format, &bytes).unwrap().len(), records, "{name}");
        let looks = crate::look(&file_of(name, &bytes).fs, Path::new(name)).unwrap();
        assert_eq!(looks.format.unwrap(), format, "{name} is recognised by its bytes");
        for packed in [gzip(&bytes), zstd::encode_all(&bytes[..], 1).unwrap()] {
            assert_eq!(items_of(format, &packed).unwrap().len(), records, "{name}, packed");
        }
    }
}

/// The names of every further page were a row, that of the host `original`, with exit code 0.
#[test]
fn names_on_every_page_of_an_answer_are_no_rows() {
    let page = |n: u8| format!("[\"original\",\"timestamp\"],[\"http://a.com/{n}\",\"20020120142510\"]");
    let row = |n: u8| Ok(format!("http://a.com/{n}"));
    for text in [format!("[{}]\n[{}]\n", page(1), page(2)), format!("[{},{}]", page(1), page(2))] {
        let mut found = Vec::new();
        let mut each = |_, item: Result<UrlRecord, DoorError>| {
            found.push(item.map(|record| record.url).map_err(|e| e.source.downcast::<crate::BadItem>().unwrap().code));
            Ok(())
        };
        read_stream("f", Some(Format::Json), text.as_bytes(), &Options::default(), &mut each).unwrap();
        assert_eq!(found, [row(1), Err("header"), row(2)], "{text}");
    }
}

/// `fl=original` alone is the usual question of those who want the URLs of a site.
#[test]
fn answers_of_the_wayback_machine_need_no_key() {
    let of = |text: &str| items_of(Format::Json, text.as_bytes());
    let found = of("[[\"original\"],[\"http://a.com/\"],[\"http://b.com/\"]]").unwrap();
    let urls: Vec<_> = found.iter().map(|(_, item)| item.as_ref().unwrap().url.as_str()).collect();
    assert_eq!(urls, ["http://a.com/", "http://b.com/"]);
    let found =
        of("[[\"original\",\"timestamp\",\"statuscode\"],[\"http://a.com/\",\"20020120142510\",\"-\"]]").unwrap();
    let record = found[0].1.as_ref().unwrap();
    let ts = trawl_model::UnixMillis::parse("20020120142510").ok();
    assert_eq!((record.url.as_str(), record.ts, record.status), ("http://a.com/", ts, None));
    // Beside other names it may be anything.
    assert!(of("[[\"original\",\"thumbnail\"],[\"http://a.com/\",\"x\"]]").is_err());
}

/// A cut list is refused as a whole, or gives the records that are in it: those of the whole list, but for the last one.
#[test]
fn cut_anywhere_nothing_vanishes() {
    for (name, format, bytes, _) in lists() {
        let whole = items_of(format, &bytes).unwrap();
        for cut in 0..bytes.len() {
            let Ok(items) = items_of(format, &bytes[..cut]) else {
                assert!(!format.is_lines(), "{name}, cut at {cut}: lines can be read up to any byte");
                continue;
            };
            if format.is_lines() {
                assert_eq!(items.len(), records_in(format, &bytes[..cut]), "{name}, cut at {cut}");
            }
            // A row over several lines that is cut is an item for each of its lines.
            let last = whole.iter().map(|(at, _)| *at).rfind(|at| *at < cut as u64).unwrap_or(0);
            let kept = match format {
                Format::Csv => items.iter().filter(|(at, _)| *at < last).count(),
                _ => items.len().saturating_sub(1),
            };
            assert_eq!(items[..kept], whole[..kept], "{name}, cut at {cut}");
        }
    }
}

/// Whatever bit is flipped: an error, or as many items as there are records now.
#[test]
fn flipped_anywhere_nothing_vanishes() {
    for (name, format, bytes, records) in lists() {
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let Ok(items) = items_of(format, &flipped) else { continue };
            if format.is_lines() {
                assert_eq!(items.len(), records_in(format, &flipped), "{name}, bit {bit}");
            } else if flipped[bit / 8].is_ascii_alphanumeric()
                && bytes[bit / 8].is_ascii_alphanumeric()
                && format != Format::Bookmarks
                && format != Format::Sitemap
            {
                // A letter for a letter changes no structure.
                assert_eq!(items.len(), records, "{name}, bit {bit}");
            }
        }
    }
}

/// CPU time of this thread, in nanoseconds.
fn cpu_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// Ten and a hundred times the input take about ten and a hundred times the work. Measured is CPU time, which other processes do
/// not lengthen much, and the bound is far from 10 and from what a square would take, 100.
#[test]
#[expect(clippy::print_stderr, reason = "the ratios are what this test is for")]
fn time_grows_with_the_input_and_not_faster() {
    type Shape = (&'static str, Format, fn(usize) -> String);
    let shapes: &[Shape] = &[
        ("lines", Format::Lines, |n| "http://a.com/%2525%2525\n".repeat(n)),
        ("one long line", Format::Lines, |n| "%2525\t".repeat(n)),
        ("comments", Format::Lines, |n| "#\n".repeat(n)),
        ("json lines", Format::Jsonl, |n| "{\"url\":\"http://a.com/\",\"a\":1}\n".repeat(n)),
        ("members", Format::Jsonl, |n| format!("{{{}\"url\":\"x\"}}", "\"a\":1,".repeat(n))),
        ("escapes", Format::Jsonl, |n| format!("{{\"url\":\"{}\"}}", "\\u0041\\\\".repeat(n))),
        ("bytes that are not UTF-8", Format::Lines, |n| String::from_utf8_lossy(&vec![0xfe; n]).into_owned()),
        ("json list", Format::Json, |n| format!("[{}1]", "{\"url\":\"http://a.com/\"},\n".repeat(n))),
        ("open brackets", Format::Json, |n| "[".repeat(n)),
        ("open braces", Format::Json, |n| "{\"a\":".repeat(n)),
        ("marks", Format::Json, |n| format!("[\"x\"{}]", ",:}".repeat(n))),
        ("blanks", Format::Json, |n| " \n".repeat(n)),
        ("cdxj", Format::Cdxj, |n| "com,a)/ 2026 {\"url\": \"http://a.com/\"}\n".repeat(n)),
        ("a long key", Format::Cdxj, |n| format!("{}com)/ 2026 {{}}", "a,".repeat(n))),
        ("cdx", Format::Cdx, |n| "com,a)/ 20080430204825 http://a.com/ - - - - - 1 5 x\n".repeat(n)),
        ("many columns", Format::Cdx, |n| "a ".repeat(n)),
        ("csv", Format::Csv, |n| format!("url,x\n{}", "http://a.com/,\"a\"\"b\"\n".repeat(n))),
        ("quotes", Format::Csv, |n| format!("url\n\"{}\"", "\"\"".repeat(n))),
        ("one open quote", Format::Csv, |n| format!("url\n\"{}", "a,b\n".repeat(n))),
        ("separators", Format::Csv, |n| format!("url{}\n{}", ",x".repeat(n), ",".repeat(n))),
        ("empty rows", Format::Csv, |n| format!("url\n{}x", "\n".repeat(n))),
        ("har", Format::Har, |n| {
            format!("{{\"log\":{{\"entries\":[{}1]}}}}", "{\"request\":{\"url\":\"http://a.com/\"}},".repeat(n))
        }),
        ("deep har", Format::Har, |n| format!("{{\"log\":{{\"entries\":[{}", "{\"a\":".repeat(n))),
        ("bookmarks", Format::Bookmarks, |n| "<DT><A HREF=\"http://a.com/&amp;\">A</A>\n".repeat(n)),
        ("links never closed", Format::Bookmarks, |n| "<A HREF=x>&".repeat(n)),
        ("open tags", Format::Bookmarks, |n| "<".repeat(n)),
        ("attributes", Format::Bookmarks, |n| format!("<A {}>", "x='' ".repeat(n))),
        ("open comments", Format::Bookmarks, |n| "<!--".repeat(n)),
        ("sitemap", Format::Sitemap, |n| {
            format!("<urlset>{}</urlset>", "<url><loc>http://a.com/&amp;</loc></url>".repeat(n))
        }),
        ("containers never closed", Format::Sitemap, |n| format!("<urlset>{}", "<url><loc>x".repeat(n))),
        ("deep elements", Format::Sitemap, |n| format!("<urlset><url>{}", "<a>".repeat(n))),
        ("references", Format::Sitemap, |n| format!("<urlset><url><loc>{}", "&amp;&#x41;&x".repeat(n))),
        ("atom links", Format::Sitemap, |n| format!("<feed><entry>{}", "<link rel='self' href='x'/>".repeat(n))),
        ("declarations", Format::Sitemap, |n| format!("<urlset>{}", "<!x[".repeat(n))),
    ];
    let mut too_slow = Vec::new();
    for (name, format, make) in shapes {
        let cost = |n: usize| {
            let text = make(n);
            // Of three measurements the least: what else went on is not counted.
            let once = || {
                let start = cpu_ns();
                let _ = read_stream("f", Some(*format), text.as_bytes(), &Options::default(), &mut |_, _| Ok(()));
                (cpu_ns() - start).max(1)
            };
            (0..3).map(|_| once()).min().unwrap()
        };
        // Below this, what does not grow counts too much.
        const FLOOR_NS: u64 = 100_000;
        let [one, ten, hundred] = [400, 4_000, 40_000].map(cost);
        let ratios = [ten as f64 / one as f64, hundred as f64 / ten as f64];
        eprintln!("{name}: {one} ns, 10x {:.1}, 100x {:.1} more", ratios[0], ratios[1]);
        if hundred >= 30 * ten.max(FLOOR_NS) {
            too_slow.push(format!("{name}: {ten} ns, and {hundred} ns for ten times as much"));
        }
    }
    assert!(too_slow.is_empty(), "{too_slow:#?}");
}
