//! Asking the lake on behalf of a request: within limits, with a version pinned, cancelled when its client has left.

use crate::asker::{Asker, Coding};
use crate::event::{Event, Facts};
use crate::failure::Failure;
use crate::server::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use std::collections::HashMap;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trawl_query::{Effort, Pace, Pinned, Principal, QueryError};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) type Answer = Result<Response, Failure>;

/// Bodies below this many bytes are not worth compressing.
const MIN_COMPRESSED: usize = 1024;

/// Bytes of JSON that a row takes, about.
const ROW_BYTES: usize = 320;

/// Tells a question that its asker has gone: when the request is dropped, so is this.
pub(crate) struct Waits(Arc<AtomicBool>);

impl Waits {
    /// An asker that waits, and the effort that an answer to it may take: past `soft` a partial answer is given, past `hard`
    /// none.
    pub(crate) fn new(soft: Duration, hard: Duration) -> (Self, Effort) {
        let gone = Arc::new(AtomicBool::new(false));
        let (seen, begun) = (gone.clone(), Instant::now());
        let effort = Effort::of(move || {
            if seen.load(Ordering::Relaxed) {
                return Pace::Stop;
            }
            let passed = begun.elapsed();
            if passed >= hard {
                Pace::Stop
            } else if passed >= soft {
                Pace::WrapUp
            } else {
                Pace::GoOn
            }
        });
        (Self(gone), effort)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether the lake has said what its state is, for a request that is given up: one that has not is away, however long it takes
/// until its store says so; one that has needs more time for this answer.
#[derive(Clone, Default)]
pub(crate) struct Reached(Arc<AtomicBool>);

impl Reached {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn too_late(&self) -> Failure {
        if self.0.load(Ordering::Relaxed) { Failure::timeout() } else { Failure::unavailable() }
    }
}

/// Requests that each client has under way.
#[derive(Default)]
pub(crate) struct Clients(Mutex<HashMap<u64, usize>>);

/// One request of a client, until it is answered.
pub(crate) struct Turn {
    clients: Arc<Clients>,
    client: u64,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, usize>> {
        // Numbers that are changed in one step: a panic elsewhere leaves them sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request of a client, a token or an address; refuses one past `most`, 0 being no limit.
    pub(crate) fn enter(self: &Arc<Self>, asker: &Asker, most: usize) -> Result<Option<Turn>, Failure> {
        if most == 0 {
            return Ok(None);
        }
        let client = if asker.mark == 0 { xxh3_64(format!("{:?}", asker.peer).as_bytes()) } else { asker.mark };
        let mut counts = self.lock();
        let count = counts.entry(client).or_default();
        if *count >= most {
            return Err(Failure::too_many());
        }
        *count += 1;
        drop(counts);
        Ok(Some(Turn { clients: self.clone(), client }))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut counts = self.clients.lock();
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}

/// What a question came to.
pub(crate) enum Told {
    /// The asker has it already.
    Unchanged,
    Body(Bytes, Coding),
}

/// Asks a question whose answer is JSON.
pub(crate) async fn ask<T, F>(state: &Arc<State>, asker: Asker, question: F) -> Answer
where
    T: Serialize + TellFacts,
    F: FnMut(&Pinned, &Principal) -> Result<T, QueryError> + Send + 'static,
{
    ask_cached(state, asker, None, question).await
}

/// The same, and keeps the answer under a name for clients that ask the same of the same version with the same rights.
pub(crate) async fn ask_cached<T, F>(state: &Arc<State>, asker: Asker, name: Option<String>, mut question: F) -> Answer
where
    T: Serialize + TellFacts,
    F: FnMut(&Pinned, &Principal) -> Result<T, QueryError> + Send + 'static,
{
    ask_bytes(state, asker, "application/json", name, move |pinned, who, facts| {
        let answer = question(pinned, who)?;
        *facts = answer.facts();
        // Room for all of it at once: a page of a thousand rows would be copied a dozen times as it grows.
        let rows = usize::try_from(facts.rows.unwrap_or(0)).unwrap_or(0).min(10_000);
        let mut body = Vec::with_capacity(1024 + rows * ROW_BYTES);
        serde_json::to_writer(&mut body, &answer).map_err(|error| QueryError::Lake { source: Box::new(error) })?;
        body.shrink_to_fit();
        Ok(body.into())
    })
    .await
}

/// Asks a question whose answer is bytes of this media type.
pub(crate) async fn ask_bytes<F>(
    state: &Arc<State>,
    asker: Asker,
    content_type: &'static str,
    name: Option<String>,
    mut question: F,
) -> Answer
where
    F: FnMut(&Pinned, &Principal, &mut Facts) -> Result<Bytes, QueryError> + Send + 'static,
{
    let turn = state.clients.enter(&asker, state.max_per_client)?;
    let permit = state.turn().await?;
    let (waits, effort) = Waits::new(state.budget, state.timeout);
    let (mine, limit, private) = (Arc::clone(state), state.timeout, asker.mark != 0);
    let name_of_asker = asker.name.clone();
    let reached = Reached::default();
    let seen = reached.clone();
    let work = tokio::task::spawn_blocking(move || {
        // Held until the work is done, not until the asker loses patience: a slow lake must not pile up threads.
        let _held = (permit, turn);
        let mut facts = Facts::default();
        let mut etag = String::new();
        let told = mine.lake.ask_within(&effort, |pinned| {
            seen.set();
            let mark = pinned.state_mark() ^ asker.mark.rotate_left(17);
            etag = format!("W/\"{mark:016x}\"");
            // `*` is any answer there is: whether there is one is not known yet.
            let any = asker.known.as_deref().is_some_and(|known| known.trim() == "*");
            if asker.known.as_deref().is_some_and(|known| is_known(known, &etag)) {
                return Ok(Told::Unchanged);
            }
            let key = name.as_ref().map(|name| (mark, name.clone()));
            let kept = key.as_ref().and_then(|key| mine.hot.get(key));
            let body = match kept {
                Some((body, known)) => {
                    facts = known;
                    body
                }
                None => {
                    let body = question(pinned, &asker.principal, &mut facts)?;
                    key.into_iter().for_each(|key| mine.hot.insert(key, (body.clone(), facts)));
                    body
                }
            };
            Ok(if any { Told::Unchanged } else { compressed(body, asker.coding) })
        });
        match told {
            Ok(told) => Ok((told, etag, facts)),
            Err(error) => Err(mine.failed(error)),
        }
    });
    let done = tokio::time::timeout(limit, work).await;
    drop(waits);
    let (told, etag, facts) = match done {
        Err(_) => return Err(reached.too_late()),
        Ok(Err(_)) => return Err(Failure::internal()),
        Ok(Ok(answer)) => answer?,
    };
    let mut response = match told {
        Told::Unchanged => StatusCode::NOT_MODIFIED.into_response(),
        Told::Body(body, coding) => {
            let mut response = ([(header::CONTENT_TYPE, content_type)], body).into_response();
            if let Some(name) = coding.name() {
                response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
            }
            response
        }
    };
    cacheable(&mut response, private);
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    response.extensions_mut().insert(facts);
    response.extensions_mut().insert(name_of_asker);
    Ok(response)
}

/// A caller that keeps an answer asks again before using it: a copy must not outlive a denial.
pub(crate) fn cacheable(response: &mut Response, private: bool) {
    let control = if private { "private, no-cache" } else { "no-cache" };
    let headers: [(HeaderName, &'static str); 2] =
        [(header::CACHE_CONTROL, control), (header::VARY, "authorization, x-api-key, accept-encoding")];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}

impl State {
    /// A place among the questions under way. Requests come in bursts, and a machine pauses: at a thousand a second, 64 are there
    /// after a pause of 64 ms that no client would notice. So a burst waits, in order of arrival; a queue that is full, or that
    /// does not move, means more requests than there are answers, and those get 503.
    async fn turn(&self) -> Result<OwnedSemaphorePermit, Failure> {
        self.turn_among(&self.permits, &self.waiting).await
    }

    /// The same among the streams under way. One may take an hour, but most are a capture or a few lines of `/cdx`, and a browser
    /// asks for those of a page all at once. Exports have places of their own: eight clients that read theirs slowly kept all of these
    /// waiting.
    pub(crate) async fn turn_to_stream(&self, is_export: bool) -> Result<OwnedSemaphorePermit, Failure> {
        let places = if is_export { &self.exports } else { &self.streams };
        self.turn_among(places, &self.waiting_to_stream).await
    }

    async fn turn_among(&self, permits: &Arc<Semaphore>, places: &Semaphore) -> Result<OwnedSemaphorePermit, Failure> {
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            return Ok(permit);
        }
        let _place = places.try_acquire().map_err(|_| Failure::busy())?;
        match tokio::time::timeout(self.max_wait, Arc::clone(permits).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(Failure::busy()),
        }
    }

    /// Tells the operator what concerns them, and makes an answer of an error.
    pub(crate) fn failed(&self, error: QueryError) -> Failure {
        if Failure::concerns_operator(&error) {
            (self.on_event)(&Event::LakeError(&error));
        }
        Failure::from(error)
    }
}

fn is_known(known: &str, etag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    known.split(',').any(|tag| bare(tag) == bare(etag))
}

fn compressed(body: Bytes, coding: Coding) -> Told {
    if body.len() < MIN_COMPRESSED {
        return Told::Body(body, Coding::Plain);
    }
    let packed = match coding {
        Coding::Plain => None,
        Coding::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&body).and_then(|()| encoder.finish()).ok()
        }
        Coding::Zstd => zstd::bulk::compress(&body, 1).ok(),
    };
    match packed {
        Some(packed) => Told::Body(packed.into(), coding),
        None => Told::Body(body, Coding::Plain),
    }
}

/// What of an answer may be logged.
pub(crate) trait TellFacts {
    fn facts(&self) -> Facts {
        Facts::default()
    }
}

impl TellFacts for trawl_query::DomainAnswer {
    fn facts(&self) -> Facts {
        Facts { domain_id: Some(self.domain_id), dataset_id: None, rows: Some(self.datasets.len() as u64) }
    }
}

impl TellFacts for trawl_query::UrlAnswer {
    fn facts(&self) -> Facts {
        Facts { rows: Some(self.items.len() as u64), ..Facts::default() }
    }
}

impl TellFacts for trawl_query::NamesAnswer {
    fn facts(&self) -> Facts {
        Facts { rows: Some(self.domains.len() as u64), ..Facts::default() }
    }
}

impl TellFacts for trawl_query::LakeStats {}

impl TellFacts for crate::v1::Datasets {
    fn facts(&self) -> Facts {
        Facts { rows: Some(self.datasets.len() as u64), ..Facts::default() }
    }
}
