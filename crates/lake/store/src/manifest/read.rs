//! Reading a manifest whatever its kind, and writing checkpoints.
//!
//! A lost checkpoint loses nothing: the manifest of the same number tells the same state, over the checkpoint before.

use super::wire::WireDeny;
use super::{Base, Deny, DenyObject, Manifest, RELATIVE_FORMAT, Wire, json_error};
use crate::object::claim;
use crate::series::MAX_STATE_BYTES;
use crate::{Error, Result, Store, layout};
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::xxh3_64;

/// Longest list of denials that is repeated in manifests.
const MAX_INLINE_DENY: usize = 4 << 10;
/// Checkpoints over checkpoints that are tried when some are lost.
const MAX_DEPTH: u32 = 8;

/// The checkpoint read last, so that the manifests that differ from it need not read it again.
#[derive(Debug, Default)]
pub struct Bases(Mutex<Option<(Base, Arc<Manifest>)>>);

impl Bases {
    pub(crate) fn get(&self, base: &Base) -> Option<Arc<Manifest>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(known, _)| known == base).map(|(_, manifest)| manifest.clone())
    }

    pub(crate) fn set(&self, base: Base, manifest: Arc<Manifest>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((base, manifest));
    }
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: u32,
    #[serde(default)]
    sequence: u64,
    base: Option<Base>,
}

fn head(path: &str, bytes: &[u8]) -> Result<Head> {
    serde_json::from_slice(bytes).map_err(|e| json_error(path, bytes, &e))
}

/// The number a manifest has, and the checkpoint it differs from, without reading that.
pub(crate) fn base_of(path: &str, bytes: &[u8]) -> Result<(u64, Option<Base>)> {
    let head = head(path, bytes)?;
    Ok((head.sequence, head.base))
}

/// Reads the text of the manifest `path`, and its checkpoint if it has one.
pub fn read_manifest(store: &dyn Store, bases: &Bases, path: &str, bytes: &[u8]) -> Result<Manifest> {
    read(store, bases, path, bytes, 0)
}

fn read(store: &dyn Store, bases: &Bases, path: &str, bytes: &[u8], depth: u32) -> Result<Manifest> {
    if head(path, bytes)?.format != RELATIVE_FORMAT {
        return Manifest::parse(path, bytes);
    }
    let wire = Wire::parse(path, bytes)?;
    let base = wire.base.as_ref().map(|base| checkpoint(store, bases, base, depth)).transpose()?;
    let deny = wire.deny.as_ref().map(|deny| read_deny(store, deny)).transpose()?;
    Manifest::from_wire(path, wire, base.as_deref(), deny)
}

/// The state of a checkpoint: from its file, or where that is lost or damaged from the manifest of its number.
fn checkpoint(store: &dyn Store, bases: &Bases, base: &Base, depth: u32) -> Result<Arc<Manifest>> {
    if let Some(known) = bases.get(base) {
        return Ok(known);
    }
    let found = match stored(store, bases, base) {
        Err(error) if depth < MAX_DEPTH && (error.is_not_found() || matches!(error, Error::Corrupt { .. })) => {
            let path = layout::numbered(layout::MANIFESTS, base.sequence);
            let again = || -> Result<Manifest> {
                let bytes = store.get(&path, MAX_STATE_BYTES)?;
                let state = read(store, &Bases::default(), &path, &bytes, depth + 1)?;
                let mut wire = state.to_wire(None);
                name_deny(&mut wire)?;
                let text = wire.to_json();
                if hash(&text) == base.hash { Ok(state) } else { Err(wrong(&path, "another state")) }
            };
            // The first error is reported: the second may only be that there is nothing to fall back on.
            again().map_err(|_| error)
        }
        found => found,
    };
    let found = Arc::new(found?);
    bases.set(base.clone(), found.clone());
    Ok(found)
}

fn stored(store: &dyn Store, bases: &Bases, base: &Base) -> Result<Manifest> {
    let path = layout::checkpoint(base.sequence);
    let packed = store.get(&path, MAX_STATE_BYTES)?;
    let text = unpack(&path, &packed)?;
    if hash(&text) != base.hash {
        return Err(wrong(&path, &hash(&text)));
    }
    read(store, bases, &path, &text, MAX_DEPTH)
}

/// The state of a checkpoint, from its file alone.
pub(crate) fn stored_checkpoint(store: &dyn Store, base: &Base) -> Result<Manifest> {
    stored(store, &Bases::default(), base)
}

/// The text of a checkpoint's file.
pub fn unpack_checkpoint(path: &str, packed: &[u8]) -> Result<Vec<u8>> {
    unpack(path, packed)
}

fn unpack(path: &str, packed: &[u8]) -> Result<Vec<u8>> {
    use std::io::Read;
    let mut text = Vec::new();
    let broken = |error: std::io::Error| wrong(path, &error.to_string());
    let decoder = zstd::Decoder::new(packed).map_err(broken)?;
    decoder.take(MAX_STATE_BYTES + 1).read_to_end(&mut text).map_err(broken)?;
    if text.len() as u64 > MAX_STATE_BYTES {
        return Err(Error::OverLimit { path: path.to_owned(), found: text.len() as u64, limit: MAX_STATE_BYTES });
    }
    Ok(text)
}

fn wrong(path: &str, found: &str) -> Error {
    let expected = "the checkpoint that manifests were written against";
    Error::Corrupt { path: path.to_owned(), offset: 0, expected, found: found.to_owned() }
}

fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

fn read_deny(store: &dyn Store, deny: &WireDeny) -> Result<Vec<Deny>> {
    let DenyObject { path, hash: named } = match deny {
        WireDeny::List(list) => return Ok(list.clone()),
        WireDeny::Object(object) => object,
    };
    crate::check_path(path)?;
    let read = || -> Result<Vec<Deny>> {
        let bytes = store.get(path, MAX_STATE_BYTES)?;
        if hash(&bytes) != *named {
            let (expected, found) = ("the deny list of that hash", hash(&bytes));
            return Err(Error::Corrupt { path: path.clone(), offset: 0, expected, found });
        }
        serde_json::from_slice(&bytes).map_err(|e| json_error(path, &bytes, &e))
    };
    match read() {
        Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => {
            // A record beside the datasets has the same list; not the newest, where a checkpoint is from before it.
            crate::denial::recorded(store, &|list| hash(&super::to_json(&list)) == *named).ok().flatten().ok_or(error)
        }
        read => read,
    }
}

impl Manifest {
    /// Where the deny list is, if it is an object of its own.
    pub fn deny_object(&self) -> Option<String> {
        let bytes = super::to_json(&self.deny);
        (bytes.len() > MAX_INLINE_DENY).then(|| layout::deny_object(&hash(&bytes)).ok()).flatten()
    }
}

/// Stores a state as a checkpoint, unless it is there.
pub(crate) fn write_checkpoint(store: &dyn Store, manifest: &Manifest) -> Result<Base> {
    let mut wire = manifest.to_wire(None);
    put_deny(store, &mut wire)?;
    let text = wire.to_json();
    let broken = |error: std::io::Error| Error::Refused { reason: format!("cannot compress a checkpoint: {error}") };
    let packed = zstd::encode_all(text.as_slice(), 3).map_err(broken)?;
    let path = layout::checkpoint(manifest.sequence);
    // Equal numbers have equal states, so who won does not matter, unless the one that is there is damaged.
    if !claim(store, &path, &packed)? {
        let whole = store.get(&path, MAX_STATE_BYTES).and_then(|bytes| unpack(&path, &bytes));
        if whole.map_or(true, |found| found != text) {
            store.put(&path, &packed)?;
        }
    }
    Ok(Base { sequence: manifest.sequence, hash: hash(&text), bytes: packed.len() as u64 })
}

/// Makes a long deny list an object of its own, before anything names it.
pub(crate) fn put_deny(store: &dyn Store, wire: &mut Wire) -> Result<()> {
    if let Some((path, bytes)) = name_deny(wire)?
        && !claim(store, &path, &bytes)?
    {
        store.put(&path, &bytes)?;
    }
    Ok(())
}

/// Puts a reference in the place of a long deny list; the object it refers to.
fn name_deny(wire: &mut Wire) -> Result<Option<(String, Vec<u8>)>> {
    let Some(WireDeny::List(list)) = &wire.deny else { return Ok(None) };
    let bytes = super::to_json(list);
    if bytes.len() <= MAX_INLINE_DENY {
        return Ok(None);
    }
    let hash = hash(&bytes);
    let path = layout::deny_object(&hash)?;
    wire.deny = Some(WireDeny::Object(DenyObject { path: path.clone(), hash }));
    Ok(Some((path, bytes)))
}
