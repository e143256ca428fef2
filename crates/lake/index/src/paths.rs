//! `paths.bin`: for each (slot, dataset) the first path segments with most rows.
//!
//! [Records by slot](crate::slots), magic "TTOP", version 1. The datasets of a slot are those of
//! `domain_to_datasets.roar`, in order. A block is one zstd frame, since datasets of a domain have the same paths; uvarint
//! is LEB128.
//!
//! ```text
//! block, empty if none of its slots has a path; else a frame of:
//!   per slot:
//!     uvarint  length of the rest
//!     per dataset:
//!       uvarint  number of paths, at most 8, then each:
//!         uvarint  length, at most 128, the path's bytes
//!         uvarint  rows
//! ```

use crate::counts::{Count, MAX_PATH_LEN, MAX_PATHS};
use crate::slots::{BlockError, Record};
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;

/// First path segments with most rows.
pub(crate) struct Paths;

impl Record for Paths {
    type Head = ();
    const MAGIC: [u8; 4] = *b"TTOP";
    const FILE: &'static str = "paths.bin";
    const WHAT: &'static str = "magic \"TTOP\", version 1, blocks of paths";
    const PACKED: bool = true;

    fn check(count: &Count) -> Result<(), &'static str> {
        let fits = count.paths.len() <= MAX_PATHS && count.paths.iter().all(|(path, _)| path.len() <= MAX_PATH_LEN);
        if fits { Ok(()) } else { Err("at most 8 paths of at most 128 bytes") }
    }

    fn head(slots: &[Vec<Count>]) -> Option<()> {
        slots.iter().flatten().any(|count| !count.paths.is_empty()).then_some(())
    }

    fn put((): (), count: &Count, out: &mut Vec<u8>) {
        put_uvarint(out, count.paths.len() as u64);
        for (path, rows) in &count.paths {
            put_uvarint(out, path.len() as u64);
            out.extend_from_slice(path.as_bytes());
            put_uvarint(out, *rows);
        }
    }

    fn take((): (), r: &mut SliceReader<'_>, count: &mut Count) -> Result<(), BlockError> {
        let paths = r.uvarint("path count")?;
        if paths > MAX_PATHS as u64 {
            return Err(BlockError::Value("more than 8 paths"));
        }
        for _ in 0..paths {
            let path = std::str::from_utf8(r.prefixed(MAX_PATH_LEN, "path")?);
            let path = path.map_err(|_| BlockError::Value("a path that is no text"))?;
            count.paths.push((path.to_owned(), r.uvarint("rows of a path")?));
        }
        Ok(())
    }
}
