//! Names of variables, and the one value that is a text.

use std::fmt;

/// The name of a variable, as stored: 1 to 8 of `A-Z 0-9 _`, a letter first, padded with NUL.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub(super) [u8; 8]);

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident)+) => {
        impl Name {
            $($(#[$doc])* pub const $name: Name = Name::padded(stringify!($name));)+

            /// The names that have a meaning in these formats.
            const KNOWN: &[Name] = &[$(Name::$name),+];
        }
    };
}

names! {
    /// Size of the superblock.
    SBSIZE
    /// Which format.
    FORMAT
    /// What the file is for.
    PURPOSE
    /// Logical end of the file.
    FILESIZE
    /// Step in which the file grows.
    FILEINCR
    /// Logical end at the last sync.
    SYNCSIZE
    /// Time of the last sync, seconds since 1970.
    SYNCTIME
    /// Representation of keys.
    KEYREPR
    /// Representation of values.
    VALREPR
    /// 1: entries have a delete flag.
    KVDELFL
    /// Entries start at multiples of this.
    ALIGN
    /// Entries; of an index: cells that are not free.
    ENTRIES
    /// Entries not deleted; of an index: cells in use.
    AENTRIES
    /// Hash algorithm.
    HTALGO
    /// Cells of an index; parameter of the hash of a perm.
    HTSIZE
    /// 64-bit words of a cell.
    CELLSZ
    /// Pairs of a perm.
    PERMSIZE
    /// Inode area of new files.
    ISZ
    /// 1: deletions are recorded in the index only.
    HAVEDUPS
    /// 1: append-only.
    HAVEAO
    /// Bytes in data entries of existing files.
    DTOTSZ
    /// Bytes of inode entries of existing files.
    ITOTSZ
    /// Ties the files of a filesys together.
    FSGEN
    /// Seconds between two marks of a timefile.
    TIMEMP
    /// Ours, in the data file of a container of captures: the mtime of the last file.
    LASTMT
    /// Ours, there too: bytes that hold inode and contents of nearly every capture, so that one read does.
    PGREAD
}

impl Name {
    const fn padded(text: &str) -> Name {
        let (bytes, mut name, mut i) = (text.as_bytes(), [0; 8], 0);
        while i < bytes.len() && i < 8 {
            // Constant evaluation: a bad index would not compile.
            #[allow(clippy::indexing_slicing)]
            {
                name[i] = bytes[i];
            }
            i += 1;
        }
        Name(name)
    }

    /// A name from text; `None` if the format does not allow it.
    pub fn parse(text: &str) -> Option<Name> {
        let name = Name::padded(text);
        (text.len() <= 8 && name.is_legal() && name.text() == text.as_bytes()).then_some(name)
    }

    /// Whether the formats say what it means: else it is a user's.
    pub(crate) fn is_known(self) -> bool {
        Self::KNOWN.contains(&self)
    }

    /// Eight NULs: the end of the list.
    pub(super) fn is_none(self) -> bool {
        self.0 == [0; 8]
    }

    /// Whether the format allows it.
    pub(super) fn is_legal(self) -> bool {
        let (text, padding) = self.0.split_at(self.text().len());
        text.first().is_some_and(u8::is_ascii_uppercase)
            && text.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
            && padding.iter().all(|b| *b == 0)
    }

    fn text(&self) -> &[u8] {
        self.0.split(|b| *b == 0).next().unwrap_or_default()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Through `pad`, so that a width works; names from a broken file may hold anything.
        f.pad(&String::from_utf8_lossy(self.text()).escape_debug().to_string())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a file is for: a text of up to eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Purpose([u8; 8]);

impl Purpose {
    /// From a text; `None` if it is longer than eight bytes or holds a NUL.
    pub fn new(text: &str) -> Option<Self> {
        if text.len() > 8 || text.contains('\0') {
            return None;
        }
        Some(Self(Name::padded(text).0))
    }

    /// A text known to be short enough; the rest of a longer one is dropped.
    pub(crate) const fn fixed(text: &str) -> Self {
        Self(Name::padded(text).0)
    }

    /// From the value of the variable.
    pub fn from_value(value: i64) -> Self {
        Self(value.to_be_bytes())
    }

    /// As the value of the variable.
    pub fn to_value(self) -> i64 {
        i64::from_be_bytes(self.0)
    }

    /// Whether there is none.
    pub fn is_none(self) -> bool {
        self.0 == [0; 8]
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.split(|b| *b == 0).next().unwrap_or_default();
        f.pad(&String::from_utf8_lossy(text).escape_debug().to_string())
    }
}

impl fmt::Debug for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}
