//! A fence around the Parquet library: some damaged files make it panic instead of returning an error.

use parquet::file::metadata::ColumnChunkMetaData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `decode`. A panic inside becomes an error that says so; whatever `decode` was working on must be dropped then.
pub fn guarded<T, E: ToString>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(done) => done.map_err(|e| e.to_string()),
        Err(_) => Err("bytes that the parquet library cannot decode".to_owned()),
    }
}

/// The bytes of a column chunk; `None` where its metadata makes no sense.
pub fn chunk_range(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = u64::try_from(chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset())).ok()?;
    Some(start..start.checked_add(u64::try_from(chunk.compressed_size()).ok()?)?)
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(guarded(|| Ok::<_, String>(1)), Ok(1));
        assert_eq!(guarded(|| Err::<(), _>("x")), Err("x".to_owned()));
        let empty: [u8; 0] = [];
        assert!(guarded(|| Ok::<_, String>(empty[std::hint::black_box(0)])).is_err());
    }
}
