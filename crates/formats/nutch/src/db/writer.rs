//! Writing a directory of parts from records in any order.
//!
//! ```text
//! push(key, value) ──► sorter, by (part, order, key) ──finish──► part-r-00000, part-r-00001 …
//!                └─► values that are too large for the sorter wait in a spool file
//! ```

use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_hadoop::map::{MapWriter, MapWriterOptions};
use trawl_hadoop::parts::{part_name, part_of_text};
use trawl_hadoop::seq::{Marker, Pack, Writer, WriterOptions, Written};
use trawl_hadoop::{Decoder, Encode, class};
use trawl_io::{FileWriter, Fs, Mode, RealFs};
use trawl_sort::Sorter;

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A MapFile: keys ascend.
    MapFile,
    /// A SequenceFile with keys ascending.
    SortedFile,
    /// A SequenceFile in the order that the caller gives.
    File,
}

/// What becomes of records with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// All are written, in the order they came.
    Keep,
    /// Only the one of the highest rank is written, of equal ranks the last; the others are counted. An empty value, which no class has that is written so, means
    /// that the key has no record any more.
    LastWins,
}

/// What writing may use, and where.
#[derive(Debug, Clone)]
pub struct WriteSettings {
    /// The file system.
    pub fs: Arc<dyn Fs>,
    /// Number of parts.
    pub parts: u32,
    /// Memory for sorting.
    pub memory_bytes: usize,
    /// Directory for what does not fit.
    pub temp_dir: PathBuf,
    /// Threads that sort and write runs.
    pub threads: usize,
    /// Where sync markers come from: 16 random bytes. Every file gets a marker of its own, made from them and its name.
    pub seed: Marker,
    /// Whether `.crc` files are written.
    pub checksums: bool,
}

impl WriteSettings {
    /// One part, 64 MiB, two threads.
    pub fn new(temp_dir: &Path, seed: Marker) -> Self {
        WriteSettings {
            fs: Arc::new(RealFs),
            parts: 1,
            memory_bytes: 64 << 20,
            temp_dir: temp_dir.into(),
            threads: 2,
            seed,
            checksums: true,
        }
    }

    /// A marker for one file.
    pub fn marker(&self, name: &str) -> Marker {
        use md5::Digest as _;
        let mut hash = md5::Md5::new();
        hash.update(self.seed);
        hash.update(name.as_bytes());
        hash.finalize().into()
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenParts {
    /// Records.
    pub records: u64,
    /// Bytes of all data files.
    pub bytes: u64,
    /// Records that a later one with the same key replaced.
    pub replaced: u64,
}

/// Learns of each record that was written: its key, its file, and where it, its escape or its block begins.
pub type OnRecord<'a> = dyn FnMut(&[u8], &Path, u64) -> Result<()> + 'a;

/// Collects records; [`PartedWriter::finish`] writes the parts.
pub struct PartedWriter {
    settings: WriteSettings,
    shape: Shape,
    value_class: &'static str,
    pack: Pack,
    duplicates: Duplicates,
    sorter: Sorter,
    spool: Option<Spool>,
    key: Vec<u8>,
    payload: Vec<u8>,
}

impl std::fmt::Debug for PartedWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartedWriter").field("value_class", &self.value_class).finish_non_exhaustive()
    }
}

/// Values of this length and more are spooled: sorting would copy them several times.
const SPOOL_FROM: usize = 32 << 10;

impl PartedWriter {
    /// For values of a class, packed as said.
    pub fn new(
        value_class: &'static str,
        pack: Pack,
        shape: Shape,
        duplicates: Duplicates,
        settings: &WriteSettings,
    ) -> Result<Self> {
        let sorter = Sorter::builder(&settings.temp_dir)
            .fs(settings.fs.clone())
            .memory_bytes(settings.memory_bytes)
            .threads(settings.threads)
            .build()?;
        Ok(PartedWriter {
            settings: settings.clone(),
            shape,
            value_class,
            pack,
            duplicates,
            sorter,
            spool: None,
            key: Vec::new(),
            payload: Vec::new(),
        })
    }

    /// Takes a record; its part follows from its key.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.push_ranked(key, value, 0)
    }

    /// The same with a rank, by which one of several records of a key is chosen.
    pub fn push_ranked(&mut self, key: &[u8], value: &[u8], rank: i64) -> Result<()> {
        self.push_to(part_of_text(key, self.settings.parts), &[], key, value, rank)
    }

    /// Takes a record for a part. Records of a [`Shape::File`] are ordered by `order`, and by their arrival where that is
    /// the same.
    pub fn push_to(&mut self, part: u32, order: &[u8], key: &[u8], value: &[u8], rank: i64) -> Result<()> {
        self.key.clear();
        self.key.extend(part.to_be_bytes());
        self.payload.clear();
        if self.duplicates == Duplicates::LastWins {
            self.payload.put_vlong(rank);
        }
        if self.shape == Shape::File {
            self.key.put(order);
            self.payload.put_text(key);
        } else {
            self.key.put(key);
        }
        if value.len() < SPOOL_FROM {
            self.payload.put_u8(0);
            self.payload.put(value);
        } else {
            let spool = match &mut self.spool {
                Some(spool) => spool,
                none => none.insert(Spool::create(&self.settings)?),
            };
            self.payload.put_u8(1);
            self.payload.put_i64(spool.put(value)?.cast_signed());
            self.payload.put_i64(value.len() as i64);
        }
        Ok(self.sorter.push(&self.key, &self.payload)?)
    }

    /// Writes the parts into `dir`, and tells for each record which file it went to and where it, or its block, begins.
    pub fn finish(self, dir: &Path, on_record: &mut OnRecord<'_>) -> Result<WrittenParts> {
        let fs = self.settings.fs.clone();
        trawl_io::create_dir_all_synced(&*fs, dir)?;
        let mut spool = self.spool.map(Spool::into_reader).transpose()?;
        let mut out = Parts {
            dir,
            settings: &self.settings,
            shape: self.shape,
            value_class: self.value_class,
            pack: self.pack,
            next: 0,
            open: None,
            skip_empty: self.duplicates == Duplicates::LastWins,
            written: WrittenParts::default(),
        };
        let mut sorted = self.sorter.finish()?;
        let last_wins = self.duplicates == Duplicates::LastWins;
        // The record that waits to see whether its key comes again.
        let mut pending: Option<Pending> = None;
        while let Some(record) = sorted.next_record()? {
            let mut d = Decoder::new(record.value);
            let rank = if last_wins { d.vlong("a rank").map_err(|_| damaged(dir))? } else { 0 };
            let payload = d.rest();
            match &mut pending {
                Some(before) if last_wins && before.key == record.key => {
                    out.written.replaced += 1;
                    if rank >= before.rank {
                        before.set(record.key, payload, rank);
                    }
                    continue;
                }
                Some(before) => out.append(&before.key, &before.payload, spool.as_mut(), on_record)?,
                None => {}
            }
            pending.get_or_insert_default().set(record.key, payload, rank);
        }
        if let Some(last) = pending {
            out.append(&last.key, &last.payload, spool.as_mut(), on_record)?;
        }
        out.finish()
    }
}

#[derive(Default)]
struct Pending {
    key: Vec<u8>,
    payload: Vec<u8>,
    rank: i64,
}

impl Pending {
    fn set(&mut self, key: &[u8], payload: &[u8], rank: i64) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.payload.clear();
        self.payload.extend_from_slice(payload);
        self.rank = rank;
    }
}

enum Open {
    Map(Box<MapWriter>),
    File(Box<Writer>),
}

/// The parts being written, one after another; Hadoop writes empty ones too.
struct Parts<'a> {
    dir: &'a Path,
    settings: &'a WriteSettings,
    shape: Shape,
    value_class: &'static str,
    pack: Pack,
    next: u32,
    open: Option<Open>,
    skip_empty: bool,
    written: WrittenParts,
}

fn damaged(dir: &Path) -> Error {
    Error::refused(dir, "a sorted record came back damaged")
}

impl Parts<'_> {
    fn append(
        &mut self,
        sort_key: &[u8],
        payload: &[u8],
        spool: Option<&mut Spool>,
        on_record: &mut OnRecord<'_>,
    ) -> Result<()> {
        let (part, rest) = sort_key.split_first_chunk::<4>().ok_or_else(|| damaged(self.dir))?;
        let part = u32::from_be_bytes(*part);
        while self.next <= part {
            self.start_next()?;
        }
        let mut d = Decoder::new(payload);
        let key = match self.shape {
            Shape::File => d.text_bytes("key").map_err(|_| damaged(self.dir))?,
            _ => rest,
        };
        let spooled = d.bool("flag").map_err(|_| damaged(self.dir))?;
        let mut large = Vec::new();
        let value = match (spooled, spool) {
            (false, _) => d.rest(),
            (true, Some(spool)) => {
                let mut number = || d.i64("place").ok().and_then(|n| u64::try_from(n).ok());
                let (at, len) = number().zip(number()).ok_or_else(|| damaged(self.dir))?;
                spool.read(at, len, &mut large)?;
                &large
            }
            (true, None) => return Err(damaged(self.dir)),
        };
        if value.is_empty() && self.skip_empty {
            return Ok(());
        }
        let mut text = Vec::with_capacity(key.len() + 5);
        text.put_text(key);
        let (path, at) = match &mut self.open {
            Some(Open::Map(writer)) => {
                let at = writer.position();
                writer.append(&text, value)?;
                (writer.data_path(), at)
            }
            Some(Open::File(writer)) => {
                let at = writer.position();
                writer.append(&text, value)?;
                (writer.path(), at)
            }
            None => return Err(damaged(self.dir)),
        };
        on_record(key, path, at)
    }

    fn start_next(&mut self) -> Result<()> {
        self.close()?;
        let name = part_name(self.next);
        let path = self.dir.join(&name);
        let label = format!("{}/{name}", self.dir.display());
        let options = WriterOptions::new(class::TEXT, self.value_class, self.settings.marker(&label)).pack(self.pack);
        let checksums = self.settings.checksums;
        let options = WriterOptions { fs: self.settings.fs.clone(), checksums, ..options };
        self.open = Some(match self.shape {
            Shape::MapFile => {
                let index = self.settings.marker(&format!("{label}/index"));
                Open::Map(Box::new(MapWriter::create(&path, MapWriterOptions::new(options, index))?))
            }
            _ => Open::File(Box::new(Writer::create(&path, options)?)),
        });
        self.next += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let Written { records, bytes } = match self.open.take() {
            None => return Ok(()),
            Some(Open::Map(writer)) => writer.finish()?,
            Some(Open::File(writer)) => writer.finish()?,
        };
        self.written.records += records;
        self.written.bytes += bytes;
        Ok(())
    }

    fn finish(mut self) -> Result<WrittenParts> {
        while self.next < self.settings.parts.max(1) {
            self.start_next()?;
        }
        self.close()?;
        self.settings.fs.sync_dir(self.dir)?;
        Ok(self.written)
    }
}

/// Large values that wait for their turn, in a file that goes when this is dropped.
struct Spool {
    writer: FileWriter,
    fs: Arc<dyn Fs>,
    path: PathBuf,
}

impl Spool {
    fn create(settings: &WriteSettings) -> Result<Self> {
        let serial = settings.marker(&format!("spool {}", std::process::id()));
        let name = format!(".tmp-spool-{}", data_encoding::HEXLOWER.encode(&serial));
        let mut path = settings.temp_dir.join(&name);
        for n in 0.. {
            match settings.fs.open(&path, Mode::CreateNew) {
                Ok(file) => return Ok(Spool { writer: FileWriter::new(file, 0), fs: settings.fs.clone(), path }),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                    path = settings.temp_dir.join(format!("{name}-{n}"));
                }
                Err(e) => return Err(e.into()),
            }
        }
        Err(Error::refused(&path, "no name is free for a spool"))
    }

    fn put(&mut self, value: &[u8]) -> Result<u64> {
        let at = self.writer.position();
        self.writer.put(value)?;
        Ok(at)
    }

    fn into_reader(mut self) -> Result<Self> {
        self.writer.flush_buffer()?;
        Ok(self)
    }

    fn read(&mut self, at: u64, len: u64, out: &mut Vec<u8>) -> Result<()> {
        let len = usize::try_from(len).map_err(|_| Error::refused(&self.path, "a spooled value came back damaged"))?;
        out.resize(len, 0);
        Ok(self.writer.file().read_exact_at(at, out)?)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        // A spool that cannot be removed is a leftover with a recognisable name.
        let _ = self.fs.remove_file(&self.path);
    }
}
