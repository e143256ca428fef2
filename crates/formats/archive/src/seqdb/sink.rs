//! Captures into a seqdb container: the door in.
//!
//! ```text
//! DIR/NAME.data    the records of each event as one file, called by URL and time
//! DIR/NAME.idx     name → event        DIR/NAME.urls   URL → newest event
//! DIR/NAME.time    time → place        DIR/NAME.lock
//! ```
//! Only the data file is synced while a crawl runs: its end goes into the journal, and a resume cuts it there and
//! builds the indexes from it. The indexes are shown to readers now and then, not synced. A run that ends closes them all.
//! A container that is no run's has another name until it is complete.

use super::paths_of;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::format::{Creation, Target};
use trawl_io::{Fs, describe_holder};
use trawl_model::{
    Advice, CaptureSink, Carries, Clock, DoorError, Durable, Place, Prepared, Preparer, Summary, UnixMillis,
};
use trawl_seqdb::{Access, CreatePages, Form, FsPaths, Pages, Settings, SyncPolicy, pages, silent};
use trawl_warc::{Compression, EventPreparer, PreparedEvent, WarcReader};

/// Events up to this size are appended in one step.
const WHOLE_BYTES: u64 = 4 << 20;
/// Memory for the cells of each index.
const INDEX_MEMORY: u64 = 64 << 20;
/// Milliseconds after which captures are found by readers, if something is synced: each time costs a write for every
/// part of an index that changed.
const SHOW_EVERY: i64 = 5_000;

/// Writes capture events to a seqdb container.
pub(super) struct PagesSink {
    pages: Pages,
    preparer: Arc<EventPreparer>,
    /// The file whose end says how far the container goes.
    file: Arc<str>,
    summary: Summary,
    clock: Clock,
    /// When readers were last shown the indexes.
    shown: Option<UnixMillis>,
    /// After a failed write nothing more is written: what was committed is cut back to by a resume.
    broken: bool,
    aside: Option<Aside>,
}

/// A container under construction, by another name. What is left of it goes when this does.
struct Aside {
    fs: Arc<dyn Fs>,
    paths: FsPaths,
    target: FsPaths,
}

impl Drop for Aside {
    fn drop(&mut self) {
        // What is complete has left this name; an error about the rest cannot be returned from here.
        let _ = remove(&*self.fs, &self.paths);
    }
}

/// The files of a container, the one that speaks for the others last.
fn files(paths: &FsPaths) -> [PathBuf; 4] {
    [paths.index(), paths.time(), pages::url_index_path(paths), paths.data()]
}

fn remove(fs: &dyn Fs, paths: &FsPaths) -> trawl_io::Result<()> {
    for path in files(paths).into_iter().chain([paths.lock()]) {
        match fs.remove_file(&path) {
            Err(e) if !e.is_not_found() => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

impl PagesSink {
    /// Starts a container.
    pub(super) fn create(creation: &Creation) -> Result<Self, DoorError> {
        let target = paths_of(&creation.target)?;
        let aside = match creation.target {
            Target::Run { .. } => None,
            Target::File(_) => {
                let paths = FsPaths::new(target.base(), &format!("{}.part", target.name()))?;
                remove(&*creation.fs, &paths)?;
                Some(Aside { fs: creation.fs.clone(), paths, target: target.clone() })
            }
        };
        let paths = aside.as_ref().map_or(&target, |aside| &aside.paths);
        let fsgen = i64::try_from(u128::from_be_bytes(creation.ids.next_id()) >> 66).unwrap_or(0).max(1);
        let pages = CreatePages::new(fsgen).create(paths, &settings(creation))?;
        let mut sink = Self::over(pages, creation, &target, aside);
        if creation.introduce {
            let now = creation.clock.now();
            let info = sink.preparer.info(&sink.file, now)?;
            sink.append("", now, &info)?;
        }
        Ok(sink)
    }

    /// Goes on with a container after a crash: keeps exactly what `committed` says was made durable, `None` for nothing.
    pub(super) fn resume(creation: &Creation, committed: Option<&Durable>) -> Result<Self, DoorError> {
        let paths = paths_of(&creation.target)?;
        let Some((file, end)) = committed.and_then(|durable| durable.files.last()).filter(|(_, end)| *end > 0) else {
            remove(&*creation.fs, &paths)?;
            return Self::create(creation);
        };
        let own = paths.data().file_name().unwrap_or_default().to_string_lossy().into_owned();
        if *file != own {
            let message = format!("{file}: expected {own}, the container of this run");
            return Err(DoorError::new(Advice::Stop, message));
        }
        let settings = settings(creation);
        pages::cut(&paths, &settings, *end, &silent)?;
        let pages = Pages::open(&paths, Access::Write, &settings)?;
        let info = first_record_id(&pages)?;
        let sink = Self::over(pages, creation, &paths, None);
        if let Some(id) = info {
            sink.preparer.set_warcinfo(&id);
        }
        Ok(sink)
    }

    fn over(pages: Pages, creation: &Creation, target: &FsPaths, aside: Option<Aside>) -> Self {
        let preparer = Arc::new(EventPreparer::new(creation, Compression::Gzip, target.base()));
        let file = target.data().file_name().unwrap_or_default().to_string_lossy().into();
        let (summary, clock) = (Summary::default(), creation.clock.clone());
        PagesSink { pages, preparer, file, summary, clock, shown: None, broken: false, aside }
    }

    fn append(&mut self, url: &str, time: UnixMillis, event: &PreparedEvent) -> Result<Place, DoorError> {
        let (url, time) = pages::nameable(url.as_bytes(), time);
        let place = if event.len_bytes() <= WHOLE_BYTES {
            let mut bytes = Vec::with_capacity(usize::try_from(event.len_bytes()).unwrap_or(0));
            event.reader().read_to_end(&mut bytes)?;
            self.pages.append(url, time, Form::Gzip, &bytes)?
        } else {
            self.pages.append_from(url, time, Form::Gzip, &mut event.reader())?
        };
        self.summary.records += event.records().len() as u64;
        let length = event.records().first().map_or(0, |record| record.len_bytes());
        Ok(Place::new(self.file.clone(), place.offset, length))
    }

    fn guarded<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, DoorError>) -> Result<T, DoorError> {
        if self.broken {
            let message = format!("{}: an earlier write failed; resume from what was committed", self.file);
            return Err(DoorError::new(Advice::Stop, message));
        }
        act(self).inspect_err(|_| self.broken = true)
    }
}

impl CaptureSink for PagesSink {
    fn preparer(&self) -> Arc<dyn Preparer> {
        self.preparer.clone()
    }

    fn commit(&mut self, prepared: Prepared) -> Result<Option<Place>, DoorError> {
        self.summary.add(&prepared);
        let (url, time) = (prepared.url.clone(), prepared.time);
        let event = prepared.into_contents()?;
        self.guarded(|sink| sink.append(&url, time, &event).map(Some))
    }

    fn sync(&mut self) -> Result<Durable, DoorError> {
        self.guarded(|sink| {
            let end = sink.pages.sync()?;
            let now = sink.clock.now();
            if sink.shown.is_none_or(|shown| now.0.saturating_sub(shown.0) >= SHOW_EVERY) {
                sink.pages.flush()?;
                sink.shown = Some(now);
            }
            Ok(Durable::one(&*sink.file, end))
        })
    }

    fn finish(mut self: Box<Self>) -> Result<Summary, DoorError> {
        let end = self.guarded(|sink| Ok(sink.pages.sync()?))?;
        let PagesSink { pages, file, mut summary, aside, .. } = *self;
        pages.close()?;
        let mut bytes = end;
        if let Some(Aside { fs, paths, target }) = &aside {
            bytes = 0;
            for (from, to) in files(paths).iter().zip(files(target)) {
                bytes += fs.metadata(from)?.len;
                fs.rename(from, &to)?;
            }
            fs.sync_dir(target.base())?;
        }
        summary.files = vec![(file.to_string(), bytes)];
        Ok(summary)
    }

    fn carries(&self) -> Carries {
        Carries::ALL
    }
}

fn settings(creation: &Creation) -> Settings {
    let holder = describe_holder(&creation.about.software, &creation.clock.now().rfc3339_seconds());
    Settings {
        sync: SyncPolicy::Data,
        index_memory_bytes: INDEX_MEMORY,
        // What was archived is rarely wanted soon.
        data_caching: false,
        ..Settings::new(creation.clock.clone(), holder).on(creation.fs.clone())
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
    use trawl_model::{Body, RawEvent, RawRecord};

    #[test]
    fn readers_find_what_was_synced_while_the_crawl_goes_on() {
        let temp = tempfile::tempdir().unwrap();
        let (ids, now) = (AtomicU8::new(1), Arc::new(AtomicI64::new(0)));
        let ids = Arc::new(move || [ids.fetch_add(1, Ordering::Relaxed); 16]);
        let told = now.clone();
        let clock = Clock::new(move || UnixMillis(told.load(Ordering::Relaxed)));
        let target = Target::run(temp.path(), "t", "run");
        let creation = Creation::new(Arc::new(trawl_io::RealFs), target, ids, clock.clone());
        let mut sink = PagesSink::create(&creation).unwrap();
        let mut add = |url: &str| {
            let header = "WARC/1.1\r\nWARC-Type: x\r\nWARC-Record-ID: <urn:x:1>\r\nContent-Length: 0\r\n\r\n";
            let record = RawRecord { kind: "x".into(), header: header.into(), body: Body::empty() };
            let records = vec![(record, Place::new("x", 0, 0))];
            let event = RawEvent { url: Some(url.into()), time: Some(clock.now()), records };
            sink.commit(sink.preparer().prepare_records(event).unwrap()).unwrap();
            sink.sync().unwrap();
        };
        let reader = Settings::new(trawl_seqdb::Clock::fixed(UnixMillis(0)), "reader");
        let found = |url: &str| {
            let pages = Pages::open(&FsPaths::new(temp.path(), "t-run").unwrap(), Access::Read, &reader).unwrap();
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
