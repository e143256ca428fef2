//! Questions: what does a `.meguri` file cost to write, read and keep?
//!
//! `cargo run --release --features meguri --bin meguri -- [part] [number] [file]`
//!
//! | part | question |
//! | --- | --- |
//! | `speed` | encode and recover 10,000 URLs of 200 hosts: beside 1.05 and 0.76 us a URL of the reference, on this class of machine |
//! | `size` | bytes a URL beside our own writer in the reference's layout, with and without fingerprints; a file of URLs may be given |
//! | `filter` | bits a URL and false positives of the seen filter |
//! | `scale` | 30 million URLs: inspect, one host, one URL, an hour's due rows, merge with three runs of a million; `.ci/long` runs it |

#[path = "../lake/measure.rs"]
mod measure;
#[path = "../meguri/rows.rs"]
mod rows;

use bytes::Bytes;
use measure::{cpu_seconds, memory_mib, spent};
use rows::{Generator, Random, Shape};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::read_at::{Counting, FileReader};
use trawl_meguri::filter::{Bloom, Filter, Ribbon};
use trawl_meguri::inspect::Inspection;
use trawl_meguri::schema::{Table, UrlRecord};
use trawl_meguri::settings::{SeenFilter, Settings};
use trawl_meguri::{Codec, HostRow, Keep, MeguriFile, Partition, ReadSettings, Row, Writer, WriterOptions, merge};
use trawl_url::key::{UrlKey, host_key, path_key};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |default: u64| args.get(1).map_or(Ok(default), |a| a.parse());
    let path = args.get(2).map(PathBuf::from);
    match args.first().map(String::as_str) {
        Some("speed") => speed(number(10_000)?),
        Some("size") => size(number(1_000_000)?, path.as_deref()),
        Some("filter") => filter(number(1_000_000)?),
        Some("scale") => scale(number(30_000_000)?, &path.unwrap_or_else(std::env::temp_dir)),
        Some("merge") => merge_part(&args[1..]),
        Some(other) => Err(format!("no part {other:?}; there are speed, size, filter and scale").into()),
        None => {
            speed(10_000)?;
            size(300_000, None)?;
            filter(1_000_000)
        }
    }
}

fn encode(rows: &[Row], hosts: &[HostRow], settings: Settings) -> Result<Vec<u8>> {
    let mut writer = Writer::new(WriterOptions { settings, ..WriterOptions::default() })?;
    hosts.iter().try_for_each(|host| writer.push_host(host))?;
    rows.iter().try_for_each(|row| writer.push(row.into()))?;
    let mut out = Vec::new();
    writer.finish(&mut out)?;
    Ok(out)
}

/// The reference's benchmark: 200 hosts of 50 URLs.
fn speed(urls: u64) -> Result<()> {
    let mut rows = Vec::new();
    for n in 0..urls {
        let host = format!("host{}.example", n / 50);
        let url = format!("https://{host}/page/{}", n % 50);
        let record = UrlRecord {
            host_key: host_key(&host),
            path_key: path_key(&url),
            status: 1,
            priority: (n % 20) as f32 / 20.0,
            ..UrlRecord::default()
        };
        rows.push(Row { record, url: Bytes::from(url), ..Row::default() });
    }
    measure_speed("200 hosts of 50 URLs, as the reference measures", &rows)?;
    let mut rows = Vec::new();
    let shape = Shape { urls, hosts: urls / 50, seed: 1, fingerprints: true, fetched: 30 };
    Generator::new(shape).rows(|row, _| rows.push(row));
    measure_speed("a crawl by Zipf's law, a third fetched", &rows)
}

fn measure_speed(what: &str, rows: &[Row]) -> Result<()> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.key());
    let hosts: Vec<HostRow> = rows
        .chunk_by(|a, b| a.record.host_key == b.record.host_key)
        .map(|of| {
            let name = Bytes::copy_from_slice(of[0].url.split(|b| *b == b'/').nth(2).unwrap_or_default());
            let mut host = HostRow { host: name.clone(), registrable: name, ..HostRow::default() };
            (host.record.host_key, host.record.crawl_delay) = (of[0].record.host_key, 20);
            host
        })
        .collect();
    let per = |seconds: f64| seconds * 1e6 / rows.len() as f64;
    let best = |work: &mut dyn FnMut()| (0..15).map(|_| spent(&mut *work).1.cpu).fold(f64::MAX, f64::min);
    let bytes = encode(&rows, &hosts, Settings::default())?;
    let write = best(&mut || drop(encode(&rows, &hosts, Settings::default())));
    let read = best(&mut || {
        let whole = Partition::decode(bytes.clone()).and_then(|p| Ok((p, open(&bytes)?.filter()?)));
        assert!(whole.is_ok_and(|(p, filter)| p.urls.len() == rows.len() && filter.is_some()));
    });
    println!("speed: {what}: {} URLs, {} bytes", rows.len(), bytes.len());
    println!("  encode  {:.3} us a URL, reference 1.05: {:.1}x", per(write), 1.05 / per(write));
    println!(
        "  recover {:.3} us a URL, reference 0.76: {:.1}x (rows, hosts, texts, filter; all checksums)",
        per(read),
        0.76 / per(read)
    );
    Ok(())
}

fn open(bytes: &[u8]) -> trawl_meguri::Result<MeguriFile> {
    MeguriFile::open(Arc::new(Bytes::copy_from_slice(bytes)), ReadSettings::default())
}

/// A partition as the reference's frontier holds it: texts in the order in which they arrived, or in row order, as its file
/// operations leave them.
fn partition(rows: &[(Row, u64)], hosts: &[HostRow], by_arrival: bool) -> Partition {
    let mut arena = vec![0];
    let mut intern = |text: &[u8]| {
        let at = arena.len() as u64;
        let mut length = text.len();
        while length >= 128 {
            arena.push(length as u8 | 128);
            length >>= 7;
        }
        arena.push(length as u8);
        arena.extend_from_slice(text);
        at
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    if by_arrival {
        order.sort_by_key(|at| rows[*at].1);
    }
    let mut urls: Vec<UrlRecord> = rows.iter().map(|(row, _)| row.record).collect();
    for at in order {
        urls[at].url_ref = intern(&rows[at].0.url);
        for (text, reference) in [(&rows[at].0.etag, 0), (&rows[at].0.redirect, 1)] {
            if !text.is_empty() {
                let value = intern(text);
                if reference == 0 { urls[at].etag_ref = value } else { urls[at].redirect_ref = value }
            }
        }
    }
    let mut records: Vec<_> = hosts.iter().map(|h| h.record).collect();
    for (record, host) in records.iter_mut().zip(hosts) {
        record.host_ref = intern(&host.host);
        record.registrable_ref = record.host_ref;
    }
    Partition { urls, hosts: records, arena, hostkey_hi: u64::MAX, ..Partition::default() }
}

fn size(urls: u64, list: Option<&Path>) -> Result<()> {
    for fingerprints in [false, true] {
        let mut rows: Vec<(Row, u64)> = Vec::new();
        let shape = Shape { urls, hosts: (urls / 30).max(1), seed: 3, fingerprints, fetched: 30 };
        let generator = Generator::new(shape);
        generator.rows(|row, arrival| rows.push((row, arrival)));
        let mut hosts: Vec<HostRow> = generator.host_rows().collect();
        if let Some(list) = list {
            (rows, hosts) = listed(&std::fs::read_to_string(list)?, &rows);
        }
        let plain: Vec<Row> = rows.iter().map(|(row, _)| row.clone()).collect();
        let n = plain.len() as f64;
        let what = if fingerprints { "with" } else { "without" };
        println!("size: {} URLs of {} hosts, {what} fingerprints of fetched pages", plain.len(), hosts.len());
        let bare = Settings { schedule: false, filter: SeenFilter::None, ..Settings::default() };
        let ours = encode(&plain, &hosts, bare)?;
        let full = encode(&plain, &hosts, Settings::default())?;
        let print = |name: &str, bytes: &[u8], regions: bool| -> Result<f64> {
            println!("  {name:<58} {:6.2} bytes a URL", bytes.len() as f64 / n);
            if regions {
                columns(bytes, n)?;
            }
            Ok(bytes.len() as f64)
        };
        let arrival = partition(&rows, &hosts, true).encode(&Settings::reference(Codec::Zstd))?;
        let ordered = partition(&rows, &hosts, false).encode(&Settings::reference(Codec::Zstd))?;
        let a = print("reference's layout, texts as they arrived (its checkpoints)", &arrival, true)?;
        let b = print("reference's layout, texts in row order (its compact)", &ordered, false)?;
        let packed =
            encode(&plain, &hosts, Settings { schedule: false, filter: SeenFilter::None, ..Settings::pack() })?;
        let o = print("ours, same columns", &ours, true)?;
        let p = print("ours, packed, same columns", &packed, true)?;
        let f = print("ours, with schedule index and filter", &full, false)?;
        println!(
            "  ours is {:.3}x of its checkpoints, {:.3}x of its compacted files; with index and filter {:.3}x",
            o / a,
            o / b,
            f / a
        );
        println!("  packed {:.3}x of its checkpoints, {:.3}x of its compacted files", p / a, p / b);
    }
    Ok(())
}

/// Bytes a URL of each region and of the columns that matter.
fn columns(bytes: &[u8], n: f64) -> Result<()> {
    let facts = Inspection::of(&open(bytes)?);
    let mut parts: Vec<(String, u64)> = facts.url_columns.iter().map(|c| (c.name.clone(), c.bytes)).collect();
    parts.extend(facts.regions.iter().filter(|r| r.name != "urls").map(|r| (format!("[{}]", r.name), r.length)));
    parts.push(("[footer]".into(), facts.footer_bytes));
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let shown: Vec<String> = parts
        .iter()
        .filter(|p| p.1 as f64 / n >= 0.02)
        .map(|(name, b)| format!("{name} {:.2}", *b as f64 / n))
        .collect();
    println!("      {}", shown.join(", "));
    Ok(())
}

/// The URLs of a list, with the facts of generated rows; they arrive in the order of the list.
fn listed(text: &str, facts: &[(Row, u64)]) -> (Vec<(Row, u64)>, Vec<HostRow>) {
    let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_owned();
    let mut rows: Vec<(Row, u64)> = Vec::new();
    for ((arrival, url), (row, _)) in (0..).zip(text.lines()).zip(facts.iter().cycle()) {
        let mut row = row.clone();
        (row.record.host_key, row.record.path_key) = (host_key(&host(url)), path_key(url));
        row.url = Bytes::copy_from_slice(url.as_bytes());
        rows.push((row, arrival));
    }
    rows.sort_by_key(|(row, _)| row.key());
    rows.dedup_by_key(|(row, _)| row.key());
    let hosts = rows.chunk_by(|a, b| a.0.record.host_key == b.0.record.host_key).map(|of| {
        let name = Bytes::from(host(std::str::from_utf8(&of[0].0.url).unwrap_or_default()));
        let mut host = HostRow { host: name.clone(), registrable: name, ..HostRow::default() };
        host.record.host_key = of[0].0.record.host_key;
        host
    });
    let hosts = hosts.collect();
    (rows, hosts)
}

fn filter(n: u64) -> Result<()> {
    let mut random = Random(1);
    let mut key = || UrlKey { host: random.next(), path: random.next() };
    let keys: Vec<UrlKey> = (0..n).map(|_| key()).collect();
    let strangers: Vec<UrlKey> = (0..n).map(|_| key()).collect();
    println!("filter: {n} keys");
    let (ribbon, cost) = spent(|| Ribbon::build(&keys, 7));
    let mut bloom = Bloom::with_capacity(n, 0.01);
    let (_, bloom_cost) = spent(|| keys.iter().for_each(|key| bloom.add(*key)));
    for (name, filter, build) in
        [("ribbon", Filter::Ribbon(ribbon?), cost), ("bloom", Filter::Bloom(bloom), bloom_cost)]
    {
        let bytes = match &filter {
            Filter::Ribbon(ribbon) => ribbon.encode().len(),
            Filter::Bloom(bloom) => bloom.encode().len(),
        };
        let missing = keys.iter().filter(|key| !filter.may_contain(**key)).count();
        let began = cpu_seconds();
        let wrong = strangers.iter().filter(|key| filter.may_contain(**key)).count();
        let lookup = (cpu_seconds() - began) * 1e9 / n as f64;
        println!(
            "  {name:<6} {:.2} bits a URL, {:.2} % false positives, {missing} false negatives; build {:.0} ns, lookup {lookup:.0} ns a key",
            bytes as f64 * 8.0 / n as f64,
            wrong as f64 * 100.0 / n as f64,
            build.cpu * 1e9 / n as f64
        );
    }
    Ok(())
}

const BASE: &str = "base.meguri";

/// Writes a generated crawl; of rows whose key the filter passes over only those with `keep`.
fn write(path: &Path, shape: Shape, keep: impl Fn(&Row) -> bool, touch: impl Fn(&mut Row)) -> Result<u64> {
    let temp = path.parent().unwrap_or(Path::new(".")).to_owned();
    let mut writer = Writer::new(WriterOptions { temp, ..WriterOptions::default() })?;
    let generator = Generator::new(shape);
    for host in generator.host_rows() {
        writer.push_host(&host)?;
    }
    let mut failed = None;
    generator.rows(|mut row, _| {
        if keep(&row) && failed.is_none() {
            touch(&mut row);
            failed = writer.push((&row).into()).err();
        }
    });
    if let Some(error) = failed {
        return Err(error.into());
    }
    Ok(writer.finish_file(path)?.urls)
}

fn scale(urls: u64, dir: &Path) -> Result<()> {
    let dir = dir.join(format!("trawl-bench-meguri-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let done = scale_in(urls, &dir);
    std::fs::remove_dir_all(&dir)?;
    done
}

fn scale_in(urls: u64, dir: &Path) -> Result<()> {
    let shape = Shape { urls, hosts: urls / 30, seed: 5, fingerprints: true, fetched: 30 };
    let base = dir.join(BASE);
    let (rows, cost) = spent(|| write(&base, shape, |_| true, |_| {}));
    let rows = rows?;
    let bytes = std::fs::metadata(&base)?.len();
    let us = cost.cpu * 1e6 / rows as f64;
    println!(
        "scale: {rows} URLs of {} hosts: {bytes} bytes, {:.2} a URL; generated and written in {:.0} s ({us:.2} us of processor time a URL)",
        shape.hosts,
        bytes as f64 / rows as f64,
        cost.wall
    );
    questions(&base, bytes)?;
    // Runs: rows that changed, and as many that are new.
    let mut runs = vec![base.clone()];
    for run in 1..=3u64 {
        let path = dir.join(format!("run-{run}.meguri"));
        let every = (urls / 1_000_000).max(1) * 2;
        let changed = write(&path, shape, |row| row.record.path_key % every == run, |row| row.record.status = 4)?;
        println!("  run {run}: {changed} rows of the base changed");
        let fresh = dir.join(format!("new-{run}.meguri"));
        let more = Shape { urls: urls / 60, hosts: urls / 60 / 30, seed: 100 + run, ..shape };
        let new = write(&fresh, more, |_| true, |_| {})?;
        println!("  run {run}: {new} new rows");
        let both = dir.join(format!("both-{run}.meguri"));
        merge_files(&[fresh.clone(), path.clone()], &both)?;
        std::fs::remove_file(fresh)?;
        std::fs::remove_file(path)?;
        runs.push(both);
    }
    let out = dir.join("merged.meguri");
    let mut child = std::process::Command::new(std::env::current_exe()?);
    child.arg("merge").arg(&out).args(&runs);
    let status = child.status()?;
    if !status.success() {
        return Err(format!("merge: {status}").into());
    }
    Ok(())
}

/// What each question reads.
fn questions(base: &Path, all: u64) -> Result<()> {
    let src = Arc::new(Counting::new(FileReader::open(base)?));
    let file = MeguriFile::open(src.clone(), ReadSettings::default())?;
    let tell = |what: &str| {
        let reads = src.take();
        println!(
            "  {what}: {} reads in {} rounds, {} bytes, {:.4} % of the file",
            reads.ranges,
            reads.rounds,
            reads.bytes,
            reads.bytes as f64 * 100.0 / all as f64
        );
        reads
    };
    let facts = Inspection::of(&file);
    assert_eq!(tell("inspect").ranges, 2);
    println!("    {}", facts.regions.iter().map(|r| format!("{} {}", r.name, r.length)).collect::<Vec<_>>().join(", "));
    let count = file.header().url_count;
    for (what, row) in [("a URL of a large host", count / 2), ("another URL", count / 3)] {
        let row = file.read_rows(&[row])?.pop().ok_or("no row")?;
        src.take();
        let found = file.get(row.key())?.ok_or("a row is lost")?;
        assert_eq!(found, row);
        tell(&format!("one URL ({what})"));
    }
    let hosts = file.read_column(Table::Hosts, 0)?;
    let counts = file.read_column(Table::Hosts, 13)?;
    let of = |wanted: &dyn Fn(u64) -> bool| hosts.iter().zip(&counts).find(|(_, n)| wanted(**n)).map(|(host, _)| *host);
    for (what, host) in [("30 URLs", of(&|n| n == 30)), ("10,000 URLs", of(&|n| (9_000..=11_000).contains(&n)))] {
        let Some(host) = host else { continue };
        src.take();
        let rows = file.rows_of_host(host)?;
        let mut cursor = file.cursor_over(rows)?;
        let mut seen = 0;
        while cursor.advance()? {
            seen += u64::from(cursor.row()?.is_some());
        }
        tell(&format!("the {seen} rows of a host of about {what}"));
    }
    let hour = file.footer().stats.due_min;
    src.take();
    for hours in [0, 6] {
        let mut due = 0u64;
        file.due(hour + hours, (0, u64::MAX), &mut |_| {
            due += 1;
            Ok(true)
        })?;
        tell(&format!("{due} keys due in the first {} hours", hours + 1));
    }
    Ok(())
}

fn merge_files(inputs: &[PathBuf], out: &Path) -> Result<()> {
    let files = inputs.iter().map(|path| MeguriFile::open_path(path)).collect::<trawl_meguri::Result<Vec<_>>>()?;
    let temp = out.parent().unwrap_or(Path::new(".")).to_owned();
    let mut writer = Writer::new(WriterOptions { temp, ..WriterOptions::default() })?;
    let merged = merge(&files, &Keep::default(), &mut writer, &mut |_| {})?;
    let written = writer.finish_file(out)?;
    println!("  merged {:?} into {} rows, {} bytes", merged, written.urls, written.bytes);
    Ok(())
}

/// A process of its own, so that its memory is that of the merge.
fn merge_part(args: &[String]) -> Result<()> {
    let [out, inputs @ ..] = args else { return Err("merge OUT INPUT…".into()) };
    let inputs: Vec<PathBuf> = inputs.iter().map(PathBuf::from).collect();
    let (done, cost) = spent(|| merge_files(&inputs, Path::new(out)));
    done?;
    let peak = memory_mib("VmHWM");
    println!("  merge: {:.0} s ({:.0} s of processor time), peak {peak:.0} MiB resident", cost.wall, cost.cpu);
    if peak > 512.0 {
        return Err(format!("{peak:.0} MiB is more than 512").into());
    }
    Ok(())
}
