//! The commit stage: the only place that writes what a crawl is worth.
//!
//! ```text
//! events ─► append to the archive ─┐
//!                                  ├─ every 100 ms or 8 MiB ─► 1 sync the archive, then its rows in the spool
//! seeds ─► rejects ────────────────┘                           2 one batch of the frontier's log {outcomes, links, all ends}
//!                                                              3 sync the log
//!                                                              4 acknowledge
//! ```
//! 1 and 3 are here, on the writer's thread; 2 is the frontier's, in the crawl loop. A crash before 3 leaves bytes that no batch
//! names: resuming cuts them off, and the captures are made again. A crash after 3 leaves a batch that says everything.

use crate::error::Error;
use crate::heritrix_log::LogFile;
use crate::layout::Layout;
use crate::page::Event;
use crate::record::{CommitRecord, EventRecord, SpoolEnd, SpoolRecord};
use crate::seeds::SeedBatch;
use crate::spool::SpoolFile;
use std::collections::VecDeque;
use std::sync::Arc;
use trawl_archive::{CaptureRow, Digests};
use trawl_frontier::{Source, Ticket};
use trawl_io::{File, Fs, Mode};
use trawl_model::{CaptureSink, Summary};
use trawl_url::WebUrl;

/// Something for the writer.
pub(crate) enum Item {
    /// A capture; for a robots.txt that settles a site, that site.
    Event(Box<Event>, Option<String>),
    Seeds(SeedBatch),
    /// Somebody waits for what was added so far.
    Hurry,
    /// A synced batch is in the frontier's log: it is to be made durable there, and acknowledged.
    Acknowledge(Option<Ticket>, Share),
}

/// What a batch consists of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub events: usize,
    pub seeds: usize,
}

/// What the writer says.
pub(crate) enum Message {
    /// Synced, but not yet in the log.
    Synced(Synced),
    /// Durable.
    Acked(Share),
}

/// A batch whose archive bytes and rows are synced.
pub(crate) struct Synced {
    pub done: Vec<Done>,
    pub ends: Ends,
}

/// How far the files of a crawl are good.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    pub archive: CommitRecord,
    pub spool: SpoolEnd,
    /// A spool that takes no more, because the archive went on to another file.
    pub closed: Option<SpoolEnd>,
    pub rejects: u64,
    pub log: u64,
}

pub(crate) enum Done {
    Event(Box<EventRecord>),
    Seeds(SeedBatch),
}

/// The files beside the archive, and how far they are good.
pub(crate) struct Beside {
    pub spool: Option<SpoolEnd>,
    /// Bytes of the rejects.
    pub rejects: u64,
    pub log: LogFile,
}

/// Appends, and syncs.
pub(crate) struct Committer {
    fs: Arc<dyn Fs>,
    layout: Layout,
    sink: Box<dyn CaptureSink>,
    digests: Option<Arc<dyn Digests>>,
    spool: SpoolFile,
    /// The archive file whose rows the spool takes; empty before there is one.
    spooled: String,
    rejects: Rejects,
    log: LogFile,
    /// Whether what pages lead to is kept with their rows.
    keep_links: bool,
    done: Vec<Done>,
    bytes: u64,
    /// Rows of batches that are not acknowledged: their bodies may not be referred to yet.
    unremembered: VecDeque<Vec<CaptureRow>>,
    /// Batches that are synced and not acknowledged.
    outstanding: usize,
}

/// Items of the seeds that are not URLs, as JSON lines.
struct Rejects {
    file: Option<Box<dyn File>>,
    end: u64,
    unwritten: Vec<u8>,
}

impl Committer {
    /// Goes on after what the log says was synced; the rest of those files is cut.
    pub(crate) fn new(
        fs: &Arc<dyn Fs>,
        layout: &Layout,
        sink: Box<dyn CaptureSink>,
        digests: Option<Arc<dyn Digests>>,
        beside: Beside,
        keep_links: bool,
    ) -> Result<Self, Error> {
        let Beside { spool, rejects, log } = beside;
        let SpoolEnd { number, file, end } = spool.unwrap_or(SpoolEnd { number: 0, file: String::new(), end: 0 });
        let spool = open_spool(&**fs, layout, number, end)?;
        let path = layout.reject_spool();
        let file_of_rejects = match fs.exists(&path)? {
            true => {
                let opened = fs.open(&path, Mode::Write)?;
                opened.set_len(rejects)?;
                Some(opened)
            }
            false => None,
        };
        Ok(Self {
            fs: fs.clone(),
            layout: layout.clone(),
            sink,
            digests,
            spool,
            spooled: file,
            rejects: Rejects { file: file_of_rejects, end: rejects, unwritten: Vec::new() },
            log,
            keep_links,
            done: Vec::new(),
            bytes: 0,
            unremembered: VecDeque::new(),
            outstanding: 0,
        })
    }

    /// Bytes that wait to be synced.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.done.is_empty()
    }

    /// Whether all that was added is acknowledged.
    pub(crate) fn is_clean(&self) -> bool {
        self.done.is_empty() && self.outstanding == 0
    }

    /// Appends to the archive; nothing is durable yet.
    pub(crate) fn add_event(&mut self, event: Event, site: Option<String>) -> Result<(), Error> {
        let Event { lease, answer, links, sitemaps, left_out, unread, redirect, bad_redirect, robots, .. } = event;
        let (mut row, prepared) = (event.row, event.prepared);
        if let Some(prepared) = prepared {
            self.bytes += prepared.len_bytes;
            if let Some(place) = self.sink.commit(prepared)? {
                row.set_place(&place);
            }
        }
        let text = robots.and_then(|finding| finding.text);
        self.bytes += 512 + links.iter().map(|(_, url)| url.len() as u64 + 64).sum::<u64>();
        self.done.push(Done::Event(Box::new(EventRecord {
            id: lease.id,
            first_of_seed: lease.attempt == 1 && lease.source == Source::Seed,
            url: lease.url,
            site: site.filter(|_| text.is_some()),
            robots: text,
            hops: lease.hops,
            answer,
            links,
            sitemaps,
            to: redirect,
            bad_to: bad_redirect,
            left_out,
            unread,
            note: None,
            row,
        })));
        Ok(())
    }

    pub(crate) fn add_seeds(&mut self, batch: SeedBatch) {
        for reject in &batch.rejects {
            self.rejects.unwritten.extend_from_slice(&serde_json::to_vec(reject).unwrap_or_default());
            self.rejects.unwritten.push(b'\n');
        }
        self.bytes += batch.seeds.iter().map(|seed| seed.url.len() as u64 + 64).sum::<u64>();
        self.done.push(Done::Seeds(batch));
    }

    /// Syncs everything added so far: the archive, then the rows that speak of it.
    pub(crate) fn sync(&mut self) -> Result<Option<Synced>, Error> {
        if self.done.is_empty() {
            return Ok(None);
        }
        let durable = self.sink.sync()?;
        let mut closed = None;
        // A batch that came before the archive had a file belongs to the first one.
        if self.spooled != durable.current() && !self.spooled.is_empty() {
            let number = self.spool.number();
            closed = Some(SpoolEnd { number, file: self.spooled.clone(), end: self.spool.end() });
            self.spool = open_spool(&*self.fs, &self.layout, number + 1, 0)?;
            self.log.roll()?;
        }
        durable.current().clone_into(&mut self.spooled);
        let mut rows = Vec::new();
        for done in &mut self.done {
            let Done::Event(event) = done else { continue };
            let leads_on =
                self.keep_links && (!event.links.is_empty() || !event.sitemaps.is_empty() || event.to.is_some());
            let urls = |found: &[(_, WebUrl)]| found.iter().map(|(_, url)| url.clone()).collect();
            let (links, sitemaps, to) = match leads_on {
                true => (urls(&event.links), urls(&event.sitemaps), event.to.clone()),
                false => (Vec::new(), Vec::new(), None),
            };
            self.log.push(&event.row);
            let record = SpoolRecord { row: event.row.clone(), links, to, sitemaps, hops: event.hops };
            event.note = Some(self.spool.push(&record)).filter(|_| leads_on);
            if self.digests.is_some() {
                rows.push(record.row);
            }
        }
        self.spool.sync()?;
        self.rejects.sync(&*self.fs, &self.layout)?;
        self.log.write()?;
        self.unremembered.push_back(rows);
        self.outstanding += 1;
        self.bytes = 0;
        let spool = SpoolEnd { number: self.spool.number(), file: self.spooled.clone(), end: self.spool.end() };
        let ends = Ends {
            archive: CommitRecord::of(&durable),
            spool,
            closed,
            rejects: self.rejects.end,
            log: self.log.base(),
        };
        Ok(Some(Synced { done: std::mem::take(&mut self.done), ends }))
    }

    /// The oldest synced batch is in the log: makes that durable, and lets later captures refer to its bodies.
    pub(crate) fn acknowledge(&mut self, ticket: Option<Ticket>) -> Result<(), Error> {
        if let Some(ticket) = ticket {
            ticket.wait()?;
        }
        self.outstanding = self.outstanding.saturating_sub(1);
        for row in self.unremembered.pop_front().unwrap_or_default() {
            if let Some(digests) = &self.digests {
                digests.remember_row(&row)?;
            }
        }
        Ok(())
    }

    /// Completes the archive files. Everything must have been acknowledged.
    pub(crate) fn finish(self) -> Result<Summary, Error> {
        if let Some(digests) = &self.digests {
            digests.close()?;
        }
        self.log.sync()?;
        Ok(self.sink.finish()?)
    }
}

fn open_spool(fs: &dyn Fs, layout: &Layout, number: u64, end: u64) -> Result<SpoolFile, Error> {
    let spool = SpoolFile::open(fs, &layout.rows(number), number, end)?;
    fs.sync_dir(&layout.inner)?;
    Ok(spool)
}

impl Rejects {
    fn sync(&mut self, fs: &dyn Fs, layout: &Layout) -> Result<(), Error> {
        if self.unwritten.is_empty() {
            return Ok(());
        }
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let file = fs.open(&layout.reject_spool(), Mode::OpenOrCreate)?;
                file.set_len(self.end)?;
                fs.sync_dir(&layout.inner)?;
                file
            }
        };
        file.write_at(self.end, &self.unwritten)?;
        file.sync_data()?;
        self.end += self.unwritten.len() as u64;
        self.unwritten.clear();
        self.file = Some(file);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
