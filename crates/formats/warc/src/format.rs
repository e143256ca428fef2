//! WARC (with ARC) and WACZ, as the room `formats/archive` registers them.

use crate::container::Compression;
use crate::error::Error;
use crate::header::may_begin_record;
use crate::inspect::inspect;
use crate::limits::Limits;
use crate::reader::WarcReader;
use crate::source::{Part, Parts, WarcSource, splits};
use crate::verify::Verifier;
use crate::wacz::{Wacz, WaczSink, write_wacz};
use crate::writer::{Encoder, OPEN_SUFFIX, WarcFile, WarcSink};
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::format::{Candidate, Creation, Format, Opening, Role, Target};
use trawl_io::read_at::FileReader;
use trawl_io::{Fs, Mode, ReadAt};
use trawl_model::{
    Archive, CaptureSink, CaptureSource, Carries, Check, Checked, DoorError, Durable, Inspection, OnProgress, Pick,
    RecordSource, Split, Summary,
};

/// WARC files, and ARC files to be read.
#[derive(Debug, Clone, Copy)]
pub struct WarcFormat;

/// WACZ files.
#[derive(Debug, Clone, Copy)]
pub struct WaczFormat;

/// The endings of WARC files, and how each is stored.
const ENDINGS: [(&str, Compression); 3] =
    [(".warc", Compression::None), (".warc.gz", Compression::Gzip), (".warc.zst", Compression::Zstd)];

/// A crawl waits for what it writes: its own level, unless one is given.
fn of_crawl(creation: Creation) -> Creation {
    Creation { level: creation.level.or(Some(Encoder::CRAWL_GZIP_LEVEL)), ..creation }
}

impl Format for WarcFormat {
    fn name(&self) -> &'static str {
        "warc"
    }

    fn carries(&self) -> Carries {
        Carries::ALL
    }

    /// Archives begin with a version line, bare or in gzip or zstd; only the first record tells a compressed one from any
    /// other compressed file.
    fn detect(&self, candidate: &Candidate<'_>) -> bool {
        let Some(head) = candidate.head else { return false };
        let name = candidate.lower_name();
        let named = self.role(&name, &[]).is_some() || crate::is_arc_name(&name);
        let first_record = || {
            let file = FileReader::open_in(&**candidate.fs, candidate.path);
            let reader = file.map(|file| WarcReader::builder().lenient(true).over(Arc::new(file)));
            reader.is_ok_and(|mut reader| matches!(reader.next_record(), Ok(Some(_))))
        };
        head.len() >= 5 && may_begin_record(head)
            || head.starts_with(b"filedesc://")
            || named
            || Compression::detect(head) != Compression::None && first_record()
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Archive>, DoorError> {
        Ok(Box::new(WarcArchive { parts: vec![(None, read_up_to(opening)?)], missing: Vec::new() }))
    }

    fn verify(&self, fs: &Arc<dyn Fs>, paths: &[PathBuf], check: &mut Check<'_>) -> Result<Checked, DoorError> {
        let mut verifier = Verifier::new(check)?;
        for path in paths {
            verifier.file(Arc::new(FileReader::open_in(&**fs, path)?))?;
        }
        Ok(verifier.finish()?)
    }

    fn targets(&self) -> &'static [&'static str] {
        &[".warc", ".warc.gz", ".warc.zst"]
    }

    fn is_crawlable(&self) -> bool {
        true
    }

    fn create(&self, creation: Creation) -> Result<Box<dyn CaptureSink>, DoorError> {
        let Target::File(path) = &creation.target else {
            return Ok(Box::new(WarcSink::create(&of_crawl(creation), Compression::Gzip)?));
        };
        let name = path.to_string_lossy().to_ascii_lowercase();
        let compression = ENDINGS.iter().find(|(end, _)| name.ends_with(end)).map_or(Compression::Gzip, |(_, c)| *c);
        Ok(Box::new(WarcFile::create(&creation, path, compression)?))
    }

    fn resume(&self, creation: Creation, committed: Option<&Durable>) -> Result<Box<dyn CaptureSink>, DoorError> {
        Ok(Box::new(WarcSink::resume(&of_crawl(creation), Compression::Gzip, committed)?))
    }

    fn role(&self, name: &str, _all: &[String]) -> Option<Role> {
        let plain = name.strip_suffix(OPEN_SUFFIX).unwrap_or(name);
        let role = if plain.len() == name.len() { Role::Complete } else { Role::Working };
        ENDINGS.iter().any(|(end, _)| plain.ends_with(end)).then_some(role)
    }
}

impl Format for WaczFormat {
    fn name(&self) -> &'static str {
        "wacz"
    }

    fn carries(&self) -> Carries {
        Carries::ALL
    }

    fn detect(&self, candidate: &Candidate<'_>) -> bool {
        let is_zip = candidate.head.is_some_and(|head| head.starts_with(b"PK\x03\x04"));
        // Many things are ZIP files.
        let holds_archives = || {
            let file = FileReader::open_in(&**candidate.fs, candidate.path).map(Arc::new);
            file.is_ok_and(|file| Wacz::open(file).is_ok_and(|wacz| wacz.warc_entries().next().is_some()))
        };
        is_zip && (candidate.lower_name().ends_with(".wacz") || holds_archives())
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Archive>, DoorError> {
        let wacz = Wacz::open(read_up_to(opening)?)?;
        Ok(Box::new(WarcArchive { parts: wacz_parts(&wacz)?, missing: wacz.missing() }))
    }

    /// The records of the archives inside, and everything that the package states.
    fn verify(&self, fs: &Arc<dyn Fs>, paths: &[PathBuf], check: &mut Check<'_>) -> Result<Checked, DoorError> {
        let mut packages = Vec::new();
        let mut verifier = Verifier::new(check)?;
        for path in paths {
            let wacz = Wacz::open(Arc::new(FileReader::open_in(&**fs, path)?))?;
            for (_, part) in wacz_parts(&wacz)? {
                verifier.file(part)?;
            }
            packages.push(wacz);
        }
        let checked = verifier.finish()?;
        for wacz in packages {
            wacz.verify(check.on_finding)?;
        }
        Ok(checked)
    }

    fn targets(&self) -> &'static [&'static str] {
        &[".wacz"]
    }

    fn create(&self, creation: Creation) -> Result<Box<dyn CaptureSink>, DoorError> {
        Ok(Box::new(WaczSink::create(creation)?))
    }

    fn pack(
        &self,
        creation: &Creation,
        files: &[(&'static str, PathBuf)],
        progress: OnProgress<'_>,
    ) -> Result<Option<Summary>, DoorError> {
        let (Target::File(path), true) =
            (&creation.target, files.iter().all(|(format, _)| *format == WarcFormat.name()))
        else {
            return Ok(None);
        };
        let warcs: Vec<_> = files.iter().map(|(_, path)| path.clone()).collect();
        let done = match write_wacz(creation, path, &warcs, progress) {
            // Then its records are copied one by one, past the damage.
            Err(e) if e.is_damage() && !creation.strict => return Ok(None),
            done => done?,
        };
        let files = vec![(path.display().to_string(), done.bytes)];
        let (unlisted, examples) = (done.unlisted, done.examples);
        let (events, records) = (done.captures, done.records);
        Ok(Some(Summary { events, records, files, unlisted, examples, ..Summary::default() }))
    }
}

fn read_up_to(opening: &Opening<'_>) -> Result<Arc<dyn ReadAt>, DoorError> {
    let file = opening.fs.open(opening.path, Mode::Read)?;
    Ok(Arc::new(FileReader::up_to(file, opening.up_to.unwrap_or(u64::MAX))?))
}

type NamedPart = (Option<String>, Arc<dyn ReadAt>);

fn wacz_parts(wacz: &Wacz) -> Result<Vec<NamedPart>, Error> {
    Ok(wacz.warcs()?.into_iter().map(|(name, file)| (Some(name), file)).collect())
}

/// One WARC file, or those inside a WACZ file, each with its name there.
struct WarcArchive {
    parts: Vec<NamedPart>,
    missing: Vec<String>,
}

impl WarcArchive {
    fn read(&self, pick: Pick<'_>) -> Result<Option<Parts<'_>>, DoorError> {
        let limits = Limits::default();
        let named = |file: &str| {
            let fits = |part: &&NamedPart| part.1.name().file_name().is_some_and(|name| name.to_string_lossy() == file);
            self.parts.iter().find(fits).or(self.parts.first())
        };
        let source = match pick {
            Pick::All => {
                let mut parts = self.parts.iter();
                let part = move || Ok(parts.next().map(|(_, file)| Part { file: file.clone(), offset: 0 }));
                return Ok(Some(Parts::new(part)));
            }
            Pick::Newest(_) => return Ok(None),
            Pick::Split(split) => named("").map(|(_, file)| WarcSource::split(file.clone(), limits, split)),
            Pick::At(place) => named(&place.file).map(|(_, file)| WarcSource::at(file.clone(), limits, place)),
        };
        Ok(source.transpose()?.map(Parts::from))
    }
}

impl Archive for WarcArchive {
    fn captures<'a>(&'a self, pick: Pick<'_>) -> Result<Option<Box<dyn CaptureSource + 'a>>, DoorError> {
        Ok(self.read(pick)?.map(|parts| Box::new(parts) as _))
    }

    fn records<'a>(&'a self, pick: Pick<'_>) -> Result<Option<Box<dyn RecordSource + 'a>>, DoorError> {
        Ok(self.read(pick)?.map(|parts| Box::new(parts) as _))
    }

    fn missing(&self) -> &[String] {
        &self.missing
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        match &self.parts[..] {
            [(_, file)] => Ok(splits(file, Limits::default(), target_bytes)?),
            // Places name files by offset alone.
            _ => Ok(Vec::new()),
        }
    }

    fn inspect(&self, sample: usize, progress: OnProgress<'_>) -> Result<Vec<Inspection>, DoorError> {
        let mut all = Vec::new();
        for (inside, file) in &self.parts {
            let mut reader = WarcReader::builder().lenient(true).over(file.clone());
            all.push(Inspection { inside: inside.clone(), ..inspect(&mut reader, sample, progress)? });
        }
        Ok(all)
    }
}
