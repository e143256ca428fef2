//! Segments that are split by prefix: which are, and the work on their pieces by several threads.
//!
//! Pieces have nothing in common, so that they are made at the same time, by threads or by tasks of a job. Whether a segment is
//! split depends only on the files that it is of, never on the machine: the same files are the same bytes everywhere.

use crate::build::{BuildOptions, SourceFile, build_plain};
use crate::meta::{MAX_SPLIT, META_FILE, SegmentMeta};
use crate::{Error, Result};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use trawl_store::{Progress, Stage, Store, layout};
use trawl_url::domain_id;

/// Rows that a piece has on average, or the segment is split less. It has a dozen files: smaller ones would cost more to open and
/// to store than a second thread saves.
pub const PIECE_ROWS: u64 = 1 << 18;

/// The number of the piece that a domain is in: the first digits of its id.
pub(crate) fn piece_number(domain: &str, split: u8) -> usize {
    // At most 8 bits are left.
    (domain_id(domain) >> (64 - 4 * u32::from(split.clamp(1, MAX_SPLIT)))) as usize
}

/// Whether a domain is of a prefix of one or two digits.
pub(crate) fn has_prefix(domain: &str, prefix: &str) -> bool {
    let split = prefix.len() as u8;
    split == 0 || usize::from_str_radix(prefix, 16).is_ok_and(|number| number == piece_number(domain, split))
}

/// By how many digits a segment of files with these prefixes and so many rows is split: no more than each file is, so that no
/// file has rows of two pieces, and no more than pays.
pub(crate) fn digits<'a>(prefixes: impl IntoIterator<Item = &'a str>, rows: u64, options: &BuildOptions) -> u8 {
    let of_file = |prefix: &str| if prefix == "all" { 0 } else { prefix.len().min(usize::from(MAX_SPLIT)) };
    let most = prefixes.into_iter().map(of_file).min().unwrap_or(0);
    let pays = |split: &usize| rows >> (4 * split) >= options.piece_rows;
    (1..=most).rev().find(pays).unwrap_or(0) as u8
}

/// By how many digits a segment of these files is split.
pub(crate) fn digits_of(files: &[SourceFile], options: &BuildOptions) -> u8 {
    let rows = files.iter().map(|source| source.file.rows).sum();
    digits(files.iter().map(|source| source.file.prefix.as_str()), rows, options)
}

/// The prefixes of the pieces that files with these prefixes go to.
pub(crate) fn prefixes<'a>(of_files: impl IntoIterator<Item = &'a str>, split: u8) -> BTreeSet<String> {
    of_files.into_iter().filter_map(|prefix| prefix.get(..usize::from(split))).map(str::to_owned).collect()
}

/// The files of a piece, in their order.
fn files_of(files: &[SourceFile], prefix: &str) -> Vec<SourceFile> {
    files.iter().filter(|source| source.file.prefix.starts_with(prefix)).cloned().collect()
}

/// Builds segment `id` from `files`, which must be in the order of [`crate::sort_files`]; split by prefix where the files are and that
/// pays. Nothing refers to it until a manifest names it.
pub fn build_segment(
    store: &Arc<dyn Store>,
    id: &str,
    files: &[SourceFile],
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<SegmentMeta> {
    let split = digits_of(files, options);
    if split == 0 {
        return build_plain(store, id, files, options, progress);
    }
    let prefixes: Vec<String> =
        prefixes(files.iter().map(|source| source.file.prefix.as_str()), split).into_iter().collect();
    join(&**store, id, split, &build_pieces(store, id, files, &prefixes, options, progress)?)
}

/// Builds the pieces of these prefixes.
pub(crate) fn build_pieces(
    store: &Arc<dyn Store>,
    id: &str,
    files: &[SourceFile],
    prefixes: &[String],
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<BTreeMap<String, SegmentMeta>> {
    let files: Vec<_> = prefixes.iter().map(|prefix| files_of(files, prefix)).collect();
    let total = files.iter().flatten().map(|source| source.file.rows).sum();
    let work: Vec<_> = prefixes.iter().zip(&files).collect();
    let built =
        on_threads(&work, (Stage::Reading, total), options, progress, &|(prefix, files), options, progress| {
            build_plain(store, &format!("{id}/{prefix}"), files, options, progress)
        })?;
    Ok(prefixes.iter().cloned().zip(built).collect())
}

/// Makes one segment of pieces that are there: writes its `segment.json`, which has the same bytes whichever process writes it.
pub(crate) fn join(
    store: &dyn Store,
    id: &str,
    split: u8,
    pieces: &BTreeMap<String, SegmentMeta>,
) -> Result<SegmentMeta> {
    let meta = SegmentMeta::of_pieces(id, split, pieces);
    store.put(&layout::segment_file(id, META_FILE)?, &meta.to_json())?;
    Ok(meta)
}

/// Makes one piece: what of, settings, and who hears how far it is.
type MakePiece<'a, T> = dyn Fn(&T, &BuildOptions, &dyn Fn(Progress)) -> Result<SegmentMeta> + Sync + 'a;

/// Does `make` for all of `work`, on as many threads as the settings say, which share the memory. The answers are in the order of
/// `work`. Reports one stage and its total; the other counts as a sign of life.
pub(crate) fn on_threads<T: Sync>(
    work: &[T],
    (stage, total): (Stage, u64),
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
    make: &MakePiece<'_, T>,
) -> Result<Vec<SegmentMeta>> {
    let threads = options.threads.clamp(1, work.len().max(1));
    let share = BuildOptions { memory_bytes: options.memory_bytes / threads, ..options.clone() };
    let (far, done) = (RefCell::new(vec![0u64; work.len()]), Cell::new(0u64));
    let tell = |index: usize, p: Progress| {
        if p.stage == stage
            && let Some(before) = far.borrow_mut().get_mut(index)
        {
            done.set(done.get() + p.done.saturating_sub(*before));
            *before = p.done.max(*before);
        }
        let done = done.get();
        progress(Progress { stage, rows: done, done, total: total.max(done) });
    };
    if threads == 1 {
        return work.iter().enumerate().map(|(index, item)| make(item, &share, &|p| tell(index, p))).collect();
    }
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let made: Mutex<BTreeMap<usize, Result<SegmentMeta>>> = Mutex::default();
    // Small, so that what is told is what goes on.
    let (sender, heard) = sync_channel::<(usize, Progress)>(64);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, share) = (sender.clone(), &share);
            let (next, failed, made) = (&next, &failed, &made);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Relaxed);
                    let Some(item) = work.get(index).filter(|_| !failed.load(Relaxed)) else { return };
                    let one = make(item, share, &|p| {
                        // The receiver lives until the last thread has ended.
                        let _ = sender.send((index, p));
                    });
                    failed.fetch_or(one.is_err(), Relaxed);
                    made.lock().unwrap_or_else(PoisonError::into_inner).insert(index, one);
                }
            });
        }
        drop(sender);
        heard.into_iter().for_each(|(index, p)| tell(index, p));
    });
    let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    let all = made.into_values().collect::<Result<Vec<_>>>()?;
    if all.len() != work.len() {
        let (expected, found) = (format!("{} pieces", work.len()), all.len().to_string());
        return Err(Error::Mismatch { left: "threads".into(), right: expected, what: "pieces made", found });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_depends_on_files_alone() {
        let options = BuildOptions { piece_rows: 100, ..BuildOptions::new("tmp") };
        for (prefixes, rows, expected) in [
            (&["0a", "ff"][..], 25_600, 2),
            (&["0a", "ff"], 25_599, 1),
            (&["0a", "ff"], 1_600, 1),
            (&["0a", "ff"], 1_599, 0),
            (&["a", "ff"], 1 << 40, 1),
            (&["0a", "all"], 1 << 40, 0),
            (&[], 1 << 40, 0),
        ] {
            assert_eq!(digits(prefixes.iter().copied(), rows, &options), expected, "{prefixes:?}, {rows} rows");
            let other = BuildOptions { threads: 9, memory_bytes: 1 << 30, ..options.clone() };
            assert_eq!(digits(prefixes.iter().copied(), rows, &other), expected);
        }
        let never = BuildOptions { piece_rows: u64::MAX, ..options };
        assert_eq!(digits(["0a"], u64::MAX - 1, &never), 0);
    }

    #[test]
    fn a_domain_is_of_the_prefix_that_its_rows_are_in() {
        for n in 0..200 {
            let domain = format!("d{n}.example");
            for split in [1, 2] {
                let prefix = trawl_url::domain_prefix(domain_id(&domain), split);
                assert_eq!(format!("{:0w$x}", piece_number(&domain, split), w = usize::from(split)), prefix);
                assert!(has_prefix(&domain, &prefix) && has_prefix(&domain, ""));
                assert!(!has_prefix(&domain, if prefix.starts_with('0') { "1" } else { "0" }));
            }
        }
    }

    #[test]
    fn the_first_failure_ends_the_work_and_is_told() {
        let work: Vec<u64> = (0..100).collect();
        for threads in [1, 3] {
            let options = BuildOptions { threads, ..BuildOptions::new("tmp") };
            let stage = (Stage::Writing, 100);
            let made = on_threads(&work, stage, &options, &|_| (), &|n, _, progress| {
                progress(Progress { stage: Stage::Writing, rows: 1, done: 1, total: 1 });
                Ok(SegmentMeta { domains: *n, ..SegmentMeta::default() })
            });
            assert!(made.unwrap().iter().map(|meta| meta.domains).eq(0..100));
            let tried = AtomicUsize::new(0);
            let made = on_threads(&work, stage, &options, &|_| (), &|n, _, _| {
                tried.fetch_add(1, Relaxed);
                match n {
                    7 => Err(Error::Input { at: "piece 7".into(), expected: "x", found: "y".into() }),
                    _ => Ok(SegmentMeta::default()),
                }
            });
            assert!(made.unwrap_err().to_string().contains("piece 7"));
            assert!(tried.load(Relaxed) <= 7 + threads + 1, "{tried:?} were tried");
        }
    }
}
