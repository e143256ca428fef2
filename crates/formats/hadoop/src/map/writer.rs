//! Writing a MapFile.

use super::index::IndexRule;
use super::{data_path, index_path};
use crate::order::Order;
use crate::seq::{Marker, Pack, Writer, WriterOptions, Written};
use crate::{Codec, Error, Result, class};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// Records between two entries of an index, as Hadoop has it.
pub const DEFAULT_INTERVAL: u64 = 128;

/// How a map is written.
#[derive(Debug, Clone)]
pub struct MapWriterOptions {
    /// How `data` is written.
    pub data: WriterOptions,
    /// Marker of the index.
    pub index_marker: Marker,
    /// Records between two entries of the index.
    pub interval: u64,
    /// The order of keys, where their class does not say.
    pub order: Option<Order>,
}

impl MapWriterOptions {
    /// Every 128th key is indexed, as Hadoop has it.
    pub fn new(data: WriterOptions, index_marker: Marker) -> Self {
        MapWriterOptions { data, index_marker, interval: DEFAULT_INTERVAL, order: None }
    }
}

/// Writes a directory with `data` and `index`. Both files appear when [`MapWriter::finish`] succeeds, the index last.
#[derive(Debug)]
pub struct MapWriter {
    dir: PathBuf,
    data: Writer,
    index: Writer,
    rule: IndexRule,
    order: Order,
    last: Option<Vec<u8>>,
}

impl MapWriter {
    /// Creates the directory, if need be, and starts both files.
    pub fn create(dir: &Path, options: MapWriterOptions) -> Result<Self> {
        let class = class::canonical(&options.data.key_class).into_owned();
        let order = options.order.or_else(|| Order::of_class(&class)).ok_or_else(|| Error::Unsupported {
            file: dir.into(),
            what: format!("the order of keys of class {class}"),
        })?;
        trawl_io::create_dir_all_synced(&*options.data.fs, dir)?;
        let mut index = index_options(&options.data.key_class, options.index_marker);
        if options.data.version < 4 {
            // As old as the rest of the map: not compressed, and with the short name of the class.
            index = WriterOptions { pack: Pack::None, value_class: "long".into(), ..index };
        }
        let (version, checksums, fs) = (options.data.version, options.data.checksums, options.data.fs.clone());
        let index = Writer::create(&index_path(dir), WriterOptions { version, checksums, fs, ..index })?;
        let data = Writer::create(&data_path(dir), options.data)?;
        Ok(MapWriter { dir: dir.into(), data, index, rule: IndexRule::new(options.interval), order, last: None })
    }

    /// Appends a record; its key must not be below the one before.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let refuse = |reason: String| Error::refused(&self.dir, reason);
        let compared = self.last.as_ref().map_or(Ok(Ordering::Less), |last| self.order.compare(last, key));
        match compared {
            Ok(Ordering::Greater) => {
                let n = self.data.records();
                return Err(refuse(format!("record {n}: its key is below the one before: {}", shown(key))));
            }
            Ok(_) => {}
            Err(e) => return Err(refuse(format!("a key of another class: {e}"))),
        }
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        let position = self.data.position();
        if self.rule.wants(position) {
            self.index.append(key, &position.cast_signed().to_be_bytes())?;
        }
        self.data.append(key, value)
    }

    /// Bytes of `data` so far: where the next record, or its block, begins.
    pub fn position(&self) -> u64 {
        self.data.position()
    }

    /// The name that `data` will have.
    pub fn data_path(&self) -> &Path {
        self.data.path()
    }

    /// Puts both files in place.
    pub fn finish(self) -> Result<Written> {
        let written = self.data.finish()?;
        self.index.finish()?;
        Ok(written)
    }
}

fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(key.get(..key.len().min(100)).unwrap_or_default()).escape_debug().to_string()
}

/// An index is BLOCK-compressed by DefaultCodec, whatever its data are.
pub(super) fn index_options(key_class: &str, marker: Marker) -> WriterOptions {
    WriterOptions::new(key_class, class::LONG, marker).pack(Pack::Block(Codec::Default))
}
