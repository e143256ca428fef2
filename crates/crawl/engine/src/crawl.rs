//! The crawl loop: one task owns the frontier, everything else talks to it.
//!
//! ```text
//!            ┌──── synced ─► log batch ─► acknowledge ────┐
//! seeds ─► ┌─┴────────┐ lease  ┌───────┐ fetched ┌──────┐ │ ┌────────┐
//!          │  crawl   ├───────►│ fetch ├────────►│ page ├─┼►│ writer │
//!          │(frontier)│◄───────┴───────┘ ended   └──┬───┘ │ └───┬────┘
//!          └──────────┘◄────── ready ───────────────┘     └─────┘
//! ```
//! The loop runs on the thread that called [`crate::run`], not on one of the runtime's: the frontier may read its files here.
//! Every channel is bounded, and the number of captures that are not durable bounds them all: nobody waits for the crawl
//! task while it waits for them.

use crate::commit::{Item, Message, Share};
use crate::config::Config;
use crate::error::Error;
use crate::lease::Lease;
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
use trawl_fetch::{Ask, Fetcher, Validators};
use trawl_frontier::{Address, Answer, HostId, LeaseId, Next, Work};
use trawl_model::{Capability, Clock, ErrorClass, Outcome, UnixMillis};
use trawl_parse::robots::MAX_BYTES;
use trawl_url::WebUrl;

/// What tasks tell the crawl.
enum Told {
    /// A fetch ended: its host may be asked again.
    Ended(LeaseId, Answer, Option<IpAddr>),
    /// This machine could not make a fetch: the lease comes back.
    Returned(LeaseId, String),
    /// What came of a lookup; why, if this machine could not make it.
    Resolved(HostId, Result<Option<Address>, String>),
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
    /// Items it has not synced, and whether it was told that somebody waits for them.
    unsynced: usize,
    hurried: bool,
    /// Batches of seeds among them.
    seeds_ahead: usize,
    /// Whether the last batch of seeds is still to be read.
    seeds_open: bool,
    /// Whether the last batch is durable.
    seeds_ended: bool,
    begun: Instant,
    /// The time of day when this process began. The frontier's time goes on evenly from there, whatever is done to the
    /// clock.
    base: UnixMillis,
    last: (Instant, u64),
    /// What last kept this machine from fetching, until a fetch succeeds.
    trouble: Option<String>,
    /// When a server last answered, or the run began: a network that swallows everything gives no error to show.
    answered: Instant,
    /// Since when all that is left is in backoff and nobody has answered.
    stuck_since: Option<Instant>,
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
    // Each batch has at least one item, is hurried at most once and acknowledged once.
    3 * (config.max_unacked + SEEDS_AHEAD) + 1
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
    let (begun, captures) = (Instant::now(), state.counts().captures);
    let crawl = Crawl {
        config,
        clock,
        seeds_open: !state.seeds_ended(),
        seeds_ended: state.seeds_ended(),
        state,
        fetcher,
        worker,
        cpu: Arc::new(Semaphore::new(threads.saturating_mul(2))),
        tasks: JoinSet::new(),
        told,
        items,
        in_flight: 0,
        unacked: 0,
        committing: 0,
        unsynced: 0,
        hurried: false,
        seeds_ahead: 0,
        begun,
        base: clock.now(),
        last: (begun, captures),
        trouble: None,
        answered: Instant::now(),
        stuck_since: None,
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
                None => {
                    let wake = self.dispatch()?;
                    self.patience(wake)
                }
                Some(moment) => Wake::At(moment),
            };
            let wake = match wake {
                Wake::GiveUp => {
                    self.give_up()?;
                    continue;
                }
                wake => wake,
            };
            let idle = self.in_flight == 0 && self.unacked == 0 && self.committing == 0;
            if idle && (last_moment.is_some() || matches!(wake, Wake::Done) && self.seeds_ended) {
                progress(&self.progress(last_moment.is_some()));
                // Left to itself it ends when nothing may be fetched any more, whatever a limit holds back.
                let complete = self.seeds_ended && (last_moment.is_none() || self.state.frontier.pending() == 0);
                return Ok(Ended { state: self.state, complete });
            }
            let wants_seeds = last_moment.is_none()
                && self.seeds_open
                && self.seeds_ahead < SEEDS_AHEAD
                && self.state.frontier.pending() < self.config.queue_high as u64;
            self.hurry()?;
            let until = match wake {
                Wake::At(moment) => moment,
                Wake::Told | Wake::Done | Wake::GiveUp => Instant::now() + Duration::from_secs(3600),
            };
            tokio::select! {
                message = writer.messages.recv() => match message {
                    Some(message) => self.heard(message)?,
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
        let mut work = Vec::new();
        loop {
            let now = self.now();
            for wanted in self.state.frontier.wanted(now, usize::MAX) {
                self.look_up(wanted.id, &wanted.site)?;
            }
            let free = self.config.workers.saturating_sub(self.in_flight);
            let room = free.min(self.config.max_unacked.saturating_sub(self.unacked));
            if room == 0 {
                return Ok(Wake::Told);
            }
            let next = self.state.frontier.lease(now, room, &mut work)?;
            for work in work.drain(..) {
                match work {
                    Work::Fetch(lease) => self.fetch(lease.try_into()?),
                    Work::Refuse(lease, class, message) => self.refuse(lease.try_into()?, class, message),
                }
            }
            if self.state.frontier.wants_addresses() {
                continue;
            }
            match next {
                Next::Now => {}
                Next::WaitUntil(at) => {
                    let wait = u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0);
                    return Ok(Wake::At(Instant::now() + Duration::from_millis(wait.min(60_000))));
                }
                Next::Blocked => return Ok(Wake::Told),
                Next::Empty => return Ok(Wake::Done),
            }
        }
    }

    /// Tells the writer to sync at once when there is nothing left to do but to wait for it.
    fn hurry(&mut self) -> Result<(), Error> {
        let starved = self.in_flight == 0 || self.unacked >= self.config.max_unacked;
        if starved && self.unsynced > 0 && !std::mem::replace(&mut self.hurried, true) {
            self.items.try_send(Item::Hurry).map_err(|_| failed("writer"))?;
        }
        Ok(())
    }

    /// Now, by a clock that nobody sets.
    fn now(&self) -> UnixMillis {
        let elapsed = i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        UnixMillis(self.base.0.saturating_add(elapsed))
    }

    /// Waits for what is in backoff, but not for ever.
    fn patience(&mut self, wake: Wake) -> Wake {
        let idle = self.in_flight == 0 && self.unacked == 0 && self.committing == 0;
        if !(idle && self.seeds_ended && self.state.frontier.only_backoff()) {
            return wake;
        }
        let until = *self.stuck_since.get_or_insert_with(Instant::now) + self.config.wait;
        match wake {
            _ if Instant::now() >= until => Wake::GiveUp,
            Wake::At(moment) => Wake::At(moment.min(until)),
            wake => wake,
        }
    }

    fn give_up(&mut self) -> Result<(), Error> {
        let why = format!("waited {} s", self.config.wait.as_secs());
        let why = self.trouble.as_ref().map_or(why.clone(), |trouble| format!("{why}: {trouble}"));
        let now = self.now();
        let forgotten = self.state.frontier.give_up(now, &why)?;
        self.state.progress.counts.forgotten(forgotten);
        self.stuck_since = None;
        Ok(())
    }

    fn look_up(&mut self, id: HostId, site: &str) -> Result<(), Error> {
        let url = WebUrl::parse(site)
            .map_err(|reject| Error::Note { what: "a site of the frontier", found: reject.to_string() })?;
        // Hosts that share an address by the operator's choice are not neighbours.
        if self.fetcher.is_redirected(&url) {
            let now = self.now();
            self.state.frontier.ready(now, id, Ok(None));
            return Ok(());
        }
        let (fetcher, told) = (self.fetcher.clone(), self.told.clone());
        self.tasks.spawn(async move {
            let found = match fetcher.address(&url).await {
                Ok(found) => Ok(Some(found)),
                Err(failed) if failed.class == ErrorClass::LocalResource => Err(failed.message),
                // The fetch will meet the same failure, and record it.
                Err(_) => Ok(None),
            };
            let _ = told.send(Told::Resolved(id, found)).await;
        });
        Ok(())
    }

    fn fetch(&mut self, lease: Lease) {
        let now = self.clock.now();
        self.in_flight += 1;
        self.unacked += 1;
        let (fetcher, worker) = (self.fetcher.clone(), self.worker.clone());
        let (told, cpu) = (self.told.clone(), self.cpu.clone());
        self.tasks.spawn(async move {
            let body_limit = matches!(lease.id, LeaseId::Robots(_)).then_some(MAX_BYTES as u64 + 1);
            let facts = facts_of(&lease, &worker.run_id);
            // An archive without revisits needs every body.
            let revisits = worker.carries.has(Capability::Revisits);
            let validators = if revisits { worker.prior_of(&lease).validators } else { Validators::default() };
            let ask = Ask { facts, body_limit, validators, spacing: lease.delay, ..Ask::new(lease.url.clone(), now) };
            let fetched = fetcher.fetch(ask).await;
            // Hosts that share an address by the operator's choice are not neighbours.
            let shares = fetcher.is_redirected(&lease.url);
            let ip = fetched.facts.ip.filter(|_| !shares);
            if let Outcome::Failed(failed) = &fetched.outcome
                && failed.class == ErrorClass::LocalResource
            {
                // A full disk does not get better by downloading again.
                if let Some(error) = fetcher.take_storage_error() {
                    let _ = told.send(Told::Failed(error.into())).await;
                    return;
                }
                let _ = told.send(Told::Returned(lease.id, failed.message.clone())).await;
                return;
            }
            let _ = told.send(Told::Ended(lease.id, answer_of(&fetched), ip)).await;
            prepare(cpu, told, move || worker.event(lease, fetched)).await;
        });
    }

    fn refuse(&mut self, lease: Lease, class: ErrorClass, message: String) {
        let now = self.clock.now();
        self.unacked += 1;
        let (worker, told, cpu) = (self.worker.clone(), self.told.clone(), self.cpu.clone());
        self.tasks.spawn(prepare(cpu, told, move || worker.refusal(lease, class, message, now)));
    }

    fn told(&mut self, told: Told) -> Result<(), Error> {
        match told {
            Told::Ended(id, answer, ip) => {
                self.in_flight -= 1;
                let now = self.now();
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
            Told::Returned(id, why) => {
                self.in_flight -= 1;
                self.unacked -= 1;
                let now = self.now();
                self.state.frontier.returned(now, id)?;
                self.trouble = Some(why);
                Ok(())
            }
            Told::Resolved(id, found) => {
                let found = found.map_err(|why| self.trouble = Some(why));
                let now = self.now();
                self.state.frontier.ready(now, id, found);
                Ok(())
            }
            Told::Ready(event) => {
                let mut site = None;
                if let Some(finding) = &event.robots {
                    site = self.state.frontier.errand_site(event.lease.id).map(str::to_owned);
                    let now = self.now();
                    self.state.frontier.robots(now, event.lease.id, finding.answer.clone())?;
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
        self.unsynced += 1;
        self.items.try_send(item).map_err(|_| failed("writer"))
    }

    fn heard(&mut self, message: Message) -> Result<(), Error> {
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

    fn acked(&mut self, Share { events, seeds }: Share) -> Result<(), Error> {
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
        let (inputs, skip) = (self.state.run.inputs.clone(), self.state.progress.items);
        let (registry, rules) = (self.config.registry.clone(), self.config.rules.clone());
        let options = trawl_lists::Options { now: self.clock.now(), ..self.config.lists.clone() };
        std::thread::Builder::new()
            .name("trawl-seeds".into())
            .spawn(move || {
                let mut give = |batch| tx.blocking_send(Ok(batch)).is_ok();
                if let Err(error) = seeds::read(&inputs, &registry, &options, &rules, skip, &mut give) {
                    let _ = tx.blocking_send(Err(error));
                }
            })
            .map_err(|source| Error::Thread { what: "seed reader", source })?;
        Ok(rx)
    }

    fn progress(&mut self, stopping: bool) -> Progress {
        let now = Instant::now();
        let (then, before) = std::mem::replace(&mut self.last, (now, self.state.counts().captures));
        let seconds = now.duration_since(then).as_secs_f64();
        let made = self.state.counts().captures.saturating_sub(before);
        Progress {
            elapsed_ms: u64::try_from(now.duration_since(self.begun).as_millis()).unwrap_or(u64::MAX),
            counts: self.state.counts().clone(),
            rate: if seconds > 0.0 { made as f64 / seconds } else { 0.0 },
            in_flight: self.in_flight,
            unacked: self.unacked,
            queued: self.state.frontier.pending(),
            known: self.state.frontier.known(),
            hosts: self.state.frontier.hosts(),
            trouble: self.trouble.clone(),
            silence: (self.in_flight > 0).then(|| now.duration_since(self.answered).as_secs()),
            waiting: self.stuck_since.map(|since| self.config.wait.saturating_sub(since.elapsed()).as_secs()),
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
    /// Now: all that is left was waited for long enough.
    GiveUp,
}
