//! `trawl lake datasets` and `stats`.

use crate::exit::Status;
use crate::output::{Output, harmless};
use crate::units::{show_bytes, show_count};
use std::io::Write;
use std::path::Path;
use trawl_query::Principal;

pub(super) fn datasets(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    let datasets = crate::commands::query::open(dir)?.ask(|pinned| pinned.datasets(&Principal::operator()))?;
    if out.csv() {
        const COLUMNS: &[&str] =
            &["dataset_id", "name", "rows", "denied_rows", "domains", "bytes", "created", "source"];
        datasets.iter().try_for_each(|dataset| out.csv_row(COLUMNS, dataset))?;
    } else if out.json() {
        datasets.iter().try_for_each(|dataset| out.json_line(dataset))?;
    } else {
        for d in &datasets {
            let (rows, size) = (show_count(d.rows), show_bytes(d.bytes));
            let source = harmless(d.source.as_deref().unwrap_or_default());
            let denied = d.denied_rows.filter(|rows| *rows > 0);
            let denied = denied.map(|rows| format!("  (and {} denied)", show_count(rows))).unwrap_or_default();
            let (id, name, created) = (d.dataset_id, harmless(&d.name), d.created);
            writeln!(out, "{id:>5}  {name:<24} {rows:>14} rows  {size:>10}  {created}  {source}{denied}")?;
        }
    }
    Ok(Status::from_findings(datasets.is_empty()))
}

pub(super) fn stats(dir: &Path, out: &mut Output) -> anyhow::Result<Status> {
    let lake = crate::commands::query::open(dir)?;
    let stats = lake.ask(|pinned| pinned.stats_for(&Principal::operator()))?;
    let metadata = trawl_maintain::metadata(&**lake.store())?;
    let mut json = serde_json::to_value(&stats)?;
    if let (Some(json), serde_json::Value::Object(more)) = (json.as_object_mut(), serde_json::to_value(metadata)?) {
        json.extend(more);
    }
    out.fact(&json, |w| {
        writeln!(w, "version   {}", stats.version)?;
        writeln!(w, "datasets  {}", show_count(stats.datasets))?;
        // A domain counts once per segment: with one segment that is exact.
        let at_most = if stats.domains_exact { "" } else { "at most " };
        writeln!(w, "domains   {at_most}{}", show_count(stats.domains))?;
        writeln!(w, "rows      {}", show_count(stats.rows))?;
        if let Some(denied) = stats.denied_rows.filter(|rows| *rows > 0) {
            writeln!(w, "denied    {} rows more, in the files until `trawl lake purge`", show_count(denied))?;
        }
        writeln!(w, "files     {} Parquet, {} index segment(s)", show_count(stats.files), stats.segments)?;
        writeln!(w, "bytes     {} (index {})", show_bytes(stats.bytes), show_bytes(stats.index_bytes))?;
        let (objects, size) = (show_count(metadata.metadata_objects), show_bytes(metadata.metadata_bytes));
        writeln!(w, "metadata  {size} in {objects} objects: manifests, commits, heartbeats, denials")
    })?;
    Ok(Status::Done)
}
