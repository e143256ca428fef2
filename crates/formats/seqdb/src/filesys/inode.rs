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
use crate::file::STABLE_READS;
use crate::hindex::Keyed;
use crate::kvseq::{Head, Scan};
use crate::num::index;
use crate::sorting::number;
use crate::superblock::Name;
use crate::{Error, Keys, Kvseq, Result, h64};

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
        let end = index(INODE_HEAD_BYTES + self.area);
        let mut value = Vec::with_capacity(end);
        value.push(self.kind);
        // Names have at most MAX_NAME bytes.
        value.extend_from_slice(&(self.name.len() as u16).to_be_bytes());
        value.extend_from_slice(&self.numbers());
        for ptr in &self.pointers {
            value.extend_from_slice(&ptr.to_be_bytes());
        }
        value.resize(end - self.name.len(), 0);
        value.extend_from_slice(&self.name);
        value
    }

    /// P, mtime and size as they lie at offset 3.
    pub fn numbers(&self) -> [u8; 20] {
        let mut bytes = [0; 20];
        // An area of MAX_AREA holds eight million pointers.
        let pointers = (self.pointers.len() as u32).to_be_bytes();
        let all = pointers.into_iter().chain(self.mtime.to_be_bytes()).chain(self.size.to_be_bytes());
        bytes.iter_mut().zip(all).for_each(|(to, b)| *to = b);
        bytes
    }

    pub fn key(&self) -> [u8; FS_KEY_BYTES] {
        FsKey::Inode { file_id: self.file_id, hash: self.hash }.encode()
    }

    /// Decodes the inode that lies at `ptr` of `data` from its key and value.
    pub fn decode(data: &Kvseq, ptr: u64, deleted: bool, key: &[u8], value: &[u8]) -> Result<Self> {
        let broken = |found: String| Err(Error::corrupt(data.path(), ptr, "an inode", found));
        let Some(FsKey::Inode { file_id, hash }) = FsKey::decode(key) else { return broken("another key".into()) };
        let split = || {
            let (&[kind], rest) = value.split_first_chunk()?;
            let (name_len, rest) = rest.split_first_chunk()?;
            let (pointers, rest) = rest.split_first_chunk()?;
            let (mtime, rest) = rest.split_first_chunk()?;
            let (size, area) = rest.split_first_chunk()?;
            let lengths = (usize::from(u16::from_be_bytes(*name_len)), u32::from_be_bytes(*pointers) as usize);
            Some((kind, lengths, i64::from_be_bytes(*mtime), u64::from_be_bytes(*size), area))
        };
        let Some((kind, (name_len, pointers), mtime, size, area)) = split() else {
            return broken(format!("a value of {} bytes", value.len()));
        };
        if pointers * 8 + name_len > area.len() {
            return broken(format!("{pointers} pointers and a name of {name_len} bytes in {} bytes", area.len()));
        }
        if i64::try_from(size).is_err() {
            return broken(format!("a file size of {size}"));
        }
        let (front, name) = area.split_at(area.len() - name_len);
        let (name, area) = (name.to_vec(), area.len() as u64);
        let pointers = front.chunks_exact(8).take(pointers).map(|bytes| number(bytes, 0)).collect();
        Ok(Inode { ptr, file_id, hash, deleted, kind, mtime, size, area, name, pointers })
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
        let mut buf = [0; 1024];
        Self::of_head(data, &data.head(ptr, &mut buf)?)
    }

    /// The inode of which the first bytes were read.
    pub fn of_head(data: &Kvseq, head: &Head<'_>) -> Result<Self> {
        let span = head.span;
        if span.key_len != FS_KEY_BYTES as u64 || span.value_len > INODE_HEAD_BYTES + MAX_AREA {
            let found = format!("a key of {} and a value of {} bytes", span.key_len, span.value_len);
            return Err(Error::corrupt(data.path(), span.ptr, "an inode", found));
        }
        if let (Some(key), Some(value)) = (head.key(), head.value()) {
            return Self::decode(data, span.ptr, span.deleted, key, value);
        }
        let key = data.part(head, span.key_at, span.key_len)?;
        let value = data.part(head, span.value_at, span.value_len)?;
        Self::decode(data, span.ptr, span.deleted, &key, &value)
    }
}

/// An inode of a scan: its pointer, whether it is marked deleted, and what it holds or why not.
pub(crate) type Scanned = (u64, bool, Result<Inode>);

/// The next inode of a scan.
pub(crate) fn next_inode(data: &Kvseq, scan: &mut Scan<'_>) -> Result<Option<Scanned>> {
    while let Some(item) = scan.next_entry()? {
        if matches!(FsKey::decode(item.key), Some(FsKey::Inode { .. })) {
            let inode = match item.value {
                Some(value) => Inode::decode(data, item.ptr, item.deleted, item.key, value),
                None => Inode::load(data, item.ptr),
            };
            return Ok(Some((item.ptr, item.deleted, inode)));
        }
    }
    Ok(None)
}

/// The name of the inode at `ptr`. `None` if there is none.
pub(crate) fn name_at(data: &Kvseq, ptr: u64) -> Result<Option<Vec<u8>>> {
    Ok(inode_at(data, ptr)?.map(|inode| inode.name))
}

/// The inode that a cell leads to; a cell that leads to no inode leads nowhere.
pub(crate) fn inode_at(data: &Kvseq, ptr: u64) -> Result<Option<Inode>> {
    if !data.reaches(ptr)? {
        return Ok(None);
    }
    match Inode::load(data, ptr) {
        Ok(inode) => Ok(Some(inode)),
        Err(Error::CorruptEntry { .. } | Error::TornEntry { .. }) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The inodes of a data file as what an index by name points to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a>(pub &'a Kvseq);

impl Keys for Names<'_> {
    fn container(&self) -> &Kvseq {
        self.0
    }

    fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool> {
        Ok(name_at(self.0, ptr)?.is_some_and(|name| name == key))
    }

    fn key_at(&self, ptr: u64) -> Result<Vec<u8>> {
        Ok(Inode::load(self.0, ptr)?.name)
    }

    fn each(&self, take: &mut dyn FnMut(Keyed<'_>) -> Result<()>) -> Result<()> {
        let mut scan = self.0.scan().with_deleted().keys_only();
        while let Some((ptr, deleted, inode)) = next_inode(self.0, &mut scan)? {
            // A check tells elsewhere of an inode that cannot be read; a cell that points to it leads nowhere.
            if let Ok(inode) = inode {
                take(Keyed { ptr, deleted, key: &inode.name, rank: 0 })?;
            }
        }
        Ok(())
    }

    fn are_all_found(&self) -> bool {
        self.0.superblock().value(Name::HAVEDUPS) != Some(1)
    }
}
