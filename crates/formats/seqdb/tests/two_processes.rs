//! A writer in another process: a second writer is refused by name, and readers beside never see half of anything.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use trawl_model::UnixMillis;
use trawl_seqdb::{
    Access, Clock, CreateHindex, CreateKvseq, CreatePages, Error, Form, FsPaths, Kvseq, Map, MapFiles, Pages, Settings,
};

const ROLE: &str = "SEQDB_TEST_WRITER";

fn settings() -> Settings {
    let holder = trawl_io::describe_holder("the other writer", "now");
    Settings { flush_every: 7, buffer_bytes: 5000, ..Settings::new(Clock::fixed(UnixMillis(0)), holder) }
}

/// Every value can be told from its key, so that half of one, or one of another key, is noticed.
fn value(n: u64) -> Vec<u8> {
    let len = usize::try_from(n * 7919 % 3000).unwrap();
    (0..len).map(|i| (i as u64 * 31 + n) as u8).collect()
}

/// Not a test of its own: what the other process does.
#[test]
fn writer() {
    let Ok(dir) = std::env::var(ROLE) else { return };
    let dir = Path::new(&dir);
    let mut map = Map::create(
        &MapFiles::named(&dir.join("map")),
        &CreateKvseq::default(),
        &CreateHindex { htsize: 11, ..Default::default() },
        &settings(),
    )
    .unwrap();
    let paths = FsPaths::new(dir, "pages").unwrap();
    let mut pages = CreatePages { expected: 5, ..CreatePages::new(1) }.create(&paths, &settings()).unwrap();
    for n in 0.. {
        map.put(&n.to_string().into_bytes(), &value(n)).unwrap();
        map.put(b"changing", &value(n)).unwrap();
        pages.append(n.to_string().as_bytes(), UnixMillis(0), Form::Plain, &value(n)).unwrap();
        map.flush().unwrap();
        pages.flush().unwrap();
        if n % 50 == 0 {
            map.sync().unwrap();
            pages.sync().unwrap();
        }
    }
}

struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(dir: &Path) -> Other {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "writer"]).env(ROLE, dir);
    Other(command.stdout(std::process::Stdio::null()).spawn().unwrap())
}

fn wait_for(path: &Path) {
    let until = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < until, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn beside_a_writer() {
    let dir = tempfile::tempdir().unwrap();
    let other = start(dir.path());
    let files = MapFiles::named(&dir.path().join("map"));
    let paths = FsPaths::new(dir.path(), "pages").unwrap();
    wait_for(&trawl_seqdb::pages::url_index_path(&paths));

    let refused = Map::open(&files, Access::Write, &settings()).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("held by the other writer (pid "), "{text}");
    assert!(text.contains(&format!("pid {} ", other.0.id())), "{text}");
    assert!(matches!(Pages::open(&paths, Access::Write, &settings()), Err(Error::LockFailed(_))));

    let mut map = Map::open(&files, Access::Read, &settings()).unwrap();
    let mut pages = open_pages(&paths);
    // A few seconds, and however long it takes to have seen something.
    let (until, last_moment) = (Instant::now() + Duration::from_secs(4), Instant::now() + Duration::from_secs(120));
    let (mut rounds, mut found, mut most) = (0u64, 0u64, 0);
    while Instant::now() < until || (rounds <= 3 || found <= rounds || most < 100) && Instant::now() < last_moment {
        map.refresh().unwrap();
        pages.refresh().unwrap();
        let mut scan = map.kvseq().scan().with_deleted();
        let mut last = 0;
        while let Some(item) = scan.next_entry().unwrap() {
            if let Ok(n) = std::str::from_utf8(item.key).unwrap().parse::<u64>() {
                assert!(item.value.unwrap() == value(n), "entry {n} is torn");
                last = n;
            }
        }
        most = most.max(last);
        for n in [0, last / 2, last.saturating_sub(20)] {
            if let Some(got) = map.get(n.to_string().as_bytes()).unwrap() {
                assert!(got == value(n), "pair {n} is torn");
                found += 1;
            }
            if let Some(page) = pages.newest(n.to_string().as_bytes()).unwrap() {
                assert!(page.event == value(n), "page {n} is torn");
                found += 1;
            }
        }
        let mut scan = pages.scan();
        while let Some(page) = scan.next_page().unwrap() {
            let n = std::str::from_utf8(page.url).unwrap().parse().unwrap();
            assert!(page.event.unwrap() == value(n), "page {n} is torn");
        }
        rounds += 1;
    }
    assert!(rounds > 3 && found > rounds && most >= 100, "{rounds} rounds, {found} found, up to {most}");

    // Killed: what it had flushed and not synced is not believed any more. Right after a sync there is no such thing.
    drop(other);
    match Map::open(&files, Access::Write, &settings()).map(drop) {
        Ok(()) => {}
        Err(Error::NeedsCheck { .. }) => {
            trawl_seqdb::map::repair(&files, &settings(), false, &trawl_seqdb::silent).unwrap();
        }
        Err(other) => panic!("{other}"),
    }
    let map = Map::open(&files, Access::Write, &settings()).unwrap();
    // What comes after a sync is written once that is done; of the last one that was seen nobody knows.
    let synced = most.saturating_sub(1) / 50 * 50;
    for n in 0..=synced {
        assert!(map.get(n.to_string().as_bytes()).unwrap().unwrap() == value(n), "{n} of {synced}");
    }
}

/// The index by URL may be replaced by a larger one just while it is opened.
fn open_pages(paths: &FsPaths) -> Pages {
    for _ in 0..100 {
        if let Ok(pages) = Pages::open(paths, Access::Read, &settings()) {
            return pages;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Pages::open(paths, Access::Read, &settings()).unwrap()
}

/// A lock file goes by a name, and links give a file several.
#[test]
fn a_second_writer_by_another_name_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [first, link, hard] = ["k.kvseq", "link.kvseq", "hard.kvseq"].map(|name| dir.path().join(name));
    let mut kv = CreateKvseq::default().create(&first, &settings()).unwrap();
    std::os::unix::fs::symlink(&first, &link).unwrap();
    std::fs::hard_link(&first, &hard).unwrap();
    let refused = |path: &Path, why: &str| {
        let opened = Kvseq::open(path, Access::Write, &settings()).unwrap_err();
        let set = trawl_seqdb::set_variables(path, &[("USERVAR".into(), 1)], &settings()).unwrap_err();
        assert!(opened.to_string().contains(why) && set.to_string().contains(why), "{opened}; {set}");
        Kvseq::open(path, Access::Read, &settings()).unwrap();
    };
    refused(&hard, "under another name");
    refused(&link, "name the file itself");
    kv.add(b"key", b"").unwrap();
    kv.close().unwrap();
    refused(&link, "name the file itself");
    let mut kv = Kvseq::open(&hard, Access::Write, &settings()).unwrap();
    kv.add(b"other", b"").unwrap();
    kv.close().unwrap();
    assert_eq!(Kvseq::open(&first, Access::Read, &settings()).unwrap().entries(), Some(2));
}
