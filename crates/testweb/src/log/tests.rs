use std::time::Instant;

use proptest::prelude::*;

use super::*;

/// Writes one request and reads it back.
fn round_trip(request: &Request<'_>, status: u16, bytes: u64, whole: bool) -> Vec<Event> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let log = Log::open(Some(&path), 7, Instant::now(), 1).unwrap();
    log.opened(request.conn, "127.0.0.1:80".parse().unwrap(), "127.0.0.1:81".parse().unwrap());
    log.secured(request.conn, Some("a.example"), None);
    log.clock_set(1_750_000_000, 0.5);
    let mut pending = Pending::new(&log, 5, request);
    (pending.status, pending.bytes, pending.whole) = (status, bytes, whole);
    drop(pending);
    log.closed(request.conn);
    log.finish().unwrap();
    let text = std::fs::read(&path).unwrap();
    let mut reader = LogReader::new(&text[..]);
    std::iter::from_fn(|| reader.next_event().unwrap()).map(|(_, event)| event.unwrap()).collect()
}

fn lossy(value: &Option<Vec<u8>>) -> Option<String> {
    value.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_client_sends_is_read_back(
        host in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
        target in proptest::collection::vec(any::<u8>(), 0..200),
        agent in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40)),
        tag in proptest::option::of("[-\\\\\t \"a-z]{0,10}"),
        (conn, status, bytes, whole) in any::<(u32, u16, u64, bool)>(),
    ) {
        let tag = tag.map(String::into_bytes);
        let request = Request {
            conn: conn.into(),
            stream: 3,
            host: host.as_deref(),
            method: b"GET",
            target: &target,
            agent: agent.as_deref(),
            if_none_match: tag.as_deref(),
            ..Request::unknown(Proto::Https2)
        };
        let events = round_trip(&request, status, bytes, whole);
        prop_assert_eq!(events.len(), 6);
        prop_assert_eq!(&events[0], &Event::Started { seed: 7 });
        let Event::Request(record) = &events[4] else { panic!("{events:?}") };
        prop_assert_eq!(&record.host, &lossy(&host));
        prop_assert_eq!(&Some(record.target.clone()), &lossy(&Some(target)));
        prop_assert_eq!(&record.agent, &lossy(&agent));
        prop_assert_eq!(&record.if_none_match, &lossy(&tag));
        prop_assert_eq!(&record.if_modified_since, &None);
        prop_assert_eq!((record.conn, record.stream, record.secure), (conn.into(), 3, true));
        prop_assert_eq!((record.status, record.bytes, record.whole), (status, bytes, whole));
    }

    #[test]
    fn any_text_is_an_event_or_a_fault(text in "(testweb-log 1\tseed=1\tunix_us=2\n)?[RCSTX\t0-9a-z.:/\\\\-]{0,60}\n?") {
        let mut reader = LogReader::new(text.as_bytes());
        let mut lines = 0;
        while let Some((line, _)) = reader.next_event().unwrap() {
            lines += 1;
            prop_assert_eq!(line, lines);
        }
        prop_assert_eq!(lines, text.lines().count() as u64);
    }
}

#[test]
fn a_log_that_cannot_be_written_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let error = Log::open(Some(dir.path()), 1, Instant::now(), 1).err().unwrap();
    assert!(error.to_string().contains("cannot open the log"), "{error}");
    let full = std::path::Path::new("/dev/full");
    if full.exists() {
        let log = Log::open(Some(full), 1, Instant::now(), 1).unwrap();
        log.flush();
        log.closed(1);
        assert!(log.finish().unwrap_err().to_string().contains("cannot write the log"));
    }
}
