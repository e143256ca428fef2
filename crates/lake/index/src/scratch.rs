//! Room for what must wait until a total is known.

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
