//! What `inspect` and `verify` know beside archives: lakes, lists of URLs, Parquet files of lakes, and standard input.

use crate::lists::ListArgs;
use crate::units::show_count;
use crate::{exit, system};
use anyhow::{Context, anyhow, bail};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::walk::is_lake;
use trawl_archive::{Found, Registry};
use trawl_io::Fs;
use trawl_lists::{BadItem, Format, ListFile, Options, zipnum};
use trawl_maintain::temp::Spool;
use trawl_model::{Advice, Aside, Asides, DoorError, Finding, Inspection, Progress, Severity, UrlRecord};
use trawl_rows::{Column, Columns, FilePages, Step};
use trawl_store::{DirStore, Store};
use trawl_url::{LakeUrl, SuffixList};

/// Items or rows between two reports of progress.
const REPORT_EVERY: u64 = 4096;
/// Rows of a lake decoded at a time.
const STEP_ROWS: u32 = 16_384;

/// Refuses `-` where a command reads at several places of a file: a pipe can be read only once.
pub fn refuse_stdin(path: &Path, command: &str) -> anyhow::Result<()> {
    if path.as_os_str() == "-" && !path.exists() {
        bail!("`trawl {command}` does not read standard input (-): write it to a file, and name the file");
    }
    Ok(())
}

/// What a path is.
pub enum Kind {
    /// A lake: a directory, or an address.
    Lake,
    /// A list of URLs: a file, or the blocks of a ZipNum index.
    Lists(Vec<(PathBuf, Format)>),
    /// A Parquet file of a lake.
    Rows,
    /// Archives: the file itself, or those in the directory.
    Archives(Vec<Found>),
}

/// A path, or what comes through a pipe, in a file.
pub struct Input {
    /// Where its bytes are.
    pub path: PathBuf,
    /// That file, and what the pipe is called.
    spool: Option<(Spool, String)>,
}

impl Input {
    /// Reads a pipe to its end: standard input if the path is `-`, or one with a name, such as `<(…)`.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let mut pipe: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin().lock()),
            false if std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) => {
                Box::new(std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
            }
            false => return Ok(Self { path: path.to_owned(), spool: None }),
        };
        let spool = Spool::read(&std::env::temp_dir(), &system::nonce()?, &mut pipe)?;
        Ok(Self { path: spool.path().to_owned(), spool: Some((spool, path.display().to_string())) })
    }

    /// A text about it, with the name of the pipe for the file that holds its bytes.
    pub fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match (&self.spool, self.path.file_name().and_then(|name| name.to_str())) {
            (Some((_, pipe)), Some(name)) => {
                text.replace(&self.path.display().to_string(), pipe).replace(name, pipe).into()
            }
            _ => text.into(),
        }
    }

    /// An error about it, with the name of the pipe for the file that holds its bytes.
    pub fn named(&self, error: anyhow::Error) -> anyhow::Error {
        match self.shown(&exit::in_one_line(&error)) {
            Cow::Borrowed(_) => error,
            Cow::Owned(shown) => anyhow!(shown),
        }
    }

    /// What it is, by its first bytes and its name.
    pub fn kind(&self, fs: &Arc<dyn Fs>, registry: &Registry) -> anyhow::Result<Kind> {
        let path = &self.path;
        if path.to_str().is_some_and(trawl_store::is_remote) || is_lake(&**fs, path) {
            return Ok(Kind::Lake);
        }
        if !path.is_file() {
            return Ok(match registry.files(fs, path) {
                Ok(found) => Kind::Archives(found),
                // `trawl cdxj index --zipnum` makes a directory that holds nothing else.
                Err(error) => match zipnum_blocks(fs, &path.join("cluster.idx"))? {
                    Some(blocks) => Kind::Lists(blocks),
                    None => return Err(error.into()),
                },
            });
        }
        let mut magic = [0; 4];
        let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut magic));
        let read = read.with_context(|| format!("cannot read {}", path.display()))?;
        if magic.get(..read) == Some(b"PAR1") {
            return Ok(match registry.detect(fs, path)? {
                Some(_) => Kind::Archives(registry.files(fs, path)?),
                None if pages(path).is_ok() => Kind::Rows,
                None => Kind::Lists(vec![(path.clone(), Format::Parquet)]),
            });
        }
        if registry.detect(fs, path)?.is_none() {
            if let Some(format) = trawl_lists::look(fs, path)?.format {
                return Ok(Kind::Lists(vec![(path.clone(), format)]));
            }
            if let Some(blocks) = zipnum_blocks(fs, path)? {
                return Ok(Kind::Lists(blocks));
            }
        }
        Ok(Kind::Archives(registry.files(fs, path)?))
    }
}

/// The files of blocks that a ZipNum index names, which lie beside it; `None` if the path is not such an index.
fn zipnum_blocks(fs: &Arc<dyn Fs>, index: &Path) -> anyhow::Result<Option<Vec<(PathBuf, Format)>>> {
    if index.extension().is_none_or(|end| end != "idx") || !index.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(index).with_context(|| format!("cannot read {}", index.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    if !zipnum::is_index(&text) {
        return Ok(None);
    }
    let parts = zipnum::parts(&text).map_err(|(n, error)| anyhow!("{} line {n}: {error}", index.display()))?;
    let mut blocks = Vec::new();
    for zipnum::Part { name, end } in parts {
        let path = index.with_file_name(&name);
        let len = fs.metadata(&path)?.len;
        if len < end {
            bail!("{}: expected {end} bytes, as {} says, found {len}", path.display(), index.display());
        }
        // What the index names is an index of captures, whatever it is called.
        let is_cdx = trawl_lists::look(fs, &path)?.format == Some(Format::Cdx);
        blocks.push((path, if is_cdx { Format::Cdx } else { Format::Cdxj }));
    }
    Ok(Some(blocks))
}

/// Why an item of a list is not a URL: a code and a message.
type Bad = (&'static str, String);
/// An item with its lake form, or why it has none.
type ListItem<'a> = Result<(UrlRecord, &'a LakeUrl), Bad>;

/// Reads a list: every item with its offset, its lake form, or why it has none.
fn read_list(
    fs: &Arc<dyn Fs>,
    path: &Path,
    format: Format,
    lists: &ListArgs,
    each: &mut dyn FnMut(u64, ListItem<'_>),
    aside: &mut Asides<'_>,
) -> anyhow::Result<()> {
    let options = lists.apply(Options { now: system::now(), ..Options::default() });
    let source = trawl_lists::open(fs, path, Some(format), &options)?;
    let mut url = LakeUrl::default();
    for split in source.splits(u64::MAX)? {
        let mut taken = |at: u64, item: Result<UrlRecord, DoorError>| {
            match item {
                Ok(record) => match url.assign(&record.url, SuffixList::builtin()) {
                    Ok(()) => each(at, Ok((record, &url))),
                    Err(reject) => each(at, Err((reject.code(), reject.to_string()))),
                },
                Err(error) if error.advice != Advice::Skip => return Err(error),
                Err(error) => each(at, Err(bad_item(&error))),
            }
            Ok(())
        };
        source.read_all(split, &mut taken, aside)?;
    }
    Ok(())
}

fn bad_item(error: &DoorError) -> Bad {
    match error.source.downcast_ref::<BadItem>() {
        Some(bad) => (bad.code, bad.message.clone()),
        None => ("item", error.source.to_string()),
    }
}

/// Says what is in a list.
pub fn inspect_list(
    fs: &Arc<dyn Fs>,
    path: &Path,
    format: Format,
    lists: &ListArgs,
    sample: usize,
    progress: &mut dyn FnMut(Progress),
) -> anyhow::Result<Inspection> {
    let note = Some(format.name().to_owned());
    let mut seen = Inspection { format: "list of URLs".into(), format_note: note, ..Inspection::default() };
    let (mut items, mut urls) = (0u64, 0u64);
    let mut oddities: BTreeMap<String, (u64, u64, Option<u64>)> = BTreeMap::new();
    let mut each = |_: u64, item: ListItem<'_>| {
        items += 1;
        if items.is_multiple_of(REPORT_EVERY) {
            progress(Progress { records: items, bytes: 0, total_bytes: 0 });
        }
        match item {
            Ok((record, url)) => {
                urls += 1;
                seen.tally("hosts", url.host().to_owned(), 0);
                record.status.into_iter().for_each(|status| seen.tally("statuses", status.to_string(), 0));
                if seen.sample.len() < sample {
                    let row = [("url", Some(record.url.into())), ("ts", record.ts.map(|ts| ts.to_string().into()))];
                    seen.sample.push(row_of(row.into_iter().chain([("status", record.status.map(Into::into))])));
                }
            }
            Err((code, _)) => seen.tally("rejected", code.to_owned(), 0),
        }
    };
    let mut aside = |at: u64, what: Aside<'_>| {
        if let Aside::Oddity(code, line) = what {
            oddities.entry(code.to_owned()).or_insert((0, at, line)).0 += 1;
        }
    };
    read_list(fs, path, format, lists, &mut each, &mut aside)?;
    for (code, (count, offset, line)) in &oddities {
        let first = line.map_or_else(|| format!("byte {offset}"), |line| format!("line {line}"));
        let what = trawl_lists::describe_oddity(code);
        seen.remarks.push(format!("{} {what} ({code}; the first: {first})", show_count(*count)));
    }
    if !oddities.is_empty() {
        let shown = oddities
            .into_iter()
            .map(|(code, (count, offset, line))| (code, json!({ "count": count, "offset": offset, "line": line })));
        seen.details.insert("oddities".to_owned(), Value::Object(shown.collect()));
    }
    seen.fact("stored_bytes", fs.metadata(path)?.len);
    seen.fact("items", items);
    seen.fact("urls", urls);
    seen.fact("rejected_items", items - urls);
    if urls == 0 && items > 0 {
        seen.remarks.push("no item is a URL: perhaps this is not a list of URLs".into());
    }
    Ok(seen)
}

fn row_of(values: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Map<String, Value> {
    values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// What was checked of something that is not an archive.
#[derive(Debug, Default, serde::Serialize)]
pub struct Checked {
    /// Items or rows.
    pub items: u64,
    /// Those that are not as they should be.
    pub faults: u64,
}

/// Checks that every item of a list is a URL, and that the lines of a CDXJ index are in order.
pub fn verify_list(
    fs: &Arc<dyn Fs>,
    path: &Path,
    format: Format,
    lists: &ListArgs,
    on_finding: &mut dyn FnMut(Finding),
    progress: &mut dyn FnMut(Progress),
) -> anyhow::Result<Checked> {
    let mut checked = Checked::default();
    let file = path.display().to_string();
    let fault = |offset, kind, detail| {
        let (severity, file) = (Severity::Fault, file.clone());
        Finding { severity, file, offset: Some(offset), kind, detail }
    };
    let mut each = |at: u64, item: ListItem<'_>| {
        checked.items += 1;
        if checked.items.is_multiple_of(REPORT_EVERY) {
            progress(Progress { records: checked.items, bytes: 0, total_bytes: 0 });
        }
        if let Err((code, message)) = item {
            checked.faults += 1;
            on_finding(fault(at, code, message));
        }
    };
    read_list(fs, path, format, lists, &mut each, &mut |_, _| {})?;
    if format == Format::Cdxj {
        let (mut before, mut at) = (Vec::new(), 0u64);
        for line in BufReader::new(ListFile::open(fs, path)?.reader(0)?).split(b'\n') {
            let line = line?;
            if line < before && !line.is_empty() {
                checked.faults += 1;
                on_finding(fault(at, "order", "expected a line that sorts after the one before it".into()));
            }
            at += line.len() as u64 + 1;
            before = line;
        }
    }
    Ok(checked)
}

/// A Parquet file of a lake, with the store it is in.
fn pages(path: &Path) -> anyhow::Result<(DirStore, FilePages)> {
    let store = DirStore::new(path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let pages = FilePages::read_unchecked(&store, &name, store.len(&name)?)?;
    Ok((store, pages))
}

/// Says what is in a Parquet file of a lake. Every page is read, and its checksum checked.
pub fn inspect_rows(path: &Path, sample: usize, progress: &mut dyn FnMut(Progress)) -> anyhow::Result<Inspection> {
    let (store, pages) = pages(path)?;
    let mut seen = Inspection { format: "Parquet of a lake".into(), ..Inspection::default() };
    let (mut count, mut domains, mut last) = (0u64, 0u64, None::<String>);
    for step in pages.scan(&store, Columns::ALL, STEP_ROWS)? {
        let Step { rows, .. } = step?;
        for i in 0..rows.len() {
            count += 1;
            let domain = rows.text(Column::Domain, i).unwrap_or_default();
            if last.as_deref() != Some(domain) {
                domains += 1;
                last = Some(domain.to_owned());
            }
            seen.tally("domains", domain.to_owned(), 0);
            let status = rows.number(Column::Status, i);
            status.into_iter().for_each(|status| seen.tally("statuses", status.to_string(), 0));
            if seen.sample.len() < sample {
                let row = [("url", Some(rows.url(i).into())), ("ts", rows.ts(i).map(|ts| ts.to_string().into()))];
                seen.sample.push(row_of(row.into_iter().chain([("status", status.map(Into::into))])));
            }
        }
        progress(Progress { records: count, bytes: 0, total_bytes: 0 });
    }
    seen.fact("stored_bytes", std::fs::metadata(path)?.len());
    seen.fact("rows", count);
    seen.fact("row_groups", pages.groups.len() as u64);
    seen.fact("distinct_domains", domains);
    Ok(seen)
}
