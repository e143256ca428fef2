//! A server in memory with trouble in front of it.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartId, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// It never arrives, or is refused: 500, 503, SlowDown.
    Before,
    /// It is done, and the answer is lost.
    After,
    /// The answer comes late.
    Late,
    /// The body of the answer ends early; of a list, what is newest is missing.
    Cut,
}

/// A server in memory; clones by [`Faulty::calm`] are the same server without trouble.
#[derive(Debug)]
pub struct Faulty {
    server: Arc<InMemory>,
    chance: AtomicU64,
    percent: u64,
    count: AtomicU64,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

fn trouble(what: &str) -> Error {
    Error::Generic { store: "faulty", source: format!("503 SlowDown ({what})").into() }
}

impl Faulty {
    /// `percent` of all requests go wrong.
    pub fn new(seed: u64, percent: u64) -> Self {
        let server = Arc::new(InMemory::new());
        Self { server, chance: AtomicU64::new(seed << 32), percent, count: AtomicU64::new(0) }
    }

    /// The same server, without trouble.
    pub fn calm(&self) -> Self {
        Self { server: self.server.clone(), chance: AtomicU64::new(0), percent: 0, count: AtomicU64::new(0) }
    }

    /// Requests so far.
    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    fn next(&self) -> Option<Trouble> {
        self.count.fetch_add(1, Relaxed);
        let mut z = self.chance.fetch_add(1, Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^= z >> 32;
        let kinds = [Trouble::Before, Trouble::After, Trouble::Late, Trouble::Cut];
        (z % 100 < self.percent).then(|| kinds[(z >> 40) as usize % kinds.len()])
    }

    async fn around<T>(&self, act: impl Future<Output = Result<T>>) -> Result<T> {
        match self.next() {
            Some(Trouble::Before | Trouble::Cut) => Err(trouble("before")),
            Some(Trouble::After) => {
                act.await?;
                Err(trouble("after"))
            }
            Some(Trouble::Late) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                act.await
            }
            None => act.await,
        }
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.around(self.server.put_opts(location, payload, opts)).await
    }

    async fn put_multipart_opts(&self, path: &Path, opts: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.server.put_multipart_opts(path, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let trouble_now = self.next();
        if matches!(trouble_now, Some(Trouble::Before | Trouble::After)) {
            return Err(trouble("get"));
        }
        let head = options.head;
        let result = self.server.get_opts(location, options).await?;
        if head || trouble_now != Some(Trouble::Cut) {
            return Ok(result);
        }
        let (meta, range) = (result.meta.clone(), result.range.clone());
        let (attributes, extensions) = (result.attributes.clone(), result.extensions.clone());
        let bytes = result.bytes().await?;
        let cut: Bytes = bytes.slice(..bytes.len() / 2);
        let payload = GetResultPayload::Stream(stream::once(async move { Ok(cut) }).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.next() {
            Some(Trouble::Before) => stream::once(async { Err(trouble("delete")) }).boxed(),
            _ => self.server.delete_stream(locations),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let listed = self.server.list(prefix);
        match self.next() {
            Some(Trouble::Before | Trouble::After) => stream::once(async { Err(trouble("list")) }).boxed(),
            // A list of a moment ago: what came last is not in it.
            Some(Trouble::Cut) => {
                let stale = async move {
                    let mut all: Vec<_> = listed.collect().await;
                    all.pop();
                    stream::iter(all)
                };
                stream::once(stale).flatten().boxed()
            }
            _ => listed,
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.server.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.server.copy_opts(from, to, options).await
    }
}

#[async_trait]
impl MultipartStore for Faulty {
    async fn create_multipart(&self, path: &Path) -> Result<MultipartId> {
        self.around(self.server.create_multipart(path)).await
    }

    async fn put_part(&self, path: &Path, id: &MultipartId, part: usize, data: PutPayload) -> Result<PartId> {
        self.around(self.server.put_part(path, id, part, data)).await
    }

    async fn complete_multipart(&self, path: &Path, id: &MultipartId, parts: Vec<PartId>) -> Result<PutResult> {
        self.around(self.server.complete_multipart(path, id, parts)).await
    }

    async fn abort_multipart(&self, path: &Path, id: &MultipartId) -> Result<()> {
        self.server.abort_multipart(path, id).await
    }
}
