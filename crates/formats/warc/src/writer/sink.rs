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

use super::event::{Prepared, Preparer};
use super::id::{IdSource, record_id};
use super::info::WarcInfo;
use super::member::{Stored, spool_error};
use super::names::{FileNames, OPEN_SUFFIX};
use crate::container::Compression;
use crate::error::{Error, Result};
use crate::reader::WarcReader;
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::read_at::FileReader;
use trawl_io::{FileWriter, Fs, Mode};
use trawl_model::{Capture, CaptureSink, Carries, Clock, DoorError, Durable, Place, Summary};

/// How a run's files are written.
#[derive(Debug, Clone)]
pub struct SinkOptions {
    /// What the files are called, and how they are compressed.
    pub names: FileNames,
    /// Compression; must be that of the names.
    pub compression: Compression,
    /// Compression level; each method's own default otherwise.
    pub level: Option<i32>,
    /// A file is closed once it has this many bytes, between events.
    pub roll_bytes: u64,
    /// What the files say about themselves.
    pub info: WarcInfo,
}

impl SinkOptions {
    /// Files roll at this size unless told otherwise.
    pub const DEFAULT_ROLL_BYTES: u64 = 1 << 30;
    /// Smaller files are refused: each costs a name, a `warcinfo` record and two syncs.
    pub const MIN_ROLL_BYTES: u64 = 1 << 20;

    /// Gzip files of a run called `<prefix>-<run>-<serial>.warc.gz`.
    pub fn new(prefix: &str, run: &str, shard: Option<&str>, info: WarcInfo) -> Result<Self> {
        Self::with_compression(prefix, run, shard, info, Compression::Gzip)
    }

    /// Files with another compression.
    pub fn with_compression(
        prefix: &str,
        run: &str,
        shard: Option<&str>,
        info: WarcInfo,
        compression: Compression,
    ) -> Result<Self> {
        let names = FileNames::new(prefix, run, shard, compression)?;
        Ok(SinkOptions { names, compression, level: None, roll_bytes: Self::DEFAULT_ROLL_BYTES, info })
    }
}

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
    options: SinkOptions,
    clock: Clock,
    preparer: Preparer,
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
    /// Starts a run in `dir`, which must exist and hold no files of this run.
    pub fn create(
        fs: Arc<dyn Fs>,
        dir: &Path,
        options: SinkOptions,
        ids: Arc<dyn IdSource>,
        clock: Clock,
    ) -> Result<Self> {
        let sink = Self::new(fs, dir, options, ids, clock)?;
        if let Some((_, name, _)) = sink.own_files()?.first() {
            let reason = "the directory already holds files of this run".to_owned();
            return Err(Error::Refused { file: name.clone(), reason });
        }
        Ok(sink)
    }

    /// Goes on with a run after a crash: keeps exactly what `committed` says was made durable, `None` for nothing.
    pub fn resume(
        fs: Arc<dyn Fs>,
        dir: &Path,
        options: SinkOptions,
        ids: Arc<dyn IdSource>,
        clock: Clock,
        committed: Option<&Durable>,
    ) -> Result<Self> {
        let mut sink = Self::new(fs, dir, options, ids, clock)?;
        sink.recover(committed)?;
        Ok(sink)
    }

    fn new(fs: Arc<dyn Fs>, dir: &Path, options: SinkOptions, ids: Arc<dyn IdSource>, clock: Clock) -> Result<Self> {
        if options.roll_bytes < SinkOptions::MIN_ROLL_BYTES {
            let reason = format!(
                "expected files of at least {} bytes, found {}",
                SinkOptions::MIN_ROLL_BYTES,
                options.roll_bytes
            );
            return Err(Error::Refused { file: options.names.name(0), reason });
        }
        let preparer = Preparer::new(options.compression, options.level, fs.clone(), dir, ids);
        let warcinfo = preparer.current_warcinfo();
        Ok(WarcSink {
            fs,
            dir: dir.into(),
            options,
            clock,
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

    /// Makes events ready on other threads.
    pub fn preparer(&self) -> Preparer {
        self.preparer.clone()
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
            if let Some(serial) = self.options.names.serial(name) {
                files.push((serial, name.to_owned(), open));
            }
        }
        files.sort();
        Ok(files)
    }

    fn open_path(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}{OPEN_SUFFIX}"))
    }

    fn recover(&mut self, committed: Option<&Durable>) -> Result<()> {
        let refused = |file: &str, reason: String| Error::Refused { file: file.to_owned(), reason };
        let last = match committed {
            Some(durable) => Some(
                self.options
                    .names
                    .serial(&durable.file)
                    .ok_or_else(|| refused(&durable.file, "expected the name of a file of this run".to_owned()))?,
            ),
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
            } else if let Some(durable) = committed {
                found = true;
                self.reopen(&name, open, durable.end)?;
            }
        }
        if let (Some(durable), false) = (committed.filter(|d| d.end > 0), found) {
            return Err(refused(
                &durable.file,
                format!("expected a file of at least {} bytes, found none", durable.end),
            ));
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
        let prepared = self.preparer.info(&self.options.info, name, self.clock.now())?;
        io::copy(&mut prepared.reader(), writer).map_err(spool_error)?;
        self.summary.records += 1;
        Ok(())
    }

    /// The file to append to: rolls if the current one is large enough.
    fn current(&mut self) -> Result<Current> {
        if let Some(mut current) = self.current.take() {
            if current.writer.position() < self.options.roll_bytes {
                return Ok(current);
            }
            current.writer.sync()?;
            self.summary.files.push((current.name.clone(), current.writer.position()));
            self.rolled.push(current.name);
            self.set_warcinfo(record_id(self.preparer.ids.next_id()).into());
        }
        let name = self.options.names.name(self.next_serial);
        self.next_serial = self.next_serial.saturating_add(1);
        let file = self.fs.open(&self.open_path(&name), Mode::CreateNew)?;
        let mut writer = FileWriter::new(file, 0);
        self.write_info(&mut writer, &name)?;
        let place_name = name.as_str().into();
        Ok(Current { name, place_name, writer, new_name: true })
    }

    fn append(&mut self, mut prepared: Prepared) -> Result<Place> {
        let mut current = self.current()?;
        self.preparer.rebind(&mut prepared, &self.warcinfo.clone())?;
        let offset = current.writer.position();
        let mut length = 0;
        for (i, record) in prepared.records().iter().enumerate() {
            copy(record.stored(), &mut current.writer)?;
            if i == 0 {
                length = record.len_bytes();
            }
        }
        let place = Place::new(current.place_name.clone(), offset, length);
        self.summary.events += 1;
        self.summary.records += prepared.records().len() as u64;
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
                Durable { file: current.name.clone(), end: current.writer.position() }
            }
            None => match self.summary.files.last() {
                Some((file, end)) => Durable { file: file.clone(), end: *end },
                None => Durable { file: self.options.names.name(0), end: 0 },
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
    type Prepared = Prepared;

    fn prepare(&self, capture: Capture<'_>) -> Result<Prepared, DoorError> {
        Ok(self.preparer.prepare(capture)?)
    }

    fn commit(&mut self, prepared: Prepared) -> Result<Place, DoorError> {
        self.guarded(|sink| sink.append(prepared))
    }

    /// Calling it again says that the caller has recorded what the last call returned: files that rolled before it get
    /// their final names.
    fn sync(&mut self) -> Result<Durable, DoorError> {
        self.guarded(|sink| {
            sink.publish_ready()?;
            sink.make_durable()
        })
    }

    fn finish(mut self) -> Result<Summary, DoorError> {
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
        Carries::all()
    }
}

fn copy(from: &Stored, to: &mut FileWriter) -> Result<()> {
    match from {
        Stored::Memory(bytes) => to.put(bytes)?,
        Stored::Spooled(spool) => {
            io::copy(&mut spool.reader(), to).map_err(spool_error)?;
        }
    }
    Ok(())
}

/// Id of the first record of a file, which is its `warcinfo`.
fn first_record_id(fs: &dyn Fs, path: &Path) -> Result<Option<String>> {
    let file = FileReader::open_in(fs, path)?;
    let mut reader = WarcReader::builder().over(Arc::new(file));
    let id = reader.next_record()?.and_then(|record| record.header().record_id().map(Cow::into_owned));
    Ok(id)
}
