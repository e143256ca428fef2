//! `trawl cdxj`: indexes of archives that other web-archive tools read.

use super::copies;
use super::kinds::refuse_stdin;
use crate::exit::Status;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::system;
use crate::target::{refuse_archive, refuse_inputs};
use crate::units::{bytes, show_count};
use anyhow::{Context, bail};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::{Found, PartName, warc_names, warc_parts};
use trawl_io::read_at::FileReader;
use trawl_io::{AtomicFile, Fs, ReadAt, RealFs};
use trawl_url::{Printed, redact};
use trawl_warc::cdxj::{
    BlockIndex, BlockWriter, CdxjFile, CdxjLine, CdxjOptions, CdxjSorter, Unlisted, ZIPNUM_LINES, ZipNum,
    index_records, merge_cdxj, surt_key, write_lines,
};
use trawl_warc::{Part, WarcReader};

/// What a directory of compressed blocks has in it.
const BLOCKS: &str = "cdx.cdxj.gz";
const CLUSTER: &str = "cluster.idx";

/// Bytes of an index whose order is checked before a search: a few milliseconds, whatever its size.
const CHECKED: u64 = 16 << 20;

/// Columns of `--csv`.
const COLUMNS: &[&str] = &["urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset", "filename"];

/// Makes, merges and searches CDXJ indexes
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Verb,
}

impl Args {
    /// Whether it prints a listing.
    pub fn is_listing(&self) -> bool {
        matches!(self.command, Verb::Lookup(_))
    }
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Index(IndexArgs),
    Merge(MergeArgs),
    Lookup(LookupArgs),
}

/// Writes the sorted index of archives
///
/// Damaged places are skipped and reported. Exit code 1 when there are any, when the index is empty, or when captures may be in it
/// twice. A WACZ file whose archives lie beside it is left out. If several archives have the same name, lines name the whole path.
/// A file (--out, --zipnum) keeps URLs as they were found; standard output leaves out user names and passwords unless
/// --credentials is given.
///
/// Example: trawl cdxj index crawl/ --out crawl.cdxj
#[derive(Debug, clap::Args)]
struct IndexArgs {
    /// Archives, or directories of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,

    /// Also index requests and metadata
    #[arg(long)]
    all: bool,

    /// Memory for sorting; less spills to disk
    #[arg(long, default_value = "256MiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,
}

/// Merges sorted indexes into one
///
/// Example: trawl cdxj merge a.cdxj b.cdxj --zipnum merged/
#[derive(Debug, clap::Args)]
struct MergeArgs {
    /// Sorted CDXJ files, plain, gzip or zstd
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Debug, clap::Args)]
struct TargetArgs {
    /// Write to this file instead of stdout
    #[arg(long, short, value_name = "FILE", conflicts_with = "zipnum")]
    out: Option<PathBuf>,

    /// Write compressed blocks (cdx.cdxj.gz) and cluster.idx into this directory: for large indexes
    #[arg(long, value_name = "DIR")]
    zipnum: Option<PathBuf>,
}

/// Prints the lines of a URL, by binary search
///
/// Finds any spelling of the URL that has the same CDXJ key. Exit code 1 when there is none. An index whose
/// lines are not sorted (within its first 16 MiB) is refused.
///
/// Example: trawl cdxj lookup crawl.cdxj https://example.com/
#[derive(Debug, clap::Args)]
struct LookupArgs {
    /// A CDXJ file, or a directory with cluster.idx
    index: PathBuf,

    /// The URL; with --prefix a SURT prefix such as com,example)/
    url: String,

    /// Take the URL as a SURT prefix
    #[arg(long)]
    prefix: bool,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    match args.command {
        Verb::Index(args) => index(&args, out),
        Verb::Merge(args) => merge(&args, out),
        Verb::Lookup(args) => lookup(&args, out),
    }
}

fn index(args: &IndexArgs, out: &mut Output) -> anyhow::Result<Status> {
    let (fs, registry) = system::archives();
    let mut unread = 0usize;
    let mut archives: Vec<Found> = Vec::new();
    for path in &args.paths {
        refuse_stdin(path, "cdxj index")?;
        match registry.files(&fs, path) {
            // One path that cannot be read says nothing against the others.
            Err(error) => {
                unread += 1;
                output::complain(&error.to_string());
            }
            Ok(files) => archives.extend(files),
        }
    }
    let some_twice = copies::leave_out(&fs, &mut archives, out);
    args.target.refuse(archives.iter().map(|found| &*found.path))?;
    let shared = shared_names(&archives, &fs);
    let mut sorter = CdxjSorter::new(&std::env::temp_dir(), usize::try_from(args.memory).context("--memory")?)?;
    let bar = Progress::start("cdxj", None, out.quiet());
    let (mut lines, mut damaged) = (0u64, 0u64);
    let mut add = |name: &PartName, Part { file, offset }: Part| {
        let filename = shared.contains(&name.base).then(|| name.full.clone());
        let options = CdxjOptions { filename, all_records: args.all };
        let mut each = |line| {
            lines += 1;
            bar.report(lines, || format!("{} lines", show_count(lines)));
            sorter.push(&line)
        };
        let mut unlisted = |found: Unlisted| {
            damaged += 1;
            let what = if matches!(found, Unlisted::Undated(_)) { "listed as of 1970" } else { "left out" };
            output::complain(&format!("{what}: {}", found.into_error()));
            Ok(())
        };
        let mut reader = WarcReader::builder().lenient(true).over_from(file, offset);
        index_records(&mut reader, &options, &mut each, &mut unlisted).map(drop)
    };
    for found in &archives {
        if let Err(error) = warc_parts(found, &fs, &mut |name, part| Ok(add(name, part)?)) {
            unread += 1;
            output::complain(&error.to_string());
        }
    }
    drop(bar);
    args.target.write(out, |each| sorter.finish(each))?;
    if lines == 0 && damaged == 0 && unread == 0 {
        out.remark("the archives hold nothing to index");
    }
    if unread > 0 {
        bail!("{unread} of the archives or paths could not be read completely; the index lacks what could not be read");
    }
    Ok(Status::from_findings(lines == 0 || damaged > 0 || some_twice))
}

/// Names that several files have: lines about them name the whole path, so that readers know which one they are about.
fn shared_names(archives: &[Found], fs: &Arc<dyn Fs>) -> BTreeSet<String> {
    let (mut names, mut shared) = (BTreeSet::new(), BTreeSet::new());
    // An archive that cannot be opened is reported when it is read.
    for name in archives.iter().flat_map(|found| warc_names(found, fs).unwrap_or_default()) {
        if !names.insert(name.base.clone()) {
            shared.insert(name.base);
        }
    }
    shared
}

fn merge(args: &MergeArgs, out: &mut Output) -> anyhow::Result<Status> {
    args.target.refuse(args.files.iter().map(|path| &**path))?;
    args.files.iter().try_for_each(|path| refuse_stdin(path, "cdxj merge"))?;
    // What comes through a pipe cannot be looked at without taking it.
    for path in args.files.iter().filter(|path| path.is_file()) {
        refuse_other(path, true)?;
    }
    let open = |path: &PathBuf| -> anyhow::Result<(String, Box<dyn BufRead>)> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        // As a stream: the file may be a pipe from another program.
        let lines = trawl_lists::unpacked(file).with_context(|| format!("cannot read {}", path.display()))?;
        Ok((path.display().to_string(), Box::new(BufReader::new(lines))))
    };
    let inputs = args.files.iter().map(open).collect::<anyhow::Result<Vec<_>>>()?;
    args.target.write(out, |each| merge_cdxj(inputs, each))?;
    Ok(Status::Done)
}

/// Hands sorted lines to the callback it is given.
type Each<'a> = &'a mut dyn FnMut(&[u8]) -> trawl_warc::Result<()>;

impl TargetArgs {
    /// Refuses to write over what is read, or over an archive.
    fn refuse<'a>(&self, inputs: impl Iterator<Item = &'a Path> + Clone) -> anyhow::Result<()> {
        let zipnum = self.zipnum.iter().flat_map(|dir| [dir.join(BLOCKS), dir.join(CLUSTER)]);
        for target in zipnum.chain(self.out.clone()) {
            refuse_inputs(&target, inputs.clone())?;
            refuse_archive(&target)?;
        }
        Ok(())
    }

    fn write(&self, out: &mut Output, lines: impl FnOnce(Each<'_>) -> trawl_warc::Result<u64>) -> anyhow::Result<()> {
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        if let Some(dir) = &self.zipnum {
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            let data = AtomicFile::create(&fs, &dir.join(BLOCKS))?;
            let cluster = AtomicFile::create(&fs, &dir.join(CLUSTER))?;
            let mut blocks = BlockWriter::new(data, cluster, BlockIndex::Cluster, BLOCKS, ZIPNUM_LINES)?;
            let count = lines(&mut |line| blocks.push(line))?;
            let (data, cluster) = blocks.finish()?;
            // The index of blocks comes last: what it names is there.
            data.publish()?;
            cluster.publish()?;
            out.remark(&format!("{} lines in {}", show_count(count), dir.display()));
        } else if let Some(path) = &self.out {
            let mut file = AtomicFile::create(&fs, path)?;
            let count = lines(&mut |line| write_lines(&mut file, &[line]))?;
            file.publish()?;
            out.remark(&format!("{} lines in {}", show_count(count), path.display()));
        } else {
            let mut redacted = 0u64;
            lines(&mut |line| {
                let shown = if out.credentials() { None } else { CdxjLine::without_credentials(line) };
                let is_changed = shown.is_some() || matches!(redact(line, Printed::Text), Cow::Owned(_));
                redacted += u64::from(is_changed);
                write_lines(out, &[shown.as_deref().map_or(line, str::as_bytes)])
            })?;
            if redacted > 0 && !out.credentials() {
                let lines = show_count(redacted);
                out.remark(&format!(
                    "left user names and passwords out of {lines} line(s): --out keeps them, --credentials prints them"
                ));
            }
        }
        Ok(())
    }
}

fn lookup(args: &LookupArgs, out: &mut Output) -> anyhow::Result<Status> {
    let prefix = if args.prefix { args.url.clone() } else { format!("{} ", surt_key(&args.url)) };
    let lines = if args.index.is_dir() {
        let dir = args.index.clone();
        let cluster = open(&dir.join("cluster.idx"))?;
        let blocks = move |name: &str| -> trawl_warc::Result<Arc<dyn ReadAt>> {
            Ok(Arc::new(FileReader::open(&dir.join(name))?))
        };
        ZipNum::new(cluster, blocks)?.lines(prefix.as_bytes())?
    } else {
        let file = open(&args.index)?;
        refuse_other(&args.index, false)?;
        let index = CdxjFile::new(file);
        index.check_order(CHECKED)?;
        index.lines(prefix.as_bytes())?
    };
    let mut found = 0u64;
    for line in lines {
        let line = line?;
        let shown = if out.credentials() { None } else { CdxjLine::without_credentials(&line) };
        let shown = shown.as_deref().map_or(&line[..], str::as_bytes);
        if out.json() || out.csv() {
            out.row(COLUMNS, &object_of(&CdxjLine::parse(shown)?), |_| Ok(()))?;
        } else {
            write_lines(out, &[shown])?;
        }
        found += 1;
    }
    if found == 0 {
        out.remark(&format!("{} has no line for {}", args.index.display(), args.url));
    }
    Ok(Status::from_findings(found == 0))
}

/// A line as one JSON object, as CDX servers answer it.
fn object_of(line: &CdxjLine) -> serde_json::Value {
    let named = [("urlkey", &line.key), ("timestamp", &line.timestamp)];
    let fields = line.fields.iter().map(|(name, value)| (name.as_str(), value));
    named
        .into_iter()
        .chain(fields)
        .map(|(name, value)| (name.to_owned(), serde_json::Value::from(value.as_str())))
        .collect()
}

/// Refuses a file that is not a CDXJ index: a search in it would find nothing, and say so; a merge would mix its lines among others.
/// `unpacks` if it may be compressed.
fn refuse_other(path: &Path, unpacks: bool) -> anyhow::Result<()> {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let looks = trawl_lists::look(&fs, path)?;
    match looks.format {
        _ if !unpacks && looks.compression != trawl_io::Compression::None => {
            bail!(
                "{} is compressed: a search needs a plain file, or a directory made by `trawl cdxj merge --zipnum`",
                path.display()
            )
        }
        Some(trawl_lists::Format::Cdxj | trawl_lists::Format::Cdx) => Ok(()),
        None if looks.head.is_empty() => Ok(()),
        _ => bail!(
            "{}: expected a CDXJ index (`trawl cdxj index` makes one), found {}",
            path.display(),
            looks.describe()
        ),
    }
}

fn open(path: &Path) -> anyhow::Result<Arc<dyn ReadAt>> {
    if !path.is_file() {
        let hint = "`trawl cdxj index ARCHIVE… --out FILE` makes one";
        bail!("there is no CDXJ index at {}: {hint}", path.display());
    }
    Ok(Arc::new(FileReader::open(path)?))
}
