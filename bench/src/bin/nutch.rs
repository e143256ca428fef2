//! Nutch's files: a CrawlDb read through, looked up in and written, beside real Hadoop and Nutch classes on a warm JVM.
//!
//! Both sides do the same work on the same files, each on one thread, and both check or write `.crc` files. Figures are CPU
//! seconds of that thread, so that other work on the machine and Java's collector threads do not count; of five rounds the
//! best. Wants a JDK and Maven.
//!
//! Usage: nutch [URLS [DIR]]

use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trawl_hadoop::map::{MapReader, MapWriter, MapWriterOptions};
use trawl_hadoop::seq::{OpenOptions, Pack, Reader, Writer, WriterOptions};
use trawl_hadoop::{Any, Codec, Encode, class as hadoop};
use trawl_nutch::class::{CRAWL_DATUM, PROTOCOL_STATUS};
use trawl_nutch::types::{CrawlDatum, ProtocolStatus, Status, encoded, whole};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const ROUNDS: usize = 5;
const GETS: u64 = 100_000;
const WRITES: usize = 500_000;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let urls: u64 = args.next().map_or(Ok(2_000_000), |n| n.parse())?;
    let dir = args.next().map_or_else(|| std::env::temp_dir().join("trawl-bench-nutch"), PathBuf::from);
    std::fs::create_dir_all(&dir)?;
    make(&dir, urls)?;
    let java = java(&dir)?;
    let ours = ours(&dir)?;
    println!("| what | Trawl | Java | ratio |\n| --- | --- | --- | --- |");
    for (name, (seconds, sum)) in ours {
        let (theirs, their_sum) = java.get(&name).ok_or(format!("Java did not do {name}"))?;
        let ratio = theirs / seconds;
        let note = if name.starts_with("write") {
            format!("{} MB, {} MB", sum / 1_000_000, their_sum / 1_000_000)
        } else if sum == *their_sum {
            "same sum".into()
        } else {
            return Err(format!("{name}: Trawl read {sum}, Java {their_sum}").into());
        };
        println!("| {name} | {seconds:.3} s | {theirs:.3} s | {ratio:.2}x ({note}) |");
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn url(n: u64) -> String {
    format!("https://www.host{}.example/section/{}/some-page-{n:08}.html?id={n}", n % 5000, n % 37)
}

/// The same records as three maps, and keys to look up.
fn make(dir: &Path, urls: u64) -> Result<()> {
    let mut all: Vec<String> = (0..urls).map(url).collect();
    all.sort_unstable();
    let packs =
        [("none", Pack::None), ("record", Pack::Record(Codec::Default)), ("block", Pack::Block(Codec::Default))];
    for (name, pack) in packs {
        let data = WriterOptions::new(hadoop::TEXT, CRAWL_DATUM, *b"bench marker one").pack(pack);
        let mut map = MapWriter::create(&dir.join(name), MapWriterOptions::new(data, *b"bench marker two"))?;
        for (n, url) in all.iter().enumerate() {
            let mut datum =
                CrawlDatum::new(Status::DB_FETCHED, 1_794_000_000_000 + n as i64 * 977, 1.0 / (n % 97 + 1) as f32);
            // Half of the URLs were fetched and have what a fetch leaves.
            if n % 2 == 0 {
                datum.signature = md5_like(n as u64).into();
                let status = ProtocolStatus::new(1, 0, None);
                datum.metadata.insert("_pst_", Any::new(PROTOCOL_STATUS, |out| status.encode(out)));
                datum.metadata.insert("Content-Type", Any::text(b"text/html"));
                datum.metadata.insert("_rs_", Any::new(hadoop::INT, |out| out.put_i32(n as i32 % 1000)));
            }
            map.append(&encoded(|out| out.put_text(url.as_bytes())), &encoded(|out| datum.encode(out)))?;
        }
        map.finish()?;
    }
    let keys: String = (0..GETS).map(|n| url(n.wrapping_mul(2_654_435_761) % urls) + "\n").collect();
    Ok(std::fs::write(dir.join("keys.txt"), keys)?)
}

fn md5_like(n: u64) -> Vec<u8> {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [mixed.to_be_bytes(), mixed.rotate_left(29).to_be_bytes()].concat()
}

fn cpu() -> f64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

type Measured = (f64, i64);

fn measure(mut task: impl FnMut() -> Result<i64>) -> Result<Measured> {
    let (mut best, mut sum) = (f64::MAX, 0);
    for _ in 0..ROUNDS {
        let before = cpu();
        sum = task()?;
        best = best.min(cpu() - before);
    }
    Ok((best, sum))
}

fn ours(dir: &Path) -> Result<Vec<(String, Measured)>> {
    let mut all = Vec::new();
    for pack in ["none", "block"] {
        let data = dir.join(pack).join("data");
        let measured = measure(|| {
            let mut reader = Reader::open(&data)?;
            let mut sum = 0;
            while let Some(record) = reader.next_record()? {
                let key = whole(record.key, |d| d.text_bytes("key"))?;
                let datum = whole(record.value, CrawlDatum::decode)?;
                sum += datum.fetch_time + key.len() as i64 + datum.metadata.entries().len() as i64;
            }
            Ok(sum)
        })?;
        all.push((format!("scan-{pack}"), measured));
    }
    let keys = std::fs::read_to_string(dir.join("keys.txt"))?;
    let keys: Vec<Vec<u8>> = keys.lines().map(|url| encoded(|out| out.put_text(url.as_bytes()))).collect();
    for pack in ["none", "record"] {
        let mut map = MapReader::open(&dir.join(pack), &OpenOptions::default())?;
        let measured = measure(|| {
            let mut sum = 0;
            for key in &keys {
                if let Some(value) = map.get(key)? {
                    sum += whole(value, CrawlDatum::decode)?.fetch_time;
                }
            }
            Ok(sum)
        })?;
        all.push((format!("get-{pack}"), measured));
    }
    let mut records = Vec::new();
    let mut reader = Reader::open(&dir.join("none/data"))?;
    while let Some(record) = reader.next_record()?.filter(|_| records.len() < WRITES) {
        let key = whole(record.key, |d| d.text("key"))?.into_owned();
        records.push((key, whole(record.value, CrawlDatum::decode)?.into_owned()));
    }
    let packs =
        [("none", Pack::None), ("record", Pack::Record(Codec::Default)), ("block", Pack::Block(Codec::Default))];
    for (name, pack) in packs {
        let path = dir.join(format!("write-{name}.trawl"));
        let measured = measure(|| {
            let options = WriterOptions::new(hadoop::TEXT, CRAWL_DATUM, *b"bench marker two").pack(pack);
            let mut writer = Writer::create(&path, options)?;
            let (mut key, mut value) = (Vec::new(), Vec::new());
            for (url, datum) in &records {
                key.clear();
                key.put_text(url.as_bytes());
                value.clear();
                datum.encode(&mut value);
                writer.append(&key, &value)?;
            }
            Ok(writer.finish()?.bytes as i64)
        })?;
        all.push((format!("write-{name}"), measured));
    }
    Ok(all)
}

/// Compiles and runs the Java side with the jars that the interop check pins.
fn java(dir: &Path) -> Result<HashMap<String, Measured>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (jars, classes) = (dir.join("jars"), dir.join("classes"));
    let pom = here.join("../.ci/interop/hadoop/pom.xml");
    run(Command::new("mvn")
        .args(["-q", "-B", "-f"])
        .arg(pom)
        .arg("dependency:copy-dependencies")
        .arg(format!("-DoutputDirectory={}", jars.display())))?;
    let path = format!("{}/*", jars.display());
    let source = here.join("src/nutch/Bench.java");
    run(Command::new("javac").args(["-nowarn", "-cp", &path, "-d"]).arg(&classes).arg(source))?;
    let path = format!("{}:{path}", classes.display());
    let mut bench = Command::new("java");
    bench.args(["-Xmx3g", "-cp", &path, "Bench"]).arg(dir).arg(WRITES.to_string());
    let output = bench.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("java: {}", output.status).into());
    }
    let mut all = HashMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let [name, rounds @ .., sum] = fields.as_slice() else { return Err(format!("java said {line}").into()) };
        let rounds: Vec<f64> = rounds.iter().map(|r| r.parse()).collect::<std::result::Result<_, _>>()?;
        let best = rounds.iter().copied().fold(f64::MAX, f64::min);
        all.insert((*name).to_owned(), (best, sum.parse()?));
    }
    Ok(all)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}
