//! Question: what does an index cost that is split by prefix, beside one that is not?
//!
//! `cargo run --release --features pieces --bin pieces -- [domains] [directory]`
//!
//! A lake of so many domains with one URL each, in files of 256 prefixes. Printed, in CPU seconds of this process: the build of one
//! segment; of 256 pieces on one thread and on two; the merge of the pieces into one set of files, and into pieces again; and warm
//! lookups in both. It fails where a promise is broken: 256 pieces on two threads at most 1.1 times the CPU of one segment, a merge of them
//! at most 4 us a domain, a lookup in them at most 1.2 times that in one segment.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_index::{
    BuildOptions, Caches, DistinctUrls, MergeInput, OpenOptions, Segment, SegmentMeta, SourceFile, build_segment,
    merge_segments, sort_files,
};
use trawl_model::{DoorError, Items, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource};
use trawl_store::{DatasetInfo, DirStore, Store};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Splits of the source: the ingest reads them on two threads.
const PART: u64 = 100_000;

struct OneUrlEach(u64);

fn name(n: u64) -> String {
    // Spread over the alphabet, as names are, and of their length.
    format!("{:x}-site{n}.com", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44)
}

impl UrlSource for OneUrlEach {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity { uri: "generated".into(), size: self.0, tag: String::new() }
    }

    fn splits(&self, _: u64) -> std::result::Result<Vec<Split>, DoorError> {
        let starts = (0..self.0).step_by(PART as usize);
        Ok(starts.map(|start| Split { start, end: self.0.min(start + PART) }).collect())
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> std::result::Result<(), DoorError> {
        (split.start..split.end).try_for_each(|n| each(n, Ok(UrlRecord::bare(format!("https://{}/page", name(n))))))
    }
}

/// CPU seconds of all threads so far.
fn cpu() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |n: usize| fields.get(n).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / 100.0)
}

fn timed<T>(what: &str, domains: u64, work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let (before, began) = (cpu()?, std::time::Instant::now());
    let done = work()?;
    let spent = cpu()? - before;
    let each = spent * 1e6 / domains as f64;
    println!("{what}: {spent:.2} CPU s, {each:.2} us a domain, {:.2} s passed", began.elapsed().as_secs_f64());
    Ok((done, spent))
}

/// Prints a promise and whether it was kept.
fn promise(broken: &mut Vec<String>, what: &str, found: f64, most: f64) {
    let text = format!("{what}: {found:.2}, at most {most}");
    println!("{}: {text}", if found <= most { "ok" } else { "BROKEN" });
    if found > most {
        broken.push(text);
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let domains: u64 = args.first().map_or(Ok(4_000_000), |n| n.parse())?;
    let dir = args.get(1).map_or_else(std::env::temp_dir, PathBuf::from).join("trawl-bench-pieces");
    run(domains, &dir)
}

fn run(domains: u64, dir: &std::path::Path) -> Result<()> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir.join("tmp"))?;
    let store: Arc<dyn Store> = Arc::new(DirStore::new(dir.join("lake")));
    let lake = trawl_store::Lake::init(store.clone(), UnixMillis(0), "bench", b"com\n")?;
    let id = lake.register_dataset(UnixMillis(1), "test", &DatasetInfo::named("d"))?;
    let mut settings = trawl_ingest::IngestSettings::new("ingest", dir.join("tmp"));
    settings.prefix_digits = Some(2);
    let source = trawl_ingest::source::Source::new(OneUrlEach(domains));
    trawl_ingest::ingest(&lake, id, &[source], &settings, &|| UnixMillis(2), &|_| ())?;
    let commit = lake.dataset_newest(id)?.ok_or("no commit")?;
    let mut files: Vec<SourceFile> = commit.files.into_iter().map(|file| SourceFile { dataset_id: id, file }).collect();
    sort_files(&mut files);
    let options = |piece_rows, threads| BuildOptions { piece_rows, threads, ..BuildOptions::new(dir.join("tmp")) };
    let build = |name: &str, piece_rows, threads| -> Result<SegmentMeta> {
        Ok(build_segment(&store, name, &files, &options(piece_rows, threads), &|_| ())?)
    };
    let (one, alone) = timed("one segment", domains, || build("one", u64::MAX, 1))?;
    let (_, split) = timed("256 pieces, one thread", domains, || build("many1", 1, 1))?;
    let (many, twice) = timed("256 pieces, two threads", domains, || build("many2", 1, 2))?;
    println!("  pieces over one: {:.2}x on one thread, {:.2}x on two", split / alone, twice / alone);
    let mut broken = Vec::new();
    promise(&mut broken, "CPU of 256 pieces on two threads over that of one segment", twice / alone, 1.1);
    let bytes = |meta: &SegmentMeta| meta.files.values().map(|file| file.bytes).sum::<u64>();
    println!("  {} bytes in {} files; {} in {}", bytes(&one), one.files.len(), bytes(&many), many.files.len());
    let open = |meta: &SegmentMeta| -> Result<Segment> {
        Ok(Segment::open(&store, &meta.to_ref(0)?, &Arc::new(Caches::new(1 << 30)), OpenOptions::default())?)
    };
    let merge = |name: &str, of: &SegmentMeta, piece_rows, threads| -> Result<SegmentMeta> {
        let inputs = [MergeInput { segment: &open(of)?, masked: &[] }];
        Ok(merge_segments(&store, name, &inputs, DistinctUrls::Bounded, &options(piece_rows, threads), &|_| ())?)
    };
    let (single, merged) = timed("merge of 256 pieces into one", domains, || merge("single", &many, u64::MAX, 1))?;
    let (_, _) = timed("merge of 256 pieces into 256, two threads", domains, || merge("again", &many, 1, 2))?;
    let hash =
        |meta: &SegmentMeta| meta.files.iter().map(|(name, f)| (name.clone(), f.hash.clone())).collect::<Vec<_>>();
    if hash(&single) != hash(&one) {
        return Err("the merged pieces are not the files of one build".into());
    }
    let names: Vec<String> = (0..200_000).map(|n: u64| name(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % domains)).collect();
    let ask = |segment: &Segment| -> Result<()> {
        for name in &names {
            let slot = segment.lookup(name)?.ok_or("a domain is missing")?;
            segment.bare_counts(slot)?;
        }
        Ok(())
    };
    let (whole, pieces) = (open(&one)?, open(&many)?);
    let mut best = [f64::INFINITY; 2];
    // The first round opens and fills the caches. The best of the others, in turn, since neighbours on the machine disturb.
    for round in 0..6 {
        for (segment, best) in [&whole, &pieces].into_iter().zip(&mut best) {
            let before = cpu()?;
            ask(segment)?;
            if round > 0 {
                *best = f64::min(*best, (cpu()? - before) * 1e6 / names.len() as f64);
            }
        }
    }
    println!("warm lookup: {:.2} us in one, {:.2} us in 256 pieces", best[0], best[1]);
    promise(&mut broken, "merge of 256 pieces into one, us a domain", merged * 1e6 / domains as f64, 4.0);
    promise(&mut broken, "warm lookup in pieces over one in a segment", best[1] / best[0], 1.2);
    std::fs::remove_dir_all(dir)?;
    if broken.is_empty() { Ok(()) } else { Err(broken.join("; ").into()) }
}
