//! URL records to sorted, partitioned Parquet
