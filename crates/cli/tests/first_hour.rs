//! What people meet in their first hour: names without a scheme, things of every kind, spellings, and what is refused.

mod common;

use common::warcs::page;
use common::{Web, feed, stderr, stdout, trawl};
use std::path::Path;
use std::process::Output;

fn run(dir: &Path, args: &[&str], code: i32) -> Output {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}\n{}{}", stdout(&output), stderr(&output));
    output
}

fn refused(dir: &Path, args: &[&str], why: &str) {
    let output = run(dir, args, 2);
    assert!(stderr(&output).contains(why), "{args:?}: {}", stderr(&output));
}

#[test]
fn a_host_is_crawled_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, web) = (dir.path(), Web::start(dir.path()));
    let seeds = std::fs::read_to_string(dir.join("seeds.txt")).unwrap();
    let host = seeds.lines().next().unwrap().trim_start_matches("http://").trim_end_matches('/');
    // The synthetic web speaks no TLS here: https is tried, then http.
    let there = ["--tls-timeout", "500ms", "--delay", "0s", "--connect-to", &web.connect_to];
    run(dir, &[&["-q", "crawl", host, "--out", "crawl"], &there[..]].concat(), 0);
    let report = std::fs::read_to_string(dir.join("crawl/run.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["seeds"][0]["name"], &report["urls"]["fetched"]),
        (&format!("http://{host}").into(), &1.into())
    );
    // A limit that was reached is told.
    let limit = ["-q", "crawl", host, "--out", "limit", "--max-pages", "1", "--depth", "1"];
    let told = run(dir, &[&limit[..], &there].concat(), 0);
    assert!(stdout(&told).contains("a limit was reached"), "{}", stdout(&told));
    // What the run began with cannot change, and is said in words of the flags.
    refused(
        dir,
        &["-q", "crawl", "--resume", "--out", "limit", "--depth", "0", "--change"],
        "depth: expected 1 or more, as when",
    );
    refused(
        dir,
        &["-q", "crawl", "http://a.example/", "--out", "crawl"],
        "continue it with --resume, replace it with --overwrite",
    );
}

#[test]
fn wrong_seeds_and_places_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("empty.txt"), "# nothing\n\n").unwrap();
    std::fs::create_dir(dir.join("full")).unwrap();
    std::fs::write(dir.join("full/thesis.doc"), "x").unwrap();
    refused(
        dir,
        &["crawl", "ftp://u:pw@a.example/", "--out", "o"],
        "ftp://a.example/: only http and https URLs can be crawled",
    );
    refused(dir, &["crawl", "http://", "--out", "o"], "http:// is not a URL");
    refused(dir, &["crawl", "sedes.txt", "--out", "o"], "cannot open sedes.txt: No such file");
    // No name server answers there.
    let nobody = ["--resolver", "127.0.0.1:9", "--dns-timeout", "1s", "--dns-attempts", "1"];
    refused(
        dir,
        &[&["crawl", "nosuch.example.com", "--out", "o"], &nobody[..]].concat(),
        "there is no file nosuch.example.com, and no host",
    );
    refused(dir, &["crawl", "empty.txt", "--out", "o"], "empty.txt holds no URLs");
    // What is there and is not a list: the corrected call must find no half of a run in its way.
    std::fs::write(dir.join("table.csv"), "site,page\n1,http://127.0.0.1:9/\n").unwrap();
    std::fs::write(dir.join("bad.json"), "[{\"url\": broken").unwrap();
    std::fs::write(dir.join("cut.gz"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    std::fs::write(dir.join("list.txt"), "http://127.0.0.1:9/\n").unwrap();
    refused(dir, &["crawl", "table.csv", "--out", "o"], "seeds table.csv@0: expected a header line");
    refused(dir, &["crawl", "list.txt", "full", "--out", "o"], "found a directory: name the files in it ('full/*')");
    refused(dir, &["crawl", "bad.json", "--out", "o"], "bad.json");
    refused(dir, &["crawl", "cut.gz", "--out", "o"], "cut.gz");
    refused(dir, &["crawl", "--retry-from", "list.txt", "--out", "o"], "seeds list.txt: expected a Parquet file");
    refused(dir, &["crawl", "--retry-from", "full", "--out", "o"], "captures.parquet of a crawl, found a directory");
    refused(dir, &["crawl", "--resume", "--out", "o"], "no crawl was begun in o");
    assert!(!dir.join("o").exists());
    run(dir, &["-q", "crawl", "table.csv", "--url-column", "page", "--out", "corrected"], 1);
    // The crawl that is to be replaced stays if the new one cannot begin.
    let wrong = ["crawl", "list.txt", "--out", "corrected", "--overwrite", "--digests", "nosuch/bodies"];
    refused(dir, &wrong, "nosuch");
    assert!(dir.join("corrected/run.json").exists());
    refused(
        dir,
        &["crawl", "http://a.example/", "--out", "full"],
        "full is not empty and holds no crawl (it holds thesis.doc)",
    );
    assert_eq!(std::fs::read_dir(dir.join("full")).unwrap().count(), 1);
    // Archives that no crawl made here are not removed, and no error recommends that.
    std::fs::create_dir(dir.join("mine")).unwrap();
    std::fs::write(dir.join("mine/collection.warc"), page("http://www.b.example/a", 1)).unwrap();
    for more in [&[][..], &["--overwrite"]] {
        let args = [&["crawl", "http://a.example/", "--out", "mine"][..], more].concat();
        refused(dir, &args, "mine is not empty and holds no crawl (it holds collection.warc)");
    }
    assert!(dir.join("mine/collection.warc").exists());
    let mut piped = trawl(dir);
    piped.args(["-q", "crawl", "-", "--out", "piped"]);
    let piped = feed(piped, b"");
    assert_eq!(piped.status.code(), Some(2), "{}", stderr(&piped));
    assert!(stderr(&piped).contains("the seeds hold no URLs"), "{}", stderr(&piped));
}

#[test]
fn everything_trawl_knows_can_be_inspected_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let put = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    put("a.warc", &page("http://www.b.example/a", 1));
    put("list.txt", "http://bücher.example/ä\nhttp://www.b.example/old\nnot a url\n");
    put("rows.jsonl", "{\"url\":\"http://c.example/\",\"status\":404}\n");
    run(dir, &["-q", "cdxj", "index", "a.warc", "--out", "a.cdxj"], 0);
    run(dir, &["-q", "lake", "ingest", "--dataset", "one", "list.txt"], 1);
    for (path, said) in [
        ("list.txt", "list of URLs (lines), "),
        ("rows.jsonl", "statuses: 404 1"),
        ("a.cdxj", "list of URLs (cdxj), "),
        ("lake", "datasets  1"),
    ] {
        let seen = run(dir, &["-q", "inspect", path], 0);
        assert!(stdout(&seen).contains(said), "{path}: {}", stdout(&seen));
    }
    let parquet = glob(&dir.join("lake/urls/dataset_id=1/domain_prefix=all"));
    let seen = run(dir, &["-q", "inspect", &parquet], 0);
    assert!(stdout(&seen).contains("Parquet of a lake") && stdout(&seen).contains("2 rows"), "{}", stdout(&seen));
    // Its hosts are not its URLs.
    let taken = run(dir, &["-q", "lake", "ingest", "--dataset", "two", &parquet], 2);
    assert!(stderr(&taken).contains("as in a file of a lake"), "{}", stderr(&taken));
    for (path, code) in [("list.txt", 1), ("rows.jsonl", 0), ("a.cdxj", 0), ("lake", 0), (&parquet, 0)] {
        run(dir, &["-q", "verify", path], code);
    }
    let bad = run(dir, &["verify", "list.txt"], 1);
    assert!(stdout(&bad).contains("fault: list.txt@"), "{}", stdout(&bad));
    // The index of many archives, as a directory or by its name, and a table whose column has another name.
    run(dir, &["-q", "cdxj", "index", "a.warc", "--zipnum", "zipnum"], 0);
    for path in ["zipnum", "zipnum/cluster.idx"] {
        assert!(stdout(&run(dir, &["-q", "inspect", path], 0)).contains("list of URLs (cdxj), "), "{path}");
        assert!(stdout(&run(dir, &["-q", "verify", path], 0)).contains("1 items: sound"), "{path}");
    }
    put("table.csv", "site,page\n1,http://c.example/\n");
    refused(dir, &["inspect", "table.csv"], "name the column with --url-column");
    for verb in ["inspect", "verify"] {
        assert!(stdout(&run(dir, &["-q", verb, "table.csv", "--url-column", "page"], 0)).contains("1 items"), "{verb}");
    }
    // One bad path does not stop the rest.
    let rest = run(dir, &["-q", "inspect", "nosuch", "rows.jsonl"], 2);
    assert!(stdout(&rest).contains("statuses: 404 1"), "{}", stdout(&rest));
    // Lines in the wrong order cannot be searched.
    let line = std::fs::read_to_string(dir.join("a.cdxj")).unwrap();
    put("wrong.cdxj", &format!("{line}{}", line.replace("example,b", "example,a")));
    assert!(stdout(&run(dir, &["verify", "wrong.cdxj"], 1)).contains(": order: "));
    for (input, said) in [(page("http://www.b.example/a", 1), "warc"), ("http://a.example/\n".to_owned(), "1 items")] {
        for verb in ["inspect", "verify"] {
            let mut command = trawl(dir);
            command.args(["-q", verb, "-"]);
            let output = feed(command, input.as_bytes());
            assert_eq!(output.status.code(), Some(0), "{verb}: {}", stderr(&output));
            let text = stdout(&output);
            assert!(text.starts_with("-: ") && (verb == "verify" || text.contains(said)), "{verb}: {text}");
        }
    }
    // A pipe with a name is read like standard input.
    for verb in ["inspect", "verify"] {
        let piped = format!("'{}' -q {verb} <(cat a.warc)", env!("CARGO_BIN_EXE_trawl"));
        let output = std::process::Command::new("bash").args(["-c", &piped]).current_dir(dir).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{verb}: {}", stderr(&output));
        assert!(stdout(&output).starts_with("/dev/fd/"), "{verb}: {}", stdout(&output));
    }
    // What is something else is named, with what takes it.
    refused(dir, &["cat", "list.txt"], "`trawl crawl` and `trawl lake ingest` take");
    refused(dir, &["cat", "lake"], "lake is a lake, not an archive");
    refused(dir, &["lake", "ingest", "--dataset", "two", "lake"], "is a lake, which cannot be a source");
    refused(dir, &["cdxj", "lookup", "list.txt", "http://a.example/"], "expected a CDXJ index");
}

fn glob(dir: &Path) -> String {
    std::fs::read_dir(dir).unwrap().next().unwrap().unwrap().path().display().to_string()
}

#[test]
fn urls_and_domains_are_found_in_any_spelling() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("a.warc"), page("http://www.b.example/a?y=2&x=1", 1)).unwrap();
    run(dir, &["-q", "convert", "a.warc", "a.data"], 0);
    run(dir, &["-q", "captures", "rebuild", "."], 0);
    for path in ["a.warc", "a.data", "captures.parquet"] {
        for url in
            ["http://www.b.example/a?y=2&x=1", "HTTP://www.B.example:80/c/../a?y=2&x=1#top", "www.b.example/a?y=2&x=1"]
        {
            // A container finds URLs by their exact spelling, or by the normalised one, which this is not.
            let exact = url.starts_with("http:");
            run(dir, &["-q", "cat", path, "--url", url], i32::from(path == "a.data" && !exact));
        }
        run(dir, &["-q", "cat", path, "--url", "http://www.b.example/"], 1);
    }
    std::fs::write(dir.join("list.txt"), "http://bücher.example/\nhttp://a.b.example/\n").unwrap();
    run(dir, &["-q", "lake", "ingest", "--dataset", "one", "list.txt"], 0);
    for name in ["bücher.example", "XN--BCHER-KVA.example", "http://www.bücher.example:8080/x"] {
        let found = run(dir, &["query", "domain", name], 0);
        assert!(stdout(&found).starts_with("xn--bcher-kva.example = bücher.example  "), "{}", stdout(&found));
    }
}

#[test]
fn listings_as_csv() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("a.jsonl"), "{\"url\":\"http://a.example/,\\\"x\",\"status\":200,\"n\":1}\n").unwrap();
    std::fs::write(dir.join("b.jsonl"), "{\"url\":\"http://a.example/2\"}\n").unwrap();
    run(dir, &["-q", "lake", "ingest", "--dataset-per-file", "a.jsonl", "b.jsonl"], 0);
    run(dir, &["-q", "lake", "deny", "add", "--domain", "z.example", "--reason", "a, b"], 0);
    let csv = |args: &[&str], code| stdout(&run(dir, &[&["--csv"], args].concat(), code));
    let urls = csv(&["query", "urls", "a.example", "a"], 0);
    assert_eq!(
        urls,
        "url,ts,status,content_type,digest,body_length,warc_file,warc_offset,warc_length,extras\n\
         \"http://a.example/,\"\"x\",,200,,,,,,,\"{\"\"n\"\":1}\"\n"
    );
    assert!(csv(&["query", "url", "http://a.example/2"], 0).contains("\n2,b,http://a.example/2,"));
    assert!(csv(&["query", "domain", "a.example"], 0).contains("\na.example,1,a,1,1,true,"));
    assert_eq!(csv(&["query", "domains"], 0), "domain,datasets,rows\na.example,2,2\n");
    assert!(csv(&["query", "diff", "a", "b"], 1).ends_with("\nboth,a.example,1,1,1,1,0\n"));
    assert!(csv(&["query", "diff", "a", "b", "--list", "urls"], 1).contains("\nb,a.example,http://a.example/2\n"));
    assert!(csv(&["lake", "datasets"], 0).contains("\n2,b,1,0,1,"));
    assert!(csv(&["lake", "deny", "list"], 0).contains(",domain,z.example,\"a, b\"\n"));
    assert!(csv(&["settings"], 0).starts_with("name,environment,default,help\njson,TRAWL_JSON,"));
    let parts = csv(&["lake", "parts"], 0);
    assert!(parts.starts_with("type,dataset_id,name,hash,bytes,rows,path\nrows,1,all,"), "{parts}");
    run(dir, &["-q", "frontier", "seed", "--out", "f.meguri", "b.jsonl"], 0);
    let map = csv(&["frontier", "map", "--manifest", "m", "f.meguri"], 0);
    assert!(
        map.starts_with("partition_id,file_ref,") && map.contains("\n1,f.meguri,0,18446744073709551615,1,1,"),
        "{map}"
    );
    run(dir, &["-q", "seqdb", "create", "kvseq", "words.kvseq"], 0);
    run(dir, &["-q", "seqdb", "add", "words.kvseq", "apple", "red, green"], 0);
    assert!(csv(&["seqdb", "list", "words.kvseq"], 0).ends_with(",,,apple,\"red, green\"\n"));
    let line = "example,a)/ 20260101000000 {\"url\": \"http://a.example/\", \"status\": \"200\", \"filename\": \"a,b.warc\"}\n";
    std::fs::write(dir.join("i.cdxj"), line).unwrap();
    let found = csv(&["cdxj", "lookup", "i.cdxj", "http://a.example/"], 0);
    assert!(found.ends_with("\n\"example,a)/\",20260101000000,http://a.example/,,200,,,,\"a,b.warc\"\n"), "{found}");
    std::fs::write(dir.join("p.html"), "<a href=/x rel=nofollow>").unwrap();
    let links = csv(&["url", "links", "p.html", "--base", "http://a.example/"], 0);
    assert_eq!(links, "url,kind,nofollow\nhttp://a.example/x,anchor,true\n");
    refused(dir, &["--csv", "inspect", "a.jsonl"], "--csv prints listings");
    refused(dir, &["--csv", "--json", "lake", "datasets"], "cannot be used with");
}

#[test]
fn settings_that_set_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let typo =
        trawl(dir.path()).env("TRAWL_LAKE_INGEST_MEMROY", "1").args(["url", "http://a.example/"]).output().unwrap();
    assert_eq!(typo.status.code(), Some(2));
    assert!(stderr(&typo).contains("TRAWL_LAKE_INGEST_MEMROY: there is no setting by that name"), "{}", stderr(&typo));
    // A wrong value that is not on the command line is said to come from elsewhere.
    let wrong = [("QUIET", "maybe"), ("CRAWL_DELAY", "soon"), ("CRAWL_DEPTH", "many"), ("CRAWL_DIGESTS", "")];
    for (name, value) in wrong.map(|(name, value)| (format!("TRAWL_{name}"), value)) {
        let mut wrong = trawl(dir.path());
        let wrong = wrong.env(name, value).args(["crawl", "http://a.example/", "--out", "o"]).output().unwrap();
        assert_eq!(wrong.status.code(), Some(2));
        assert!(stderr(&wrong).contains("(set by an environment variable or by trawl.toml)"), "{}", stderr(&wrong));
    }
    for (name, value) in [("TRAWL_POLL", "soon"), ("TRAWL_CACHE_SIZE", "much")] {
        let wrong = trawl(dir.path()).env(name, value).args(["url", "http://a.example/"]).output().unwrap();
        assert_eq!(wrong.status.code(), Some(2));
        assert!(stderr(&wrong).contains(&format!("environment variable {name}: expected a")), "{}", stderr(&wrong));
    }
    for known in ["TRAWL_LAKE", "TRAWL_CACHE_SIZE", "TRAWL_TEST_X"] {
        let fine = trawl(dir.path()).env(known, "1").args(["url", "http://a.example/"]).output().unwrap();
        assert_eq!(fine.status.code(), Some(0), "{known}: {}", stderr(&fine));
    }
}

#[test]
fn a_flag_comes_before_the_settings_that_it_excludes() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let settings = |text: &str| std::fs::write(dir.join("trawl.toml"), text).unwrap();
    std::fs::write(dir.join("a.txt"), "http://a.example/\n").unwrap();
    std::fs::write(dir.join("b.txt"), "http://b.example/\n").unwrap();
    // A flag that is required may be in the file.
    settings("[lake.ingest]\ndataset = 'main'\n");
    run(dir, &["-q", "lake", "ingest", "a.txt"], 0);
    run(dir, &["-q", "lake", "ingest", "--dataset-per-file", "b.txt"], 0);
    settings("csv = true\n[lake.dataset.set]\npublic = true\n");
    let listed = stdout(&run(dir, &["lake", "datasets", "--json"], 0));
    assert!(listed.contains("\"name\":\"main\"") && listed.contains("\"name\":\"b\""), "{listed}");
    let set = run(dir, &["--json", "lake", "dataset", "set", "b", "--hidden"], 0);
    assert!(stdout(&set).contains("\"changed\":true"), "{}", stdout(&set));
    settings("");
    let mut asked = trawl(dir);
    let asked = asked.env("TRAWL_CSV", "true").args(["lake", "datasets", "--json"]).output().unwrap();
    assert_eq!((asked.status.code(), stdout(&asked).starts_with('{')), (Some(0), true), "{}", stderr(&asked));
}

#[test]
fn help_is_wrapped_and_in_groups() {
    let dir = tempfile::tempdir().unwrap();
    let help = |args: &[&str]| stdout(&run(dir.path(), args, 0));
    assert!(help(&["--help"]).contains("--version"));
    let crawl = help(&["crawl", "--help"]);
    for heading in ["\nSeeds:\n", "\nRun:\n", "\nArchive:\n", "\nLinks:\n", "\nFetching:\n", "\nOutput:\n"] {
        assert!(crawl.contains(heading), "{heading}");
    }
    // No line of a paragraph ends early because the source broke there.
    let words = |line: &str| line.split(' ').next().map_or(0, str::len);
    for (line, next) in crawl.lines().zip(crawl.lines().skip(1)) {
        let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        let early = is_text(line) && is_text(next) && line.chars().count() + 1 + words(next) < 80;
        assert!(!early, "{line}\n{next}");
    }
}
