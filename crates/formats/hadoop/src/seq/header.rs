//! The header of a SequenceFile.

use crate::decode::{Decoded, Decoder};
use crate::{Codec, Encode, Error, Result, Text, class};
use std::path::Path;
use trawl_io::ReadAt;

/// 16 bytes that no record should contain, different in each file.
pub type Marker = [u8; 16];

/// The most bytes a header may take. Metadata is a handful of strings.
const MAX_HEADER: u64 = 16 << 20;
/// What is read first; nearly every header is shorter.
const FIRST_READ: u64 = 4096;

/// How records are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Each value on its own.
    Record,
    /// Many records together.
    Block,
}

impl Compression {
    /// `NONE`, `RECORD`, `BLOCK`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "NONE",
            Compression::Record => "RECORD",
            Compression::Block => "BLOCK",
        }
    }
}

/// What a file says of itself before its first record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// 1 to 6.
    pub version: u8,
    /// Class of the keys as stored; see [`Header::key_class`].
    pub stored_key_class: String,
    /// Class of the values as stored; see [`Header::value_class`].
    pub stored_value_class: String,
    /// How records are compressed.
    pub compression: Compression,
    /// Class of the codec; none without compression. Versions 3 and 4 imply `DefaultCodec`.
    pub codec_class: Option<String>,
    /// Pairs of strings, in their order.
    pub metadata: Vec<(Text<'static>, Text<'static>)>,
    /// The marker; none in version 1.
    pub marker: Option<Marker>,
    /// First byte after the header.
    pub end: u64,
}

impl Header {
    /// Class of the keys by its name of today.
    pub fn key_class(&self) -> String {
        class::canonical(&self.stored_key_class).into_owned()
    }

    /// Class of the values by its name of today.
    pub fn value_class(&self) -> String {
        class::canonical(&self.stored_value_class).into_owned()
    }

    /// Whether `bytes` begin as a SequenceFile does, also one of a version that is not known; text that begins with the
    /// same letters is not one.
    pub fn is_of_any_version(bytes: &[u8]) -> bool {
        matches!(bytes, [b'S', b'E', b'Q', 0..=0x1f, ..])
    }

    /// Reads the header of a file.
    pub fn read(file: &dyn ReadAt) -> Result<Self> {
        let path = file.name();
        let mut wanted = FIRST_READ;
        loop {
            let head = match file.read_range(0..wanted.min(file.len())) {
                // A checked read fails as a whole; damage behind the header is not the header's.
                Err(trawl_io::Error::Corrupt { offset, .. }) if offset > 0 => file.read_range(0..offset)?,
                head => head?,
            };
            match head.first_chunk::<4>() {
                Some([b'S', b'E', b'Q', 0..=6]) => {}
                Some([b'S', b'E', b'Q', version]) => {
                    return Err(Error::Unsupported {
                        file: path.into(),
                        what: format!("SequenceFile version {version}"),
                    });
                }
                _ => {
                    let found = format!("{:02x?}", head.get(..4).unwrap_or(&head));
                    return Err(Error::corrupt(path, 0, "\"SEQ\" and a version", found));
                }
            }
            match Self::decode(&head) {
                Ok(header) => return Ok(header),
                // It may go on behind what was read.
                Err(_) if (head.len() as u64) < file.len() && wanted < MAX_HEADER => wanted *= 16,
                Err(e) => {
                    return Err(Error::corrupt(path, e.at as u64, e.expected, format!("{} in the header", e.found)));
                }
            }
        }
    }

    /// Decodes a header from the first bytes of a file.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut d = Decoder::new(bytes);
        d.take(3, "\"SEQ\"")?;
        // Version 0 was never seen in the wild; Java reads it like 1.
        let version = d.u8("version")?;
        let stored_key_class = class_name(&mut d, version)?;
        let stored_value_class = class_name(&mut d, version)?;
        let compressed = version >= 3 && d.bool("the compressed flag")?;
        let blocked = version >= 4 && d.bool("the block flag")?;
        let compression = match (compressed, blocked) {
            (false, _) => Compression::None,
            (true, false) => Compression::Record,
            (true, true) => Compression::Block,
        };
        let codec_class = match (compressed, version) {
            (false, _) => None,
            (true, ..5) => Some(Codec::Default.class()),
            (true, _) => Some(class_name(&mut d, version)?),
        };
        let mut metadata = Vec::new();
        if version >= 6 {
            for _ in 0..d.count(2, "number of metadata entries")? {
                let name = d.text("name of metadata")?.into_owned();
                metadata.push((name, d.text("value of metadata")?.into_owned()));
            }
        }
        let marker = if version >= 2 { Some(d.array("sync marker")?) } else { None };
        let end = d.at() as u64;
        Ok(Header { version, stored_key_class, stored_value_class, compression, codec_class, metadata, marker, end })
    }

    /// Writes the header; `end` is not looked at.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put(b"SEQ");
        out.put_u8(self.version);
        for class in [&self.stored_key_class, &self.stored_value_class] {
            put_class(class, self.version, out);
        }
        if self.version >= 3 {
            out.put_bool(self.compression != Compression::None);
        }
        if self.version >= 4 {
            out.put_bool(self.compression == Compression::Block);
        }
        if let Some(codec) = &self.codec_class
            && self.version >= 5
        {
            put_class(codec, self.version, out);
        }
        if self.version >= 6 {
            out.put_len(self.metadata.len());
            for (name, value) in &self.metadata {
                out.put_text(name.as_bytes());
                out.put_text(value.as_bytes());
            }
        }
        if let Some(marker) = &self.marker
            && self.version >= 2
        {
            out.put(marker);
        }
    }

    /// The codec of a compressed file.
    pub fn codec(&self, path: &Path) -> Result<Option<Codec>> {
        let Some(class) = &self.codec_class else { return Ok(None) };
        match Codec::of_class(class) {
            Some(codec) => Ok(Some(codec)),
            None => Err(Error::Unsupported { file: path.into(), what: format!("the codec {class}") }),
        }
    }
}

fn class_name(d: &mut Decoder<'_>, version: u8) -> Decoded<String> {
    let bytes = if version < 4 { d.utf8_bytes("class name")? } else { d.text_bytes("class name")? };
    match std::str::from_utf8(bytes) {
        Ok(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(d.error("a class name", format!("{:?}", String::from_utf8_lossy(bytes)))),
    }
}

fn put_class(class: &str, version: u8, out: &mut Vec<u8>) {
    if version < 4 { out.put_utf8(class.as_bytes()) } else { out.put_text(class.as_bytes()) }
}
