use super::*;
use crate::Result;
use bytes::Bytes;
use proptest::prelude::*;
use std::io::Read;
use std::sync::Arc;
use trawl_io::read_at::Counting;

fn write(pieces: &[&[u8]], frame: usize, side: Option<&[u8]>) -> (Vec<u8>, u64) {
    let mut w = SeekableWriter::new(Vec::new(), "test", 3, frame).unwrap();
    for piece in pieces {
        w.write(piece).unwrap();
    }
    w.finish(side).unwrap()
}

fn read_all(file: &[u8]) -> Result<(Vec<u8>, Option<Bytes>)> {
    let s = Seekable::open(Arc::new(Bytes::copy_from_slice(file)))?;
    let mut all = Vec::new();
    for i in 0..s.frame_count() {
        all.extend_from_slice(&s.read_frame(i)?);
    }
    Ok((all, s.side().cloned()))
}

#[test]
fn frames_table_and_side_come_back() {
    let text: Vec<u8> = (0..5000u32).flat_map(|i| format!("line {i}\n").into_bytes()).collect();
    let (file, table_hash) = write(&[&text], 1000, Some(b"about the frames"));
    let s = Seekable::open(Arc::new(Bytes::from(file.clone()))).unwrap();
    assert_eq!((s.len(), s.frame_count()), (text.len() as u64, text.len().div_ceil(1000)));
    assert_eq!(s.side().unwrap(), &b"about the frames"[..]);
    assert_eq!(s.table_hash(), table_hash);
    assert_eq!(read_all(&file).unwrap().0, text);
    for (offset, frame) in [(0, 0), (999, 0), (1000, 1), (text.len() as u64 - 1, s.frame_count() - 1)] {
        assert_eq!(s.frame_of(offset), frame);
        assert!(s.content_range(frame).contains(&offset));
    }
    assert_eq!(s.frame_of(text.len() as u64), s.frame_count());
}

#[test]
fn any_zstd_reads_it() {
    let text = b"one\ntwo\nthree\n".repeat(500);
    let (file, _) = write(&[&text], 512, Some(b"side"));
    let mut plain = Vec::new();
    zstd::stream::read::Decoder::new(&file[..]).unwrap().read_to_end(&mut plain).unwrap();
    assert_eq!(plain, text);
}

#[test]
fn an_empty_file_is_a_file() {
    for side in [None, Some(&b""[..]), Some(&b"x"[..])] {
        let (file, _) = write(&[], 512, side);
        let (all, found) = read_all(&file).unwrap();
        assert_eq!((all.len(), found.as_deref()), (0, side));
    }
}

#[test]
fn opening_is_one_read_and_a_frame_another() {
    let noise: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let (file, _) = write(&[&noise], 4096, Some(b"side"));
    let source = Arc::new(Counting::new(Bytes::from(file)));
    let s = Seekable::open(source.clone()).unwrap();
    assert_eq!(source.take().rounds, 1);
    assert_eq!(s.read_frame(2).unwrap(), noise[8192..12_288]);
    let reads = source.take();
    assert_eq!((reads.rounds, reads.ranges), (1, 1));
}

#[test]
fn every_cut_and_every_flip_is_found() {
    let text = b"alpha\nbeta\ngamma\n".repeat(20);
    let (file, _) = write(&[&text], 100, Some(b"side"));
    for cut in 0..file.len() {
        assert!(read_all(&file[..cut]).is_err(), "cut at {cut}");
    }
    let mut silent = 0;
    for bit in 0..file.len() * 8 {
        let mut f = file.clone();
        f[bit / 8] ^= 1 << (bit % 8);
        if let Ok((all, side)) = read_all(&f) {
            // zstd frame headers have bits without meaning; what is read must be right all the same.
            assert_eq!(all, text, "bit {bit}");
            assert_eq!(side.as_deref(), Some(&b"side"[..]), "bit {bit}");
            silent += 1;
        }
    }
    assert!(silent < file.len() / 8, "{silent} flips without effect");
}

#[test]
fn claims_are_checked_before_memory_is_taken() {
    let (file, _) = write(&[b"hello"], 100, None);
    let mut f = file.clone();
    let at = f.len() - 9;
    f[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(read_all(&f).is_err());
    let mut f = file;
    let at = f.len() - 9 - 8;
    f[at..at + 4].copy_from_slice(&(MAX_FRAME as u32 + 1).to_le_bytes());
    assert!(read_all(&f).unwrap_err().to_string().contains("at most 64 KiB"));
}

proptest! {
    #[test]
    fn round_trip(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20), frame in 1usize..400) {
        let refs: Vec<_> = pieces.iter().map(Vec::as_slice).collect();
        let (file, _) = write(&refs, frame, None);
        let all = pieces.concat();
        prop_assert_eq!(read_all(&file).unwrap().0, all);
    }

    #[test]
    fn noise_is_refused(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read_all(&noise).is_err());
    }
}
