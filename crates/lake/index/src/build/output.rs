//! The files of a segment while they are written.

use crate::files::FileEntry;
use crate::lines::{Keys, LinesWriter};
use crate::meta::{FileMeta, META_FILE, SEGMENT_FORMAT, SegmentMeta};
use crate::pages::PagesWriter;
use crate::{Error, Result};
use std::io::{BufWriter, Write};
use std::sync::Arc;
use trawl_store::{HashedUpload, Store, layout};

/// A file being uploaded.
pub(crate) type Out = BufWriter<HashedUpload>;

const FILES: &str = "files.tsv.zst";
const PAGES: &str = "pages.bin";

/// Creates the files of a segment and keeps its description.
pub(crate) struct Outputs {
    store: Arc<dyn Store>,
    pub meta: SegmentMeta,
}

impl Outputs {
    pub fn new(store: &Arc<dyn Store>, id: &str) -> Result<Self> {
        layout::segment_dir(id)?;
        let meta = SegmentMeta { format: SEGMENT_FORMAT, id: id.to_owned(), ..SegmentMeta::default() };
        Ok(Self { store: store.clone(), meta })
    }

    /// Begins a file.
    pub fn create(&self, name: &str) -> Result<Out> {
        let path = layout::segment_file(&self.meta.id, name)?;
        Ok(BufWriter::with_capacity(128 << 10, HashedUpload::begin(&*self.store, &path)?))
    }

    /// Publishes a file; its hash.
    pub fn close(&mut self, name: &str, mut out: Out) -> Result<u64> {
        out.flush().map_err(Error::write("a file of the index"))?;
        let (bytes, hash) = out.into_parts().0.finish()?;
        self.meta.files.insert(name.to_owned(), FileMeta { bytes, hash: format!("{hash:016x}") });
        Ok(hash)
    }

    /// Writes the description of all files, last.
    pub fn finish(self) -> Result<SegmentMeta> {
        self.store.put(&layout::segment_file(&self.meta.id, META_FILE)?, &self.meta.to_json())?;
        Ok(self.meta)
    }
}

/// The list of Parquet files and their page tables; the totals of the segment grow with them.
pub(crate) struct FileLists {
    list: LinesWriter<Out>,
    pages: PagesWriter<Out>,
    next_id: u32,
}

impl FileLists {
    pub fn new(outputs: &Outputs) -> Result<Self> {
        let list = LinesWriter::new(outputs.create(FILES)?, FILES, Keys::None, 9, 32 << 10)?;
        Ok(Self { list, pages: PagesWriter::new(outputs.create(PAGES)?)?, next_id: 0 })
    }

    /// The id that the next file gets.
    pub fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Adds a file, whatever the id in its entry.
    pub fn push(&mut self, entry: FileEntry, tables: &[impl AsRef<[u8]>], meta: &mut SegmentMeta) -> Result<()> {
        self.pages.push(tables)?;
        meta.rows += entry.rows;
        meta.parquet_files += 1;
        meta.parquet_bytes += entry.bytes;
        let dataset = meta.datasets.entry(entry.dataset_id).or_default();
        dataset.files += 1;
        dataset.bytes += entry.bytes;
        self.list.push(&FileEntry { file_id: self.next_id, ..entry }.to_line()?)?;
        self.next_id = self.next_id.checked_add(1).ok_or_else(|| Error::Input {
            at: format!("segment {}", meta.id),
            expected: "fewer than 2^32 files",
            found: self.next_id.to_string(),
        })?;
        Ok(())
    }

    pub fn finish(self, outputs: &mut Outputs) -> Result<()> {
        outputs.close(FILES, self.list.finish()?.0)?;
        outputs.close(PAGES, self.pages.finish()?)?;
        Ok(())
    }
}
