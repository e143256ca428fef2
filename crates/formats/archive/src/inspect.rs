//! What is in an archive.

use crate::error::Result;
use crate::registry::Found;
use std::sync::Arc;
use trawl_captures::{CaptureRow, RowSums};
use trawl_io::Fs;
use trawl_model::{Advice, Entry, Inspection, OnProgress, Pick, Progress};

/// How often progress is reported, in captures.
const REPORT_EVERY: u64 = 256;

/// Describes an archive, with `sample` of its entries: by its own means, else by the rows its captures would have in an index.
/// User information in their URLs is left out.
pub fn inspect(found: &Found, fs: &Arc<dyn Fs>, sample: usize, progress: OnProgress<'_>) -> Result<Vec<Inspection>> {
    let mut all = described(found, fs, sample, progress)?;
    for row in all.iter_mut().flat_map(|seen| &mut seen.sample) {
        if let Some(url) = row.get_mut("url").filter(|url| url.is_string()) {
            *url = trawl_url::without_userinfo(url.as_str().unwrap_or_default()).into();
        }
    }
    Ok(all)
}

fn described(found: &Found, fs: &Arc<dyn Fs>, sample: usize, progress: OnProgress<'_>) -> Result<Vec<Inspection>> {
    let archive = found.open(fs)?;
    let own = archive.inspect(sample, progress)?;
    if !own.is_empty() {
        return Ok(own);
    }
    let (mut sums, mut others) = (RowSums::new(found.format.name(), sample), 0u64);
    if let Some(mut source) = archive.captures(Pick::All)? {
        loop {
            match source.next_entry() {
                Ok(None) => break,
                Ok(Some((Entry::Other(_), _))) => others += 1,
                Ok(Some((Entry::Capture(mut capture), place))) => {
                    sums.add(&CaptureRow::from_capture(&mut capture, Some(&place))?);
                }
                Err(error) if error.advice == Advice::Skip => sums.seen.damaged(error.to_string()),
                Err(error) => return Err(error),
            }
            if sums.rows.is_multiple_of(REPORT_EVERY) {
                progress(Progress { records: sums.rows, bytes: source.position(), total_bytes: 0 });
            }
        }
    }
    sums.seen.fact("other_records", others);
    Ok(vec![sums.finish()])
}
