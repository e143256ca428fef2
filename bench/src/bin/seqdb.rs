//! Questions: how fast are small pairs and pages loaded, found and read through, beside RocksDB and SQLite? And what does
//! a bulk load leave in the page cache, beside one file per page?
//!
//! `ROCKSDB_LIB_DIR=/usr/lib/x86_64-linux-gnu cargo run --release --features seqdb --bin seqdb -- [pairs] [pages] [dir]`
//!
//! Pairs have keys of 16 bytes in random order and values of 40. Each store is told how much is coming where it can be,
//! gets memory enough to hold everything, and ends its load with its data durable. RocksDB: WAL off, batches of 1000, no
//! compression (values do not compress), bloom filters, compacted before lookups (not counted). SQLite: no journal, a
//! transaction per 1000, a table without rowids, 2 GB of cache. Lookups are warm: the same keys were asked for once
//! before. Reading through is compared with a loop that reads the same file into 1 MiB.
//!
//! Every figure is given by the clock and by the CPU time of all threads: on a machine with other work the second is the
//! one to believe. What can be repeated is a median of five.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use trawl_model::UnixMillis;
use trawl_seqdb::{
    Access, Clock, CreateHindex, CreateKvseq, CreatePages, Form, FsPaths, Kvseq, Map, MapFiles, Pages, Repr, Settings,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const VALUE: usize = 40;
const LOOKUPS: u64 = 1_000_000;
const ROUNDS: usize = 5;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default: u64| args.get(n).map_or(Ok(default), |a| a.parse());
    let (pairs, pages) = (number(0, 10_000_000)?, number(1, 200_000)?);
    let dir = args.get(2).map_or_else(std::env::temp_dir, PathBuf::from).join("trawl-bench-seqdb");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    if pairs > 0 {
        small_pairs(&dir, pairs)?;
    }
    if pages > 0 {
        all_pages(&dir, pages)?;
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn settings() -> Settings {
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        UnixMillis(i64::try_from(since.as_millis()).unwrap_or(0))
    };
    Settings { index_memory_bytes: 1 << 30, ..Settings::new(Clock::new(now), "bench") }
}

fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 16 hexadecimal digits; `mix` is one to one, so that no key comes twice.
fn key(n: u64) -> [u8; 16] {
    let (hash, mut key) = (mix(n), [0; 16]);
    for (i, digit) in key.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[usize::try_from(hash >> (60 - 4 * i) & 15).unwrap_or(0)];
    }
    key
}

fn value(n: u64) -> [u8; VALUE] {
    let mut value = [0; VALUE];
    for (i, part) in value.chunks_mut(8).enumerate() {
        part.copy_from_slice(&mix(n ^ (i as u64) << 40).to_be_bytes()[..part.len()]);
    }
    value
}

fn size_of(path: &Path) -> Result<u64> {
    if path.is_file() {
        return Ok(path.metadata()?.len());
    }
    std::fs::read_dir(path)?.map(|entry| size_of(&entry?.path())).sum()
}

/// What something took: by the clock, and CPU time of all threads.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    cpu: f64,
}

impl Took {
    /// How much less than `other` this is.
    fn ratio(self, other: Self) -> String {
        format!("{:.2}x ({:.2}x in CPU time)", other.wall / self.wall, other.cpu / self.cpu)
    }
}

fn cpu() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn measured<T>(act: impl FnOnce() -> Result<T>) -> Result<(T, Took)> {
    let (began, before) = (Instant::now(), cpu());
    let made = act()?;
    Ok((made, Took { wall: began.elapsed().as_secs_f64(), cpu: cpu() - before }))
}

/// The median of some rounds, after one that warms.
fn median(mut act: impl FnMut() -> Result<()>) -> Result<Took> {
    act()?;
    let mut rounds = (0..ROUNDS).map(|_| Ok(measured(&mut act)?.1)).collect::<Result<Vec<_>>>()?;
    let mut of = |value: fn(&Took) -> f64| {
        rounds.sort_by(|a, b| value(a).total_cmp(&value(b)));
        value(&rounds[ROUNDS / 2])
    };
    Ok(Took { wall: of(|t| t.wall), cpu: of(|t| t.cpu) })
}

fn row(name: &str, count: u64, load: Took, get: Took, bytes: f64) {
    let rate = |n: u64, seconds: f64| n as f64 / seconds / 1e3;
    println!(
        "  {name:<8} load {:>6.0} k/s ({:>6.0} CPU)   get {:>6.0} k/s ({:>6.0} CPU)   {bytes:>6.1} bytes a pair",
        rate(count, load.wall),
        rate(count, load.cpu),
        rate(LOOKUPS, get.wall),
        rate(LOOKUPS, get.cpu),
    );
}

fn lookups(pairs: u64, mut get: impl FnMut(u64) -> Result<bool>) -> Result<Took> {
    median(|| {
        for i in 0..LOOKUPS {
            if !get(mix(i ^ 0x5555) % pairs)? {
                return Err("a key is missing".into());
            }
        }
        Ok(())
    })
}

fn small_pairs(dir: &Path, pairs: u64) -> Result<()> {
    println!("{pairs} pairs of 16 + {VALUE} bytes, keys in random order");
    let files = MapFiles::named(&dir.join("map"));
    let kvseq = CreateKvseq { value: Repr::Int8, fileincr: 64 << 20, ..Default::default() };
    let hindex = CreateHindex { htsize: pairs * 3 / 2 + 1, ..Default::default() };
    let ((), our_load) = measured(|| {
        let mut map = Map::create(&files, &kvseq, &hindex, &settings())?;
        for n in 0..pairs {
            map.put(&key(n), &value(n))?;
        }
        Ok(map.close()?)
    })?;
    let kv = Kvseq::open(&files.kvseq, Access::Read, &settings())?;
    let bytes = (kv.end() + size_of(&files.hindex)?) as f64 / pairs as f64;
    let map = Map::open(&files, Access::Read, &Settings { buffer_index: true, ..settings() })?;
    let our_get = lookups(pairs, |n| Ok(map.get(&key(n))?.is_some_and(|v| v == value(n))))?;
    drop(map);
    let map = Map::open(&files, Access::Read, &settings())?;
    let from_disk = lookups(pairs, |n| Ok(map.get(&key(n))?.is_some_and(|v| v == value(n))))?;
    drop(map);
    row("seqdb", pairs, our_load, our_get, bytes);
    println!("           with the index not in memory: get {:.0} k/s", LOOKUPS as f64 / from_disk.wall / 1e3);
    let (load, get, bytes) = rocks_pairs(&dir.join("rocks"), pairs)?;
    row("rocksdb", pairs, load, get, bytes);
    println!("           seqdb: load {}, get {}", our_load.ratio(load), our_get.ratio(get));
    let (load, get, bytes) = sqlite_pairs(&dir.join("sqlite"), pairs)?;
    row("sqlite", pairs, load, get, bytes);
    println!("           seqdb: load {}, get {}", our_load.ratio(load), our_get.ratio(get));

    let bytes = kv.end() as f64;
    let scan = median(|| {
        let mut scan = kv.scan();
        let (mut entries, mut sum) = (0u64, 0u64);
        while let Some(item) = scan.next_entry()? {
            entries += 1;
            sum += u64::from(item.key[0]) + item.value_len;
        }
        if entries != pairs || sum == 0 {
            return Err("entries are missing".into());
        }
        Ok(())
    })?;
    let read = read_loop(&files.kvseq)?;
    let rate = |seconds: f64| bytes / seconds / 1e9;
    println!(
        "  read through: {:.2} GB/s ({:.2} CPU), {:.1} M pairs/s; a read loop {:.2} GB/s",
        rate(scan.wall),
        rate(scan.cpu),
        pairs as f64 / scan.wall / 1e6,
        rate(read.wall)
    );
    Ok(())
}

/// The same file read into 1 MiB again and again.
fn read_loop(path: &Path) -> Result<Took> {
    let mut buf = vec![0; 1 << 20];
    median(|| {
        let mut file = File::open(path)?;
        while file.read(&mut buf)? > 0 {}
        Ok(())
    })
}

fn rocks_options() -> Result<rocksdb::Options> {
    let mut options = rocksdb::Options::default();
    options.create_if_missing(true);
    options.increase_parallelism(2);
    options.set_compression_type(rocksdb::DBCompressionType::None);
    let mut table = rocksdb::BlockBasedOptions::default();
    table.set_bloom_filter(10.0, false);
    table.set_block_cache(&rocksdb::Cache::new_lru_cache(4 << 30)?);
    options.set_block_based_table_factory(&table);
    Ok(options)
}

fn rocks_load(path: &Path, count: u64, mut put: impl FnMut(&mut rocksdb::WriteBatch, u64)) -> Result<rocksdb::DB> {
    let db = rocksdb::DB::open(&rocks_options()?, path)?;
    let mut write = rocksdb::WriteOptions::default();
    write.disable_wal(true);
    let mut n = 0;
    while n < count {
        let mut batch = rocksdb::WriteBatch::default();
        for i in n..count.min(n + 1000) {
            put(&mut batch, i);
        }
        db.write_opt(batch, &write)?;
        n += 1000;
    }
    db.flush()?;
    Ok(db)
}

fn rocks_pairs(path: &Path, pairs: u64) -> Result<(Took, Took, f64)> {
    let (db, load) = measured(|| rocks_load(path, pairs, |batch, n| batch.put(key(n), value(n))))?;
    db.compact_range(None::<&[u8]>, None::<&[u8]>);
    let get = lookups(pairs, |n| Ok(db.get_pinned(key(n))?.is_some_and(|v| v[..] == value(n))))?;
    drop(db);
    let bytes = size_of(path)? as f64 / pairs as f64;
    std::fs::remove_dir_all(path)?;
    Ok((load, get, bytes))
}

fn sqlite_load(
    path: &Path,
    count: u64,
    mut put: impl FnMut(&mut rusqlite::Statement<'_>, u64) -> Result<()>,
) -> Result<rusqlite::Connection> {
    let mut db = rusqlite::Connection::open(path)?;
    db.execute_batch(
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-2000000; PRAGMA locking_mode=EXCLUSIVE;
         CREATE TABLE kv (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID;",
    )?;
    let mut n = 0;
    while n < count {
        let batch = db.transaction()?;
        {
            let mut insert = batch.prepare_cached("INSERT INTO kv VALUES (?1, ?2)")?;
            for i in n..count.min(n + 1000) {
                put(&mut insert, i)?;
            }
        }
        batch.commit()?;
        n += 1000;
    }
    File::open(path)?.sync_all()?;
    Ok(db)
}

fn sqlite_pairs(path: &Path, pairs: u64) -> Result<(Took, Took, f64)> {
    let (db, load) = measured(|| {
        sqlite_load(path, pairs, |insert, n| Ok(insert.execute((&key(n)[..], &value(n)[..])).map(|_| ())?))
    })?;
    let mut select = db.prepare("SELECT v FROM kv WHERE k = ?1")?;
    let get = lookups(pairs, |n| Ok(select.query_row([&key(n)[..]], |r| Ok(r.get_ref(0)?.as_blob()? == value(n)))?))?;
    drop(select);
    drop(db);
    let bytes = size_of(path)? as f64 / pairs as f64;
    std::fs::remove_file(path)?;
    Ok((load, get, bytes))
}

/// A page of 12 to 28 KB, cut from a pool of noise: making it must not cost more than storing it.
fn page<'a>(pool: &'a [u8], n: u64) -> &'a [u8] {
    let len = usize::try_from(12_000 + mix(n) % 16_000).unwrap_or(0);
    let start = usize::try_from(mix(n ^ 77) % (pool.len() - 28_000) as u64).unwrap_or(0);
    &pool[start..start + len]
}

fn url(n: u64) -> String {
    format!("https://www.example-{}.com/articles/{:016x}/index.html", mix(n) % 1000, mix(n ^ 3))
}

fn all_pages(dir: &Path, pages: u64) -> Result<()> {
    let pool: Vec<u8> = (0..4u64 << 20).flat_map(|n| mix(n).to_be_bytes()).collect();
    let total: u64 = (0..pages).map(|n| page(&pool, n).len() as u64).sum();
    println!("{pages} pages, {:.2} GB", total as f64 / 1e9);
    let mut loads = Vec::new();
    for (name, caching) in [("cached", true), ("dropped", false)] {
        let paths = FsPaths::new(dir, name)?;
        let settings = Settings { data_caching: caching, index_caching: caching, ..settings() };
        let ((), took) = measured(|| {
            let mut all = CreatePages { expected: pages, ..CreatePages::new(1) }.create(&paths, &settings)?;
            for n in 0..pages {
                all.append(url(n).as_bytes(), UnixMillis(1_700_000_000_000), Form::Gzip, page(&pool, n))?;
            }
            Ok(all.close()?)
        })?;
        let files = [paths.data(), paths.index(), paths.time(), trawl_seqdb::pages::url_index_path(&paths)];
        page_row(&format!("seqdb, {name}"), pages, total, took, Some(resident(&files)?));
        loads.push(took);
        if !caching {
            files.iter().try_for_each(std::fs::remove_file)?;
        }
    }
    let paths = FsPaths::new(dir, "cached")?;
    scan_pages(&paths, pages)?;
    find_pages(&paths, pages, &pool)?;
    let path = dir.join("rocks");
    let (db, took) = measured(|| rocks_load(&path, pages, |batch, n| batch.put(url(n), page(&pool, n))))?;
    drop(db);
    std::fs::remove_dir_all(&path)?;
    page_row("rocksdb", pages, total, took, None);
    println!("           seqdb: load {}", loads[0].ratio(took));
    let path = dir.join("sqlite");
    let (db, took) = measured(|| {
        sqlite_load(&path, pages, |insert, n| Ok(insert.execute((url(n).as_bytes(), page(&pool, n))).map(|_| ())?))
    })?;
    drop(db);
    std::fs::remove_file(&path)?;
    page_row("sqlite", pages, total, took, None);
    println!("           seqdb: load {}", loads[0].ratio(took));
    one_file_per_page(&dir.join("files"), pages, total, &pool)
}

fn page_row(name: &str, pages: u64, total: u64, took: Took, left: Option<u64>) {
    let left = left.map_or(String::new(), |left| format!("; {:>7.1} MB left in the page cache", left as f64 / 1e6));
    println!(
        "  {name:<15} load {:>6.0} pages/s ({:>6.0} CPU), {:.2} GB/s{left}",
        pages as f64 / took.wall,
        pages as f64 / took.cpu,
        total as f64 / took.wall / 1e9,
    );
}

fn scan_pages(paths: &FsPaths, pages: u64) -> Result<()> {
    let all = Pages::open(paths, Access::Read, &settings())?;
    let bytes = all.filesys().data().end() as f64;
    let read = read_loop(&paths.data())?;
    let scan = median(|| {
        let (mut scan, mut seen) = (all.scan(), 0);
        while let Some(page) = scan.next_page()? {
            seen += u64::from(page.event.is_some_and(|event| event.len() as u64 == page.len));
        }
        if seen == pages { Ok(()) } else { Err("pages are missing".into()) }
    })?;
    let rate = |seconds: f64| bytes / seconds / 1e9;
    println!(
        "  read through: {:.2} GB/s, a read loop {:.2} GB/s: {:.0} % ({:.0} % in CPU time)",
        rate(scan.wall),
        rate(read.wall),
        100.0 * read.wall / scan.wall,
        100.0 * read.cpu / scan.cpu,
    );
    Ok(())
}

fn find_pages(paths: &FsPaths, pages: u64, pool: &[u8]) -> Result<()> {
    let all = Pages::open(paths, Access::Read, &settings())?;
    let count = pages.min(50_000);
    let took = median(|| {
        for i in 0..count {
            let n = mix(i ^ 0x77) % pages;
            let found = all.newest(url(n).as_bytes())?.ok_or("a page is missing")?;
            if found.event.len() != page(pool, n).len() {
                return Err("another page".into());
            }
        }
        Ok(())
    })?;
    println!(
        "  a page by its URL: {:.1} us ({:.1} CPU)",
        took.wall * 1e6 / count as f64,
        took.cpu * 1e6 / count as f64
    );
    Ok(())
}

/// What the family was invented against: a directory tree with a file for every page.
fn one_file_per_page(dir: &Path, pages: u64, total: u64, pool: &[u8]) -> Result<()> {
    for n in 0..256 {
        std::fs::create_dir_all(dir.join(format!("{n:02x}")))?;
    }
    let mut files = Vec::new();
    let ((), took) = measured(|| {
        for n in 0..pages {
            let path = dir.join(format!("{:02x}/{n:08x}", mix(n) & 255));
            std::fs::write(&path, page(pool, n))?;
            files.push(path);
        }
        Command::new("sync").arg("-f").arg(dir).status()?;
        Ok(())
    })?;
    page_row("a file a page", pages, total, took, Some(resident(&files)?));
    Ok(())
}

/// Bytes of these files in the page cache, as `fincore` counts them.
fn resident(files: &[PathBuf]) -> Result<u64> {
    let mut sum = 0;
    for some in files.chunks(500) {
        let out = Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).args(some).output()?;
        let text = String::from_utf8(out.stdout)?;
        sum += text.lines().map(|line| line.trim().parse::<u64>()).sum::<std::result::Result<u64, _>>()?;
    }
    Ok(sum)
}
