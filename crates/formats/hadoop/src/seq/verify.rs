//! Checks a whole file and lists every fault.

use super::header::Header;
use super::reader::{OpenOptions, Reader};
use crate::order::Order;
use crate::{Error, Result, crc};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use trawl_io::ReadAt;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which file.
    pub file: PathBuf,
    /// Where, if that is known.
    pub offset: Option<u64>,
    /// What was expected and what was found.
    pub detail: String,
}

impl Fault {
    pub(crate) fn of(file: &Path, error: &Error) -> Self {
        let detail = error.to_string();
        let place =
            error.offset().map_or_else(|| format!("{}: ", file.display()), |n| format!("{}@{n}: ", file.display()));
        let detail = detail.strip_prefix(&place).map_or(detail.clone(), str::to_owned);
        Fault { file: file.into(), offset: error.offset(), detail }
    }
}

/// What a check of values finds wrong with a record: `None` when nothing is.
pub type CheckRecord<'a> = dyn FnMut(&Header, &[u8], &[u8]) -> Option<String> + 'a;

/// Checks a file: its sidecar, header, lengths, markers and streams, that keys are sorted if `order` is given, and what
/// `check` says of each record. Damage is reported and passed over at the next marker. Returns the number of records.
pub fn verify(
    path: &Path,
    options: &OpenOptions,
    order: Option<Order>,
    check: &mut CheckRecord<'_>,
    report: &mut dyn FnMut(Fault),
) -> Result<u64> {
    checksums(path, options, report)?;
    // Records are read unchecked: a wrong checksum is reported above, once, and need not hide the records around it.
    let unchecked = OpenOptions { verify_checksums: false, ..options.clone() };
    let mut reader = match unchecked.open(path) {
        Ok(reader) => reader,
        Err(e) if e.is_damage() || matches!(e, Error::Unsupported { .. }) => {
            report(Fault::of(path, &e));
            return Ok(0);
        }
        Err(e) => return Err(e),
    };
    let mut records = 0;
    let mut last: Option<Vec<u8>> = None;
    loop {
        match step(&mut reader, order, &mut last, check) {
            Ok(None) => return Ok(records),
            Ok(Some(fault)) => {
                records += 1;
                if let Some(detail) = fault {
                    report(Fault { file: path.into(), offset: Some(reader.at().offset), detail });
                }
            }
            Err(e) if e.is_damage() => {
                last = None;
                let lost = reader.resync()?;
                let mut fault = Fault::of(path, &e);
                fault.detail += &format!("; {} bytes of records are lost from {}", lost.end - lost.start, lost.start);
                report(fault);
            }
            Err(e) => return Err(e),
        }
    }
}

/// Reads one record: `Some(None)` when it is sound.
#[expect(clippy::option_option, reason = "no record, a sound one, a faulty one")]
fn step(
    reader: &mut Reader,
    order: Option<Order>,
    last: &mut Option<Vec<u8>>,
    check: &mut CheckRecord<'_>,
) -> Result<Option<Option<String>>> {
    let header = reader.header().clone();
    let Some(record) = reader.next_record()? else { return Ok(None) };
    let mut fault = check(&header, record.key, record.value);
    if let Some(order) = order {
        if let Some(last) = last {
            match order.compare(last, record.key) {
                Ok(Ordering::Greater) => {
                    fault = Some("expected a key not below the one before, found a smaller one".into())
                }
                Ok(_) => {}
                Err(e) => fault = Some(format!("key: {e}")),
            }
        }
        let last = last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(record.key);
    }
    Ok(Some(fault))
}

/// Compares every chunk of a file with its sidecar, if it has one.
fn checksums(path: &Path, options: &OpenOptions, report: &mut dyn FnMut(Fault)) -> Result<()> {
    let file = match crc::open_checked(&*options.fs, path) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(()),
        Err(e) if e.is_damage() => {
            let sidecar = crc::sidecar(path);
            report(Fault::of(&sidecar, &e));
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    let mut at = 0;
    while at < file.len() {
        let end = (at + (1 << 20)).min(file.len());
        match file.read_range(at..end) {
            Ok(_) => at = end,
            Err(e @ trawl_io::Error::Corrupt { offset, .. }) => {
                report(Fault::of(path, &e.into()));
                at = offset + file.chunk_bytes();
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}
