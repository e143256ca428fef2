//! The WARC records in an archive, as the stretches of files they lie in: for what is made of WARC files alone.

use crate::error::Result;
use crate::registry::Found;
use crate::seqdb::SeqdbFormat;
use std::collections::HashMap;
use std::sync::Arc;
use trawl_io::Fs;
use trawl_io::format::Format;
use trawl_io::read_at::FileReader;
use trawl_warc::wacz::{Wacz, ZipEntry};
use trawl_warc::{Part, WaczFormat, WarcFormat};

/// What a file with records is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartName {
    /// Its own name, as in places.
    pub base: String,
    /// With the way to it; no other part of what is at hand has the same.
    pub full: String,
}

/// The names of the files with records in an archive.
pub fn warc_names(found: &Found, fs: &Arc<dyn Fs>) -> Result<Vec<PartName>> {
    if found.format.name() == WaczFormat.name() {
        let wacz = Wacz::open(Arc::new(FileReader::open_in(&**fs, &found.path)?))?;
        return Ok(inside(found, &wacz).into_iter().map(|(name, _)| name).collect());
    }
    Ok(vec![name_of(found)])
}

/// Hands every stretch of WARC records to `each`; none, for formats that keep no such records.
pub fn warc_parts(found: &Found, fs: &Arc<dyn Fs>, each: &mut dyn FnMut(&PartName, Part) -> Result<()>) -> Result<()> {
    let format = found.format.name();
    if format == SeqdbFormat.name() {
        let name = name_of(found);
        return crate::seqdb::each_event(&found.path, fs, &mut |part| each(&name, part));
    }
    let file = || FileReader::open_in(&**fs, &found.path).map(Arc::new);
    if format == WarcFormat.name() {
        each(&name_of(found), Part { file: file()?, offset: 0 })?;
    } else if format == WaczFormat.name() {
        let wacz = Wacz::open(file()?)?;
        for (name, entry) in inside(found, &wacz) {
            // By the entry itself: two may have one name.
            each(&name, Part { file: wacz.archive(entry)?, offset: 0 })?;
        }
    }
    Ok(())
}

fn name_of(found: &Found) -> PartName {
    let base = found.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    PartName { base, full: found.path.display().to_string() }
}

fn inside<'w>(found: &Found, wacz: &'w Wacz) -> Vec<(PartName, &'w ZipEntry)> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let named = wacz.warc_entries().map(|entry| {
        let base = entry.name.rsplit('/').next().unwrap_or_default().to_owned();
        let of_name = seen.entry(&entry.name).or_default();
        *of_name += 1;
        let number = if *of_name == 1 { String::new() } else { format!("#{of_name}") };
        let full = format!("{}/{}{number}", found.path.display(), entry.name);
        (PartName { base, full }, entry)
    });
    named.collect()
}
