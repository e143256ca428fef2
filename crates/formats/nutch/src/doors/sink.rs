//! A crawl, or a conversion, into a segment.
//!
//! ```text
//! commit ──► NAME.segment.spool   frames: u32 length, u32 CRC-32, payload       synced as the caller asks, resumed at an end
//! finish ──► sorters ──► NAME.segment/{content,crawl_fetch,crawl_generate}      the latest capture of a URL stays
//! ```
//! Records of a segment are sorted, so that a place is known only when all of them are. A run that goes on after its segment
//! was finished begins another one: `PREFIX-RUN-00000.segment`, `-00001`, … as Nutch has one for each round.

use super::capture::{Page, page};
use crate::db::{Compress, WriteSettings};
use crate::segment::{SegmentPart, SegmentWriter};
use crate::types::{CrawlDatum, whole};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_hadoop::{Decoder, Encode};
use trawl_io::format::{Creation, Target};
use trawl_io::{FileWriter, Fs, Mode, remove_tree};
use trawl_model::{
    Advice, Capability, Capture, CaptureSink, Carries, DoorError, Durable, Place, Prepared, Preparer, Summary,
};

/// A segment has no request, no address, no facts, and one capture of a URL. Of revisits it knows that nothing changed.
pub(super) const CARRIES: Carries = Carries::only(&[Capability::Failures, Capability::NotModified]);
/// What a segment's directory is called behind the name of its run.
pub(super) const ENDING: &str = ".segment";
/// What the file is called in which captures wait.
pub(super) const SPOOL_ENDING: &str = ".segment.spool";

/// Frames above this are not believed: a page is at most 128 MiB, its head and metadata a little more.
const MAX_FRAME: usize = 512 << 20;
/// What precedes the payload of a frame: its length and checksum.
const FRAME_HEAD: usize = 8;

pub(super) struct SegmentSink {
    fs: Arc<dyn Fs>,
    /// The segment's directory.
    dir: PathBuf,
    spool_path: PathBuf,
    spool: FileWriter,
    creation: Creation,
    compress: Compress,
    summary: Summary,
    /// An earlier segment of this run is finished.
    goes_on: bool,
    /// After a failed write nothing more is written: a resume cuts the spool back to what was committed.
    broken: bool,
}

struct SegmentPreparer {
    /// Name of the segment, which contents say.
    segment: String,
}

impl Preparer for SegmentPreparer {
    fn prepare(&self, mut capture: Capture<'_>) -> Result<Prepared, DoorError> {
        let made = page(&mut capture, &self.segment).map_err(|e| DoorError::new(Advice::Skip, e))?;
        let Page { fetched, generated, content, lost } = made;
        // `page` has taken out of the facts what the segment keeps.
        let mut losses = CARRIES.losses(&capture);
        losses.extend(lost);
        let mut payload = Vec::new();
        payload.put_text(capture.url.as_bytes());
        // No entry: an empty one, which the writer leaves out.
        payload.put_bytes(generated.as_deref().unwrap_or_default());
        payload.put_bytes(&fetched);
        payload.put_bool(content.is_some());
        payload.put_bytes(content.as_deref().unwrap_or_default());
        let len = u32::try_from(payload.len()).ok().filter(|len| *len as usize <= MAX_FRAME).ok_or_else(|| {
            let what = format!("{}: a capture of {} bytes, more than a segment takes", capture.url, payload.len());
            DoorError::new(Advice::Skip, what)
        })?;
        let mut frame = Vec::with_capacity(FRAME_HEAD + payload.len());
        frame.put(&len.to_be_bytes());
        frame.put(&crc32fast::hash(&payload).to_be_bytes());
        frame.put(&payload);
        let mut prepared = Prepared::new(capture.url, capture.started_at, frame.len() as u64, frame);
        prepared.losses = losses;
        Ok(prepared)
    }
}

/// The segment number `n` of a run.
fn of_run(dir: &Path, prefix: &str, run: &str, n: u32) -> PathBuf {
    dir.join(format!("{prefix}-{run}-{n:05}{ENDING}"))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl SegmentSink {
    /// Begins a segment.
    pub fn create(creation: Creation) -> Result<Self> {
        let (dir, spool) = match &creation.target {
            Target::File(path) => {
                let spool = format!(".tmp-{}-{}.spool", std::process::id(), name_of(path));
                (path.clone(), creation.temp_dir.join(spool))
            }
            Target::Run { dir, prefix, run, .. } => {
                let dir = of_run(dir, prefix, run, 0);
                if creation.fs.exists(&dir)? {
                    return Err(Error::refused(&dir, "the segment of this run exists already"));
                }
                (dir.clone(), dir.with_file_name(format!("{}.spool", name_of(&dir))))
            }
        };
        let mode = if matches!(creation.target, Target::File(_)) { Mode::OpenOrCreate } else { Mode::CreateNew };
        Self::open(creation, dir, spool, mode, 0)
    }

    /// Goes on with the segment of a run whose spool was synced as `committed` says; with the next one if that segment was
    /// finished.
    pub fn resume(creation: Creation, committed: Option<&Durable>) -> Result<Self> {
        let Target::Run { dir, prefix, run, .. } = creation.target.clone() else {
            return Err(Error::refused(Path::new("segment"), "only the segment of a run can be resumed"));
        };
        let fs = creation.fs.clone();
        let committed = committed.and_then(|durable| durable.files.last());
        let mut n = 0;
        loop {
            let segment = of_run(&dir, &prefix, &run, n);
            let spool = segment.with_file_name(format!("{}.spool", name_of(&segment)));
            if !fs.exists(&segment)? {
                let end = committed.filter(|(name, _)| *name == name_of(&segment)).map_or(0, |(_, end)| *end);
                let sink = Self::open(creation, segment, spool, Mode::OpenOrCreate, end)?;
                return Ok(SegmentSink { goes_on: n > 0, ..sink });
            }
            // Finished; a crash may have left what it was made from.
            if fs.exists(&spool)? {
                fs.remove_file(&spool)?;
            }
            n += 1;
        }
    }

    fn open(creation: Creation, dir: PathBuf, spool_path: PathBuf, mode: Mode, end: u64) -> Result<Self> {
        let fs = creation.fs.clone();
        let compress = match creation.compress.as_deref() {
            None | Some("nutch") => Compress::Nutch,
            Some("block") => Compress::Block,
            Some(other) => return Err(Error::refused(&dir, format!("compression is nutch or block, not {other}"))),
        };
        // What a crash left of an earlier try to finish.
        for entry in fs.list(parent_of(&dir))? {
            let name = entry.name.to_string_lossy();
            if entry.is_dir && name.starts_with('.') && name.ends_with(&name_of(&aside_of(&dir))) {
                remove_tree(&*fs, &parent_of(&dir).join(&entry.name))?;
            }
        }
        let file = fs.open(&spool_path, mode)?;
        if file.len()? < end {
            let found = format!("{} bytes", file.len()?);
            return Err(Error::corrupt(&spool_path, 0, format!("the {end} bytes that were synced"), found));
        }
        file.set_len(end)?;
        fs.sync_dir(parent_of(&spool_path))?;
        let (spool, summary) = (FileWriter::new(file, end), Summary::default());
        Ok(SegmentSink { fs, dir, spool_path, spool, creation, compress, summary, goes_on: false, broken: false })
    }

    fn write_segment(&mut self) -> Result<()> {
        self.spool.sync()?;
        if self.goes_on && self.spool.position() == 0 {
            // A run that went on and found nothing left to do.
            return Ok(self.fs.remove_file(&self.spool_path)?);
        }
        let settings = WriteSettings {
            fs: self.fs.clone(),
            // Three directories are sorted at once.
            memory_bytes: (self.creation.memory_bytes / 3).max(4 << 20),
            ..WriteSettings::new(&self.creation.temp_dir, self.creation.ids.next_id())
        };
        let mut writer = SegmentWriter::new(self.compress, &settings);
        for part in [SegmentPart::Content, SegmentPart::CrawlFetch, SegmentPart::CrawlGenerate] {
            writer.ensure(part)?;
        }
        self.read_spool(&mut |url, generated, fetched, content| {
            // Captures come in any order: the latest fetch of a URL stays.
            let time = whole(fetched, CrawlDatum::decode).map(|datum| datum.fetch_time);
            let time = time.map_err(|e| Error::corrupt(&self.spool_path, 0, "the datum of a fetch", e.to_string()))?;
            writer.generate_raw(&String::from_utf8_lossy(url), generated, time)?;
            writer.raw(SegmentPart::CrawlFetch, url, fetched, time)?;
            // None replaces an earlier one, so that content and fetch of a URL are of the same capture.
            writer.raw(SegmentPart::Content, url, content.unwrap_or_default(), time)
        })?;
        let aside = aside_of(&self.dir);
        remove_tree(&*self.fs, &aside)?;
        let written = writer.finish(&aside, &mut |_, _, _, _| Ok(()))?;
        let name = name_of(&self.dir);
        for (part, parts) in &written {
            self.summary.records += parts.records;
            self.summary.files.push((format!("{name}/{}", part.name()), parts.bytes));
        }
        // A URL that was fetched twice has one record: what was before it is lost.
        if let Some(replaced) = written.get(&SegmentPart::CrawlFetch).map(|w| w.replaced).filter(|n| *n > 0) {
            *self.summary.dropped.entry(Capability::ManyPerUrl).or_default() += replaced;
        }
        if self.creation.strict && !self.summary.dropped.is_empty() {
            let lost: Vec<_> = self.summary.dropped.iter().map(|(lost, n)| format!("{lost} ({n} times)")).collect();
            remove_tree(&*self.fs, &aside)?;
            return Err(Error::refused(&self.dir, format!("a Nutch segment cannot carry {}", lost.join(", "))));
        }
        self.publish(&aside)
    }

    /// Puts the new segment in place; one that is there goes when the new one has its name.
    fn publish(&self, new: &Path) -> Result<()> {
        let (fs, parent) = (&*self.fs, parent_of(&self.dir));
        let old = self.dir.with_file_name(format!("{}.old", name_of(new)));
        if fs.exists(&self.dir)? {
            fs.rename(&self.dir, &old)?;
        }
        fs.rename(new, &self.dir)?;
        fs.sync_dir(parent)?;
        remove_tree(fs, &old)?;
        fs.remove_file(&self.spool_path)?;
        Ok(fs.sync_dir(parent_of(&self.spool_path))?)
    }

    fn guarded<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.broken {
            return Err(Error::refused(&self.spool_path, "an earlier write failed; resume from what was committed"));
        }
        act(self).inspect_err(|_| self.broken = true)
    }

    fn read_spool(&self, each: &mut Each<'_>) -> Result<()> {
        let (file, end) = (self.spool.file(), self.spool.position());
        let mut at = 0;
        let mut payload = Vec::new();
        while at < end {
            let bad = |found: String| Error::corrupt(&self.spool_path, at, "a whole frame", found);
            let mut head = [0; 8];
            file.read_exact_at(at, &mut head)?;
            let [a, b, c, d, crc @ ..] = head;
            let len = u32::from_be_bytes([a, b, c, d]) as usize;
            if len > MAX_FRAME || at + 8 + len as u64 > end {
                return Err(bad(format!("one of {len} bytes, {} before the end", end - at)));
            }
            payload.resize(len, 0);
            file.read_exact_at(at + 8, &mut payload)?;
            if crc32fast::hash(&payload).to_be_bytes() != crc {
                return Err(bad("another checksum".into()));
            }
            let mut d = Decoder::new(&payload);
            let mut read = || {
                let url = d.text_bytes("URL")?;
                let (generated, fetched) = (d.bytes("list entry")?, d.bytes("fetch")?);
                let content = d.bool("flag")?.then_some(d.bytes("content")?);
                Ok((url, generated, fetched, content))
            };
            let (url, generated, fetched, content) =
                read().map_err(|e: trawl_hadoop::ValueError| bad(e.to_string()))?;
            each(url, generated, fetched, content)?;
            at += 8 + len as u64;
        }
        Ok(())
    }
}

/// Where a segment is put together: hidden, so that no program takes it for one.
fn aside_of(dir: &Path) -> PathBuf {
    dir.with_file_name(format!(".{}.part", name_of(dir)))
}

/// Takes URL, list entry, fetch and content of a capture.
type Each<'a> = dyn FnMut(&[u8], &[u8], &[u8], Option<&[u8]>) -> Result<()> + 'a;

impl CaptureSink for SegmentSink {
    fn preparer(&self) -> Arc<dyn Preparer> {
        Arc::new(SegmentPreparer { segment: name_of(&self.dir) })
    }

    fn commit(&mut self, prepared: Prepared) -> Result<Option<Place>, DoorError> {
        self.summary.add(&prepared);
        let frame: Vec<u8> = prepared.into_contents()?;
        self.guarded(|sink| Ok(sink.spool.put(&frame)?))?;
        Ok(None)
    }

    fn sync(&mut self) -> Result<Durable, DoorError> {
        self.guarded(|sink| Ok(sink.spool.sync()?))?;
        Ok(Durable::one(name_of(&self.dir), self.spool.position()))
    }

    fn finish(mut self: Box<Self>) -> Result<Summary, DoorError> {
        let written = self.guarded(Self::write_segment);
        if written.is_err() && matches!(self.creation.target, Target::File(_)) {
            // A run keeps its spool, so that it can be finished later; a conversion begins anew.
            let _ = self.fs.remove_file(&self.spool_path);
        }
        written?;
        Ok(std::mem::take(&mut self.summary))
    }

    fn carries(&self) -> Carries {
        CARRIES
    }
}
