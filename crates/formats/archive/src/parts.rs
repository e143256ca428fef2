//! The WARC records in an archive, as the stretches of files they lie in: for what is made of WARC files alone.

use crate::error::Result;
use crate::registry::Found;
use crate::seqdb::SeqdbFormat;
use std::sync::Arc;
use trawl_io::Fs;
use trawl_io::format::Format;
use trawl_io::read_at::FileReader;
use trawl_warc::wacz::Wacz;
use trawl_warc::{Part, WaczFormat, WarcFormat};

/// Hands every stretch of WARC records to `each`; none, for formats that keep no such records.
pub fn warc_parts(found: &Found, fs: &Arc<dyn Fs>, each: &mut dyn FnMut(Part) -> Result<()>) -> Result<()> {
    let format = found.format.name();
    if format == SeqdbFormat.name() {
        return crate::seqdb::each_event(&found.path, fs, each);
    }
    let file = || FileReader::open_in(&**fs, &found.path).map(Arc::new);
    if format == WarcFormat.name() {
        each(Part { file: file()?, offset: 0 })?;
    } else if format == WaczFormat.name() {
        let wacz = Wacz::open(file()?)?;
        for entry in wacz.warc_entries() {
            each(Part { file: wacz.warc(&entry.name)?, offset: 0 })?;
        }
    }
    Ok(())
}
