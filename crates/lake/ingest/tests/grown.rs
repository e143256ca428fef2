//! Sources that were cut when they were taken and are longer now: nothing is lost, nothing comes twice, at any cut.

mod common;

use common::{NOW, UrlRow, all_rows, file, grown, lake_on, new_lake, settings, take, urls, write};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use trawl_ingest::source::{self, Opening};
use trawl_ingest::{Files, Mode, Rewrite, ingest, rewrite};
use trawl_io::Fs;
use trawl_io::fault::{FaultFs, Loss};
use trawl_store::{DirStore, Lake};

const LINES: &str =
    "http://a.com/1\n# a remark\nhttp://b.com/2\t2026-06-24T01:02:03Z\r\n\nnonsense:\nhttp://a.com/33\nhttp://c.com/4";

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Members of so many bytes each, wherever lines end.
fn members(text: &str, bytes: usize, pack: fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    text.as_bytes().chunks(bytes).flat_map(pack).collect()
}

fn record(n: u32, kind: &str, fields: &str, block: &str) -> String {
    let len = block.len();
    format!(
        "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n{fields}Content-Length: {len}\r\n\r\n{block}\r\n\r\n"
    )
}

/// Events of a response, and a request and facts that say more of it and come after it.
fn archive() -> Vec<String> {
    let mut out = vec![record(0, "warcinfo", "", "software: x\r\n")];
    for n in [10, 20, 30] {
        let target = format!("WARC-Target-URI: http://{}.com/{n}\r\n", if n == 20 { "b" } else { "a" });
        let of = format!("{target}WARC-Concurrent-To: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\n");
        let http = |kind: &str| format!("Content-Type: application/http;msgtype={kind}\r\n");
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello";
        out.push(record(n, "response", &format!("{target}{}", http("response")), page));
        let ask = "GET / HTTP/1.1\r\nHost: a.com\r\n\r\n";
        out.push(record(n + 1, "request", &format!("{of}{}", http("request")), ask));
        let facts = "trawlCapture: 1\r\nfetchedAt: 2026-06-24T01:02:04Z\r\nmetaJson: {\"depth\":3}\r\n";
        out.push(record(n + 2, "metadata", &format!("{of}Content-Type: application/warc-fields\r\n"), facts));
    }
    out
}

/// Files of every kind that can grow.
fn kinds() -> Vec<(&'static str, Vec<u8>)> {
    let jsonl = "{\"url\":\"http://a.com/1\",\"x\":1}\n{\"url\":\"http://b.com/2\"}\n{\"url\":\"http://a.com/3\",\"status\":200}\n";
    let cdxj =
        "com,a)/ 20260624010203 {\"url\": \"http://a.com/\"}\ncom,a)/b 20260624010204 {\"url\": \"http://a.com/b\"}\n";
    let csv = "url,title,status\nhttp://a.com/1,\"one, two\",200\nhttp://b.com/2,\"a\nb\",404\nhttp://a.com/3,x,\n";
    let cdx = " CDX N b a\ncom,a)/ 20260624010203 http://a.com/\ncom,b)/ 20260624010204 http://b.com/\ncom,b)/c 20260624010204 http://b.com/c\n";
    let json = "[\n {\"url\": \"http://a.com/1\"},\n \"http://b.com/2\"\n]\n";
    let sitemap = "<urlset><url><loc>http://a.com/1</loc></url>\n<url><loc>http://b.com/2</loc></url></urlset>\n";
    let records = archive();
    let each: Vec<u8> = records.iter().flat_map(|record| gz(record.as_bytes())).collect();
    vec![
        ("l.txt", LINES.into()),
        ("bom.txt", format!("\u{feff}{LINES}").into()),
        ("j.jsonl", jsonl.into()),
        ("c.cdxj", cdxj.into()),
        ("c.csv", csv.into()),
        ("t.tsv", csv.replace(',', "\t").into()),
        ("bare.csv", "1,a.com\n2,b.com\n3,www.b.com\n".into()),
        ("c.cdx", cdx.into()),
        ("l.json", json.into()),
        ("s.xml", sitemap.into()),
        ("m.txt.gz", members(LINES, 23, gz)),
        ("m.jsonl.zst", members(jsonl, 31, zst)),
        ("w.warc", records.concat().into()),
        ("w.warc.gz", each),
        ("one.warc.gz", gz(records.concat().as_bytes())),
    ]
}

/// The rows of a dataset in an order of their own: which file they are in does not matter.
fn rows(lake: &Lake) -> Vec<UrlRow> {
    let mut rows = all_rows(lake);
    // Records that share a member have its length, which nobody knows while the member is cut: what was taken then says 0.
    for row in rows.iter_mut().filter(|row| matches!(row.warc_file.as_deref(), Some("one.warc.gz" | "x.warc.gz"))) {
        row.warc_length = None;
    }
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}

fn whole(name: &str, bytes: &[u8]) -> Vec<UrlRow> {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, name, bytes)], &settings(&fs, "w")).unwrap();
    rows(&lake)
}

/// Takes each beginning of a file in turn. A beginning that is refused is not taken, as a whole.
fn grow(fs: &Arc<dyn Fs>, lake: &Lake, name: &str, bytes: &[u8], cuts: &[usize]) -> usize {
    let mut refused = 0;
    for (n, cut) in cuts.iter().enumerate() {
        let taken = grown(fs, lake, name, &bytes[..*cut]);
        let taken = taken.and_then(|source| take(lake, vec![source], &settings(fs, &format!("w{n}"))));
        refused += usize::from(taken.is_err());
    }
    refused
}

#[test]
fn cut_anywhere_and_taken_whole_later_it_is_as_taken_whole_at_once() {
    for (name, bytes) in kinds() {
        let expected = whole(name, &bytes);
        assert!(expected.len() > 1, "{name}");
        let mut refused = 0;
        // Records of archives are long, and most of their bytes alike.
        let step = if bytes.len() > 400 { 41 } else { 3 };
        for cut in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
            let (fs, lake) = new_lake();
            refused += grow(&fs, &lake, name, &bytes, &[cut, bytes.len()]);
            assert_eq!(rows(&lake), expected, "{name}, cut at {cut}");
            let commit = lake.dataset_newest(1).unwrap().unwrap();
            let sizes: Vec<u64> = commit.sources.iter().map(|source| source.identity.size).collect();
            assert_eq!(sizes, [bytes.len() as u64], "{name}, cut at {cut}: it is one source");
        }
        assert!(refused < bytes.len(), "{name}: some beginnings can be taken");
    }
}

#[test]
fn growing_many_times_is_as_growing_once() {
    for (name, bytes) in kinds() {
        let expected = whole(name, &bytes);
        let (fs, lake) = new_lake();
        let cuts: Vec<usize> = (0..=bytes.len()).step_by(bytes.len() / 8).chain([bytes.len(), bytes.len()]).collect();
        grow(&fs, &lake, name, &bytes, &cuts);
        assert_eq!(rows(&lake), expected, "{name}");
    }
}

#[test]
fn what_is_reported() {
    let (fs, lake) = new_lake();
    let short = "http://a.com/1\nhttp://b.com/2\nhttp://c.com/lo";
    take(&lake, vec![file(&fs, "l.txt", short)], &settings(&fs, "w1")).unwrap();
    let again = grown(&fs, &lake, "l.txt", format!("{short}ng\nhttp://d.com/4\nhttp://d.com/4\nbad:\n")).unwrap();
    let known = again.grown.as_ref().unwrap().known.clone();
    let report = take(&lake, vec![again], &settings(&fs, "w2")).unwrap();
    assert_eq!((report.rows, report.distinct_urls, report.rejected, report.sources), (3, 2, 1, 1));
    assert_eq!((report.taken_back, &report.grown), (1, &vec![known]));
    let after = ["http://a.com/1", "http://b.com/2", "http://c.com/long", "http://d.com/4", "http://d.com/4"];
    assert_eq!(urls(&lake), after);
    // The same again is known; with nothing but a line end it is only longer.
    let again = grown(&fs, &lake, "l.txt", format!("{short}ng\nhttp://d.com/4\nhttp://d.com/4\nbad:\n")).unwrap();
    assert_eq!(take(&lake, vec![again], &settings(&fs, "w3")).unwrap().skipped.len(), 1);
    let again = grown(&fs, &lake, "l.txt", format!("{short}ng\nhttp://d.com/4\nhttp://d.com/4\nbad:\n\n")).unwrap();
    let report = take(&lake, vec![again], &settings(&fs, "w4")).unwrap();
    assert_eq!((report.rows, report.taken_back, report.grown.len()), (0, 0, 1));
    assert_eq!(urls(&lake), after);
}

#[test]
fn rejects_say_where_and_come_once() {
    let (fs, lake) = new_lake();
    let text = "http://a.com/1\nbad:\nworse:\nhttp://a.com/2\n";
    let first = take(&lake, vec![file(&fs, "l.txt", text)], &settings(&fs, "w1")).unwrap();
    let rejects = lake.store().get(&first.rejects_file.unwrap(), 1 << 20).unwrap();
    let lines: Vec<serde_json::Value> = rejects.split(|b| *b == b'\n').flat_map(serde_json::from_slice).collect();
    let at: Vec<_> =
        lines.iter().map(|line| (line["offset"].as_u64().unwrap(), line["text"].as_str().unwrap())).collect();
    assert_eq!(at, [(15, "bad:"), (20, "worse:")]);
    let report =
        take(&lake, vec![grown(&fs, &lake, "l.txt", format!("{text}http://b.com/\n")).unwrap()], &settings(&fs, "w2"));
    assert_eq!(report.unwrap().rejected, 0, "what was rejected is known too");
}

#[test]
fn only_one_of_equal_rows_goes() {
    let (fs, lake) = new_lake();
    // Another source has the URL that this one seems to have while it is cut.
    take(&lake, vec![file(&fs, "other.txt", "http://a.com/x\n")], &settings(&fs, "w1")).unwrap();
    take(&lake, vec![grown(&fs, &lake, "l.txt", "http://a.com/x").unwrap()], &settings(&fs, "w2")).unwrap();
    let all = Rewrite { keep: &|_| true, files: Files::All, suffix_list: None };
    rewrite(&lake, 1, &all, &settings(&fs, "w3"), &|| NOW, &common::quiet).unwrap();
    assert_eq!(urls(&lake), ["http://a.com/x", "http://a.com/x"]);
    let report =
        take(&lake, vec![grown(&fs, &lake, "l.txt", "http://a.com/xyz\n").unwrap()], &settings(&fs, "w4")).unwrap();
    assert_eq!((report.rows, report.distinct_urls, report.taken_back), (1, 1, 1));
    assert_eq!(urls(&lake), ["http://a.com/x", "http://a.com/xyz"]);
}

#[test]
fn two_that_were_cut_alike_lose_a_row_each() {
    let (fs, lake) = new_lake();
    for name in ["1.txt", "2.txt"] {
        take(&lake, vec![grown(&fs, &lake, name, "http://a.com/x").unwrap()], &settings(&fs, name)).unwrap();
    }
    let sources = ["1.txt", "2.txt"].map(|name| grown(&fs, &lake, name, format!("http://a.com/x/{name}\n")).unwrap());
    let report = take(&lake, sources.into(), &settings(&fs, "w4")).unwrap();
    assert_eq!((report.rows, report.distinct_urls, report.taken_back), (2, 2, 2));
    assert_eq!(urls(&lake), ["http://a.com/x/1.txt", "http://a.com/x/2.txt"]);
}

#[test]
fn another_beginning_is_another_source_and_the_longest_known_one_counts() {
    let (fs, lake) = new_lake();
    let mut n = 0;
    let mut put = |text: &str| {
        n += 1;
        let source = grown(&fs, &lake, "l.txt", text).unwrap();
        let known = source.grown.as_ref().map(|grown| grown.known.size);
        take(&lake, vec![source], &settings(&fs, &format!("w{n}"))).unwrap();
        (known, urls(&lake).len())
    };
    assert_eq!(put("http://a.com/1\n"), (None, 1));
    assert_eq!(put("http://b.com/1\nhttp://b.com/2\n"), (None, 3), "replaced by another");
    assert_eq!(put("http://a.com/1\nhttp://a.com/2\n"), (Some(15), 4), "the first one, grown");
    assert_eq!(put("http://b.com/1\nhttp://b.com/2\nhttp://b.com/3\n"), (Some(30), 5), "the second one, grown");
    assert_eq!(put("http://a.com/1\n"), (None, 6), "shorter than it was: nobody can tell");
    assert_eq!(put("http://a.com/1\nhttp://a.com/2\nhttp://a.com/3\n"), (Some(30), 7), "the longest counts");
}

#[test]
fn what_comes_through_pipes_is_known_whole() {
    let (fs, lake) = new_lake();
    let mut n = 0;
    let mut pipe = |text: &str| {
        n += 1;
        write(&fs, "spool", text.as_bytes());
        let known = lake.dataset_newest(1).unwrap().map(|commit| commit.sources).unwrap_or_default();
        let format = Some(source::Format::List(trawl_lists::Format::Lines));
        let opening = Opening { format, name: Some("stdin"), known: Some(&known), ..Opening::default() };
        let source = source::open_as(&fs, Path::new("spool"), &opening);
        take(&lake, vec![source.unwrap()], &settings(&fs, &format!("w{n}"))).unwrap();
        urls(&lake)
    };
    assert_eq!(pipe("http://a.com/p"), ["http://a.com/p"]);
    assert_eq!(pipe("http://a.com/page").len(), 2, "another one that begins alike");
    assert_eq!(pipe("http://a.com/p").len(), 2, "the first one again");
}

/// Its writer was killed inside a member, and began another when it was started again.
#[test]
fn what_follows_a_member_that_was_never_finished_is_taken() {
    let records = archive();
    let (one, other) = (records[..7].concat(), records[7..].concat());
    let cut = gz(one.as_bytes());
    let cut = &cut[..cut.len() - 10];
    let (fs, lake) = new_lake();
    let take = |bytes: &[u8], writer| {
        take(&lake, vec![grown(&fs, &lake, "x.warc.gz", bytes).unwrap()], &settings(&fs, writer)).unwrap();
        urls(&lake)
    };
    let before = take(cut, "one");
    assert!(!before.is_empty());
    let after = take(&[cut, &gz(other.as_bytes())].concat(), "two");
    assert_eq!(after.len(), before.len() + 1, "{before:?}, then {after:?}");
    assert!(after.contains(&"http://a.com/30".to_owned()));
    let more = record(
        90,
        "response",
        "WARC-Target-URI: http://z.com/\r\nContent-Type: application/http;msgtype=response\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
    );
    let last = take(&[cut, &gz(other.as_bytes()), &gz(more.as_bytes())].concat(), "three");
    assert_eq!(last.len(), after.len() + 1, "{last:?}");
}

#[test]
fn an_empty_table_gets_its_header() {
    for name in ["x.csv", "x.tsv"] {
        let (fs, lake) = new_lake();
        grow(&fs, &lake, name, b"", &[0]);
        let source = grown(&fs, &lake, name, b"url\nhttp://a.com/\n").unwrap();
        take(&lake, vec![source], &settings(&fs, "two")).unwrap();
        assert_eq!(urls(&lake), ["http://a.com/"]);
    }
}

#[test]
fn a_file_that_grows_while_it_is_read_is_as_long_as_it_was_when_opened() {
    for (name, bytes) in kinds() {
        let expected = whole(name, &bytes);
        let (fs, lake) = new_lake();
        // Only some cuts of compressed files can be taken; every file can be as a whole, before more comes.
        let opened = grown(&fs, &lake, name, &bytes).unwrap();
        write(&fs, name, &[&bytes[..], b"\nhttp://later.com/\n"].concat());
        take(&lake, vec![opened], &settings(&fs, "w1")).unwrap();
        assert_eq!(rows(&lake), expected, "{name}");
    }
}

#[test]
fn two_writers_that_see_the_same_growth_bring_it_once() {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, "l.txt", "http://a.com/1\nhttp://a.com/2")], &settings(&fs, "w1")).unwrap();
    let text = "http://a.com/1\nhttp://a.com/22\nhttp://a.com/3\n";
    let one = grown(&fs, &lake, "l.txt", text).unwrap();
    let two = grown(&fs, &lake, "l.txt", format!("{text}http://a.com/4\n")).unwrap();
    take(&lake, vec![one], &settings(&fs, "w2")).unwrap();
    let error = take(&lake, vec![two], &settings(&fs, "w3")).unwrap_err();
    assert!(error.to_string().contains("run again"), "{error}");
    take(&lake, vec![grown(&fs, &lake, "l.txt", format!("{text}http://a.com/4\n")).unwrap()], &settings(&fs, "w4"))
        .unwrap();
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/22", "http://a.com/3", "http://a.com/4"]);
}

/// Two writers open a file at two lengths; whichever comes first, the other begins again.
#[test]
fn a_file_that_grows_between_two_writers_comes_once() {
    let short = "http://a.com/1\nhttp://a.com/2\n";
    let long = format!("{short}http://a.com/3\n");
    for known in [false, true] {
        for long_first in [false, true] {
            let (fs, lake) = new_lake();
            if known {
                take(&lake, vec![grown(&fs, &lake, "l.txt", &short[..15]).unwrap()], &settings(&fs, "w0")).unwrap();
            }
            let mut opened = [short, &long].map(|text| grown(&fs, &lake, "l.txt", text).unwrap());
            if long_first {
                opened.reverse();
            }
            let [first, second] = opened;
            take(&lake, vec![first], &settings(&fs, "w1")).unwrap();
            let error = take(&lake, vec![second], &settings(&fs, "w2")).unwrap_err();
            assert!(error.to_string().contains("run again"), "{error}");
            take(&lake, vec![grown(&fs, &lake, "l.txt", &long).unwrap()], &settings(&fs, "w3")).unwrap();
            assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2", "http://a.com/3"], "{known} {long_first}");
        }
    }
}

/// The other one comes while the first has read everything, and is about to commit.
#[test]
fn a_file_that_grows_while_it_is_taken_comes_once() {
    let (fs, lake) = new_lake();
    let short = grown(&fs, &lake, "l.txt", "http://a.com/1\n").unwrap();
    let done = ingest(&lake, 1, &[short], &settings(&fs, "w1"), &|| NOW, &|progress| {
        if progress.stage == trawl_ingest::Stage::Committing {
            let long = grown(&fs, &lake, "l.txt", "http://a.com/1\nhttp://a.com/2\n").unwrap();
            take(&lake, vec![long], &settings(&fs, "w2")).unwrap();
        }
    });
    assert!(done.unwrap_err().to_string().contains("run again"));
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2"]);
}

/// It was known when it was opened, and is known at another length when it is to be skipped.
#[test]
fn a_known_file_that_grew_meanwhile_is_not_taken_for_a_new_one() {
    let (fs, lake) = new_lake();
    take(&lake, vec![grown(&fs, &lake, "l.txt", "http://a.com/1\n").unwrap()], &settings(&fs, "w1")).unwrap();
    let known = grown(&fs, &lake, "l.txt", "http://a.com/1\n").unwrap();
    let long = grown(&fs, &lake, "l.txt", "http://a.com/1\nhttp://a.com/2\n").unwrap();
    take(&lake, vec![long], &settings(&fs, "w2")).unwrap();
    assert!(take(&lake, vec![known], &settings(&fs, "w3")).unwrap_err().to_string().contains("run again"));
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2"]);
}

#[test]
fn a_file_that_is_named_twice_and_grows_in_between_comes_once() {
    let (fs, lake) = new_lake();
    let sources =
        ["http://a.com/1\n", "http://a.com/1\nhttp://a.com/2\n"].map(|text| grown(&fs, &lake, "l.txt", text).unwrap());
    assert_eq!(take(&lake, sources.into(), &settings(&fs, "w1")).unwrap().skipped.len(), 1);
    take(&lake, vec![grown(&fs, &lake, "l.txt", "http://a.com/1\nhttp://a.com/2\n").unwrap()], &settings(&fs, "w2"))
        .unwrap();
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2"]);
}

/// Members that are stored and not compressed show their records, which are none of the file by themselves.
#[test]
fn records_inside_a_stored_member_are_not_taken_for_plain_ones() {
    let mut stored = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    stored.write_all(archive().concat().as_bytes()).unwrap();
    let stored = stored.finish().unwrap();
    let expected = whole("x.warc.gz", &stored);
    for cuts in [[60, 3, 0], [8, 7, 0], [9, 1, 0], [400, 5, 0]] {
        let (fs, lake) = new_lake();
        grow(&fs, &lake, "x.warc.gz", &stored, &cuts.map(|cut| stored.len() - cut));
        assert_eq!(rows(&lake), expected, "{cuts:?}");
    }
}

/// Records of an archive that are none are told once, however often it grows.
#[test]
fn damaged_records_of_an_archive_are_rejected_once() {
    let response = |n: u32| {
        let fields =
            format!("WARC-Target-URI: http://a.com/{n}\r\nContent-Type: application/http;msgtype=response\r\n");
        record(n, "response", &fields, "HTTP/1.1 200 OK\r\n\r\nhello")
    };
    let bad = "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: x\r\n\r\n\r\n\r\n".to_owned();
    let info = record(99, "warcinfo", "", "software: x\r\n");
    let parts = [bad.clone(), response(10), bad.clone(), bad.clone(), info, response(20), bad, response(30)];
    let all = parts.concat();
    let alone = |bytes: &str| {
        let (fs, lake) = new_lake();
        take(&lake, vec![file(&fs, "x.warc", bytes)], &settings(&fs, "w")).unwrap().rejected
    };
    let (fs, lake) = new_lake();
    let (mut end, mut rejected) = (0, 0);
    for (n, part) in parts.iter().enumerate() {
        end += part.len();
        let source = grown(&fs, &lake, "x.warc", &all[..end]).unwrap();
        rejected += take(&lake, vec![source], &settings(&fs, &format!("w{n}"))).unwrap().rejected;
        assert_eq!(rejected, alone(&all[..end]), "after {} parts", n + 1);
    }
    assert!(rejected > 1);
    assert_eq!(rows(&lake), whole("x.warc", all.as_bytes()));
}

/// Facts that were a capture by themselves, until its response came.
#[test]
fn a_capture_that_moves_comes_once() {
    let (target, of) = (
        "WARC-Target-URI: http://a.com/10\r\n",
        "WARC-Concurrent-To: <urn:uuid:00000000-0000-4000-8000-000000000010>\r\n",
    );
    let facts = "trawlCapture: 1\r\nfetchedAt: 2026-06-24T01:02:04Z\r\nerrorClass: body_timeout\r\nerror: x\r\n";
    let facts = record(12, "metadata", &format!("{target}{of}Content-Type: application/warc-fields\r\n"), facts);
    let response = format!("{target}Content-Type: application/http;msgtype=response\r\n");
    let both = format!("{facts}{}", record(10, "response", &response, "HTTP/1.1 200 OK\r\n\r\nhello"));
    let response = &both[facts.len()..];
    let packed = [gz(facts.as_bytes()), [gz(facts.as_bytes()), gz(response.as_bytes())].concat()];
    let plain = [facts.into_bytes(), both.into_bytes()];
    for (name, texts) in [("x.warc", plain), ("x.warc.gz", packed)] {
        let (fs, lake) = new_lake();
        for (n, text) in texts.iter().enumerate() {
            let source = grown(&fs, &lake, name, text).unwrap();
            take(&lake, vec![source], &settings(&fs, &format!("w{n}"))).unwrap();
            assert_eq!(urls(&lake), ["http://a.com/10"], "{name}");
        }
        assert_eq!(rows(&lake), whole(name, &texts[1]));
    }
}

#[test]
fn a_grown_source_does_not_replace() {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, "l.txt", "http://a.com/1\n")], &settings(&fs, "w1")).unwrap();
    let source = grown(&fs, &lake, "l.txt", "http://a.com/1\nhttp://a.com/2\n").unwrap();
    let replace = trawl_ingest::IngestSettings { mode: Mode::Replace, ..settings(&fs, "w2") };
    assert!(take(&lake, vec![source], &replace).unwrap_err().to_string().starts_with("replace: expected"));
    assert_eq!(urls(&lake), ["http://a.com/1"]);
}

#[test]
fn a_power_cut_at_any_step_leaves_the_cut_source_or_the_whole_one() {
    let cut = "http://a.com/1\nhttp://b.com/1\nhttp://c.com/lo";
    let text = "http://a.com/1\nhttp://b.com/1\nhttp://c.com/long\nhttp://a.com/2\n";
    let before = ["http://a.com/1", "http://b.com/1", "http://c.com/lo"];
    let after = ["http://a.com/1", "http://a.com/2", "http://b.com/1", "http://c.com/long"];
    let base = FaultFs::new();
    let other = FaultFs::new().shared();
    take(&lake_on(&base.shared()), vec![file(&other, "l.txt", cut)], &settings(&other, "w1")).unwrap();
    let base = base.reboot(Loss::None);
    let open = |fs: &FaultFs| Lake::open(Arc::new(DirStore::with_fs(fs.shared(), "lake")));
    let again = |fs: &FaultFs, writer: &str| -> trawl_ingest::Result<()> {
        let lake = open(fs)?;
        write(&other, "l.txt", text.as_bytes());
        let known = lake.dataset_newest(1)?.unwrap().sources;
        let source =
            source::open_as(&other, Path::new("l.txt"), &Opening { known: Some(&known), ..Opening::default() })?;
        ingest(&lake, 1, &[source], &settings(&other, writer), &|| NOW, &common::quiet).map(drop)
    };
    let mut ends = [0; 2];
    for step in 0.. {
        let disk = base.reboot(Loss::None);
        disk.cut_after(step);
        let done = again(&disk, "w2");
        let finished = !disk.is_cut();
        for loss in [Loss::All, Loss::None, Loss::Torn { seed: step, unit: 512 }] {
            let restarted = disk.reboot(loss);
            let found = urls(&open(&restarted).unwrap());
            let new = found == after;
            assert!(new || found == before, "step {step}, {loss:?}: {found:?}");
            assert!(new || done.is_err(), "step {step}, {loss:?}: reported as done and lost");
            ends[usize::from(new)] += 1;
            again(&restarted, "w3").unwrap();
            assert_eq!(urls(&open(&restarted).unwrap()), after, "step {step}, {loss:?}: again");
        }
        if finished {
            break;
        }
    }
    assert!(ends[0] > 20 && ends[1] > 3, "both states were seen: {ends:?}");
}
