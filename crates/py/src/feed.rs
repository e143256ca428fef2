//! Batches made by one thread and read by another.
//!
//! The lake and the archives push rows; Arrow's consumers pull batches. A thread stands between, with room for two batches:
//! it waits while the reader does not read, and ends when the reader is dropped.

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use trawl_store::Cancel;

/// What comes through the channel; `None` is the end. A thread that panics just goes away, and its table must not look complete.
type Fed = Option<Result<RecordBatch, ArrowError>>;

/// Batches that are ready before anybody asks for them.
const AHEAD: usize = 2;

/// What came of making batches.
pub type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Where a maker puts its batches.
pub struct Sink {
    batches: SyncSender<Fed>,
    /// Set when the reader is gone.
    pub cancel: Cancel,
}

impl Sink {
    /// Hands over a batch; `false` when the reader is gone.
    pub fn push(&self, batch: RecordBatch) -> bool {
        self.batches.send(Some(Ok(batch))).is_ok()
    }
}

/// A reader of batches that a thread makes.
pub struct Feed {
    schema: SchemaRef,
    batches: Receiver<Fed>,
    ended: bool,
    cancel: Cancel,
}

impl Feed {
    /// Starts a thread that runs `make` until `cancel` or the end of the reader.
    pub fn start(
        schema: SchemaRef,
        cancel: Cancel,
        make: impl FnOnce(&Sink) -> Outcome + Send + 'static,
    ) -> std::io::Result<Self> {
        let (send, batches) = sync_channel(AHEAD);
        let sink = Sink { batches: send, cancel: cancel.clone() };
        std::thread::Builder::new().name("trawl rows".into()).spawn(move || {
            let end = make(&sink).err().map(|error| Err(ArrowError::ExternalError(error)));
            // The reader may be gone, and then the error is not needed.
            let _ = sink.batches.send(end);
        })?;
        Ok(Self { schema, batches, ended: false, cancel })
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Iterator for Feed {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let fed = self.batches.recv().unwrap_or_else(|_| {
            let text = "the thread that reads these rows ended before their end";
            Some(Err(ArrowError::ExternalError(text.into())))
        });
        self.ended = !matches!(fed, Some(Ok(_)));
        fed
    }
}

impl RecordBatchReader for Feed {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
