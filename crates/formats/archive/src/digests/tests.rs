use super::*;
use trawl_io::fault::{FaultFs, Loss};

fn clock(ms: i64) -> Clock {
    Clock::fixed(UnixMillis(ms))
}

fn open(disk: &FaultFs) -> DigestStore {
    DigestStore::open(&disk.shared(), Path::new("/bodies"), "test", &clock(0)).unwrap()
}

fn digest(n: u8) -> Digest {
    Digest::sha1([n; 20])
}

fn earlier(n: u8, ms: i64) -> Earlier {
    Earlier { url: format!("http://e.com/{n}"), date: UnixMillis(ms), record_id: format!("urn:uuid:{n}") }
}

#[test]
fn the_newest_is_kept_and_survives() {
    let disk = FaultFs::new();
    let store = open(&disk);
    for n in 0..200 {
        store.remember(&digest(n), &earlier(n, 5)).unwrap();
    }
    store.remember(&digest(7), &earlier(8, 9)).unwrap();
    store.remember(&digest(7), &earlier(9, 1)).unwrap();
    assert_eq!(store.find(&digest(7)).unwrap(), Some(earlier(8, 9)));
    assert_eq!(store.find(&digest(201)).unwrap(), None);
    assert_eq!(store.find(&Digest::sha256([1; 32])).unwrap(), None, "only SHA-1 is stored");
    let long = Earlier { url: "x".repeat(70_000), ..earlier(1, 1) };
    store.remember(&digest(250), &long).unwrap();
    assert_eq!(store.find(&digest(250)).unwrap(), None, "what does not fit is not remembered");
    store.close().unwrap();
    assert_eq!(store.find(&digest(7)).unwrap(), None);
    let store = open(&disk);
    assert_eq!(store.find(&digest(7)).unwrap(), Some(earlier(8, 9)));
    assert_eq!(store.find(&digest(199)).unwrap(), Some(earlier(199, 5)));
}

#[test]
fn a_cut_at_any_step_leaves_a_store_that_opens_and_says_nothing_wrong() {
    let fill = |disk: &FaultFs| -> Result<()> {
        let store = DigestStore::open(&disk.shared(), Path::new("/bodies"), "test", &clock(0))?;
        (0..20).try_for_each(|n| store.remember(&digest(n), &earlier(n, 5)))?;
        store.close()?;
        let store = DigestStore::open(&disk.shared(), Path::new("/bodies"), "test", &clock(0))?;
        (20..40).try_for_each(|n| store.remember(&digest(n), &earlier(n, 5)))?;
        store.close()
    };
    let whole = FaultFs::new();
    fill(&whole).unwrap();
    let ops = whole.counts().ops;
    for cut in 0..ops {
        for loss in [Loss::All, Loss::None, Loss::Torn { seed: cut, unit: 512 }] {
            let disk = FaultFs::new();
            disk.cut_after(cut);
            let _ = fill(&disk);
            let disk = disk.reboot(loss);
            let store = open(&disk);
            for n in 0..40 {
                let found = store.find(&digest(n)).unwrap();
                assert!(found.is_none_or(|found| found == earlier(n, 5)), "cut {cut}, {loss:?}");
            }
            store.remember(&digest(50), &earlier(50, 1)).unwrap();
            store.close().unwrap();
            assert_eq!(open(&disk).find(&digest(50)).unwrap(), Some(earlier(50, 1)));
        }
    }
    assert!(ops > 20, "{ops}");
}

#[test]
fn a_map_of_somebody_else_is_refused_and_left_alone() {
    let purpose = |text| Purpose::new(text).unwrap();
    for (key, purpose) in [
        (Repr::Int8, purpose("")),
        (Repr::Fixed(20), purpose("")),
        (Repr::Fixed(20), purpose("MINE")),
        (Repr::Int8, purpose("DIGESTS")),
    ] {
        let disk = FaultFs::new();
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
        let files = MapFiles::named(Path::new("/bodies"));
        let create = CreateKvseq { key, purpose, ..CreateKvseq::default() };
        let mut theirs = Map::create(&files, &create, &CreateHindex::default(), &settings).unwrap();
        theirs.put(b"precious, 20 bytes..", b"value").unwrap();
        // Not closed: nothing of it is to be repaired either.
        theirs.flush().unwrap();
        drop(theirs);
        let before = [&files.kvseq, &files.hindex].map(|path| inspect(path, &settings).unwrap());
        let refused = DigestStore::open(&disk.shared(), Path::new("/bodies"), "test", &clock(0)).unwrap_err();
        assert!(refused.to_string().contains("/bodies.kvseq"), "{refused}");
        assert_eq!([&files.kvseq, &files.hindex].map(|path| inspect(path, &settings).unwrap()), before);
    }
}

#[test]
fn an_index_of_somebody_else_is_refused_and_left_alone() {
    let disk = FaultFs::new();
    let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
    let theirs = Path::new("/bodies.hindex");
    CreateHindex::default().create(theirs, &settings).unwrap().close().unwrap();
    let before = disk.files();
    let refused = DigestStore::open(&disk.shared(), Path::new("/bodies"), "test", &clock(0)).unwrap_err();
    assert!(refused.to_string().contains("/bodies.hindex"), "{refused}");
    assert_eq!(disk.files(), before);
}
