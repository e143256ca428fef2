//! `trawl cat`: the entries of a container.

use super::frontier::parse_hour;
use super::kinds::refuse_stdin;
use crate::exit::Status;
use crate::output::{self, Output};
use crate::system;
use anyhow::bail;
use std::path::PathBuf;
use trawl_archive::{CatOptions, Show, cat};
use trawl_meguri::seed::start_of_hour;
use trawl_model::{DoorError, Wanted, WantedRows};

/// Prints the entries of a container
///
/// Without flags it prints every record, uncompressed, as it is stored. --url and --offset select records; --url finds any
/// spelling of the URL. --head and --body print the HTTP head or the body of the selected records; --json prints one object
/// per record. Damaged places are skipped and reported. `user:password@` in URLs is left out of WARC headers and of listings,
/// not of contents. Exit code 1 when something was damaged, or nothing was found.
///
/// From a seqdb container it prints the records of captures (--url: the newest capture), the contents of files (--url is the
/// file's name), or the entries of a kvseq, like `trawl seqdb list` (--url is a key, --offset a pointer).
///
/// From Hadoop's and Nutch's files it prints every record with its key and value, whatever their classes (--url is a key).
///
/// From a `.meguri` file it prints rows as JSON; --host, --due-before and --status select rows without reading the rest, --url
/// finds one row by its key, --offset is the number of a row.
///
/// Examples:
///   trawl cat crawl/ --url https://example.com/ --body > page.html
///   trawl cat crawl.warc.gz --offset 81920
///   trawl cat crawl.warc.gz --json=digest
///   trawl cat segments/20261115074402 --url https://example.com/ --body
///   trawl cat crawldb/current/part-r-00000/data --json
///   trawl cat base.meguri --host example.com --status gone
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// A file, or a directory of files
    path: PathBuf,

    /// Only records of this URL, in any spelling
    #[arg(long, conflicts_with = "offset")]
    url: Option<String>,

    /// Only the record at this stored offset
    #[arg(long, value_name = "N")]
    offset: Option<u64>,

    /// Only records of this type: response, request, metadata, warcinfo …
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,

    /// Print the HTTP head of responses
    #[arg(long, conflicts_with = "body")]
    head: bool,

    /// Print the body of responses, as stored
    #[arg(long)]
    body: bool,

    /// With --body: undo chunking and content codings
    #[arg(long, requires = "body")]
    decode: bool,

    /// Of a `.meguri` file: only rows of this host, by name or key (0x…)
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// Of a `.meguri` file: only rows that are due at this hour since 1970, or at a time like 2026-11-16T12:00:00Z; 0: now
    #[arg(long, value_parser = parse_hour, value_name = "HOUR")]
    due_before: Option<u32>,

    /// Of a `.meguri` file: only rows in this state (discovered, crawled, gone …), or with this HTTP status
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,

    /// With --json: print digests in place of blocks, like --json=digest
    #[arg(long)]
    digests: bool,
}

/// Runs the command.
pub fn run(args: Args, digests: bool, out: &mut Output) -> anyhow::Result<Status> {
    refuse_stdin(&args.path, "cat")?;
    let (fs, registry) = system::archives();
    let options = CatOptions {
        wanted: Wanted {
            url: args.url.as_deref(),
            offset: args.offset,
            json: out.json(),
            digests: args.digests || digests,
            rows: WantedRows {
                host: args.host.as_deref(),
                due_before: args.due_before.map(start_of_hour),
                status: args.status.as_deref(),
            },
        },
        kind: args.kind.as_deref(),
        credentials: out.credentials(),
        show: match (args.head, args.body, args.decode) {
            (true, ..) => Show::Head,
            (_, true, true) => Show::Decoded,
            (_, true, _) => Show::Body,
            _ => Show::Record,
        },
    };
    if let Some(offset) = args.offset
        && let Ok(found) = std::fs::metadata(&args.path)
        && found.is_file()
        && offset >= found.len()
    {
        bail!("{} has {} bytes: there is no record at {offset}", args.path.display(), found.len());
    }
    let (mut printed, mut damaged) = (0, 0u64);
    let mut on_damage = |error: DoorError| {
        damaged += 1;
        output::complain(&format!("left out: {error}"));
    };
    for found in registry.files(&fs, &args.path)? {
        // Beside its archive an index has nothing to add.
        if !(found.is_index() && args.path.is_dir()) {
            // What of it is shown without user names and passwords, and what are contents, is known there.
            printed += cat(&found, &fs, &options, out.contents()?, &mut on_damage)?;
        }
    }
    if printed == 0 && damaged == 0 {
        let rows = &options.wanted.rows;
        let of_rows = rows.host.is_some() || rows.due_before.is_some() || rows.status.is_some();
        let what = match &args.url {
            Some(url) => format!(" of {url}"),
            None if args.kind.is_some() || args.head || args.body || of_rows => " that fits these flags".to_owned(),
            None => String::new(),
        };
        out.remark(&format!("{} holds no record{what}", args.path.display()));
    }
    Ok(Status::from_findings(printed == 0 || damaged > 0))
}
