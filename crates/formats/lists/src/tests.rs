//! What the tests share.

use crate::ListFile;
use std::io::Write;
use std::path::Path;
use trawl_io::Mode;
use trawl_io::fault::FaultFs;
use trawl_model::{DoorError, UrlRecord, UrlSource};

/// A file on a file system of its own.
pub fn file_of(name: &str, bytes: &[u8]) -> ListFile {
    let fs = FaultFs::new().shared();
    fs.open(Path::new(name), Mode::Truncate).unwrap().write_at(0, bytes).unwrap();
    ListFile::open(&fs, Path::new(name)).unwrap()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// Where an item begins, and what it is.
pub type Found = (u64, Result<UrlRecord, String>);

/// Every item of every split.
pub fn read_all(source: &dyn UrlSource, target: u64) -> Result<Vec<Found>, DoorError> {
    let mut out = Vec::new();
    for split in source.splits(target)? {
        source.read(split, &mut |at, item| {
            out.push((at, item.map_err(|e| e.to_string())));
            Ok(())
        })?;
    }
    Ok(out)
}
