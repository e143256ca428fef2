//! What opening a segment needs, read in one round: on a server each further round is a wait.

use crate::Result;
use crate::blob::Blob;
use crate::meta::SegmentMeta;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use trawl_store::{RangeRead, SegmentRef, Store, layout};

/// Largest file that is fetched although it may never be asked for: postings, page tables and names of Parquet files. It saves
/// the first page of a small segment four rounds; what grows with the number of files is not fetched.
const LAZY: u64 = 64 * 1024;

/// Files of a segment that were read whole, and how long the others are.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    whole: HashMap<String, Bytes>,
    lens: HashMap<String, u64>,
}

impl Fetched {
    /// Reads what is short enough to be kept, all at once. Nothing, where files can be mapped.
    pub fn new(store: &dyn Store, reference: &SegmentRef, meta: &SegmentMeta, resident: u64) -> Result<Self> {
        let mut fetched = Self::default();
        let mut reads = Vec::new();
        for (name, file) in &meta.files {
            let path = layout::segment_file(&reference.id, name)?;
            if store.open_local(&path).is_some() {
                return Ok(Self::default());
            }
            let lazy = name.starts_with("postings/") || name.starts_with("pages") || name.starts_with("files");
            let limit = if lazy { resident.min(LAZY) } else { resident };
            if file.bytes <= limit {
                reads.push(RangeRead { path: path.clone(), range: 0..file.bytes });
            }
            fetched.lens.insert(path, file.bytes);
        }
        // One that is lost may be one that can be done without: then each is opened for itself, and says what is wrong.
        let Ok(bytes) = store.get_batch(&reads) else { return Ok(Self::default()) };
        fetched.whole = reads.into_iter().map(|read| read.path).zip(bytes).collect();
        Ok(fetched)
    }

    /// A file of the segment.
    pub fn blob(&self, store: &Arc<dyn Store>, path: &str, resident: u64) -> Result<Blob> {
        match (self.whole.get(path), self.lens.get(path)) {
            (Some(bytes), _) => Ok(Blob::of_bytes(path, bytes.clone())),
            (None, Some(len)) if *len > resident => Ok(Blob::remote(store, path, *len)),
            _ => Blob::open(store, path, resident),
        }
    }
}
