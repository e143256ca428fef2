//! Directories of archives with their index: every capture is taken once, whatever it is and wherever it lies, and what is not
//! taken is named.

mod common;

use common::lakes::{ask, ingest, refuse, write};
use common::warcs::{page, record};
use serde_json::{Value, json};
use std::path::Path;

/// Everything that an ingest makes a row of, and some records it does not: 6 rows of 9 records.
fn every_kind() -> String {
    let wat = r#"{"Envelope":{"WARC-Header-Metadata":{"WARC-Type":"response","WARC-Date":"2026-06-24T01:02:03Z"},"Payload-Metadata":{"HTTP-Response-Metadata":{"Headers":{"Content-Type":"text/html"},"Response-Message":{"Status":"404"}}}}}"#;
    [
        record("warcinfo", "", 1, "Content-Type: application/warc-fields\r\n", "software: x\r\n"),
        page("http://a.example/page", 2),
        record("response", "http://a.example/bare", 3, "Content-Type: application/http\r\n", "this is not HTTP"),
        record("response", "ftp://a.example/file", 4, "Content-Type: text/plain\r\n", "a file"),
        record("resource", "http://a.example/thing", 5, "Content-Type: image/png\r\n", "thing"),
        record("conversion", "http://a.example/text", 6, "Content-Type: text/plain\r\n", "text"),
        record("metadata", "http://a.example/wat", 7, "Content-Type: application/json\r\n", wat),
        record("resource", "dns:a.example", 8, "Content-Type: text/dns\r\n", "20260624010203"),
        record("request", "http://a.example/other", 9, "Content-Type: application/http\r\n", "GET / HTTP/1.0\r\n\r\n"),
    ]
    .concat()
}

/// An ARC file with two captures, one of them of nothing.
fn arc() -> String {
    let block = "1 0 Trawl\nURL IP-address Archive-date Content-type Archive-length\n";
    let page = "HTTP/1.1 200 OK\r\n\r\nx";
    format!(
        "filedesc://a.arc 0.0.0.0 20260624010203 text/plain {}\n{block}\nhttp://b.example/ 1.2.3.4 20260624010203 text/html {}\n\
         {page}\nhttp://b.example/empty 1.2.3.4 20260624010203 text/html 0\n\n",
        block.len(),
        page.len()
    )
}

/// The rows of a dataset, without the numbers and names that differ from one to the next.
fn rows_of(dir: &Path, dataset: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    for domain in ["a.example", "b.example", "c.example"] {
        let found = common::trawl(dir).args(["--json", "-q", "query", "urls", domain, dataset]).output().unwrap();
        for line in common::stdout(&found).lines() {
            let mut answer: Value = serde_json::from_str(line).unwrap();
            let Some(items) = answer.get_mut("items").or(None).map(Value::take) else { continue };
            for mut item in items.as_array().unwrap().clone() {
                let item = item.as_object_mut().unwrap();
                item.retain(|name, _| !matches!(name.as_str(), "locator" | "dataset_id"));
                rows.push(Value::Object(item.clone()));
            }
        }
    }
    rows
}

fn total(report: &Value) -> u64 {
    report["rows"].as_u64().unwrap()
}

#[test]
fn an_index_has_a_row_for_everything_that_an_ingest_takes() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/a.warc", every_kind());
    write(dir, "d/b.arc", arc());
    write(dir, "c.warc", page("http://c.example/", 20));
    ask(dir, &["convert", "c.warc", "d/c.wacz"], 0);
    let before = ingest(dir, "archives", &["d"], &[], 0);
    assert_eq!(total(&before), 9, "{before}");
    let rebuilt = ask(dir, &["captures", "rebuild", "d"], 0).remove(0);
    let not_captures = json!({"warcinfo": 2, "resource": 1, "request": 1});
    assert_eq!((&rebuilt["rows"], &rebuilt["not_captures"]), (&json!(9), &not_captures), "{rebuilt}");
    assert_eq!(ask(dir, &["verify", "d"], 0).last().unwrap()["checked"]["index"]["rows"], 9);
    let after = ingest(dir, "index", &["d"], &[], 0);
    assert_eq!((total(&after), after["indexed"].as_array().unwrap().len()), (9, 3), "{after}");
    let rows = rows_of(dir, "archives");
    assert_eq!(rows.len(), 9);
    assert_eq!(rows, rows_of(dir, "index"), "the index says what the archives say");
}

/// As Browsertrix leaves them: every row was there twice.
#[test]
fn a_package_beside_the_directory_of_its_archives_is_a_copy_of_them() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/archive/a.warc", every_kind());
    ask(dir, &["convert", "d/archive/a.warc", "d/d.wacz"], 0);
    let taken = ingest(dir, "one", &["d"], &[], 0);
    assert_eq!((total(&taken), taken["not_files"].as_array().unwrap().len()), (6, 1), "{taken}");
    assert_eq!(ask(dir, &["convert", "d", "all.warc"], 0).remove(0)["records"], json!(9));
    let alone = ingest(dir, "alone", &["d/d.wacz"], &[], 0);
    assert_eq!(total(&alone), 6, "{alone}");
    // The index of the package says what it holds, and so what its archives hold.
    ask(dir, &["captures", "rebuild", "d"], 0);
    assert_eq!(total(&ingest(dir, "indexed", &["d"], &[], 0)), 6);
    std::fs::remove_file(dir.join("d/captures.parquet")).unwrap();
    // One that has grown since has all captures of the package.
    write(dir, "d/archive/a.warc", every_kind() + &page("http://c.example/", 40));
    let grown = ingest(dir, "grown", &["d"], &[], 0);
    assert_eq!((total(&grown), grown["not_files"].as_array().unwrap().len()), (7, 1), "{grown}");
    assert_eq!(ask(dir, &["convert", "d", "grown.warc"], 0).remove(0)["records"], json!(10));
    let lines = |code| {
        let index = common::trawl(dir).args(["-q", "cdxj", "index", "d"]).output().unwrap();
        assert_eq!(index.status.code(), Some(code), "{}", common::stderr(&index));
        common::stdout(&index).lines().count()
    };
    let of_archive = lines(0);
    // Another one of its name may have some of them.
    write(dir, "d/archive/a.warc", page("http://c.example/", 40) + &every_kind());
    let both = ingest(dir, "both", &["d"], &[], 1);
    assert_eq!(total(&both), 7 + 6, "{both}");
    assert!(both["incomplete"][0]["path"].as_str().unwrap().ends_with("d.wacz"), "{both}");
    assert_eq!(ask(dir, &["convert", "d", "both.warc"], 1).remove(0)["records"], json!(10 + 9));
    assert_eq!(lines(1), of_archive + of_archive - 1);
}

/// Further names of an archive, also where an index lists it under another one.
#[test]
fn hard_links_are_one_archive() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/b.warc", every_kind());
    std::fs::create_dir(dir.join("e")).unwrap();
    for name in ["d/a.warc", "e/c.warc"] {
        std::fs::hard_link(dir.join("d/b.warc"), dir.join(name)).unwrap();
    }
    assert_eq!(total(&ingest(dir, "one", &["d", "e"], &[], 0)), 6);
    assert_eq!(ask(dir, &["convert", "d", "e", "all.warc"], 0).remove(0)["records"], json!(9));
    assert_eq!(ask(dir, &["captures", "rebuild", "d"], 0).remove(0)["rows"], json!(6));
    for sources in [["d", "e"], ["e", "d"]] {
        let name = sources.concat();
        let taken = ingest(dir, &name, &sources, &[], 0);
        assert_eq!((total(&taken), taken["indexed"].as_array().unwrap().len()), (6, 3), "{taken}");
    }
}

/// As `gzip -k` leaves them: every row was there twice, with exit code 0.
#[test]
fn an_archive_and_its_compressed_copy_are_named() {
    use std::io::Write as _;
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(every_kind().as_bytes()).unwrap();
    write(dir, "d/a.warc", every_kind());
    let before = ingest(dir, "later", &["d"], &[], 0);
    assert_eq!(total(&before), 6);
    write(dir, "d/a.warc.gz", gzip.finish().unwrap());
    let both = ingest(dir, "both", &["d"], &[], 1);
    assert_eq!(total(&both), 12, "{both}");
    assert!(both["incomplete"][0]["path"].as_str().unwrap().ends_with("a.warc.gz"), "{both}");
    ask(dir, &["convert", "d", "both.warc"], 1);
    let later = common::trawl(dir).args(["lake", "ingest", "--dataset", "later", "d/a.warc.gz"]).output().unwrap();
    assert!(common::stderr(&later).contains("but for how it is packed"), "{}", common::stderr(&later));
}

#[test]
fn an_archive_without_a_byte_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/x.warc.gz", "");
    write(dir, "d/u.txt", "");
    let taken = ingest(dir, "one", &["d"], &[], 1);
    let named = taken["unreadable"].as_array().unwrap();
    assert!(named.len() == 1 && named[0].as_str().unwrap().ends_with("x.warc.gz"), "{taken}");
}

#[test]
fn what_lies_beside_an_index_is_taken_or_named() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/a.warc", every_kind());
    ask(dir, &["captures", "rebuild", "d"], 0);
    // Came later: an archive, a list, one further down, and a package of an archive that is there.
    write(dir, "d/later.warc", page("http://c.example/later", 30));
    write(dir, "d/urls.txt", "http://c.example/1\nhttp://c.example/2\n");
    write(dir, "d/deep/deeper.warc", page("http://c.example/deep", 31));
    write(dir, "d/run.json", "{}");
    ask(dir, &["convert", "d/a.warc", "d/copy.wacz"], 0);
    let taken = ingest(dir, "one", &["d"], &[], 0);
    assert_eq!(total(&taken), 6 + 1 + 2 + 1, "{taken}");
    let named: Vec<&str> = taken["not_files"].as_array().unwrap().iter().map(|n| n["path"].as_str().unwrap()).collect();
    assert!(
        named.iter().any(|n| n.ends_with("copy.wacz")) && named.iter().any(|n| n.ends_with("run.json")),
        "{named:?}"
    );
    assert_eq!(taken["indexed"].as_array().unwrap().len(), 1, "{taken}");
    // The same by names, as a shell makes them of d/*.
    let named = ingest(dir, "two", &["d/a.warc", "d/captures.parquet", "d/later.warc", "d/urls.txt"], &[], 0);
    assert_eq!(total(&named), 6 + 1 + 2, "{named}");
    // Again, nothing comes twice.
    assert_eq!(total(&ingest(dir, "one", &["d"], &[], 0)), 0);
    // An archive that has other bytes than the index knows is not passed over in silence.
    let grown = format!("{}{}", every_kind(), page("http://c.example/more", 40));
    write(dir, "d/a.warc", grown);
    // It is not a copy any more.
    std::fs::remove_file(dir.join("d/copy.wacz")).unwrap();
    let stale = ingest(dir, "three", &["d"], &[], 1);
    assert!(stale["incomplete"][0]["path"].as_str().unwrap().ends_with("a.warc"), "{stale}");
    ask(dir, &["captures", "rebuild", "d"], 0);
    assert_eq!(total(&ingest(dir, "four", &["d"], &[], 0)), 7 + 2 + 1 + 1);
    // To the first dataset the new index would bring everything again.
    assert!(refuse(dir, &["lake", "ingest", "--dataset", "one", "d"]).contains("they would be added twice"));
    assert_eq!(total(&ingest(dir, "one", &["d"], &["--replace"], 0)), 7 + 2 + 1 + 1);
}

/// What comes later is compared with what the dataset has, also where it replaces changed sources: the captures of an archive came again
/// from its new index, and those of an index from its archive.
#[test]
fn an_index_and_its_archives_do_not_come_one_after_another() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/a.warc", every_kind());
    assert_eq!(total(&ingest(dir, "one", &["d"], &[], 0)), 6);
    ask(dir, &["captures", "rebuild", "d"], 0);
    let again = refuse(dir, &["lake", "ingest", "--dataset", "one", "--replace-sources", "d"]);
    assert!(again.contains("they would be added twice"), "{again}");
    // The other way round, too, as a pattern names archives without their index.
    assert_eq!(total(&ingest(dir, "two", &["d"], &[], 0)), 6);
    let named = refuse(dir, &["lake", "ingest", "--dataset", "two", "d/a.warc"]);
    assert!(named.contains("captures.parquet: they would be added twice"), "{named}");
    // An index takes the place of what it was.
    write(dir, "d/a.warc", format!("{}{}", every_kind(), page("http://c.example/more", 40)));
    ask(dir, &["captures", "rebuild", "d"], 0);
    assert_eq!(total(&ingest(dir, "two", &["d"], &["--replace-sources"], 0)), 7);
    assert_eq!(rows_of(dir, "two").len(), 7);
}

/// `latest.warc` is the archive that it leads to: its captures came twice into the index, and so into the lake.
#[test]
fn a_link_to_an_archive_is_no_further_archive() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/a.warc", every_kind());
    std::fs::create_dir(dir.join("e")).unwrap();
    for link in ["d/0.warc", "d/latest.warc", "e/one.warc", "e/two.warc"] {
        std::os::unix::fs::symlink("../d/a.warc", dir.join(link)).unwrap();
    }
    assert_eq!(ask(dir, &["cat", "d"], 0).len(), 9);
    for (n, sources) in [&["d"][..], &["d/a.warc", "d/latest.warc"], &["d", "d/0.warc"]].into_iter().enumerate() {
        let target = format!("{n}.warc");
        let made = ask(dir, &[&["convert"][..], sources, &[&*target]].concat(), 0).remove(0);
        assert_eq!(made["records"], json!(9), "{sources:?}: {made}");
    }
    for name in ["d", "e"] {
        let rebuilt = ask(dir, &["captures", "rebuild", name], 0).remove(0);
        assert_eq!(rebuilt["rows"], json!(6), "{rebuilt}");
        assert_eq!(ask(dir, &["verify", name], 0).last().unwrap()["checked"]["index"]["rows"], 6);
        assert_eq!(total(&ingest(dir, name, &[name], &[], 0)), 6);
    }
}

/// `gzip` and `mv` are no reason to take captures twice: the index has them under the name that the archive had.
#[test]
fn an_archive_that_was_renamed_since_its_index_was_made_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/a.warc", every_kind());
    ask(dir, &["captures", "rebuild", "d"], 0);
    write(dir, "d/later.warc", page("http://c.example/later", 30));
    for (n, name) in ["b.warc", "archive/a.warc"].into_iter().enumerate() {
        std::fs::create_dir_all(dir.join("d/archive")).unwrap();
        std::fs::rename(dir.join("d/a.warc"), dir.join("d").join(name)).unwrap();
        let taken = ingest(dir, &format!("renamed{n}"), &["d"], &[], 1);
        assert_eq!(total(&taken), 6 + 1, "{taken}");
        assert!(taken["incomplete"][0]["path"].as_str().unwrap().ends_with(name), "{taken}");
        std::fs::rename(dir.join("d").join(name), dir.join("d/a.warc")).unwrap();
    }
    ask(dir, &["convert", "d/a.warc", "d/a.warc.gz"], 0);
    std::fs::remove_file(dir.join("d/a.warc")).unwrap();
    let taken = ingest(dir, "packed", &["d"], &[], 1);
    assert_eq!(total(&taken), 6 + 1, "{taken}");
    ask(dir, &["captures", "rebuild", "d"], 0);
    assert_eq!(total(&ingest(dir, "rebuilt", &["d"], &[], 0)), 6 + 1);
}

/// A CDX index of archives that are read adds nothing to them; of others it does.
#[test]
fn a_cdx_index_among_its_archives() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/a.warc", every_kind());
    ask(dir, &["cdxj", "index", "d", "--out", "d/a.cdxj"], 0);
    let taken = ingest(dir, "one", &["d"], &[], 0);
    assert_eq!((total(&taken), taken["not_files"].as_array().unwrap().len()), (6, 1), "{taken}");
    std::fs::rename(dir.join("d/a.warc"), dir.join("d/b.warc")).unwrap();
    assert!(total(&ingest(dir, "two", &["d"], &[], 1)) > 6, "an index of others is taken, and its dns: line rejected");
}

/// Its name ends in `.open` until then. Its index was taken beside it, also after its end, with exit code 0.
#[test]
fn a_cdx_index_of_an_archive_that_is_still_written() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "d/a.warc.open", every_kind());
    ask(dir, &["cdxj", "index", "d", "--out", "d/a.cdxj"], 0);
    let written = ingest(dir, "written", &["d"], &[], 0);
    assert_eq!((total(&written), written["not_files"].as_array().unwrap().len()), (6, 1), "{written}");
    ask(dir, &["captures", "rebuild", "d"], 0);
    std::fs::rename(dir.join("d/a.warc.open"), dir.join("d/a.warc")).unwrap();
    // It has grown, too, so its index of captures does not say all.
    write(dir, "d/a.warc", every_kind() + &page("http://c.example/", 40));
    let ended = ingest(dir, "ended", &["d"], &[], 1);
    assert_eq!(total(&ended), 6, "{ended}");
    assert!(ended["incomplete"][0]["path"].as_str().unwrap().ends_with("a.warc"), "{ended}");
    std::fs::remove_file(dir.join("d/captures.parquet")).unwrap();
    let ended = ingest(dir, "whole", &["d"], &[], 0);
    assert_eq!((total(&ended), ended["not_files"].as_array().unwrap().len()), (7, 1), "{ended}");
}

#[test]
fn a_package_with_an_archive_that_nothing_else_has_is_compared_with_its_index() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "c.warc", [page("http://c.example/", 20), page("http://c.example/2", 21)].concat());
    std::fs::create_dir(dir.join("d")).unwrap();
    ask(dir, &["convert", "c.warc", "d/c.wacz"], 0);
    ask(dir, &["captures", "rebuild", "d"], 0);
    assert_eq!(ask(dir, &["verify", "d"], 0).last().unwrap()["checked"]["index"]["captures"], 2);
    // One row less.
    write(dir, "e/c.warc", page("http://c.example/", 20));
    ask(dir, &["captures", "rebuild", "e", "--out", "e/captures.parquet"], 0);
    write(dir, "e/later.warc", page("http://c.example/2", 21));
    let found = ask(dir, &["verify", "e"], 1);
    assert!(found.iter().any(|line| line["kind"] == "row-missing"), "{found:?}");
}

#[test]
fn a_cluster_that_is_not_as_its_index_says() {
    use std::io::Write as _;
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let block = |n: usize| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writeln!(gzip, "com,a)/{n} 20260624010203 {{\"url\":\"http://a.example/{n}\",\"status\":\"200\"}}").unwrap();
        gzip.finish().unwrap()
    };
    let (one, two) = (block(1), block(2));
    let (a, b) = (one.len(), two.len());
    let index = format!("com,a)/1 2026\tcdx-00000.gz\t0\t{a}\t1\ncom,a)/2 2026\tcdx-00000.gz\t{a}\t{b}\t2\n");
    write(dir, "z/cluster.idx", &index);
    write(dir, "z/cdx-00000.gz", [one.clone(), two].concat());
    // Not named by the index.
    write(dir, "z/cdx-00001.gz", block(3));
    write(dir, "z/more.txt", "http://a.example/4\n");
    assert_eq!(total(&ingest(dir, "whole", &["z"], &[], 0)), 4);
    // Cut where a member ends, it is still a sound gzip file.
    write(dir, "z/cdx-00000.gz", &one);
    for sources in [&["z"][..], &["z/cluster.idx"]] {
        let cut = ingest(dir, sources[0].split('/').next_back().unwrap(), sources, &[], 1);
        assert!(cut["incomplete"][0]["path"].as_str().unwrap().ends_with("cdx-00000.gz"), "{cut}");
    }
}
