//! Sorting within the budget of the settings. A few records are sorted on the spot; only more than that are worth the
//! threads and temporary files of an external sort.

use crate::{Result, Settings};
use std::path::{Path, PathBuf};
use trawl_sort::{Sorted, Sorter};

/// Records, and their bytes, that are sorted on the spot.
const FEW: usize = 4096;
const FEW_BYTES: usize = 1 << 20;
/// The least that an external sort works in, with one thread beside.
const MIN_MEMORY: usize = 2 << 20;

/// Takes records in any order.
pub(crate) struct Sort<'a> {
    settings: &'a Settings,
    dir: PathBuf,
    memory: usize,
    few: Vec<(Vec<u8>, Vec<u8>)>,
    few_bytes: usize,
    many: Option<Sorter>,
}

/// Gives them back in the order of their keys; equal keys in the order they came.
pub(crate) enum InOrder {
    Few { records: std::vec::IntoIter<(Vec<u8>, Vec<u8>)>, current: (Vec<u8>, Vec<u8>) },
    Many(Box<Sorted>),
}

impl<'a> Sort<'a> {
    /// Sorts with a share of the budget: one of `shares` sorts that go on at once. Temporary files go to `dir`.
    pub fn new(settings: &'a Settings, dir: &Path, shares: usize) -> Self {
        let memory = (settings.sort_memory_bytes / shares.max(1)).max(MIN_MEMORY);
        Sort { settings, dir: dir.into(), memory, few: Vec::new(), few_bytes: 0, many: None }
    }

    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if let Some(many) = &mut self.many {
            return Ok(many.push(key, value)?);
        }
        self.few_bytes += key.len() + value.len();
        self.few.push((key.to_vec(), value.to_vec()));
        if self.few.len() > FEW || self.few_bytes > FEW_BYTES {
            let mut many = Sorter::builder(&self.dir)
                .memory_bytes(self.memory)
                .threads(1)
                .fs(self.settings.fs.clone())
                .holder(self.settings.holder.clone())
                .build()?;
            for (key, value) in std::mem::take(&mut self.few) {
                many.push(&key, &value)?;
            }
            self.many = Some(many);
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<InOrder> {
        if let Some(many) = self.many {
            return Ok(InOrder::Many(Box::new(many.finish()?)));
        }
        self.few.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(InOrder::Few { records: self.few.into_iter(), current: Default::default() })
    }
}

impl InOrder {
    /// The next key and value, valid until the next call.
    pub fn next_record(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match self {
            InOrder::Few { records, current } => match records.next() {
                Some(record) => {
                    *current = record;
                    Ok(Some((&current.0, &current.1)))
                }
                None => Ok(None),
            },
            InOrder::Many(sorted) => Ok(sorted.next_record()?.map(|r| (r.key, r.value))),
        }
    }
}

impl InOrder {
    /// The next key, which is one number.
    pub fn next_number(&mut self) -> Result<Option<u64>> {
        Ok(self.next_record()?.map(|(key, _)| number(key, 0)))
    }
}

/// The `i`-th big-endian number in `bytes`; 0 past their end.
#[inline]
pub(crate) fn number(bytes: &[u8], i: usize) -> u64 {
    bytes.get(8 * i..).and_then(|b| b.first_chunk::<8>()).map_or(0, |b| u64::from_be_bytes(*b))
}

/// Two numbers one after the other, big-endian.
#[inline]
pub(crate) fn pair(first: u64, second: u64) -> [u8; 16] {
    (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use trawl_io::fault::FaultFs;
    use trawl_model::UnixMillis;

    #[test]
    fn few_and_many_come_in_the_same_order() {
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(FaultFs::new().shared());
        for count in [0, 1, 100, FEW, FEW + 1, 20_000] {
            let mut sort = Sort::new(&settings, Path::new("/"), 100);
            for n in 0..count as u64 {
                sort.push(&(n * 7919 % 1000).to_be_bytes(), &n.to_be_bytes()).unwrap();
            }
            let mut sorted = sort.finish().unwrap();
            let mut expected: Vec<(u64, u64)> = (0..count as u64).map(|n| (n * 7919 % 1000, n)).collect();
            expected.sort();
            for (key, value) in expected {
                let (k, v) = sorted.next_record().unwrap().unwrap();
                assert_eq!((number(k, 0), number(v, 0)), (key, value));
            }
            assert!(sorted.next_record().unwrap().is_none());
        }
        assert_eq!((number(&pair(3, 4), 0), number(&pair(3, 4), 1), number(&pair(3, 4), 2)), (3, 4, 0));
    }
}
