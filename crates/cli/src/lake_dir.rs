//! Opening a lake in a directory, making it when asked to.

use crate::system;
use anyhow::{Context, bail};
use std::path::Path;
use std::sync::Arc;
use trawl_store::{DirStore, Lake, Store};
use trawl_url::SuffixList;

/// The store of a lake in `dir`.
pub fn store(dir: &Path) -> Arc<dyn Store> {
    Arc::new(DirStore::new(dir))
}

/// Opens the lake in `dir`.
pub fn open(dir: &Path) -> anyhow::Result<Lake> {
    must_be_lake(dir)?;
    Lake::open(store(dir)).map_err(|error| {
        let damaged = matches!(&error, trawl_store::Error::Corrupt { path, .. } if is_manifest(path));
        let place = dir.display();
        let hint = format!("; `trawl lake rebuild --lake {place}` goes on from the youngest manifest that can be read");
        let hint = if damaged { hint } else { String::new() };
        anyhow::Error::new(error).context(format!("cannot open the lake in {place}{hint}"))
    })
}

/// Refuses a directory without a lake, or with what is left of one.
pub fn must_be_lake(dir: &Path) -> anyhow::Result<()> {
    if !is_lake(dir) {
        refuse_lost_index(dir)?;
        bail!("there is no lake in {}: `trawl lake ingest --lake {0} --dataset NAME FILE…` makes one", dir.display());
    }
    Ok(())
}

fn is_manifest(path: &str) -> bool {
    path.starts_with(trawl_store::layout::MANIFESTS)
}

/// Opens the lake in `dir`, or makes one in an empty or new directory.
pub fn open_or_make(dir: &Path) -> anyhow::Result<Lake> {
    if is_lake(dir) {
        return open(dir);
    }
    refuse_lost_index(dir)?;
    let taken =
        has_other(dir, &["index", "tmp"]) || has_other(&dir.join("index"), &["manifests", "probes", "suffix_lists"]);
    // Asked again: somebody else may have made one since, and put more into it.
    if is_lake(dir) {
        return open(dir);
    }
    if taken {
        bail!("{} is neither a lake nor empty: a lake gets a directory of its own", dir.display());
    }
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let list = SuffixList::builtin().text();
    let made = Lake::init(store(dir), system::now(), &system::nonce()?, list.as_bytes());
    match made {
        // Somebody else was quicker: then it is there.
        Err(trawl_store::Error::AlreadyALake { .. }) => open(dir),
        made => made.with_context(|| format!("cannot make a lake in {}", dir.display())),
    }
}

fn refuse_lost_index(dir: &Path) -> anyhow::Result<()> {
    if trawl_maintain::is_lost(&*store(dir))? {
        bail!(
            "the lake in {} has datasets, but its index/ is lost: `trawl lake rebuild --lake {0}` makes it anew",
            dir.display()
        );
    }
    Ok(())
}

fn is_lake(dir: &Path) -> bool {
    let entries = std::fs::read_dir(dir.join(trawl_store::layout::MANIFESTS));
    entries.is_ok_and(|mut entries| {
        entries.any(|entry| entry.is_ok_and(|e| e.path().extension() == Some("json".as_ref())))
    })
}

/// Whether there is anything in `dir` but these, which a lake has that somebody is just making, or was killed making.
fn has_other(dir: &Path, known: &[&str]) -> bool {
    let is_other = |name: &std::ffi::OsStr| !known.iter().any(|known| *known == name);
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.any(|e| e.map_or(true, |e| is_other(&e.file_name()))))
}
