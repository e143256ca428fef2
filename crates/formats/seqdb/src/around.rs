//! What the files around a file say of it.

use crate::aside::dir_of;
use crate::design::{
    DATA_SUFFIX, INDEX_SUFFIX, PURPOSE_DATA, PURPOSE_INDEX, PURPOSE_TIME, PURPOSE_URLS, TIME_SUFFIX, URL_INDEX_SUFFIX,
};
use crate::file::read_up_to;
use crate::filesys::FsPaths;
use crate::kind::{HEAD_BYTES, purpose_of};

use std::path::Path;
use trawl_io::{Fs, Mode};

/// The files of a filesys, and what each says of itself.
const PARTS: [(&str, &str); 4] = [
    (DATA_SUFFIX, PURPOSE_DATA),
    (INDEX_SUFFIX, PURPOSE_INDEX),
    (TIME_SUFFIX, PURPOSE_TIME),
    (URL_INDEX_SUFFIX, PURPOSE_URLS),
];

/// The filesys that `path` is a part of by its name, if another of its files says that there is one. The file itself is
/// not asked: it may be broken, or missing.
pub fn filesys_around(path: &Path, fs: &dyn Fs) -> Option<FsPaths> {
    let suffix = path.extension()?.to_str()?;
    let paths = FsPaths::new(dir_of(path), path.file_stem()?.to_str()?).ok()?;
    let others = PARTS.iter().filter(|(other, _)| *other != suffix);
    // All of them are others if the suffix is none of ours.
    let is_part = others.clone().count() < PARTS.len();
    (is_part && others.into_iter().any(|(other, purpose)| says(&paths.file(other), purpose, fs))).then_some(paths)
}

/// Whether there is a file that says it is for `purpose`.
fn says(path: &Path, purpose: &str, fs: &dyn Fs) -> bool {
    let head = fs.open(path, Mode::Read).ok().and_then(|file| read_up_to(&*file, 0, HEAD_BYTES).ok());
    head.and_then(|head| purpose_of(&head)).is_some_and(|found| found.to_string() == purpose)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, CreateFilesys, CreateKvseq, Settings};
    use trawl_io::fault::FaultFs;
    use trawl_model::UnixMillis;

    #[test]
    fn the_others_tell() {
        let disk = FaultFs::new();
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
        let paths = FsPaths::new(Path::new("/"), "fs").unwrap();
        CreateFilesys::new(1).create(&paths, &settings).unwrap().close().unwrap();
        CreateKvseq::default().create(Path::new("/words.data"), &settings).unwrap().close().unwrap();
        CreateKvseq::default().create(Path::new("/words.idx"), &settings).unwrap().close().unwrap();
        let around = |path: &str| filesys_around(Path::new(path), &*settings.fs);
        for part in ["/fs.data", "/fs.idx", "/fs.time", "/fs.urls"] {
            assert_eq!(around(part), Some(paths.clone()), "{part}");
        }
        for other in ["/fs", "/fs.lock", "/fs.kvseq", "/words.data", "/words.idx", "/none.data", "/", "/.data"] {
            assert_eq!(around(other), None, "{other}");
        }
        disk.shared().remove_file(&paths.index()).unwrap();
        assert_eq!(around("/fs.data"), None, "nobody else is left to say so");
        assert_eq!(around("/fs.idx"), Some(paths));
    }
}
