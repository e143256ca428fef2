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
//! Every channel is bounded, and the number of captures that are not durable bounds them all: no thread waits for the crawl
//! task while it waits for them.

use crate::commit::Item;
use crate::config::Config;
use crate::error::Error;
use crate::governor::Governor;
use crate::message::TaskMessage;
use crate::page::Worker;
use crate::pool::PagePool;
use crate::report::{Progress, Waiting};
use crate::seeds::{self, SeedBatch, Taken};
use crate::state::State;
use crate::stop::Stop;
use crate::writer::{Writer, failed};
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use trawl_fetch::Fetcher;
use trawl_model::{Clock, UnixMillis};

pub(crate) struct Crawl<'a> {
    pub(crate) config: &'a Config,
    pub(crate) clock: &'a Clock,
    pub(crate) state: State,
    pub(crate) fetcher: Fetcher,
    pub(crate) worker: Worker,
    pub(crate) pages: PagePool,
    pub(crate) tasks: JoinSet<()>,
    pub(crate) told: mpsc::Sender<TaskMessage>,
    pub(crate) items: SyncSender<Item>,
    pub(crate) governor: Governor,
    /// Fetches under way.
    pub(crate) in_flight: usize,
    /// Captures that are not durable, fetches under way included.
    pub(crate) unacked: usize,
    /// Items the writer has and has not acknowledged.
    pub(crate) committing: usize,
    /// Items it has not synced, and whether it was told that somebody waits for them.
    pub(crate) unsynced: usize,
    pub(crate) hurried: bool,
    /// Batches of seeds among them.
    pub(crate) seeds_ahead: usize,
    /// Whether the last batch of seeds is still to be read.
    pub(crate) seeds_open: bool,
    /// Whether the last batch is durable.
    pub(crate) seeds_ended: bool,
    pub(crate) begun: Instant,
    /// The time of day when this process began. The frontier's time goes on evenly from there, whatever is done to the
    /// clock.
    pub(crate) base: UnixMillis,
    pub(crate) last: (Instant, u64),
    /// What last kept this machine from fetching, until a fetch succeeds.
    pub(crate) trouble: Option<String>,
    /// When a server last answered, or the run began: a network that swallows everything gives no error to show.
    pub(crate) answered: Instant,
    /// Since when all that is left is in backoff and no host has answered.
    pub(crate) stuck_since: Option<Instant>,
    /// Body bytes of the run, those under way to the archive included.
    pub(crate) spent_bytes: u64,
    /// Captures per second over the last half a minute or so.
    average: f64,
}

/// How a crawl ended.
pub(crate) struct Ended {
    pub state: State,
    pub complete: bool,
}

/// Seconds over which the rate is averaged for an estimate of what is left.
const AVERAGED_S: f64 = 30.0;
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
    let (told, rx) = mpsc::channel(capacity(config));
    let (begun, captures, spent_bytes) = (Instant::now(), state.counts().captures, state.counts().body_bytes);
    let crawl = Crawl {
        config,
        clock,
        seeds_open: !state.seeds_ended(),
        seeds_ended: state.seeds_ended(),
        state,
        fetcher,
        worker,
        pages: PagePool::start(threads.saturating_mul(2), &told)?,
        governor: Governor::new(config.workers),
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
        spent_bytes,
        average: 0.0,
    };
    crawl.run(writer, rx, stop, progress).await
}

impl Crawl<'_> {
    async fn run(
        mut self,
        writer: &mut Writer,
        mut rx: mpsc::Receiver<TaskMessage>,
        stop: &Stop,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Ended, Error> {
        let mut seeds = self.read_seeds()?;
        let mut ticks = interval(self.config.progress_interval.max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let time_over = self.config.budget.time.map(|time| self.begun + time);
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
            // However many URLs wait: they are on disk, and those of a slow host must not hold back the hosts after it.
            let wants_seeds = last_moment.is_none() && self.seeds_open && self.seeds_ahead < SEEDS_AHEAD;
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
                message = rx.recv() => if let Some(message) = message { self.told(message)? },
                batch = seeds.recv(), if wants_seeds => match batch {
                    Some(Ok(batch)) => self.take_seeds(batch)?,
                    Some(Err(error)) => return Err(error),
                    None => return Err(failed("seed reader")),
                },
                () = sleep_until(until) => if last_moment.is_some() {
                    // Out of time: what is not fetched by now is fetched after a resume.
                    self.tasks.abort_all();
                    while self.tasks.join_next().await.is_some() {}
                    self.drain(&mut rx)?;
                    (self.in_flight, self.unacked) = (0, 0);
                    last_moment = Some(Instant::now() + Duration::from_secs(3600));
                },
                () = stop.asked(), if last_moment.is_none() => last_moment = Some(Instant::now() + self.config.grace),
                () = sleep_until(time_over.unwrap_or(until)), if last_moment.is_none() && time_over.is_some() => {
                    last_moment = Some(Instant::now() + self.config.grace);
                }
                Some(_) = self.tasks.join_next(), if !self.tasks.is_empty() => {}
                _ = ticks.tick() => progress(&self.progress(last_moment.is_some())),
            }
        }
    }

    /// Tells the writer to sync at once when there is little left to do but to wait for it. Not for the first few captures while
    /// as many are still prepared: a crawl with 32 workers synced 100 times a second, for a dozen captures each.
    fn hurry(&mut self) -> Result<(), Error> {
        let starved = self.in_flight == 0 || self.unacked >= self.config.max_unacked;
        let half = self.unsynced.saturating_mul(2) >= self.unacked;
        if starved && half && self.unsynced > 0 && !std::mem::replace(&mut self.hurried, true) {
            self.items.try_send(Item::Hurry).map_err(|_| failed("writer"))?;
        }
        Ok(())
    }

    /// Now, by a clock that cannot be set.
    pub(crate) fn now(&self) -> UnixMillis {
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

    /// Starts to read the seeds, where they were left off.
    fn read_seeds(&self) -> Result<mpsc::Receiver<Result<SeedBatch, Error>>, Error> {
        let (tx, rx) = mpsc::channel(1);
        if self.seeds_ended {
            return Ok(rx);
        }
        let (inputs, progress) = (self.state.run.inputs.clone(), &self.state.progress);
        let taken = Taken { items: progress.items, digest: progress.items_digest.clone() };
        let (registry, rules) = (self.config.registry.clone(), self.config.rules.clone());
        let options = trawl_lists::Options { now: self.clock.now(), ..self.config.lists.clone() };
        std::thread::Builder::new()
            .name("trawl-seeds".into())
            .spawn(move || {
                let mut give = |batch| tx.blocking_send(Ok(batch)).is_ok();
                if let Err(error) = seeds::read(&inputs, &registry, &options, &rules, taken, &mut give) {
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
        let rate = if seconds > 0.0 { made as f64 / seconds } else { 0.0 };
        // The first seconds of a run are slow: they count for less and less.
        let share = (seconds / AVERAGED_S).min(1.0);
        self.average = if self.average > 0.0 { self.average * (1.0 - share) + rate * share } else { rate };
        let queued = self.state.frontier.pending();
        let next = self.state.frontier.next_waiting().filter(|_| self.in_flight < self.governor.limit());
        let time = self.now();
        Progress {
            elapsed_ms: u64::try_from(now.duration_since(self.begun).as_millis()).unwrap_or(u64::MAX),
            counts: self.state.counts().clone(),
            rate,
            in_flight: self.in_flight,
            limit: self.governor.limit(),
            most: self.governor.most(),
            // Nothing comes while only hosts in backoff are left: the rate would promise years.
            eta_s: (self.average > 0.0 && self.stuck_since.is_none()).then(|| {
                let by_rate = (queued as f64 / self.average).round() as u64;
                by_rate.max(self.state.frontier.longest_queue().as_secs())
            }),
            next: next.map(|(host, at, failed)| Waiting {
                host,
                wait_ms: u64::try_from(at.0.saturating_sub(time.0)).unwrap_or(0),
                backoff: failed,
            }),
            unacked: self.unacked,
            queued,
            known: self.state.frontier.known(),
            hosts: self.state.frontier.hosts(),
            trouble: self.trouble.clone(),
            silence: (self.in_flight > 0).then(|| now.duration_since(self.answered).as_secs()),
            waiting: self.stuck_since.map(|since| self.config.wait.saturating_sub(since.elapsed()).as_secs()),
            stopping,
        }
    }
}

/// When there may be something to do.
pub(crate) enum Wake {
    At(Instant),
    /// When a task or the writer says something.
    Told,
    /// Never: nothing is left.
    Done,
    /// Now: all that is left was waited for long enough.
    GiveUp,
}
