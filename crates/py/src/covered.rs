//! No capture is taken twice: not through an index of captures and from the archives it lists, nor when a source has changed.

use crate::ingest::Result;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::archives_of;
use trawl_ingest::source::Source;
use trawl_io::read_at::FileReader;
use trawl_model::UrlSource;
use trawl_store::{Error, KnownSource};

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a file is an index of captures: `captures.parquet`, or `captures-00000.parquet` of one archive.
pub fn is_index(path: &Path) -> bool {
    let name = name(path);
    name.starts_with("captures") && name.ends_with(".parquet")
}

fn is_part(path: &Path) -> bool {
    name(path).starts_with("captures-")
}

fn refuse(reason: String) -> Result<()> {
    Err(Error::Refused { reason }.into())
}

/// The archives that an index of captures lists.
fn archives_in(index: &Path) -> Result<Vec<PathBuf>> {
    let archives = archives_of(Arc::new(FileReader::open(index)?))?.into_iter();
    let paths = archives.map(|archive| index.with_file_name(&archive.name));
    Ok(paths.map(|path| path.canonicalize().unwrap_or(path)).collect())
}

/// Refuses an index of captures beside what has the same captures: archives that it lists or another index of them, whether they are
/// named in this call or were taken before.
pub fn refuse_twice(files: &[PathBuf], known: &[KnownSource]) -> Result<()> {
    // If an index changed since it was taken, what it listed then is unknown.
    let is_same = |index: &Path, size: u64| index.metadata().is_ok_and(|found| found.is_file() && found.len() == size);
    for identity in known.iter().map(|known| &known.identity) {
        let index = Path::new(&identity.uri);
        let is_beside = |path: &PathBuf| !is_index(path) && path.parent() == index.parent();
        if !is_index(index) || !files.iter().any(is_beside) || !is_same(index, identity.size) {
            continue;
        }
        // One that cannot be read any more tells as little.
        let archives = archives_in(index).unwrap_or_default();
        if let Some(path) = archives.iter().find(|path| files.contains(path)) {
            return refuse(format!(
                "the dataset has taken the captures of {} from {}: they would be added twice",
                path.display(),
                index.display()
            ));
        }
    }
    for index in files.iter().filter(|path| is_index(path) && path.is_file()) {
        let archives = archives_in(index)?;
        let same = |other: &Path| {
            let beside = other.parent() == index.parent() && is_index(other) && is_part(other) != is_part(index);
            beside
                || archives.iter().any(|path| path == other || Path::new(&format!("{}.open", path.display())) == other)
        };
        if let Some(other) = files.iter().find(|path| same(path)) {
            return refuse(format!(
                "{} has captures that {} has, too: name the index or the archives, not both",
                index.display(),
                other.display()
            ));
        }
        if let Some(other) = known.iter().find(|known| same(Path::new(&known.identity.uri))) {
            return refuse(format!(
                "{} has captures that the dataset has taken from {}: mode=\"replace\" replaces everything in the dataset by the \
                 sources of this call",
                index.display(),
                other.identity.uri
            ));
        }
    }
    Ok(())
}

/// Looks whether the dataset has a new source under another name or with other bytes. A list that has changed is taken again with a
/// remark, as the command line does; `may_change` is false for a source whose rows would come twice for certain.
pub fn compare(known: &[KnownSource], source: &Source, may_change: bool, remark: &dyn Fn(String)) -> Result<()> {
    let identity = source.identity();
    if source.grown.is_some() || known.iter().any(|known| known.identity == identity) {
        return Ok(());
    }
    let same_bytes =
        |known: &&KnownSource| (known.identity.size, &known.identity.tag) == (identity.size, &identity.tag);
    let uri = &identity.uri;
    // The parts of a DataFrame that came through a job have its name before a number.
    let parts = format!("{uri}/");
    let is_it =
        |known: &KnownSource| known.identity.uri == *uri || !may_change && known.identity.uri.starts_with(&parts);
    if known.iter().any(is_it) {
        if !may_change {
            return refuse(format!(
                "the dataset has taken {uri} with other rows: mode=\"replace_sources\" replaces them"
            ));
        }
        remark(format!(
            "{uri} has changed since it was ingested: all its rows are added again; mode=\"replace_sources\" replaces the old \
             ones instead"
        ));
    } else if let Some(known) = known.iter().find(same_bytes).filter(|_| identity.size > 0) {
        remark(format!(
            "{} has the same bytes as {}, which the dataset has: its rows are added again",
            identity.uri, known.identity.uri
        ));
    }
    Ok(())
}
