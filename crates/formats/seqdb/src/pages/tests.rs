use super::*;
use crate::filesys::WriteFlags;
use crate::findings::Findings;
use crate::{Clock, silent};
use std::path::Path;
use trawl_io::fault::{FaultFs, Loss};

fn settings(disk: &FaultFs) -> Settings {
    let clock = Clock::fixed(UnixMillis(1_200_913_506_000));
    Settings { sort_memory_bytes: 6 << 20, ..Settings::new(clock, "test").on(disk.shared()) }
}

fn paths() -> FsPaths {
    FsPaths::new(Path::new("/"), "crawl").unwrap()
}

fn create(disk: &FaultFs) -> Pages {
    CreatePages { expected: 10, ..CreatePages::new(5) }.create(&paths(), &settings(disk)).unwrap()
}

fn at(ms: i64) -> UnixMillis {
    UnixMillis(1_782_262_923_000 + ms)
}

fn url(n: usize) -> Vec<u8> {
    format!("https://www.example.com/section/{}/page-{n}.html", n % 7).into_bytes()
}

fn event(n: usize, len: usize) -> Vec<u8> {
    let mut event = format!("WARC/1.1\r\nWARC-Type: response\r\nX: {n}\r\n\r\n").into_bytes();
    event.extend((0..len).map(|i| (i * 31 + n) as u8));
    event
}

fn sound(disk: &FaultFs) {
    let mut findings = Findings::new();
    verify(&paths(), &settings(disk), &mut findings, &silent).unwrap();
    assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
}

/// Sizes as compressed pages have them: half below 8 KB, a few of some hundred.
fn size_of(n: usize) -> usize {
    let spread = [2, 3, 5, 6, 7, 8, 9, 11, 14, 19, 24, 33];
    let base = spread[n.wrapping_mul(0x9e37_79b9) % spread.len()] * 1000 + n % 1000;
    if n % 331 == 330 { base * 20 } else { base }
}

#[test]
fn a_page_is_one_probe_and_one_read() {
    const PAGES: usize = 3000;
    let disk = FaultFs::new();
    // The fullest an index gets before it grows.
    let mut pages = CreatePages { expected: 9 * PAGES as u64 / 10, ..CreatePages::new(5) }
        .create(&paths(), &settings(&disk))
        .unwrap();
    for n in 0..PAGES {
        pages.append(&url(n), at(n as i64), Form::Gzip, &event(n, size_of(n))).unwrap();
    }
    pages.close().unwrap();
    sound(&disk);
    let pages = Pages::open(&paths(), Access::Read, &settings(&disk)).unwrap();
    let load = pages.urls.used_cells() as f64 / pages.urls.htsize() as f64;
    assert!((0.70..=0.75).contains(&load), "{load}");
    let (mut by_reads, mut bytes, mut wanted) = ([0u32; 8], 0, 0);
    for n in 0..PAGES {
        let before = disk.counts();
        let page = pages.newest(&url(n)).unwrap().unwrap();
        let after = disk.counts();
        assert_eq!((page.time, page.form), (at(n as i64), Form::Gzip));
        assert!(page.event == event(n, size_of(n)));
        by_reads[(after.reads - before.reads) as usize] += 1;
        bytes += after.bytes_read - before.bytes_read;
        wanted += page.event.len() as u64;
    }
    // One of the index and one of the data file; a third where the search goes far, or the page is larger than nearly
    // all; both at once is possible, more is not.
    let [0, 0, two, three, four, 0, 0, 0] = by_reads else { panic!("{by_reads:?}") };
    assert!(two * 100 >= PAGES as u32 * 99 && four <= 1, "{two} of {PAGES} by two reads, {three} by three, {four}");
    assert!(bytes < 6 * wanted, "{bytes} bytes read for {wanted}");
    let mut more = 0;
    for n in 0..1000 {
        let before = disk.counts().reads;
        assert_eq!(pages.newest(format!("https://nowhere.example/{n}").as_bytes()).unwrap(), None);
        more += disk.counts().reads - before - 1;
    }
    assert!(more <= 20, "{more} of 1000 absent URLs took a second look at the index, or one at the data");
}

#[test]
fn many_captures_of_one_moment_are_numbered_in_few_steps() {
    let disk = FaultFs::new();
    let mut pages = create(&disk);
    for n in 0..300u32 {
        let before = disk.counts().reads;
        pages.append(b"", at(0), Form::Plain, &n.to_be_bytes()).unwrap();
        // Indexes that grow are read through; else a dozen names are looked at.
        assert!(disk.counts().reads - before < 100);
    }
    let mut scan = pages.scan();
    let mut n = 0u32;
    while let Some(page) = scan.next_page().unwrap() {
        assert_eq!(page.event.unwrap(), n.to_be_bytes());
        n += 1;
    }
    assert_eq!(n, 300);
    pages.close().unwrap();
    sound(&disk);
}

#[test]
fn the_newest_capture_answers_whatever_the_order() {
    let disk = FaultFs::new();
    let mut pages = create(&disk);
    let u = url(1);
    for ms in [5000, 9000, 7000, 9000, 1000] {
        pages.append(&u, at(ms), Form::Plain, format!("at {ms}").as_bytes()).unwrap();
    }
    pages.append(b"", at(0), Form::Plain, b"warcinfo").unwrap();
    assert_eq!((pages.len(), pages.url_count()), (6, 1));
    let newest = pages.newest(&u).unwrap().unwrap();
    assert_eq!((newest.time, newest.event.as_slice()), (at(9000), &b"at 9000"[..]));
    assert_eq!(pages.get(&u, at(7000)).unwrap().unwrap().event, b"at 7000");
    assert_eq!(pages.get(&u, at(7001)).unwrap(), None);
    assert_eq!(pages.newest(b"").unwrap(), None);
    // In disk order everything comes back as it went in, the second of one moment too.
    let mut scan = pages.scan();
    let mut events = Vec::new();
    while let Some(page) = scan.next_page().unwrap() {
        events.push(String::from_utf8(page.event.unwrap().to_vec()).unwrap());
    }
    assert_eq!(events, ["at 5000", "at 9000", "at 7000", "at 9000", "at 1000", "warcinfo"]);
    pages.close().unwrap();
    sound(&disk);
    // A rebuilt index finds the same.
    disk.shared().remove_file(&url_index_path(&paths())).unwrap();
    assert!(matches!(Pages::open(&paths(), Access::Read, &settings(&disk)), Err(Error::NeedsCheck { .. })));
    assert_eq!(repair(&paths(), &settings(&disk), false, &silent).unwrap().urls, 1);
    sound(&disk);
    compact(&paths(), &settings(&disk), 6, &silent).unwrap();
    sound(&disk);
    let pages = Pages::open(&paths(), Access::Read, &settings(&disk)).unwrap();
    assert_eq!(pages.newest(&u).unwrap().unwrap().time, at(9000));
}

#[test]
fn events_of_any_size() {
    let disk = FaultFs::new();
    let mut pages = create(&disk);
    let long_url = [b"https://e.com/".to_vec(), vec![b'x'; 3000]].concat();
    let sizes = [0, 1, 29_000, 40_000, 2 << 20, 17 << 20];
    for (n, size) in sizes.into_iter().enumerate() {
        let event = event(n, size);
        let u = if n == 2 { long_url.clone() } else { url(n) };
        let place = pages.append_from(&u, at(n as i64), Form::Plain, &mut &event[..]).unwrap();
        assert_eq!(place.length, event.len() as u64);
        pages.flush().unwrap();
        let offset = usize::try_from(place.offset).unwrap();
        let stored = &disk.files()[&paths().data()][offset..][..event.len()];
        assert!(stored == event, "a place is where the event's bytes are");
    }
    struct Breaks(usize);
    impl Read for Breaks {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 > 3 { Err(std::io::Error::other("torn")) } else { Ok(buf.len()) }
        }
    }
    assert!(pages.append_from(&url(9), at(9), Form::Plain, &mut Breaks(0)).is_err());
    assert_eq!((pages.len(), pages.newest(&url(9)).unwrap()), (6, None));
    pages.append(&url(9), at(9), Form::Plain, b"again").unwrap();
    let mut scan = pages.scan();
    let mut seen = 0;
    while let Some(page) = scan.next_page().unwrap() {
        let mut all = Vec::new();
        page.reader().unwrap().unwrap().read_to_end(&mut all).unwrap();
        assert_eq!(all.len() as u64, page.len);
        if let Some(event) = page.event {
            assert!(event == all);
        } else {
            assert!(page.len > 16 << 20);
        }
        seen += 1;
    }
    assert_eq!(seen, 7);
    let big = Settings { max_value_bytes: 1 << 20, ..settings(&disk) };
    pages.close().unwrap();
    let pages = Pages::open(&paths(), Access::Read, &big).unwrap();
    assert!(matches!(pages.newest(&url(4)), Err(Error::TooLong { .. })));
    assert_eq!(pages.reader(&url(4), at(4)).unwrap().unwrap().len(), event(4, 2 << 20).len() as u64);
    sound(&disk);
}

#[test]
fn every_capture_in_one_split_of_any_size() {
    let disk = FaultFs::new();
    let mut pages = create(&disk);
    pages.append(b"", at(0), Form::Plain, b"warcinfo").unwrap();
    for n in 0..100 {
        pages.append(&url(n), at(n as i64), Form::Plain, &event(n, 500)).unwrap();
    }
    pages.append(b"http://e.com/\xff", at(500), Form::Plain, b"x").unwrap();
    pages.sync().unwrap();
    let identity = pages.identity();
    for target in [1, 3000, 1 << 40] {
        let splits = pages.splits(target).unwrap();
        assert!(splits.windows(2).all(|w| w[0].end == w[1].start));
        let mut urls = Vec::new();
        for split in splits {
            let mut scan = pages.scan_split(split);
            while let Some(page) = scan.next_page().unwrap() {
                assert_eq!(page.place.file.as_ref(), "crawl.data");
                urls.push(page.url.to_vec());
            }
        }
        let expected = [b"".to_vec()].into_iter().chain((0..100).map(url)).chain([b"http://e.com/\xff".to_vec()]);
        assert_eq!(urls, expected.collect::<Vec<_>>(), "{target}");
    }
    pages.append(&url(7), at(900), Form::Plain, b"").unwrap();
    assert_ne!(pages.identity(), identity, "another container now");
}

#[test]
fn every_cut_keeps_what_was_synced_in_both_indexes() {
    let small = |disk: &FaultFs| Settings { buffer_bytes: 2000, ..settings(disk) };
    for cut in (10..).step_by(3) {
        let disk = FaultFs::new();
        disk.cut_after(cut);
        let (mut synced, mut created) = (0, false);
        let mut work = || -> Result<()> {
            let mut pages = CreatePages { expected: 3, ..CreatePages::new(5) }.create(&paths(), &small(&disk))?;
            created = true;
            for n in 0..12 {
                pages.append(&url(n % 8), at(n as i64), Form::Plain, &event(n, 300 * n))?;
                if n % 4 == 3 {
                    pages.sync()?;
                    synced = n + 1;
                }
            }
            pages.close()
        };
        let done = work().is_ok();
        for loss in [Loss::All, Loss::None].into_iter().chain((0..5).map(|seed| Loss::Torn { seed, unit: 512 })) {
            let disk = disk.reboot(loss);
            if !created {
                continue;
            }
            if Pages::open(&paths(), Access::Write, &small(&disk)).is_err() {
                repair(&paths(), &small(&disk), false, &silent).unwrap();
            }
            sound(&disk);
            let pages = Pages::open(&paths(), Access::Write, &small(&disk)).unwrap();
            let there = usize::try_from(pages.len()).unwrap();
            assert!(there >= synced, "cut {cut}, {loss:?}: {there} of {synced}");
            for n in 0..there {
                let page = pages.get(&url(n % 8), at(n as i64)).unwrap().unwrap();
                assert!(page.event == event(n, 300 * n), "cut {cut}, {loss:?}");
            }
            for n in 0..there.min(8) {
                let newest = if n + 8 < there { n + 8 } else { n };
                assert_eq!(pages.newest(&url(n)).unwrap().unwrap().time, at(newest as i64), "cut {cut}, {loss:?}");
            }
        }
        if done {
            break;
        }
    }
}

#[test]
fn a_plain_filesys_is_no_container_of_captures() {
    let disk = FaultFs::new();
    let mut fs = CreateFilesys::new(3).create(&paths(), &settings(&disk)).unwrap();
    drop(fs.open_file_wr(b"x", 'f', WriteFlags::default()).unwrap());
    fs.close().unwrap();
    assert!(Pages::open(&paths(), Access::Read, &settings(&disk)).is_err());
    let mut pages = {
        let other = FsPaths::new(Path::new("/"), "other").unwrap();
        CreatePages::new(9).create(&other, &settings(&disk)).unwrap()
    };
    assert!(matches!(pages.append(b"u", UnixMillis(i64::MAX), Form::Plain, b""), Err(Error::Refused { .. })));
    assert!(matches!(pages.append(&[b'u'; 65530], at(0), Form::Plain, b""), Err(Error::TooLong { .. })));
}

#[test]
fn back_to_any_sync_that_a_journal_remembers() {
    for closed in [true, false] {
        let disk = FaultFs::new();
        let mut pages = create(&disk);
        let mut ends = vec![(pages.sync().unwrap(), 0)];
        for n in 0..40usize {
            pages.append(&url(n % 25), at(n as i64), Form::Plain, &event(n, n * 50)).unwrap();
            if n % 7 == 6 {
                ends.push((pages.sync().unwrap(), n + 1));
            }
        }
        if closed {
            pages.close().unwrap();
        } else {
            pages.flush().unwrap();
            drop(pages);
        }
        // Past the end nobody has ever synced.
        assert!(cut(&paths(), &settings(&disk), 1 << 40, &silent).is_err());
        for (end, count) in ends.into_iter().rev() {
            let done = cut(&paths(), &settings(&disk), end, &silent).unwrap();
            assert_eq!((done.files, done.urls), (count as u64, count.min(25) as u64), "{closed}");
            sound(&disk);
            let pages = Pages::open(&paths(), Access::Write, &settings(&disk)).unwrap();
            assert_eq!(pages.filesys().data().end(), end);
            for n in 0..25usize {
                let newest = (0..count).rev().find(|m| m % 25 == n);
                let found = pages.newest(&url(n)).unwrap();
                assert_eq!(found.map(|page| page.event), newest.map(|m| event(m, m * 50)));
            }
        }
        let mut pages = Pages::open(&paths(), Access::Write, &settings(&disk)).unwrap();
        pages.append(&url(1), at(1), Form::Plain, b"again").unwrap();
        pages.close().unwrap();
        sound(&disk);
    }
}

/// Captures again and again; `known` is up to where readers can count on it.
fn busy(settings: &Settings, expected: u64, known: &mut Option<usize>) -> Result<()> {
    let mut pages = CreatePages { expected, ..CreatePages::new(5) }.create(&paths(), settings)?;
    for n in 0..12 {
        pages.append(b"always", at(n as i64), Form::Plain, &event(n, 100))?;
        for k in 0..4 {
            pages.append_from(&url(n * 4 + k), at(n as i64), Form::Plain, &mut &event(n, 300)[..])?;
        }
        if n % 3 > 0 {
            if n % 3 == 1 {
                pages.flush()?;
            } else {
                pages.sync()?;
            }
            *known = Some(n);
        }
    }
    pages.close()
}

/// The disk as readers find it between any two writes of a writer that lives; the cells of its indexes fit into memory,
/// or do not.
#[test]
fn captures_are_whole_between_any_two_writes() {
    for (expected, index_memory_bytes) in [(3, 1 << 20), (6000, 0)] {
        for cut in 0.. {
            let disk = FaultFs::new();
            disk.cut_after(cut);
            let mut known = None;
            let done = busy(&Settings { index_memory_bytes, ..settings(&disk) }, expected, &mut known).is_ok();
            if let Some(known) = known {
                let disk = disk.reboot(Loss::None);
                let pages = Pages::open_as(&paths(), Access::Read, &settings(&disk), true).unwrap();
                let context = format!("{expected} expected, after {cut} writes");
                let newest = pages.newest(b"always").unwrap();
                let whole = newest.is_some_and(|page| {
                    let n = usize::try_from(page.time.0 - at(0).0).unwrap();
                    n >= known && page.event == event(n, 100)
                });
                assert!(whole, "{context}");
                assert_eq!(pages.newest(&url(known * 4)).unwrap().unwrap().event, event(known, 300), "{context}");
                let mut scan = pages.scan();
                while let Some(page) = scan.next_page().unwrap() {
                    let n = usize::try_from(page.time.0 - at(0).0).unwrap();
                    let len = if page.url == b"always" { 100 } else { 300 };
                    assert!(page.event.unwrap() == event(n, len), "{context}");
                }
            }
            if done {
                assert!(cut > 40, "{cut}");
                break;
            }
        }
    }
}
