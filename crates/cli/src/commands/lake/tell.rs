//! What upkeep tells: facts to stdout, the rest to stderr.

use crate::output::Output;
use crate::progress::Progress as Bar;
use crate::system;
use crate::units::{show_bytes, show_count};
use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;
use trawl_maintain::{Dropped, Event, Keeper};
use trawl_store::{Cancel, Progress, Stage};

/// Does an act of upkeep on the lake in `dir` within `memory` bytes, telling what happens.
pub(super) fn keep<T>(
    dir: &Path,
    memory: u64,
    out: &mut Output,
    act: impl FnOnce(&Keeper<'_>) -> trawl_maintain::Result<T>,
) -> anyhow::Result<T> {
    let teller =
        Teller { quiet: out.quiet(), out: RefCell::new(out), bar: RefCell::default(), failed: RefCell::default() };
    let cancel = Cancel::default();
    let tell = |event| {
        if teller.tell(event).is_err() {
            cancel.cancel();
        }
    };
    let keeper = Keeper {
        memory_bytes: usize::try_from(memory)?,
        threads: std::thread::available_parallelism().map_or(2, std::num::NonZero::get),
        wait: &std::thread::sleep,
        cancel: cancel.clone(),
        ..Keeper::new(system::nonce()?, crate::lake_dir::temp(dir), &system::now, &tell)
    };
    let done = act(&keeper);
    // Output that could not be written ended the work: that is what to tell.
    match teller.failed.into_inner() {
        Some(error) => Err(error.into()),
        None => Ok(done?),
    }
}

struct Teller<'a> {
    quiet: bool,
    out: RefCell<&'a mut Output>,
    bar: RefCell<Option<Bar>>,
    failed: RefCell<Option<io::Error>>,
}

impl Teller<'_> {
    fn tell(&self, event: Event) -> Result<(), ()> {
        match event {
            Event::Begins(what) => {
                // One line at a time: the old one goes first.
                self.bar.take();
                *self.bar.borrow_mut() = Some(Bar::start(&what, None, self.quiet));
            }
            Event::At(what) => self.bar.borrow().iter().for_each(|bar| bar.report(0, || what.clone())),
            Event::Progress(progress) => self.bar.borrow().iter().for_each(|bar| show_progress(bar, progress)),
            Event::Remark(text) => self.out.borrow().remark(&text),
            fact => {
                self.bar.take();
                if let Err(error) = self.out.borrow_mut().fact(&fact, |w| show(&fact, w)) {
                    *self.failed.borrow_mut() = Some(error);
                    return Err(());
                }
            }
        }
        Ok(())
    }
}

/// How far work on a lake is, for a progress line.
pub(super) fn show_progress(bar: &Bar, p: Progress) {
    bar.report(p.done, || {
        let stage = match p.stage {
            Stage::Reading => "reading",
            Stage::Writing => "writing",
            Stage::Committing => "committing",
        };
        format!("{stage} {}%, {} rows", (100 * p.done).checked_div(p.total).unwrap_or(0), show_count(p.rows))
    });
}

/// A fact, for people.
fn show(fact: &Event, w: &mut dyn Write) -> io::Result<()> {
    match fact {
        Event::Fault { fault, .. } => writeln!(w, "fault: {fault}"),
        Event::Dataset { dataset, rows, files, bytes, waits, .. } => {
            let (rows, size) = (show_count(*rows), show_bytes(*bytes));
            let note = if *waits { " (waits: not published)" } else { "" };
            writeln!(w, "dataset {dataset}: {rows} rows, {files} files, {size}{note}")
        }
        Event::Segment { segment, checked } => {
            let (domains, rows) = (show_count(checked.domains), show_count(checked.rows));
            writeln!(w, "segment {segment}: {domains} domains, {rows} rows, {} files", checked.files)
        }
        Event::Files { dataset, report, recut: true, .. } => {
            let (rows, size) = (show_count(report.rows_after), show_bytes(report.bytes_after));
            writeln!(w, "{dataset}: {rows} rows written again, {size}")
        }
        Event::Files { dataset, dry_run, report, .. } => {
            let (files, size) = (show_count(report.files_before), show_bytes(report.bytes_before));
            if *dry_run {
                return writeln!(w, "{dataset}: would merge {files} files, {size}");
            }
            let (after, size_after) = (show_count(report.files_after), show_bytes(report.bytes_after));
            writeln!(w, "{dataset}: merged {files} files, {size}, into {after}, {size_after}")
        }
        Event::Segments { segments, merged: None, .. } => {
            writeln!(w, "index: would merge {} segments", segments.unwrap_or(0))
        }
        Event::Segments { merged: Some(done), .. } => {
            let (domains, rows) = (show_count(done.domains), show_count(done.rows));
            writeln!(w, "index: merged {} segments into one of {domains} domains, {rows} rows", done.merged.len())?;
            writeln!(w, "published version {}", done.version)
        }
        Event::Dropped(dropped) => {
            let verb = if dropped.dry_run { "would drop" } else { "dropped" };
            match dropped.denied {
                true => writeln!(
                    w,
                    "{}: the whole dataset is denied, {verb} {} rows",
                    dropped.dataset,
                    show_count(dropped.rows)
                ),
                false => writeln!(w, "{verb} dataset {}: {}", dropped.dataset, holds(dropped)),
            }
        }
        Event::Purged { dataset, losses, rejects, dry_run, .. } => {
            let verb = if *dry_run { "would remove" } else { "removed" };
            let (rows, files) = (show_count(losses.rows), show_count(losses.files));
            writeln!(w, "{dataset}: {verb} {rows} rows from {files} file(s)")?;
            if *rejects > 0 { writeln!(w, "{dataset}: and {} rejected lines", show_count(*rejects)) } else { Ok(()) }
        }
        Event::Unread { files, bytes, max_read } => {
            let (files, bytes, most) = (show_count(*files), show_bytes(*bytes), show_bytes(*max_read));
            writeln!(w, "{files} files of {bytes} were not read, only their lengths checked: --max-read is {most}")
        }
        Event::Mended { path, from, sources_forgotten } => {
            writeln!(w, "{path}: lost or damaged, written again from {from}")?;
            if *sources_forgotten {
                writeln!(w, "  which sources its rows came from is not known: do not ingest them again")?;
            }
            Ok(())
        }
        Event::DenyRecovered { deny } => {
            writeln!(w, "restored the deny list from its record, because its manifest is gone: {deny} entries")
        }
        Event::Lost { dataset, served, left, rows, files_gone, .. } => {
            writeln!(w, "{dataset}: lost what commits {} to {served} brought", left.saturating_add(1))?;
            writeln!(w, "{dataset}: continues with {} rows of commit {left}", show_count(*rows))?;
            if *files_gone > 0 {
                let gone = show_count(*files_gone);
                let advice = "so its sources are forgotten: ingest with --replace";
                writeln!(w, "{dataset}: {gone} files of it are gone too, {advice}")?;
            }
            Ok(())
        }
        Event::Restored { datasets, deny, written, .. } => {
            for (id, name) in datasets {
                writeln!(w, "restored dataset {id} as {name}")?;
            }
            writeln!(w, "restored the deny list: {deny} {}", if *deny == 1 { "entry" } else { "entries" })?;
            match written {
                Some(written) => writeln!(w, "took the registry from the manifest of {written}"),
                None => {
                    writeln!(w, "lost with index/: older versions, access lists changed since a dataset's last commit")
                }
            }
        }
        // Progress and remarks are no facts.
        _ => Ok(()),
    }
}

/// What a dataset holds that is dropped.
pub(super) fn holds(Dropped { rows, files, bytes, damage, .. }: &Dropped) -> String {
    let damage = damage.as_ref().map(|error| format!(" that can be read ({error})")).unwrap_or_default();
    format!("{} rows, {files} files, {}{damage}", show_count(*rows), show_bytes(*bytes))
}
