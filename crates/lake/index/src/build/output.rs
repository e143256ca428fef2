//! The files of a segment while they are written.

use crate::meta::{FileMeta, SegmentMeta};
use crate::{Error, Result, paged, seekable};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use trawl_store::{Store, Upload, layout};

/// A file being uploaded.
pub(crate) type Out = BufWriter<Box<dyn Upload>>;

/// Creates the files of a segment and remembers what was written.
pub(crate) struct Outputs {
    store: Arc<dyn Store>,
    id: String,
    files: BTreeMap<String, FileMeta>,
}

impl Outputs {
    pub fn new(store: &Arc<dyn Store>, id: &str) -> Self {
        Self { store: store.clone(), id: id.to_owned(), files: BTreeMap::new() }
    }

    /// Begins a file.
    pub fn create(&self, name: &str) -> Result<Out> {
        Ok(BufWriter::with_capacity(128 << 10, self.store.upload(&layout::segment_file(&self.id, name)?)?))
    }

    /// Publishes a file with page checksums.
    pub fn close(&mut self, name: &str, (out, written): (Out, paged::Written)) -> Result<()> {
        self.publish(name, out, written.len, written.hash)
    }

    /// Publishes a seekable file.
    pub fn close_lines(&mut self, name: &str, (out, written): (Out, seekable::Written)) -> Result<()> {
        self.publish(name, out, written.len, written.hash)
    }

    fn publish(&mut self, name: &str, mut out: Out, bytes: u64, hash: u64) -> Result<()> {
        out.flush().map_err(Error::write("a file of the index"))?;
        let (upload, _) = out.into_parts();
        upload.finish()?;
        self.files.insert(name.to_owned(), FileMeta { bytes, hash: format!("{hash:016x}") });
        Ok(())
    }

    /// Writes the description of all files, last.
    pub fn put(&mut self, name: &str, meta: &mut SegmentMeta) -> Result<()> {
        meta.files = std::mem::take(&mut self.files);
        Ok(self.store.put(&layout::segment_file(&self.id, name)?, &meta.to_json())?)
    }
}
