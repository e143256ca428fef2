//! What a file holds, in numbers.

use super::reader::OpenOptions;
use super::{Header, Reader};
use crate::{Result, json::Detail};
use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use trawl_io::Hasher;

/// What a file holds.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// What it says of itself.
    pub header: Arc<Header>,
    /// Records.
    pub records: u64,
    /// Bytes of keys, unpacked.
    pub key_bytes: u64,
    /// Bytes of values, unpacked.
    pub value_bytes: u64,
    /// Offsets of escapes.
    pub escapes: Vec<u64>,
    /// Length of the file.
    pub file_bytes: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
}

/// Reads a file through.
pub fn inspect(path: &Path, options: &OpenOptions) -> Result<Inspection> {
    let mut reader = options.open(path)?;
    let (mut records, mut key_bytes, mut value_bytes) = (0, 0, 0);
    while let Some(record) = reader.next_record()? {
        records += 1;
        key_bytes += record.key.len() as u64;
        value_bytes += record.value.len() as u64;
    }
    let escapes = escapes(&reader)?;
    Ok(Inspection {
        header: reader.header().clone(),
        records,
        key_bytes,
        value_bytes,
        escapes,
        file_bytes: reader.file_len(),
        sha256: reader.file_sha256()?,
    })
}

fn escapes(reader: &Reader) -> Result<Vec<u64>> {
    let mut escapes = Vec::new();
    let mut from = 0;
    while let Some(at) = reader.find_marker(from)? {
        escapes.push(at);
        from = at + super::ESCAPE_BYTES;
    }
    Ok(escapes)
}

impl Reader {
    /// SHA-256 of the file, in hex.
    pub fn file_sha256(&self) -> Result<String> {
        let file = self.file();
        let mut hash = Hasher::sha256();
        let mut at = 0;
        while at < file.len() {
            let end = (at + (1 << 20)).min(file.len());
            hash.update(&file.read_range(at..end)?);
            at = end;
        }
        Ok(hash.finish().hex())
    }
}

impl Inspection {
    /// The facts as JSON.
    pub fn json(&self) -> Value {
        let h = &self.header;
        let mut metadata = Map::new();
        for (name, value) in &h.metadata {
            metadata.insert(name.to_str().into_owned(), crate::json::text(value.as_bytes(), Detail::Full));
        }
        json!({
            "version": h.version,
            "keyClass": h.stored_key_class,
            "valueClass": h.stored_value_class,
            "compression": h.compression.name(),
            "codec": h.codec_class,
            "metadata": metadata,
            "sync": h.marker.map(|m| HEXLOWER.encode(&m)),
            "headerEnd": h.end,
            "syncMarkers": self.escapes.len(),
            "syncPositions": self.escapes,
            "records": self.records,
            "fileSize": self.file_bytes,
            "fileSha256": self.sha256,
        })
    }
}
