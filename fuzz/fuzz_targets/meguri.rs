//! `.meguri` files, manifests, batches and filters over raw bytes.
//!
//! The first byte chooses. Checksums would stop nearly every changed file at the door, so one choice mends them first: header,
//! footer, pages, columns and regions then agree with the bytes, and only what the bytes say is hostile.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::Arc;
use trawl_io::crc::crc32c;
use trawl_meguri::schema::Table;
use trawl_meguri::settings::Settings;
use trawl_meguri::verify::verify;
use trawl_meguri::{Codec, MeguriFile, Partition, ReadSettings, batch, filter, manifest};
use trawl_url::key::UrlKey;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    match choice % 8 {
        0 => file(bytes.to_vec()),
        1 => {
            if let Ok(manifest) = manifest::Manifest::decode(bytes, Path::new("m")) {
                assert_eq!(
                    manifest::Manifest::decode(&manifest.encode(), Path::new("m")).expect("its own bytes"),
                    manifest
                );
            }
        }
        2 => {
            if let Ok(rows) = batch::decode(bytes) {
                let again = batch::decode(&batch::encode(&rows)).expect("its own bytes");
                assert_eq!(again.len(), rows.len());
            }
        }
        3 => {
            if let Ok(filter) = filter::parse(bytes.to_vec()) {
                filter.may_contain(UrlKey { host: 1, path: 2 });
            }
        }
        _ => {
            if let Some(mended) = mend(bytes.to_vec()) {
                file(mended);
            }
        }
    }
});

fn put(bytes: &mut [u8], at: usize, value: u32) -> Option<()> {
    bytes.get_mut(at..at + 4)?.copy_from_slice(&value.to_le_bytes());
    Some(())
}

fn range(bytes: &[u8], range: std::ops::Range<u64>) -> Option<&[u8]> {
    bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}

/// Writes every checksum anew.
fn mend(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let len = bytes.len();
    bytes.get_mut(..4)?.copy_from_slice(b"MEG1");
    let footer = usize::try_from(u64::from_le_bytes(bytes.get(48..56)?.try_into().ok()?)).ok()?;
    let crc = crc32c(bytes.get(..60)?);
    put(&mut bytes, 60, crc)?;
    let crc = crc32c(bytes.get(footer..len.checked_sub(12)?)?);
    put(&mut bytes, len - 8, crc)?;
    let length = u32::try_from(len - 12 - footer).ok()?;
    put(&mut bytes, len - 12, length)?;
    bytes.get_mut(len - 4..)?.copy_from_slice(b"MEG1");
    let file = MeguriFile::open(Arc::new(Bytes::from(bytes.clone())), ReadSettings::default()).ok()?;
    let mut directory = file.footer().clone();
    for column in directory.urls.iter_mut().chain(&mut directory.hosts) {
        for page in &column.pages {
            let end = page.offset.checked_add(page.byte_length)?;
            let payload = crc32c(range(&bytes, page.offset + 32..end)?);
            put(&mut bytes, usize::try_from(page.offset).ok()? + 28, payload)?;
        }
        let crc = crc32c(range(&bytes, column.range())?);
        Arc::make_mut(column).crc = crc;
    }
    for region in &mut directory.regions {
        if region.id >= 2 && region.length >= 32 {
            let payload = crc32c(range(&bytes, region.offset + 32..region.range().end)?);
            put(&mut bytes, usize::try_from(region.offset).ok()? + 28, payload)?;
        }
        region.crc = crc32c(range(&bytes, region.range())?);
    }
    bytes.truncate(footer);
    bytes.extend_from_slice(&directory.encode());
    Some(bytes)
}

fn file(bytes: Vec<u8>) {
    let src: Arc<dyn trawl_io::ReadAt> = Arc::new(Bytes::from(bytes));
    let settings = ReadSettings { footer_bytes: 1 << 20, filter_bytes: 1 << 20, ..ReadSettings::default() };
    let report = verify(src.clone(), settings.clone(), &mut |_| {}, &mut |_| {}).expect("memory reads");
    let Ok(file) = MeguriFile::open(src, settings) else { return };
    // A claim of many rows in few bytes is allowed up to a million; what that costs is known.
    if file.rows(Table::Urls) > 5000 || file.rows(Table::Hosts) > 5000 {
        return;
    }
    let _ = file.due(u32::MAX, (0, u64::MAX), &mut |_| Ok(true));
    let _ = file.rows_of_host(file.header().hostkey_lo);
    let _ = file.filter();
    let Ok(partition) = Partition::read(&file) else { return };
    let mut rows = Vec::new();
    if let Ok(mut cursor) = file.cursor() {
        while let Ok(Some(row)) = cursor.next_row() {
            rows.push(row.record);
        }
        if report.faults == 0 {
            assert_eq!(rows.len(), partition.urls.len());
        }
    }
    for record in partition.urls.iter().step_by(7) {
        let key = UrlKey { host: record.host_key, path: record.path_key };
        assert!(matches!(file.find(key), Ok(Some(_)) | Err(_)), "a row is not found");
    }
    let bytes = partition.encode(&Settings::reference(Codec::None)).expect("what was read can be written");
    let again = Partition::decode(bytes).expect("what was written can be read");
    // Frames are a matter of the layout; floats that are no numbers differ from themselves.
    let show = |p: &Partition| format!("{:?}", Partition { arena_frames: None, ..p.clone() });
    assert_eq!(show(&again), show(&partition));
}
