//! `trawl frontier stats`: counts of rows.

use super::{Data, parse_hour};
use crate::exit::Status;
use crate::output::Output;
use crate::system;
use crate::units::show_count;
use serde::Serialize;
use std::io::Write;
use trawl_meguri::seed::hour_of;
use trawl_meguri::stats::{Counts, count};

/// Counts rows by state, source and last status, what waits and what is due
///
/// Reads four columns.
///
/// Example:
///   trawl frontier stats base.meguri
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct StatsArgs {
    #[command(flatten)]
    data: Data,

    /// Count as due what is due by this hour since 1970, or by this time; 0: now
    #[arg(long, value_parser = parse_hour, value_name = "HOUR")]
    before: Option<u32>,
}

#[derive(Serialize)]
struct Facts {
    file: String,
    bytes: u64,
    #[serde(flatten)]
    counts: Counts,
}

pub fn run(args: &StatsArgs, out: &mut Output) -> anyhow::Result<Status> {
    let file = args.data.open()?;
    let now = args.before.unwrap_or_else(|| hour_of(system::now()));
    let facts = Facts { file: file.path().display().to_string(), bytes: file.len(), counts: count(&file, now)? };
    out.fact(&facts, |w| facts.write(w))?;
    Ok(Status::Done)
}

impl Facts {
    fn write(&self, w: &mut dyn Write) -> std::io::Result<()> {
        let c = &self.counts;
        writeln!(w, "{}: {} URLs, {} hosts", self.file, show_count(c.urls), show_count(c.hosts))?;
        writeln!(
            w,
            "  pending {}, scheduled {}, due {}",
            show_count(c.pending),
            show_count(c.scheduled),
            show_count(c.due)
        )?;
        for (what, counts) in [("status", &c.statuses), ("source", &c.sources)] {
            counts.iter().try_for_each(|(name, n)| writeln!(w, "  {what} {name:<16} {:>14}", show_count(*n)))?;
        }
        for (status, n) in &c.http_statuses {
            let name = if *status == 0 { "none".to_owned() } else { status.to_string() };
            writeln!(w, "  http   {name:<16} {:>14}", show_count(*n))?;
        }
        match c.seen_bits_per_url {
            Some(bits) => writeln!(w, "  seen filter: {bits:.2} bits a URL"),
            None => writeln!(w, "  no seen filter"),
        }
    }
}
