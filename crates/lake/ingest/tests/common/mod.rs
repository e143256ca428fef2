//! What the tests share.
#![allow(dead_code)]

use std::path::Path;
use std::sync::Arc;
use trawl_ingest::source::{self, Opening, Source};
use trawl_ingest::{IngestReport, IngestSettings, Progress, ingest};
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode};
use trawl_model::UnixMillis;
use trawl_rows::{Column, Columns, FilePages, Rows};
use trawl_store::{DatasetCommit, DatasetInfo, DirStore, Lake, Store};
use trawl_url::SuffixList;

pub const NOW: UnixMillis = UnixMillis(1_782_262_923_456);

pub fn lake_on(fs: &Arc<dyn Fs>) -> Lake {
    let store = Arc::new(DirStore::with_fs(fs.clone(), "lake"));
    let lake = Lake::init(store, NOW, "n1", SuffixList::builtin().text().as_bytes()).unwrap();
    lake.register_dataset(NOW, "test", &DatasetInfo::named("d")).unwrap();
    lake
}

/// A lake in memory with one dataset, and its file system.
pub fn new_lake() -> (Arc<dyn Fs>, Lake) {
    let fs = FaultFs::new().shared();
    let lake = lake_on(&fs);
    (fs, lake)
}

pub fn write(fs: &Arc<dyn Fs>, name: &str, bytes: &[u8]) {
    fs.open(Path::new(name), Mode::Truncate).unwrap().write_at(0, bytes).unwrap();
}

pub fn file(fs: &Arc<dyn Fs>, name: &str, bytes: impl AsRef<[u8]>) -> Source {
    write(fs, name, bytes.as_ref());
    source::open(fs, Path::new(name), None).unwrap()
}

/// As [`file`], for a dataset that may know how it begins.
pub fn grown(fs: &Arc<dyn Fs>, lake: &Lake, name: &str, bytes: impl AsRef<[u8]>) -> trawl_ingest::Result<Source> {
    write(fs, name, bytes.as_ref());
    let known = lake.dataset_newest(1)?.map(|commit| commit.sources).unwrap_or_default();
    source::open_as(fs, Path::new(name), &Opening { known: Some(&known), ..Opening::default() })
}

pub fn settings(fs: &Arc<dyn Fs>, writer: &str) -> IngestSettings {
    IngestSettings { temp_fs: fs.clone(), memory_bytes: 16 << 20, ..IngestSettings::new(writer, "tmp") }
}

pub fn quiet(_: Progress) {}

pub fn take(lake: &Lake, sources: Vec<Source>, settings: &IngestSettings) -> trawl_ingest::Result<IngestReport> {
    ingest(lake, 1, &sources, settings, &|| NOW, &quiet)
}

/// A row, column by column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlRow {
    pub url: String,
    pub domain: String,
    pub host: String,
    pub ts: Option<UnixMillis>,
    pub status: Option<u16>,
    pub content_type: Option<String>,
    pub digest: Option<String>,
    pub body_length: Option<u64>,
    pub warc_file: Option<String>,
    pub warc_offset: Option<u64>,
    pub warc_length: Option<u64>,
    pub extras: Option<String>,
}

impl UrlRow {
    fn of(rows: &Rows, i: usize) -> Self {
        let text = |column| rows.text(column, i).map(str::to_owned);
        Self {
            url: rows.url(i),
            domain: text(Column::Domain).unwrap(),
            host: text(Column::Host).unwrap(),
            ts: rows.ts(i),
            status: rows.unsigned(Column::Status, i),
            content_type: text(Column::ContentType),
            digest: text(Column::Digest),
            body_length: rows.unsigned(Column::BodyLength, i),
            warc_file: text(Column::WarcFile),
            warc_offset: rows.unsigned(Column::WarcOffset, i),
            warc_length: rows.unsigned(Column::WarcLength, i),
            extras: text(Column::Extras),
        }
    }
}

/// Every row of a commit, file by file, with every invariant of its files checked on the way.
pub fn rows_of(store: &dyn Store, commit: &DatasetCommit) -> Vec<UrlRow> {
    let mut out = Vec::new();
    for file in &commit.files {
        let pages = FilePages::read(store, file).unwrap();
        let first = out.len();
        for step in pages.scan(store, Columns::ALL, 1000).unwrap() {
            let rows = step.unwrap().rows;
            out.extend((0..rows.len()).map(|i| UrlRow::of(&rows, i)));
        }
        let rows = &out[first..];
        assert_eq!(rows.len() as u64, file.rows);
        assert_eq!(rows.first().unwrap().domain, file.min_domain);
        assert_eq!(rows.last().unwrap().domain, file.max_domain);
        let distinct: std::collections::BTreeSet<_> = rows.iter().map(|r| &r.url).collect();
        assert_eq!(distinct.len() as u64, file.distinct_urls);
    }
    out
}

pub fn all_rows(lake: &Lake) -> Vec<UrlRow> {
    lake.dataset_newest(1).unwrap().map(|commit| rows_of(&**lake.store(), &commit)).unwrap_or_default()
}

pub fn urls(lake: &Lake) -> Vec<String> {
    all_rows(lake).into_iter().map(|row| row.url).collect()
}
