//! Nutch's containers as archives: what `formats/archive` registers.
//!
//! A segment is an archive of captures. A CrawlDb, a LinkDb and any other directory of Hadoop's files is a source of URLs,
//! and can be looked into and checked.

mod archive;
mod beside;
mod capture;
mod carried;
mod fetch_list;
mod layout;
mod left_out;
mod legacy;
mod sink;
mod source;
mod urls;
mod verify;

#[cfg(test)]
mod tests;

use archive::NutchArchive;
use layout::Layout;
use sink::{CARRIES, ENDING, SPOOL_ENDING, SegmentSink};
use std::path::PathBuf;
use std::sync::Arc;
use trawl_hadoop::seq::{Header, OpenOptions, Span};
use trawl_io::Fs;
use trawl_io::format::{Candidate, Creation, Format, Opening, Role};
use trawl_model::{Advice, Archive, CaptureSink, Carries, Check, Checked, DoorError, Durable, Split};

/// SequenceFiles, MapFiles, and everything that Nutch makes of them.
#[derive(Debug, Clone, Copy)]
pub struct NutchFormat;

/// Cuts a span into splits of about `target_bytes`.
fn cut(span: Span, target_bytes: u64, splits: &mut Vec<Split>) {
    let mut at = span.start;
    while at < span.end {
        let next = at.saturating_add(target_bytes.max(1)).min(span.end);
        splits.push(Split { start: at, end: next });
        at = next;
    }
}

fn options(fs: &Arc<dyn Fs>) -> OpenOptions {
    OpenOptions { fs: fs.clone(), ..OpenOptions::default() }
}

impl Format for NutchFormat {
    fn name(&self) -> &'static str {
        "nutch"
    }

    fn carries(&self) -> Carries {
        CARRIES
    }

    fn detect(&self, candidate: &Candidate<'_>) -> bool {
        match candidate.head {
            // A version that cannot be read is said to be one, and not taken for something else.
            Some(head) => Header::is_of_any_version(head),
            None => {
                candidate.lower_name().ends_with(ENDING)
                    || Layout::of(&**candidate.fs, candidate.path).is_ok_and(|layout| layout.is_some())
            }
        }
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Archive>, DoorError> {
        let layout = Layout::of(&**opening.fs, opening.path)?.ok_or_else(|| {
            let found = format!("{}: expected files of Hadoop's or Nutch's, found none", opening.path.display());
            DoorError::new(Advice::Skip, found)
        })?;
        let layout = layout.by_whole_path(&**opening.fs)?;
        Ok(Box::new(NutchArchive::new(layout, options(opening.fs))))
    }

    fn verify(&self, fs: &Arc<dyn Fs>, paths: &[PathBuf], check: &mut Check<'_>) -> Result<Checked, DoorError> {
        let mut all = Checked::default();
        for path in paths {
            let Some(layout) = Layout::of(&**fs, path)? else { continue };
            let checked = verify::verify(&layout, &options(fs), check)?;
            all.files += checked.files;
            all.records += checked.records;
            all.bytes += checked.bytes;
        }
        Ok(all)
    }

    fn targets(&self) -> &'static [&'static str] {
        &[ENDING]
    }

    fn compressions(&self) -> &'static [&'static str] {
        &["nutch", "block"]
    }

    fn knows_places_late(&self) -> bool {
        true
    }

    fn is_crawlable(&self) -> bool {
        true
    }

    fn create(&self, creation: Creation) -> Result<Box<dyn CaptureSink>, DoorError> {
        Ok(Box::new(SegmentSink::create(creation)?))
    }

    fn resume(&self, creation: Creation, committed: Option<&Durable>) -> Result<Box<dyn CaptureSink>, DoorError> {
        Ok(Box::new(SegmentSink::resume(creation, committed)?))
    }

    fn role(&self, name: &str, _all: &[String]) -> Option<Role> {
        if name.ends_with(SPOOL_ENDING) {
            return Some(Role::Working);
        }
        name.ends_with(ENDING).then_some(Role::Complete)
    }
}
