//! The crawl loop: one task owns the frontier, everything else talks to it.
//!
//! ```text
//!            ┌────────────── acks (durable) ◄─────────────┐
//! seeds ─► ┌─┴────────┐ lease  ┌───────┐ fetched ┌──────┐ │ ┌────────┐
//!          │  crawl   ├───────►│ fetch ├────────►│ page ├─┼►│ writer │
//!          │(frontier)│◄───────┴───────┘ ended   └──┬───┘ │ └───┬────┘
//!          └──────────┘◄────── ready ───────────────┘     └─────┘
//! ```
//! Every channel is bounded, and the number of captures that are not durable bounds them all: nobody waits for the crawl
//! task while it waits for them.

use crate::commit::{Acked, Done, Item};
use crate::config::Config;
use crate::error::Error;
use crate::page::{Event, Worker, answer_of, facts_of};
use crate::report::Progress;
use crate::seeds::{self, SeedBatch};
use crate::state::State;
use crate::stop::Stop;
use crate::writer::{Writer, failed};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use trawl_fetch::{Ask, Fetcher};
use trawl_frontier::{Answer, Lease, LeaseId, Next};
use trawl_model::{Clock, ErrorClass, UnixMillis};
use trawl_parse::robots::MAX_BYTES;

/// What tasks tell the crawl.
enum Told {
    /// A fetch ended: its host may be asked again.
    Ended(LeaseId, Answer, Option<IpAddr>),
    /// Its event is ready to be committed.
    Ready(Box<Event>),
    /// This machine failed.
    Failed(Error),
}

struct Crawl<'a> {
    config: &'a Config,
    clock: &'a Clock,
    state: State,
    fetcher: Fetcher,
    worker: Worker,
    cpu: Arc<Semaphore>,
    tasks: JoinSet<()>,
    told: mpsc::Sender<Told>,
    items: SyncSender<Item>,
    /// Fetches under way.
    in_flight: usize,
    /// Captures that are not durable, fetches under way included.
    unacked: usize,
    /// Items the writer has and has not acknowledged.
    committing: usize,
    /// Batches of seeds among them.
    seeds_ahead: usize,
    /// Whether the last batch of seeds is still to be read.
    seeds_open: bool,
    /// Whether the last batch is durable.
    seeds_ended: bool,
    begun: Instant,
    last: (Instant, u64),
}

/// How a crawl ended.
pub(crate) struct Ended {
    pub state: State,
    pub complete: bool,
}

/// Batches of seeds the writer may have at a time.
const SEEDS_AHEAD: usize = 2;

/// Items the writer may have at a time.
pub(crate) fn capacity(config: &Config) -> usize {
    config.max_unacked + SEEDS_AHEAD
}

/// What a crawl works with.
pub(crate) struct Parts {
    pub state: State,
    pub fetcher: Fetcher,
    pub worker: Worker,
    pub items: SyncSender<Item>,
}

/// Runs a crawl to its end, or until it is stopped. The writer's thread is left to be joined.
pub(crate) async fn crawl(
    config: &Config,
    clock: &Clock,
    parts: Parts,
    writer: &mut Writer,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Ended, Error> {
    let cores = || std::thread::available_parallelism().map_or(2, |n| n.get());
    let threads = if config.threads == 0 { cores() } else { config.threads };
    let Parts { state, fetcher, worker, items } = parts;
    let (told, tellings) = mpsc::channel(capacity(config));
    let (begun, captures) = (Instant::now(), state.counts.captures);
    let crawl = Crawl {
        config,
        clock,
        seeds_open: state.seeds.is_none(),
        seeds_ended: state.seeds.is_some(),
        state,
        fetcher,
        worker,
        cpu: Arc::new(Semaphore::new(threads)),
        tasks: JoinSet::new(),
        told,
        items,
        in_flight: 0,
        unacked: 0,
        committing: 0,
        seeds_ahead: 0,
        begun,
        last: (begun, captures),
    };
    crawl.run(writer, tellings, stop, progress).await
}

impl Crawl<'_> {
    async fn run(
        mut self,
        writer: &mut Writer,
        mut tellings: mpsc::Receiver<Told>,
        stop: &Stop,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Ended, Error> {
        let mut seeds = self.read_seeds()?;
        let mut ticks = interval(self.config.progress_interval.max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Set once a stop was asked for: fetches may go on until then.
        let mut last_moment: Option<Instant> = None;
        loop {
            let wake = match last_moment {
                None => self.dispatch()?,
                Some(moment) => Wake::At(moment),
            };
            let idle = self.in_flight == 0 && self.unacked == 0 && self.committing == 0;
            if idle && (last_moment.is_some() || matches!(wake, Wake::Done) && self.seeds_ended) {
                progress(&self.progress(last_moment.is_some()));
                let complete = self.seeds_ended && self.state.frontier.pending() == 0;
                return Ok(Ended { state: self.state, complete });
            }
            let wants_seeds = last_moment.is_none()
                && self.seeds_open
                && self.seeds_ahead < SEEDS_AHEAD
                && self.state.frontier.pending() < self.config.queue_high;
            let until = match wake {
                Wake::At(moment) => moment,
                Wake::Told | Wake::Done => Instant::now() + Duration::from_secs(3600),
            };
            tokio::select! {
                acked = writer.acks.recv() => match acked {
                    Some(acked) => self.acked(acked)?,
                    // The writer ended, which it does on its own only when it failed: its thread says how.
                    None => return Err(failed("writer")),
                },
                told = tellings.recv() => if let Some(told) = told { self.told(told)? },
                batch = seeds.recv(), if wants_seeds => match batch {
                    Some(Ok(batch)) => self.take_seeds(batch)?,
                    Some(Err(error)) => return Err(error),
                    None => return Err(failed("seed reader")),
                },
                () = sleep_until(until) => if last_moment.is_some() {
                    // Out of time: what is not fetched by now is fetched after a resume.
                    self.tasks.abort_all();
                    while self.tasks.join_next().await.is_some() {}
                    self.drain(&mut tellings)?;
                    (self.in_flight, self.unacked) = (0, 0);
                    last_moment = Some(Instant::now() + Duration::from_secs(3600));
                },
                () = stop.asked(), if last_moment.is_none() => last_moment = Some(Instant::now() + self.config.grace),
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
                _ = ticks.tick() => progress(&self.progress(last_moment.is_some())),
            }
        }
    }

    /// Hands out everything that may be fetched now; tells when to look again.
    fn dispatch(&mut self) -> Result<Wake, Error> {
        while self.in_flight < self.config.workers && self.unacked < self.config.max_unacked {
            let now = self.clock.now();
            match self.state.frontier.next(now) {
                Next::Lease(lease) => self.fetch(lease, now),
                Next::Refuse(lease, class, message) => self.refuse(lease, class, message, now),
                Next::WaitUntil(at) => {
                    let wait = u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0);
                    // Clocks jump; looking again every minute costs nothing.
                    return Ok(Wake::At(Instant::now() + Duration::from_millis(wait.min(60_000))));
                }
                Next::Blocked => return Ok(Wake::Told),
                Next::Empty => return Ok(Wake::Done),
            }
        }
        Ok(Wake::Told)
    }

    fn fetch(&mut self, lease: Lease, now: UnixMillis) {
        self.in_flight += 1;
        self.unacked += 1;
        let (fetcher, worker) = (self.fetcher.clone(), self.worker.clone());
        let (told, cpu) = (self.told.clone(), self.cpu.clone());
        self.tasks.spawn(async move {
            let body_limit = matches!(lease.id, LeaseId::Robots(_)).then_some(MAX_BYTES as u64 + 1);
            let facts = facts_of(&lease, &worker.run_id);
            let ask = Ask { url: lease.url.clone(), started_at: now, facts, body_limit };
            let fetched = fetcher.fetch(ask).await;
            // Hosts that share an address by the operator's choice are not neighbours.
            let shares = fetcher.is_redirected(&lease.url);
            let ip = fetched.facts.ip.filter(|_| !shares);
            let _ = told.send(Told::Ended(lease.id, answer_of(&fetched), ip)).await;
            prepare(cpu, told, move || worker.event(lease, fetched)).await;
        });
    }

    fn refuse(&mut self, lease: Lease, class: ErrorClass, message: String, now: UnixMillis) {
        self.unacked += 1;
        let (worker, told, cpu) = (self.worker.clone(), self.told.clone(), self.cpu.clone());
        self.tasks.spawn(prepare(cpu, told, move || worker.refusal(lease, class, message, now)));
    }

    fn told(&mut self, told: Told) -> Result<(), Error> {
        match told {
            Told::Ended(id, answer, ip) => {
                self.in_flight -= 1;
                self.state.frontier.released(self.clock.now(), id, answer, ip);
                Ok(())
            }
            Told::Ready(event) => {
                let mut site = None;
                if let Some(finding) = &event.robots {
                    site = self.state.frontier.errand_site(event.lease.id).cloned();
                    self.state.frontier.robots(self.clock.now(), event.lease.id, finding.answer.clone());
                }
                self.commit(Item::Event(event, site))
            }
            Told::Failed(error) => Err(error),
        }
    }

    /// Takes what tasks said before they were ended.
    fn drain(&mut self, tellings: &mut mpsc::Receiver<Told>) -> Result<(), Error> {
        while let Ok(told) = tellings.try_recv() {
            self.told(told)?;
        }
        Ok(())
    }

    fn commit(&mut self, item: Item) -> Result<(), Error> {
        self.committing += 1;
        self.items.try_send(item).map_err(|_| failed("writer"))
    }

    fn acked(&mut self, acked: Acked) -> Result<(), Error> {
        for done in acked.records {
            self.committing -= 1;
            match done {
                Done::Seeds(record) => {
                    self.seeds_ahead -= 1;
                    self.state.seeds(record)?;
                }
                Done::Event(event, live) => {
                    // After an abort, captures that were already on their way are no longer counted.
                    self.unacked = self.unacked.saturating_sub(1);
                    self.state.event(*event, Some(live), acked.offset)?;
                }
            }
        }
        self.seeds_ended |= self.state.seeds.is_some();
        match self.config.max_rejects {
            Some(limit) if self.state.counts.rejects > limit => {
                Err(Error::TooManyRejects { found: self.state.counts.rejects, limit })
            }
            _ => Ok(()),
        }
    }

    fn take_seeds(&mut self, batch: SeedBatch) -> Result<(), Error> {
        self.seeds_ahead += 1;
        self.seeds_open = batch.end.is_none();
        self.commit(Item::Seeds(batch))
    }

    /// Starts to read the seeds, where they were left off.
    fn read_seeds(&self) -> Result<mpsc::Receiver<Result<SeedBatch, Error>>, Error> {
        let (tx, rx) = mpsc::channel(1);
        if self.seeds_ended {
            return Ok(rx);
        }
        let (inputs, skip) = (self.config.seeds.clone(), self.state.items);
        let registry = self.config.registry.clone();
        let options = trawl_lists::Options { now: self.clock.now(), ..self.config.lists.clone() };
        std::thread::Builder::new()
            .name("trawl-seeds".into())
            .spawn(move || {
                let mut give = |batch| tx.blocking_send(Ok(batch)).is_ok();
                if let Err(error) = seeds::read(&inputs, &registry, &options, skip, &mut give) {
                    let _ = tx.blocking_send(Err(error));
                }
            })
            .map_err(|source| Error::Thread { what: "seed reader", source })?;
        Ok(rx)
    }

    fn progress(&mut self, stopping: bool) -> Progress {
        let now = Instant::now();
        let (then, before) = std::mem::replace(&mut self.last, (now, self.state.counts.captures));
        let seconds = now.duration_since(then).as_secs_f64();
        let made = self.state.counts.captures.saturating_sub(before);
        Progress {
            elapsed_ms: u64::try_from(now.duration_since(self.begun).as_millis()).unwrap_or(u64::MAX),
            counts: self.state.counts.clone(),
            rate: if seconds > 0.0 { made as f64 / seconds } else { 0.0 },
            in_flight: self.in_flight,
            unacked: self.unacked,
            queued: self.state.frontier.pending(),
            known: self.state.frontier.known(),
            hosts: self.state.frontier.hosts(),
            stopping,
        }
    }
}

/// Does the CPU work of an event, on a thread meant for that, a core's worth at a time.
async fn prepare(
    cpu: Arc<Semaphore>,
    told: mpsc::Sender<Told>,
    work: impl FnOnce() -> Result<Event, Error> + Send + 'static,
) {
    let Ok(permit) = cpu.acquire_owned().await else { return };
    let job = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        work()
    });
    let message = match job.await {
        Ok(Ok(event)) => Told::Ready(Box::new(event)),
        Ok(Err(error)) => Told::Failed(error),
        Err(_) => Told::Failed(failed("page worker")),
    };
    let _ = told.send(message).await;
}

/// When there may be something to do.
enum Wake {
    At(Instant),
    /// When a task or the writer says something.
    Told,
    /// Never: nothing is left.
    Done,
}
