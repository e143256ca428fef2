//! Checks a segment: every checksum, every order, and that its files say the same.

use crate::files::FileEntry;
use crate::mphf::Candidate;
use crate::plain::Plain;
use crate::split::has_prefix;
use crate::{Caches, Error, OpenOptions, Result, Segment};
use std::sync::Arc;
use trawl_rows::GroupTable;
use trawl_store::{SegmentRef, Store, object_hash};

/// What a verification went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Verified {
    /// Files whose length and hash were compared.
    pub files: u64,
    /// Domains.
    pub domains: u64,
    /// (Domain, dataset) pairs.
    pub pairs: u64,
    /// Rows the postings point at.
    pub rows: u64,
    /// Faults found.
    pub faults: u64,
}

/// Goes through a whole segment, piece by piece. Every fault goes to `fault`; an error is a segment that cannot be opened.
///
/// Memory: 8 bytes a row group, and the caches.
pub fn verify_segment(
    store: &Arc<dyn Store>,
    reference: &SegmentRef,
    fault: &mut dyn FnMut(Error),
) -> Result<Verified> {
    let caches = Arc::new(Caches::new(8 << 20));
    let segment = Segment::open(store, reference, &caches, OpenOptions::default())?;
    let mut sum = Verified::default();
    // Counted here: a piece may have told of some before it could not be read on.
    let mut faults = 0;
    let mut report = |error| {
        faults += 1;
        fault(error);
    };
    let is_split = segment.meta().split > 0;
    for (prefix, piece) in segment.pieces() {
        // Opened for itself, and closed again: all pieces of a large segment are many open files. What it says of itself is what
        // the segment says of it, by the hash of its `segment.json`.
        let checked = Plain::open(store, piece, &caches, OpenOptions::default())
            .and_then(|plain| verify_plain(store, &plain, prefix, &reference.masked, &mut report));
        match checked {
            Ok(found) => {
                sum.files += found.files + u64::from(is_split);
                sum.domains += found.domains;
                sum.pairs += found.pairs;
                sum.rows += found.rows;
            }
            Err(error) if is_split => report(error),
            Err(error) => return Err(error),
        }
    }
    sum.faults = faults;
    Ok(sum)
}

fn verify_plain(
    store: &Arc<dyn Store>,
    segment: &Plain,
    prefix: &str,
    masked: &[u32],
    fault: &mut dyn FnMut(Error),
) -> Result<Verified> {
    let mut check = Check { segment, prefix, verified: Verified::default(), fault };
    check.hashes(store);
    check.domains();
    for file in segment.paged()? {
        file.check_all(&mut |error| check.report(error));
    }
    let groups = check.files(store, segment.files()?, masked);
    check.postings(groups);
    check.totals();
    Ok(check.verified)
}

/// What a segment says of the Parquet files that a version takes from it.
pub fn file_table(store: &Arc<dyn Store>, reference: &SegmentRef) -> Result<Vec<FileEntry>> {
    let segment = Segment::open(store, reference, &Arc::new(Caches::new(8 << 20)), OpenOptions::default())?;
    let files = (0..segment.files()?).map(|file_id| segment.file(file_id));
    let own =
        |file: &Result<FileEntry>| file.as_ref().map_or(true, |file| !reference.masked.contains(&file.dataset_id));
    files.filter(own).collect()
}

/// The Parquet files that a version takes from a segment: dataset and path. Of a version, these are the files of the commits
/// that it serves, each once.
pub fn indexed_files(store: &Arc<dyn Store>, reference: &SegmentRef) -> Result<Vec<(u32, String)>> {
    Ok(file_table(store, reference)?.into_iter().map(|file| (file.dataset_id, file.path)).collect())
}

/// Row groups of all files: which dataset, how many rows, and how many of them postings have named.
struct Groups {
    /// Per file: dataset, and where its row groups begin in `rows`.
    files: Vec<(u32, usize)>,
    rows: Vec<(u64, u64)>,
}

struct Check<'a> {
    segment: &'a Plain,
    /// What the ids of its domains begin with; empty if it is not a piece.
    prefix: &'a str,
    verified: Verified,
    fault: &'a mut dyn FnMut(Error),
}

impl Check<'_> {
    fn report(&mut self, error: Error) {
        self.verified.faults += 1;
        (self.fault)(error);
    }

    fn wrong(&mut self, at: String, expected: &'static str, found: impl ToString) {
        self.report(Error::Input { at: format!("{}/{at}", self.segment.id()), expected, found: found.to_string() });
    }

    /// Hands an error to the caller and goes on.
    fn ok<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|e| self.report(e)).ok()
    }

    fn hashes(&mut self, store: &Arc<dyn Store>) {
        for (name, meta) in &self.segment.meta().files {
            let Some(path) = self.ok(trawl_store::layout::segment_file(self.segment.id(), name).map_err(Error::from))
            else {
                continue;
            };
            let found = store.len(&path).and_then(|len| Ok((len, object_hash(&**store, &path, len)?)));
            if let Some((bytes, hash)) = self.ok(found.map_err(Error::from)) {
                self.verified.files += 1;
                if bytes != meta.bytes || hash != meta.hash {
                    let found = format!("{bytes} bytes, hash {hash}");
                    self.wrong(name.clone(), "the length and hash of segment.json", found);
                }
            }
        }
    }

    /// Dictionary order, and that the perfect hash leads every name to its line.
    fn domains(&mut self) {
        let (segment, mphf) = (self.segment, self.segment.mphf());
        if let Err(error) = mphf {
            self.wrong("domains.mphf".into(), "a perfect hash that can be used", error);
        }
        if let (Ok(mphf), Some(meta)) = (mphf, segment.meta().files.get("domains.txt.zst"))
            && format!("{:016x}", mphf.dictionary().file) != meta.hash
        {
            let found = format!("{:016x}", mphf.dictionary().file);
            self.wrong("domains.mphf".into(), "the hash of domains.txt.zst", found);
        }
        let mut last = String::new();
        for index in 0..segment.dictionary().block_count() {
            let Some(block) = self.ok(segment.dictionary().block(index)) else { continue };
            for (line, name) in (0u32..).zip(block.lines_from(0)) {
                if last.as_str() >= name {
                    self.wrong("domains.txt.zst".into(), "names in order, no two equal", format!("{last:?}, {name:?}"));
                }
                if !has_prefix(name, self.prefix) {
                    self.wrong("domains.txt.zst".into(), "domains with the prefix of this piece", name);
                }
                name.clone_into(&mut last);
                self.verified.domains += 1;
                if let Ok(mphf) = mphf {
                    match self.ok(mphf.get(name, index)) {
                        None | Some(Candidate::Unknown) => {}
                        Some(Candidate::Line(found)) if found == line => {}
                        Some(found) => {
                            let found = format!("{name:?}: {found:?} instead of line {line}");
                            self.wrong("domains.mphf".into(), "the line of every name", found);
                        }
                    }
                }
            }
        }
    }

    fn files(&mut self, store: &Arc<dyn Store>, files: u32, masked: &[u32]) -> Groups {
        let mut groups = Groups { files: Vec::new(), rows: Vec::new() };
        for file_id in 0..files {
            groups.files.push((u32::MAX, groups.rows.len()));
            let Some(entry) = self.ok(self.segment.file(file_id)) else { continue };
            if let Some(last) = groups.files.last_mut() {
                last.0 = entry.dataset_id;
            }
            match store.len(&entry.path) {
                Ok(len) if len == entry.bytes => {}
                Ok(len) => self.wrong(entry.path.clone(), "the length in files.tsv.zst", len),
                // The version takes nothing from it any more, so a collector may have taken it.
                Err(e) if e.is_not_found() && masked.contains(&entry.dataset_id) => {}
                Err(e) => self.report(e.into()),
            }
            self.tables(&entry, &mut groups);
        }
        groups
    }

    fn tables(&mut self, entry: &FileEntry, groups: &mut Groups) {
        let Some(tables) = self.ok(self.segment.tables_of(entry.file_id)) else { return };
        let (mut rows, count) = (0, tables.len());
        for table in tables {
            let table = GroupTable::new(&entry.path, &table).map_err(Error::from);
            let found = self.ok(table).map_or(0, |table| u64::from(table.rows()));
            groups.rows.push((found, 0));
            rows += found;
        }
        if count != entry.row_groups as usize || rows != entry.rows {
            let found = format!("{rows} rows in {count} groups");
            self.wrong(entry.path.clone(), "page tables of all rows", found);
        }
    }

    fn postings(&mut self, mut groups: Groups) {
        let shards = self.segment.meta().shards;
        for number in 0..shards {
            let Some(shard) = self.ok(self.segment.shard(number)) else { continue };
            if let Err(e) = shard.check_headers() {
                self.report(e);
            }
            let mut slot_entries: (u64, Vec<(u32, u64)>) = (u64::MAX, Vec::new());
            for entries in shard.all_entries() {
                for entry in self.ok(entries).unwrap_or_default() {
                    if entry.slot % u64::from(shards.max(1)) != u64::from(number) || entry.slot >= self.segment.len() {
                        self.wrong(format!("postings/{number}"), "slots of this shard", entry.slot);
                        continue;
                    }
                    if entry.slot != slot_entries.0 {
                        self.slot(&std::mem::replace(&mut slot_entries, (entry.slot, Vec::new())));
                    }
                    let runs = self.ok(shard.payload(&entry)).unwrap_or_default();
                    let rows = runs.iter().map(|run| run.row_count).sum();
                    slot_entries.1.push((entry.dataset_id, rows));
                    self.verified.pairs += 1;
                    self.verified.rows += rows;
                    for run in runs {
                        self.run(&mut groups, entry.dataset_id, &run);
                    }
                }
            }
            self.slot(&slot_entries);
        }
        let missed = groups.rows.iter().filter(|(rows, named)| rows != named).count();
        if missed > 0 {
            self.wrong("postings".into(), "every row of every row group once", format!("{missed} groups otherwise"));
        }
    }

    fn run(&mut self, groups: &mut Groups, dataset_id: u32, run: &crate::postings::Run) {
        let file = run.file_id as usize;
        let found = groups.files.get(file).copied().filter(|(dataset, _)| *dataset == dataset_id);
        let end = groups.files.get(file + 1).map_or(groups.rows.len(), |next| next.1);
        let at = found.map(|(_, first)| first + run.row_group as usize).filter(|at| *at < end);
        match at.and_then(|at| groups.rows.get_mut(at)) {
            Some((rows, named)) if run.first_row + run.row_count <= *rows => *named += run.row_count,
            _ => self.wrong("postings".into(), "rows of the dataset's own files", format!("{run:?}")),
        }
    }

    /// Membership, counts and postings of a slot must tell the same.
    fn slot(&mut self, (slot, postings): &(u64, Vec<(u32, u64)>)) {
        if *slot == u64::MAX {
            return;
        }
        let Some(counts) = self.ok(self.segment.counts(crate::Slot(*slot))) else { return };
        let counted: Vec<(u32, u64)> = counts.iter().map(|(id, count)| (*id, count.rows)).collect();
        if counted != *postings {
            let found = format!("{counted:?} counted, {postings:?} posted");
            self.wrong(format!("slot {slot}"), "counts and postings that agree", found);
        }
    }

    fn totals(&mut self) {
        let meta = self.segment.meta();
        let found = (self.verified.domains, self.verified.pairs, self.verified.rows);
        if found != (meta.domains, meta.pairs, meta.rows) {
            let found = format!("{} domains, {} pairs, {} rows", found.0, found.1, found.2);
            self.wrong("segment.json".into(), "the totals of the files", found);
        }
    }
}
