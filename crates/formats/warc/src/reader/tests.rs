use super::*;
use crate::RecordType;
use bytes::Bytes;
use std::io::Write;
use std::sync::Mutex;

fn record(n: usize, block: &[u8]) -> Vec<u8> {
    let header = format!(
        "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:{n}>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n\
         WARC-Target-URI: http://a.example/{n}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [header.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

fn blocks() -> Vec<Vec<u8>> {
    vec![b"first".to_vec(), Vec::new(), b"WARC/1.0\r\nnot a record\r\n\r\n".repeat(3), b"last\n".to_vec()]
}

/// The same four records, stored every way there is.
fn stored() -> Vec<(&'static str, Vec<u8>)> {
    let records: Vec<_> = blocks().iter().enumerate().map(|(n, b)| record(n, b)).collect();
    let all = records.concat();
    let each = |pack: &dyn Fn(&[u8]) -> Vec<u8>| records.iter().flat_map(|r| pack(r)).collect::<Vec<_>>();
    let zst = |bytes: &[u8]| zstd::encode_all(bytes, 3).unwrap();
    let dictionary = b"WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:".repeat(4);
    let with = |bytes: &[u8]| zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap().compress(bytes).unwrap();
    let front = |dictionary: &[u8]| {
        [b"\x5d\x2a\x4d\x18", &u32::try_from(dictionary.len()).unwrap().to_le_bytes()[..], dictionary].concat()
    };
    let named = {
        let mut gz = flate2::GzBuilder::new()
            .filename("a name")
            .comment("and more")
            .extra("x")
            .write(Vec::new(), flate2::Compression::best());
        gz.write_all(&all).unwrap();
        gz.finish().unwrap()
    };
    vec![
        ("plain", all.clone()),
        ("gzip members", each(&gzip)),
        ("one gzip member", gzip(&all)),
        ("one gzip member with a name", named),
        ("two gzip members", [gzip(&records[..2].concat()), gzip(&records[2..].concat())].concat()),
        ("zstd frames", each(&zst)),
        ("one zstd frame", zst(&all)),
        ("zstd with a dictionary", [front(&dictionary), each(&with)].concat()),
        ("zstd with a packed dictionary", [front(&zst(&dictionary)), each(&with)].concat()),
        ("gzip members that spread records", all.chunks(40).flat_map(gzip).collect()),
        ("longer gzip members that spread records", all.chunks(90).flat_map(gzip).collect()),
        ("zstd frames that spread records", all.chunks(61).flat_map(zst).collect()),
        ("zstd with a skippable frame", [each(&zst), b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec(), zst(b"")].concat()),
    ]
}

fn read_all(mut reader: WarcReader) -> Result<Vec<(Vec<u8>, Place)>> {
    let mut all = Vec::new();
    while let Some(mut record) = reader.next_record()? {
        let mut place = record.place();
        let block = record.read_block(1 << 20)?.to_vec();
        place.length = record.finish()?.length;
        all.push((block, place));
    }
    Ok(all)
}

use trawl_model::Place;

fn open(bytes: &[u8]) -> WarcReader {
    WarcReader::builder().over(Arc::new(Bytes::copy_from_slice(bytes)))
}

#[test]
fn every_container_gives_the_same_records() {
    for (name, bytes) in stored() {
        let found = read_all(open(&bytes)).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(found.iter().map(|f| f.0.clone()).collect::<Vec<_>>(), blocks(), "{name}");
        let streamed = WarcReader::builder().from_read(std::io::Cursor::new(bytes.clone()), "stream");
        assert_eq!(read_all(streamed).unwrap().len(), 4, "{name}");
        // Every record can be read alone, by its place.
        let file = RecordFile::new(Arc::new(Bytes::from(bytes)));
        for (block, place) in found {
            let alone = file.record_at(place.offset, place.index, |mut r| r.read_block(1 << 20)).unwrap();
            assert_eq!(alone, block, "{name} at {place}");
        }
    }
}

#[test]
fn a_place_is_exactly_its_record() {
    for (name, bytes) in stored() {
        for (n, (_, place)) in read_all(open(&bytes)).unwrap().into_iter().enumerate() {
            let part = &bytes[usize::try_from(place.offset).unwrap()..][..usize::try_from(place.length).unwrap()];
            if name.contains("dictionary") || name.contains("spread") {
                continue;
            }
            let found = read_all(open(part)).unwrap();
            let shared = name.contains("one") || name.contains("two");
            assert_eq!(found.len() == 1, !shared, "{name}");
            // Of a member with several records its place gives all, and the index says which.
            assert_eq!(found[place.index as usize].0, blocks()[n], "{name}");
        }
    }
}

/// Reads leniently and recovers from everything; must end.
fn survive(bytes: &[u8]) -> usize {
    let mut reader = WarcReader::builder().lenient(true).over(Arc::new(Bytes::copy_from_slice(bytes)));
    let mut count = 0;
    for _ in 0..100 {
        let result = loop {
            match reader.next_record() {
                Ok(Some(mut record)) => match record.read_block(1 << 20) {
                    Ok(_) => count += 1,
                    Err(e) => break Err(e),
                },
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            }
        };
        match result {
            Ok(()) => return count,
            Err(_) => drop(reader.recover_from_here().unwrap()),
        }
    }
    panic!("no end in sight");
}

#[test]
fn cut_anywhere_it_is_an_error_or_a_prefix() {
    for (name, bytes) in stored() {
        for cut in 0..bytes.len() {
            match read_all(open(&bytes[..cut])) {
                Ok(found) => {
                    let found: Vec<_> = found.into_iter().map(|f| f.0).collect();
                    assert_eq!(found, blocks()[..found.len()], "{name} cut at {cut}");
                    // Only at a record's end, or past the last one.
                    assert!(found.len() < 4 || name.contains("skippable"), "{name} cut at {cut}");
                }
                Err(e) => assert!(e.is_damage(), "{name} cut at {cut}: {e}"),
            }
            survive(&bytes[..cut]);
        }
    }
}

#[test]
fn any_flipped_bit_is_an_error_or_harmless() {
    for (name, bytes) in stored() {
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            if let Ok(found) = read_all(open(&bad)) {
                // A checksum guards the compressed ones; zstd frames here carry none, and neither does plain text.
                let guarded = name.contains("gzip");
                assert!(!guarded || found.iter().zip(blocks()).all(|(f, b)| f.0 == b), "{name} bit {bit}");
            }
            survive(&bad);
        }
    }
}

#[test]
fn after_damage_the_other_records_are_found() {
    for (name, bytes) in stored() {
        if name.contains("one") || name.contains("two") || name.contains("dictionary") {
            continue;
        }
        // A member that is damaged may hold the end of one record and the start of the next.
        let spread = usize::from(name.contains("spread"));
        let places: Vec<_> = read_all(open(&bytes)).unwrap().into_iter().map(|f| f.1).collect();
        for place in &places {
            let mut bad = bytes.clone();
            let at = usize::try_from(place.offset).unwrap();
            bad[at] = b'X';
            assert!(survive(&bad) >= 3 - spread, "{name}: record at {at} is gone, the others are not");
            let mut bad = bytes.clone();
            bad.splice(at..at, b"garbage \x1f\x8b\x08 \x28\xb5\x2f\xfd WARC/1".to_vec());
            assert!(survive(&bad) >= if at == 0 { 0 } else { 4 - 2 * spread }, "{name}: garbage at {at}");
        }
    }
}

#[test]
fn a_gap_says_what_was_skipped() {
    let records: Vec<_> = blocks().iter().enumerate().map(|(n, b)| gzip(&record(n, b))).collect();
    let mut bytes = records.concat();
    let (from, to) = (records[0].len() as u64, (records[0].len() + records[1].len()) as u64);
    bytes[records[0].len() + 20] ^= 0xff;
    let mut reader = open(&bytes);
    reader.next_record().unwrap().unwrap();
    let error = loop {
        match reader.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("no error"),
            Err(e) => break e,
        }
    };
    assert!(error.to_string().starts_with(&format!("(memory)@{from}")), "{error}");
    assert!(reader.next_record().unwrap().is_none(), "nothing comes after an error unless asked");
    assert_eq!(reader.recover().unwrap(), Some(Gap { from, to }));
    assert_eq!(reader.next_record().unwrap().unwrap().header().record_id().unwrap(), "urn:x:2");
}

#[test]
fn oddities_are_errors_or_told() {
    let one = record(1, b"abc");
    let two = record(2, b"def");
    let short = one.len() - 2;
    for (bytes, what) in [
        ([&b"\r\n"[..], &one, &two].concat(), "blank lines before a record"),
        ([&one[..short], &two].concat(), "a block is not followed by CR LF CR LF"),
        ([&one[..], &two, &[0; 512]].concat(), "zeros at the end of the file"),
        ([&gzip(&one)[..], &gzip(&two), &[0; 512]].concat(), "zeros at the end of the file"),
        ([&one[..], &two[..two.len() - 4]].concat(), "a block is not followed by CR LF CR LF"),
    ] {
        assert!(read_all(open(&bytes)).is_err(), "{what}");
        let told = Arc::new(Mutex::new(Vec::new()));
        let list = told.clone();
        let reader = WarcReader::builder()
            .lenient(true)
            .on_warning(move |w| list.lock().unwrap().push(w.what))
            .over(Arc::new(Bytes::from(bytes)));
        assert_eq!(read_all(reader).unwrap().len(), 2, "{what}");
        assert_eq!(*told.lock().unwrap(), [what]);
    }
}

#[test]
fn claims_past_the_limits_are_refused_before_anything_is_read() {
    let ten_gigabytes = record(1, b"").strip_suffix(b"Content-Length: 0\r\n\r\n\r\n\r\n").unwrap().to_vec();
    let huge = [&ten_gigabytes[..], b"Content-Length: 10737418240\r\n\r\nabc"].concat();
    for bytes in [huge.clone(), gzip(&huge)] {
        let error = read_all(open(&bytes)).unwrap_err();
        assert!(matches!(error, Error::OverLimit { what: "record block", claimed: 10_737_418_240, .. }), "{error}");
    }
    let limits = Limits { block_bytes: 1000, ..Limits::default() };
    let bomb = gzip(&record(1, &vec![0; 1 << 20]));
    assert!(bomb.len() < 20_000);
    let error = read_all(WarcReader::builder().limits(limits).over(Arc::new(Bytes::from(bomb)))).unwrap_err();
    assert!(error.to_string().ends_with("record block of 1048576 bytes is over the limit of 1000"), "{error}");
    // A header without end is refused after the header limit, however much a member inflates to.
    let endless = gzip(&[b"WARC/1.0\r\nX: ".to_vec(), vec![b'x'; 64 << 20]].concat());
    let error = read_all(open(&endless)).unwrap_err();
    assert!(matches!(error, Error::OverLimit { what: "record header", .. }), "{error}");
    let window = zstd_with_window(31);
    let error = read_all(open(&window)).unwrap_err();
    assert!(error.is_damage(), "{error}");
}

/// A zstd frame that asks for a window of 2^31 bytes.
fn zstd_with_window(log: u8) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, (log - 10) << 3];
    frame.extend_from_slice(&[0x01, 0x00, 0x00]);
    frame
}

#[test]
fn a_block_is_read_or_skipped_in_any_step() {
    let block: Vec<u8> = (0..300_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let bytes = [gzip(&record(1, &block)), gzip(&record(2, b"x"))].concat();
    let mut reader = open(&bytes);
    let mut record = reader.next_record().unwrap().unwrap();
    assert_eq!(record.header().record_type(), RecordType::Resource);
    let mut out = vec![0; 100_001];
    record.read_exact(&mut out).unwrap();
    assert_eq!(out, block[..100_001]);
    assert_eq!(record.left(), 199_999);
    let mut record = reader.next_record().unwrap().unwrap();
    assert_eq!(record.read_block(10).unwrap(), "x");
    assert_eq!(record.read(&mut out).unwrap(), 0);
}

/// Apple's zlib writes 19 for the system. Two equal records with others between them: the trailer of the last fits the first.
#[test]
fn members_end_where_they_end_whatever_their_headers_say() {
    for (system, extra) in [(3, 0), (19, 0), (77, 1), (255, 4)] {
        let mut bytes = Vec::new();
        for n in [1, 2, 3, 1] {
            let mut member = gzip(&record(n, b"x"));
            (member[8], member[9]) = (extra, system);
            bytes.extend(member);
        }
        let reader = WarcReader::builder().over(Arc::new(Bytes::from(bytes)));
        assert_eq!(read_all(reader).unwrap().len(), 4, "system {system}");
    }
}

#[test]
fn names_in_lower_case_and_bytes_that_are_no_text() {
    let text = b"warc/1.0\r\nwarc-type: Resource\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n\
        WARC-Target-URI: http://a.example/\xe9\r\nContent-Length: 0\r\n\r\n\r\n\r\n";
    let two = [&text[..], b"damage", &text[..]].concat();
    let mut reader = WarcReader::builder().lenient(true).over(Arc::new(Bytes::from(two)));
    let first = reader.next_record().unwrap().unwrap();
    assert_eq!(first.header().target_uri().unwrap(), "http://a.example/%E9");
    assert_eq!(
        (first.header().version_of_format(), first.header().record_type()),
        (crate::Version::V1_0, RecordType::Resource)
    );
    assert!(reader.next_record().is_err());
    assert!(reader.recover().unwrap().is_some());
    assert!(reader.next_record().unwrap().is_some());
    assert!(open(text).next_record().is_err(), "a strict reader wants it as the standard has it");
}

/// Reads a file, going on after damage; gives how many records there are and what was wrong.
fn read_past_damage(bytes: Vec<u8>) -> (Vec<String>, Vec<String>) {
    let mut reader = WarcReader::builder().lenient(true).over(Arc::new(Bytes::from(bytes)));
    let (mut found, mut damage) = (Vec::new(), Vec::new());
    loop {
        let error = match reader.next_record() {
            Ok(None) => return (found, damage),
            Ok(Some(record)) => {
                let url = record.header().target_uri().map(|url| url.into_owned()).unwrap_or_default();
                match record.finish() {
                    Ok(_) => {
                        found.push(url);
                        continue;
                    }
                    Err(e) => e,
                }
            }
            Err(e) => e,
        };
        damage.push(error.to_string());
        reader.recover().unwrap();
    }
}

type Pack = fn(&[u8]) -> Vec<u8>;

fn zstd_with_sum(bytes: &[u8]) -> Vec<u8> {
    let mut packer = zstd::Encoder::new(Vec::new(), 3).unwrap();
    packer.include_checksum(true).unwrap();
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

/// A checksum is over all records of a member: those that were inflated are handed out, and the damage is reported once.
#[test]
fn records_before_damage_in_their_member_are_read() {
    let block = |n: usize| format!("{n} ").repeat(700).into_bytes();
    let records: Vec<u8> = (0..1000).flat_map(|n| record(n, &block(n))).collect();
    for pack in [gzip as Pack, zstd_with_sum] {
        let whole = pack(&records);
        let mut bad_sum = whole.clone();
        let last = bad_sum.len() - if whole.starts_with(b"\x1f\x8b") { 5 } else { 1 };
        bad_sum[last] ^= 1;
        let (found, damage) = read_past_damage([bad_sum, pack(&record(1000, b"next"))].concat());
        let is_zstd = whole.starts_with(b"\x28\xb5");
        // zstd finds a wrong checksum before it hands out its last block.
        assert!(found.len() == 1001 || is_zstd && found.len() > 900, "{}", found.len());
        assert_eq!(damage.len(), 1, "{damage:?}");
        // A member that ends too soon gives what is there.
        let (found, damage) = read_past_damage(whole[..whole.len() / 2].to_vec());
        assert!(found.len() > 300 && damage.len() == 1, "{} {damage:?}", found.len());
    }
    // A record in a member of its own is the damaged one.
    let mut alone = gzip(&record(0, b"x"));
    let last = alone.len() - 5;
    alone[last] ^= 1;
    let (found, damage) = read_past_damage([alone, gzip(&record(1, b"y"))].concat());
    assert_eq!((found, damage.len()), (vec!["http://a.example/1".to_owned()], 1));
}

/// Lengths that are not true cost no more than a look at where they end.
#[test]
fn untrue_lengths_are_not_read() {
    let header = |n: usize, length: usize| {
        format!(
            "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:{n}>\r\nWARC-Date: 2026-06-24T01:02:03Z\r\n\
             WARC-Target-URI: http://a.example/{n}\r\nContent-Length: {length}\r\n\r\nx\r\n\r\n"
        )
    };
    let arc = |n: usize, length: usize| format!("http://a.example/{n} 1.2.3.4 20080430204826 text/html {length}\n");
    let many = 2000;
    let all = |length: &dyn Fn(usize) -> usize| (0..many).map(|n| header(n, length(n))).collect::<String>();
    let behind = all(&|_| 1_000_000_000);
    let one = behind.len() / many;
    let inside = all(&|n| (many - n) * one / 2 + 7);
    let arc_file = "filedesc://a 0.0.0.0 20080430204825 text/plain 0\n\n".to_owned()
        + &(0..many).map(|n| arc(n, 1_000_000_000)).collect::<String>();
    for (name, text) in [("behind the end", behind), ("inside", inside), ("arc", arc_file)] {
        let size = text.len() as u64;
        let file = Arc::new(trawl_io::read_at::Counting::new(Bytes::from(text)));
        let mut reader = WarcReader::builder().lenient(true).over(file.clone());
        let mut damaged = 0;
        loop {
            match reader.next_record() {
                Ok(None) => break,
                Ok(Some(mut record)) => {
                    let read = std::io::copy(&mut record, &mut std::io::sink()).map(drop);
                    if read.is_ok() && record.finish().is_ok() {
                        continue;
                    }
                    reader.give_up();
                }
                Err(_) => {}
            }
            damaged += 1;
            reader.recover().unwrap();
        }
        let read = file.reads().bytes;
        assert!(damaged > 0 && read < 20 * size, "{name}: {damaged} damaged, {read} bytes read of {size}");
    }
}

/// What is skipped begins where the damage does, not with the record before it.
#[test]
fn zeros_between_members_are_the_gap() {
    let first = gzip(&record(0, b"first"));
    let file = [&first[..], &[0; 100], &gzip(&record(1, b"second"))].concat();
    let mut reader = WarcReader::builder().lenient(true).over(Arc::new(Bytes::from(file)));
    reader.next_record().unwrap().unwrap().finish().unwrap();
    assert!(reader.next_record().is_err());
    let from = first.len() as u64;
    assert_eq!(reader.recover().unwrap(), Some(Gap { from, to: from + 100 }));
    assert_eq!(reader.next_record().unwrap().unwrap().at().offset, from + 100);
}

/// bgzip and others cut a file into members of equal length, wherever a record is, and end it with an empty one.
fn spread(records: &[Vec<u8>], length: usize) -> Vec<u8> {
    records.concat().chunks(length).chain([&b""[..]]).flat_map(gzip).collect()
}

#[test]
fn records_are_read_across_members_wherever_those_end() {
    let http = |n: usize| {
        let body = format!("{n} ").repeat(n * 3);
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .into_bytes()
    };
    let records: Vec<_> = (0..40).map(|n| record(n, &http(n))).collect();
    for length in (1..600).step_by(7).chain([4096, 65_280]) {
        let bytes = spread(&records, length);
        let mut reader = open(&bytes);
        let file = RecordFile::new(Arc::new(Bytes::from(bytes.clone())));
        let mut before: Option<Place> = None;
        for n in 0..40 {
            let mut record = reader.next_record().unwrap_or_else(|e| panic!("{length}: {e}")).expect("a record");
            let (mut place, at) = (record.place(), record.at().clone());
            let head = record.take_http_head().unwrap();
            assert_eq!(record.header().target_uri().unwrap(), format!("http://a.example/{n}"));
            let block = [&head.unwrap_or_default()[..], &record.read_block(1 << 20).unwrap()].concat();
            assert_eq!(block, http(n), "{length}");
            place.length = record.finish().unwrap().length;
            assert!(place.length > 0 && place.offset + place.length <= bytes.len() as u64, "{length}: {place}");
            let index = before.filter(|before| before.offset == place.offset).map_or(0, |before| before.index + 1);
            assert_eq!(place.index, index, "{length}");
            let alone = file.record_at(place.offset, place.index, |mut r| r.read_block(1 << 20)).unwrap();
            assert_eq!(alone, http(n), "{length} at {place}");
            let mut again = Vec::new();
            file.reopen(&at, 0, block.len() as u64).open().unwrap().read_to_end(&mut again).unwrap();
            assert_eq!(again, block, "{length} at {at}");
            before = Some(place);
        }
        assert!(reader.next_record().unwrap().is_none());
        assert_eq!(reader.stored_offset(), bytes.len() as u64);
        assert_eq!(reader.is_spread(), length < 65_280, "{length}");
    }
}

/// A record that claims more than its member has is cut, if the next member begins with a record.
#[test]
fn a_record_that_is_cut_does_not_take_the_next_one() {
    let long = String::from_utf8(record(1, b"abc")).unwrap().replace("Length: 3", "Length: 3000");
    let file = [gzip(&record(0, b"x")), gzip(long.as_bytes()), gzip(&record(2, b"y"))].concat();
    let (found, damage) = read_past_damage(file);
    assert_eq!(found, ["http://a.example/0", "http://a.example/2"]);
    assert_eq!(damage.len(), 1, "{damage:?}");
}

/// One damaged record of a member, or one damaged member, does not hide the records behind it.
#[test]
fn damage_inside_members_that_records_share_is_passed() {
    let mut records: Vec<_> = (0..50).map(|n| record(n, format!("{n} ").repeat(200).as_bytes())).collect();
    records[20] = String::from_utf8(records[20].clone()).unwrap().replace("Length: 600", "Length: -5").into_bytes();
    records[30].truncate(300);
    let all = records.concat();
    let urls = |found: &[String]| found.iter().map(|url| url[17..].parse::<usize>().unwrap()).collect::<Vec<_>>();
    for (name, file) in [("one member", gzip(&all)), ("blocks", spread(&records, 4096))] {
        let (found, damage) = read_past_damage(file.clone());
        let wanted: Vec<usize> = (0..50).filter(|n| ![20, 30].contains(n)).collect();
        // What follows a record that is cut is taken for the rest of it.
        assert!(urls(&found).iter().all(|n| wanted.contains(n)) && found.len() >= 47, "{name}: {found:?}");
        assert_eq!(damage.len(), 2, "{name}: {damage:?}");
    }
    let records: Vec<_> = (0..50).map(|n| record(n, format!("{n} ").repeat(200).as_bytes())).collect();
    let blocks: Vec<_> = records.concat().chunks(4096).map(gzip).collect();
    for bad in 0..blocks.len() {
        let mut blocks = blocks.clone();
        blocks[bad][20] ^= 0xff;
        let (found, damage) = read_past_damage(blocks.concat());
        // A block holds six records or seven, of which those at its ends are lost in part.
        assert!(found.len() >= 40 && found.len() < 50, "{bad}: {} records", found.len());
        assert!((1..=2).contains(&damage.len()), "{bad}: {damage:?}");
    }
}

/// Members of one byte each, in a header that has no end and in a block: time must not grow with the square.
#[test]
fn members_of_a_byte_cost_no_more_than_others() {
    let endless = [b"WARC/1.0\r\nX: ".to_vec(), vec![b'x'; 40_000]].concat();
    let member: Vec<_> = (0..=255).map(|b| gzip(&[b])).collect();
    let bytes: Vec<u8> = endless.iter().flat_map(|b| member[usize::from(*b)].clone()).collect();
    let start = std::time::Instant::now();
    let (found, damage) = read_past_damage(bytes);
    assert_eq!((found.len(), damage.len()), (0, 1), "{damage:?}");
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

/// `cat a.warc.gz b.warc` and its like: every record is read and has a place, in one pass, from a stream and behind damage.
#[test]
fn files_put_together_from_members_and_plain_records() {
    let plain: Pack = |bytes| bytes.to_vec();
    let zst: Pack = |bytes| zstd::encode_all(bytes, 1).unwrap();
    let gz: Pack = gzip;
    for packs in [[gz, gz, plain, plain], [plain, plain, gz, gz], [gz, plain, gz, plain], [plain, zst, gz, plain]] {
        let stored: Vec<_> = packs.iter().zip(0..).map(|(pack, n)| pack(&record(n, b"HTTP body"))).collect();
        let bytes = stored.concat();
        assert!(read_all(open(&bytes)).is_err(), "a strict reader wants one way");
        let lenient = || WarcReader::builder().lenient(true);
        let found = read_all(lenient().over(Arc::new(Bytes::from(bytes.clone())))).unwrap();
        let mut at = 0;
        for (member, (_, place)) in stored.iter().zip(&found) {
            assert_eq!((place.offset, place.length), (at, member.len() as u64));
            at += place.length;
        }
        let streamed = read_all(lenient().from_read(std::io::Cursor::new(bytes.clone()), "stream")).unwrap();
        assert_eq!((found.len(), streamed.len()), (4, 4));
        let file = RecordFile::new(Arc::new(Bytes::from(bytes.clone()))).lenient(true);
        for (_, place) in &found {
            let url = |record: Record<'_>| Ok(record.header().target_uri().map(|url| url.into_owned()));
            let n = found.iter().position(|(_, other)| other.offset == place.offset).unwrap();
            assert_eq!(file.record_at(place.offset, 0, url).unwrap().unwrap(), format!("http://a.example/{n}"));
        }
        // Once both kinds were seen, both are looked for.
        let mut bad = bytes.clone();
        bad[usize::try_from(found[2].1.offset).unwrap()] = b'X';
        assert!(read_past_damage(bad).0.len() >= 2, "{packs:?}");
    }
    // What only looks like a member is damage of the plain file, and does not hide what follows.
    let bytes = [&record(0, b"x")[..], &gzip(b"no record"), b"\r\n", &record(1, b"y"), &record(2, b"z")].concat();
    let (found, damage) = read_past_damage(bytes);
    assert_eq!((found.len(), damage.len()), (3, 1), "{damage:?}");
}

/// A place that leads into the middle of a member, as a row of another file does, is damage that ends.
#[test]
fn a_place_inside_a_member_is_passed() {
    let member = gzip(&record(0, b"x"));
    let file = RecordFile::new(Arc::new(Bytes::from([&member[..], &member].concat()))).lenient(true);
    for offset in 1..member.len() as u64 {
        let mut reader = file.reader_at(offset, 0).unwrap();
        reader.expect_shared();
        assert!(reader.next_record().is_err());
        reader.recover().unwrap();
        assert!(reader.next_record().unwrap().is_some(), "{offset}");
    }
}
