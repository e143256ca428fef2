//! `trawl nutch readlinkdb`.

use super::NewDirectory;
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::show_count;
use anyhow::bail;
use serde_json::json;
use std::path::{Path, PathBuf};
use trawl_hadoop::Text;
use trawl_hadoop::json::Detail;
use trawl_hadoop::seq::OpenOptions;
use trawl_nutch::db::{LinkDb, Scan};
use trawl_nutch::tools::{LinkPrinter, write_inlinks_of};
use trawl_nutch::types::{Inlinks, encoded};
use trawl_nutch::{Dialect, class};

/// Prints a LinkDb: the links to every page, or to one
///
/// Examples:
///   trawl nutch readlinkdb linkdb -dump out
///   trawl nutch readlinkdb linkdb -url https://example.com/
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, group = clap::ArgGroup::new("what").required(true))]
pub struct ReadlinkdbArgs {
    /// The LinkDb, or one of its parts
    linkdb: PathBuf,

    /// Print every page with the links to it: one file per part into the new directory DIR, or everything to stdout
    #[arg(long, group = "what", value_name = "DIR", num_args = 0..=1)]
    dump: Option<Option<PathBuf>>,

    /// Print the links to one page
    #[arg(long, group = "what", value_name = "URL")]
    url: Option<String>,
}

/// Runs the command.
pub fn run(args: ReadlinkdbArgs, out: &mut Output) -> anyhow::Result<Status> {
    let mut db = LinkDb::open(&args.linkdb, &OpenOptions::default())?;
    let missing: Vec<_> = db.map().cut().into_iter().collect();
    Ok(super::ended(asked(&args, &mut db, out)?, &missing))
}

/// Does what the flags ask for.
fn asked(args: &ReadlinkdbArgs, db: &mut LinkDb, out: &mut Output) -> anyhow::Result<Status> {
    if let Some(dir) = &args.dump {
        return dump(&args.linkdb, db, dir.as_ref(), out);
    }
    let Some(url) = &args.url else { bail!("nothing was asked for") };
    let links = db.get(url.as_bytes())?;
    if out.json() {
        let links = links.as_ref().map(links_json).transpose()?;
        out.json_line(&json!({ "url": url, "links": links }))?;
    } else {
        write_inlinks_of(links.as_ref(), out)?;
    }
    Ok(Status::from_findings(links.is_none()))
}

fn links_json(links: &Inlinks<'_>) -> anyhow::Result<serde_json::Value> {
    let bytes = encoded(|out| links.encode(out));
    let mut value = Dialect::default().json(class::INLINKS, &bytes, Detail::Full)?;
    Ok(value["inlinks"].take())
}

fn each(
    path: &Path,
    mut scan: Scan,
    out: &Output,
    mut f: impl FnMut(&Text<'_>, &Inlinks<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let bar = Progress::start(&format!("readlinkdb {}", path.display()), None, out.quiet());
    let mut dialect = Dialect::default();
    let mut pages = 0;
    while let Some(entry) = scan.next_entry()? {
        let links = dialect.inlinks(entry.value).map_err(|e| entry.error(e))?;
        f(&entry.key, &links)?;
        pages += 1;
        bar.report(pages, || format!("{} pages", show_count(pages)));
    }
    Ok(pages)
}

fn dump(path: &Path, db: &LinkDb, dir: Option<&PathBuf>, out: &mut Output) -> anyhow::Result<Status> {
    let mut pages = 0;
    let new = dir.map(|dir| NewDirectory::create(dir)).transpose()?;
    for (n, part) in db.map().parts().iter().enumerate() {
        let mut scan = Scan::of(part, &OpenOptions::default())?;
        let mut printer = LinkPrinter::default();
        if let Some(new) = &new {
            new.write_file(&format!("part-r-{n:05}"), |file| {
                pages += each(path, scan, out, |url, links| Ok(printer.write(url, links, file)?))?;
                Ok(())
            })?;
            continue;
        }
        let mut dialect = Dialect::default();
        while let Some(entry) = scan.next_entry()? {
            let links = dialect.inlinks(entry.value).map_err(|e| entry.error(e))?;
            pages += 1;
            if out.json() {
                out.json_line(&json!({ "url": entry.key.to_str(), "links": links_json(&links)? }))?;
            } else {
                printer.write(&entry.key, &links, out)?;
            }
        }
    }
    new.map_or(Ok(()), NewDirectory::finish)?;
    Ok(Status::from_findings(pages == 0))
}
