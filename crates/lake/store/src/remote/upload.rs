//! An object written in parts, a few of them under way at a time. What fits into one part is one put.

use super::{Inner, runtime};
use crate::{Error, Result, Upload};
use bytes::{Bytes, BytesMut};
use object_store::multipart::PartId;
use object_store::path::Path;
use object_store::{PutMode, PutPayload};
use std::io::{self, Write};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Parts under way at a time: bounds the memory of an upload.
const AT_ONCE: usize = 4;

pub(super) struct PartUpload {
    inner: Arc<Inner>,
    path: String,
    buffer: BytesMut,
    len: u64,
    parts: Option<Parts>,
    failed: bool,
}

/// An upload that has begun on the server.
struct Parts {
    id: String,
    full: Path,
    done: Vec<(usize, PartId)>,
    running: JoinSet<Result<(usize, PartId)>>,
    next: usize,
}

impl PartUpload {
    pub(super) fn begin(inner: Arc<Inner>, path: &str) -> Result<Self> {
        inner.full(path)?;
        Ok(Self { inner, path: path.to_owned(), buffer: BytesMut::new(), len: 0, parts: None, failed: false })
    }

    fn send(&mut self, bytes: Bytes) -> Result<()> {
        let (inner, path) = (self.inner.clone(), self.path.clone());
        let mut parts = self.parts.take();
        let begun = runtime::wait(async move {
            let uploads = inner.parts.clone().ok_or_else(|| read_only(&inner.place))?;
            let full = inner.full(&path)?;
            if parts.is_none() {
                let id = inner.attempt(&path, "begin upload", || uploads.create_multipart(&full)).await?;
                let (done, running) = (Vec::new(), JoinSet::new());
                parts = Some(Parts { id, full: full.clone(), done, running, next: 0 });
            }
            let Some(mut parts) = parts else { return Err(read_only(&inner.place)) };
            while parts.running.len() >= AT_ONCE {
                collect(&mut parts).await?;
            }
            let (number, id) = (parts.next, parts.id.clone());
            parts.next += 1;
            parts.running.spawn(async move {
                let put = || uploads.put_part(&full, &id, number, PutPayload::from_bytes(bytes.clone()));
                Ok((number, inner.attempt(&path, "put part", put).await?))
            });
            Ok(parts)
        })??;
        self.parts = Some(begun);
        Ok(())
    }
}

async fn collect(parts: &mut Parts) -> Result<()> {
    if let Some(done) = parts.running.join_next().await {
        parts.done.push(done.map_err(|error| runtime::lost(&error))??);
    }
    Ok(())
}

fn read_only(place: &str) -> Error {
    Error::Refused { reason: format!("{place} can only be read") }
}

impl Write for PartUpload {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        if self.failed {
            return Err(io::Error::other("an earlier part could not be written"));
        }
        self.buffer.extend_from_slice(buf);
        self.len += buf.len() as u64;
        let part = usize::try_from(self.inner.settings.part).unwrap_or(8 << 20).max(5 << 20);
        while self.buffer.len() >= part {
            let bytes = self.buffer.split_to(part).freeze();
            self.send(bytes).map_err(|error| {
                self.failed = true;
                io::Error::other(error)
            })?;
        }
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for PartUpload {
    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.failed {
            return Err(Error::Refused { reason: format!("{}: a part could not be written", self.path) });
        }
        let (inner, path) = (self.inner.clone(), self.path.clone());
        if self.parts.is_none() {
            let bytes = std::mem::take(&mut self.buffer).freeze();
            return runtime::wait(async move { inner.put(&path, bytes, PutMode::Overwrite).await })?;
        }
        if !self.buffer.is_empty() {
            let bytes = std::mem::take(&mut self.buffer).freeze();
            self.send(bytes)?;
        }
        let (Some(mut parts), len) = (self.parts.take(), self.len) else { return Ok(()) };
        runtime::wait(async move {
            let uploads = inner.parts.clone().ok_or_else(|| read_only(&inner.place))?;
            let done = async {
                while !parts.running.is_empty() {
                    collect(&mut parts).await?;
                }
                parts.done.sort_unstable_by_key(|(number, _)| *number);
                let ids: Vec<_> = parts.done.iter().map(|(_, id)| id.clone()).collect();
                let complete = || uploads.complete_multipart(&parts.full, &parts.id, ids.clone());
                inner.attempt(&path, "complete upload", complete).await
            };
            let Err(error) = done.await else { return Ok(()) };
            // The answer to the completion may have been lost, and a second one finds no such upload. Names of uploads are
            // their writer's own, so an object of that length is this one.
            if inner.len(&path).await.is_ok_and(|found| found == len) {
                return Ok(());
            }
            let _ = uploads.abort_multipart(&parts.full, &parts.id).await;
            Err(error)
        })?
    }
}

impl Drop for PartUpload {
    fn drop(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        let Some(uploads) = self.inner.parts.clone() else { return };
        // Parts of an upload that was not completed cost money until somebody removes them.
        let _ = runtime::wait(async move {
            parts.running.shutdown().await;
            let _ = uploads.abort_multipart(&parts.full, &parts.id).await;
        });
    }
}
