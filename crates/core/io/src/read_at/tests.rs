use super::*;

/// One suite for every implementation.
fn conforms(reader: &dyn ReadAt, expected: &[u8]) {
    let len = expected.len() as u64;
    assert_eq!(reader.len(), len);
    assert_eq!(reader.is_empty(), expected.is_empty());
    assert_eq!(reader.read_range(0..len).unwrap(), expected);
    assert_eq!(reader.read_range(len..len).unwrap(), b""[..]);
    for (start, end) in [(0, len + 1), (len, len + 1), (len + 1, len + 1), (u64::MAX, u64::MAX), (0, u64::MAX)] {
        assert!(matches!(reader.read_range(start..end), Err(Error::Short { .. })), "{start}..{end}");
    }
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = 2..1;
    assert!(matches!(reader.read_range(reversed), Err(Error::Short { .. })));
    let mut buf = [0; 3];
    assert!(matches!(reader.read_at(u64::MAX, &mut buf), Err(Error::Short { .. })));
    if len >= 8 {
        reader.read_at(len - 3, &mut buf).unwrap();
        assert_eq!(buf, expected[expected.len() - 3..]);
        assert!(matches!(
            reader.read_at(len - 2, &mut buf),
            Err(Error::Short { offset, wanted: 3, found: 2, .. }) if offset == len - 2
        ));
        let parts = reader.read_ranges(&[5..8, 0..2, 3..3]).unwrap();
        assert_eq!(parts, [&expected[5..8], &expected[0..2], b""]);
    }
    let mut all = Vec::new();
    let mut cursor = Cursor::new(reader);
    cursor.read_to_end(&mut all).unwrap();
    assert_eq!(all, expected);
    cursor.seek(SeekFrom::Start(len + 10)).unwrap();
    assert_eq!(cursor.read(&mut buf).unwrap(), 0);
    assert!(cursor.seek(SeekFrom::Current(-(len as i64) - 11)).is_err());
    assert_eq!(cursor.seek(SeekFrom::End(0)).unwrap(), len);
}

#[test]
fn every_reader_conforms() {
    let dir = tempfile::tempdir().unwrap();
    for len in [0usize, 1, 8, 100_000] {
        let bytes: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
        let path = dir.path().join(len.to_string());
        std::fs::write(&path, &bytes).unwrap();
        conforms(&FileReader::open(&path).unwrap(), &bytes);
        conforms(&MapReader::open(&path).unwrap(), &bytes);
        conforms(&Bytes::from(bytes.clone()), &bytes);
        conforms(&Counting::new(FileReader::open(&path).unwrap()), &bytes);
        conforms(&Arc::new(Bytes::from(bytes.clone())), &bytes);
        conforms(&crate::Spool::from_bytes(bytes.clone().into()), &bytes);
    }
}

#[test]
fn a_batch_counts_as_one_round() {
    let reader = Counting::new(Bytes::from_static(b"0123456789"));
    reader.read_ranges(&[0..2, 4..9]).unwrap();
    assert_eq!(reader.reads(), Reads { rounds: 1, ranges: 2, bytes: 7 });
    reader.read_at(0, &mut [0; 4]).unwrap();
    assert_eq!(reader.take(), Reads { rounds: 2, ranges: 3, bytes: 11 });
    assert_eq!(reader.reads(), Reads::default());
}

#[test]
fn a_missing_file_is_named() {
    let err = FileReader::open(Path::new("/nonexistent/x")).unwrap_err();
    assert!(err.to_string().starts_with("cannot open /nonexistent/x: "), "{err}");
    assert_eq!(err.advice(), crate::Advice::Skip);
}
