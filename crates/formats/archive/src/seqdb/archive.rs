//! A file of a seqdb container, opened for reading.

use super::list::{cat_entries, cat_files};
use super::text::{Text, superblock};
use serde_json::json;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use trawl_io::read_at::FileReader;
use trawl_io::{ReadAt, SpoolWriter};
use trawl_model::{
    Advice, Archive, CaptureSource, DoorError, Inspection, OnDamage, OnProgress, Pick, RecordSource, SourceIdentity,
    Split, Wanted,
};
use trawl_seqdb::pages::{PageRef, PageScan};
use trawl_seqdb::{Access, Filesys, Hindex, Kind, Kvseq, Pages, Perm, Settings, Whole, design, inspect};
use trawl_warc::{Part, Parts};

/// Of an event more than this goes to a temporary file.
const IN_MEMORY: usize = 16 << 20;

/// What a path names, opened when it is asked for: an inspection also reports what cannot be opened.
pub(super) struct SeqdbArchive {
    path: PathBuf,
    settings: Settings,
    pages: OnceLock<Pages>,
}

impl SeqdbArchive {
    pub(super) fn new(path: &Path, settings: Settings) -> Self {
        SeqdbArchive { path: path.to_owned(), settings, pages: OnceLock::new() }
    }

    /// The container that the file is part of, if it holds captures.
    pub(super) fn pages(&self) -> trawl_seqdb::Result<Option<&Pages>> {
        if self.pages.get().is_none()
            && let Whole::Pages(paths) = Whole::of(&self.path, &self.settings)?
        {
            // If another thread was faster, its container is as good.
            let _ = self.pages.set(Pages::open(&paths, Access::Read, &self.settings)?);
        }
        Ok(self.pages.get())
    }

    fn read<'a>(&'a self, pick: Pick<'_>) -> Result<Option<Parts<'a>>, DoorError> {
        let Some(pages) = self.pages()? else { return Ok(None) };
        let data = pages.filesys().data().path();
        Ok(Some(match pick {
            Pick::All => self.events(pages, pages.scan()),
            Pick::Split(split) => self.events(pages, pages.scan_split(split)),
            // An event in one piece lies in the data file as it would in a WARC file.
            Pick::At(place) => {
                let file: Arc<dyn ReadAt> = Arc::new(FileReader::open_in(&*self.settings.fs, data)?);
                one(Part { file, offset: place.offset })
            }
            Pick::Newest(url) => match pages.newest(url.as_bytes())? {
                Some(page) => one(shifted(data, page.place.offset, Arc::new(bytes::Bytes::from(page.event)))),
                None => Parts::new(|| Ok(None)),
            },
        }))
    }

    fn events<'a>(&'a self, pages: &'a Pages, mut scan: PageScan<'a>) -> Parts<'a> {
        Parts::new(move || match scan.next_page()? {
            Some(page) => self.part(pages, &page).map(Some),
            None => Ok(None),
        })
    }

    /// The event of a page, at the place it has in the data file.
    pub(super) fn part(&self, pages: &Pages, page: &PageRef<'_>) -> Result<Part, DoorError> {
        let mut spool = SpoolWriter::new(self.settings.fs.clone(), &std::env::temp_dir(), IN_MEMORY);
        match page.event {
            Some(event) => spool.put(event)?,
            None => {
                if let Some(mut reader) = page.reader()? {
                    io::copy(&mut reader.by_ref(), &mut spool)?;
                }
            }
        }
        Ok(shifted(pages.filesys().data().path(), page.place.offset, Arc::new(spool.finish()?)))
    }
}

/// Bytes that begin at an offset of a file.
struct Shifted {
    name: PathBuf,
    offset: u64,
    inner: Arc<dyn ReadAt>,
}

fn shifted(name: &Path, offset: u64, inner: Arc<dyn ReadAt>) -> Part {
    Part { file: Arc::new(Shifted { name: name.to_owned(), offset, inner }), offset }
}

fn one<'a>(part: Part) -> Parts<'a> {
    let mut part = Some(part);
    Parts::new(move || Ok(part.take()))
}

impl ReadAt for Shifted {
    fn name(&self) -> &Path {
        &self.name
    }

    fn len(&self) -> u64 {
        self.offset + self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> trawl_io::Result<()> {
        match offset.checked_sub(self.offset) {
            Some(inside) => self.inner.read_at(inside, buf),
            None => {
                let (path, wanted) = (self.name.clone(), buf.len() as u64);
                Err(trawl_io::Error::Short { path, offset, wanted, found: 0 })
            }
        }
    }
}

impl Archive for SeqdbArchive {
    fn captures<'a>(&'a self, pick: Pick<'_>) -> Result<Option<Box<dyn CaptureSource + 'a>>, DoorError> {
        Ok(self.read(pick)?.map(|parts| Box::new(parts) as _))
    }

    fn records<'a>(&'a self, pick: Pick<'_>) -> Result<Option<Box<dyn RecordSource + 'a>>, DoorError> {
        Ok(self.read(pick)?.map(|parts| Box::new(parts) as _))
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        Ok(self.pages()?.map_or(Ok(Vec::new()), |pages| pages.splits(target_bytes))?)
    }

    fn identity(&self) -> Option<SourceIdentity> {
        self.pages().ok().flatten().map(Pages::identity)
    }

    /// A data file stands for its filesys.
    fn inspect(&self, sample: usize, _progress: OnProgress<'_>) -> Result<Vec<Inspection>, DoorError> {
        let mut seen = Inspection { format: "seqdb".into(), ..Inspection::default() };
        match self.look(&mut seen, sample) {
            // The file cannot be read at all.
            Err(error @ trawl_seqdb::Error::Io(_)) => Err(error.into()),
            Err(error) => {
                seen.damaged(error.to_string());
                Ok(vec![seen])
            }
            Ok(()) => Ok(vec![seen]),
        }
    }

    fn lists_contents(&self, wanted: &Wanted<'_>) -> bool {
        !wanted.json && matches!(Whole::of(&self.path, &self.settings), Ok(Whole::Filesys(_)))
    }

    fn list(
        &self,
        wanted: &Wanted<'_>,
        out: &mut dyn Write,
        _on_damage: OnDamage<'_>,
    ) -> Result<Option<u64>, DoorError> {
        let refused = |why: &str| Err(DoorError::new(Advice::Stop, format!("{}: {why}", self.path.display())));
        match Whole::of(&self.path, &self.settings)? {
            Whole::Pages(_) => Ok(None),
            Whole::Filesys(_) if wanted.offset.is_some() => refused("a file is chosen by its name: --url NAME"),
            Whole::Filesys(paths) => Ok(Some(cat_files(&paths, wanted, &self.settings, out)?)),
            Whole::Kvseq(_) | Whole::Map(_) => Ok(Some(cat_entries(&self.path, wanted, &self.settings, out)?)),
            Whole::Hindex(..) | Whole::Perm(..) => refused("this is an index: see `trawl seqdb list`"),
        }
    }
}

impl SeqdbArchive {
    fn look(&self, seen: &mut Inspection, sample: usize) -> trawl_seqdb::Result<()> {
        let (path, settings) = (&self.path, &self.settings);
        let file = inspect(path, settings)?;
        seen.format = file.kind.to_string();
        seen.details
            .extend(superblock(&file).as_object().cloned().into_iter().flatten().filter(|(name, _)| name != "format"));
        if !file.purpose.is_empty() {
            seen.format_note = Some(file.purpose.clone());
        }
        match &file.writer {
            Some(writer) => seen.remarks.push(format!("being written by {writer}")),
            None if file.clean == Some(false) => seen.remarks.push("not closed properly".to_owned()),
            None => {}
        }
        let mut counts: Vec<(&str, u64)> = Vec::new();
        match file.kind {
            // By its neighbours too: what it says it is for may be what is broken.
            Kind::Kvseq if path.extension().is_some_and(|suffix| suffix == design::DATA_SUFFIX) => {
                match Whole::of(path, settings)? {
                    Whole::Pages(paths) => {
                        let pages = Pages::open(&paths, Access::Read, settings)?;
                        counts.extend([("captures", pages.len()), ("urls", pages.url_count())]);
                        files(pages.filesys(), sample, seen, &mut counts)?;
                    }
                    Whole::Filesys(paths) => {
                        let fs = Filesys::open(&paths, Access::Read, settings)?;
                        counts.push(("files", fs.stats().files));
                        files(&fs, sample, seen, &mut counts)?;
                    }
                    _ => entries(path, sample, settings, seen, &mut counts)?,
                }
            }
            Kind::Kvseq => entries(path, sample, settings, seen, &mut counts)?,
            Kind::Hindex => {
                let index = Hindex::open(path, Access::Read, settings)?;
                let deleted = index.used_cells().saturating_sub(index.keys());
                counts.extend([("cells", index.htsize()), ("keys", index.keys()), ("deleted", deleted)]);
            }
            Kind::Perm => counts.push(("pairs", Perm::open(path, Access::Read, settings)?.len())),
        }
        let counts: serde_json::Map<_, _> = counts.into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect();
        seen.fact("counts", counts);
        seen.fact("in_use_bytes", file.bytes);
        Ok(())
    }
}

fn sample_of(seen: &mut Inspection, name: &[u8], bytes: u64) {
    seen.sample.extend(json!({ "bytes": bytes, "name": Text(name).to_string() }).as_object().cloned());
}

fn entries(
    path: &Path,
    sample: usize,
    settings: &Settings,
    seen: &mut Inspection,
    counts: &mut Vec<(&str, u64)>,
) -> trawl_seqdb::Result<()> {
    let kv = Kvseq::open(path, Access::Read, settings)?;
    counts.extend(kv.entries().map(|n| ("entries", n)));
    counts.extend(kv.live_entries().map(|n| ("live", n)));
    let mut scan = kv.scan().keys_only();
    while let Some(item) = scan.next_entry()?.filter(|_| seen.sample.len() < sample) {
        sample_of(seen, item.key, item.value_len);
    }
    Ok(())
}

fn files(fs: &Filesys, sample: usize, seen: &mut Inspection, counts: &mut Vec<(&str, u64)>) -> trawl_seqdb::Result<()> {
    let stats = fs.stats();
    counts.extend([("used_bytes", stats.used_bytes), ("dead_bytes", stats.dead_bytes)]);
    let mut files = fs.files();
    while seen.sample.len() < sample {
        let Some(info) = files.next_file()? else { break };
        sample_of(seen, &info.name, info.size);
    }
    Ok(())
}
