//! A file with a writing position.

use super::File;
use crate::Result;
use std::io::{self, Write};

/// Gathers small writes and puts them one after another into a [`File`].
///
/// Dropped without [`FileWriter::flush_buffer`] (or `Write::flush`), the last bytes stay unwritten.
#[derive(Debug)]
pub struct FileWriter {
    file: Box<dyn File>,
    written: u64,
    buffer: Vec<u8>,
    capacity: usize,
}

impl FileWriter {
    /// Bytes gathered before a write, unless told otherwise.
    pub const DEFAULT_BUFFER_BYTES: usize = 128 * 1024;

    /// Writes from `offset` on.
    pub fn new(file: Box<dyn File>, offset: u64) -> Self {
        Self::with_buffer(file, offset, Self::DEFAULT_BUFFER_BYTES)
    }

    /// Writes from `offset` on through a buffer of `capacity` bytes.
    pub fn with_buffer(file: Box<dyn File>, offset: u64, capacity: usize) -> Self {
        FileWriter { file, written: offset, buffer: Vec::new(), capacity }
    }

    /// Where the next byte goes.
    pub fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The file beneath; it lacks what is still in the buffer.
    pub fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Hands all gathered bytes to the file.
    pub fn flush_buffer(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.file.write_at(self.written, &self.buffer)?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes all of `bytes`, with this crate's error.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > self.capacity {
            self.flush_buffer()?;
        }
        if bytes.len() >= self.capacity {
            self.file.write_at(self.written, bytes)?;
            self.written += bytes.len() as u64;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Flushes and makes the contents durable.
    pub fn sync(&mut self) -> Result<()> {
        self.flush_buffer()?;
        self.file.sync_data()
    }

    /// Flushes and gives the file back.
    pub fn into_file(mut self) -> Result<Box<dyn File>> {
        self.flush_buffer()?;
        Ok(self.file)
    }
}

impl Write for FileWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.put(buf)?;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(self.flush_buffer()?)
    }
}
