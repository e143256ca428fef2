//! Two small runs that hold every kind of capture: what the writer makes of them must not change, and what the interop
//! checks prove about these files (warcio, jwarc, FastWARC, pywb, DuckDB …) therefore holds for the writer.
//!
//! `TRAWL_UPDATE_GOLDEN=1 cargo test -p trawl-captures --test specimen` writes them anew.

mod cases;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_captures::{CaptureRow, CapturesReader, CapturesWriter};
use trawl_io::format::{About, Creation, Format, Target};
use trawl_io::{Fs, RealFs};
use trawl_model::{Capture, Check, Clock, UnixMillis};
use trawl_warc::WarcFormat;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/specimen/runs")
}

/// Writes one run the way a crawl does.
fn write(dir: &Path, run: &str, seed: u64, captures: Vec<Capture<'static>>) {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    std::fs::create_dir_all(dir).unwrap();
    let count = AtomicU64::new(0);
    let ids = Arc::new(move || {
        let n = count.fetch_add(1, Ordering::Relaxed);
        (u128::from(seed) << 64 | u128::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).to_be_bytes()
    });
    let about = About {
        software: "trawl/specimen".into(),
        operator: Some("Specimen Crawl <crawl@example.org>".into()),
        robots: Some("obey".into()),
        user_agent: Some("SpecimenBot/1.0 (+http://example.org/bot)".into()),
        hostname: Some("crawler.example.org".into()),
        is_part_of: Some(run.into()),
        ..About::default()
    };
    let clock = Clock::fixed(UnixMillis(1_782_262_900_000));
    let creation = Creation::new(fs.clone(), Target::run(dir, "specimen", run), ids.clone(), clock);
    let mut sink = WarcFormat.create(Creation { about, ..creation }).unwrap();
    let mut index = CapturesWriter::create(&fs, &dir.join("captures.parquet")).unwrap();
    for mut capture in captures {
        capture.facts.run_id = Some(run.into());
        capture.facts.record_id.get_or_insert_with(|| trawl_warc::record_id(ids()));
        let mut row = CaptureRow::from_capture(&mut capture, None).unwrap();
        row.set_place(&sink.write(capture).unwrap().unwrap());
        index.push(row).unwrap();
    }
    sink.finish().unwrap();
    index.finish().unwrap();
}

fn write_both(dir: &Path) {
    write(&dir.join("a"), "a", 1, cases::first_run());
    write(&dir.join("b"), "b", 2, cases::second_run());
}

#[test]
fn the_writer_still_makes_the_same_files() {
    let dir = tempfile::tempdir().unwrap();
    if std::env::var_os("TRAWL_UPDATE_GOLDEN").is_some() {
        let _ = std::fs::remove_dir_all(golden());
        write_both(&golden());
    }
    write_both(dir.path());
    for run in ["a", "b"] {
        let warc = format!("{run}/specimen-{run}-00000.warc.gz");
        let (now, then) =
            (std::fs::read(dir.path().join(&warc)).unwrap(), std::fs::read(golden().join(&warc)).unwrap());
        assert!(now == then, "{warc} is not what it was");
        let rows = |base: &Path| -> Vec<CaptureRow> {
            let path = base.join(run).join("captures.parquet");
            CapturesReader::open(&path).unwrap().map(Result::unwrap).collect()
        };
        assert_eq!(rows(dir.path()), rows(&golden()), "{run}");
    }
}

#[test]
fn the_files_are_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut findings = Vec::new();
    let mut on_finding = |f: trawl_model::Finding| findings.push(format!("{} {}", f.kind, f.detail));
    let mut check =
        Check { temp_dir: dir.path(), memory_bytes: 1 << 20, on_finding: &mut on_finding, progress: &mut |_| {} };
    let path = |run| golden().join(run).join(format!("specimen-{run}-00000.warc.gz"));
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    WarcFormat.verify(&fs, &[path("a"), path("b")], &mut check).unwrap();
    assert_eq!(findings, Vec::<String>::new());
}
