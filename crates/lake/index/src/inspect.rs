//! What a segment is, for a person.

use crate::meta::SegmentMeta;
use crate::{Caches, OpenOptions, Result, Segment};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use trawl_store::{SegmentRef, Store};

/// What is in a segment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// What `segment.json` says.
    #[serde(flatten)]
    pub meta: SegmentMeta,
    /// First names of the dictionary.
    pub first_domains: Vec<String>,
    /// Why lookups do not use the perfect hash, if so.
    pub mphf_fault: Option<String>,
    /// Bytes a domain takes in all files.
    pub bytes_per_domain: f64,
    /// Bytes a (domain, dataset) pair takes in membership and counts.
    pub bytes_per_pair: f64,
}

/// Looks into a segment without going through it.
pub fn inspect_segment(store: &Arc<dyn Store>, reference: &SegmentRef) -> Result<Inspection> {
    let segment = Segment::open(store, reference, &Arc::new(Caches::new(1 << 20)), OpenOptions::default())?;
    let mut first_domains = Vec::new();
    segment.names_with_prefix("", None, &mut |_, name| {
        first_domains.push(name.to_owned());
        first_domains.len() < 5
    })?;
    let meta = segment.meta().clone();
    let bytes = |names: &[&str]| {
        let wanted = meta.files.iter().filter(|(name, _)| names.is_empty() || names.contains(&name.as_str()));
        wanted.map(|(_, file)| file.bytes).sum::<u64>() as f64
    };
    Ok(Inspection {
        bytes_per_domain: bytes(&[]) / meta.domains.max(1) as f64,
        bytes_per_pair: bytes(&["domain_to_datasets.roar", "counts.bin"]) / meta.pairs.max(1) as f64,
        mphf_fault: segment.mphf_fault().map(ToString::to_string),
        first_domains,
        meta,
    })
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &self.meta;
        writeln!(f, "index segment {}, format {}", m.id, m.format)?;
        writeln!(f, "  {} domains, {} pairs, {} rows, {} datasets", m.domains, m.pairs, m.rows, m.datasets.len())?;
        writeln!(f, "  {} Parquet files, {} bytes", m.parquet_files, m.parquet_bytes)?;
        writeln!(f, "  {:.1} bytes a domain, {:.1} a pair", self.bytes_per_domain, self.bytes_per_pair)?;
        writeln!(f, "  first domains: {}", self.first_domains.join(", "))?;
        if let Some(fault) = &self.mphf_fault {
            writeln!(f, "  lookups search the dictionary: {fault}")?;
        }
        for (name, file) in &m.files {
            writeln!(f, "  {:>12}  {name}", file.bytes)?;
        }
        Ok(())
    }
}
