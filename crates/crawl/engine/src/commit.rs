//! The commit stage: the only place that writes what a crawl is worth.
//!
//! ```text
//! events ─► append to the archive ────┐
//!                                     ├─ every 100 ms or 8 MiB ─► 1 sync the archive
//! seeds ──────────────────────────────┘                           2 one journal batch {outcome, links, row, … file and end}
//!                                                                 3 sync the journal
//!                                                                 4 acknowledge to the frontier
//! ```
//! A crash before 3 leaves archive bytes that no batch names: resuming cuts them off, and the captures are made again. A
//! crash after 3 leaves a batch that says everything: resuming believes it.

use crate::error::Error;
use crate::page::Event;
use crate::record::{CommitRecord, EventRecord, Record, SeedsRecord, encode};
use crate::report::Leg;
use crate::seeds::SeedBatch;
use std::sync::Arc;
use trawl_archive::Digests;
use trawl_frontier::{LeaseId, UrlId};
use trawl_io::Journal;
use trawl_model::{CaptureSink, Durable, Summary};
use trawl_url::WebUrl;

/// Something to make durable.
pub(crate) enum Item {
    /// A capture; for a robots.txt that settles a site, the root of that site.
    Event(Box<Event>, Option<WebUrl>),
    Seeds(SeedBatch),
    /// The run was started.
    Leg(Leg),
}

/// Something that is durable.
pub(crate) struct Acked {
    /// Where its batch begins in the journal.
    pub offset: u64,
    pub records: Vec<Done>,
}

/// A durable record; of an event also what the journal does not keep.
pub(crate) enum Done {
    Event(Box<EventRecord>, Live),
    Seeds(SeedsRecord),
    Leg(Leg),
}

/// What is known of a capture that was just made.
pub(crate) struct Live {
    /// What was fetched.
    pub url: WebUrl,
    /// The ids of its links.
    pub ids: Vec<UrlId>,
}

/// Appends, and makes durable.
pub(crate) struct Committer {
    sink: Box<dyn CaptureSink>,
    digests: Option<Arc<dyn Digests>>,
    journal: Journal,
    /// Encoded records of the batch.
    batch: Vec<Vec<u8>>,
    done: Vec<Done>,
    bytes: u64,
    /// The archive as of the last commit.
    durable: Durable,
}

impl Committer {
    pub(crate) fn new(
        sink: Box<dyn CaptureSink>,
        digests: Option<Arc<dyn Digests>>,
        journal: Journal,
        durable: Durable,
    ) -> Self {
        Self { sink, digests, journal, batch: Vec::new(), done: Vec::new(), bytes: 0, durable }
    }

    /// Bytes that wait to be made durable.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.batch.is_empty()
    }

    /// The archive as of the last commit.
    pub(crate) fn durable(&self) -> &Durable {
        &self.durable
    }

    /// Appends to the archive; nothing is durable yet.
    pub(crate) fn add(&mut self, item: Item) -> Result<(), Error> {
        match item {
            Item::Seeds(SeedBatch { seeds, rejects, items, end }) => {
                let record = SeedsRecord { seeds, rejects, items, end };
                self.push(encode(&Record::Seeds(record.clone())));
                self.done.push(Done::Seeds(record));
            }
            Item::Leg(leg) => {
                self.push(encode(&Record::Leg(leg.clone())));
                self.done.push(Done::Leg(leg));
            }
            Item::Event(event, site) => {
                let Event { lease, answer, links, left_out, redirect, bad_redirect, robots, mut row, prepared } =
                    *event;
                if let Some(prepared) = prepared {
                    self.bytes += prepared.len_bytes;
                    if let Some(place) = self.sink.commit(prepared)? {
                        row.set_place(&place);
                    }
                }
                let id = match lease.id {
                    LeaseId::Page(id) => Some(id.to_string()),
                    LeaseId::Robots(_) => None,
                };
                let text = robots.and_then(|finding| finding.text);
                let site = site.filter(|_| text.is_some());
                let (ids, links) = links.into_iter().unzip();
                let (hops, answer) = (lease.hops, answer.into());
                let record = Record::Event(Box::new(EventRecord {
                    id,
                    site,
                    robots: text,
                    hops,
                    answer,
                    links,
                    to: redirect,
                    bad_to: bad_redirect,
                    left_out,
                    row,
                }));
                self.push(encode(&record));
                if let Record::Event(event) = record {
                    self.done.push(Done::Event(event, Live { url: lease.url, ids }));
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, record: Vec<u8>) {
        self.bytes += record.len() as u64;
        self.batch.push(record);
    }

    /// Makes everything added so far durable, in the one right order.
    pub(crate) fn commit(&mut self) -> Result<Option<Acked>, Error> {
        if self.batch.is_empty() {
            return Ok(None);
        }
        let durable = self.sink.sync()?;
        self.batch.push(encode(&Record::Commit(CommitRecord::of(&durable))));
        let position = self.journal.commit(self.batch.iter().map(Vec::as_slice))?;
        self.durable = durable;
        self.batch.clear();
        self.bytes = 0;
        if let Some(digests) = &self.digests {
            for done in &self.done {
                if let Done::Event(event, _) = done {
                    digests.remember_row(&event.row)?;
                }
            }
        }
        Ok(Some(Acked { offset: position.offset, records: std::mem::take(&mut self.done) }))
    }

    /// Completes the archive files. Everything must have been committed.
    pub(crate) fn finish(self) -> Result<Summary, Error> {
        if let Some(digests) = &self.digests {
            digests.close()?;
        }
        Ok(self.sink.finish()?)
    }
}

#[cfg(test)]
mod tests;
