//! seqdb containers: captures in them, and everything else that their files hold.
//!
//! A container of captures is a file system whose values are the WARC records of events, as bytes. `formats/seqdb` and
//! `formats/warc` do not know each other; they meet here.

mod archive;
mod list;
mod sink;
mod text;
mod verify;

pub use list::{Contents, Row, cat_file, value};
pub use text::{Text, superblock};

use archive::SeqdbArchive;
use sink::PagesSink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::format::{Candidate, Creation, Format, Opening, Role, Target};
use trawl_io::{Fs, Mode};
use trawl_model::{Archive, CaptureSink, Carries, Check, Checked, Clock, DoorError, Durable, UnixMillis};
use trawl_seqdb::design::{self, DATA_SUFFIX, INDEX_SUFFIX, LOCK_SUFFIX, NEW_SUFFIX, TIME_SUFFIX, URL_INDEX_SUFFIX};
use trawl_seqdb::{FsPaths, HEAD_BYTES, Settings};
use trawl_warc::Part;

/// Files of seqdb containers, of captures or of anything else.
#[derive(Debug, Clone, Copy)]
pub struct SeqdbFormat;

/// Settings for reading. Nothing is written, so neither the time nor the holder of a lock is needed.
fn reading(fs: &Arc<dyn Fs>) -> Settings {
    Settings::new(Clock::fixed(UnixMillis(0)), "trawl").on(fs.clone())
}

impl Format for SeqdbFormat {
    fn name(&self) -> &'static str {
        "seqdb"
    }

    fn carries(&self) -> Carries {
        Carries::ALL
    }

    /// Containers begin with a word of their own. A file that others say is of their filesys is one too, so that a damaged
    /// file is reported and not passed over.
    fn detect(&self, candidate: &Candidate<'_>) -> bool {
        candidate.head.is_some_and(|head| head.starts_with(&design::MAGIC))
            || candidate.head.is_some() && trawl_seqdb::filesys_around(candidate.path, &**candidate.fs).is_some()
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Archive>, DoorError> {
        Ok(Box::new(SeqdbArchive::new(opening.path, reading(opening.fs))))
    }

    /// A filesys is named as BASE/NAME too.
    fn resolve(&self, fs: &dyn Fs, path: &Path) -> Option<PathBuf> {
        let data = FsPaths::of(path).ok()?.data();
        fs.metadata(&data).is_ok_and(|metadata| metadata.is_file).then_some(data)
    }

    /// A data file speaks for the other files of its filesys, and for what a compaction is at, or has left: `NAME.new.data`
    /// beside `NAME.data`, `NAME.new` beside `NAME`. A check of the container reports those.
    fn is_part(&self, fs: &dyn Fs, path: &Path) -> bool {
        let data = path.with_extension(DATA_SUFFIX);
        let parts = [design::PURPOSE_INDEX, design::PURPOSE_TIME, design::PURPOSE_URLS];
        let says_so = || purpose(fs, path).is_some_and(|purpose| parts.contains(&purpose.as_str()));
        let is_spoken_for =
            data != path && is_seqdb(fs, &data) && (says_so() || trawl_seqdb::filesys_around(path, fs).is_some());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (stem, suffix) = name.rsplit_once('.').unwrap_or((&name, ""));
        let original = match stem.strip_suffix(NEW_SUFFIX) {
            Some(stem) => Some(format!("{stem}.{suffix}")),
            None => name.strip_suffix(NEW_SUFFIX).filter(|stem| !stem.is_empty()).map(str::to_owned),
        };
        is_spoken_for || original.is_some_and(|original| is_seqdb(fs, &path.with_file_name(original)))
    }

    fn verify(&self, fs: &Arc<dyn Fs>, paths: &[PathBuf], check: &mut Check<'_>) -> Result<Checked, DoorError> {
        verify::verify(fs, paths, check)
    }

    fn targets(&self) -> &'static [&'static str] {
        &[".data"]
    }

    fn is_crawlable(&self) -> bool {
        true
    }

    fn create(&self, creation: Creation) -> Result<Box<dyn CaptureSink>, DoorError> {
        Ok(Box::new(PagesSink::create(&creation)?))
    }

    fn resume(&self, creation: Creation, committed: Option<&Durable>) -> Result<Box<dyn CaptureSink>, DoorError> {
        Ok(Box::new(PagesSink::resume(&creation, committed)?))
    }

    /// Only a container of captures has an index by URL beside it.
    fn role(&self, name: &str, all: &[String]) -> Option<Role> {
        let suffixes = [DATA_SUFFIX, INDEX_SUFFIX, TIME_SUFFIX, LOCK_SUFFIX, URL_INDEX_SUFFIX];
        let (stem, suffix) = name.rsplit_once('.').filter(|(_, suffix)| suffixes.contains(suffix))?;
        let role = if suffix == LOCK_SUFFIX { Role::Working } else { Role::Growing };
        all.contains(&format!("{stem}.{URL_INDEX_SUFFIX}")).then_some(role)
    }
}

/// Hands the events of a container to `each`; none, if it holds something else.
pub(crate) fn each_event(
    path: &Path,
    fs: &Arc<dyn Fs>,
    each: &mut dyn FnMut(Part) -> crate::Result<()>,
) -> crate::Result<()> {
    let archive = SeqdbArchive::new(path, reading(fs));
    let Some(pages) = archive.pages()? else { return Ok(()) };
    let mut scan = pages.scan();
    while let Some(page) = scan.next_page()? {
        each(archive.part(pages, &page)?)?;
    }
    Ok(())
}

/// The container that a target means.
fn paths_of(target: &Target) -> Result<FsPaths, DoorError> {
    Ok(match target {
        Target::File(path) => FsPaths::of(path)?,
        Target::Run { dir, prefix, run, .. } => FsPaths::new(dir, &format!("{prefix}-{run}"))?,
    })
}

fn head(fs: &dyn Fs, path: &Path) -> Option<[u8; HEAD_BYTES]> {
    let mut head = [0; HEAD_BYTES];
    fs.open(path, Mode::Read).ok()?.read_exact_at(0, &mut head).ok()?;
    Some(head)
}

/// Whether a file is part of a container, by itself or by what its neighbours say.
fn is_seqdb(fs: &dyn Fs, path: &Path) -> bool {
    fs.metadata(path).is_ok_and(|metadata| metadata.is_file)
        && (head(fs, path).is_some_and(|head| head.starts_with(&design::MAGIC))
            || trawl_seqdb::filesys_around(path, fs).is_some())
}

fn purpose(fs: &dyn Fs, path: &Path) -> Option<String> {
    Some(trawl_seqdb::purpose_of(&head(fs, path)?)?.to_string())
}
