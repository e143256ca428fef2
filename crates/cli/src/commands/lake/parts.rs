//! `trawl lake parts`: the files that a lake answers from.

use super::{LakeArg, id_of};
use crate::exit::Status;
use crate::lake_dir;
use crate::output::Output;
use serde::Serialize;
use trawl_index::{OpenOptions, Segment};
use trawl_store::Lake;

/// Lists the Parquet and index files that the current version answers from
///
/// Prints the hash (xxh3_64), the length, the number of rows and the name of each file. With --hashes it leaves out
/// names that differ from one ingest to the next, and the index files that contain them (segment.json, files.tsv.zst):
/// two lakes with the same rows, files and index then print the same list. In a split index, the prefix stands before
/// the name of a file (0a/counts.bin).
///
/// Example:
///   diff <(trawl lake parts --hashes --lake a) <(trawl lake parts --hashes --lake b)
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct PartsArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Only the Parquet files of this dataset
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,

    /// Leave out names that differ between ingests, so that lists can be compared
    #[arg(long)]
    hashes: bool,
}

/// Columns of `--csv`.
const COLUMNS: &[&str] = &["type", "dataset_id", "name", "hash", "bytes", "rows", "path"];

/// A file.
#[derive(Debug, Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct FilePart {
    /// `rows` or `index`.
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dataset_id: Option<u32>,
    /// The prefix of a Parquet file, the name of an index file inside its segment.
    name: String,
    hash: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

pub(super) fn run(args: &PartsArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = lake_dir::open(&args.lake.lake)?;
    let parts = parts(&lake, id_of(&lake, args.dataset.as_deref())?, args.hashes)?;
    for part in &parts {
        out.row(COLUMNS, part, |w| {
            let rows = part.rows.map_or_else(|| "-".to_owned(), |rows| rows.to_string());
            let dataset = part.dataset_id.map_or_else(String::new, |id| format!("{id} "));
            let name = part.path.as_ref().unwrap_or(&part.name);
            writeln!(w, "{}  {:>12}  {rows:>12}  {} {dataset}{name}", part.hash, part.bytes, part.kind)
        })?;
    }
    Ok(Status::from_findings(parts.is_empty()))
}

fn parts(lake: &Lake, only: Option<u32>, hashes: bool) -> anyhow::Result<Vec<FilePart>> {
    let manifest = lake.current()?;
    let Some(version) = manifest.current() else { return Ok(Vec::new()) };
    let mut parts = Vec::new();
    for (id, sequence) in version.commits.iter().filter(|(id, _)| only.is_none_or(|only| only == **id)) {
        let Some(commit) = lake.dataset_commit(*id, *sequence)? else { continue };
        for file in commit.files {
            parts.push(FilePart {
                kind: "rows",
                dataset_id: Some(*id),
                name: file.prefix,
                hash: file.hash,
                bytes: file.bytes,
                rows: Some(file.rows),
                path: (!hashes).then_some(file.path),
            });
        }
    }
    for reference in version.segments.iter().filter(|_| only.is_none()) {
        let segment = Segment::open(lake.store(), reference, &std::sync::Arc::default(), OpenOptions::default())?;
        for (name, file) in &segment.meta().files {
            let own = name.rsplit('/').next().unwrap_or(name);
            if hashes && ["files.tsv.zst", "segment.json"].contains(&own) {
                continue;
            }
            let path = (!hashes).then(|| format!("index/{}/{name}", reference.id));
            let (hash, bytes) = (file.hash.clone(), file.bytes);
            parts.push(FilePart { kind: "index", dataset_id: None, name: name.clone(), hash, bytes, rows: None, path });
        }
    }
    Ok(parts)
}
