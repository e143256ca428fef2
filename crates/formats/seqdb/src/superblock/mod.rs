//! The superblock: what a container is, and a short list of variables.
//!
//! ```text
//! offset 0        8 bytes   23 21 57 49 4e 4b 4d 45  "#!WINKME"
//! offset 8        slot 0    SBSIZE   name, NUL-padded to 8 | value, 8 bytes big-endian
//! offset 24       slot 1    FORMAT   16 kvseq, 32 hindex, 48 perm
//! offset 40       slot 2    PURPOSE  the value is a text of up to 8 bytes, NUL-padded; 0: none
//! offset 8+16*i   slot i    any variable, each name once; the list ends at the first slot without a name
//! ...             zeros
//! offset SBSIZE   the body
//! ```
//! SBSIZE never changes. Unknown variables are kept, in their order. With at most 31 variables all of them lie
//! in the first sector, so that a rewrite is one sector.

mod name;
#[cfg(test)]
mod tests;

pub use name::{Name, Purpose};

use crate::design::{MAGIC, MAX_SBSIZE, MIN_SBSIZE, SLOT_BYTES};
use crate::num::{index, signed};
use crate::{Error, Kind, Result, Settings, design};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The variables of a container, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    path: PathBuf,
    sbsize: u64,
    kind: Kind,
    vars: Vec<(Name, i64)>,
}

impl Superblock {
    /// A superblock with the three variables every file has. `path` is for messages.
    pub fn new(path: &Path, sbsize: u64, kind: Kind, purpose: Purpose) -> Result<Self> {
        check_sbsize(path, sbsize)?;
        let vars =
            vec![(Name::SBSIZE, signed(sbsize)), (Name::FORMAT, kind.format()), (Name::PURPOSE, purpose.to_value())];
        Ok(Superblock { path: path.into(), sbsize, kind, vars })
    }

    /// SBSIZE, from the first bytes of a file: how many [`Superblock::decode`] needs.
    pub fn sbsize_of(path: &Path, head: &[u8]) -> Result<u64> {
        if head.get(..MAGIC.len()) != Some(&MAGIC) {
            let found = head.get(..MAGIC.len()).unwrap_or(head);
            let found = match std::str::from_utf8(found) {
                Ok("") => "nothing".to_owned(),
                Ok(text) if !text.chars().any(char::is_control) => format!("{text:?}"),
                _ => format!("bytes {}", found.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")),
            };
            return Err(Error::BadMagic { path: path.into(), found });
        }
        match slot(head, 0) {
            Some((Name::SBSIZE, value)) => check_sbsize(path, u64::try_from(value).unwrap_or(u64::MAX)),
            Some((name, _)) => Err(bad(path, 8, "SBSIZE as the first variable", name)),
            None => Err(bad(path, 8, "SBSIZE as the first variable", format!("{} bytes", head.len()))),
        }
    }

    /// Reads a superblock from the first bytes of a file. Fewer bytes than SBSIZE will do if the list ends in them.
    pub fn decode(path: &Path, head: &[u8]) -> Result<Self> {
        let sbsize = Self::sbsize_of(path, head)?;
        let mut vars = Vec::new();
        let mut seen = HashSet::new();
        for i in 0..capacity(sbsize) {
            let at = (MAGIC.len() + i * SLOT_BYTES) as u64;
            let Some((name, value)) = slot(head, i) else {
                return Err(bad(path, at, "a variable or the end of the list", "the end of the file"));
            };
            if name.is_none() {
                break;
            }
            if !name.is_legal() {
                return Err(bad(path, at, "a name of A-Z, 0-9 and _", name));
            }
            if !seen.insert(name) {
                return Err(bad(path, at, "each variable once", name));
            }
            vars.push((name, value));
        }
        let format = match vars.get(1) {
            Some((Name::FORMAT, format)) => *format,
            _ => return Err(bad(path, 24, "FORMAT as the second variable", listed(&vars, 1))),
        };
        if vars.get(2).map(|(name, _)| *name) != Some(Name::PURPOSE) {
            return Err(bad(path, 40, "PURPOSE as the third variable", listed(&vars, 2)));
        }
        let kind = Kind::from_format(format).ok_or_else(|| Error::UnknownFormat {
            path: path.into(),
            expected: "16 (kvseq), 32 (hindex) or 48 (perm)",
            found: format,
        })?;
        Ok(Superblock { path: path.into(), sbsize, kind, vars })
    }

    /// The used part: magic and variables. What follows up to SBSIZE is zeros.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MAGIC.len() + self.vars.len() * SLOT_BYTES);
        bytes.extend_from_slice(&MAGIC);
        for (name, value) in &self.vars {
            bytes.extend_from_slice(&name.0);
            bytes.extend_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    /// All SBSIZE bytes, for a new file.
    pub fn encode_full(&self) -> Vec<u8> {
        let mut bytes = self.encode();
        bytes.resize(index(self.sbsize), 0);
        bytes
    }

    /// The file, as messages name it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size; the body starts there.
    pub fn sbsize(&self) -> u64 {
        self.sbsize
    }

    /// Which format the body has.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What the file is for.
    pub fn purpose(&self) -> Purpose {
        Purpose::from_value(self.value(Name::PURPOSE).unwrap_or(0))
    }

    /// The value of a variable; `None` as well for a text that cannot be a name.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.value(Name::parse(name)?)
    }

    /// The value of a variable.
    pub fn value(&self, name: Name) -> Option<i64> {
        self.vars.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    /// All variables, in their order.
    pub fn variables(&self) -> impl Iterator<Item = (Name, i64)> + '_ {
        self.vars.iter().copied()
    }

    /// Those that users have given it.
    pub(crate) fn user_variables(&self) -> impl Iterator<Item = (Name, i64)> + '_ {
        self.variables().filter(|(name, _)| !name.is_known())
    }

    /// Sets a variable: an existing one keeps its slot, a new one is appended. SBSIZE and FORMAT cannot be set.
    pub fn set(&mut self, name: &str, value: i64) -> Result<()> {
        let Some(name) = Name::parse(name) else {
            let why = format!("expected a variable name of 1 to 8 characters (A-Z, 0-9, _), found {name:?}");
            return Err(Error::refused(&self.path, why));
        };
        if name == Name::SBSIZE || name == Name::FORMAT {
            return Err(Error::refused(&self.path, format!("{name} is fixed when the file is created")));
        }
        self.put(name, value)
    }

    /// Sets or appends a variable that the caller knows to be legal.
    pub(crate) fn put(&mut self, name: Name, value: i64) -> Result<()> {
        if self.update(name, value) {
            return Ok(());
        }
        if self.vars.len() >= capacity(self.sbsize) {
            let (name, sbsize) = (name.to_string(), self.sbsize);
            return Err(Error::SuperblockFull { path: self.path.clone(), name, sbsize });
        }
        self.vars.push((name, value));
        Ok(())
    }

    /// The variables of a new file that has no body yet, up to FILEINCR if it can grow.
    pub(crate) fn put_sizes(&mut self, fileincr: Option<i64>, settings: &Settings) -> Result<()> {
        self.put(Name::FILESIZE, signed(self.sbsize))?;
        fileincr.map_or(Ok(()), |step| self.put(Name::FILEINCR, step))?;
        self.put(Name::SYNCSIZE, signed(self.sbsize))?;
        self.put(Name::SYNCTIME, settings.clock.seconds())
    }

    pub(crate) fn put_all(&mut self, variables: &[(Name, i64)]) -> Result<()> {
        variables.iter().try_for_each(|(name, value)| self.put(*name, *value))
    }

    /// The same for a file at `path` that has no entries yet. What is not counted here is not counted there.
    pub(crate) fn emptied(&self, path: &Path, settings: &Settings) -> Self {
        let mut sb = Superblock { path: path.into(), ..self.clone() };
        for (name, value) in &mut sb.vars {
            match *name {
                Name::FILESIZE | Name::SYNCSIZE => *value = signed(self.sbsize),
                Name::SYNCTIME => *value = settings.clock.seconds(),
                Name::ENTRIES | Name::AENTRIES | Name::PERMSIZE | Name::DTOTSZ | Name::ITOTSZ => *value = 0,
                _ => {}
            }
        }
        sb
    }

    /// Sets a variable only if it exists, as counters demand. Says whether it does.
    pub(crate) fn update(&mut self, name: Name, value: i64) -> bool {
        match self.vars.iter_mut().find(|(n, _)| *n == name) {
            Some((_, old)) => {
                *old = value;
                true
            }
            None => false,
        }
    }

    /// A variable that holds a length or an offset.
    pub(crate) fn length(&self, name: Name) -> Result<Option<u64>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        match u64::try_from(value) {
            Ok(n) => Ok(Some(n)),
            Err(_) => Err(bad(&self.path, self.offset_of(name), "no negative length", format!("{name} = {value}"))),
        }
    }

    /// The logical end that FILESIZE claims, or that of the file, which has `room` bytes; an error if the claim is false.
    pub(crate) fn logical_end(&self, room: u64) -> Result<u64> {
        let end = self.length(Name::FILESIZE)?.unwrap_or(room);
        if end < self.sbsize {
            return Err(self.fault(Name::FILESIZE, "a FILESIZE not below SBSIZE"));
        }
        if end > room {
            return Err(Error::FileSizeBeyondEof { path: self.path.clone(), filesize: end, unix: room });
        }
        Ok(end)
    }

    /// A variable without which the file makes no sense.
    pub(crate) fn required(&self, name: Name, expected: &'static str) -> Result<i64> {
        self.value(name).ok_or_else(|| bad(&self.path, 8, expected, "none"))
    }

    /// Refuses hashes of another algorithm.
    pub(crate) fn expect_md5(&self) -> Result<()> {
        match self.required(Name::HTALGO, "the variable HTALGO")? {
            design::HTALGO_MD5 => Ok(()),
            _ => Err(self.fault(Name::HTALGO, "HTALGO 1 (MD5)")),
        }
    }

    /// An error about a variable's value.
    pub(crate) fn fault(&self, name: Name, expected: &'static str) -> Error {
        let found = self.value(name).map_or_else(|| "none".to_owned(), |v| format!("{name} = {v}"));
        bad(&self.path, self.offset_of(name), expected, found)
    }

    fn offset_of(&self, name: Name) -> u64 {
        let slot = self.vars.iter().position(|(n, _)| *n == name).unwrap_or(0);
        (MAGIC.len() + slot * SLOT_BYTES) as u64
    }
}

/// How many variables fit.
fn capacity(sbsize: u64) -> usize {
    (index(sbsize) - MAGIC.len()) / SLOT_BYTES
}

fn check_sbsize(path: &Path, sbsize: u64) -> Result<u64> {
    if (MIN_SBSIZE..=MAX_SBSIZE).contains(&sbsize) && sbsize.is_multiple_of(8) {
        return Ok(sbsize);
    }
    Err(bad(path, 16, "SBSIZE, a multiple of 8 from 64 to 16777216", sbsize))
}

fn slot(head: &[u8], i: usize) -> Option<(Name, i64)> {
    let start = MAGIC.len() + i * SLOT_BYTES;
    let slot = head.get(start..start + SLOT_BYTES)?;
    let (name, value) = slot.split_first_chunk::<8>()?;
    Some((Name(*name), i64::from_be_bytes(value.try_into().ok()?)))
}

fn listed(vars: &[(Name, i64)], i: usize) -> String {
    vars.get(i).map_or_else(|| "nothing".to_owned(), |(name, _)| name.to_string())
}

fn bad(path: &Path, offset: u64, expected: &'static str, found: impl ToString) -> Error {
    Error::BadSuperblock { path: path.into(), offset, expected, found: found.to_string() }
}
