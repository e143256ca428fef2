//! Cut, flipped and lying files: an error, or exactly the value; never a panic, much memory or a wrong answer.

mod common;

use common::*;
use std::sync::Arc;
use trawl_meguri::settings::Settings;
use trawl_meguri::verify::{Severity, verify};
use trawl_meguri::{Codec, MeguriFile, Partition, ReadSettings, Row};

fn faults(bytes: &[u8]) -> (u64, Vec<String>) {
    let mut told = Vec::new();
    let src = Arc::new(bytes::Bytes::copy_from_slice(bytes));
    let on = &mut |finding: trawl_meguri::verify::Finding| {
        if finding.severity == Severity::Fault {
            told.push(format!("{:?}: {}", finding.offset, finding.detail));
        }
    };
    let report = verify(src, ReadSettings::default(), on, &mut |_| {}).unwrap();
    assert_eq!(report.faults, told.len() as u64);
    (report.faults, told)
}

fn small_files() -> Vec<(&'static str, Vec<u8>)> {
    let ours = Settings { page_rows: 8, frame_bytes: 1024, ..Settings::default() };
    let rows = rows(30, 4, 1);
    vec![
        ("v1", include_bytes!("data/v1.meguri").to_vec()),
        ("v2", include_bytes!("data/v2.meguri").to_vec()),
        ("small", small().encode(&Settings::reference(Codec::None)).unwrap()),
        ("ours", write(&rows, options(ours))),
        ("ours, not compressed", write(&rows, options(Settings { codec: Codec::None, ..ours }))),
        ("ours, empty", write(&[], options(ours))),
    ]
}

#[test]
fn sound_files_have_no_faults() {
    for (name, bytes) in small_files() {
        let (count, told) = faults(&bytes);
        assert_eq!(count, 0, "{name}: {told:?}");
    }
    let (count, told) = faults(&write(&rows(5000, 50, 2), options(Settings { page_rows: 256, ..Settings::default() })));
    assert_eq!(count, 0, "{told:?}");
}

#[test]
fn every_cut_is_an_error() {
    for (name, bytes) in small_files() {
        for cut in 0..bytes.len() {
            assert!(Partition::decode(bytes[..cut].to_vec()).is_err(), "{name} cut at {cut}");
            assert!(faults(&bytes[..cut]).0 > 0, "{name} cut at {cut}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(Partition::decode(longer).is_err(), "{name} with a byte more");
    }
}

#[test]
fn every_flipped_bit_is_an_error_when_all_is_read() {
    for (name, bytes) in small_files() {
        let whole = Partition::decode(bytes.clone()).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match Partition::decode(flipped) {
                Err(_) => {}
                // The minor version and the kind of checksums are not used, and covered by the header's checksum.
                Ok(found) => assert!(found == whole, "{name}: bit {bit} gives other rows"),
            }
        }
    }
}

#[test]
fn every_flipped_byte_is_found_by_verify() {
    for (name, bytes) in small_files() {
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x41;
            assert!(faults(&flipped).0 > 0, "{name}: byte {at}");
        }
    }
}

/// Every question a partial reader answers.
fn ask(file: &MeguriFile, rows: &[Row]) -> Result<Vec<String>, trawl_meguri::Error> {
    let mut answers = Vec::new();
    for row in rows.iter().step_by(5) {
        let found = file.get(row.key())?.map(|row| plain(&row));
        answers.push(format!("{:?}", found));
        answers.push(format!("{:?}", file.rows_of_host(row.record.host_key)?));
    }
    file.due(u32::MAX, (0, u64::MAX), &mut |due| {
        answers.push(format!("{due:?}"));
        Ok(true)
    })?;
    if let Some(filter) = file.filter()? {
        answers.push(format!("{:?}", rows.iter().all(|row| filter.may_contain(row.key()))));
    }
    Ok(answers)
}

#[test]
fn a_partial_read_of_a_flipped_file_is_an_error_or_exact() {
    let rows = rows(40, 4, 1);
    let ours = Settings { page_rows: 8, frame_bytes: 1024, ..Settings::default() };
    for settings in [ours, Settings { codec: Codec::None, ..ours }] {
        let bytes = write(&rows, options(settings));
        let truth = ask(&open(bytes.clone()), &rows).unwrap();
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0x55] {
                let mut flipped = bytes.clone();
                flipped[at] ^= change;
                let src = Arc::new(bytes::Bytes::from(flipped));
                let answers = MeguriFile::open(src, ReadSettings::default()).and_then(|file| ask(&file, &rows));
                if let Ok(answers) = answers {
                    assert_eq!(answers, truth, "byte {at} ^ {change:#x}");
                }
            }
        }
    }
}

/// Writes the header's checksum anew.
fn mend_header(bytes: &mut [u8]) {
    let crc = trawl_io::crc::crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn claims_are_checked_before_memory_is_taken() {
    let bytes = small().encode(&Settings::reference(Codec::None)).unwrap();
    for (at, what) in [(32, "url_count"), (40, "host_count"), (48, "footer_offset")] {
        for claim in [1u64 << 40, u64::MAX, 1 << 31] {
            let mut lying = bytes.clone();
            lying[at..at + 8].copy_from_slice(&claim.to_le_bytes());
            mend_header(&mut lying);
            assert!(Partition::decode(lying.clone()).is_err(), "{what} of {claim}");
            assert!(faults(&lying).0 > 0);
        }
    }
    let mut later = bytes.clone();
    later[4] = 2;
    mend_header(&mut later);
    let error = Partition::decode(later).unwrap_err().to_string();
    assert_eq!(error, "(memory)@4: format version 2 is not supported");
}

/// Rewrites the footer's body by `change` and mends its checksum.
fn with_footer(bytes: &[u8], change: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let at = u64::from_le_bytes(bytes[48..56].try_into().unwrap()) as usize;
    let mut body = bytes[at..bytes.len() - 12].to_vec();
    change(&mut body);
    let mut out = bytes[..at].to_vec();
    let (len, crc) = (body.len() as u32, trawl_io::crc::crc32c(&body));
    out.extend_from_slice(&body);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(b"MEG1");
    out
}

#[test]
fn a_lying_footer_is_refused_or_harmless() {
    let rows = rows(30, 4, 1);
    for bytes in [
        small().encode(&Settings::reference(Codec::None)).unwrap(),
        write(&rows, options(Settings { page_rows: 16, frame_bytes: 1024, ..Settings::default() })),
    ] {
        let length = with_footer(&bytes, |_| {}).len();
        assert_eq!(length, bytes.len());
        let footer = bytes.len() - 12 - u64::from_le_bytes(bytes[48..56].try_into().unwrap()) as usize;
        for at in 0..footer {
            for change in [0xff, 0x80, 0x01] {
                let lying = with_footer(&bytes, |body| body[at] ^= change);
                let src: Arc<dyn trawl_io::ReadAt> = Arc::new(bytes::Bytes::from(lying.clone()));
                if let Ok(file) = MeguriFile::open(src, ReadSettings::default()) {
                    let _ = ask(&file, &rows);
                    let _ = Partition::read(&file);
                }
                faults(&lying);
            }
        }
    }
}

#[test]
fn unknown_sections_and_columns_are_skipped() {
    let bytes = include_bytes!("data/v2.meguri");
    let more = with_footer(bytes, |body| body.extend_from_slice(&[100, 3, 1, 2, 3]));
    assert_eq!(Partition::decode(more.clone()).unwrap(), golden());
    assert_eq!(open(more).footer().skipped, [100]);
}

/// An index that names rows for hours that are not theirs may also leave out rows that are due.
#[test]
fn a_schedule_of_other_rows_is_an_error() {
    let files = [
        &include_bytes!("data/schedule-of-other-rows.meguri")[..],
        &include_bytes!("data/schedule-of-other-days.meguri")[..],
    ];
    for bytes in files {
        let file = open(bytes.to_vec());
        let all = (0, u64::MAX);
        let error = file.due_urls(u32::MAX, all, u64::MAX, &mut |_, _| Ok(true)).unwrap_err();
        assert!(error.to_string().contains("rows under their hours in the schedule index"), "{error}");
        assert!(error.offset().is_some());
        assert_eq!(faults(bytes).0, 1);
    }
}

#[test]
fn a_column_may_be_there_once() {
    let bytes = &include_bytes!("data/column-twice.meguri")[..];
    let error = MeguriFile::open(Arc::new(bytes::Bytes::from_static(bytes)), ReadSettings::default()).unwrap_err();
    assert!(error.to_string().contains("column 128 again"), "{error}");
    assert!(faults(bytes).1[0].contains("each column once"));
}
