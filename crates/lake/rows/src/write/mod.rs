//! Sorted rows to Parquet files: rolls files and row groups, encodes row groups on several threads.
//!
//! ```text
//! row ─► batch ─► row group full ─► encode (own thread) ─┐
//!                                                        ▼ in order
//!                       open parts, oldest first:  append row group … append row group, footer, publish
//! ```
//! A file ends where the domain prefix changes, or past its size at the next change of key: no key is in two files, so
//! counts of different URLs add up.

mod batch;
mod part;
mod schema;
mod text;

pub use batch::Row;

use crate::column::arrow_schema;
use crate::distinct::Distinct;
use crate::{Column, Error, Result, SCHEMA};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use batch::Batch;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use part::{Chunk, Part};
use std::collections::VecDeque;
use std::thread::JoinHandle;
use trawl_store::{DataFile, Store, layout};
use xxhash_rust::xxh3::xxh3_128;

/// Rows handed to the encoder at a time.
const BATCH_ROWS: usize = 8192;

/// How files are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteSettings {
    /// The dataset, below 2^31.
    pub dataset_id: u32,
    /// Part of every file's name.
    pub writer: String,
    /// The columns every file has, in the order of [`Column::ALL`].
    pub columns: Vec<Column>,
    /// Hash of the suffix list by which the rows were cut into domains.
    pub suffix_list: String,
    /// zstd level, 1 to 22.
    pub zstd_level: i32,
    /// Rows of a data page.
    pub page_rows: usize,
    /// Bytes of a row group before encoding.
    pub row_group_bytes: u64,
    /// Bytes of a file before encoding at which the next one begins.
    pub file_bytes: u64,
    /// Row groups encoded beside the one being filled, at most: no byte of the files depends on it. With 0 the caller waits for
    /// each.
    pub threads: usize,
}

enum Job {
    Group(JoinHandle<Result<Vec<Chunk>, ParquetError>>),
    EndOfPart,
}

/// Writes sorted rows.
pub struct Writer<'a> {
    store: &'a dyn Store,
    settings: WriteSettings,
    schema: SchemaRef,
    properties: WriterProperties,
    batch: Batch,
    /// Batches of the row group being filled, and their raw bytes.
    group: Vec<RecordBatch>,
    group_bytes: u64,
    /// Raw bytes of the file being filled.
    file_bytes: u64,
    /// The file being filled is the last; those before it wait for their jobs.
    parts: VecDeque<Part>,
    jobs: VecDeque<Job>,
    done: Vec<DataFile>,
    /// Whether the last part takes more rows.
    open: bool,
    /// That of the last part.
    prefix: String,
    next_number: u32,
    seen: Seen,
}

impl<'a> Writer<'a> {
    /// Writes files into `store`.
    pub fn new(store: &'a dyn Store, settings: WriteSettings) -> Result<Self> {
        if settings.dataset_id > layout::MAX_DATASET_ID {
            return Err(trawl_store::Error::UnknownDataset { found: settings.dataset_id.to_string() }.into());
        }
        let schema = arrow_schema(settings.columns.iter().copied());
        let properties = schema::properties(&settings)
            .map_err(|source| Error::Parquet { path: "writer settings".into(), source })?;
        let batch = Batch::new(schema.clone(), &settings);
        Ok(Self {
            store,
            settings,
            schema,
            properties,
            batch,
            group: Vec::new(),
            group_bytes: 0,
            file_bytes: 0,
            parts: VecDeque::new(),
            jobs: VecDeque::new(),
            done: Vec::new(),
            open: false,
            prefix: String::new(),
            next_number: 0,
            seen: Seen::default(),
        })
    }

    /// Takes the next row, which must not sort before the one taken last.
    pub fn push(&mut self, prefix: &str, row: &Row<'_>) -> Result<()> {
        let new_key = self.seen.key != row.key;
        if let Some(part) = self.parts.back().filter(|_| self.open)
            && (part.about.prefix != prefix
                || new_key && self.file_bytes + self.batch.raw_bytes() >= self.settings.file_bytes)
        {
            self.end_part()?;
        }
        if !self.open {
            self.begin_part(prefix, row)?;
        }
        self.batch.push(row).map_err(|e| self.failed(e))?;
        let new_url = self.seen.is_new(row);
        if let Some(part) = self.parts.back_mut() {
            let about = &mut part.about;
            about.rows += 1;
            about.distinct_urls += u64::from(new_url);
            if new_key {
                row.key.clone_into(&mut about.max_key);
                if about.max_domain != row.domain {
                    row.domain.clone_into(&mut about.max_domain);
                }
            }
        }
        let group_bytes = self.group_bytes + self.batch.raw_bytes();
        if self.batch.rows() >= BATCH_ROWS || group_bytes >= self.settings.row_group_bytes {
            self.take_batch()?;
        }
        Ok(())
    }

    fn begin_part(&mut self, prefix: &str, row: &Row<'_>) -> Result<()> {
        // Numbers begin again in each prefix, whose directory tells its files from those of others: so a prefix that is written
        // alone has the same names.
        if self.prefix != prefix {
            prefix.clone_into(&mut self.prefix);
            self.next_number = 0;
        }
        let path = layout::part(self.settings.dataset_id, prefix, &self.settings.writer, self.next_number)?;
        self.next_number += 1;
        let about = DataFile {
            path,
            prefix: prefix.to_owned(),
            added: 0,
            rows: 0,
            row_groups: 0,
            bytes: 0,
            hash: String::new(),
            schema: SCHEMA,
            min_domain: row.domain.to_owned(),
            max_domain: row.domain.to_owned(),
            min_key: row.key.to_owned(),
            max_key: row.key.to_owned(),
            distinct_urls: 0,
        };
        let part = Part::create(self.store, about, self.schema.clone(), self.properties.clone())?;
        self.parts.push_back(part);
        self.open = true;
        self.file_bytes = 0;
        self.seen = Seen::default();
        Ok(())
    }

    fn take_batch(&mut self) -> Result<()> {
        if self.batch.rows() == 0 {
            return Ok(());
        }
        self.group_bytes += self.batch.raw_bytes();
        self.file_bytes += self.batch.raw_bytes();
        let batch = self.batch.take().map_err(|e| self.failed(e))?;
        self.group.push(batch);
        if self.group_bytes >= self.settings.row_group_bytes {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<()> {
        if self.group.is_empty() {
            return Ok(());
        }
        let batches = std::mem::take(&mut self.group);
        self.group_bytes = 0;
        let Some(part) = self.parts.back_mut() else { return Err(Error::Ended { what: "a file" }) };
        let writers = part.begin_group(&self.settings)?;
        let schema = self.schema.clone();
        self.jobs.push_back(Job::Group(std::thread::spawn(move || part::encode(&schema, writers, &batches))));
        self.settle(self.settings.threads)
    }

    fn end_part(&mut self) -> Result<()> {
        self.take_batch()?;
        self.end_group()?;
        self.jobs.push_back(Job::EndOfPart);
        self.open = false;
        Ok(())
    }

    /// Waits until at most `running` jobs are left, and does what the others ask for.
    fn settle(&mut self, running: usize) -> Result<()> {
        while self.jobs.len() > running || matches!(self.jobs.front(), Some(Job::EndOfPart)) {
            match self.jobs.pop_front() {
                None => return Ok(()),
                Some(Job::Group(handle)) => {
                    let encoded = handle.join().map_err(|_| Error::Ended { what: "a thread that encodes" })?;
                    let chunks = encoded.map_err(|e| self.failed(e.into()))?;
                    self.parts.front_mut().ok_or(Error::Ended { what: "a file" })?.append(chunks)?;
                }
                Some(Job::EndOfPart) => {
                    let part = self.parts.pop_front().ok_or(Error::Ended { what: "a file" })?;
                    self.done.push(part.finish()?);
                }
            }
        }
        Ok(())
    }

    /// Completes all files and tells what they are.
    pub fn finish(mut self) -> Result<Vec<DataFile>> {
        if self.open {
            self.end_part()?;
        }
        self.settle(0)?;
        Ok(std::mem::take(&mut self.done))
    }

    fn failed(&self, found: Box<dyn std::error::Error + Send + Sync>) -> Error {
        let path = self.parts.front().map_or_else(String::new, |part| part.about.path.clone());
        Error::Parquet { path, source: ParquetError::External(found) }
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // After an error: let no thread outlive the call that started it.
        for job in self.jobs.drain(..) {
            if let Job::Group(handle) = job {
                let _ = handle.join();
            }
        }
    }
}

/// Tells different URLs apart within one key; those of different keys are different anyway. Within a key host and path are
/// the same, and a raw URL is kept only where it is not the normalised one: so scheme, port and raw URL tell them apart.
#[derive(Debug, Default)]
struct Seen {
    key: String,
    /// One key may have very many (fragments), whose texts would not fit: raw URLs are 128 bits of hash.
    of_key: Distinct<(&'static str, Option<u16>, Option<u128>)>,
}

impl Seen {
    fn is_new(&mut self, row: &Row<'_>) -> bool {
        if self.key != row.key {
            row.key.clone_into(&mut self.key);
            self.of_key.clear();
        }
        self.of_key.insert((row.scheme, row.port, row.raw_url.as_ref().map(|raw| xxh3_128(raw.as_bytes()))))
    }
}
