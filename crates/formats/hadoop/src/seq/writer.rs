//! Writing records.

use super::header::{Compression, Header, Marker};
use super::{ESCAPE, ESCAPE_BYTES};
use crate::codec::Coder;
use crate::crc::CheckedWriter;
use crate::{Codec, Encode, Error, Result, Text};
use std::path::Path;
use std::sync::Arc;
use trawl_io::{Fs, RealFs};

/// How records are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pack {
    /// Not at all.
    None,
    /// Each value on its own.
    Record(Codec),
    /// Many records together.
    Block(Codec),
}

impl Pack {
    fn codec(self) -> Option<Codec> {
        match self {
            Pack::None => None,
            Pack::Record(codec) | Pack::Block(codec) => Some(codec),
        }
    }
}

/// How a file is written. The marker has no default: a marker that others can know beforehand can be put into a page, and
/// then a reader of splits takes that page for the start of a record.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The file system.
    pub fs: Arc<dyn Fs>,
    /// Class of the keys.
    pub key_class: String,
    /// Class of the values.
    pub value_class: String,
    /// How records are packed.
    pub pack: Pack,
    /// The marker: 16 random bytes.
    pub marker: Marker,
    /// Pairs of strings for the header.
    pub metadata: Vec<(Text<'static>, Text<'static>)>,
    /// Bytes between two escapes of a file without blocks: 102400, as Hadoop 3 has it.
    pub escape_interval: u64,
    /// Key and value bytes after which a block is closed: 1000000, as Hadoop has it.
    pub block_bytes: usize,
    /// Whether a `.crc` file is written beside the data.
    pub checksums: bool,
    /// 6, or 1 for Nutch 0.4 and 0.5.
    pub version: u8,
}

impl WriterOptions {
    /// Version 6 without compression, everything else as Hadoop's defaults have it.
    pub fn new(key_class: &str, value_class: &str, marker: Marker) -> Self {
        WriterOptions {
            fs: Arc::new(RealFs),
            key_class: key_class.into(),
            value_class: value_class.into(),
            pack: Pack::None,
            marker,
            metadata: Vec::new(),
            escape_interval: 102_400,
            block_bytes: 1_000_000,
            checksums: true,
            version: 6,
        }
    }

    /// The same with records packed.
    #[must_use]
    pub fn pack(mut self, pack: Pack) -> Self {
        self.pack = pack;
        self
    }

    fn header(&self) -> Header {
        let compression = match self.pack {
            Pack::None => Compression::None,
            Pack::Record(_) => Compression::Record,
            Pack::Block(_) => Compression::Block,
        };
        let mut metadata = self.metadata.clone();
        metadata.sort();
        Header {
            version: self.version,
            stored_key_class: self.key_class.clone(),
            stored_value_class: self.value_class.clone(),
            compression,
            codec_class: self.pack.codec().map(Codec::class),
            metadata,
            marker: (self.version >= 2).then_some(self.marker),
            end: 0,
        }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Records.
    pub records: u64,
    /// Length of the file.
    pub bytes: u64,
}

/// Writes a file aside; [`Writer::finish`] puts it in place. Dropped before, nothing appears.
#[derive(Debug)]
pub struct Writer {
    out: CheckedWriter,
    options: WriterOptions,
    coder: Option<Coder>,
    records: u64,
    /// Offset behind the last escape.
    last_escape: u64,
    /// A packed value, or a packed buffer of a block.
    packed: Vec<u8>,
    block: Buffers,
}

/// The block being filled.
#[derive(Debug, Default)]
struct Buffers {
    records: i64,
    key_lengths: Vec<u8>,
    keys: Vec<u8>,
    value_lengths: Vec<u8>,
    values: Vec<u8>,
}

impl Writer {
    /// Starts a file that will be published as `path`. Its directory must exist.
    pub fn create(path: &Path, options: WriterOptions) -> Result<Self> {
        match (options.version, options.pack) {
            (6, _) | (1, Pack::None) => {}
            (version, _) => {
                return Err(Error::refused(path, format!("version {version} is not written with {:?}", options.pack)));
            }
        }
        let mut out = CheckedWriter::create(&options.fs, path, options.checksums)?;
        let mut header = Vec::new();
        options.header().encode(&mut header);
        out.put(&header)?;
        let coder = options.pack.codec().map(Coder::new);
        let (packed, block) = (Vec::new(), Buffers::default());
        Ok(Writer { out, options, coder, records: 0, last_escape: 0, packed, block })
    }

    /// The name the file will have.
    pub fn path(&self) -> &Path {
        self.out.path()
    }

    /// Bytes of the file so far, without the block being filled: where the next record, or its block, begins.
    pub fn position(&self) -> u64 {
        self.out.position()
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Appends a record.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match self.options.pack {
            Pack::None => self.append_record(key, value)?,
            Pack::Record(_) => {
                let mut packed = std::mem::take(&mut self.packed);
                packed.clear();
                self.pack_into(value, &mut packed)?;
                self.append_record(key, &packed)?;
                self.packed = packed;
            }
            Pack::Block(_) => {
                self.check_len(key.len() as u64 + value.len() as u64)?;
                let block = &mut self.block;
                block.key_lengths.put_vlong(key.len() as i64);
                block.keys.put(key);
                block.value_lengths.put_vlong(value.len() as i64);
                block.values.put(value);
                block.records += 1;
                if block.keys.len() + block.values.len() >= self.options.block_bytes {
                    self.close_block()?;
                }
            }
        }
        self.records += 1;
        Ok(())
    }

    fn append_record(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let total = self.check_len(key.len() as u64 + value.len() as u64)?;
        if self.options.version >= 2 && self.out.position() >= self.last_escape + self.options.escape_interval {
            self.escape()?;
        }
        let mut lengths = [0; 8];
        let (first, second) = lengths.split_at_mut(4);
        first.copy_from_slice(&total.to_be_bytes());
        // Below `total`, so it fits.
        second.copy_from_slice(&(key.len() as i32).to_be_bytes());
        self.out.put(&lengths)?;
        self.out.put(key)?;
        self.out.put(value)
    }

    fn check_len(&self, len: u64) -> Result<i32> {
        i32::try_from(len).map_err(|_| Error::refused(self.path(), format!("a record of {len} bytes is over 2^31 - 1")))
    }

    fn pack_into(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let Some(coder) = &mut self.coder else { return Ok(()) };
        coder.pack(bytes, out).map_err(|e| Error::refused(self.out.path(), e.to_string()))
    }

    fn escape(&mut self) -> Result<()> {
        self.out.put(&ESCAPE.to_be_bytes())?;
        self.out.put(&self.options.marker)?;
        self.last_escape = self.out.position();
        Ok(())
    }

    /// Writes an escape now, so that a split can begin at the next record; closes the block, if there is one.
    pub fn sync_point(&mut self) -> Result<()> {
        match self.options.pack {
            Pack::Block(_) => self.close_block(),
            _ if self.options.version >= 2 && self.last_escape != self.out.position() => self.escape(),
            _ => Ok(()),
        }
    }

    fn close_block(&mut self) -> Result<()> {
        if self.block.records == 0 {
            return Ok(());
        }
        self.escape()?;
        let mut block = std::mem::take(&mut self.block);
        let mut packed = std::mem::take(&mut self.packed);
        let mut head = Vec::with_capacity(9);
        head.put_vlong(block.records);
        self.out.put(&head)?;
        for buffer in [&mut block.key_lengths, &mut block.keys, &mut block.value_lengths, &mut block.values] {
            packed.clear();
            self.pack_into(buffer, &mut packed)?;
            head.clear();
            head.put_vlong(packed.len() as i64);
            self.out.put(&head)?;
            self.out.put(&packed)?;
            buffer.clear();
        }
        block.records = 0;
        (self.block, self.packed) = (block, packed);
        Ok(())
    }

    /// Writes what is left and puts the file, with its sidecar, in place.
    pub fn finish(mut self) -> Result<Written> {
        self.close_block()?;
        let records = self.records;
        let bytes = self.out.publish()?;
        Ok(Written { records, bytes })
    }
}

const _: () = assert!(ESCAPE_BYTES == 20);
