//! An open segment that is not split, or a piece of one that is.

use crate::cache::Caches;
use crate::counts::{Count, Counts};
use crate::fetched::Fetched;
use crate::files::FileEntry;
use crate::lines::Lines;
use crate::membership::{self, Membership};
use crate::meta::SegmentMeta;
use crate::mphf::{Candidate, Mphf};
use crate::paged::PagedReader;
use crate::pages::Pages;
use crate::paths::Paths;
use crate::postings::{Run, Shard, ShardWalk};
use crate::slots::{Record, SlotReader};
use crate::times::Times;
use crate::{Blob, Error, OpenOptions, Result, Slot};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use trawl_store::{SegmentRef, Store};

/// An open segment: headers and tables in memory, the rest mapped, resident or read by ranges.
pub(crate) struct Plain {
    store: Arc<dyn Store>,
    reference: SegmentRef,
    meta: SegmentMeta,
    dictionary: Lines,
    mphf: std::result::Result<Mphf, Error>,
    membership: Membership,
    counts: SlotReader<Counts>,
    times: SlotReader<Times>,
    paths: SlotReader<Paths>,
    rows: OnceLock<RowTables>,
    shards: Vec<OnceLock<Shard>>,
    caches: Arc<Caches>,
    options: OpenOptions,
    fetched: Fetched,
}

impl Plain {
    /// Opens the files a lookup needs; postings shards are opened when first asked.
    pub fn open(
        store: &Arc<dyn Store>,
        reference: &SegmentRef,
        caches: &Arc<Caches>,
        options: OpenOptions,
    ) -> Result<Self> {
        let meta = SegmentMeta::read(&**store, reference)?;
        let fetched = Fetched::new(&**store, reference, &meta, options.resident_bytes)?;
        let blob = |key| blob(&fetched, store, reference, key, caches, options);
        let dictionary = Lines::open(blob("domains_txt")?, caches.clone())?;
        let segment = Self {
            mphf: blob("domains_mphf").and_then(|blob| fitting(Mphf::open(blob)?, &dictionary)),
            dictionary,
            membership: Membership::open(blob("d2d_roar")?)?,
            counts: SlotReader::open(blob("counts")?, caches.clone())?,
            times: SlotReader::open(blob("times")?, caches.clone())?,
            paths: SlotReader::open(blob("paths")?, caches.clone())?,
            rows: OnceLock::new(),
            shards: (0..meta.shards).map(|_| OnceLock::new()).collect(),
            store: store.clone(),
            reference: reference.clone(),
            meta,
            caches: caches.clone(),
            options,
            fetched: Fetched::default(),
        };
        let segment = Self { fetched, ..segment };
        segment.agree()?;
        Ok(segment)
    }

    /// Totals of all files must be those of the dictionary and of `segment.json`.
    fn agree(&self) -> Result<()> {
        let pairs = [
            ("segment.json", self.meta.domains),
            (membership::FILE, self.membership.slots()),
            (Counts::FILE, self.counts.slots()),
            (Times::FILE, self.times.slots()),
            (Paths::FILE, self.paths.slots()),
        ];
        if let Some((file, found)) = pairs.into_iter().find(|(_, slots)| *slots != self.dictionary.len()) {
            return Err(self.mismatch("domains.txt.zst", file, "number of domains", found, self.dictionary.len()));
        }
        Ok(())
    }

    /// What leads to rows, opened when first asked: it grows with the number of Parquet files, and opening a lake must
    /// not.
    fn rows(&self) -> Result<&RowTables> {
        if let Some(rows) = self.rows.get() {
            return Ok(rows);
        }
        let blob = |key| blob(&self.fetched, &self.store, &self.reference, key, &self.caches, self.options);
        let pages = Pages::open(blob("pages")?)?;
        let files = Lines::open(blob("files_tsv")?, self.caches.clone())?;
        if u64::from(pages.files()) != files.len() {
            let (found, files) = (u64::from(pages.files()), files.len());
            return Err(self.mismatch("files.tsv.zst", "pages.bin", "number of files", found, files));
        }
        Ok(self.rows.get_or_init(|| RowTables { pages, files }))
    }

    fn mismatch(&self, left: &str, right: &str, what: &'static str, found: u64, expected: u64) -> Error {
        let id = &self.reference.id;
        let found = format!("{found} instead of {expected}");
        Error::Mismatch { left: format!("{id}/{left}"), right: format!("{id}/{right}"), what, found }
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.reference.id
    }

    /// What `segment.json` says.
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// Number of domains.
    pub fn len(&self) -> u64 {
        self.dictionary.len()
    }

    /// Whether it has no domains.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot of a domain, compared byte for byte with the dictionary. A stranger costs no read in 65,535 of 65,536
    /// cases.
    pub fn lookup(&self, domain: &str) -> Result<Option<Slot>> {
        let Some(index) = self.dictionary.block_of(domain) else { return Ok(None) };
        let candidate = match &self.mphf {
            Ok(mphf) => mphf.get(domain, index)?,
            Err(_) => Candidate::Unknown,
        };
        match candidate {
            Candidate::Stranger => Ok(None),
            Candidate::Unknown => Ok(self.dictionary.find(domain)?.map(Slot)),
            Candidate::Line(line) => {
                let lines = self.dictionary.block_lines(index);
                if u64::from(line) >= lines.end - lines.start {
                    return Ok(None);
                }
                let block = self.dictionary.block(index)?;
                let found = block.line(line as usize) == Some(domain);
                Ok(found.then(|| Slot(lines.start + u64::from(line))))
            }
        }
    }

    /// A slot near to where a domain would be, read as [`Plain::lookup`] reads one that is there. `None` if it has no domains.
    pub fn neighbour(&self, domain: &str) -> Result<Option<Slot>> {
        if self.is_empty() {
            return Ok(None);
        }
        let index = self.dictionary.block_of(domain).unwrap_or(0);
        let _same_read = self.dictionary.block(index)?;
        Ok(Some(Slot(self.dictionary.block_lines(index).start)))
    }

    /// The name of a slot.
    pub fn name(&self, slot: Slot) -> Result<Option<String>> {
        self.dictionary.line(slot.0)
    }

    /// The datasets of a slot, in order.
    pub fn datasets(&self, slot: Slot) -> Result<Vec<u32>> {
        self.membership.datasets(slot.0)
    }

    /// The datasets of a slot and what is known of each.
    pub fn counts(&self, slot: Slot) -> Result<Vec<(u32, Count)>> {
        let (datasets, mut counts) = self.numbers(slot)?;
        self.paths.fill(slot.0, &mut counts)?;
        Ok(datasets.into_iter().zip(counts).collect())
    }

    /// As [`Plain::counts`], without top paths.
    pub fn bare_counts(&self, slot: Slot) -> Result<Vec<(u32, Count)>> {
        let (datasets, counts) = self.numbers(slot)?;
        Ok(datasets.into_iter().zip(counts).collect())
    }

    fn numbers(&self, slot: Slot) -> Result<(Vec<u32>, Vec<Count>)> {
        let datasets = self.datasets(slot)?;
        let mut counts = vec![Count::default(); datasets.len()];
        self.counts.fill(slot.0, &mut counts)?;
        self.times.fill(slot.0, &mut counts)?;
        Ok((datasets, counts))
    }

    /// The rows of a slot in a dataset; empty if the dataset does not hold it.
    pub fn postings(&self, slot: Slot, dataset_id: u32) -> Result<Vec<Run>> {
        let shards = self.meta.shards.max(1);
        // A remainder of a 32-bit number fits into 32 bits.
        let number = (slot.0 % u64::from(shards)) as u32;
        let runs = self.shard(number)?.runs(slot.0, dataset_id)?.unwrap_or_default();
        self.check_files(&runs)?;
        Ok(runs)
    }

    fn check_files(&self, runs: &[Run]) -> Result<()> {
        let files = self.meta.parquet_files;
        if let Some(bad) = runs.iter().find(|run| u64::from(run.file_id) >= files) {
            return Err(self.mismatch("postings", "segment.json", "files", u64::from(bad.file_id), files));
        }
        Ok(())
    }

    /// Reads the rows of slots from the first to the last.
    pub(crate) fn walk(&self) -> PostingsWalk<'_> {
        PostingsWalk { segment: self, shards: self.shards.iter().map(|_| None).collect() }
    }

    /// A Parquet file by its id.
    pub fn file(&self, file_id: u32) -> Result<FileEntry> {
        let (number, files) = (u64::from(file_id), &self.rows()?.files);
        let line = files.line(number)?;
        let line = line.ok_or_else(|| Error::corrupt(files.name(), 0, "a file of this segment", file_id))?;
        FileEntry::parse(files.name(), number, &line)
    }

    /// Number of Parquet files.
    pub fn files(&self) -> Result<u32> {
        Ok(self.rows()?.pages.files())
    }

    /// The page tables of all row groups of a file.
    pub fn tables_of(&self, file_id: u32) -> Result<Vec<Bytes>> {
        let pages = &self.rows()?.pages;
        let groups: Vec<_> = (0..pages.groups_of(file_id)?).map(|group| (file_id, group)).collect();
        pages.tables(&groups)
    }

    /// Page tables of row groups, given as (file, row group), in the order asked.
    pub fn page_tables(&self, wanted: &[(u32, u32)]) -> Result<Vec<Bytes>> {
        self.rows()?.pages.tables(wanted)
    }

    /// A postings shard, opened when first asked.
    pub(crate) fn shard(&self, number: u32) -> Result<&Shard> {
        let cell = self.shards.get(number as usize);
        let cell = cell.ok_or_else(|| self.mismatch("segment.json", "postings", "shards", u64::from(number), 0))?;
        if let Some(shard) = cell.get() {
            return Ok(shard);
        }
        let blob = |key| {
            let path = self.reference.file(key, number).unwrap_or_default();
            self.fetched.blob(&self.store, &path, SHARD_RESIDENT.min(self.options.resident_bytes))
        };
        let shard = Shard::open(blob("postings_idx")?, blob("postings_dat")?, self.caches.clone())?;
        Ok(cell.get_or_init(|| shard))
    }

    /// Every file that has page checksums.
    pub(crate) fn paged(&self) -> Result<[&PagedReader; 5]> {
        let pages = &self.rows()?.pages;
        Ok([self.membership.file(), self.counts.file(), self.times.file(), self.paths.file(), pages.file()])
    }

    /// The perfect hash, or why lookups search the dictionary instead.
    pub fn mphf(&self) -> std::result::Result<&Mphf, &Error> {
        self.mphf.as_ref()
    }

    pub(crate) fn dictionary(&self) -> &Lines {
        &self.dictionary
    }
}

/// The rows of slots, asked for in order: each payload is decoded once.
pub(crate) struct PostingsWalk<'a> {
    segment: &'a Plain,
    shards: Vec<Option<ShardWalk<'a>>>,
}

impl PostingsWalk<'_> {
    /// As [`Plain::postings`], of a slot and dataset that come after those asked for last.
    pub fn runs(&mut self, slot: Slot, dataset_id: u32) -> Result<Vec<Run>> {
        let Self { segment, shards } = self;
        let number = slot.0 % (shards.len() as u64).max(1);
        let opened = usize::try_from(number).ok().and_then(|number| shards.get_mut(number));
        let none = || segment.mismatch("segment.json", "postings", "shards", number, 0);
        let opened = opened.ok_or_else(none)?;
        let walk = match opened {
            Some(walk) => walk,
            // A segment has at most 1024 shards.
            None => opened.insert(segment.shard(number as u32)?.walk()),
        };
        let runs = walk.runs(slot.0, dataset_id)?.unwrap_or_default();
        segment.check_files(&runs)?;
        Ok(runs)
    }
}

/// From runs of rows to byte ranges of Parquet files.
struct RowTables {
    pages: Pages,
    files: Lines,
}

/// A file of a segment by its key in the manifest.
fn blob(
    fetched: &Fetched,
    store: &Arc<dyn Store>,
    reference: &SegmentRef,
    key: &str,
    caches: &Arc<Caches>,
    options: OpenOptions,
) -> Result<Blob> {
    let path = reference.file(key, 0).ok_or_else(|| Error::Input {
        at: format!("segment {}", reference.id),
        expected: "a path of every file in the manifest",
        found: format!("none of {key}"),
    })?;
    Ok(fetched.blob(store, &path, options.resident_bytes)?.cached(caches))
}

/// Postings are the largest files and the least often asked: only small ones are kept whole.
const SHARD_RESIDENT: u64 = 256 * 1024;

/// The hash of the dictionary is in the file: a perfect hash of another dictionary would answer nonsense.
fn fitting(mphf: Mphf, dictionary: &Lines) -> Result<Mphf> {
    let found = dictionary.file().table_hash();
    if mphf.names() != dictionary.len() || mphf.dictionary().table != found {
        return Err(Error::Mismatch {
            left: dictionary.name().display().to_string(),
            right: "domains.mphf".into(),
            what: "dictionary",
            found: format!("hash {:016x} instead of {found:016x}", mphf.dictionary().table),
        });
    }
    Ok(mphf)
}
