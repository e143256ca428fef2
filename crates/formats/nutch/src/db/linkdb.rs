//! LinkDb: the links to every page.

use super::install::{Lock, install};
use super::parted::{PartedMap, Scan, current_of};
use super::writer::{Duplicates, PartedWriter, Shape, WriteSettings, WrittenParts};
use super::{Compress, Place};
use crate::types::Inlinks;
use crate::{Dialect, Error, Result, class};
use std::path::Path;
use trawl_hadoop::Text;
use trawl_hadoop::seq::OpenOptions;

/// A LinkDb that is open for reading.
#[derive(Debug)]
pub struct LinkDb {
    map: PartedMap,
    dialect: Dialect,
}

impl LinkDb {
    /// Opens a LinkDb, its `current` generation, or one of its parts.
    pub fn open(dir: &Path, options: &OpenOptions) -> Result<Self> {
        let map = PartedMap::open(&current_of(&*options.fs, dir)?, options)?;
        map.expect(class::INLINKS, "LinkDb")?;
        Ok(LinkDb { map, dialect: Dialect::default() })
    }

    /// Its parts.
    pub fn map(&self) -> &PartedMap {
        &self.map
    }

    /// The links to a page; `None` where there are none.
    pub fn get(&mut self, url: &[u8]) -> Result<Option<Inlinks<'_>>> {
        let dir = self.map.path().to_owned();
        let Some(value) = self.map.get(url)? else { return Ok(None) };
        self.dialect.inlinks(value).map(Some).map_err(|source| Error::Value {
            file: dir,
            offset: 0,
            index: 0,
            class: format!("{} of {}", class::INLINKS, Text::new(url)),
            source,
        })
    }

    /// All pages, part after part.
    pub fn scan(&self) -> Scan {
        self.map.scan()
    }

    /// Starts a LinkDb; of a page that comes more than once the last value is kept.
    pub fn writer(compress: Compress, settings: &WriteSettings) -> Result<PartedWriter> {
        let pack = compress.pack(Place::LinkDb);
        PartedWriter::new(class::INLINKS, pack, Shape::MapFile, Duplicates::LastWins, settings)
    }

    /// Writes what `writer` collected as the LinkDb in `dir`. No generation before is kept, as Nutch keeps none.
    pub fn install(writer: PartedWriter, dir: &Path, settings: &WriteSettings) -> Result<WrittenParts> {
        trawl_io::create_dir_all_synced(&*settings.fs, dir)?;
        let _lock = Lock::take(&settings.fs, dir)?;
        let new = dir.join("linkdb-new");
        trawl_io::remove_tree(&*settings.fs, &new)?;
        let written = writer.finish(&new, &mut |_, _, _| Ok(()))?;
        install(&*settings.fs, dir, &new, false)?;
        Ok(written)
    }
}
