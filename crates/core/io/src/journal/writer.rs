//! Writing a journal: many threads hand in batches, one of them writes and syncs for all.

use super::Options;
use super::format::{Batch, Frames, Header, encode_records};
use super::reader::JournalReader;
use crate::fs::{File, Fs, Mode};
use crate::publish::AtomicFile;
use crate::{Error, Op, Outcome, Result};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Where a batch stands. Ordered by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Which generation of the journal.
    pub generation: u64,
    /// Where its frame begins.
    pub offset: u64,
    /// Where its frame ends.
    pub end: u64,
}

/// A journal open for writing; share it by reference or `Arc`.
///
/// Dropping it writes nothing: what was submitted and not waited for is unacknowledged and may be absent.
#[derive(Debug)]
pub struct Journal {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    options: Options,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    file: Arc<dyn File>,
    header: Header,
    frames: Frames,
    /// Frames not yet written; the last ends at `end`.
    pending: Vec<u8>,
    end: u64,
    /// How far the file is synced.
    durable: u64,
    /// Whether some thread is writing and syncing outside the lock.
    busy: bool,
    /// Set by the first failure, after which nothing may be acknowledged: a sync that failed once can succeed later
    /// without having written what the first one lost.
    failed: Option<(io::ErrorKind, String)>,
}

impl Journal {
    /// Creates a journal with no batches. The name must be free: an error of kind `AlreadyExists` otherwise.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path, tag: &[u8], options: Options) -> Result<Journal> {
        let header = Header { generation: 1, tag: tag.to_vec() };
        let (file, frames, end) = start_file(fs, path, &header, &mut || Ok(None))?;
        if file.publish_new()? == Outcome::Lost {
            return Err(Error::io(Op::Create, path, io::ErrorKind::AlreadyExists.into()));
        }
        let file = fs.open(path, Mode::Write)?;
        Ok(Journal::opened(fs, path, options, file, header, frames, end))
    }

    pub(super) fn opened(
        fs: &Arc<dyn Fs>,
        path: &Path,
        options: Options,
        file: Box<dyn File>,
        header: Header,
        frames: Frames,
        end: u64,
    ) -> Journal {
        let file = Arc::from(file);
        let state = State { file, header, frames, pending: Vec::new(), end, durable: end, busy: false, failed: None };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Journal { fs: fs.clone(), path: path.into(), options, state, changed }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header of the current generation.
    pub fn header(&self) -> Header {
        self.lock().header.clone()
    }

    /// Everything submitted so far ends here; grows until the next rotation. For deciding when to make a checkpoint.
    pub fn end(&self) -> Position {
        let state = self.lock();
        Position { generation: state.header.generation, offset: state.end, end: state.end }
    }

    /// Appends one batch and returns once it is durable. Of threads that call this together, one sync serves all.
    pub fn commit<'a>(&self, records: impl IntoIterator<Item = &'a [u8]>) -> Result<Position> {
        let position = self.submit(records)?;
        self.wait(position)?;
        Ok(position)
    }

    /// Hands in one batch without waiting for it to be durable; waits only while the queue is full.
    pub fn submit<'a>(&self, records: impl IntoIterator<Item = &'a [u8]>) -> Result<Position> {
        let payload = encode_records(records);
        let len = u32::try_from(payload.len()).ok().filter(|&n| n > 0 && n <= self.options.max_batch_bytes);
        let Some(len) = len else {
            let (bytes, limit) = (payload.len(), self.options.max_batch_bytes);
            return Err(Error::Refused {
                path: self.path.clone(),
                reason: format!("journal batch of {bytes} bytes, must be 1 to {limit}"),
            });
        };
        let mut state = self.lock();
        while !state.pending.is_empty() && state.pending.len() + payload.len() > self.options.queue_bytes {
            state = self.lead_or_follow(state)?;
        }
        self.check(&state)?;
        let (offset, durable, frames) = (state.end, state.durable, state.frames);
        frames.encode(&mut state.pending, offset, durable, len, &payload);
        state.end += (super::format::FRAME_HEADER + payload.len()) as u64;
        Ok(Position { generation: state.header.generation, offset, end: state.end })
    }

    /// Returns once everything up to `position` is durable.
    pub fn wait(&self, position: Position) -> Result<()> {
        let mut state = self.lock();
        // A rotation makes all earlier generations durable.
        while state.header.generation == position.generation && state.durable < position.end {
            state = self.lead_or_follow(state)?;
        }
        Ok(())
    }

    /// Returns once everything submitted so far is durable.
    pub fn sync(&self) -> Result<()> {
        self.wait(self.end())
    }

    /// Starts the next generation after a checkpoint that covers everything up to the end of `covered`.
    ///
    /// What came later is carried over. The new file replaces the old one in one step, so after a crash there is
    /// either the old generation or the new; `tag` ties the new one to its checkpoint, which must be durable already.
    pub fn rotate(&self, covered: Position, tag: &[u8]) -> Result<()> {
        let mut state = self.lock();
        while state.busy || !state.pending.is_empty() {
            state = self.lead_or_follow(state)?;
        }
        self.check(&state)?;
        if covered.generation > state.header.generation || covered.end > state.end {
            return Err(Error::Refused { path: self.path.clone(), reason: "checkpoint beyond the journal".into() });
        }
        let header = Header { generation: state.header.generation + 1, tag: tag.to_vec() };
        // The lock is kept: a rotation is rare, short, and no thread may take an offset in the old file meanwhile.
        let replace = || {
            let mut reader = JournalReader::open(&*self.fs, &self.path, &self.options)?;
            // A checkpoint of an older generation covers nothing of this one.
            reader.skip_to(if covered.generation == state.header.generation { covered.end } else { 0 });
            let (frames, end) = write_new(&self.fs, &self.path, &header, &mut || reader.next_batch())?;
            Ok((self.fs.open(&self.path, Mode::Write)?, frames, end))
        };
        match replace() {
            Ok((file, frames, end)) => {
                state.file = Arc::from(file);
                state.header = header;
                (state.frames, state.end, state.durable) = (frames, end, end);
                self.changed.notify_all();
                Ok(())
            }
            // It is not known which of the two files a restart would find.
            Err(e) => Err(self.fail(&mut state, e)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock; if one did, `durable` would still be true.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, state: &State) -> Result<()> {
        match &state.failed {
            None => Ok(()),
            Some((kind, why)) => {
                let source = io::Error::new(*kind, format!("journal failed earlier: {why}"));
                Err(Error::io(Op::Write, &self.path, source))
            }
        }
    }

    fn fail(&self, state: &mut State, e: Error) -> Error {
        state.failed = Some((e.kind(), e.to_string()));
        self.changed.notify_all();
        e
    }

    /// Writes and syncs everything pending, or waits for the thread that is doing it.
    fn lead_or_follow<'s>(&'s self, mut state: MutexGuard<'s, State>) -> Result<MutexGuard<'s, State>> {
        self.check(&state)?;
        if state.busy {
            return Ok(self.changed.wait(state).unwrap_or_else(PoisonError::into_inner));
        }
        state.busy = true;
        let frames = std::mem::take(&mut state.pending);
        let end = state.end;
        let start = end - frames.len() as u64;
        let file = state.file.clone();
        drop(state);
        let written = file.write_at(start, &frames).and_then(|()| file.sync_data());
        let mut state = self.lock();
        state.busy = false;
        match written {
            Ok(()) => {
                state.durable = end;
                self.changed.notify_all();
                Ok(state)
            }
            Err(e) => Err(self.fail(&mut state, e)),
        }
    }
}

/// Writes a whole journal file with the batches `next` yields, in place of `path`; tells where it ends.
pub(super) fn write_new(
    fs: &Arc<dyn Fs>,
    path: &Path,
    header: &Header,
    next: &mut dyn FnMut() -> Result<Option<Batch>>,
) -> Result<(Frames, u64)> {
    let (file, frames, end) = start_file(fs, path, header, next)?;
    file.publish()?;
    Ok((frames, end))
}

fn start_file(
    fs: &Arc<dyn Fs>,
    path: &Path,
    header: &Header,
    next: &mut dyn FnMut() -> Result<Option<Batch>>,
) -> Result<(AtomicFile, Frames, u64)> {
    let mut file = AtomicFile::create(fs, path)?;
    let head = header.encode(path)?;
    let (_, frames) = Header::decode(&head, path)?;
    file.put(&head)?;
    let mut frame = Vec::new();
    while let Some(batch) = next()? {
        frame.clear();
        let len = u32::try_from(batch.payload.len()).unwrap_or(u32::MAX);
        // The file gets its name only after a sync, so all before this frame will have been synced.
        frames.encode(&mut frame, file.position(), file.position(), len, &batch.payload);
        file.put(&frame)?;
    }
    let end = file.position();
    Ok((file, frames, end))
}
