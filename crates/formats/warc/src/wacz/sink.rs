//! Captures into a WACZ file: a WARC file first, then packed.

use super::package::write_wacz;
use crate::container::Compression;
use crate::error::{Error, Result};
use crate::writer::WarcFile;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::format::{Creation, Target};
use trawl_io::{Fs, remove_tree};
use trawl_model::{CaptureSink, Carries, DoorError, Durable, Place, Prepared, Preparer, Summary};

/// What the WARC file in it is called.
const NAME: &str = "data.warc.gz";

/// A directory that goes when this does.
struct TempDir {
    fs: Arc<dyn Fs>,
    path: PathBuf,
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // The error cannot be returned from here; the system clears a directory for temporary files.
        let _ = remove_tree(&*self.fs, &self.path);
    }
}

/// A WACZ file being written.
pub(crate) struct WaczSink {
    warc: WarcFile,
    temp: TempDir,
    path: PathBuf,
    creation: Creation,
}

impl WaczSink {
    pub(crate) fn create(creation: Creation) -> Result<Self> {
        let Target::File(path) = creation.target.clone() else {
            let reason = "a crawl cannot be archived in one file that has its index at its end".to_owned();
            return Err(Error::Refused { file: "wacz".into(), reason });
        };
        let name = format!("trawl-wacz-{:032x}", u128::from_be_bytes(creation.ids.next_id()));
        let temp = TempDir { fs: creation.fs.clone(), path: creation.temp_dir.join(name) };
        creation.fs.create_dir_all(&temp.path)?;
        let warc = WarcFile::create(&creation, &temp.path.join(NAME), Compression::Gzip)?;
        Ok(WaczSink { warc, temp, path, creation })
    }
}

impl CaptureSink for WaczSink {
    fn preparer(&self) -> Arc<dyn Preparer> {
        self.warc.preparer()
    }

    fn commit(&mut self, prepared: Prepared) -> Result<Option<Place>, DoorError> {
        self.warc.commit(prepared)
    }

    fn sync(&mut self) -> Result<Durable, DoorError> {
        self.warc.sync()
    }

    fn finish(self: Box<Self>) -> Result<Summary, DoorError> {
        let WaczSink { warc, temp, path, creation } = *self;
        let mut summary = Box::new(warc).finish()?;
        let done = write_wacz(&creation, &path, &[temp.path.join(NAME)], &mut |_| {})?;
        summary.files = vec![(path.display().to_string(), done.bytes)];
        (summary.unlisted, summary.examples) = (done.unlisted, done.examples);
        Ok(summary)
    }

    fn carries(&self) -> Carries {
        self.warc.carries()
    }
}
