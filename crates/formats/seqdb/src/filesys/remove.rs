//! Deleting and renaming files.

use super::Filesys;
use super::inode::Inode;
use crate::error::shown;
use crate::hindex::Found;
use crate::num::signed;
use crate::{Error, Result, h64};

impl Filesys {
    /// Deletes a file: its name, and unless deletions are recorded in the index only, its inode and data.
    pub fn delete_file(&mut self, name: &[u8]) -> Result<()> {
        self.begin()?;
        self.open.expect_closed(&self.paths, name)?;
        let Found::Here { cell, what: inode, .. } = self.find(name)? else { return Err(self.not_found(name)) };
        let extents = self.extents(&inode)?;
        self.index.clear(cell)?;
        if !self.have_dups {
            self.data.delete(inode.ptr)?;
            for extent in &extents {
                self.data.delete(extent.ptr)?;
            }
        }
        self.itot = self.itot.saturating_sub(signed(inode.entry_bytes()));
        self.dtot = self.dtot.saturating_sub(signed(extents.iter().map(|e| e.len).sum::<u64>()));
        self.settle()
    }

    /// Takes only the name away; the data file is not touched. A rebuild of the index brings the file back.
    pub fn delete_name_from_index(&mut self, name: &[u8]) -> Result<()> {
        if self.have_dups {
            // That is what deleting is, and the sums are over the files that the index knows.
            return self.delete_file(name);
        }
        self.begin()?;
        self.open.expect_closed(&self.paths, name)?;
        let Found::Here { cell, .. } = self.find(name)? else { return Err(self.not_found(name)) };
        self.index.clear(cell)?;
        self.settle()
    }

    /// Gives a file another name, which must be free.
    pub fn rename_file(&mut self, old: &[u8], new: &[u8]) -> Result<()> {
        self.prepare()?;
        self.open.expect_closed(&self.paths, old)?;
        self.open.expect_closed(&self.paths, new)?;
        self.expect_name(new)?;
        let Found::Here { cell, what: inode, .. } = self.find(old)? else { return Err(self.not_found(old)) };
        let place = match self.find(new)? {
            Found::Here { .. } => return Err(Error::FileExists(self.paths.data(), shown(new))),
            absent => absent,
        };
        let mut renamed = inode.clone();
        renamed.name = new.to_vec();
        renamed.hash = h64(new);
        let in_place = inode.fits(inode.pointers.len(), new.len());
        if !in_place {
            renamed = self.store_larger(&renamed, 0)?;
            self.announce(&inode)?;
            self.itot = self.itot.saturating_add(signed(renamed.entry_bytes() - inode.entry_bytes()));
        }
        self.index.occupy(place, renamed.hash, renamed.ptr)?;
        if self.have_dups {
            // Only the index says that a file exists: it must know one of its names all the time.
            self.flush()?;
        }
        if in_place {
            self.rename_in_place(&inode, &renamed)?;
        }
        self.index.clear(cell)?;
        if renamed.ptr != inode.ptr {
            self.retire(inode.ptr)?;
        }
        self.settle()
    }

    /// Rewrites the hash in the key, the length of the name and the name, all in one write: a reader beside must not see
    /// a part of one name and a part of the other.
    fn rename_in_place(&mut self, old: &Inode, new: &Inode) -> Result<()> {
        // Nothing that is held back may be overtaken.
        self.announce(old)?;
        let value = new.encode();
        let mut bytes = new.key().to_vec();
        bytes.extend_from_slice(&(value.len() as u64).to_be_bytes());
        bytes.extend_from_slice(&value);
        let at = self.data.span(old.ptr)?.key_at;
        self.data.overwrite_raw(at, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Clock, CreateFilesys, Findings, FsPaths, Settings, filesys, silent};
    use std::path::Path;
    use trawl_io::fault::FaultFs;
    use trawl_model::UnixMillis;

    #[test]
    fn what_only_the_index_knew_is_not_counted() {
        let disk = FaultFs::new();
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
        let paths = FsPaths::new(Path::new("/"), "f").unwrap();
        let mut fs = CreateFilesys { have_dups: true, ..CreateFilesys::new(1) }.create(&paths, &settings).unwrap();
        for name in [b"a", b"b"] {
            fs.put_file(name, 'f', None, b"12").unwrap();
        }
        fs.delete_name_from_index(b"a").unwrap();
        fs.close().unwrap();
        let mut findings = Findings::new();
        assert_eq!(filesys::verify(&paths, &settings, &mut findings, &silent).unwrap().files, 1);
        assert!(findings.is_sound(), "{:?}", findings.list());
    }
}
