//! The timefile: from a time to the place in the data file where files of that time begin.
//!
//! ```text
//! entry: time mark (8) | pointer of the first inode whose mtime is at or after the mark (8)
//! ```
//! Marks and pointers both increase. A file gets a mark if the last one is at least TIMEMP seconds old.

use crate::kvseq::Layout;
use crate::superblock::{Name, Purpose};
use crate::{Access, CreateKvseq, Error, Kvseq, Repr, Result, Settings, design};
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Timefile {
    pub kv: Kvseq,
    pub timemp: i64,
    last: Option<i64>,
}

/// What a new timefile is like.
pub(crate) fn create(sbsize: u64, fileincr: i64, timemp: i64, fsgen: Option<i64>) -> CreateKvseq {
    CreateKvseq {
        sbsize,
        fileincr,
        purpose: Purpose::fixed(design::PURPOSE_TIME),
        key: Repr::Fixed(8),
        value: Repr::Fixed(8),
        delflag: false,
        align: 0,
        hash_hint: false,
        extra: [(Name::TIMEMP, timemp)].into_iter().chain(fsgen.map(|n| (Name::FSGEN, n))).collect(),
    }
}

impl Timefile {
    pub fn open(path: &Path, access: Access, settings: &Settings, writer_lives: bool) -> Result<Self> {
        Self::from_kvseq(Kvseq::open_as(path, access, settings, writer_lives)?)
    }

    fn from_kvseq(kv: Kvseq) -> Result<Self> {
        if kv.layout() != Layout::PAIRS {
            let expected = "a timefile: KEYREPR 12, VALREPR 12, no KVDELFL, no ALIGN";
            return Err(kv.superblock().fault(Name::KEYREPR, expected));
        }
        let timemp = kv.superblock().value(Name::TIMEMP).unwrap_or(design::DEFAULT_TIMEMP);
        let mut time = Timefile { kv, timemp, last: None };
        time.last = time.last_mark()?.map(|(mark, _)| mark);
        Ok(time)
    }

    pub fn marks(&self) -> u64 {
        self.kv.pairs()
    }

    /// The `i`-th mark and its pointer.
    pub fn mark(&self, i: u64) -> Result<(i64, u64)> {
        match self.kv.pair(i)? {
            Some((mark, ptr)) => Ok((mark.cast_signed(), ptr)),
            None => Err(Error::BadPointer { path: self.kv.path().into(), ptr: self.kv.end() }),
        }
    }

    /// Notes a new file, if it is time for a mark.
    pub fn note(&mut self, mtime: i64, ptr: u64) -> Result<()> {
        let step = self.timemp.max(1);
        if self.last.is_none_or(|last| last.checked_add(step).is_some_and(|due| mtime >= due)) {
            self.kv.append(&mtime.to_be_bytes(), &ptr.to_be_bytes())?;
            self.last = Some(mtime);
        }
        Ok(())
    }

    /// Where to start looking for files of time `t` and later: the pointer of the last mark not after `t`.
    pub fn start_for(&self, t: i64) -> Result<Option<u64>> {
        let (mut low, mut high) = (0, self.marks());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.mark(middle)?.0 <= t {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1).map(|i| Ok(self.mark(i)?.1)).transpose()
    }

    /// The last mark and its pointer.
    pub fn last_mark(&self) -> Result<Option<(i64, u64)>> {
        self.marks().checked_sub(1).map(|i| self.mark(i)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use trawl_io::fault::FaultFs;
    use trawl_model::UnixMillis;

    #[test]
    fn marks_increase_to_the_end_of_time() {
        let disk = FaultFs::new();
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
        let path = Path::new("/t.time");
        create(256, 0, 60, None).publish(path, &settings).unwrap();
        let mut time = Timefile::open(path, Access::Write, &settings, false).unwrap();
        for (ptr, mtime) in [(1, i64::MIN), (2, i64::MAX - 59), (3, i64::MAX), (4, i64::MAX)] {
            time.note(mtime, ptr).unwrap();
        }
        assert_eq!(time.marks(), 2);
        assert_eq!(time.start_for(i64::MAX).unwrap(), Some(2));
    }
}
