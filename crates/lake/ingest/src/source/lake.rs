//! A file of the lake as a source: for rewriting.

use trawl_model::{Advice, Digest, DoorError, Items, Place, SourceIdentity, Split, UrlRecord, UrlSource};
use trawl_store::rows::{Column, Columns, FilePages, Plan, Rows};
use trawl_store::{DataFile, Store};

/// Rows decoded at a time.
const STEP_ROWS: u32 = 16_384;

/// Whether a row stays.
type Keep<'a> = dyn Fn(&UrlRecord) -> bool + Sync + 'a;

/// One Parquet file of a lake, without the rows that do not stay. A split is a number of row groups; its bytes are rows.
pub(crate) struct LakeSource<'a> {
    store: &'a dyn Store,
    file: &'a DataFile,
    pages: FilePages,
    keep: &'a Keep<'a>,
}

impl<'a> LakeSource<'a> {
    /// Reads the file's footer and checks its hash.
    pub fn open(store: &'a dyn Store, file: &'a DataFile, keep: &'a Keep<'a>) -> trawl_store::Result<Self> {
        Ok(Self { store, file, pages: FilePages::read(store, file)?, keep })
    }

    /// Whether the ids are stored in it.
    pub fn has_ids(&self) -> trawl_store::Result<bool> {
        let first = self.pages.tables().next().transpose()?;
        Ok(first.is_some_and(|table| table.columns().has(Column::UrlId)))
    }

    /// The zstd level it was written with, if that is known.
    pub fn zstd_level(&self) -> Option<i32> {
        self.pages.zstd_level
    }
}

fn stop(error: trawl_store::Error) -> DoorError {
    DoorError::new(Advice::Stop, error)
}

impl UrlSource for LakeSource<'_> {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity { uri: self.file.path.clone(), size: self.file.bytes, tag: format!("xxh3:{}", self.file.hash) }
    }

    fn splits(&self, _target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        let groups = self.pages.groups.len() as u64;
        Ok((0..groups).map(|group| Split { start: group, end: group + 1 }).collect())
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let mut rows_before = 0;
        for (group, table) in (0u64..).zip(self.pages.tables()) {
            let table = table.map_err(stop)?;
            let first_row = rows_before;
            rows_before += u64::from(table.rows());
            if !(split.start..split.end).contains(&group) {
                continue;
            }
            let mut first = 0;
            while first < table.rows() {
                let end = first.saturating_add(STEP_ROWS).min(table.rows());
                let plan = Plan::new(&self.file.path, &table, first..end, Columns::ALL).map_err(stop)?;
                let fetched = self.store.get_batch(plan.reads()).map_err(stop)?;
                let rows = plan.finish(&fetched).map_err(stop)?;
                for i in 0..rows.len() {
                    let record = record(&rows, i);
                    if (self.keep)(&record) {
                        each(first_row + u64::from(first) + i as u64, Ok(record))?;
                    }
                }
                first = end;
            }
        }
        Ok(())
    }
}

fn record(rows: &Rows, i: usize) -> UrlRecord {
    let row = rows.row(i);
    let place = row.warc_file.zip(row.warc_offset);
    UrlRecord {
        url: row.url,
        ts: row.ts,
        status: row.status,
        content_type: row.content_type,
        digest: row.digest.and_then(|text| Digest::parse(&text).ok()),
        body_length: row.body_length,
        place: place.map(|(file, offset)| Place::new(file, offset, row.warc_length.unwrap_or(0))),
        extras: row.extras,
    }
}
