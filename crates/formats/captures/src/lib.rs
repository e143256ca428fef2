//! captures.parquet: one row per fetch, pointing back into the archive
