//! Every constant that the published description leaves open, in one place.
//!
//! The formats' page names the parts and their order; its lists were lost. What is here was chosen to fit every fact
//! that is known. Should a genuine file turn up and disagree, this is the module to change; `docs/formats/seqdb.md`
//! marks each choice.

/// The first eight bytes of every file. (Known, not chosen; here for company.)
pub const MAGIC: [u8; 8] = *b"#!WINKME";

/// Bytes of one variable of the superblock: a name of eight bytes, a value of eight.
pub const SLOT_BYTES: usize = 16;

/// The smallest superblock: room for three variables.
pub const MIN_SBSIZE: u64 = 64;
/// The largest superblock: 16 MiB.
pub const MAX_SBSIZE: u64 = 16 << 20;
/// The superblock unless told otherwise.
pub const DEFAULT_SBSIZE: u64 = 4096;

/// A kvseq grows in steps of this many bytes unless told otherwise.
pub const DEFAULT_FILEINCR: i64 = 4 << 20;

/// SYNCSIZE of a hash table that is in use.
pub const SYNC_IN_USE: u64 = 0;
/// SYNCSIZE of a hash table or perm whose container is being exchanged for another: its pointers must not be followed.
pub const SYNC_ASTRAY: u64 = 1;

/// First word of a cell that was never used.
pub const FREE_CELL: u64 = 0;
/// First word of a cell whose key was deleted.
pub const DELETED_CELL: u64 = u64::MAX;
/// The smallest hash table.
pub const MIN_HTSIZE: u64 = 2;
/// HTALGO of MD5, the only algorithm.
pub const HTALGO_MD5: i64 = 1;
/// The hash parameter of a perm file unless told otherwise: the hash stays non-negative.
pub const PERM_HTSIZE: i64 = i64::MAX;

/// Inode area of a new file unless told otherwise.
pub const DEFAULT_ISZ: u64 = 512;
/// Inode area of a capture unless told otherwise: most URLs fit.
pub const PAGES_ISZ: u64 = 128;
/// The smallest inode area.
pub const MIN_ISZ: u64 = 16;
/// Key tag of an inode.
pub const INODE_TAG: [u8; 3] = *b"FSI";
/// Key tag of a data entry.
pub const DATA_TAG: [u8; 3] = *b"FSD";
/// Bytes of both kinds of keys: tag, file id, name hash or offset.
pub const FS_KEY_BYTES: usize = 19;
/// Bytes of an inode before its area.
pub const INODE_HEAD_BYTES: u64 = 23;
/// Most bytes that a file reserves beyond what it needs when it grows.
pub const MAX_GROWTH: u64 = 4 << 20;
/// Longest name of a filesys.
pub const MAX_FILESYS_NAME: usize = 200;
/// Seconds between two marks of a timefile unless told otherwise.
pub const DEFAULT_TIMEMP: i64 = 60;

/// Suffix of the data file of a filesys. (Known.)
pub const DATA_SUFFIX: &str = "data";
/// Suffix of its index.
pub const INDEX_SUFFIX: &str = "idx";
/// Suffix of its timefile.
pub const TIME_SUFFIX: &str = "time";
/// Suffix of the entries of a map.
pub const KVSEQ_SUFFIX: &str = "kvseq";
/// Suffix of the index of a map.
pub const HINDEX_SUFFIX: &str = "hindex";
/// Suffix of the lock file of a filesys, or of a file of its own.
pub const LOCK_SUFFIX: &str = "lock";
/// Suffix of the second index of a container of captures: URL to its newest capture.
pub const URL_INDEX_SUFFIX: &str = "urls";
/// What the name of a filesys under construction by a compaction ends with.
pub const NEW_SUFFIX: &str = ".new";
/// The lock of a whole base. (Known.)
pub const GLOBAL_LOCK: &str = "GLOBAL.lock";

/// PGREAD, the bytes that hold nearly every capture, in a new container.
pub const PAGE_READ_START: u64 = 32 << 10;
/// The least it becomes.
pub const PAGE_READ_MIN: u64 = 4 << 10;
/// The most it becomes: larger captures take a second read.
pub const PAGE_READ_MAX: u64 = 1 << 20;
/// A capture that does not fit makes it larger by this part of itself.
pub const PAGE_READ_UP: u64 = 16;
/// One that fits makes it smaller by this part: it settles where about `UP / (UP + DOWN)` of captures do not fit.
pub const PAGE_READ_DOWN: u64 = 4096;

/// PURPOSE of a data file. (Known.)
pub const PURPOSE_DATA: &str = "FSYSDATA";
/// PURPOSE of an index. (Known.)
pub const PURPOSE_INDEX: &str = "FSYSIDX";
/// PURPOSE of a timefile. (Known.)
pub const PURPOSE_TIME: &str = "FSYSTIME";
/// PURPOSE of the URL index of a container of captures.
pub const PURPOSE_URLS: &str = "FSYSURLS";

/// An index is made larger, or rid of deleted cells, once `LOAD_NUM / LOAD_DEN` of it is used.
pub const LOAD_NUM: u64 = 3;
/// See [`LOAD_NUM`].
pub const LOAD_DEN: u64 = 4;

/// File type of a plain file. (Known.)
pub const TYPE_PLAIN: char = 'f';
/// File type of a gzip-compressed file. (Known.)
pub const TYPE_GZIP: char = 'c';
/// File type of a zstd-compressed file.
pub const TYPE_ZSTD: char = 'z';
