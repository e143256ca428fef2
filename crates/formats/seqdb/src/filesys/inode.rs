//! Inodes and the keys of the data file.
//!
//! ```text
//! key of an inode:       "FSI" | file id (8) | hash of the name (8)          19 bytes; the file id is the pointer of
//! key of a data entry:   "FSD" | file id (8) | offset inside the file (8)    the first inode the file ever had
//!
//! value of an inode:
//! off size
//!   0   1   file type: f plain, c gzip, a archive, x unknown, others free
//!   1   2   N, length of the name
//!   3   4   P, number of pointers
//!   7   8   mtime, seconds since 1970
//!  15   8   size of the file
//!  23   A   area: P pointers of 8 bytes from the front, the name at the very end, zeros between
//! ```
//! Both kinds of entries cost 29 bytes besides their values.

use crate::design::{DATA_TAG, FS_KEY_BYTES, INODE_HEAD_BYTES, INODE_TAG};
use crate::kvseq::Span;
use crate::open::STABLE_READS;
use crate::{Error, Kvseq, Result, h64};

/// The largest area that is read: eight million pointers.
pub(crate) const MAX_AREA: u64 = 64 << 20;
/// Bytes of an entry of the data file besides its value: flag, key with its length, length of the value.
pub(crate) const FRAME_BYTES: u64 = 1 + 1 + FS_KEY_BYTES as u64 + 8;
/// Longest name of a file.
pub(crate) const MAX_NAME: usize = 0xffff;

const _: () = assert!(FRAME_BYTES == 29 && FS_KEY_BYTES == 3 + 8 + 8 && INODE_HEAD_BYTES == 1 + 2 + 4 + 8 + 8);

/// A key of the data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FsKey {
    Inode { file_id: u64, hash: u64 },
    Data { file_id: u64, offset: u64 },
}

impl FsKey {
    /// `None` for a key that no filesys wrote.
    pub fn decode(key: &[u8]) -> Option<Self> {
        let key: &[u8; FS_KEY_BYTES] = key.try_into().ok()?;
        let (tag, rest) = key.split_first_chunk::<3>()?;
        let (first, second) = rest.split_first_chunk::<8>()?;
        let (first, second) = (u64::from_be_bytes(*first), u64::from_be_bytes(second.try_into().ok()?));
        match *tag {
            INODE_TAG => Some(FsKey::Inode { file_id: first, hash: second }),
            DATA_TAG => Some(FsKey::Data { file_id: first, offset: second }),
            _ => None,
        }
    }

    pub fn encode(self) -> [u8; FS_KEY_BYTES] {
        let (tag, first, second) = match self {
            FsKey::Inode { file_id, hash } => (INODE_TAG, file_id, hash),
            FsKey::Data { file_id, offset } => (DATA_TAG, file_id, offset),
        };
        let mut key = [0; FS_KEY_BYTES];
        let bytes = tag.into_iter().chain(first.to_be_bytes()).chain(second.to_be_bytes());
        key.iter_mut().zip(bytes).for_each(|(to, b)| *to = b);
        key
    }
}

/// An inode, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inode {
    pub ptr: u64,
    pub file_id: u64,
    /// Hash in the key; that of the name, unless something is broken.
    pub hash: u64,
    pub deleted: bool,
    pub kind: u8,
    pub mtime: i64,
    pub size: u64,
    pub area: u64,
    pub name: Vec<u8>,
    pub pointers: Vec<u64>,
}

impl Inode {
    /// Bytes of the whole entry.
    pub fn entry_bytes(&self) -> u64 {
        FRAME_BYTES + INODE_HEAD_BYTES + self.area
    }

    /// The smallest area of `isz` doubled that holds so many pointers and a name.
    pub fn area_for(isz: u64, pointers: u64, name: usize) -> u64 {
        let needed = pointers.saturating_mul(8).saturating_add(name as u64);
        let mut area = isz.max(8);
        while area < needed {
            area = area.saturating_mul(2);
        }
        area
    }

    pub fn fits(&self, pointers: usize, name: usize) -> bool {
        (pointers as u64).saturating_mul(8).saturating_add(name as u64) <= self.area
    }

    /// The value of the entry.
    pub fn encode(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(usize::try_from(INODE_HEAD_BYTES + self.area).unwrap_or(0));
        value.push(self.kind);
        value.extend_from_slice(&u16::try_from(self.name.len()).unwrap_or(u16::MAX).to_be_bytes());
        value.extend_from_slice(&self.numbers());
        for ptr in &self.pointers {
            value.extend_from_slice(&ptr.to_be_bytes());
        }
        let end = usize::try_from(INODE_HEAD_BYTES + self.area).unwrap_or(usize::MAX);
        value.resize(end.saturating_sub(self.name.len()), 0);
        value.extend_from_slice(&self.name);
        value
    }

    /// P, mtime and size as they lie at offset 3.
    pub fn numbers(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        let pointers = u32::try_from(self.pointers.len()).unwrap_or(u32::MAX).to_be_bytes();
        let all = pointers.into_iter().chain(self.mtime.to_be_bytes()).chain(self.size.to_be_bytes());
        bytes.iter_mut().zip(all).for_each(|(to, b)| *to = b);
        bytes
    }

    pub fn key(&self) -> [u8; FS_KEY_BYTES] {
        FsKey::Inode { file_id: self.file_id, hash: self.hash }.encode()
    }

    /// Decodes an inode from its key and value; `found` says what is wrong.
    pub fn decode(ptr: u64, deleted: bool, key: &[u8], value: &[u8]) -> Result<Self, String> {
        let Some(FsKey::Inode { file_id, hash }) = FsKey::decode(key) else { return Err("another key".into()) };
        let Some((head, area)) = value.split_at_checked(usize::try_from(INODE_HEAD_BYTES).unwrap_or(23)) else {
            return Err(format!("a value of {} bytes", value.len()));
        };
        let word = |at: usize| head.get(at..).and_then(|b| b.first_chunk::<8>()).map_or(0, |b| u64::from_be_bytes(*b));
        let name_len = head.get(1..).and_then(|b| b.first_chunk::<2>()).map_or(0, |b| u16::from_be_bytes(*b));
        let pointers = head.get(3..).and_then(|b| b.first_chunk::<4>()).map_or(0, |b| u32::from_be_bytes(*b));
        let (name_len, pointers) = (usize::from(name_len), usize::try_from(pointers).unwrap_or(usize::MAX));
        let used = pointers.saturating_mul(8).saturating_add(name_len);
        if used > area.len() {
            return Err(format!("{pointers} pointers and a name of {name_len} bytes in {} bytes", area.len()));
        }
        if i64::try_from(word(15)).is_err() {
            return Err(format!("a file size of {}", word(15)));
        }
        let (front, name) = area.split_at(area.len() - name_len);
        let list = front.chunks_exact(8).take(pointers);
        Ok(Inode {
            ptr,
            file_id,
            hash,
            deleted,
            kind: head.first().copied().unwrap_or(0),
            mtime: i64::from_be_bytes(word(7).to_be_bytes()),
            size: word(15),
            area: area.len() as u64,
            name: name.to_vec(),
            pointers: list.map(|b| b.first_chunk::<8>().map_or(0, |b| u64::from_be_bytes(*b))).collect(),
        })
    }

    /// Whether the hash is that of the name. If it is not, the inode is broken, or was read while it got another name.
    pub fn is_one_piece(&self) -> bool {
        self.hash == h64(&self.name)
    }

    /// Reads the inode at `ptr`. Beside a writer it is read until two readings agree: the system does not promise that
    /// a read sees a concurrent write as a whole.
    pub fn load(data: &Kvseq, ptr: u64) -> Result<Self> {
        let mut inode = Self::load_once(data, ptr)?;
        if !data.is_settled() || !inode.is_one_piece() {
            for _ in 0..STABLE_READS {
                let again = Self::load_once(data, ptr)?;
                if again == inode {
                    break;
                }
                inode = again;
            }
        }
        Ok(inode)
    }

    fn load_once(data: &Kvseq, ptr: u64) -> Result<Self> {
        let mut head = [0; 1024];
        let (span, have) = data.span_with(ptr, &mut head)?;
        let broken = |found: String| Error::corrupt(data.path(), ptr, "an inode", found);
        if span.key_len != FS_KEY_BYTES as u64 || span.value_len > INODE_HEAD_BYTES + MAX_AREA {
            return Err(broken(format!("a key of {} and a value of {} bytes", span.key_len, span.value_len)));
        }
        let have = head.get(..have).unwrap_or_default();
        let key = part(data, &span, have, span.key_at, span.key_len)?;
        let value = part(data, &span, have, span.value_at, span.value_len)?;
        Self::decode(ptr, span.deleted, &key, &value).map_err(broken)
    }
}

/// Bytes of an entry, from those read already or the file.
fn part(data: &Kvseq, span: &Span, have: &[u8], at: u64, len: u64) -> Result<Vec<u8>> {
    let (start, len) =
        (usize::try_from(at - span.ptr).unwrap_or(usize::MAX), usize::try_from(len).unwrap_or(usize::MAX));
    if let Some(found) = have.get(start..).and_then(|h| h.get(..len)) {
        return Ok(found.to_vec());
    }
    let mut bytes = vec![0; len];
    data.read_raw(at, &mut bytes)?;
    Ok(bytes)
}

/// The name of the inode at `ptr`, without its pointers. `None` if there is none.
pub(crate) fn name_at(data: &Kvseq, ptr: u64) -> Result<Option<Vec<u8>>> {
    if !data.reaches(ptr)? {
        return Ok(None);
    }
    match Inode::load(data, ptr) {
        Ok(inode) => Ok(Some(inode.name)),
        Err(Error::CorruptEntry { .. } | Error::TornEntry { .. }) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The inodes of a data file as what an index by name points to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a>(pub &'a Kvseq);

impl crate::Keys for Names<'_> {
    fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool> {
        Ok(name_at(self.0, ptr)?.is_some_and(|name| name == key))
    }

    fn key_at(&self, ptr: u64) -> Result<Vec<u8>> {
        Ok(Inode::load(self.0, ptr)?.name)
    }
}
