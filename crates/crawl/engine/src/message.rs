//! What the crawl hears: from its tasks, and from the writer.

use crate::commit::{Item, Message, Share};
use crate::crawl::Crawl;
use crate::error::Error;
use crate::page::Event;
use crate::seeds::SeedBatch;
use crate::writer::failed;
use std::net::IpAddr;
use tokio::sync::mpsc;
use tokio::time::Instant;
use trawl_frontier::{Address, Answer, HostId, LeaseId};
use trawl_model::ErrorClass;

/// What tasks tell the crawl.
pub(crate) enum TaskMessage {
    /// A fetch ended: its host may be asked again.
    Ended(LeaseId, Answer, Option<IpAddr>, Spent),
    /// This machine could not make a fetch: the lease comes back.
    Returned(LeaseId, String),
    /// What came of a lookup; why, if this machine could not make it.
    Resolved(HostId, Result<Option<Address>, String>),
    /// The address of a host could not be found.
    Unresolved(HostId, ErrorClass, String),
    /// Its event is ready to be committed.
    Ready(Box<Event>),
    /// This machine failed.
    Failed(Error),
}

/// What a fetch took of its host's budget.
pub(crate) struct Spent {
    pub host: String,
    pub bytes: u64,
    pub fetch_ms: u64,
}

impl Crawl<'_> {
    pub(crate) fn told(&mut self, message: TaskMessage) -> Result<(), Error> {
        match message {
            TaskMessage::Ended(id, answer, ip, spent) => {
                self.in_flight -= 1;
                let now = self.now();
                self.spent_bytes += spent.bytes;
                if self.state.hosts.spend(&spent.host, spent.bytes, spent.fetch_ms) {
                    self.state.frontier.hold(now, &spent.host)?;
                }
                self.state.frontier.released(now, id, answer, ip)?;
                if matches!(answer, Answer::Response { .. }) {
                    self.trouble = None;
                    self.answered = Instant::now();
                    if !answer.is_passing() {
                        self.stuck_since = None;
                    }
                }
                Ok(())
            }
            TaskMessage::Returned(id, why) => {
                self.in_flight -= 1;
                self.unacked -= 1;
                let now = self.now();
                self.state.frontier.returned(now, id)?;
                self.trouble = Some(why);
                Ok(())
            }
            TaskMessage::Resolved(id, found) => {
                let found = found.map_err(|why| self.trouble = Some(why));
                let now = self.now();
                self.state.frontier.ready(now, id, found);
                Ok(())
            }
            TaskMessage::Unresolved(id, class, why) => {
                let now = self.now();
                Ok(self.state.frontier.unresolved(now, id, class, why)?)
            }
            TaskMessage::Ready(event) => {
                let mut site = None;
                if let Some(finding) = &event.robots {
                    site = self.state.frontier.errand_site(event.lease.id).map(str::to_owned);
                    let now = self.now();
                    self.state.frontier.robots(now, event.lease.id, finding.answer.clone())?;
                }
                self.commit(Item::Event(event, site))
            }
            TaskMessage::Failed(error) => Err(error),
        }
    }

    /// Takes what tasks said before they were ended.
    pub(crate) fn drain(&mut self, rx: &mut mpsc::Receiver<TaskMessage>) -> Result<(), Error> {
        while let Ok(message) = rx.try_recv() {
            self.told(message)?;
        }
        Ok(())
    }

    pub(crate) fn commit(&mut self, item: Item) -> Result<(), Error> {
        self.committing += 1;
        self.unsynced += 1;
        self.items.try_send(item).map_err(|_| failed("writer"))
    }

    pub(crate) fn heard(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Synced(synced) => {
                let now = self.now();
                (self.unsynced, self.hurried) = (self.unsynced.saturating_sub(synced.done.len()), false);
                let (ticket, share) = self.state.synced(synced, now)?;
                self.items.try_send(Item::Acknowledge(ticket, share)).map_err(|_| failed("writer"))
            }
            Message::Acked(share) => self.acked(share),
        }
    }

    pub(crate) fn acked(&mut self, Share { events, seeds }: Share) -> Result<(), Error> {
        self.committing -= events + seeds;
        self.seeds_ahead -= seeds;
        // After an abort, captures that were already on their way are no longer counted.
        self.unacked = self.unacked.saturating_sub(events);
        self.seeds_ended |= self.state.seeds_ended();
        let rejects = self.state.counts().rejects;
        match self.config.max_rejects {
            Some(limit) if rejects > limit => Err(Error::TooManyRejects { found: rejects, limit }),
            _ => Ok(()),
        }
    }

    pub(crate) fn take_seeds(&mut self, batch: SeedBatch) -> Result<(), Error> {
        self.seeds_ahead += 1;
        self.seeds_open = batch.end.is_none();
        self.commit(Item::Seeds(batch))
    }
}
