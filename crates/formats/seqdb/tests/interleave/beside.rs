//! The file system of a reader: before each of its operations the writer may go on.

use crate::explore::Play;
use std::path::Path;
use std::sync::{Arc, Mutex};
use trawl_io::{Entry, File, Fs, Metadata, Mode, Result as IoResult};

#[derive(Debug, Clone)]
pub struct Beside {
    pub disk: trawl_io::fault::FaultFs,
    pub play: Arc<Mutex<Play>>,
}

impl Beside {
    fn tick(&self, name: impl FnOnce() -> String) {
        self.play.lock().unwrap().tick(name);
    }
}

impl Fs for Beside {
    fn open(&self, path: &Path, mode: Mode) -> IoResult<Box<dyn File>> {
        assert_eq!(mode, Mode::Read, "a reader writes");
        self.tick(|| format!("open {}", path.display()));
        let file = self.disk.open(path, mode)?;
        Ok(Box::new(BesideFile { file: Some(file), play: self.play.clone(), locked: Mutex::new(false) }))
    }

    fn rename(&self, _: &Path, _: &Path) -> IoResult<()> {
        panic!("a reader renames")
    }

    fn rename_new(&self, _: &Path, _: &Path) -> IoResult<()> {
        panic!("a reader renames")
    }

    fn remove_file(&self, _: &Path) -> IoResult<()> {
        panic!("a reader removes")
    }

    fn create_dir(&self, _: &Path) -> IoResult<()> {
        panic!("a reader creates")
    }

    fn create_dir_all(&self, _: &Path) -> IoResult<()> {
        panic!("a reader creates")
    }

    fn remove_dir(&self, _: &Path) -> IoResult<()> {
        panic!("a reader removes")
    }

    fn list(&self, dir: &Path) -> IoResult<Vec<Entry>> {
        self.tick(|| format!("list {}", dir.display()));
        self.disk.list(dir)
    }

    fn metadata(&self, path: &Path) -> IoResult<Metadata> {
        self.tick(|| format!("metadata of {}", path.display()));
        self.disk.metadata(path)
    }

    fn sync_dir(&self, _: &Path) -> IoResult<()> {
        panic!("a reader syncs")
    }
}

#[derive(Debug)]
struct BesideFile {
    file: Option<Box<dyn File>>,
    play: Arc<Mutex<Play>>,
    locked: Mutex<bool>,
}

impl BesideFile {
    fn file(&self) -> &dyn File {
        &**self.file.as_ref().unwrap()
    }

    fn tick(&self, name: impl FnOnce() -> String) -> &dyn File {
        let file = self.file();
        self.play.lock().unwrap().tick(|| format!("{} {}", name(), file.path().display()));
        file
    }
}

impl Drop for BesideFile {
    fn drop(&mut self) {
        if *self.locked.lock().unwrap() {
            self.tick(|| "unlock".into());
        }
        self.file = None;
    }
}

impl File for BesideFile {
    fn path(&self) -> &Path {
        self.file().path()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> IoResult<usize> {
        let len = buf.len();
        let mut done = 0;
        let tear = self.play.lock().unwrap().tear(offset, len);
        if let Some(part) = tear.and_then(|at| buf.get_mut(..at)) {
            done = self.file().read_at(offset, part)?;
            if done < part.len() {
                return Ok(done);
            }
        }
        let file = self.tick(|| format!("read {offset}+{len} (torn at {done}) of"));
        Ok(done + file.read_at(offset + done as u64, &mut buf[done..])?)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> IoResult<()> {
        panic!("a reader writes")
    }

    fn set_len(&self, _: u64) -> IoResult<()> {
        panic!("a reader writes")
    }

    fn sync_data(&self) -> IoResult<()> {
        panic!("a reader syncs")
    }

    fn metadata(&self) -> IoResult<Metadata> {
        self.tick(|| "open file's metadata".into()).metadata()
    }

    fn try_lock(&self) -> IoResult<bool> {
        panic!("a reader locks alone")
    }

    fn try_lock_shared(&self) -> IoResult<bool> {
        let taken = self.tick(|| "lock".into()).try_lock_shared()?;
        *self.locked.lock().unwrap() = taken;
        Ok(taken)
    }

    fn unlock(&self) -> IoResult<()> {
        panic!("no reader unlocks early")
    }
}
