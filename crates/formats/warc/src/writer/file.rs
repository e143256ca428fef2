//! One WARC file, for `convert`: it appears under its name when it is complete.

use super::event::{EventPreparer, PreparedEvent};
use super::member::spool_error;
use crate::container::Compression;
use crate::error::Result;
use std::io;
use std::path::Path;
use std::sync::Arc;
use trawl_io::AtomicFile;
use trawl_io::format::Creation;
use trawl_model::{CaptureSink, Carries, DoorError, Durable, Place, Prepared, Preparer, Summary};

/// A WARC file being written, each record a member of its own.
pub struct WarcFile {
    preparer: Arc<EventPreparer>,
    file: AtomicFile,
    name: Arc<str>,
    summary: Summary,
}

impl WarcFile {
    /// Starts a file at `path`.
    pub fn create(creation: &Creation, path: &Path, compression: Compression) -> Result<Self> {
        let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let preparer = Arc::new(EventPreparer::new(creation, compression, dir));
        let name: Arc<str> = path.file_name().unwrap_or_default().to_string_lossy().into();
        let file = AtomicFile::create(&creation.fs, path)?;
        let mut sink = WarcFile { preparer, file, name, summary: Summary::default() };
        if creation.introduce {
            let info = sink.preparer.info(&sink.name, creation.clock.now())?;
            sink.append(&info)?;
            sink.summary.records += 1;
        }
        Ok(sink)
    }

    fn append(&mut self, event: &PreparedEvent) -> Result<()> {
        io::copy(&mut event.reader(), &mut self.file).map_err(spool_error)?;
        Ok(())
    }
}

impl CaptureSink for WarcFile {
    fn preparer(&self) -> Arc<dyn Preparer> {
        self.preparer.clone()
    }

    fn commit(&mut self, prepared: Prepared) -> Result<Option<Place>, DoorError> {
        let offset = self.file.position();
        self.summary.add(&prepared);
        let event: PreparedEvent = prepared.into_contents()?;
        self.append(&event)?;
        self.summary.records += event.records().len() as u64;
        let length = event.records().first().map_or(0, |record| record.len_bytes());
        Ok(Some(Place::new(self.name.clone(), offset, length)))
    }

    fn sync(&mut self) -> Result<Durable, DoorError> {
        Ok(Durable::one(&*self.name, self.file.position()))
    }

    fn finish(mut self: Box<Self>) -> Result<Summary, DoorError> {
        self.summary.files = vec![(self.name.to_string(), self.file.position())];
        self.file.publish()?;
        Ok(self.summary)
    }

    fn carries(&self) -> Carries {
        Carries::ALL
    }
}
