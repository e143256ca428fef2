//! The 64 bytes at the start of a file.
//!
//! ```text
//!  off size field
//!   0   4   magic "MEG1"
//!   4   2   version_major, now 1; a reader refuses any other
//!   6   2   version_minor, now 0
//!   8   4   partition_id
//!  12   2   flags, see below
//!  14   1   checksum_algo, 1 = CRC-32C
//!  15   1   default_codec, 0 none or 2 zstd; each page states its own
//!  16   8   hostkey_lo, lowest host key owned
//!  24   8   hostkey_hi, highest host key owned
//!  32   8   url_count
//!  40   8   host_count
//!  48   8   footer_offset
//!  56   4   created, hours since 1970, given by the caller
//!  60   4   crc32c of bytes 0..60
//!
//! flags  1 sorted   2 schedule   4 seenset   8 blob   16 ribbon   32 mphf   64 footer-zstd (the last two: never)
//! ```
//! Regions are found through the footer, not through the flags.

use crate::error::{At, Result};
use std::path::Path;
use trawl_io::crc::crc32c;
use trawl_io::slice::{SliceError, SliceReader};

/// How a file, and its last four bytes, begin.
pub const MAGIC: [u8; 4] = *b"MEG1";
/// Bytes of the header.
pub const HEADER_LEN: usize = 4 + 2 + 2 + 4 + 2 + 1 + 1 + 8 * 5 + 4 + 4;
const _: () = assert!(HEADER_LEN == 64);
const VERSION_MAJOR: u16 = 1;
const CHECKSUM_CRC32C: u8 = 1;

/// Names of the flags, lowest bit first.
pub const FLAG_NAMES: [&str; 7] = ["sorted", "schedule", "seenset", "blob", "ribbon", "mphf", "footer-zstd"];
/// Rows are in order of their keys: always set.
pub const FLAG_SORTED: u16 = 1;
/// There is a schedule index.
pub const FLAG_SCHEDULE: u16 = 2;
/// There is a seen filter.
pub const FLAG_SEENSET: u16 = 4;
/// There is an arena.
pub const FLAG_BLOB: u16 = 8;
/// The seen filter is a ribbon; the reference leaves it clear.
pub const FLAG_RIBBON: u16 = 16;

/// What the header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Header {
    /// Which partition of the fleet.
    pub partition_id: u32,
    /// See [`FLAG_NAMES`].
    pub flags: u16,
    /// The codec pages are written with, by number.
    pub default_codec: u8,
    /// Lowest host key owned.
    pub hostkey_lo: u64,
    /// Highest host key owned, itself included.
    pub hostkey_hi: u64,
    /// Rows of the URL table.
    pub url_count: u64,
    /// Rows of the host table.
    pub host_count: u64,
    /// Where the footer begins.
    pub footer_offset: u64,
    /// When the file was made: hours since 1970, as the caller said.
    pub created: u32,
}

impl Header {
    /// The names of the flags that are set.
    pub fn flag_names(&self) -> Vec<&'static str> {
        FLAG_NAMES.iter().enumerate().filter(|(bit, _)| self.flags >> bit & 1 == 1).map(|(_, name)| *name).collect()
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION_MAJOR.to_le_bytes());
        out.extend_from_slice(&0u16.to_le_bytes());
        out.extend_from_slice(&self.partition_id.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&[CHECKSUM_CRC32C, self.default_codec]);
        for value in [self.hostkey_lo, self.hostkey_hi, self.url_count, self.host_count, self.footer_offset] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&self.created.to_le_bytes());
        let crc = crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads the bytes of a header.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Header> {
        let at = At::new(path, 0);
        let covered = bytes.get(..HEADER_LEN - 4).unwrap_or(bytes);
        let mut r = SliceReader::new(bytes);
        let magic = r.array::<4>("the magic").map_err(|e| at.short(e))?;
        if magic != MAGIC {
            return Err(at.corrupt(
                "a .meguri file, which begins with \"MEG1\"",
                format!("{:?}", String::from_utf8_lossy(&magic)),
            ));
        }
        let (major, header, crc) = fields(&mut r).map_err(|e| at.short(e))?;
        at.check_crc("header", crc, crc32c(covered))?;
        if major != VERSION_MAJOR {
            return Err(At::new(path, 4).unsupported("format version", u64::from(major)));
        }
        Ok(header)
    }
}

fn fields(r: &mut SliceReader<'_>) -> Result<(u16, Header, u32), SliceError> {
    let (major, _minor) = (r.u16("the major version")?, r.u16("the minor version")?);
    let partition_id = r.u32("the partition's id")?;
    let flags = r.u16("the flags")?;
    let _checksum_algo = r.u8("the kind of checksums")?;
    let header = Header {
        partition_id,
        flags,
        default_codec: r.u8("the codec")?,
        hostkey_lo: r.u64("the lowest host key")?,
        hostkey_hi: r.u64("the highest host key")?,
        url_count: r.u64("the number of URLs")?,
        host_count: r.u64("the number of hosts")?,
        footer_offset: r.u64("the footer's offset")?,
        created: r.u32("the hour of creation")?,
    };
    Ok((major, header, r.u32("the header's checksum")?))
}
