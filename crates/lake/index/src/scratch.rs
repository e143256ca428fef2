//! Room for what must wait until a total is known.

use crate::{Error, Result};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::{Fs, RealFs, SpoolWriter};

/// Where a build puts what does not fit into memory.
#[derive(Debug, Clone)]
pub struct Scratch {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    memory: usize,
}

impl Scratch {
    /// Unnamed files in `dir`, each kept in memory up to `memory` bytes.
    pub fn new(dir: impl Into<PathBuf>, memory: usize) -> Self {
        Self { fs: Arc::new(RealFs), dir: dir.into(), memory }
    }

    /// A new, empty spool.
    pub fn spool(&self) -> SpoolWriter {
        SpoolWriter::new(self.fs.clone(), &self.dir, self.memory)
    }

    /// The directory.
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }
}

/// Hands out all that waited in a spool; `what` is being written.
pub(crate) fn pour(spool: SpoolWriter, what: &'static str, mut to: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let spool = spool.finish()?;
    let mut reader = spool.reader();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let n = reader.read(&mut buffer).map_err(Error::write(what))?;
        if n == 0 {
            return Ok(());
        }
        to(buffer.get(..n).unwrap_or(&buffer))?;
    }
}
