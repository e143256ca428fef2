//! The second stage: sorted records to Parquet files.
//!
//! The records of one prefix make the same files whether they come alone or after those of other prefixes (but for the numbers
//! in the files' names): a file ends where the prefix changes, and nothing is carried over. So a section of a run, or the same
//! section of many runs merged, is a task of its own.

use crate::{Error, Result, record};
use trawl_rows::{WriteSettings, Writer};
use trawl_sort::Sorted;
use trawl_store::{Cancel, DataFile, Store};

/// Rows between two looks at the caller.
const TICK_ROWS: u64 = 65_536;

/// Records in the order of rows: a run, a section of it, or several merged.
pub trait Records {
    /// The next record, as [`crate::map`] made it.
    fn next_record(&mut self) -> Result<Option<&[u8]>>;
}

impl Records for Sorted {
    fn next_record(&mut self) -> Result<Option<&[u8]>> {
        Ok(Sorted::next_record(self)?.map(|record| record.key))
    }
}

/// Writes records, made for so many hex digits of `domain_prefix=`, to files of `store`, and tells what a commit says of these.
/// `progress` hears how many rows are done. Nothing refers to the files until a commit names them.
pub fn reduce(
    store: &dyn Store,
    records: &mut dyn Records,
    digits: u8,
    settings: WriteSettings,
    cancel: &Cancel,
    progress: &dyn Fn(u64),
) -> Result<Vec<DataFile>> {
    let mut writer = Writer::new(store, settings)?;
    let (mut host, mut prefix) = (record::Host::default(), record::Prefix::default());
    let mut rows = 0u64;
    while let Some(bytes) = records.next_record()? {
        let row = record::decode(bytes, digits, &mut host).ok_or(Error::Ended { what: "a sorted record" })?;
        writer.push(prefix.of(bytes, digits), &row)?;
        rows += 1;
        if rows.is_multiple_of(TICK_ROWS) {
            progress(rows);
            cancel.check()?;
        }
    }
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IngestSettings, MapInput, map, plan, source};
    use std::collections::BTreeMap;
    use std::path::Path;
    use trawl_io::Mode;
    use trawl_io::fault::FaultFs;
    use trawl_model::UrlSource;
    use trawl_rows::Column;
    use trawl_store::DirStore;
    use trawl_url::SuffixList;

    struct Section(std::vec::IntoIter<Vec<u8>>, Vec<u8>);

    impl Records for Section {
        fn next_record(&mut self) -> Result<Option<&[u8]>> {
            let Some(next) = self.0.next() else { return Ok(None) };
            self.1 = next;
            Ok(Some(&self.1))
        }
    }

    fn settings(writer: &str) -> WriteSettings {
        WriteSettings {
            dataset_id: 1,
            writer: writer.into(),
            columns: Column::of_files(false),
            suffix_list: "0".into(),
            zstd_level: 3,
            page_rows: 50,
            row_group_bytes: 4 << 10,
            file_bytes: 20 << 10,
            threads: 2,
        }
    }

    /// What is the same of a file wherever it was written: all but its number.
    fn facts(files: Vec<DataFile>) -> Vec<(String, String, u64, u64, String, String)> {
        files.into_iter().map(|f| (f.prefix, f.hash, f.rows, f.distinct_urls, f.min_key, f.max_key)).collect()
    }

    #[test]
    fn sections_of_several_runs_make_the_files_of_one_run() {
        let disk = FaultFs::new().shared();
        let lines: String =
            (0..3000).map(|n| format!("https://www.h{}.org/{}/{n}#{}\n", n % 97, n % 7, n % 3)).collect();
        disk.open(Path::new("urls.txt"), Mode::Truncate).unwrap().write_at(0, lines.as_bytes()).unwrap();
        let opened = source::open(&disk, Path::new("urls.txt"), None).unwrap();
        let sources: [&dyn UrlSource; 1] = [&opened];
        let store = DirStore::with_fs(disk.clone(), "lake");
        let run = |splits, writer: &str, digits| {
            let room =
                IngestSettings { temp_fs: disk.clone(), memory_bytes: 16 << 20, ..IngestSettings::new(writer, "tmp") };
            let (suffixes, rejects) = (SuffixList::builtin(), format!("rejects-{writer}"));
            let input = MapInput { sources: &sources, splits, of_lake: 0, suffixes, digits, denied: None, rejects };
            map(&store, &input, &room, &|_| ()).unwrap()
        };
        for digits in [1, 2] {
            let splits = plan(&sources, 4 << 10).unwrap();
            assert!(splits.len() > 10);
            let mut whole = run(splits.clone(), "whole", digits);
            assert_eq!(whole.report.rows, 3000);
            let (cancel, quiet) = (Cancel::default(), |_| ());
            let one = reduce(&store, &mut whole.run, digits, settings("whole"), &cancel, &quiet).unwrap();
            // Two tasks map half of the splits each; a task for each prefix merges its sections.
            let mut sections: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
            for (n, half) in splits.chunks(splits.len().div_ceil(2)).enumerate() {
                let mut mapped = run(half.to_vec(), &format!("half{n}"), digits);
                while let Some(record) = Records::next_record(&mut mapped.run).unwrap() {
                    sections.entry(record[0]).or_default().push(record.to_vec());
                }
            }
            let mut parts = Vec::new();
            for (prefix, mut records) in sections {
                records.sort();
                let mut section = Section(records.into_iter(), Vec::new());
                let settings = settings(&format!("task{prefix}"));
                parts.extend(reduce(&store, &mut section, digits, settings, &cancel, &quiet).unwrap());
            }
            assert!(parts.len() > 10 && facts(parts) == facts(one), "{digits} digits");
        }
    }

    #[test]
    fn a_cancelled_stage_ends() {
        let store = DirStore::with_fs(FaultFs::new().shared(), "lake");
        let cancel = Cancel::default();
        cancel.cancel();
        let record = || {
            let url = trawl_url::LakeUrl::parse("http://a.com/", SuffixList::builtin()).unwrap();
            let mut out = Vec::new();
            record::encode(&url, &trawl_model::UrlRecord::bare("http://a.com/"), 0, &mut String::new(), &mut out)
                .unwrap();
            out
        };
        let mut many = Section(vec![record(); 70_000].into_iter(), Vec::new());
        let ended = reduce(&store, &mut many, 0, settings("w"), &cancel, &|_| ());
        assert!(matches!(ended, Err(Error::Store(trawl_store::Error::Cancelled))));
        assert_eq!(store.list("urls").unwrap(), []);
    }
}
