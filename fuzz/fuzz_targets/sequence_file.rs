//! SequenceFiles over raw bytes: no panic, no hang, bounded memory; damage is passed over forwards; splits read what a whole
//! read reads.
//!
//! The first byte chooses: the bytes are the file, or a body behind a good header of some version and compression.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use trawl_hadoop::seq::{Compression, Header, OpenOptions, Span};
use trawl_hadoop::{Codec, Limits, class};

const LIMIT: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let mut file = Vec::new();
    if choice > 0 {
        let codec = Codec::ALL[usize::from(choice) % 7];
        let compression = [Compression::None, Compression::Record, Compression::Block][usize::from(choice / 7) % 3];
        let header = Header {
            version: 6,
            stored_key_class: class::TEXT.into(),
            stored_value_class: class::TEXT.into(),
            compression,
            codec_class: (compression != Compression::None).then(|| codec.class()),
            metadata: Vec::new(),
            marker: Some([0xab; 16]),
            end: 0,
        };
        header.encode(&mut file);
    }
    file.extend_from_slice(bytes);
    let file = Arc::new(bytes::Bytes::from(file));
    let limits = Limits { stored_bytes: LIMIT as u64, unpacked_bytes: LIMIT, index_bytes: LIMIT };
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let Ok(mut reader) = options.over(file.clone()) else { return };
    let (mut records, mut damaged, mut last) = (0u64, false, 0);
    loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                assert!(record.value.len() <= LIMIT);
                records += 1;
            }
            Ok(None) => break,
            Err(_) => {
                damaged = true;
                let Ok(gap) = reader.resync() else { break };
                assert!(gap.end > last, "a gap goes forward");
                last = gap.end;
            }
        }
    }
    if !damaged && reader.file_len() < 4096 {
        let mut split = 0;
        for start in (0..reader.file_len()).step_by(97) {
            let mut part = options.over(file.clone()).expect("it opened before");
            part.split(Span { start, end: start + 97 }).expect("memory does not fail");
            while part.next_record().expect("it was whole before").is_some() {
                split += 1;
            }
        }
        assert_eq!(split, records);
    }
});
