//! The catalogue of a fleet's partitions, conventionally `meguri.manifest`.
//!
//! ```text
//! "MGM1" | uvarint n | n entries | u32 crc32c of everything before | "MGM1"
//!
//! entry  u32 partition_id, uvarint length, file_ref, u64 hostkey_lo, u64 hostkey_hi, u64 url_count, u64 host_count,
//!        u32 due_min, f32 bytes_per_url, u32 crc32c of the file's footer, u32 created, u32 epoch
//! ```
//! Entries are in the order of (hostkey_lo, partition_id).

use crate::error::{At, Result};
use crate::reader::MeguriFile;
use std::path::Path;
use trawl_io::crc::crc32c;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::put_uvarint;

/// How a manifest begins and ends.
pub const MAGIC: [u8; 4] = *b"MGM1";
/// Bytes of an entry whose name is empty.
const ENTRY_LEN: usize = 4 + 1 + 4 * 8 + 5 * 4;

/// One partition.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct Entry {
    /// Its number.
    pub partition_id: u32,
    /// Where its file is: a path or an object's key.
    pub file_ref: String,
    /// Lowest host key owned.
    pub hostkey_lo: u64,
    /// Highest host key owned, itself included.
    pub hostkey_hi: u64,
    /// URLs.
    pub url_count: u64,
    /// Hosts.
    pub host_count: u64,
    /// Hour at which its first URL is due, 0 if none is.
    pub due_min: u32,
    /// As the file's stats say.
    pub bytes_per_url: f32,
    /// CRC-32C of the file's footer.
    pub file_crc: u32,
    /// Hours since 1970.
    pub created: u32,
    /// Which generation of the fleet; each tiles the key space on its own.
    pub epoch: u32,
}

impl Entry {
    /// The entry of a file.
    pub fn of(file: &MeguriFile, file_ref: &str, epoch: u32) -> Result<Entry> {
        let (header, stats) = (file.header(), file.footer().stats);
        let end = file.len();
        let trailer = file.src.read_range(end.saturating_sub(8)..end.saturating_sub(4))?;
        let file_crc = SliceReader::new(&trailer).u32("the footer's checksum").map_err(|e| file.at(end).short(e))?;
        Ok(Entry {
            partition_id: header.partition_id,
            file_ref: file_ref.to_owned(),
            hostkey_lo: header.hostkey_lo,
            hostkey_hi: header.hostkey_hi,
            url_count: header.url_count,
            host_count: header.host_count,
            due_min: stats.due_min,
            bytes_per_url: stats.bytes_per_url,
            file_crc,
            created: header.created,
            epoch,
        })
    }
}

/// A catalogue of partitions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Manifest {
    entries: Vec<Entry>,
}

/// Where the partitions of an epoch do not tile the key space.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Gap {
    /// No partition owns these keys, both ends included.
    Uncovered {
        /// First.
        lo: u64,
        /// Last.
        hi: u64,
    },
    /// More than one partition owns these keys.
    Overlap {
        /// First.
        lo: u64,
        /// Last.
        hi: u64,
    },
}

impl Manifest {
    /// A catalogue of entries in any order.
    pub fn new(mut entries: Vec<Entry>) -> Manifest {
        entries.sort_by_key(|e| (e.hostkey_lo, e.partition_id));
        Manifest { entries }
    }

    /// The entries in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_uvarint(&mut out, self.entries.len() as u64);
        for e in &self.entries {
            out.extend_from_slice(&e.partition_id.to_le_bytes());
            put_uvarint(&mut out, e.file_ref.len() as u64);
            out.extend_from_slice(e.file_ref.as_bytes());
            for value in [e.hostkey_lo, e.hostkey_hi, e.url_count, e.host_count] {
                out.extend_from_slice(&value.to_le_bytes());
            }
            for value in [e.due_min, e.bytes_per_url.to_bits(), e.file_crc, e.created, e.epoch] {
                out.extend_from_slice(&value.to_le_bytes());
            }
        }
        let crc = crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&MAGIC);
        out
    }

    /// Reads the bytes of a manifest; `path` is for messages.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Manifest> {
        let at = At::new(path, 0);
        let magics = bytes.len() >= 12 && bytes.starts_with(&MAGIC) && bytes.ends_with(&MAGIC);
        let Some((covered, tail)) = bytes.split_last_chunk::<8>().filter(|_| magics) else {
            return Err(at.corrupt("\"MGM1\" at both ends of a manifest", format!("{} bytes", bytes.len())));
        };
        let [a, b, c, d, ..] = *tail;
        at.check_crc("manifest", u32::from_le_bytes([a, b, c, d]), crc32c(covered))?;
        let mut r = SliceReader::at(covered, 0);
        let entries = entries(&mut r).map_err(|e| at.short(e))?;
        if !r.is_empty() {
            return Err(
                At::new(path, r.offset()).corrupt("the end of the entries", format!("{} bytes", r.rest().len()))
            );
        }
        if !entries.is_sorted_by_key(|e| (e.hostkey_lo, e.partition_id)) {
            return Err(at.corrupt("entries in the order of their keys", "others"));
        }
        Ok(Manifest { entries })
    }

    /// The partition of an epoch that owns a host key.
    pub fn route(&self, host_key: u64, epoch: u32) -> Option<&Entry> {
        let mut below = self.entries.iter().filter(|e| e.epoch == epoch && e.hostkey_lo <= host_key);
        below.next_back().filter(|e| host_key <= e.hostkey_hi)
    }

    /// The partitions with a URL that is due at an hour.
    pub fn due(&self, now: u32) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |e| e.due_min != 0 && e.due_min <= now)
    }

    /// The epochs there are, ascending.
    pub fn epochs(&self) -> Vec<u32> {
        let mut epochs: Vec<u32> = self.entries.iter().map(|e| e.epoch).collect();
        epochs.sort_unstable();
        epochs.dedup();
        epochs
    }

    /// Where the partitions of an epoch leave keys out or own them twice; none if they tile all keys.
    pub fn gaps(&self, epoch: u32) -> Vec<Gap> {
        let mut gaps = Vec::new();
        // The lowest key that no partition so far owns; none once all are owned.
        let mut next = Some(0u64);
        for e in self.entries.iter().filter(|e| e.epoch == epoch) {
            match next {
                Some(start) if start < e.hostkey_lo => gaps.push(Gap::Uncovered { lo: start, hi: e.hostkey_lo - 1 }),
                Some(start) if start == e.hostkey_lo => {}
                owned => {
                    let last = owned.map_or(u64::MAX, |start| start - 1).min(e.hostkey_hi);
                    gaps.push(Gap::Overlap { lo: e.hostkey_lo, hi: last });
                }
            }
            next = next.and_then(|start| e.hostkey_hi.checked_add(1).map(|after| after.max(start)));
        }
        gaps.extend(next.map(|lo| Gap::Uncovered { lo, hi: u64::MAX }));
        gaps
    }
}

fn entries(r: &mut SliceReader<'_>) -> Result<Vec<Entry>, SliceError> {
    r.take(MAGIC.len(), "the magic")?;
    let at = r.offset();
    let claimed = r.uvarint("the number of entries")?;
    let limit = (r.rest().len() / ENTRY_LEN) as u64;
    if claimed > limit {
        return Err(SliceError::OverLimit { at, what: "entries", claimed, limit });
    }
    (0..claimed).map(|_| entry(r)).collect()
}

fn entry(r: &mut SliceReader<'_>) -> Result<Entry, SliceError> {
    let partition_id = r.u32("a partition's id")?;
    // A name that is not text is shown with what is not text replaced; the file is then not found under it.
    let file_ref = String::from_utf8_lossy(r.prefixed(usize::MAX, "a partition's file")?).into_owned();
    Ok(Entry {
        partition_id,
        file_ref,
        hostkey_lo: r.u64("a partition's lowest key")?,
        hostkey_hi: r.u64("a partition's highest key")?,
        url_count: r.u64("a partition's URLs")?,
        host_count: r.u64("a partition's hosts")?,
        due_min: r.u32("a partition's first due hour")?,
        bytes_per_url: f32::from_bits(r.u32("a partition's bytes per URL")?),
        file_crc: r.u32("a partition's checksum")?,
        created: r.u32("a partition's hour")?,
        epoch: r.u32("a partition's epoch")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTOR: &str = "4d474d3103010000000970312e6d65677572690000000000000000ff3f0000000000000a00000000000000000000000000\
        00000000000000003042000000000000000001000000020000000970322e6d65677572690040000000000000ff7f0000000000001400000000\
        0000000000000000000000222c070000001c42000000000000000001000000030000000970332e6d65677572690080000000000000ffff0000\
        000000001e000000000000000000000000000000542c070000002642000000000000000001000000c6d5baed4d474d31";

    fn three() -> Manifest {
        let entry = |id, lo, hi, urls, due, bytes| Entry {
            partition_id: id,
            file_ref: format!("p{id}.meguri"),
            hostkey_lo: lo,
            hostkey_hi: hi,
            url_count: urls,
            due_min: due,
            bytes_per_url: bytes,
            epoch: 1,
            ..Entry::default()
        };
        Manifest::new(vec![
            entry(3, 0x8000, 0xffff, 30, 470_100, 41.5),
            entry(1, 0, 0x3fff, 10, 0, 44.0),
            entry(2, 0x4000, 0x7fff, 20, 470_050, 39.0),
        ])
    }

    #[test]
    fn the_published_vector() {
        let hex: String = three().encode().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, VECTOR);
        assert_eq!(Manifest::decode(&three().encode(), Path::new("m")).unwrap(), three());
    }

    #[test]
    fn routes_and_gaps() {
        let m = three();
        let id = |key| m.route(key, 1).map(|e| e.partition_id);
        assert_eq!([0, 0x3fff, 0x4000, 0xffff, 0x1_0000].map(id), [Some(1), Some(1), Some(2), Some(3), None]);
        assert_eq!(m.route(0, 0), None, "another epoch");
        assert_eq!(m.due(470_050).map(|e| e.partition_id).collect::<Vec<_>>(), [2]);
        assert_eq!(m.gaps(1), [Gap::Uncovered { lo: 0x1_0000, hi: u64::MAX }]);
        assert_eq!(m.gaps(0), [Gap::Uncovered { lo: 0, hi: u64::MAX }]);
        assert_eq!(m.epochs(), [1]);
        let of = |ranges: &[(u64, u64)]| {
            let entry = |(lo, hi): &(u64, u64)| Entry { hostkey_lo: *lo, hostkey_hi: *hi, ..Entry::default() };
            Manifest::new(ranges.iter().map(entry).collect()).gaps(0)
        };
        assert_eq!(of(&[(0, 9), (10, u64::MAX)]), []);
        assert_eq!(of(&[(0, 9), (8, u64::MAX)]), [Gap::Overlap { lo: 8, hi: 9 }]);
        assert_eq!(of(&[(0, u64::MAX), (5, 7)]), [Gap::Overlap { lo: 5, hi: 7 }]);
        assert_eq!(of(&[(1, 9), (20, u64::MAX)]), [Gap::Uncovered { lo: 0, hi: 0 }, Gap::Uncovered { lo: 10, hi: 19 }]);
    }

    #[test]
    fn cut_and_flipped() {
        let bytes = three().encode();
        for cut in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..cut], Path::new("m")).is_err(), "cut at {cut}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&flipped, Path::new("m")).is_err(), "bit {bit}");
        }
    }
}
