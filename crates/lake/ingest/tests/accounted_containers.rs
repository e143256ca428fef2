//! As `accounted.rs`, for containers that are not files of records one after the other: WACZ, seqdb, Nutch segments,
//! captures.parquet, `.meguri`. Each is made from one archive; a damaged one gives everything it held, as rows, rejects and
//! counted others, or an error.

mod common;

use common::write;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_archive::{Creation, Registry, Target, convert};
use trawl_ingest::source::{self, Format};
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode};
use trawl_model::{Aside, Clock, IdSource, Split, UnixMillis, UrlSource};

#[derive(Default)]
struct Ids(AtomicU64);

impl IdSource for Ids {
    fn next_id(&self) -> [u8; 16] {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1).to_be_bytes()
    }
}

const CAPTURES: usize = 6;

fn warc() -> Vec<u8> {
    let record = |n: usize| {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{}", "hello ".repeat(n + 1));
        let id = format!("WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{n:012}>\r\n");
        let date = "WARC-Date: 2026-06-24T01:02:03Z\r\n";
        let about = format!("WARC-Target-URI: http://a{n}.example/\r\nContent-Type: application/http\r\n");
        let length = block.len();
        format!("WARC/1.0\r\nWARC-Type: response\r\n{id}{date}{about}Content-Length: {length}\r\n\r\n{block}\r\n\r\n")
    };
    (0..CAPTURES).map(record).collect::<String>().into_bytes()
}

/// Files by path.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn read(fs: &Arc<dyn Fs>, path: &Path) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(fs.metadata(path).unwrap().len).unwrap()];
    let mut at = 0;
    let file = fs.open(path, Mode::Read).unwrap();
    while at < bytes.len() {
        at += file.read_at(at as u64, &mut bytes[at..]).unwrap();
    }
    bytes
}

/// Everything below a path, or beside it under names that begin so.
fn files_of(fs: &Arc<dyn Fs>, dir: &Path, prefix: &str, out: &mut Files) {
    for entry in fs.list(dir).unwrap() {
        let path = dir.join(&entry.name);
        if !entry.name.to_string_lossy().starts_with(prefix) {
            continue;
        }
        match entry.is_dir {
            true => files_of(fs, &path, "", out),
            false => drop(out.insert(path.clone(), read(fs, &path))),
        }
    }
}

/// The files of a container of this name.
fn container(name: &str) -> Files {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    fs.create_dir_all(Path::new("d")).unwrap();
    write(&fs, "d/in.warc", &warc());
    let registry = Registry::default();
    let target = Target::File(Path::new("d").join(name));
    let creation = Creation {
        temp_dir: "d".into(),
        ..Creation::new(fs.clone(), target, Arc::new(Ids::default()), Clock::fixed(UnixMillis(1_782_262_900_000)))
    };
    let sources = registry.files(&fs, Path::new("d/in.warc")).unwrap();
    let done = convert(&registry, &sources, creation, false, &mut |e| panic!("{e}"), &mut |_| {}).unwrap();
    assert!(done.records >= CAPTURES as u64, "{done:?}");
    let mut files = Files::new();
    files_of(&fs, Path::new("d"), name.split('.').next().unwrap(), &mut files);
    files
}

/// Rows, rejects, and what is counted aside.
fn told(files: &Files, name: &str, format: &str) -> Result<(usize, usize, usize), String> {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    for (path, bytes) in files {
        fs.create_dir_all(path.parent().unwrap()).unwrap();
        write(&fs, path.to_str().unwrap(), bytes);
    }
    let format: Format = format.parse().unwrap();
    let source = source::open(&fs, &Path::new("d").join(name), Some(format)).map_err(|e| e.to_string())?;
    let (mut rows, mut rejects, mut asides) = (0, 0, 0);
    for Split { start, end } in source.splits(u64::MAX).map_err(|e| e.to_string())? {
        let mut each = |_, item: Result<_, _>| {
            *(if item.is_ok() { &mut rows } else { &mut rejects }) += 1;
            Ok(())
        };
        source
            .read_all(Split { start, end }, &mut each, &mut |_, what| {
                asides += usize::from(matches!(what, Aside::Record(_)))
            })
            .map_err(|e| e.to_string())?;
    }
    Ok((rows, rejects, asides))
}

/// Whether the damage is one that nothing could notice: bytes that say nothing about what is held.
fn check(name: &str, format: &str, files: &Files, whole: (usize, usize, usize)) {
    let all = |(rows, rejects, asides): (usize, usize, usize)| rows + rejects + asides;
    let mut silent = Vec::new();
    for path in files.keys() {
        let bytes = &files[path];
        let step = (bytes.len() / 400).max(1);
        let damage = (0..bytes.len()).step_by(step).flat_map(|at| [Some(at % 8), None].map(|bit| (at, bit)));
        for (at, bit) in damage {
            let mut damaged = files.clone();
            let bytes = damaged.get_mut(path).unwrap();
            match bit {
                Some(bit) => bytes[at] ^= 1 << bit,
                None => bytes.truncate(at),
            }
            if let Ok(found) = told(&damaged, name, format)
                && found.1 == 0
                && all(found) < all(whole)
            {
                silent.push(format!("{} at {at} of {} ({bit:?}): {found:?}", path.display(), files[path].len()));
            }
        }
    }
    assert!(silent.is_empty(), "{name}: of {whole:?} something vanished without a word:\n{}", silent.join("\n"));
}

#[test]
fn wacz() {
    let files = container("a.wacz");
    let whole = told(&files, "a.wacz", "wacz").unwrap();
    assert_eq!((whole.0, whole.1), (CAPTURES, 0));
    check("a.wacz", "wacz", &files, whole);
}

#[test]
fn seqdb() {
    let files = container("a.data");
    let whole = told(&files, "a.data", "seqdb").unwrap();
    assert_eq!((whole.0, whole.1), (CAPTURES, 0));
    check("a.data", "seqdb", &files, whole);
}

#[test]
fn nutch_segment() {
    let files = container("a.segment");
    let whole = told(&files, "a.segment", "nutch").unwrap();
    assert_eq!((whole.0, whole.1), (CAPTURES, 0));
    check("a.segment", "nutch", &files, whole);
}
