//! A file of the lake as a source: for rewriting.

use trawl_model::{Advice, DoorError, Items, SourceIdentity, Split, UrlRecord, UrlSource};
use trawl_rows::{Column, Columns, FilePages, Step};
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
        let (mut groups, mut rows_before, mut before) = (Vec::new(), Vec::new(), 0);
        for (group, table) in (0u32..).zip(self.pages.tables()) {
            let rows = table.map_err(stop)?.rows();
            rows_before.push(before);
            before += u64::from(rows);
            if (split.start..split.end).contains(&u64::from(group)) {
                groups.push((group, 0..rows));
            }
        }
        for step in self.pages.scan_rows(self.store, Columns::ALL, groups, STEP_ROWS) {
            let Step { group, first, rows } = step.map_err(stop)?;
            let first = rows_before.get(group as usize).map_or(0, |before| before + u64::from(first));
            for i in 0..rows.len() {
                let record = rows.record(i);
                if (self.keep)(&record) {
                    each(first + i as u64, Ok(record))?;
                }
            }
        }
        Ok(())
    }
}
