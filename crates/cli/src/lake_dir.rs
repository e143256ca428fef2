//! Opening a lake in a directory or a bucket, making it when asked to.

use crate::system;
use anyhow::{Context, bail};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trawl_store::{
    BlockCache, CachedStore, DirStore, Lake, RemoteFs, RemoteSettings, RemoteStore, Retries, Store, is_address,
    is_remote, layout,
};
use trawl_url::SuffixList;

/// Bytes that are kept of remote lakes on this machine unless `TRAWL_CACHE_SIZE` says otherwise.
const CACHE_BYTES: u64 = 1 << 30;

/// The address, if a lake is not in a directory: `s3://bucket/prefix`.
fn address(dir: &Path) -> Option<&str> {
    dir.to_str().filter(|text| is_remote(text))
}

/// The store of a lake in `dir`.
pub fn store(dir: &Path) -> anyhow::Result<Arc<dyn Store>> {
    match address(dir) {
        Some(address) => Ok(Arc::new(remote(address)?)),
        None if dir.to_str().is_some_and(is_address) => {
            bail!("{}: expected a directory or s3://bucket/prefix, found another kind of address", dir.display())
        }
        None if dir.is_file() => bail!("{} is a file: a lake is a directory, or s3://bucket/prefix", dir.display()),
        None => Ok(Arc::new(DirStore::new(dir))),
    }
}

/// The store of a lake that is asked for days, while others may restore it in place.
pub fn served_store(dir: &Path) -> anyhow::Result<Arc<dyn Store>> {
    match address(dir) {
        None if !dir.is_file() => Ok(Arc::new(DirStore::new(dir).unmapped())),
        _ => cached_store(dir),
    }
}

/// The same to ask questions: of a lake in a bucket, blocks are kept on this machine. Commands that check or change a lake go
/// without, since they must find out what the server has.
pub fn cached_store(dir: &Path) -> anyhow::Result<Arc<dyn Store>> {
    let remote = store(dir)?;
    if address(dir).is_none() {
        return Ok(remote);
    }
    let limit = variable("TRAWL_CACHE_SIZE", crate::units::bytes)?.unwrap_or(CACHE_BYTES);
    if limit == 0 {
        return Ok(remote);
    }
    let dir = cache_dir();
    let cache = BlockCache::open(&dir, limit).with_context(|| {
        format!(
            "cannot keep a cache in {}: TRAWL_CACHE_DIR names another directory, TRAWL_CACHE_SIZE=0 goes without",
            dir.display()
        )
    })?;
    Ok(Arc::new(CachedStore::new(remote, Arc::new(cache))))
}

/// The value of a variable that concerns lakes in buckets, if it is set.
fn variable<T>(name: &str, parse: impl Fn(&str) -> Result<T, String>) -> anyhow::Result<Option<T>> {
    let wrong = |error: &dyn std::fmt::Display| anyhow::anyhow!("environment variable {name}: {error}");
    match std::env::var(name) {
        Ok(text) => parse(&text).map(Some).map_err(|error| wrong(&error)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(error) => Err(wrong(&error)),
    }
}

/// Refuses wrong values of these variables, also where no lake is in a bucket: as with any setting, a slip must not go unnoticed.
pub fn check_variables() -> anyhow::Result<()> {
    variable("TRAWL_CACHE_SIZE", crate::units::bytes)?;
    variable("TRAWL_POLL", crate::units::duration)?;
    Ok(())
}

/// A store behind an address, with the settings that S3 programs find in the environment.
pub fn remote(address: &str) -> anyhow::Result<RemoteStore> {
    let env: Vec<_> = std::env::vars().collect();
    let mut settings = RemoteSettings { retries: retries()?, ..RemoteSettings::default() };
    if let Some(poll) = variable("TRAWL_POLL", crate::units::duration)? {
        settings.poll = poll;
    }
    let store = RemoteStore::open(address, &env, settings)?;
    OPENED.lock().unwrap_or_else(PoisonError::into_inner).push(store.clone());
    Ok(store)
}

/// Stores on servers that this process has opened, to tell at its end what was asked of them.
static OPENED: Mutex<Vec<RemoteStore>> = Mutex::new(Vec::new());

/// Says what was asked of servers, if `TRAWL_SHOW_USAGE` is set: requests and bytes are what a bucket costs.
pub fn tell_usage() {
    if std::env::var_os("TRAWL_SHOW_USAGE").is_none() {
        return;
    }
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sum = trawl_store::Usage::default();
    for usage in opened.iter().map(RemoteStore::usage) {
        sum.requests += usage.requests;
        sum.retries += usage.retries;
        sum.bytes_read += usage.bytes_read;
    }
    let (requests, retries, bytes) = (sum.requests, sum.retries, sum.bytes_read);
    // A closed stderr is not a reason to fail.
    let _ =
        writeln!(std::io::stderr(), "{requests} requests ({retries} of them retries), {bytes} bytes read from servers");
}

/// The files of this machine, and archives on servers under their addresses.
pub fn files() -> anyhow::Result<Arc<dyn trawl_io::Fs>> {
    let settings = RemoteSettings { retries: retries()?, ..RemoteSettings::default() };
    Ok(Arc::new(RemoteFs::new(Arc::new(trawl_io::RealFs), std::env::vars().collect(), settings)))
}

fn retries() -> anyhow::Result<Retries> {
    let [a, b, c, d, e, f, g, h, ..] = system::random_bytes()?;
    Ok(Retries { seed: u64::from_le_bytes([a, b, c, d, e, f, g, h]), ..Retries::default() })
}

fn cache_dir() -> PathBuf {
    let named = std::env::var_os("TRAWL_CACHE_DIR").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let user = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    named.unwrap_or_else(|| user().unwrap_or_else(std::env::temp_dir).join("trawl").join("blocks"))
}

/// Where temporary files of a lake go: below its directory, or below that of the system for one that has none.
pub fn temp(dir: &Path) -> PathBuf {
    if address(dir).is_some() { std::env::temp_dir().join("trawl-lake") } else { dir.join("tmp") }
}

/// Opens the lake in `dir`.
pub fn open(dir: &Path) -> anyhow::Result<Lake> {
    must_be_lake(dir)?;
    open_in(dir, store(dir)?)
}

/// Opens the lake in `store`, which is that of `dir`.
pub fn open_in(dir: &Path, store: Arc<dyn Store>) -> anyhow::Result<Lake> {
    Lake::open(store).map_err(|error| {
        let damaged = matches!(&error, trawl_store::Error::Corrupt { path, .. } if is_manifest(path));
        let place = dir.display();
        let hint = format!("; `trawl lake rebuild --lake {place}` continues from the newest manifest that can be read");
        let hint = if damaged { hint } else { String::new() };
        anyhow::Error::new(error).context(format!("cannot open the lake in {place}{hint}"))
    })
}

/// Refuses a directory without a lake, or with what is left of one.
pub fn must_be_lake(dir: &Path) -> anyhow::Result<()> {
    if !is_lake(dir)? {
        refuse_lost_index(dir)?;
        let place = dir.display();
        if address(dir).is_none() && (dir.join(".crawl").is_dir() || dir.join("run.json").is_file()) {
            bail!(
                "{place} is a crawl, not a lake: `trawl lake ingest --lake lake --dataset NAME {place}` puts it into one"
            );
        }
        if address(dir).is_none() && has_other(dir, &[]) {
            bail!("{place} is not a lake: name the lake's directory with --lake");
        }
        bail!("there is no lake in {place}: `trawl lake ingest --lake {place} --dataset NAME FILE…` makes one");
    }
    Ok(())
}

/// Refuses to copy a lake onto itself, or into a directory that holds something else. What an interrupted copy left is no
/// hindrance.
pub fn must_take_copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let place = |dir: &Path| std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    if place(from) == place(to) {
        bail!("{} and {} are the same lake: a copy goes to another place", from.display(), to.display());
    }
    // A place that is not there yet lies in the nearest directory that is.
    let dir =
        |path: &Path| if path.as_os_str().is_empty() { Path::new(".").canonicalize() } else { path.canonicalize() };
    let around = || to.ancestors().find_map(|path| dir(path).ok());
    if address(from).is_none() && address(to).is_none() && around().is_some_and(|dir| dir.starts_with(place(from))) {
        bail!("{} is inside the lake {}: a copy goes to another place", to.display(), from.display());
    }
    if address(to).is_none() && has_other(to, &["index", "datasets", "urls", "tmp"]) {
        bail!("{} holds something else: a copy goes to an empty or new place, or to an earlier copy", to.display());
    }
    Ok(())
}

fn is_manifest(path: &str) -> bool {
    path.starts_with(layout::MANIFESTS)
}

/// Opens the lake in `dir`, or makes one in an empty or new directory.
pub fn open_or_make(dir: &Path) -> anyhow::Result<Lake> {
    if is_lake(dir)? {
        return open(dir);
    }
    refuse_lost_index(dir)?;
    let remote = address(dir).is_some();
    let taken = !remote
        && (has_other(dir, &["index", "datasets", "tmp"])
            || has_other(&dir.join("index"), &["manifests", "probes", "suffix_lists"])
            || has_other(&dir.join("datasets"), &["suffix_lists"]));
    // Asked again: somebody else may have made one since, and put more into it.
    if is_lake(dir)? {
        return open(dir);
    }
    if taken {
        bail!("{} is neither a lake nor empty: a lake gets a directory of its own", dir.display());
    }
    if !remote {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    let list = SuffixList::builtin().text();
    let made = Lake::init(store(dir)?, system::now(), &system::nonce()?, list.as_bytes());
    match made {
        // Somebody else was quicker: then it is there.
        Err(trawl_store::Error::AlreadyALake { .. }) => open(dir),
        made => made.with_context(|| format!("cannot make a lake in {}", dir.display())),
    }
}

fn refuse_lost_index(dir: &Path) -> anyhow::Result<()> {
    if trawl_maintain::is_lost(&*store(dir)?)? {
        bail!(
            "the lake in {} has datasets, but its index/ is lost: `trawl lake rebuild --lake {0}` restores it",
            dir.display()
        );
    }
    Ok(())
}

fn is_lake(dir: &Path) -> anyhow::Result<bool> {
    if address(dir).is_some() {
        let store = store(dir)?;
        return Ok(store.exists(layout::MANIFEST_COPY)? || !store.list(layout::MANIFESTS)?.is_empty());
    }
    let entries = std::fs::read_dir(dir.join(layout::MANIFESTS));
    Ok(entries.is_ok_and(|mut entries| {
        // A manifest that was being written when its writer was killed has another name.
        let is_whole =
            |name: std::ffi::OsString| name.to_str().is_some_and(|n| n.ends_with(".json") && !n.starts_with('.'));
        entries.any(|entry| entry.is_ok_and(|e| is_whole(e.file_name())))
    }))
}

/// Whether there is anything in `dir` but these, which a lake has that somebody is just making, or was killed making.
fn has_other(dir: &Path, known: &[&str]) -> bool {
    let is_other = |name: &std::ffi::OsStr| !known.iter().any(|known| *known == name);
    std::fs::read_dir(dir).is_ok_and(|mut entries| entries.any(|e| e.map_or(true, |e| is_other(&e.file_name()))))
}
