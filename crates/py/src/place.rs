//! What a library may not ask for itself: the time, chance, the environment; and with them stores and files.

use crate::error;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trawl_io::{Fs, RealFs};
use trawl_model::UnixMillis;
use trawl_store::{
    BlockCache, CachedStore, DirStore, Lake, RemoteFs, RemoteSettings, RemoteStore, Retries, Store, is_address,
    is_remote,
};
use trawl_url::SuffixList;

/// The time.
pub fn now() -> UnixMillis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn random() -> PyResult<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|problem| error::other(format!("the system has no randomness: {problem}")))?;
    Ok(u128::from_be_bytes(bytes))
}

/// A name that no other writer has.
pub fn nonce() -> PyResult<String> {
    Ok(format!("{:032x}", random()?))
}

/// Record ids. A random start and a counter: no two of this process are equal, nor those of two processes.
pub fn ids() -> PyResult<impl Fn() -> [u8; 16] + Send + Sync> {
    let next = std::sync::Mutex::new(random()?);
    Ok(move || {
        let mut next = crate::locked(&next);
        *next = next.wrapping_add(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        next.to_be_bytes()
    })
}

/// A path as Python names it: a str, or anything with `__fspath__`.
pub fn path(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.py().import("os")?.call_method1("fspath", (value,))?.extract()
}

fn settings() -> PyResult<RemoteSettings> {
    let seed = (random()? >> 64) as u64;
    // A version is pinned when somebody asks for the newest one, and then it must be that: nothing is polled between.
    let poll = Duration::ZERO;
    Ok(RemoteSettings { retries: Retries { seed, ..Retries::default() }, poll, ..RemoteSettings::default() })
}

fn environment() -> Vec<(String, String)> {
    std::env::vars().collect()
}

/// The files of this machine, and those on servers under their addresses.
pub fn files() -> PyResult<Arc<dyn Fs>> {
    Ok(Arc::new(RemoteFs::new(Arc::new(RealFs), environment(), settings()?)))
}

/// Where blocks of remote lakes are kept: the same place as the command line's.
fn cache_dir() -> PathBuf {
    let named = std::env::var_os("TRAWL_CACHE_DIR").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let user = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    named.unwrap_or_else(|| user().unwrap_or_else(std::env::temp_dir).join("trawl").join("blocks"))
}

/// The store of a lake. One on a server has a cache of `cache_bytes` before it, unless that is 0.
pub fn store(uri: &str, cache_bytes: u64) -> PyResult<Arc<dyn Store>> {
    if !is_remote(uri) {
        if is_address(uri) {
            let text = format!("{uri}: expected a directory or s3://bucket/prefix, found another kind of address");
            return Err(error::refused(text));
        }
        if Path::new(uri).is_file() {
            return Err(error::refused(format!("{uri}: expected a directory or s3://bucket/prefix, found a file")));
        }
        return Ok(Arc::new(DirStore::new(uri)));
    }
    let remote = RemoteStore::open(uri, &environment(), settings()?).map_err(|problem| error::of(&problem))?;
    if cache_bytes == 0 {
        return Ok(Arc::new(remote));
    }
    let dir = cache_dir();
    let cache = BlockCache::open(&dir, cache_bytes).map_err(|problem| {
        error::refused(format!(
            "{}: cannot keep a cache there: {problem}; TRAWL_CACHE_DIR names another directory, cache_bytes=0 goes without",
            dir.display()
        ))
    })?;
    Ok(Arc::new(CachedStore::new(Arc::new(remote), Arc::new(cache))))
}

/// Where temporary files of a lake go: below its directory, or below that of the system for one on a server.
pub fn temp(uri: &str) -> PathBuf {
    if is_remote(uri) { std::env::temp_dir().join("trawl-lake") } else { Path::new(uri).join("tmp") }
}

/// Makes a lake where none is. A directory must be new or empty.
pub fn make(uri: &str, store: &Arc<dyn Store>) -> PyResult<()> {
    match Lake::open(store.clone()) {
        Err(trawl_store::Error::NotALake { .. }) => {}
        Err(problem) => return Err(error::of(&problem)),
        Ok(_) => return Ok(()),
    }
    if trawl_maintain::is_lost(&**store).map_err(|problem| error::of(&problem))? {
        return Err(error::refused(format!(
            "{uri}: the lake has datasets, but its index is lost: `trawl lake rebuild --lake {uri}` makes it again"
        )));
    }
    if !is_remote(uri) {
        let dir = Path::new(uri);
        // Somebody else may be making it just now, or was killed making it.
        if has_other(dir, &["index", "tmp"]) || has_other(&dir.join("index"), &["manifests", "probes", "suffix_lists"])
        {
            return Err(error::refused(format!("{uri}: expected a lake or an empty directory, found other files")));
        }
        std::fs::create_dir_all(dir)
            .map_err(|problem| error::of(&trawl_io::Error::io(trawl_io::Op::CreateDir, dir, problem)))?;
    }
    match Lake::init(store.clone(), now(), &nonce()?, SuffixList::builtin().text().as_bytes()) {
        // Somebody else was quicker.
        Err(trawl_store::Error::AlreadyALake { .. }) => Ok(()),
        made => made.map(|_| ()).map_err(|problem| error::of(&problem)),
    }
}

/// Whether a directory holds anything but these.
fn has_other(dir: &Path, known: &[&str]) -> bool {
    let is_other = |name: &std::ffi::OsStr| !known.iter().any(|known| *known == name);
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.any(|e| e.map_or(true, |e| is_other(&e.file_name()))))
}
