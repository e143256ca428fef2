//! Captures into a seqdb container: the door in.
//!
//! ```text
//! OUT/NAME.data    the records of each event as one file, called by URL and time; a warcinfo record first
//! OUT/NAME.idx     name → event        OUT/NAME.urls   URL → newest event
//! OUT/NAME.time    time → place        OUT/NAME.lock
//! ```
//! Only the data file is synced while the crawl runs: its end goes into the journal, and a resume cuts it there and
//! builds the indexes from it. The indexes are shown to readers now and then, not synced. A run that ends closes them all.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use trawl_io::{Fs, describe_holder};
use trawl_model::{Capture, CaptureSink, Carries, Clock, DoorError, Durable, Place, Summary, UnixMillis};
use trawl_seqdb::{Access, CreatePages, Form, FsPaths, Pages, Settings, SyncPolicy, pages, silent};
use trawl_warc::{Compression, IdSource, Prepared, Preparer, SinkOptions, WarcReader};

/// Events up to this size are appended in one step.
const WHOLE_BYTES: u64 = 4 << 20;
/// Memory for the cells of each index.
const INDEX_MEMORY: u64 = 64 << 20;
/// Milliseconds after which captures are found by readers, if something is synced: each time costs a write for every
/// part of an index that changed.
const SHOW_EVERY: i64 = 5_000;

/// An event and what it is called by.
#[derive(Debug)]
pub struct Stamped {
    pub(crate) url: String,
    pub(crate) time: UnixMillis,
    pub(crate) prepared: Prepared,
}

/// Writes capture events to a seqdb container.
pub struct PagesSink {
    pages: Pages,
    preparer: Preparer,
    file: Arc<str>,
    form: Form,
    summary: Summary,
    clock: Clock,
    /// When readers were last shown the indexes.
    shown: Option<UnixMillis>,
    /// After a failed write nothing more is written: what was committed is cut back to by a resume.
    broken: bool,
}

impl PagesSink {
    /// The file whose end says how far a container goes.
    pub(crate) fn file_name(name: &str) -> String {
        format!("{name}.{}", trawl_seqdb::design::DATA_SUFFIX)
    }

    /// Starts a container called `name` in `dir`. Of the options, compression and what the archive says of itself count.
    pub fn create(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        name: &str,
        options: &SinkOptions,
        ids: &Arc<dyn IdSource>,
        clock: &Clock,
    ) -> Result<Self, DoorError> {
        let paths = FsPaths::new(dir, name)?;
        let fsgen = i64::try_from(u128::from_be_bytes(ids.next_id()) >> 66).unwrap_or(0).max(1);
        let pages = CreatePages::new(fsgen).create(&paths, &settings(fs, &options.info.software, clock))?;
        let mut sink = Self::over(pages, fs, dir, name, options, ids, clock);
        let now = clock.now();
        let prepared = sink.preparer.info(&options.info, &sink.file, now)?;
        sink.append(Stamped { url: String::new(), time: now, prepared })?;
        sink.summary.events = 0;
        Ok(sink)
    }

    /// Goes on with a container after a crash: keeps exactly what `committed` says was made durable, `None` for nothing.
    pub fn resume(
        fs: &Arc<dyn Fs>,
        dir: &Path,
        name: &str,
        options: &SinkOptions,
        ids: &Arc<dyn IdSource>,
        clock: &Clock,
        committed: Option<&Durable>,
    ) -> Result<Self, DoorError> {
        let paths = FsPaths::new(dir, name)?;
        let Some(durable) = committed.filter(|durable| durable.end > 0) else {
            let url_index = pages::url_index_path(&paths);
            for path in [paths.data(), paths.index(), paths.time(), paths.lock(), url_index] {
                match fs.remove_file(&path) {
                    Err(e) if !e.is_not_found() => return Err(trawl_seqdb::Error::from(e).into()),
                    _ => {}
                }
            }
            return Self::create(fs, dir, name, options, ids, clock);
        };
        if durable.file != Self::file_name(name) {
            let reason = format!("expected {}, the container of this run", Self::file_name(name));
            return Err(trawl_warc::Error::Refused { file: durable.file.clone(), reason }.into());
        }
        let settings = settings(fs, &options.info.software, clock);
        pages::cut(&paths, &settings, durable.end, &silent)?;
        let pages = Pages::open(&paths, Access::Write, &settings)?;
        let info = first_record_id(&pages)?;
        let sink = Self::over(pages, fs, dir, name, options, ids, clock);
        if let Some(id) = info {
            sink.preparer.set_warcinfo(&id);
        }
        Ok(sink)
    }

    fn over(
        pages: Pages,
        fs: &Arc<dyn Fs>,
        dir: &Path,
        name: &str,
        options: &SinkOptions,
        ids: &Arc<dyn IdSource>,
        clock: &Clock,
    ) -> Self {
        let preparer = Preparer::new(options.compression, options.level, fs.clone(), dir, ids.clone());
        let form = match options.compression {
            Compression::None => Form::Plain,
            Compression::Gzip => Form::Gzip,
            Compression::Zstd => Form::Zstd,
        };
        let file = Self::file_name(name).into();
        let (summary, clock) = (Summary::default(), clock.clone());
        PagesSink { pages, preparer, file, form, summary, clock, shown: None, broken: false }
    }

    /// Makes events ready on other threads.
    pub fn preparer(&self) -> Preparer {
        self.preparer.clone()
    }

    fn append(&mut self, event: Stamped) -> Result<Place, DoorError> {
        let Stamped { url, time, prepared } = event;
        let (url, time) = pages::nameable(url.as_bytes(), time);
        let place = if prepared.len_bytes() <= WHOLE_BYTES {
            let mut bytes = Vec::with_capacity(usize::try_from(prepared.len_bytes()).unwrap_or(0));
            prepared.reader().read_to_end(&mut bytes).map_err(|e| DoorError::new(trawl_model::Advice::Stop, e))?;
            self.pages.append(url, time, self.form, &bytes)?
        } else {
            self.pages.append_from(url, time, self.form, &mut prepared.reader())?
        };
        self.summary.events += 1;
        self.summary.records += prepared.records().len() as u64;
        let length = prepared.records().first().map_or(0, |record| record.len_bytes());
        Ok(Place::new(self.file.clone(), place.offset, length))
    }

    fn guarded<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, DoorError>) -> Result<T, DoorError> {
        if self.broken {
            let reason = "an earlier write failed; resume from what was committed".to_owned();
            return Err(trawl_warc::Error::Refused { file: self.file.to_string(), reason }.into());
        }
        act(self).inspect_err(|_| self.broken = true)
    }
}

impl CaptureSink for PagesSink {
    type Prepared = Stamped;

    fn prepare(&self, capture: Capture<'_>) -> Result<Stamped, DoorError> {
        let (url, time) = (capture.url.clone(), capture.started_at);
        Ok(Stamped { url, time, prepared: self.preparer.prepare(capture)? })
    }

    fn commit(&mut self, prepared: Stamped) -> Result<Place, DoorError> {
        self.guarded(|sink| sink.append(prepared))
    }

    fn sync(&mut self) -> Result<Durable, DoorError> {
        self.guarded(|sink| {
            let end = sink.pages.sync()?;
            let now = sink.clock.now();
            if sink.shown.is_none_or(|shown| now.0.saturating_sub(shown.0) >= SHOW_EVERY) {
                sink.pages.flush()?;
                sink.shown = Some(now);
            }
            Ok(Durable { file: sink.file.to_string(), end })
        })
    }

    fn finish(mut self) -> Result<Summary, DoorError> {
        let end = self.guarded(|sink| Ok(sink.pages.sync()?))?;
        self.summary.files = vec![(self.file.to_string(), end)];
        self.pages.close()?;
        Ok(self.summary)
    }

    fn carries(&self) -> Carries {
        Carries::all()
    }
}

fn settings(fs: &Arc<dyn Fs>, software: &str, clock: &Clock) -> Settings {
    let holder = describe_holder(software, &clock.now().rfc3339_seconds());
    Settings {
        sync: SyncPolicy::Data,
        index_memory_bytes: INDEX_MEMORY,
        // What was archived is rarely wanted soon.
        data_caching: false,
        ..Settings::new(clock.clone(), holder).on(fs.clone())
    }
}

/// Id of the first record of a container, which is its `warcinfo`.
fn first_record_id(pages: &Pages) -> Result<Option<String>, DoorError> {
    let mut scan = pages.scan();
    let Some(event) = scan.next_page()?.and_then(|page| page.event.map(<[u8]>::to_vec)) else { return Ok(None) };
    let mut reader = WarcReader::builder().from_read(std::io::Cursor::new(event), "warcinfo");
    let id = reader.next_record()?.and_then(|record| record.header().record_id().map(|id| id.into_owned()));
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
    use trawl_warc::WarcInfo;

    #[test]
    fn readers_find_what_was_synced_while_the_crawl_goes_on() {
        let temp = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(trawl_io::RealFs);
        let (ids, now) = (AtomicU8::new(1), Arc::new(AtomicI64::new(0)));
        let ids: Arc<dyn IdSource> = Arc::new(move || [ids.fetch_add(1, Ordering::Relaxed); 16]);
        let told = now.clone();
        let clock = Clock::new(move || UnixMillis(told.load(Ordering::Relaxed)));
        let options = SinkOptions::new("t", "run", None, WarcInfo::default()).unwrap();
        let mut sink = PagesSink::create(&fs, temp.path(), "t", &options, &ids, &clock).unwrap();
        let mut add = |url: &str| {
            let prepared = sink.preparer.info(&options.info, "t", clock.now()).unwrap();
            sink.commit(Stamped { url: url.into(), time: clock.now(), prepared }).unwrap();
            sink.sync().unwrap();
        };
        let reader = Settings::new(Clock::fixed(UnixMillis(0)), "reader");
        let found = |url: &str| {
            let pages = Pages::open(&FsPaths::new(temp.path(), "t").unwrap(), Access::Read, &reader).unwrap();
            pages.newest(url.as_bytes()).unwrap().is_some()
        };
        add("https://a.example/");
        assert!(found("https://a.example/"));
        now.store(SHOW_EVERY - 1, Ordering::Relaxed);
        add("https://b.example/");
        now.store(SHOW_EVERY, Ordering::Relaxed);
        add("https://c.example/");
        assert!(["a", "b", "c"].iter().all(|host| found(&format!("https://{host}.example/"))));
    }
}
