//! Sorting files larger than memory.

use super::reader::OpenOptions;
use super::writer::{Writer, WriterOptions, Written};
use crate::order::Order;
use crate::{Decoder, Encode, Error, Result};
use std::path::{Path, PathBuf};
use trawl_sort::Sorter;

/// What a sort may use.
#[derive(Debug, Clone)]
pub struct SortSettings {
    /// Memory for records.
    pub memory_bytes: usize,
    /// Directory for what does not fit.
    pub temp_dir: PathBuf,
    /// Threads that sort and write runs.
    pub threads: usize,
}

/// Sorts the records of `inputs`, all of the same classes, into one file. Records with equal keys keep their order.
pub fn sort(
    inputs: &[PathBuf],
    options: &OpenOptions,
    output: &Path,
    writer: WriterOptions,
    order: Option<Order>,
    settings: &SortSettings,
) -> Result<Written> {
    let class = writer.key_class.clone();
    let order = order.or_else(|| Order::of_class(&crate::class::canonical(&class))).ok_or_else(|| {
        Error::Unsupported { file: output.into(), what: format!("the order of keys of class {class}") }
    })?;
    let mut sorter = Sorter::builder(&settings.temp_dir)
        .memory_bytes(settings.memory_bytes)
        .threads(settings.threads)
        .fs(writer.fs.clone())
        .build()?;
    // The sorter orders plain bytes, so the key goes along with the value.
    let (mut sort_key, mut payload) = (Vec::new(), Vec::new());
    for input in inputs {
        let mut reader = options.open(input)?;
        if reader.header().stored_key_class != class || reader.header().stored_value_class != writer.value_class {
            let header = reader.header();
            let found = format!("{} and {}", header.stored_key_class, header.stored_value_class);
            return Err(Error::corrupt(input, 4, format!("classes {class} and {}", writer.value_class), found));
        }
        while let Some(record) = reader.next_record()? {
            sort_key.clear();
            order.sort_key(record.key, &mut sort_key).map_err(|source| Error::Value {
                file: input.clone(),
                offset: record.at.offset,
                index: record.at.index,
                class: class.clone(),
                source,
            })?;
            payload.clear();
            payload.put_vlong(record.key.len() as i64);
            payload.put(record.key);
            payload.put(record.value);
            sorter.push(&sort_key, &payload)?;
        }
    }
    let mut out = Writer::create(output, writer)?;
    let mut sorted = sorter.finish()?;
    while let Some(record) = sorted.next_record()? {
        let mut d = Decoder::new(record.value);
        let key = d
            .text_bytes("a key")
            .map_err(|e| Error::refused(output, format!("a sorted record came back damaged: {e}")))?;
        out.append(key, d.rest())?;
    }
    out.finish()
}
