use super::*;
use crate::tests_common::{captures, creation, describe, response, sink, text};
use crate::{Compression, Limits, RecordType, WarcReader, WarcSource};
use std::path::Path;
use std::sync::Arc;
use trawl_io::fault::{FaultFs, Loss};
use trawl_io::format::{Creation, Target};
use trawl_io::read_at::FileReader;
use trawl_io::{Fs, RealFs};
use trawl_model::*;

/// Bytes that do not compress, so that files roll soon.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// A run whose files roll as soon as they may.
fn small_rolls(fs: Arc<dyn Fs>, dir: &Path) -> Creation {
    let mut creation = Creation { level: Some(1), ..creation(fs, dir) };
    if let Target::Run { roll_bytes, .. } = &mut creation.target {
        *roll_bytes = 1 << 20;
    }
    creation
}

fn rolling(fs: Arc<dyn Fs>, dir: &Path, compression: Compression) -> Box<WarcSink> {
    Box::new(WarcSink::create(&small_rolls(fs, dir), compression).unwrap())
}

fn events(n: u64) -> impl Iterator<Item = Capture<'static>> {
    (0..n).map(|i| response(i, noise(i, 400 << 10)))
}

fn headers(path: &Path) -> Vec<(RecordType, Vec<u8>)> {
    let mut reader = WarcReader::builder().open(path).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        all.push((record.header().record_type(), record.header().raw().to_vec()));
    }
    all
}

#[test]
fn the_bytes_of_an_event() {
    let dir = tempfile::tempdir().unwrap();
    let target = Target::run(dir.path(), "p", "r");
    let plain = Creation { about: Default::default(), target, ..creation(Arc::new(RealFs), dir.path()) };
    let mut sink = Box::new(WarcSink::create(&plain, Compression::None).unwrap());
    let mut capture = response(0, b"hello".to_vec());
    capture.facts.meta_json = Some("{\"a\":1}".into());
    let prepared = sink.preparer().prepare(capture).unwrap();
    assert_eq!(prepared.record_ids.len(), 3);
    let event = prepared.len_bytes;
    sink.commit(prepared).unwrap();
    sink.finish().unwrap();
    let bytes = std::fs::read(dir.path().join("p-r-00000.warc")).unwrap();
    let golden = include_bytes!("golden/event.warc");
    assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(golden));
    let start = bytes.len() - usize::try_from(event).unwrap();
    assert!(bytes[start..].starts_with(b"WARC/1.1\r\nWARC-Type: response\r\n"));
}

#[test]
fn files_roll_between_events_and_name_their_own_warcinfo() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = rolling(Arc::new(RealFs), dir.path(), Compression::Gzip);
    for capture in events(8) {
        sink.write(capture).unwrap();
    }
    let summary = sink.finish().unwrap();
    assert_eq!(
        summary.files.iter().map(|(n, _)| n.as_str()).collect::<Vec<_>>(),
        ["trawl-run7-00000.warc.gz", "trawl-run7-00001.warc.gz", "trawl-run7-00002.warc.gz"]
    );
    assert_eq!((summary.events, summary.records), (8, 8 * 3 + 3));
    for (name, len) in &summary.files {
        let path = dir.path().join(name);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), *len);
        let records = headers(&path);
        assert_eq!(records[0].0, RecordType::Warcinfo);
        let id = records[0].1.split(|b| *b == b'\n').find(|l| l.starts_with(b"WARC-Record-ID")).unwrap();
        let id = &id[b"WARC-Record-ID: ".len()..id.len() - 1];
        for (kind, header) in &records[1..] {
            assert!(memchr::memmem::find(header, &[b"WARC-Warcinfo-ID: ", id].concat()).is_some(), "{kind:?}");
        }
        let kinds: Vec<_> = records[1..].iter().map(|r| r.0).collect();
        for event in kinds.chunks(3) {
            assert_eq!(event, [RecordType::Response, RecordType::Request, RecordType::Metadata]);
        }
    }
}

#[test]
fn prepared_in_parallel_or_one_by_one_the_bytes_are_the_same() {
    for compression in [Compression::Gzip, Compression::Zstd, Compression::None] {
        let run = |ahead: bool| {
            let dir = tempfile::tempdir().unwrap();
            let mut sink = rolling(Arc::new(RealFs), dir.path(), compression);
            let preparer = sink.preparer.clone();
            let mut tickets: Vec<_> = events(7).chain(captures()).map(|c| (preparer.event_ids(), c)).collect();
            if ahead {
                // Prepared by many threads before the first commit: none of them knows which file it will be in.
                let prepared: Vec<_> = std::thread::scope(|scope| {
                    let spawn = |(ids, capture)| {
                        let preparer = preparer.clone();
                        scope.spawn(move || preparer.prepare_with(capture, ids).unwrap())
                    };
                    let handles: Vec<_> = tickets.drain(..).map(spawn).collect();
                    handles.into_iter().map(|h| h.join().unwrap()).collect()
                });
                prepared.into_iter().for_each(|p| drop(sink.commit(p).unwrap()));
            } else {
                for (ids, capture) in tickets {
                    let prepared = preparer.prepare_with(capture, ids).unwrap();
                    sink.commit(prepared).unwrap();
                }
            }
            let summary = sink.finish().unwrap();
            let read = |(name, _): &(String, u64)| std::fs::read(dir.path().join(name)).unwrap();
            summary.files.iter().map(read).collect::<Vec<_>>()
        };
        let (serial, parallel) = (run(false), run(true));
        assert_eq!(serial.len(), 3);
        assert!(serial == parallel, "{compression:?}");
    }
}

#[test]
fn a_large_body_streams_through() {
    let dir = tempfile::tempdir().unwrap();
    let body = [text(1, 5 << 20), noise(1, 1 << 20)].concat();
    let mut sink = sink(dir.path());
    let mut capture = response(0, body.clone());
    let Outcome::Response { message, .. } = &mut capture.outcome else { unreachable!() };
    message.body = Body::Reader { len_bytes: body.len() as u64, reader: Box::new(&body[..]) };
    let place = sink.write(capture).unwrap();
    let summary = sink.finish().unwrap();
    let path = dir.path().join(&summary.files[0].0);
    let mut source = WarcSource::open(&path, Limits::default(), false).unwrap();
    source.next_owned().unwrap();
    let (entry, found) = source.next_owned().unwrap().unwrap();
    assert_eq!(Some(found), place);
    let Entry::Capture(mut capture) = entry else { panic!("no capture") };
    let Outcome::Response { message, payload_digest, .. } = &mut capture.outcome else { panic!("no response") };
    assert!(matches!(message.body, Body::Spooled(_)));
    assert!(message.body.read_to_bytes(u64::MAX).unwrap() == body);
    assert_eq!(*payload_digest, Some(crate::digest::sha1_of(&[&body])));
    let others = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(others, 1, "spools leave nothing behind");
}

#[test]
fn a_run_is_not_started_over_another() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink(dir.path());
    sink.write(response(0, Vec::new())).unwrap();
    drop(sink);
    let mut again = creation(Arc::new(RealFs), dir.path());
    let error = WarcSink::create(&again, Compression::Gzip).err().unwrap();
    assert!(error.to_string().contains("already holds files of this run"));
    if let Target::Run { roll_bytes, .. } = &mut again.target {
        *roll_bytes = 1000;
    }
    assert!(WarcSink::create(&again, Compression::Gzip).err().unwrap().to_string().contains("at least"));
}

/// What is on a disk: descriptions of all captures, in file order; every file must be whole.
fn stored(fs: &dyn Fs, dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for entry in fs.list(dir).unwrap() {
        let file = FileReader::open_in(fs, &dir.join(&entry.name)).unwrap();
        let mut source = WarcSource::over(Arc::new(file), Limits::default(), false);
        while let Some((entry, _)) = source.next_owned().unwrap() {
            if let Entry::Capture(capture) = entry {
                all.push(describe(*capture));
            }
        }
    }
    all
}

/// Writes events `from..`, syncing after every second one; says what was acknowledged and how far it came.
fn write(
    mut sink: Box<WarcSink>,
    from: u64,
    total: u64,
    acknowledged: &mut (Option<Durable>, u64),
) -> Result<(), DoorError> {
    for (i, capture) in events(total).enumerate().skip(usize::try_from(from).unwrap()) {
        sink.write(capture)?;
        if i % 2 == 1 {
            *acknowledged = (Some(sink.sync()?), i as u64 + 1);
        }
    }
    *acknowledged = (Some(sink.sync()?), total);
    sink.finish().map(|_| ())
}

#[test]
fn a_power_cut_loses_nothing_acknowledged_and_doubles_nothing() {
    const TOTAL: u64 = 6;
    let dir = Path::new("/run");
    let wanted: Vec<_> = events(TOTAL).map(describe).collect();
    let mut cuts = 0;
    for cut in 0.. {
        let disk = FaultFs::new();
        disk.create_dir(dir).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk.cut_after(cut);
        let mut acknowledged = (None, 0);
        let result = WarcSink::create(&small_rolls(disk.shared(), dir), Compression::Gzip)
            .map_err(DoorError::from)
            .and_then(|sink| write(Box::new(sink), 0, TOTAL, &mut acknowledged));
        if result.is_ok() {
            break;
        }
        cuts += 1;
        for loss in Loss::variants(2) {
            let disk = disk.reboot(loss);
            let (durable, done) = acknowledged.clone();
            let sink = WarcSink::resume(&small_rolls(disk.shared(), dir), Compression::Gzip, durable.as_ref());
            let sink = sink.unwrap_or_else(|e| panic!("cut {cut}, {loss:?}: {e}"));
            assert_eq!(stored(&disk, dir), wanted[..usize::try_from(done).unwrap()], "cut {cut}, {loss:?}");
            write(Box::new(sink), done, TOTAL, &mut (None, 0)).unwrap();
            assert_eq!(stored(&disk, dir), wanted, "cut {cut}, {loss:?}, then resumed");
            assert!(disk.files().keys().all(|p| p.extension().is_some_and(|e| e == "gz")));
        }
    }
    assert!(cuts > 10, "{cuts}");
}

#[test]
fn a_full_disk_stops_the_run_and_a_resume_goes_on() {
    let dir = Path::new("/run");
    let disk = FaultFs::new();
    disk.create_dir(dir).unwrap();
    disk.set_capacity(1 << 20);
    let mut acknowledged = (None, 0);
    let sink = rolling(disk.shared(), dir, Compression::Gzip);
    let error = write(sink, 0, 7, &mut acknowledged).unwrap_err();
    assert_eq!(error.advice, Advice::Stop);
    disk.set_capacity(1 << 30);
    let again = small_rolls(disk.shared(), dir);
    let sink = WarcSink::resume(&again, Compression::Gzip, acknowledged.0.as_ref()).unwrap();
    write(Box::new(sink), acknowledged.1, 7, &mut (None, 0)).unwrap();
    assert_eq!(stored(&disk, dir).len(), 7);
}

#[test]
fn after_a_failed_write_nothing_more_is_written() {
    let dir = Path::new("/run");
    let disk = FaultFs::new();
    disk.create_dir(dir).unwrap();
    let mut sink = rolling(disk.shared(), dir, Compression::Gzip);
    disk.fail(trawl_io::fault::Fault::new(trawl_io::fault::Failure::Io));
    let prepared = sink.preparer().prepare(response(0, noise(0, 400 << 10))).unwrap();
    assert!(sink.commit(prepared).is_err());
    disk.heal();
    assert!(sink.write(response(1, Vec::new())).unwrap_err().to_string().contains("an earlier write failed"));
}
