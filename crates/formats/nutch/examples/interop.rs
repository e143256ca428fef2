//! Writes files of every kind, and what a reader should find in them: for the check that real Hadoop reads what this
//! project writes.
//!
//! Usage: interop FIXTURES OUT

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use trawl_hadoop::map::{MapReader, MapWriter, MapWriterOptions};
use trawl_hadoop::seq::{OpenOptions, Pack, Writer, WriterOptions};
use trawl_hadoop::{Codec, Encode, class};
use trawl_nutch::Dialect;
use trawl_nutch::db::{Compress, CrawlDb, LinkDb, Scan, WriteSettings};
use trawl_nutch::segment::{Segment, SegmentPart, SegmentWriter};
use trawl_nutch::types::{Content, CrawlDatum, ParseData, encoded, whole};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const MARKER: [u8; 16] = *b"interop-marker-1";

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(fixtures), Some(out)) = (args.next(), args.next()) else { return Err("interop FIXTURES OUT".into()) };
    files(&out)?;
    maps(&out)?;
    for (name, compress) in [("nutch", Compress::Nutch), ("block", Compress::Block)] {
        databases(&fixtures, &out.join(name), compress)?;
    }
    Ok(())
}

fn packs() -> Vec<(String, Pack)> {
    let mut packs = vec![("none".into(), Pack::None)];
    // Java reads zstd only with Hadoop's native library.
    for codec in Codec::ALL.into_iter().filter(|codec| *codec != Codec::Zstd) {
        packs.push((format!("record-{}", codec.name()), Pack::Record(codec)));
        packs.push((format!("block-{}", codec.name()), Pack::Block(codec)));
    }
    packs
}

fn text(s: &str) -> Vec<u8> {
    encoded(|out| out.put_text(s.as_bytes()))
}

/// Java's `List.hashCode` of strings.
fn list_hash(keys: &[String]) -> i32 {
    keys.iter().fold(1i32, |h, key| h.wrapping_mul(31).wrapping_add(trawl_hadoop::java::hash_string(key)))
}

/// SequenceFiles of every mode; one value is larger than every buffer.
fn files(out: &Path) -> Result<()> {
    let dir = out.join("files");
    std::fs::create_dir_all(&dir)?;
    let mut expected = String::new();
    let mut names = packs();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, pack) in names {
        let file = format!("{name}.seq");
        let options = WriterOptions::new(class::TEXT, class::TEXT, MARKER).pack(pack);
        let options = WriterOptions {
            escape_interval: 2000,
            block_bytes: 5000,
            metadata: vec![("written.by".into(), "trawl".into()), ("a".into(), "é".into())],
            ..options
        };
        let mut writer = Writer::create(&dir.join(&file), options)?;
        let mut keys = Vec::new();
        for n in 0..300 {
            let key = format!("key-{n:03}-\u{e9}\u{1f680}");
            let value = if n == 150 { "long ".repeat(150_000) } else { format!("value {n} ").repeat(n % 20) };
            writer.append(&text(&key), &text(&value))?;
            writeln!(expected, "{file}\t{n}\t{key}\t{value}")?;
            keys.push(key);
        }
        writer.finish()?;
        writeln!(expected, "{file}\tsplits\t300\t{}", list_hash(&keys))?;
    }
    Ok(std::fs::write(out.join("files.txt"), expected)?)
}

/// MapFiles of every compression, and what lookups in them find.
fn maps(out: &Path) -> Result<()> {
    let mut expected = String::new();
    for (name, pack) in
        [("block", Pack::Block(Codec::Default)), ("none", Pack::None), ("record", Pack::Record(Codec::Default))]
    {
        let dir = out.join("maps").join(name);
        let data = WriterOptions::new(class::TEXT, class::LONG, MARKER).pack(pack);
        let data = WriterOptions { block_bytes: 4000, ..data };
        let mut writer = MapWriter::create(&dir, MapWriterOptions::new(data, *b"interop-marker-2"))?;
        for n in (0..2000).step_by(3) {
            writer.append(&text(&format!("key-{n:06}")), &i64::from(n).to_be_bytes())?;
        }
        writer.finish()?;
        let mut map = MapReader::open(&dir, &OpenOptions::default())?;
        let string = |bytes: &[u8]| whole(bytes, |d| d.text("key")).map(|key| key.to_string());
        for n in (-1..=2000i32).step_by(7) {
            // Java's %06d counts the sign.
            let number = if n < 0 { format!("-{:05}", -n) } else { format!("{n:06}") };
            for key in [format!("key-{number}"), format!("key-{number}x")] {
                let got = map.get(&text(&key))?.map(|v| v.try_into().map(i64::from_be_bytes)).transpose()?;
                let got = got.map_or("null".to_owned(), |v| v.to_string());
                writeln!(expected, "{name}\tget\t{key}\t{got}")?;
                let closest = map.closest(&text(&key))?.map(|r| string(r.key)).transpose()?;
                writeln!(expected, "{name}\tclosest\t{key}\t{}", closest.unwrap_or_else(|| "null".into()))?;
            }
        }
        // Java's middle key is the index entry at (count - 1) / 2.
        let (middle, _) = map.index().entry((map.index().len() - 1) / 2).ok_or("an index without entries")?;
        writeln!(expected, "{name}\tmid\t{}", string(middle)?)?;
    }
    Ok(std::fs::write(out.join("maps.txt"), expected)?)
}

/// A CrawlDb, a LinkDb and a segment with the records of the fixtures, in three parts.
fn databases(fixtures: &Path, out: &Path, compress: Compress) -> Result<()> {
    let crawl = fixtures.join("crawl-e2e");
    let options = OpenOptions::default();
    std::fs::create_dir_all(out.join("segments"))?;
    let settings = WriteSettings { parts: 3, ..WriteSettings::new(out, *b"interop-marker-3") };
    let mut writer = CrawlDb::writer(compress, &settings)?;
    let mut scan = CrawlDb::open(&crawl.join("crawldb"), &options)?.scan();
    while let Some(entry) = scan.next_entry()? {
        let datum = whole(entry.value, CrawlDatum::decode)?;
        writer.push(entry.key.as_bytes(), &encoded(|out| datum.encode(out)))?;
    }
    CrawlDb::install(writer, &out.join("crawldb"), &settings)?;
    let mut writer = LinkDb::writer(compress, &settings)?;
    let mut scan = LinkDb::open(&crawl.join("linkdb"), &options)?.scan();
    let mut dialect = Dialect::default();
    while let Some(entry) = scan.next_entry()? {
        let links = dialect.inlinks(entry.value)?;
        writer.push(entry.key.as_bytes(), &encoded(|out| links.encode(out)))?;
    }
    LinkDb::install(writer, &out.join("linkdb"), &settings)?;
    let segment = Segment::open(&crawl.join("segments/20261115074416"), &options)?;
    let mut writer = SegmentWriter::new(compress, &settings);
    for part in SegmentPart::ALL {
        copy(&mut writer, part, segment.scan(part)?)?;
    }
    writer.finish(&out.join("segments/20300101000000"), &mut |_, _, _, _| Ok(()))?;
    Ok(())
}

/// Records are decoded and written anew, so that what is read is what this project writes.
fn copy(writer: &mut SegmentWriter, part: SegmentPart, mut scan: Scan) -> Result<()> {
    let mut dialect = Dialect::default();
    while let Some(entry) = scan.next_entry()? {
        let key = entry.key.as_bytes();
        match part {
            SegmentPart::CrawlGenerate => {
                writer.generate(&entry.key.to_str(), &whole(entry.value, CrawlDatum::decode)?)?
            }
            SegmentPart::CrawlFetch => writer.fetched(key, &whole(entry.value, CrawlDatum::decode)?)?,
            SegmentPart::CrawlParse => writer.crawl_parse(key, key, &whole(entry.value, CrawlDatum::decode)?)?,
            SegmentPart::Content => writer.content(key, &whole(entry.value, Content::decode)?)?,
            SegmentPart::ParseData => {
                let data: ParseData<'_> = dialect.parse_data(entry.value)?;
                writer.raw(part, key, &encoded(|out| data.encode(out)), 0)?;
            }
            SegmentPart::ParseText => writer.raw(part, key, entry.value, 0)?,
        }
    }
    Ok(())
}
