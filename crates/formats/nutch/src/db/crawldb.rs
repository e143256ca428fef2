//! CrawlDb: the state of every known URL.

use super::install::{Lock, install};
use super::parted::{PartedMap, Scan, current_of};
use super::writer::{Duplicates, PartedWriter, Shape, WriteSettings, WrittenParts};
use super::{Compress, Place};
use crate::types::{CrawlDatum, Status, encoded, whole};
use crate::{Error, Result, class};
use std::path::{Path, PathBuf};
use trawl_hadoop::seq::OpenOptions;
use trawl_hadoop::{MapWritable, Text};
use trawl_io::remove_tree;

/// A CrawlDb that is open for reading.
#[derive(Debug)]
pub struct CrawlDb {
    map: PartedMap,
}

impl CrawlDb {
    /// Opens a CrawlDb, its `current` or `old` generation, or one of its parts.
    pub fn open(dir: &Path, options: &OpenOptions) -> Result<Self> {
        let map = PartedMap::open(&current_of(&*options.fs, dir)?, options)?;
        map.expect(class::CRAWL_DATUM, "CrawlDb")?;
        Ok(CrawlDb { map })
    }

    /// Its parts.
    pub fn map(&self) -> &PartedMap {
        &self.map
    }

    /// The state of a URL; `None` for an unknown one.
    pub fn get(&mut self, url: &[u8]) -> Result<Option<CrawlDatum<'_>>> {
        let dir = self.map.path().to_owned();
        let Some(value) = self.map.get(url)? else { return Ok(None) };
        whole(value, CrawlDatum::decode).map(Some).map_err(|source| Error::Value {
            file: dir,
            offset: 0,
            index: 0,
            class: format!("{} of {}", class::CRAWL_DATUM, Text::new(url)),
            source,
        })
    }

    /// All URLs, part after part.
    pub fn scan(&self) -> Scan {
        self.map.scan()
    }

    /// Starts a CrawlDb; of a URL that comes more than once the last state is kept.
    pub fn writer(compress: Compress, settings: &WriteSettings) -> Result<PartedWriter> {
        let pack = compress.pack(Place::CrawlDb);
        PartedWriter::new(class::CRAWL_DATUM, pack, Shape::MapFile, Duplicates::LastWins, settings)
    }

    /// Writes what `writer` collected as the current generation of the CrawlDb in `dir`; the one before stays as `old`, as
    /// Nutch keeps it.
    pub fn install(writer: PartedWriter, dir: &Path, settings: &WriteSettings) -> Result<WrittenParts> {
        let fs = &settings.fs;
        trawl_io::create_dir_all_synced(&**fs, dir)?;
        let _lock = Lock::take(fs, dir)?;
        let new = dir.join(format!("crawldb-{}", u32::from_be_bytes(first_four(settings)) >> 1));
        let written = writer.finish(&new, &mut |_, _, _| Ok(()));
        let written = written.inspect_err(|_| {
            // The generation that stands is untouched; what is left of the new one has a name of its own.
            let _ = remove_tree(&**fs, &new);
        })?;
        install(&**fs, dir, &new, true)?;
        Ok(written)
    }
}

fn first_four(settings: &WriteSettings) -> [u8; 4] {
    let [a, b, c, d, ..] = settings.marker("install");
    [a, b, c, d]
}

/// Merges CrawlDbs as `mergedb` does: of each URL the state with the latest last fetch (`fetchTime - interval`; 0 if it was
/// never fetched), then with the latest fetch time, then the first; metadata of all, those of newer states first.
pub fn merge_crawldbs(
    inputs: &[PathBuf],
    options: &OpenOptions,
    output: &Path,
    compress: Compress,
    settings: &WriteSettings,
) -> Result<WrittenParts> {
    // Half of the memory sorts, the other half is for the sorter that the output goes through.
    let half = WriteSettings { memory_bytes: settings.memory_bytes / 2, ..settings.clone() };
    let mut sorter = trawl_sort::Sorter::builder(&settings.temp_dir)
        .fs(settings.fs.clone())
        .memory_bytes(half.memory_bytes)
        .threads(settings.threads)
        .build()?;
    for input in inputs {
        let db = CrawlDb::open(input, options)?;
        // They would be missing from the result without a trace.
        if let Some(fault) = db.map().cut() {
            return Err(fault);
        }
        let mut scan = db.scan();
        while let Some(entry) = scan.next_entry()? {
            // A damaged state is an error with its place here, not later when its origin is unknown.
            whole(entry.value, CrawlDatum::decode).map_err(|e| entry.error(e))?;
            sorter.push(entry.key.as_bytes(), entry.value)?;
        }
    }
    let mut writer = CrawlDb::writer(compress, &half)?;
    let mut group: (Vec<u8>, Vec<CrawlDatum<'static>>) = Default::default();
    let mut sorted = sorter.finish()?;
    while let Some(record) = sorted.next_record()? {
        if record.key != group.0 || group.1.is_empty() {
            flush(&mut group, &mut writer)?;
            group.0.clear();
            group.0.extend_from_slice(record.key);
        }
        let datum = whole(record.value, CrawlDatum::decode);
        let datum = datum.map_err(|e| Error::refused(output, format!("a sorted record came back damaged: {e}")))?;
        group.1.push(datum.into_owned());
    }
    flush(&mut group, &mut writer)?;
    CrawlDb::install(writer, output, &half)
}

fn flush(group: &mut (Vec<u8>, Vec<CrawlDatum<'static>>), writer: &mut PartedWriter) -> Result<()> {
    if let Some(datum) = newest(std::mem::take(&mut group.1)) {
        writer.push(&group.0, &encoded(|out| datum.encode(out)))?;
    }
    Ok(())
}

/// When a state was last fetched, by its own words.
fn last_fetch(datum: &CrawlDatum<'_>) -> i64 {
    if datum.status() == Status::DB_UNFETCHED {
        return 0;
    }
    datum.fetch_time.saturating_sub(i64::from(datum.interval.seconds()).saturating_mul(1000))
}

/// The newest of several states, with the metadata of all.
fn newest(states: Vec<CrawlDatum<'static>>) -> Option<CrawlDatum<'static>> {
    let mut kept: Option<CrawlDatum<'static>> = None;
    for state in states {
        let Some(current) = &mut kept else {
            kept = Some(state);
            continue;
        };
        let newer = (last_fetch(&state), state.fetch_time) > (last_fetch(current), current.fetch_time);
        let (mut winner, loser) =
            if newer { (state, std::mem::take(&mut current.metadata)) } else { (current.clone(), state.metadata) };
        winner.metadata = merged(&winner.metadata, loser);
        kept = Some(winner);
    }
    kept
}

/// Entries of `first`, and those of `second` whose keys it does not have.
fn merged(first: &MapWritable<'static>, second: MapWritable<'static>) -> MapWritable<'static> {
    let mut entries = first.entries().to_vec();
    for entry in second.entries() {
        if entries.iter().all(|(key, _)| *key != entry.0) {
            entries.push(entry.clone());
        }
    }
    MapWritable::new(entries)
}
