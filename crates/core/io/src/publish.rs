//! Files that appear under their final name only when complete.

use crate::fs::{FileWriter, Fs, Mode, parent};
use crate::{Error, File, Op, Result};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the names of temporary files begin.
pub const TEMP_PREFIX: &str = ".tmp-";

/// Bytes of the final name kept in a temporary one, so that it stays within the 255 bytes file systems allow.
const LABEL_BYTES: usize = 160;

/// Numbers the temporary files of this process.
static SERIAL: AtomicU64 = AtomicU64::new(0);

/// Who won when a file was published only if absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The file did not exist and now has our contents.
    Won,
    /// Somebody's file was there first; ours is gone.
    Lost,
}

/// A file being written aside.
///
/// ```text
/// create  .tmp-<pid>-<n>-<name>  (locked while its writer lives)
/// write   ...
/// publish sync file -> rename to <name> -> sync directory        old file or new file, never half of one
///     or  sync file -> rename unless <name> exists -> sync dir   exactly one of several writers wins
/// drop    the temporary file is removed, nothing appears
/// ```
/// A temporary file that no process locks is a leftover of a dead one: [`remove_leftovers`].
#[derive(Debug)]
pub struct AtomicFile {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    temp: PathBuf,
    writer: FileWriter,
    /// Whether `temp` still is ours to remove.
    pending: bool,
}

impl AtomicFile {
    /// Starts a file that will be published as `path`. Its directory must exist.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        let label = path.file_name().ok_or_else(|| {
            Error::io(Op::Create, path, io::Error::new(io::ErrorKind::InvalidFilename, "path has no file name"))
        })?;
        let (temp, file) = create_temp(&**fs, parent(path), label).map_err(|error| named(error, path))?;
        Ok(AtomicFile { fs: fs.clone(), path: path.into(), temp, writer: FileWriter::new(file, 0), pending: true })
    }

    /// The name it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name it has until then.
    pub fn temp_path(&self) -> &Path {
        &self.temp
    }

    /// Bytes written so far.
    pub fn position(&self) -> u64 {
        self.writer.position()
    }

    /// Writes all of `bytes`, with this crate's error.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.put(bytes)
    }

    /// The file itself, all gathered bytes handed to it: for a header that is known last.
    pub fn flushed(&mut self) -> Result<&dyn File> {
        self.writer.flush_buffer()?;
        Ok(self.writer.file())
    }

    /// Puts the file in place durably, replacing what had the name. After an error from the last step (syncing the
    /// directory) the new file is there but may not survive a power cut.
    pub fn publish(mut self) -> Result<()> {
        self.writer.sync()?;
        self.fs.rename(&self.temp, &self.path)?;
        self.pending = false;
        self.fs.sync_dir(parent(&self.path))
    }

    /// Puts the file in place durably unless the name is taken. Either answer is durable.
    pub fn publish_new(mut self) -> Result<Outcome> {
        self.writer.sync()?;
        let outcome = match self.fs.rename_new(&self.temp, &self.path) {
            Ok(()) => {
                self.pending = false;
                Outcome::Won
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Outcome::Lost,
            Err(e) => return Err(e),
        };
        // The loser syncs too: what it saw must not be undone by a power cut before the winner's own sync.
        self.fs.sync_dir(parent(&self.path))?;
        Ok(outcome)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.writer.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if self.pending {
            // Nothing more can be done about a failure: the leftover is recognisable and unlocked.
            let _ = self.fs.remove_file(&self.temp);
        }
    }
}

/// An error about the file that the caller asked for: it does not know the temporary one.
fn named(error: Error, path: &Path) -> Error {
    match error {
        Error::Io { op, source, .. } => Error::io(op, path, source),
        error => error,
    }
}

/// Publishes `bytes` as `path`, replacing what had the name.
pub fn publish(fs: &Arc<dyn Fs>, path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(fs, path)?;
    file.put(bytes)?;
    file.publish()
}

/// Publishes `bytes` as `path` unless the name is taken; of several racing callers exactly one wins.
pub fn publish_new(fs: &Arc<dyn Fs>, path: &Path, bytes: &[u8]) -> Result<Outcome> {
    let mut file = AtomicFile::create(fs, path)?;
    file.put(bytes)?;
    file.publish_new()
}

/// Whether a file name is one of a temporary file.
pub fn is_temp_name(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(TEMP_PREFIX.as_bytes())
}

/// Removes temporary files in `dir` whose writers are dead, and returns their paths.
pub fn remove_leftovers(fs: &dyn Fs, dir: &Path) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for entry in fs.list(dir)? {
        if entry.is_dir || !is_temp_name(&entry.name) {
            continue;
        }
        let path = dir.join(&entry.name);
        let file = match fs.open(&path, Mode::Read) {
            Err(e) if e.is_not_found() => continue,
            opened => opened?,
        };
        if !file.try_lock()? {
            continue;
        }
        match fs.remove_file(&path) {
            Ok(()) => removed.push(path),
            Err(e) if e.is_not_found() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(removed)
}

/// Creates a new temporary file in `dir` and locks it, so that [`remove_leftovers`] leaves it alone.
pub(crate) fn create_temp(fs: &dyn Fs, dir: &Path, label: &OsStr) -> Result<(PathBuf, Box<dyn File>)> {
    let label = label.as_encoded_bytes();
    let label = String::from_utf8_lossy(label.get(..LABEL_BYTES).unwrap_or(label)).into_owned();
    loop {
        let n = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(OsString::from(format!("{TEMP_PREFIX}{}-{n}-{label}", std::process::id())));
        let file = match fs.open(&path, Mode::CreateNew) {
            // A leftover of an earlier process with our number: take the next name.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => opened?,
        };
        // A collector may have locked or removed it between creation and lock: then it is not ours.
        if file.try_lock()? && still_named(fs, &path, &*file)? {
            return Ok((path, file));
        }
    }
}

/// Whether `path` still names the open `file`.
pub(crate) fn still_named(fs: &dyn Fs, path: &Path, file: &dyn File) -> Result<bool> {
    match fs.metadata(path) {
        Ok(found) => Ok(found.id == file.metadata()?.id),
        Err(e) if e.is_not_found() => Ok(false),
        Err(e) => Err(e),
    }
}
