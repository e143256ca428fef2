use super::*;
use std::io::Write;

fn seed(line: &[u8]) -> Option<Result<Seed, (String, String)>> {
    let mut found = None;
    let each = &mut |_, item| {
        assert!(found.is_none());
        found = Some(seed_of(item, false));
        Ok(())
    };
    trawl_lists::read_stream("x", None, line, &Options::crawl(), each).unwrap();
    found
}

#[test]
fn lines_of_every_kind() {
    let taken =
        |url: &str, meta: Option<&str>| Some(Ok(Seed { url: WebUrl::parse(url).unwrap(), meta: meta.map(Into::into) }));
    assert_eq!(seed(b"  http://A.example/x#f \r"), taken("http://a.example/x", None));
    assert_eq!(seed(b""), None);
    assert_eq!(seed(b"  # note"), None);
    assert_eq!(seed("\u{feff}http://a.example".as_bytes()), taken("http://a.example/", None));
    // Metadata keeps its types, numbers and order as they were written.
    assert_eq!(
        seed(br#"{"z": 1.0, "url": "http://a.example/", "a": {"b": [1, "\u0041"]}, "depth":1e5}"#),
        taken("http://a.example/", Some(r#"{"z":1.0,"a":{"b": [1, "\u0041"]},"depth":1e5}"#))
    );
    assert_eq!(seed(br#"{"url":"http://a.example/"}"#), taken("http://a.example/", None));
    // Lists of domains have no schemes.
    assert_eq!(seed(b"www.example.com"), taken("http://www.example.com/", None));
    assert_eq!(seed(br#"{"url":"example.com/docs"}"#), taken("http://example.com/docs", None));
    for bad in [
        &b"mailto:x@y"[..],
        b"report.2024",
        b"{\"u\":1}",
        b"{\"url\":1}",
        b"{\"url\":\"http://a/\"",
        b"{} x",
        b"\xff\xfe",
        b"{\"url\":\"nonsense\"}",
    ] {
        assert!(seed(bad).unwrap().is_err(), "{}", String::from_utf8_lossy(bad));
    }
}

/// Items of which no digest was noted.
fn taken(items: u64) -> Taken {
    Taken { items, digest: None }
}

fn collect(inputs: &[SeedInput], skip: u64) -> (Vec<String>, Vec<Reject>, Vec<SeedIdentity>) {
    let (mut seeds, mut rejects, mut end) = (Vec::new(), Vec::new(), None);
    read(inputs, &Registry::default(), &Options::crawl(), &LinkRules::default(), taken(skip), &mut |batch| {
        assert!(end.is_none());
        seeds.extend(batch.seeds.into_iter().map(|s| s.url.into()));
        rejects.extend(batch.rejects);
        end = batch.end;
        true
    })
    .unwrap();
    (seeds, rejects, end.unwrap())
}

#[test]
fn plain_and_compressed_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..2500).map(|n| format!("http://h{n}.example/\n")).collect::<String>()
        + "bad line\n# c\n\nhttp://last.example/";
    let plain = dir.path().join("plain.txt");
    std::fs::write(&plain, &text).unwrap();
    let gz = dir.path().join("anything");
    let mut encoder = flate2::write::GzEncoder::new(File::create(&gz).unwrap(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap();
    let zst = dir.path().join("other.zst");
    std::fs::write(&zst, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    let (seeds, rejects, end) = collect(&[SeedInput::File(plain.clone())], 0);
    assert_eq!((seeds.len(), rejects.len()), (2501, 1));
    let at = text.find("bad").unwrap() as u64;
    assert_eq!((rejects[0].offset, rejects[0].text.as_str()), (at, "bad line"));
    assert_eq!((end[0].rows, end[0].rejects, end[0].bytes), (2501, 1, text.len() as u64));
    for other in [gz, zst] {
        let (again, _, end) = collect(&[SeedInput::File(other.clone())], 0);
        assert_eq!(again, seeds, "{}", other.display());
        assert_eq!(end[0].bytes, std::fs::metadata(other).unwrap().len());
    }
    // Going on after any number of items: the rest, and the same identity.
    let inputs = [SeedInput::Url("http://first.example/".into()), SeedInput::File(plain)];
    let (all, _, whole) = collect(&inputs, 0);
    for skip in [1, 999, 1000, 1001, 2501, 2502, 2503] {
        let (rest, _, end) = collect(&inputs, skip);
        // The bad line is an item, too.
        let taken = usize::try_from(skip).unwrap() - usize::from(skip > 2501);
        assert_eq!(rest, all[taken..], "{skip}");
        assert_eq!(end, whole);
    }
}

#[test]
fn long_lines_are_rejected_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    std::fs::write(&path, format!("http://a.example/{}\nhttp://b.example/\n", "x".repeat(3 << 20))).unwrap();
    let (seeds, rejects, _) = collect(&[SeedInput::File(path)], 0);
    assert_eq!((seeds.len(), rejects.len()), (1, 1));
    assert!(rejects[0].text.len() <= 200);
}

#[test]
fn missing_and_broken_inputs_are_named() {
    let error = read(
        &[SeedInput::File("no/such/file".into())],
        &Registry::default(),
        &Options::crawl(),
        &LinkRules::default(),
        Taken::default(),
        &mut |_| true,
    )
    .unwrap_err();
    assert!(error.to_string().contains("no/such/file"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.gz");
    std::fs::write(&path, [0x1f, 0x8b, 8, 0, 0]).unwrap();
    assert!(
        read(
            &[SeedInput::File(path)],
            &Registry::default(),
            &Options::crawl(),
            &LinkRules::default(),
            Taken::default(),
            &mut |_| true
        )
        .is_err()
    );
}

#[test]
fn arguments() {
    assert_eq!(SeedInput::from_argument("-"), SeedInput::Stdin);
    assert_eq!(SeedInput::from_argument("HTTPS://a.example"), SeedInput::Url("HTTPS://a.example".into()));
    assert_eq!(SeedInput::from_argument("list.txt"), SeedInput::File("list.txt".into()));
}

#[test]
fn a_partition_of_a_frontier_is_a_list() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../formats/meguri/tests/data/ours-zstd-1.meguri");
    let (seeds, rejects, ends) = collect(&[SeedInput::File(path.clone())], 0);
    assert_eq!((seeds.len(), rejects.len()), (300, 0));
    assert!(seeds.iter().all(|url| url.starts_with("http")), "{seeds:?}");
    assert_eq!((ends[0].rows, ends[0].bytes), (300, std::fs::metadata(path).unwrap().len()));
}

#[test]
fn arguments_that_are_meant_as_urls() {
    for url in ["http://h/", "HTTPS:h", "http:/u:pw@h/", "  http://u:pw@h/", "ftp://u:pw@h/", "http:\\\\h"] {
        let input = SeedInput::from_argument(url);
        assert!(matches!(input, SeedInput::Url(_)), "{url}");
        assert!(!input.name().contains("pw") && !input.for_keeps().name().contains("pw"), "{url}");
    }
    for path in ["seeds.txt", "./a:b", "c:/seeds", "10:30", "a/http://h", ":/x"] {
        assert!(matches!(SeedInput::from_argument(path), SeedInput::File(_)), "{path}");
    }
    assert_eq!(SeedInput::from_argument("-"), SeedInput::Stdin);
    // What is meant as one and is none is rejected, without its password.
    let (seeds, rejects, _) = collect(&[SeedInput::from_argument("ftp://u:pw@h/")], 0);
    assert_eq!((seeds.len(), rejects.len()), (0, 1));
    assert!(!rejects[0].text.contains("pw"), "{rejects:?}");
}

/// Who types URLs into a pipe need not close it to have them crawled.
#[test]
fn an_open_pipe_is_read_as_it_fills() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let (batches, given) = std::sync::mpsc::channel();
    let input = SeedInput::File(path.clone());
    let reader = std::thread::spawn(move || {
        let options = Options::crawl();
        read(&[input], &Registry::default(), &options, &LinkRules::default(), Taken::default(), &mut |batch| {
            batches.send(batch).is_ok()
        })
        .unwrap();
    });
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for n in 1..=3 {
        pipe.write_all(format!("http://h/{n}\nhttp://g/{n}\n").as_bytes()).unwrap();
        let batch = given.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        assert_eq!((batch.seeds.len(), batch.items), (2, 2 * n), "while the pipe is open");
        assert!(batch.end.is_none());
    }
    drop(pipe);
    assert_eq!(given.recv().unwrap().end.unwrap()[0].rows, 6);
    reader.join().unwrap();
}

/// A pipe is gone with its process: without the rest of it, nobody may call a crawl complete.
#[test]
fn a_list_that_lost_items_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list");
    std::fs::write(&path, "http://h/1\nhttp://h/2\n").unwrap();
    let input = [SeedInput::File(path)];
    assert_eq!(collect(&input, 2).0.len(), 0);
    let read = read(&input, &Registry::default(), &Options::crawl(), &LinkRules::default(), taken(3), &mut |_| true);
    let error = read.unwrap_err().to_string();
    assert!(error.contains("3 items") && error.contains("found 2"), "{error}");
}

/// A list that is made anew while a crawl is stopped: what is new among the items that were taken would be passed over.
#[test]
fn a_list_whose_taken_items_changed_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("list");
    let input = [SeedInput::File(path.clone())];
    let go_on = |taken: Taken| {
        let mut batches = Vec::new();
        let give = &mut |batch: SeedBatch| {
            batches.push(batch);
            true
        };
        read(&input, &Registry::default(), &Options::crawl(), &LinkRules::default(), taken, give).map(|()| batches)
    };
    let lines = |numbers: std::ops::Range<u32>| numbers.map(|n| format!("http://h/{n}\n")).collect::<String>();
    std::fs::write(&path, format!("no url\n{}", lines(0..2500))).unwrap();
    let first = go_on(Taken::default()).unwrap().swap_remove(1);
    assert_eq!((first.items, first.digest.len()), (2000, 64));
    let taken = Taken { items: first.items, digest: Some(first.digest) };
    let rest = |batches: Vec<SeedBatch>| batches.iter().map(|batch| batch.seeds.len()).sum::<usize>();
    assert_eq!(rest(go_on(taken.clone()).unwrap()), 501);
    // One that has grown, or was cut behind them, is read on.
    for end in [4000, 1999] {
        std::fs::write(&path, format!("no url\n{}", lines(0..end))).unwrap();
        assert_eq!(rest(go_on(taken.clone()).unwrap()), end as usize - 1999);
    }
    for changed in
        [format!("http://new/\nno url\n{}", lines(0..2500)), format!("no url\n{}", lines(1..1999)) + "http://h/x\n"]
    {
        std::fs::write(&path, changed).unwrap();
        let error = go_on(taken.clone()).unwrap_err().to_string();
        assert!(error.contains("first 2000 items") && error.contains("other ones"), "{error}");
    }
}
