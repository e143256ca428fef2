//! A container of captures.

use crate::explore::{Named, explore_all};
use crate::look::{Look, Pairs};
use crate::tape::{Model, Recorder, Tape};
use crate::{none, path, plain, value};
use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_model::UnixMillis;
use trawl_seqdb::{Access, CreatePages, Error, Filesys, Form, FsPaths, Pages, Result, Settings, pages, silent};

fn paths() -> FsPaths {
    FsPaths::new(path("/"), "p").unwrap()
}

/// In the model a capture is under its URL and time, and the newest of each URL under the URL.
fn captured(url: &str, time: i64, len: usize) -> impl FnOnce(&mut Model) {
    let event = value(url, usize::try_from(time).unwrap(), len);
    let url = url.to_owned();
    move |model| {
        model.insert(format!("{url} {time}").into_bytes(), event.clone());
        // Times come in order, here.
        model.insert(url.into_bytes(), event);
    }
}

fn append(pages: &mut Pages, url: &str, time: i64, len: usize) {
    let event = value(url, usize::try_from(time).unwrap(), len);
    pages.append(url.as_bytes(), UnixMillis(time * 1000), Form::Plain, &event).unwrap();
}

fn capture(tape: &mut Recorder, pages: &mut Pages, url: &str, time: i64, len: usize) {
    tape.step(captured(url, time, len), || append(pages, url, time, len));
}

fn create(disk: &FaultFs, expected: u64) -> Model {
    let create = CreatePages { expected, isz: 16, timemp: 0, ..CreatePages::new(7) };
    let mut pages = create.create(&paths(), &plain(disk)).unwrap();
    let mut model = Model::new();
    for (url, time, len) in [("a", 1, 10), ("b", 1, 20), ("a", 2, 30), ("c", 3, 150)] {
        append(&mut pages, url, time, len);
        captured(url, time, len)(&mut model);
    }
    pages.close().unwrap();
    model
}

fn open_to_write(tape: &mut Recorder) -> Pages {
    let settings = tape.settings().clone();
    tape.shown(|| Pages::open(&paths(), Access::Write, &settings).unwrap())
}

/// New captures of old and new URLs; with few cells both indexes grow.
fn appends(expected: u64, sync_between: bool) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, expected);
    let mut tape = Recorder::new(&disk, first);
    let mut pages = open_to_write(&mut tape);
    for (time, url) in (4..).zip(["a", "d", "b", "a", "e"]) {
        capture(&mut tape, &mut pages, url, time, 40);
        match sync_between {
            true => drop(tape.synced(|| pages.sync().unwrap())),
            false if time % 2 == 0 => tape.shown(|| pages.flush().unwrap()),
            false => {}
        }
    }
    tape.synced(|| pages.close().unwrap());
    tape.end()
}

pub fn compaction() -> Arc<Tape> {
    let disk = FaultFs::new();
    let mut first = create(&disk, 10);
    pages::edit(&paths(), &plain(&disk), |fs| fs.delete_file(b"b\t19700101000001000"), &silent).unwrap();
    first.retain(|key, _| !key.starts_with(b"b"));
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    tape.synced(|| pages::compact(&paths(), &settings, 8, &silent).unwrap());
    let mut pages = open_to_write(&mut tape);
    capture(&mut tape, &mut pages, "a", 5, 20);
    tape.synced(|| pages.close().unwrap());
    tape.end()
}

fn edit() -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, 10);
    let mut tape = Recorder::new(&disk, first);
    let settings = tape.settings().clone();
    let gone = |model: &mut Model| {
        model.retain(|key, _| !key.starts_with(b"b") && key != b"a 2");
        model.insert(b"a".to_vec(), value("a", 1, 10));
    };
    let delete = |fs: &mut Filesys| {
        fs.delete_file(b"b\t19700101000001000")?;
        fs.delete_file(b"a\t19700101000002000")
    };
    tape.whole(gone, || pages::edit(&paths(), &settings, delete, &silent).unwrap());
    tape.end()
}

/// A writer that died after it had flushed another capture.
fn died(disk: &FaultFs) -> Model {
    let first = create(disk, 10);
    let mut pages = Pages::open(&paths(), Access::Write, &plain(disk)).unwrap();
    append(&mut pages, "a", 9, 50);
    append(&mut pages, "lost", 9, 50);
    pages.flush().unwrap();
    first
}

fn repair(died_before: bool) -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = if died_before { died(&disk) } else { create(&disk, 10) };
    let mut tape = Recorder::new(&disk, first.clone());
    let settings = tape.settings().clone();
    if died_before {
        // While somebody has the lock, what was flushed is seen again.
        tape.step(
            |model| {
                captured("a", 9, 50)(model);
                captured("lost", 9, 50)(model)
            },
            || (),
        );
    }
    tape.whole(|model| *model = first, || pages::repair(&paths(), &settings, false, &silent).unwrap());
    tape.end()
}

/// Back to where a caller's own journal says.
pub fn cut() -> Arc<Tape> {
    let disk = FaultFs::new();
    let first = create(&disk, 10);
    let mut pages = Pages::open(&paths(), Access::Write, &plain(&disk)).unwrap();
    let end = pages.sync().unwrap();
    append(&mut pages, "a", 9, 50);
    pages.close().unwrap();
    let mut longer = first.clone();
    captured("a", 9, 50)(&mut longer);
    let mut tape = Recorder::new(&disk, longer);
    let settings = tape.settings().clone();
    tape.whole(|model| *model = first, || pages::cut(&paths(), &settings, end, &silent).unwrap());
    tape.end()
}

fn open(settings: &Settings, look: &mut Look) -> Option<Pages> {
    look.begin();
    Pages::open(&paths(), Access::Read, settings).map_err(|e| look.error("open", &e)).ok()
}

/// The newest of a URL, or the one of a time.
fn get(pages: &Pages, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let text = std::str::from_utf8(key).unwrap();
    let found = match text.split_once(' ') {
        Some((url, time)) => pages.get(url.as_bytes(), UnixMillis(time.parse::<i64>().unwrap() * 1000))?,
        None => pages.newest(key)?,
    };
    Ok(found.map(|page| page.event))
}

/// Captures by URL and time; the newest of each URL by the URL.
fn scan(pages: &Pages) -> Result<Pairs> {
    let mut scan = pages.scan();
    let mut all = Vec::new();
    let mut newest = Model::new();
    while let Some(page) = scan.next_page()? {
        let key = format!("{} {}", String::from_utf8_lossy(page.url), page.time.0 / 1000);
        all.push((key.into_bytes(), page.event.unwrap().to_vec()));
        newest.insert(page.url.to_vec(), page.event.unwrap().to_vec());
    }
    Ok(all.into_iter().chain(newest).collect())
}

fn by_url(settings: &Settings, look: &mut Look) {
    let Some(pages) = open(settings, look) else { return };
    look.keys().iter().for_each(|key| look.one(key, get(&pages, key)));
}

fn by_time(settings: &Settings, look: &mut Look) {
    let Some(pages) = open(settings, look) else { return };
    for key in look.keys() {
        let Ok(Some((url, time))) = std::str::from_utf8(&key).map(|key| key.split_once(' ')) else { continue };
        let time = UnixMillis(time.parse::<i64>().unwrap() * 1000);
        let read = || -> Result<Option<Vec<u8>>> {
            let Some(mut reader) = pages.reader(url.as_bytes(), time)? else { return Ok(None) };
            let mut event = Vec::new();
            std::io::Read::read_to_end(&mut reader, &mut event).unwrap();
            Ok(Some(event))
        };
        look.one(&key, read());
    }
}

fn everything(settings: &Settings, look: &mut Look) {
    let Some(pages) = open(settings, look) else { return };
    look.all(scan(&pages));
}

fn kept(settings: &Settings, look: &mut Look) {
    let Some(mut pages) = open(settings, look) else { return };
    look.one(b"a", get(&pages, b"a"));
    look.begin();
    if let Err(e) = pages.refresh() {
        return look.error("refresh", &e);
    }
    look.keys().iter().for_each(|key| look.one(key, get(&pages, key)));
    look.all(scan(&pages));
}

const READERS: [Named; 4] = [("by URL", by_url), ("by time", by_time), ("everything", everything), ("kept", kept)];

#[test]
fn beside_captures() {
    let tapes = [
        ("appends", appends(20, false)),
        ("appends, synced", appends(20, true)),
        ("growth", appends(1, false)),
        ("edit", edit()),
    ];
    explore_all("captures", &tapes, &READERS, none);
}

#[test]
fn beside_the_compaction_of_captures() {
    let tapes = [("compaction", compaction()), ("needless repair", repair(false)), ("cut", cut())];
    explore_all("captures", &tapes, &READERS, none);
}

/// Before the repair has begun nobody believes the files.
#[test]
fn beside_the_repair_of_captures() {
    explore_all("captures", &[("repair", repair(true))], &READERS, |e| matches!(e, Error::NeedsCheck { .. }));
}
