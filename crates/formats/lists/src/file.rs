//! A file that holds a list: which one it is, and its bytes, unpacked.

use crate::lines::BUFFER;
use flate2::bufread::MultiGzDecoder;
use std::borrow::Cow;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::read_at::{Cursor, FileReader};
use trawl_io::{Compression, Fs, Mode};
use trawl_model::{Advice, DoorError, SourceIdentity};
pub use trawl_url::text_of;
use xxhash_rust::xxh3::Xxh3;

/// Largest window a zstd file may ask for, as a power of two: 128 MiB, what `zstd --long` writes.
const MAX_ZSTD_WINDOW: u32 = 27;

/// Takes the compression off a stream.
pub(crate) fn unpack<'a>(compression: Compression, packed: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match compression {
        Compression::None => Box::new(packed),
        Compression::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER, packed))),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(BUFFER, packed))?;
            decoder.window_log_max(MAX_ZSTD_WINDOW)?;
            Box::new(decoder)
        }
    })
}

/// Takes the compression off a stream that can be read only once; its first bytes tell which it is.
pub fn unpacked<'a>(mut stream: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    // What the first reads give is enough to tell: who types URLs into a pipe need not fill a buffer first.
    let (mut head, mut len) = (vec![0; BUFFER], 0);
    while len < 4 {
        match stream.read(head.get_mut(len..).unwrap_or_default())? {
            0 => break,
            n => len += n,
        }
    }
    head.truncate(len);
    unpack(Compression::detect(&head), io::Cursor::new(head).chain(stream))
}

/// What a file is called in commits and reports: its path, in which bytes that are not UTF-8 are escaped, so that different paths stay
/// different.
pub fn uri_of(path: &Path) -> Cow<'_, str> {
    text_of(path.as_os_str().as_encoded_bytes())
}

/// A file that holds a list: as many bytes of it as its identity says, however long it has become since.
#[derive(Debug, Clone)]
pub struct ListFile {
    /// The file system it is on.
    pub fs: Arc<dyn Fs>,
    /// Where it is there.
    pub path: PathBuf,
    /// How it is compressed.
    pub compression: Compression,
    /// Which one it is, and how many bytes of it are read.
    pub identity: SourceIdentity,
}

impl ListFile {
    /// Opens a file and hashes it: two files are the same source if their bytes are the same.
    pub fn open(fs: &Arc<dyn Fs>, path: &Path) -> trawl_io::Result<Self> {
        Ok(Self::open_marked(fs, path, &[])?.0)
    }

    /// As [`ListFile::open`], and gives the hash of the file's first bytes, as many as each of `marks` says. Marks must
    /// rise; those beyond the end of the file are left out.
    pub fn open_marked(fs: &Arc<dyn Fs>, path: &Path, marks: &[u64]) -> trawl_io::Result<(Self, Vec<String>)> {
        let file = fs.open(path, Mode::Read)?;
        let mut hasher = Xxh3::new();
        let mut buffer = vec![0; BUFFER];
        let (mut size, mut tags, mut head) = (0u64, Vec::new(), Vec::new());
        let mut marks = marks.iter().copied().peekable();
        loop {
            while marks.next_if_eq(&size).is_some() {
                tags.push(tag(&hasher));
            }
            let room = marks.peek().map_or(usize::MAX, |mark| usize::try_from(mark - size).unwrap_or(usize::MAX));
            let n = file.read_at(size, buffer.get_mut(..room.min(BUFFER)).unwrap_or_default())?;
            let read = buffer.get(..n).unwrap_or_default();
            if n == 0 {
                break;
            }
            if head.len() < 4 {
                head.extend(read.iter().take(4));
            }
            hasher.update(read);
            size += n as u64;
        }
        let identity = SourceIdentity { uri: uri_of(path).into_owned(), size, tag: tag(&hasher) };
        let compression = Compression::detect(&head);
        Ok((Self { fs: fs.clone(), path: path.into(), compression, identity }, tags))
    }

    /// A file whose bytes are known without reading them.
    pub fn known(fs: &Arc<dyn Fs>, path: &Path, identity: SourceIdentity) -> trawl_io::Result<Self> {
        let mut head = [0; 4];
        let n = fs.open(path, Mode::Read)?.read_at(0, &mut head)?;
        let compression = Compression::detect(head.get(..n).unwrap_or_default());
        Ok(Self { fs: fs.clone(), path: path.into(), compression, identity })
    }

    /// Its stored bytes, at any offset.
    pub fn bytes(&self) -> Result<FileReader, DoorError> {
        let open = || FileReader::up_to(self.fs.open(&self.path, Mode::Read)?, self.identity.size);
        open().map_err(|e| DoorError::new(Advice::Stop, e))
    }

    /// Its contents, unpacked, from the stored byte `start` on.
    pub fn reader(&self, start: u64) -> Result<Box<dyn Read>, DoorError> {
        let mut raw = Cursor::new(self.bytes()?);
        let unpacked = raw.seek(SeekFrom::Start(start)).and_then(|_| unpack(self.compression, raw));
        unpacked.map_err(|e| DoorError::new(Advice::Stop, e))
    }
}

fn tag(hasher: &Xxh3) -> String {
    format!("xxh3:{:016x}", hasher.digest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::file_of;

    #[test]
    fn identity_follows_the_bytes() {
        let of = |bytes: &[u8]| file_of("f", bytes).identity;
        assert_eq!(of(b"a"), of(b"a"));
        assert_ne!(of(b"a").tag, of(b"b").tag);
        assert_eq!(of(b"abc").size, 3);
    }

    /// Two files were one source, and the second was skipped.
    #[test]
    fn paths_that_are_not_utf8_stay_different() {
        use std::os::unix::ffi::OsStrExt;
        let uri = |name: &[u8]| uri_of(Path::new(std::ffi::OsStr::from_bytes(name))).into_owned();
        assert_eq!((uri(b"/a/\xe4.txt"), uri(b"/a/\xe5.txt")), ("/a/%E4.txt".into(), "/a/%E5.txt".into()));
        assert_eq!(uri("/a/%E4ä.txt".as_bytes()), "/a/%E4ä.txt");
    }

    #[test]
    fn marks_are_hashes_of_beginnings() {
        let file = file_of("f", b"abcdef");
        let (_, tags) = ListFile::open_marked(&file.fs, &file.path, &[0, 2, 6, 9]).unwrap();
        let expected: Vec<String> =
            [&b""[..], b"ab", b"abcdef"].iter().map(|bytes| file_of("g", bytes).identity.tag).collect();
        assert_eq!(tags, expected);
    }
}
