use super::*;

const GOOD: &[u8] =
    b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-06-24T01:02:03.456Z\r\n\
WARC-Target-URI: <http://a.example/>\r\nX-Long: one\r\n two\r\nContent-Length: 12\r\n\r\nHTTP/1.1 200";

fn parse(buf: &[u8], lenient: bool) -> Result<Step<RecordHeader>> {
    record_header(buf, &Limits::default(), lenient)
}

fn done(step: Step<RecordHeader>) -> (RecordHeader, usize) {
    match step {
        Step::Done { value, used } => (value, used),
        Step::NeedMore { at_least } => panic!("needs {at_least}"),
    }
}

#[test]
fn fields_are_found_and_the_bytes_kept() {
    let (header, used) = done(parse(GOOD, false).unwrap());
    assert_eq!(used, GOOD.len() - 12);
    assert_eq!(header.raw(), &GOOD[..used]);
    assert_eq!(header.record_type(), RecordType::Response);
    assert_eq!(header.content_length(), 12);
    assert_eq!(header.record_id().unwrap(), "urn:uuid:1");
    assert_eq!(header.target_uri().unwrap(), "http://a.example/");
    assert_eq!(header.text("x-long").unwrap(), "one two");
    assert_eq!(header.date(), Some(UnixMillis(1_782_262_923_456)));
    assert_eq!(header.fields().count(), 6);
}

#[test]
fn every_cut_asks_for_more() {
    let (_, used) = done(parse(GOOD, false).unwrap());
    for cut in 0..used {
        match parse(&GOOD[..cut], false) {
            Ok(Step::NeedMore { at_least }) => assert_eq!(at_least, cut + 1),
            other => panic!("cut at {cut}: {other:?}"),
        }
    }
}

#[test]
fn every_flipped_bit_is_an_error_or_a_header() {
    for bit in 0..GOOD.len() * 8 {
        let mut bytes = GOOD.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        for lenient in [false, true] {
            let _ = parse(&bytes, lenient);
        }
    }
}

#[test]
fn strict_refuses_what_lenient_reports() {
    let replace = |from: &str, to: &str| String::from_utf8(GOOD.to_vec()).unwrap().replacen(from, to, 1).into_bytes();
    for (bytes, odd) in [
        (replace("1.1\r\n", "1.1\n"), "a line ends in a bare line feed"),
        (replace("WARC/1.1", "WARC/1.2"), "unknown version"),
        (replace("X-Long:", "X-Long :"), "a field name of other than token characters"),
        (replace("X-Long: ", "X-Long "), "a header line without a colon"),
        (replace("WARC-Date", "WARC-Fate"), "a mandatory field is missing"),
        (replace("X-Long: one\r\n two", "Content-Length: 12"), "Content-Length repeated"),
        (replace("Content-Length: 12", "Content-Length: +12"), "Content-Length with a sign"),
        (replace("1.1\r\n", "1.1\r\n x: y\r\n"), "a line that continues no field"),
    ] {
        assert!(parse(&bytes, false).is_err(), "{odd}");
        let (header, _) = done(parse(&bytes, true).unwrap());
        assert_eq!(header.oddities(), [odd]);
    }
}

#[test]
fn no_length_no_record() {
    let replace =
        |to: &str| String::from_utf8(GOOD.to_vec()).unwrap().replacen("Content-Length: 12", to, 1).into_bytes();
    for to in ["Content-Length: -1", "Content-Length: +", "Content-Length: 99999999999999999999", "Content-Length: 1 2"]
    {
        assert!(parse(&replace(to), true).is_err(), "{to}");
    }
    assert!(parse(&replace("Content-Length: 1\r\nContent-Length: 2"), true).is_err());
    // One that states none has no block, for those who are lenient.
    assert!(parse(&replace("X: 1"), false).is_err());
    let (header, _) = done(parse(&replace("X: 1"), true).unwrap());
    assert_eq!((header.content_length(), header.oddities()), (0, &["no Content-Length"][..]));
}

#[test]
fn a_header_without_end_is_over_the_limit() {
    let limits = Limits { header_bytes: 1000, ..Limits::default() };
    let mut endless = b"WARC/1.1\r\nX: ".to_vec();
    endless.resize(2000, b'x');
    let message = record_header(&endless, &limits, true).unwrap_err().to_string();
    assert_eq!(message, "@0: record header of 2000 bytes is over the limit of 1000");
}

#[test]
fn old_versions_are_told_apart() {
    for (text, version) in [("0.17", Version::V0_17), ("0.18", Version::V0_18), ("1.0", Version::V1_0)] {
        let bytes = String::from_utf8(GOOD.to_vec()).unwrap().replacen("1.1", text, 1).into_bytes();
        assert_eq!(done(parse(&bytes, false).unwrap()).0.version_of_format(), version);
    }
}

#[test]
fn times_with_an_offset_and_in_small_letters() {
    for (text, millis) in [
        ("2026-06-24t01:02:03z", Some(1_782_262_923_000)),
        ("2026-06-24T03:02:03+02:00", Some(1_782_262_923_000)),
        ("2026-06-24 01:02:03", Some(1_782_262_923_000)),
        ("yesterday", None),
    ] {
        let bytes = String::from_utf8(GOOD.to_vec()).unwrap().replacen("2026-06-24T01:02:03.456Z", text, 1);
        assert_eq!(done(parse(bytes.as_bytes(), false).unwrap()).0.date(), millis.map(UnixMillis), "{text}");
    }
}
