//! The threads that digest, compress and search pages.
//!
//! They are few and stay. tokio's threads for blocking work soon are dozens and take pages in turn, and each has a compressor and
//! an arena of the allocator of its own, which have left the processor's caches by its next turn.

use crate::error::Error;
use crate::message::TaskMessage;
use crate::page::Event;
use crate::writer::failed;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

type Job = Box<dyn FnOnce() -> Result<Event, Error> + Send>;

/// Closed when it is dropped: jobs that no thread has begun are dropped, too.
pub(crate) struct PagePool(Jobs);

/// Where a pool takes its jobs from. Clones share it. At most one job waits for each capture that is not durable, and those are
/// bounded.
#[derive(Clone)]
pub(crate) struct Jobs(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    added: Condvar,
}

struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl PagePool {
    pub(crate) fn start(threads: usize, told: &mpsc::Sender<TaskMessage>) -> Result<Self, Error> {
        let queue = Mutex::new(Queue { jobs: VecDeque::new(), closed: false });
        let pool = Self(Jobs(Arc::new(Shared { queue, added: Condvar::new() })));
        for _ in 0..threads {
            let (jobs, told) = (pool.0.clone(), told.clone());
            std::thread::Builder::new()
                .name("trawl-page".into())
                .spawn(move || jobs.work(&told))
                .map_err(|source| Error::Thread { what: "page worker", source })?;
        }
        Ok(pool)
    }

    pub(crate) fn jobs(&self) -> Jobs {
        self.0.clone()
    }
}

impl Drop for PagePool {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        (queue.jobs, queue.closed) = (VecDeque::new(), true);
        self.0.0.added.notify_all();
    }
}

impl Jobs {
    pub(crate) fn add(&self, job: impl FnOnce() -> Result<Event, Error> + Send + 'static) {
        let mut queue = self.lock();
        if !queue.closed {
            queue.jobs.push_back(Box::new(job));
            self.0.added.notify_one();
        }
    }

    fn work(&self, told: &mpsc::Sender<TaskMessage>) {
        while let Some(job) = self.next() {
            let message = match catch_unwind(AssertUnwindSafe(job)) {
                Ok(Ok(event)) => TaskMessage::Ready(Box::new(event)),
                Ok(Err(error)) => TaskMessage::Failed(error),
                Err(_) => TaskMessage::Failed(failed("page worker")),
            };
            // The crawl ended, and with it the pool.
            if told.blocking_send(message).is_err() {
                return;
            }
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            match queue.jobs.pop_front() {
                Some(job) => return Some(job),
                None if queue.closed => return None,
                None => queue = self.0.added.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// No job runs under the lock, so a panic leaves the queue as it was.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
