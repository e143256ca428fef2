//! Appends prepared events to files, rolls between events, and survives power cuts.
//!
//! ```text
//! create ──► NAME.open: warcinfo, events … ──commit, sync── every so often ──► Durable { file, end }
//!                │ size reached, at the next commit            the caller journals it
//!                ▼
//!            NAME.open, complete ──next sync or finish──► NAME          (fsync, rename, fsync directory)
//! resume(committed): older NAME.open complete: renamed; the committed one cut to its end; younger ones removed
//! ```
//!
//! A rolled file keeps its `.open` name until the next `sync` after the roll: only then does the caller's journal say that
//! it is complete, and only complete files have final names.

use super::event::{EventPreparer, PreparedEvent};
use super::id::record_id;
use super::member::spool_error;
use super::names::{FileNames, OPEN_SUFFIX};
use crate::container::Compression;
use crate::error::{Error, Result};
use crate::reader::WarcReader;
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::format::{Creation, Target};
use trawl_io::read_at::FileReader;
use trawl_io::{FileWriter, Fs, Mode};
use trawl_model::{CaptureSink, Carries, Clock, DoorError, Durable, Place, Prepared, Preparer, Summary};

/// Smaller files are refused: each costs a name, a `warcinfo` record and two syncs.
const MIN_ROLL_BYTES: u64 = 1 << 20;

/// A file being appended to.
struct Current {
    name: String,
    place_name: Arc<str>,
    writer: FileWriter,
    /// Whether the directory still has to be synced for the name to survive.
    new_name: bool,
}

/// Writes capture events to a directory of WARC files.
pub struct WarcSink {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    names: FileNames,
    /// A file is closed once it has this many bytes, between events.
    roll_bytes: u64,
    clock: Clock,
    pub(super) preparer: Arc<EventPreparer>,
    /// Id of the `warcinfo` record that the current file has or the next one will have.
    warcinfo: Arc<str>,
    current: Option<Current>,
    next_serial: u32,
    /// Files complete since the last sync.
    rolled: Vec<String>,
    /// Files complete before it: the caller has recorded that, so they may have their final names.
    ready: Vec<String>,
    summary: Summary,
    /// After a failed write the file's end is unknown: nothing more is written.
    broken: bool,
}

impl WarcSink {
    /// Starts a run in a directory, which must exist and hold no files of this run.
    pub fn create(creation: &Creation, compression: Compression) -> Result<Self> {
        let sink = Self::new(creation, compression)?;
        if let Some((_, name, _)) = sink.own_files()?.first() {
            let reason = "the directory already holds files of this run".to_owned();
            return Err(Error::Refused { file: name.clone(), reason });
        }
        Ok(sink)
    }

    /// Goes on with a run after a crash: keeps exactly what `committed` says was made durable, `None` for nothing.
    pub fn resume(creation: &Creation, compression: Compression, committed: Option<&Durable>) -> Result<Self> {
        let mut sink = Self::new(creation, compression)?;
        sink.recover(committed.and_then(|durable| durable.files.last()))?;
        Ok(sink)
    }

    fn new(creation: &Creation, compression: Compression) -> Result<Self> {
        let (dir, prefix, run, roll_bytes) = match &creation.target {
            Target::Run { dir, prefix, run, roll_bytes } => (dir, prefix, run, *roll_bytes),
            Target::File(path) => {
                let reason = "expected a directory and the name of a run".to_owned();
                return Err(Error::Refused { file: path.display().to_string(), reason });
            }
        };
        let names = FileNames::new(prefix, run, None, compression)?;
        if roll_bytes < MIN_ROLL_BYTES {
            let reason = format!("--warc-size: expected at least {MIN_ROLL_BYTES} bytes, found {roll_bytes}");
            return Err(Error::Refused { file: names.name(0), reason });
        }
        let preparer = Arc::new(EventPreparer::new(creation, compression, dir));
        let warcinfo = preparer.current_warcinfo();
        Ok(WarcSink {
            fs: creation.fs.clone(),
            dir: dir.into(),
            names,
            roll_bytes,
            clock: creation.clock.clone(),
            preparer,
            warcinfo,
            current: None,
            next_serial: 0,
            rolled: Vec::new(),
            ready: Vec::new(),
            summary: Summary::default(),
            broken: false,
        })
    }

    /// Files of this run in the directory: serial, final name, and whether it still is called `.open`; in order.
    fn own_files(&self) -> Result<Vec<(u32, String, bool)>> {
        let mut files = Vec::new();
        for entry in self.fs.list(&self.dir)? {
            let Some(name) = entry.name.to_str().filter(|_| !entry.is_dir) else { continue };
            let (name, open) = match name.strip_suffix(OPEN_SUFFIX) {
                Some(name) => (name, true),
                None => (name, false),
            };
            if let Some(serial) = self.names.serial(name) {
                files.push((serial, name.to_owned(), open));
            }
        }
        files.sort();
        Ok(files)
    }

    fn open_path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}{OPEN_SUFFIX}"))
    }

    fn recover(&mut self, committed: Option<&(String, u64)>) -> Result<()> {
        let refused = |file: &str, reason: String| Error::Refused { file: file.to_owned(), reason };
        let last = match committed {
            Some((file, _)) => {
                let other = || refused(file, "expected the name of a file of this run".to_owned());
                Some(self.names.serial(file).ok_or_else(other)?)
            }
            None => None,
        };
        let mut found = false;
        for (serial, name, open) in self.own_files()? {
            if last.is_none_or(|last| serial > last) {
                // Younger than anything that was reported as durable.
                let path = if open { self.open_path(&name) } else { self.dir.join(&name) };
                self.fs.remove_file(&path)?;
            } else if last.is_some_and(|last| serial < last) {
                if open {
                    self.fs.rename(&self.open_path(&name), &self.dir.join(&name))?;
                }
                let len = self.fs.metadata(&self.dir.join(&name))?.len;
                self.summary.files.push((name, len));
            } else if let Some((_, end)) = committed {
                found = true;
                self.reopen(&name, open, *end)?;
            }
        }
        if let (Some((file, end)), false) = (committed.filter(|(_, end)| *end > 0), found) {
            return Err(refused(file, format!("expected a file of at least {end} bytes, found none")));
        }
        self.next_serial = last.map_or(0, |last| last.saturating_add(u32::from(found)));
        self.fs.sync_dir(&self.dir)?;
        Ok(())
    }

    /// Cuts the committed file to its committed end and goes on there.
    fn reopen(&mut self, name: &str, open: bool, end: u64) -> Result<()> {
        let path = self.open_path(name);
        let stored = if open { path.clone() } else { self.dir.join(name) };
        let len = self.fs.metadata(&stored)?.len;
        if len < end {
            let reason = format!("expected {end} bytes that were reported as durable, found {len}");
            return Err(Error::Refused { file: name.to_owned(), reason });
        }
        if !open {
            if len == end {
                self.summary.files.push((name.to_owned(), len));
                return Ok(());
            }
            self.fs.rename(&stored, &path)?;
        }
        let file = self.fs.open(&path, Mode::Write)?;
        file.set_len(end)?;
        file.sync_data()?;
        if end > 0
            && let Some(id) = first_record_id(&*self.fs, &path)?
        {
            self.set_warcinfo(id.into());
        }
        let mut writer = FileWriter::new(file, end);
        if end == 0 {
            self.write_info(&mut writer, name)?;
        }
        self.current = Some(Current { name: name.to_owned(), place_name: name.into(), writer, new_name: true });
        Ok(())
    }

    fn set_warcinfo(&mut self, id: Arc<str>) {
        self.preparer.set_warcinfo(&id);
        self.warcinfo = id;
    }

    fn write_info(&mut self, writer: &mut FileWriter, name: &str) -> Result<()> {
        let prepared = self.preparer.info(name, self.clock.now())?;
        io::copy(&mut prepared.reader(), writer).map_err(spool_error)?;
        self.summary.records += 1;
        Ok(())
    }

    /// The file to append to: rolls if the current one is large enough.
    fn current(&mut self) -> Result<Current> {
        if let Some(mut current) = self.current.take() {
            if current.writer.position() < self.roll_bytes {
                return Ok(current);
            }
            current.writer.sync()?;
            self.summary.files.push((current.name.clone(), current.writer.position()));
            self.rolled.push(current.name);
            self.set_warcinfo(record_id(self.preparer.ids.next_id()).into());
        }
        let name = self.names.name(self.next_serial);
        self.next_serial = self.next_serial.saturating_add(1);
        let file = self.fs.open(&self.open_path(&name), Mode::CreateNew)?;
        let mut writer = FileWriter::new(file, 0);
        self.write_info(&mut writer, &name)?;
        let place_name = name.as_str().into();
        Ok(Current { name, place_name, writer, new_name: true })
    }

    fn append(&mut self, event: &mut PreparedEvent) -> Result<Place> {
        let mut current = self.current()?;
        self.preparer.rebind(event, &self.warcinfo)?;
        let offset = current.writer.position();
        for record in event.records() {
            record.write_to(&mut current.writer)?;
        }
        let length = event.records().first().map_or(0, |record| record.len_bytes());
        self.summary.records += event.records().len() as u64;
        let place = Place::new(current.place_name.clone(), offset, length);
        self.current = Some(current);
        Ok(place)
    }

    fn publish_ready(&mut self) -> Result<()> {
        if self.ready.is_empty() {
            return Ok(());
        }
        for name in &self.ready {
            self.fs.rename_new(&self.open_path(name), &self.dir.join(name))?;
        }
        self.fs.sync_dir(&self.dir)?;
        self.ready.clear();
        Ok(())
    }

    fn make_durable(&mut self) -> Result<Durable> {
        let durable = match &mut self.current {
            Some(current) => {
                current.writer.sync()?;
                if current.new_name {
                    self.fs.sync_dir(&self.dir)?;
                    current.new_name = false;
                }
                Durable::one(current.name.clone(), current.writer.position())
            }
            None => match self.summary.files.last() {
                Some((file, end)) => Durable::one(file.clone(), *end),
                None => Durable::one(self.names.name(0), 0),
            },
        };
        self.ready.append(&mut self.rolled);
        Ok(durable)
    }

    fn guarded<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<T, DoorError> {
        if self.broken {
            let file = self.dir.display().to_string();
            let reason = "an earlier write failed; resume from what was committed".to_owned();
            return Err(Error::Refused { file, reason }.into());
        }
        act(self).map_err(|e| {
            self.broken = true;
            e.into()
        })
    }
}

impl CaptureSink for WarcSink {
    fn preparer(&self) -> Arc<dyn Preparer> {
        self.preparer.clone()
    }

    fn commit(&mut self, prepared: Prepared) -> Result<Option<Place>, DoorError> {
        self.summary.add(&prepared);
        let mut event = prepared.into_contents()?;
        self.guarded(|sink| sink.append(&mut event).map(Some))
    }

    /// Files that rolled before the last call get their final names: the caller has recorded that they are complete.
    fn sync(&mut self) -> Result<Durable, DoorError> {
        self.guarded(|sink| {
            sink.publish_ready()?;
            sink.make_durable()
        })
    }

    fn finish(mut self: Box<Self>) -> Result<Summary, DoorError> {
        self.guarded(|sink| {
            sink.make_durable()?;
            if let Some(current) = sink.current.take() {
                sink.summary.files.push((current.name.clone(), current.writer.position()));
                sink.ready.push(current.name);
            }
            sink.publish_ready()
        })?;
        Ok(std::mem::take(&mut self.summary))
    }

    fn carries(&self) -> Carries {
        Carries::ALL
    }
}

/// Id of the first record of a file, which is its `warcinfo`.
fn first_record_id(fs: &dyn Fs, path: &Path) -> Result<Option<String>> {
    let file = FileReader::open_in(fs, path)?;
    let mut reader = WarcReader::builder().over(Arc::new(file));
    let id = reader.next_record()?.and_then(|record| record.header().record_id().map(Cow::into_owned));
    Ok(id)
}
