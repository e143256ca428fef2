//! An open segment: one set of files, or pieces by prefix.
//!
//! ```text
//!  name ─ domain_id ─► prefix ─► piece ─► slot in the piece ─► + slots of the pieces before it = slot in the segment
//! ```
//! Each piece is a segment of its own; a name can only be in one of them, so a lookup asks one. Slots and file ids are numbered on from
//! piece to piece, so that to those who ask it is one segment. A piece is opened when first asked.

use crate::cache::Caches;
use crate::counts::Count;
use crate::files::FileEntry;
use crate::merge::{NameCursor, NameMerge};
use crate::meta::SegmentMeta;
use crate::mphf::Mphf;
use crate::plain::Plain;
use crate::postings::Run;
use crate::split::piece_number;
use crate::{Error, Result};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use trawl_store::{SegmentRef, Store};

/// A domain's place in its segment: its line number in the dictionary, counted on over the pieces of a segment that is split. Means
/// nothing in any other segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u64);

/// How segments are opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// A file with at most this many bytes is read whole where it cannot be mapped. What is larger is read by ranges.
    pub resident_bytes: u64,
}

impl Default for OpenOptions {
    /// 64 MiB.
    fn default() -> Self {
        Self { resident_bytes: 64 << 20 }
    }
}

/// Pieces that are opened at the same time where each waits for its store.
const OPENED_AT_ONCE: usize = 32;

/// An open segment.
pub struct Segment {
    store: Arc<dyn Store>,
    id: String,
    meta: SegmentMeta,
    /// By prefix, each behind those before it; one of all names in a segment that is not split.
    pieces: Vec<Piece>,
    /// The piece of each prefix, by number.
    by_prefix: Vec<Option<usize>>,
    caches: Arc<Caches>,
    options: OpenOptions,
}

/// A piece, opened or not.
struct Piece {
    prefix: String,
    reference: SegmentRef,
    /// Slots of the pieces before.
    first_slot: u64,
    domains: u64,
    /// Parquet files of the pieces before.
    first_file: u32,
    files: u32,
    opened: OnceLock<Plain>,
}

impl Segment {
    /// Opens the files a lookup needs; pieces of a segment that is split, and postings shards, are opened when first asked.
    pub fn open(
        store: &Arc<dyn Store>,
        reference: &SegmentRef,
        caches: &Arc<Caches>,
        options: OpenOptions,
    ) -> Result<Self> {
        let (store, id, caches) = (store.clone(), reference.id.clone(), caches.clone());
        if reference.split == 0 {
            let plain = Plain::open(&store, reference, &caches, options)?;
            let meta = plain.meta().clone();
            let (domains, opened) = (plain.len(), OnceLock::from(plain));
            let (prefix, reference) = (String::new(), reference.clone());
            let piece = Piece { prefix, reference, first_slot: 0, domains, first_file: 0, files: u32::MAX, opened };
            return Ok(Self { store, id, meta, pieces: vec![piece], by_prefix: vec![Some(0)], caches, options });
        }
        let meta = SegmentMeta::read(&*store, reference)?;
        if (meta.split, meta.id.as_str()) != (reference.split, id.as_str()) {
            return Err(Error::Mismatch {
                left: "manifest".into(),
                right: format!("{id}/segment.json"),
                what: "segment",
                found: format!("{} split by {} digits instead of {}", meta.id, meta.split, reference.split),
            });
        }
        let mut pieces: Vec<Piece> = Vec::with_capacity(meta.pieces.len());
        let mut by_prefix = vec![None; 1 << (4 * u32::from(meta.split))];
        let (mut first_slot, mut first_file) = (0u64, 0u32);
        for (prefix, piece) in &meta.pieces {
            let bad = |what, found: String| Error::Mismatch {
                left: "manifest".into(),
                right: format!("{id}/segment.json"),
                what,
                found,
            };
            let next_file = u32::try_from(piece.parquet_files).ok().and_then(|files| first_file.checked_add(files));
            let next_file = next_file.ok_or_else(|| bad("number of files", piece.parquet_files.to_string()))?;
            let files = next_file - first_file;
            let (prefix, reference, domains) = (prefix.clone(), meta.piece_ref(prefix)?, piece.domains);
            let entry = usize::from_str_radix(&prefix, 16).ok().and_then(|number| by_prefix.get_mut(number));
            *entry.ok_or_else(|| bad("prefix of a piece", prefix.clone()))? = Some(pieces.len());
            pieces.push(Piece { prefix, reference, first_slot, domains, first_file, files, opened: OnceLock::new() });
            first_slot += domains;
            first_file = next_file;
        }
        Ok(Self { store, id, meta, pieces, by_prefix, caches, options })
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What `segment.json` says.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// Number of domains.
    pub fn len(&self) -> u64 {
        self.meta.domains
    }

    /// Whether it has no domains.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pieces by prefix, with how each is named; one with an empty prefix if it is not split.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&str, &SegmentRef)> {
        self.pieces.iter().map(|piece| (piece.prefix.as_str(), &piece.reference))
    }

    /// A piece, opened when first asked.
    fn plain<'a>(&'a self, piece: &'a Piece) -> Result<&'a Plain> {
        if let Some(plain) = piece.opened.get() {
            return Ok(plain);
        }
        let plain = Plain::open(&self.store, &piece.reference, &self.caches, self.options)?;
        let (expected, meta) = ((piece.domains, u64::from(piece.files)), plain.meta());
        let found = (meta.domains, meta.parquet_files);
        if found != expected || meta.split != 0 || meta.id != piece.reference.id {
            return Err(Error::Mismatch {
                left: format!("{}/segment.json", self.id),
                right: format!("{}/segment.json", piece.reference.id),
                what: "domains and files",
                found: format!("{found:?} instead of {expected:?}"),
            });
        }
        Ok(piece.opened.get_or_init(|| plain))
    }

    /// Opens all pieces, several at a time where each waits for its store.
    pub(crate) fn open_all(&self) -> Result<Vec<&Plain>> {
        let closed: Vec<&Piece> = self.pieces.iter().filter(|piece| piece.opened.get().is_none()).collect();
        if closed.len() > 1 && self.store.is_remote() {
            std::thread::scope(|scope| {
                for share in closed.chunks(closed.len().div_ceil(OPENED_AT_ONCE)) {
                    // What cannot be opened says so below.
                    scope.spawn(|| share.iter().all(|piece| self.plain(piece).is_ok()));
                }
            });
        }
        self.pieces.iter().map(|piece| self.plain(piece)).collect()
    }

    fn nowhere(&self, what: &'static str, number: u64) -> Error {
        let expected = "one that this segment has";
        Error::Input { at: format!("segment {}", self.id), expected, found: format!("{what} {number}") }
    }

    /// The piece that has a slot, and the slot there.
    fn at_slot(&self, slot: Slot) -> Result<(&Piece, Slot)> {
        let behind = self.pieces.partition_point(|piece| piece.first_slot <= slot.0);
        // Pieces without domains begin where the next one does.
        let piece = behind.checked_sub(1).and_then(|index| self.pieces.get(index));
        let piece = piece.ok_or_else(|| self.nowhere("slot", slot.0))?;
        Ok((piece, Slot(slot.0 - piece.first_slot)))
    }

    /// The piece that lists a file, and its id there.
    fn at_file(&self, file_id: u32) -> Result<(&Piece, u32)> {
        let behind = self.pieces.partition_point(|piece| piece.first_file <= file_id);
        let piece = behind.checked_sub(1).and_then(|index| self.pieces.get(index));
        let piece = piece.ok_or_else(|| self.nowhere("file", u64::from(file_id)))?;
        Ok((piece, file_id - piece.first_file))
    }

    /// The only piece that can have a domain.
    fn piece_of(&self, domain: &str) -> Option<&Piece> {
        let index = match self.meta.split {
            0 => 0,
            split => (*self.by_prefix.get(piece_number(domain, split))?)?,
        };
        self.pieces.get(index)
    }

    /// The slot of a domain, compared byte for byte with the dictionary. A stranger costs no read in 65,535 of 65,536
    /// cases.
    pub fn lookup(&self, domain: &str) -> Result<Option<Slot>> {
        let Some(piece) = self.piece_of(domain) else { return Ok(None) };
        let slot = self.plain(piece)?.lookup(domain)?;
        Ok(slot.map(|slot| Slot(piece.first_slot + slot.0)))
    }

    /// A slot near to where a domain would be, read as [`Segment::lookup`] reads one that is there. `None` if it has no domains.
    pub fn neighbour(&self, domain: &str) -> Result<Option<Slot>> {
        let here = self.piece_of(domain).filter(|piece| piece.domains > 0);
        let piece = here.or_else(|| self.pieces.iter().find(|piece| piece.domains > 0));
        let Some(piece) = piece else { return Ok(None) };
        let slot = self.plain(piece)?.neighbour(domain)?;
        Ok(slot.map(|slot| Slot(piece.first_slot + slot.0)))
    }

    /// The name of a slot.
    pub fn name(&self, slot: Slot) -> Result<Option<String>> {
        let (piece, slot) = self.at_slot(slot)?;
        self.plain(piece)?.name(slot)
    }

    /// The datasets of a slot, in order.
    pub fn datasets(&self, slot: Slot) -> Result<Vec<u32>> {
        let (piece, slot) = self.at_slot(slot)?;
        self.plain(piece)?.datasets(slot)
    }

    /// The datasets of a slot and what is known of each.
    pub fn counts(&self, slot: Slot) -> Result<Vec<(u32, Count)>> {
        let (piece, slot) = self.at_slot(slot)?;
        self.plain(piece)?.counts(slot)
    }

    /// As [`Segment::counts`], without top paths.
    pub fn bare_counts(&self, slot: Slot) -> Result<Vec<(u32, Count)>> {
        let (piece, slot) = self.at_slot(slot)?;
        self.plain(piece)?.bare_counts(slot)
    }

    /// The rows of a slot in a dataset; empty if the dataset does not hold it.
    pub fn postings(&self, slot: Slot, dataset_id: u32) -> Result<Vec<Run>> {
        let (piece, slot) = self.at_slot(slot)?;
        let mut runs = self.plain(piece)?.postings(slot, dataset_id)?;
        // Each is one of the piece's files, of which there are no more than fit.
        runs.iter_mut().for_each(|run| run.file_id += piece.first_file);
        Ok(runs)
    }

    /// A Parquet file by its id.
    pub fn file(&self, file_id: u32) -> Result<FileEntry> {
        let (piece, local) = self.at_file(file_id)?;
        Ok(FileEntry { file_id, ..self.plain(piece)?.file(local)? })
    }

    /// Number of Parquet files.
    pub fn files(&self) -> Result<u32> {
        match self.pieces.as_slice() {
            [only] if self.meta.split == 0 => self.plain(only)?.files(),
            pieces => Ok(pieces.last().map_or(0, |last| last.first_file + last.files)),
        }
    }

    /// The page tables of all row groups of a file.
    pub fn tables_of(&self, file_id: u32) -> Result<Vec<Bytes>> {
        let (piece, file_id) = self.at_file(file_id)?;
        self.plain(piece)?.tables_of(file_id)
    }

    /// Page tables of row groups, given as (file, row group), in the order asked.
    pub fn page_tables(&self, wanted: &[(u32, u32)]) -> Result<Vec<Bytes>> {
        let mut placed = Vec::with_capacity(wanted.len());
        for (file_id, group) in wanted {
            let (piece, local) = self.at_file(*file_id)?;
            placed.push((piece, (local, *group)));
        }
        let mut tables = Vec::with_capacity(wanted.len());
        // Rows of one domain are in one piece: that is one read.
        for of_one in placed.chunk_by(|a, b| a.0.first_file == b.0.first_file) {
            let Some((piece, _)) = of_one.first() else { continue };
            let groups: Vec<_> = of_one.iter().map(|(_, group)| *group).collect();
            tables.extend(self.plain(piece)?.page_tables(&groups)?);
        }
        Ok(tables)
    }

    /// Goes through the domains that begin with `prefix` and come after `after`, in order, until `each` says stop.
    pub fn names_with_prefix(
        &self,
        prefix: &str,
        after: Option<&str>,
        each: &mut dyn FnMut(Slot, &str) -> bool,
    ) -> Result<()> {
        let from = after.filter(|after| *after >= prefix).unwrap_or(prefix);
        let opened = self.open_all()?;
        let mut walk = |slot: Slot, name: &str| {
            // Names before the prefix do not come; past it none follow.
            name.starts_with(prefix) && (after == Some(name) || each(slot, name))
        };
        if let [only] = opened.as_slice() {
            return only.dictionary().walk_from(from, &mut |line, name| walk(Slot(line), name));
        }
        let cursors = opened.into_iter().map(|plain| NameCursor::from(plain, from)).collect::<Result<Vec<_>>>()?;
        let mut names = NameMerge::new(cursors);
        while let Some((index, cursor)) = names.first() {
            let (Some(name), Some(piece)) = (cursor.name(), self.pieces.get(index)) else { break };
            if !walk(Slot(piece.first_slot + cursor.slot().0), name) {
                break;
            }
            names.advance()?;
        }
        Ok(())
    }

    /// The perfect hash, or why lookups search the dictionary instead: of the first piece whose is damaged, if one is.
    pub fn mphf(&self) -> std::result::Result<&Mphf, Error> {
        let mut first = None;
        for plain in self.open_all()? {
            let mphf = plain.mphf().map_err(|error| Error::Input {
                at: format!("{}/domains.mphf", plain.id()),
                expected: "a perfect hash that can be used",
                found: error.to_string(),
            })?;
            first = first.or(Some(mphf));
        }
        first.ok_or_else(|| self.nowhere("piece", 0))
    }
}
