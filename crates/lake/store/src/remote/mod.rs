//! A bucket as a store: `s3://bucket/prefix`, or anything else that `object_store` speaks.
//!
//! ```text
//! caller's thread ── Store (synchronous) ──► a small runtime of our own ── object_store ──► the server
//!      waits                                  ranges joined, at most N requests at once, retried under a budget
//! ```
//! `object_store` itself retries nothing here: one place decides what is tried again, how often, and counts it.

mod files;
mod ranges;
mod retry;
mod runtime;
mod settings;
mod upload;

pub use files::RemoteFs;
pub use retry::{Retries, Usage};
pub use settings::{RemoteSettings, is_address, is_remote};

use crate::{Created, Error, Listed, RangeRead, Result, Store, Upload, check_path};
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// A prefix of a bucket. Clones share connections, limits and counters.
#[derive(Clone)]
pub struct RemoteStore(Arc<Inner>);

struct Inner {
    objects: Arc<dyn ObjectStore>,
    /// The same server, for uploads in parts; one that is only read has none.
    parts: Option<Arc<dyn MultipartStore>>,
    root: Path,
    place: String,
    retry: retry::Retry,
    permits: Semaphore,
    settings: RemoteSettings,
}

impl fmt::Debug for RemoteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteStore").field(&self.0.place).finish()
    }
}

impl RemoteStore {
    /// Objects below `root` of any implementation.
    pub fn new(
        objects: Arc<dyn ObjectStore>,
        parts: Option<Arc<dyn MultipartStore>>,
        root: Path,
        place: String,
        settings: RemoteSettings,
    ) -> Self {
        let retry = retry::Retry::new(settings.retries.clone());
        let permits = Semaphore::new(settings.requests.max(1));
        Self(Arc::new(Inner { objects, parts, root, place, retry, permits, settings }))
    }

    /// What was asked of the server so far.
    pub fn usage(&self) -> Usage {
        self.0.retry.usage()
    }
}

impl Inner {
    fn full(&self, path: &str) -> Result<Path> {
        check_path(path)?;
        self.below(path)
    }

    fn below(&self, path: &str) -> Result<Path> {
        let full = if self.root.as_ref().is_empty() { path.to_owned() } else { format!("{}/{path}", self.root) };
        Path::parse(full).map_err(|_| Error::bad_name("a path that an object store takes", path))
    }

    /// One request, tried until it succeeds, cannot succeed, or the budget is used up.
    async fn attempt<T, F>(&self, path: &str, op: &'static str, request: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let once = || async {
            // Never closed, so this cannot fail; without a permit the request would only be one too many.
            let _permit = self.permits.acquire().await.ok();
            request().await
        };
        self.retry.run(&self.place, path, op, once).await
    }

    async fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        let full = self.full(path)?;
        let got = self.attempt(path, "get", || async {
            let result = self.objects.get_opts(&full, GetOptions::default()).await?;
            let found = result.meta.size;
            if found > limit {
                return Ok(Err(found));
            }
            let bytes = result.bytes().await?;
            whole(bytes, found).map(Ok)
        });
        match got.await? {
            Ok(bytes) => {
                self.retry.count_bytes(bytes.len());
                Ok(bytes)
            }
            Err(found) => Err(Error::OverLimit { path: path.to_owned(), found, limit }),
        }
    }

    async fn range(&self, path: &str, range: std::ops::Range<u64>) -> Result<Bytes> {
        let full = self.full(path)?;
        self.range_at(path, &full, range).await
    }

    async fn range_at(&self, path: &str, full: &Path, range: std::ops::Range<u64>) -> Result<Bytes> {
        let wanted = range.end.saturating_sub(range.start);
        let got = self.attempt(path, "get", || async {
            let range = GetRange::Bounded(range.clone());
            let options = GetOptions { range: Some(range), ..GetOptions::default() };
            let result = self.objects.get_opts(full, options).await?;
            let size = result.meta.size;
            // A range that reaches past the end is cut by the server, not refused.
            if result.range.end.saturating_sub(result.range.start) != wanted {
                return Ok(Err(size));
            }
            whole(result.bytes().await?, wanted).map(Ok)
        });
        let short = |found: String| Error::Corrupt {
            path: path.to_owned(),
            offset: range.start,
            expected: "the bytes asked for",
            found,
        };
        match got.await {
            Ok(Ok(bytes)) => {
                self.retry.count_bytes(bytes.len());
                Ok(bytes)
            }
            Ok(Err(size)) => Err(short(format!("an object of {size} bytes"))),
            // A range that begins past the end is refused, in as many ways as there are servers.
            Err(error @ Error::Remote { .. }) => match self.len_at(path, full).await {
                Ok(size) if size < range.end => Err(short(format!("an object of {size} bytes"))),
                Err(gone) if gone.is_not_found() => Err(gone),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    async fn len(&self, path: &str) -> Result<u64> {
        let full = self.full(path)?;
        self.len_at(path, &full).await
    }

    async fn len_at(&self, path: &str, full: &Path) -> Result<u64> {
        Ok(self.head_at(path, full).await?.size)
    }

    async fn head_at(&self, path: &str, full: &Path) -> Result<ObjectMeta> {
        self.attempt(path, "head", || self.objects.head(full)).await
    }

    async fn put(&self, path: &str, bytes: Bytes, mode: PutMode) -> Result<()> {
        let full = self.full(path)?;
        self.attempt(path, "put", || {
            let options = PutOptions { mode: mode.clone(), ..PutOptions::default() };
            self.objects.put_opts(&full, PutPayload::from_bytes(bytes.clone()), options)
        })
        .await?;
        Ok(())
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<Created> {
        // "Conflict" may also mean that another create of this name is under way and may yet fail. So the object is asked
        // for before it is believed.
        for attempt in 0..8u32 {
            match self.put(path, bytes.clone(), PutMode::Create).await {
                Ok(()) => return Ok(Created::New),
                Err(Error::Exists { .. }) => {}
                Err(error) => return Err(error),
            }
            match self.len(path).await {
                Ok(_) => return Ok(Created::Exists),
                Err(error) if error.is_not_found() => self.retry.pause(attempt).await,
                Err(error) => return Err(error),
            }
        }
        Err(Error::Contended { path: path.to_owned(), attempts: 8 })
    }

    async fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        let full = self.full(dir)?;
        let found = self.attempt(dir, "list", || self.objects.list(Some(&full)).try_collect::<Vec<_>>()).await?;
        let root = if self.root.as_ref().is_empty() { String::new() } else { format!("{}/", self.root) };
        let listed = found.into_iter().filter_map(|meta| {
            let path = meta.location.as_ref().strip_prefix(&root)?.to_owned();
            // Anything else is not an object of a lake.
            check_path(&path).ok()?;
            Some(Listed { path, len: meta.size })
        });
        let mut listed: Vec<_> = listed.collect();
        listed.sort_unstable();
        Ok(listed)
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let full = self.full(path)?;
        match self.attempt(path, "delete", || self.objects.delete(&full)).await {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        }
    }
}

/// Bytes that are as many as were promised: a connection that broke off early is not an end of file.
fn whole(bytes: Bytes, expected: u64) -> object_store::Result<Bytes> {
    if bytes.len() as u64 == expected {
        return Ok(bytes);
    }
    let source = format!("expected {expected} bytes of body, found {}", bytes.len()).into();
    Err(object_store::Error::Generic { store: "remote", source })
}

impl Store for RemoteStore {
    fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        let (inner, path) = (self.0.clone(), path.to_owned());
        runtime::wait(async move { inner.get(&path, limit).await })?
    }

    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>> {
        let inner = self.0.clone();
        let plan = ranges::Plan::new(reads, inner.settings.gap, inner.settings.part);
        let pieces = plan.pieces.clone();
        let got = runtime::wait(async move {
            let mut tasks = tokio::task::JoinSet::new();
            for (at, piece) in pieces.into_iter().enumerate() {
                let inner = inner.clone();
                tasks.spawn(async move { (at, inner.range(&piece.path, piece.range).await) });
            }
            let mut got: Vec<Option<Bytes>> = vec![None; tasks.len()];
            while let Some(done) = tasks.join_next().await {
                let (at, bytes) = done.map_err(|error| runtime::lost(&error))?;
                if let Some(place) = got.get_mut(at) {
                    *place = Some(bytes?);
                }
            }
            Ok::<_, Error>(got.into_iter().flatten().collect::<Vec<_>>())
        })??;
        plan.cut(reads, &got)
    }

    fn len(&self, path: &str) -> Result<u64> {
        let (inner, path) = (self.0.clone(), path.to_owned());
        runtime::wait(async move { inner.len(&path).await })?
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let (inner, path, bytes) = (self.0.clone(), path.to_owned(), Bytes::copy_from_slice(bytes));
        runtime::wait(async move { inner.put(&path, bytes, PutMode::Overwrite).await })?
    }

    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created> {
        let (inner, path, bytes) = (self.0.clone(), path.to_owned(), Bytes::copy_from_slice(bytes));
        runtime::wait(async move { inner.create(&path, bytes).await })?
    }

    fn upload(&self, path: &str) -> Result<Box<dyn Upload>> {
        Ok(Box::new(upload::PartUpload::begin(self.0.clone(), path)?))
    }

    fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        let (inner, dir) = (self.0.clone(), dir.to_owned());
        runtime::wait(async move { inner.list(&dir).await })?
    }

    fn delete(&self, path: &str) -> Result<()> {
        let (inner, path) = (self.0.clone(), path.to_owned());
        runtime::wait(async move { inner.delete(&path).await })?
    }

    fn open_local(&self, _path: &str) -> Option<PathBuf> {
        None
    }

    fn poll_every(&self) -> Duration {
        self.0.settings.poll
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn place(&self) -> String {
        self.0.place.clone()
    }
}

#[cfg(test)]
mod tests;
