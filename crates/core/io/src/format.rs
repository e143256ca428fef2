//! A container format, as it is registered in the room `formats/archive`.
//!
//! The doors themselves are in `core/model`; this one stands here because it opens and creates files.

use crate::{Fs, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_model::{
    Advice, Archive, CaptureSink, Carries, Check, Checked, Clock, DoorError, Durable, Finding, IdSource, OnProgress,
    Pick, Progress, Severity, Summary,
};

/// A container format. One value of this type is all that the rest of the house knows of it.
pub trait Format: Send + Sync {
    /// Its name on the command line, in journals and in messages.
    fn name(&self) -> &'static str;

    /// What it can carry.
    fn carries(&self) -> Carries;

    /// Whether it only points at captures that are elsewhere.
    fn is_index(&self) -> bool {
        false
    }

    /// Whether a file, or a directory that is one container, has this format. Should be cheap, and believe a name that
    /// says so: a damaged file is reported then and not passed over.
    fn detect(&self, candidate: &Candidate<'_>) -> bool;

    /// Opens a container that [`Format::detect`] knows.
    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Archive>, DoorError>;

    /// The container that a path names although there is no such file.
    fn resolve(&self, _fs: &dyn Fs, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// Whether a file that was found in a directory is part of a container that another file there stands for.
    fn is_part(&self, _fs: &dyn Fs, _path: &Path) -> bool {
        false
    }

    /// Checks containers, together: what the records of one say of those of another is part of it. Only a failing machine
    /// is an error. Reads all captures to their end unless the format knows more.
    fn verify(&self, fs: &Arc<dyn Fs>, paths: &[PathBuf], check: &mut Check<'_>) -> Result<Checked, DoorError> {
        let mut checked = Checked::default();
        for path in paths {
            let archive = self.open(&Opening::new(fs, path))?;
            let Some(mut source) = archive.captures(Pick::All)? else { continue };
            checked.files += 1;
            checked.bytes += fs.metadata(path)?.len;
            loop {
                match source.next_entry() {
                    Ok(None) => break,
                    Ok(Some(_)) => checked.records += 1,
                    Err(error) if error.advice == Advice::Skip => {
                        let (offset, detail) = (error.at.as_ref().map(|at| at.offset), error.to_string());
                        let file = path.display().to_string();
                        (check.on_finding)(Finding { severity: Severity::Fault, file, offset, kind: "damage", detail });
                    }
                    Err(error) => return Err(error),
                }
                (check.progress)(Progress { records: checked.records, bytes: source.position(), total_bytes: 0 });
            }
        }
        Ok(checked)
    }

    /// What the names of files end in that `convert` makes in this format. Empty: it makes none.
    fn targets(&self) -> &'static [&'static str] {
        &[]
    }

    /// Ways to compress it beside the usual one, by the names that [`Creation::compress`] takes.
    fn compressions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a crawl can write it.
    fn is_crawlable(&self) -> bool {
        false
    }

    /// Begins a container. One that is there already is replaced when the new one is complete, if the target is a file; a
    /// run is refused where files of it are.
    fn create(&self, _creation: Creation) -> Result<Box<dyn CaptureSink>, DoorError> {
        Err(DoorError::new(Advice::Stop, format!("{} can be read but not written", self.name())))
    }

    /// Takes whole files of other formats as they are, each with the name of its format, if the container holds such.
    /// `None`: they have to be converted.
    fn pack(
        &self,
        _creation: &Creation,
        _files: &[(&'static str, PathBuf)],
        _progress: OnProgress<'_>,
    ) -> Result<Option<Summary>, DoorError> {
        Ok(None)
    }

    /// Goes on with the container of a run, keeping exactly what `committed` says was made durable, `None` for nothing.
    fn resume(&self, _creation: Creation, _committed: Option<&Durable>) -> Result<Box<dyn CaptureSink>, DoorError> {
        Err(DoorError::new(Advice::Stop, format!("a crawl into {} cannot be resumed", self.name())))
    }

    /// Whether the places of captures are known only when a container is finished: they are then found by their URLs.
    fn knows_places_late(&self) -> bool {
        false
    }

    /// What a file of a crawl's directory is to containers of this format; `all` are the names of the files there.
    fn role(&self, _name: &str, _all: &[String]) -> Option<Role> {
        None
    }
}

/// What a file is to the container it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Complete: it never changes under this name.
    Complete,
    /// A part that is written on by every run.
    Growing,
    /// Only of use to a run that goes on: an unfinished file, a lock.
    Working,
}

/// Something whose format is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Where it lies.
    pub fs: &'a Arc<dyn Fs>,
    /// Its path.
    pub path: &'a Path,
    /// Its first bytes, [`Candidate::HEAD_BYTES`] unless it is shorter; `None` for a directory.
    pub head: Option<&'a [u8]>,
}

impl Candidate<'_> {
    /// Bytes of a file by which its format is recognised.
    pub const HEAD_BYTES: usize = 512;

    /// Its name in lower case, without the directory.
    pub fn lower_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
    }
}

/// What is opened.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// Where it lies.
    pub fs: &'a Arc<dyn Fs>,
    /// Its path.
    pub path: &'a Path,
    /// Read no further than this: a file may grow while it is read, and what counts is what was identified.
    pub up_to: Option<u64>,
}

impl<'a> Opening<'a> {
    /// All of what `path` names.
    pub fn new(fs: &'a Arc<dyn Fs>, path: &'a Path) -> Self {
        Self { fs, path, up_to: None }
    }
}

/// What a container is created with.
#[derive(Clone)]
pub struct Creation {
    /// Where it goes.
    pub fs: Arc<dyn Fs>,
    /// What it is called.
    pub target: Target,
    /// What it says of itself.
    pub about: About,
    /// Whether it begins with a record that says so. Not where its contents have such records, coming from others.
    pub introduce: bool,
    /// Whether [`CaptureSink::finish`] fails if anything had to be dropped, rather than publish what is left.
    pub strict: bool,
    /// Compression level; each method's own default otherwise.
    pub level: Option<i32>,
    /// One of [`Format::compressions`]; as the format usually is otherwise.
    pub compress: Option<String>,
    /// Takes what does not fit into memory.
    pub temp_dir: PathBuf,
    /// Memory for sorting, where that is needed.
    pub memory_bytes: usize,
    /// Ids of records.
    pub ids: Arc<dyn IdSource>,
    /// The time.
    pub clock: Clock,
}

impl Creation {
    /// Files roll at this size unless told otherwise.
    pub const DEFAULT_ROLL_BYTES: u64 = 1 << 30;
    /// Memory unless told otherwise.
    pub const DEFAULT_MEMORY_BYTES: usize = 64 << 20;

    /// A container in `fs` that introduces itself, with defaults for the rest.
    pub fn new(fs: Arc<dyn Fs>, target: Target, ids: Arc<dyn IdSource>, clock: Clock) -> Self {
        let temp_dir = match &target {
            Target::Run { dir, .. } => dir.clone(),
            Target::File(path) => path.parent().map(Path::to_owned).unwrap_or_default(),
        };
        let (about, memory_bytes) = (About::default(), Self::DEFAULT_MEMORY_BYTES);
        Self {
            fs,
            target,
            about,
            introduce: true,
            strict: false,
            level: None,
            compress: None,
            temp_dir,
            memory_bytes,
            ids,
            clock,
        }
    }
}

impl Target {
    /// The archive of a crawl, with files of the usual size.
    pub fn run(dir: &Path, prefix: &str, run: &str) -> Self {
        let roll_bytes = Creation::DEFAULT_ROLL_BYTES;
        Target::Run { dir: dir.to_owned(), prefix: prefix.to_owned(), run: run.to_owned(), roll_bytes }
    }
}

/// What a container is called.
#[derive(Debug, Clone)]
pub enum Target {
    /// This file, which appears when it is complete.
    File(PathBuf),
    /// The archive of a crawl: files in `dir` whose names begin with `PREFIX-RUN`. What is synced survives, and the run can
    /// be resumed.
    Run {
        /// Directory, which must exist.
        dir: PathBuf,
        /// First part of the names.
        prefix: String,
        /// Name of the run.
        run: String,
        /// Formats of many files begin a new one once a file has this many bytes.
        roll_bytes: u64,
    },
}

/// What an archive says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Program and version: `trawl/0.1.0`.
    pub software: String,
    /// Title of the collection.
    pub title: Option<String>,
    /// Who runs it, with a way to reach them.
    pub operator: Option<String>,
    /// The robots policy: `obey`, `ignore`.
    pub robots: Option<String>,
    /// `User-Agent` as sent.
    pub user_agent: Option<String>,
    /// The machine.
    pub hostname: Option<String>,
    /// The run it is part of.
    pub is_part_of: Option<String>,
    /// Further fields, in order.
    pub more: Vec<(String, String)>,
}
