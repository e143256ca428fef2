//! `trawl frontier schedule`: what is due.

use super::{Data, parse_hour};
use crate::exit::Status;
use crate::output::{Output, complain, harmless};
use crate::system;
use serde::Serialize;
use trawl_meguri::DueRow;
use trawl_meguri::diff::hex;
use trawl_meguri::keys::parse_host;
use trawl_meguri::seed::hour_of;

/// Lists URLs that are due
///
/// Lists them in the order of the schedule index, if the file has one. A URL that was never scheduled is not due. Exit
/// code 1 if nothing is due, or a row is damaged.
///
/// Examples:
///   trawl frontier schedule base.meguri --limit 10
///   trawl frontier schedule base.meguri --host example.com --before 482817
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct ScheduleArgs {
    #[command(flatten)]
    data: Data,

    /// Only URLs that are due by this hour since 1970, or by a time like 2026-11-16T12:00:00Z; 0: now
    #[arg(long, value_parser = parse_hour, value_name = "HOUR")]
    before: Option<u32>,

    /// Only this host: its name, or its key as a number or 0x…
    #[arg(long, value_parser = parse_host, value_name = "HOST")]
    host: Option<u64>,

    /// Print at most this many URLs; 0: all
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u64,
}

#[derive(Serialize)]
struct Due<'a> {
    key: String,
    next_due: u32,
    url: &'a str,
}

pub fn run(args: &ScheduleArgs, out: &mut Output) -> anyhow::Result<Status> {
    let file = args.data.open()?;
    let now = args.before.unwrap_or_else(|| hour_of(system::now()));
    let hosts = args.host.map_or((0, u64::MAX), |host| (host, host));
    let most = if args.limit == 0 { u64::MAX } else { args.limit };
    let (mut shown, mut wrong) = (0u64, 0u64);
    let mut failed = None;
    file.due_urls(now, hosts, most, &mut |DueRow { row, key, next_due }, url| {
        if let Some(fault) = file.key_fault(row, key, url) {
            wrong += 1;
            complain(&format!("left out: {fault}"));
            return Ok(true);
        }
        let text = String::from_utf8_lossy(url);
        let fact = Due { key: hex(key), next_due, url: &text };
        shown += 1;
        let columns = &["key", "next_due", "url"];
        failed = out.row(columns, &fact, |w| writeln!(w, "{next_due}  {}  {}", fact.key, harmless(&text))).err();
        Ok(failed.is_none())
    })?;
    match failed {
        Some(error) => Err(error.into()),
        None if shown == 0 && wrong == 0 => {
            out.remark("no URL is due; URLs that were never scheduled are never due");
            Ok(Status::Findings)
        }
        None => Ok(Status::from_findings(shown == 0 || wrong > 0)),
    }
}
