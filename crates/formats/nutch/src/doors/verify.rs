//! Checks containers of Nutch's: files, maps, values, and that keys lie in the parts of their hashes.

use super::layout::{DataFile, Layout};
use crate::class::canonical;
use crate::dialect::is_unknown_class;
use crate::legacy::webdb_order;
use crate::{Dialect, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trawl_hadoop::json::Detail;
use trawl_hadoop::parts::{SpreadCheck, part_of_text};
use trawl_hadoop::seq::{Fault, Header, OpenOptions};
use trawl_hadoop::{Decoder, class as hadoop, map, seq};
use trawl_model::{Check, Checked, Finding, Progress, Severity};

/// Checks every file of a container.
pub(super) fn verify(layout: &Layout, options: &OpenOptions, check: &mut Check<'_>) -> Result<Checked> {
    let mut checked = Checked::default();
    // For each directory of parts: whether its keys were spread over more of them.
    let mut spreads: BTreeMap<PathBuf, (u32, SpreadCheck)> = BTreeMap::new();
    for file in &layout.files {
        if !options.fs.exists(&file.path)? {
            let (file, detail) =
                (file.path.display().to_string(), "expected the records of a part, found no file".into());
            (check.on_finding)(Finding { severity: Severity::Fault, file, offset: None, kind: "damage", detail });
            continue;
        }
        let mut records = checked.records;
        let mut dialect = Dialect::default();
        let parts_dir = file.map.as_deref().and_then(Path::parent);
        let mut spread = file.part.zip(parts_dir).map(|((part, parts), dir)| {
            let (_, spread) = spreads.entry(dir.to_owned()).or_insert_with(|| (parts, SpreadCheck::new(parts)));
            (part, spread)
        });
        let progress = &mut *check.progress;
        let mut inspect = |header: &Header, key: &[u8], value: &[u8]| {
            if let Some((part, spread)) = &mut spread
                && canonical(&header.stored_key_class) == hadoop::TEXT
                && let Ok(content) = Decoder::new(key).text_bytes("key")
            {
                spread.add(content, *part);
            }
            records += 1;
            if records.is_multiple_of(1024) {
                progress(Progress { records, ..Progress::default() });
            }
            record_fault(file, header, key, value, &mut dialect)
        };
        // Handed on one by one: a small file may hold any number of faults.
        let on_finding = &mut *check.on_finding;
        let mut report = |Fault { file, offset, detail }: Fault| {
            let file = file.display().to_string();
            on_finding(Finding { severity: Severity::Fault, file, offset, kind: "damage", detail });
        };
        let count = match &file.map {
            Some(dir) => {
                let order = dir.file_name().and_then(|name| webdb_order(&name.to_string_lossy()));
                map::verify(dir, options, order, &mut inspect, &mut report)?
            }
            None => seq::verify(&file.path, options, None, &mut inspect, &mut report)?,
        };
        checked.files += 1;
        checked.records += count;
        checked.bytes += options.fs.metadata(&file.path)?.len;
    }
    for fault in layout.emptied() {
        let (file, detail) = (layout.root.display().to_string(), fault.to_string());
        (check.on_finding)(Finding { severity: Severity::Fault, file, offset: None, kind: "damage", detail });
    }
    for (dir, (parts, spread)) in spreads {
        if let Some(at_least) = spread.parts_at_least() {
            let detail = format!(
                "expected {at_least} parts or a multiple of them, where the keys of these belong; found {parts}: parts are missing"
            );
            let file = dir.display().to_string();
            (check.on_finding)(Finding { severity: Severity::Fault, file, offset: None, kind: "damage", detail });
        }
    }
    Ok(checked)
}

/// What is wrong with a record: a value that is not of its class, or a key that lies in another part.
fn record_fault(file: &DataFile, header: &Header, key: &[u8], value: &[u8], dialect: &mut Dialect) -> Option<String> {
    for (what, class, bytes) in [("key", &header.stored_key_class, key), ("value", &header.stored_value_class, value)] {
        let class = canonical(class);
        match dialect.json(&class, bytes, Detail::Digest) {
            Ok(_) => {}
            // An unknown class is no fault.
            Err(e) if is_unknown_class(&e) => {}
            Err(e) => return Some(format!("{what} of class {class}{e}")),
        }
    }
    let (part, parts) = file.part?;
    if canonical(&header.stored_key_class) != hadoop::TEXT {
        return None;
    }
    let belongs = part_of_text(Decoder::new(key).text_bytes("key").ok()?, parts);
    (belongs != part).then(|| format!("expected a key of part {part}, found one of part {belongs}: a lookup misses it"))
}
