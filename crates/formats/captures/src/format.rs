//! captures.parquet, as the room `formats/archive` registers it: an index, without captures of its own.

use crate::reader::{CapturesReader, is_index};
use crate::row::CaptureRow;
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::format::{Candidate, Format, Opening, Role};
use trawl_io::read_at::FileReader;
use trawl_io::{Fs, Mode, ReadAt};
use trawl_model::{
    Advice, Archive, CaptureSource, Carries, Check, Checked, DoorError, Inspection, OnDamage, OnProgress, Pick,
    Progress, Wanted,
};
use trawl_url::AnySpelling;

/// How often progress is reported, in rows.
const REPORT_EVERY: u64 = 1024;

/// Capture indexes.
#[derive(Debug, Clone, Copy)]
pub struct CapturesFormat;

impl Format for CapturesFormat {
    fn name(&self) -> &'static str {
        "captures.parquet"
    }

    fn carries(&self) -> Carries {
        Carries::NOTHING
    }

    fn is_index(&self) -> bool {
        true
    }

    fn detect(&self, candidate: &Candidate<'_>) -> bool {
        candidate.head.is_some_and(|head| head.starts_with(b"PAR1"))
            && FileReader::open_in(&**candidate.fs, candidate.path).map_or(true, |file| is_index(Arc::new(file)))
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Archive>, DoorError> {
        let file = opening.fs.open(opening.path, Mode::Read)?;
        Ok(Box::new(Captures(Arc::new(FileReader::up_to(file, opening.up_to.unwrap_or(u64::MAX))?))))
    }

    /// An index alone points at archives that are somewhere else: reading it is all that can be checked.
    fn verify(&self, fs: &Arc<dyn Fs>, paths: &[PathBuf], _check: &mut Check<'_>) -> Result<Checked, DoorError> {
        for path in paths {
            for row in CapturesReader::over(Arc::new(FileReader::open_in(&**fs, path)?))? {
                row?;
            }
        }
        Ok(Checked::default())
    }

    fn role(&self, name: &str, _all: &[String]) -> Option<Role> {
        (name.starts_with("captures") && name.ends_with(".parquet")).then_some(Role::Growing)
    }
}

/// What rows sum up to.
#[derive(Debug)]
pub struct RowSums {
    /// What was seen so far.
    pub seen: Inspection,
    /// How many rows.
    pub rows: u64,
    sample: usize,
    failures: u64,
    body_bytes: u64,
}

impl RowSums {
    /// Of something in `format`, with `sample` rows.
    pub fn new(format: &str, sample: usize) -> Self {
        let seen = Inspection { format: format.to_owned(), ..Inspection::default() };
        RowSums { seen, rows: 0, sample, failures: 0, body_bytes: 0 }
    }

    /// Counts a row.
    pub fn add(&mut self, row: &CaptureRow) {
        let bytes = u64::try_from(row.body_length).unwrap_or(0);
        self.rows += 1;
        self.failures += u64::from(row.is_failure());
        self.body_bytes += bytes;
        self.seen.tally_response(u16::try_from(row.status).ok(), Some(&row.content_type), &row.url, bytes);
        if self.seen.sample.len() < self.sample {
            let entry =
                json!({ "status": row.status, "body_length": row.body_length, "url": row.url, "error": row.error });
            self.seen.sample.extend(entry.as_object().cloned());
        }
    }

    /// All of it.
    pub fn finish(mut self) -> Inspection {
        for (name, n) in [("rows", self.rows), ("failures", self.failures), ("body_bytes", self.body_bytes)] {
            self.seen.fact(name, n);
        }
        self.seen
    }
}

struct Captures(Arc<dyn ReadAt>);

impl Archive for Captures {
    fn captures<'a>(&'a self, _pick: Pick<'_>) -> Result<Option<Box<dyn CaptureSource + 'a>>, DoorError> {
        Ok(None)
    }

    fn inspect(&self, sample: usize, progress: OnProgress<'_>) -> Result<Vec<Inspection>, DoorError> {
        let reader = CapturesReader::over(self.0.clone())?;
        let mut sums = RowSums::new("captures", sample);
        sums.seen.fact("version", reader.version());
        for row in reader {
            sums.add(&row?);
            if sums.rows.is_multiple_of(REPORT_EVERY) {
                progress(Progress { records: sums.rows, ..Progress::default() });
            }
        }
        Ok(vec![sums.finish()])
    }

    /// Rows are JSON however they are asked for.
    fn list(
        &self,
        wanted: &Wanted<'_>,
        out: &mut dyn Write,
        _on_damage: OnDamage<'_>,
    ) -> Result<Option<u64>, DoorError> {
        if wanted.offset.is_some() {
            let name = self.0.name().display();
            return Err(DoorError::new(Advice::Stop, format!("{name} is an index: it has rows, not records")));
        }
        let url = wanted.url.map(AnySpelling::new);
        let mut found = 0;
        for row in CapturesReader::over(self.0.clone())? {
            let row = row?;
            if url.as_ref().is_none_or(|url| url.matches(&row.url)) {
                found += 1;
                serde_json::to_writer(&mut *out, &row).map_err(io::Error::from)?;
                out.write_all(b"\n")?;
            }
        }
        Ok(Some(found))
    }
}
