//! Hosts and pages that misbehave do so in the way their character says.

mod common;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use common::{Answer, find_page, get, only, parts, tcp};
use trawl_testweb::{Character, Config, NameService, Running, TestWeb};

/// Starts a web of one fate and asks for a page that has it.
fn ask(fate: Character, config: impl FnOnce(Config) -> Config) -> (Running, Answer, usize) {
    let web = TestWeb::start(config(only(&[fate]))).unwrap();
    let (_, node) = find_page(web.world(), |page| web.world().fate(page) == Some(fate));
    let (host, target) = parts(web.world(), node);
    let answer = get(&mut tcp(web.addr()), &host, &target, "");
    let mut html = String::new();
    web.world().render(node, web.time(), &mut html);
    (web, answer, html.len())
}

#[test]
fn bodies_break_off_or_go_on() {
    let (_web, answer, length) = ask(Character::ResetBody, |c| c);
    assert!(answer.error.as_deref().unwrap().contains("reset"), "{:?}", answer.error);
    assert_eq!(answer.body.len(), length / 2);

    let (_web, answer, length) = ask(Character::ShortBody, |c| c);
    assert_eq!((answer.error.as_deref(), answer.body.len()), (Some("closed"), length / 2));
    assert_eq!(answer.header("content-length"), Some(length.to_string().as_str()));

    let (_web, answer, length) = ask(Character::LongBody, |c| c);
    assert!(answer.body.len() > length && answer.error.is_none());

    let (_web, answer, _) = ask(Character::EndlessBody, |c| Config { endless_bytes: 3 << 20, ..c });
    assert_eq!((answer.body.len(), answer.header("content-length")), (3 << 20, None));
}

#[test]
fn drips_and_slow_hosts_take_their_time() {
    let begun = Instant::now();
    let (_web, answer, length) = ask(Character::Drip, |c| c);
    assert_eq!((answer.body.len(), answer.error), (length, None));
    assert!(begun.elapsed() >= Duration::from_millis(200));

    let web = TestWeb::start(only(&[Character::Slow])).unwrap();
    let begun = Instant::now();
    assert_eq!(get(&mut tcp(web.addr()), &web.world().hosts()[0].name, "/", "").status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(200));
}

/// The log as it is now.
fn logged(web: &Running) -> String {
    web.flush_log();
    std::fs::read_to_string(web.log_path().unwrap()).unwrap()
}

#[test]
fn silence_lasts_until_the_client_leaves_and_is_logged() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let web = TestWeb::start(Config { log: Some(log.clone()), ..only(&[Character::Silent]) }).unwrap();
    let host = web.world().hosts().iter().rfind(|h| h.conduct == Some(Character::Silent)).unwrap().name.clone();
    let mut stream = tcp(web.addr());
    stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let answer = get(&mut stream, &host, "/robots.txt", "");
    assert_eq!((answer.status, answer.head.as_str()), (0, ""));
    assert!(!logged(&web).contains("\tcut\n"), "it ended before the client left");
    drop(stream);
    let until = Instant::now() + Duration::from_secs(60);
    while !logged(&web).contains("\tcut\n") {
        assert!(Instant::now() < until, "the server does not notice: {}", logged(&web));
        std::thread::sleep(Duration::from_millis(5));
    }
    web.stop().unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains(&format!("\t{host}\tGET\t/robots.txt\t0\t0\t")) && text.contains("\tcut\n"), "{text}");
}

#[test]
fn hang_ups_are_resets() {
    let web = TestWeb::start(only(&[Character::HangUp])).unwrap();
    let host = web.world().hosts().iter().rfind(|h| h.conduct == Some(Character::HangUp)).unwrap().name.clone();
    let answer = get(&mut tcp(web.addr()), &host, "/", "");
    assert!(answer.error.as_deref().unwrap().contains("reset"), "{:?}", answer.error);
}

#[test]
fn bombs_are_small_on_the_wire() {
    let (_web, answer, _) = ask(Character::Bomb, |c| c);
    assert!(answer.body.len() < 20_000);
    let large = std::io::copy(&mut flate2::read::GzDecoder::new(&answer.body[..]), &mut std::io::sink()).unwrap();
    assert_eq!(large, 8 << 20);
}

#[test]
fn bad_heads_are_bad_in_a_dozen_ways() {
    let web = TestWeb::start(only(&[Character::BadHead])).unwrap();
    let mut heads = std::collections::BTreeSet::new();
    for id in web.world().host_ids() {
        for page in web.world().pages(id).filter(|&page| web.world().fate(page).is_some()).take(40) {
            let (host, target) = parts(web.world(), web.world().find(&web.world().url(page)).unwrap());
            let mut stream = tcp(web.addr());
            write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            // The lengths differ from page to page; they are not what makes a head odd.
            let head = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).replace(": 7\r", ": seven\r");
            let head: String = head.chars().filter(|c| !c.is_ascii_digit()).collect();
            heads.insert(head.split("<!").next().unwrap().to_owned());
        }
    }
    assert!(heads.len() >= 12, "{}: {heads:#?}", heads.len());
}

#[test]
fn closing_hosts_close() {
    let web = TestWeb::start(only(&[Character::Closing])).unwrap();
    let mut stream = tcp(web.addr());
    let host = web.world().hosts()[0].name.clone();
    let answer = get(&mut stream, &host, "/", "");
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(get(&mut stream, &host, "/", "").error.is_some());
}

#[test]
fn surplus_bytes_wait_on_an_open_connection() {
    for character in [Character::SurplusBody, Character::NoContentBody] {
        let web = TestWeb::start(only(&[character])).unwrap();
        let world = web.world();
        let (host, target) = parts(world, find_page(world, |page| world.fate(page).is_some()).1);
        let mut stream = tcp(web.addr());
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        // The next request is answered on the same connection: whoever reads what lies before takes it for the answer.
        write!(stream, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert_eq!(text.matches("HTTP/1.1 ").count(), 3, "{character:?}");
        assert!(text.contains("lies"), "{character:?}");
    }
}

#[test]
fn a_broken_page_is_whole_the_second_time() {
    let (web, first, _) = ask(Character::CutOnce, |c| c);
    let (_, node) = find_page(web.world(), |page| web.world().fate(page) == Some(Character::CutOnce));
    assert!(first.error.is_some() && first.status == 200, "{first:?}");
    let (host, target) = parts(web.world(), node);
    let second = get(&mut tcp(web.addr()), &host, &target, "");
    assert!(second.error.is_none() && second.body.starts_with(&first.body), "{:?}", second.error);
    assert!(second.body.len() > first.body.len());
}

#[test]
fn a_restart_refuses_and_ends() {
    let web = TestWeb::start(only(&[])).unwrap();
    let host = web.world().hosts()[0].name.clone();
    let mut before = tcp(web.addr());
    assert_eq!(get(&mut before, &host, "/", "").status, 200);
    web.set_open(false);
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match std::net::TcpStream::connect(web.addr()) {
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => break,
            // One that is taken while the listener closes is reset.
            found => assert!(Instant::now() < until, "it still listens: {found:?}"),
        }
    }
    // An open connection ends too, if not in the same moment.
    while get(&mut before, &host, "/", "").error.is_none() {
        assert!(Instant::now() < until, "its connections stay open");
    }
    web.set_open(true);
    let mut after = loop {
        match std::net::TcpStream::connect(web.addr()) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
    };
    assert_eq!(get(&mut after, &host, "/", "").status, 200);
}

/// Asks the web's name server for the address of a name; the code of its answer and the last four bytes of it.
fn resolve(web: &Running, name: &str) -> Option<(u8, Vec<u8>)> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut question = b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00".to_vec();
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend_from_slice(label.as_bytes());
    }
    question.extend_from_slice(b"\x00\x00\x01\x00\x01");
    socket.send_to(&question, web.names_addr()).unwrap();
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer).ok()?;
    Some((answer[3] & 0x0f, answer[length - 4..length].to_vec()))
}

#[test]
fn names_are_resolved_or_not() {
    let mut config = only(&[Character::DnsFlaky]);
    config.addresses = trawl_testweb::Addresses::Many;
    let web = TestWeb::start(config).unwrap();
    let world = web.world();
    let of = |wanted| world.host_ids().find(|&id| world.host(id).unwrap().resolution == wanted).unwrap();
    let flaky = of(Some(Character::DnsFlaky));
    let (name, address) = (world.host(flaky).unwrap().name.clone(), world.address(flaky).octets().to_vec());
    assert_eq!(resolve(&web, &name).unwrap().0, 2);
    assert_eq!(resolve(&web, &name).unwrap().0, 2);
    assert_eq!(resolve(&web, &name), Some((0, address.clone())));
    assert_eq!(resolve(&web, "nobody.example").unwrap().0, 3);
    for (mode, code) in [(NameService::Fails, Some(2)), (NameService::Refuses, Some(5)), (NameService::Silent, None)] {
        web.set_names(mode);
        assert_eq!(resolve(&web, &name).map(|(code, _)| code), code);
    }
    web.set_names(NameService::Answers);
    assert_eq!(resolve(&web, &name), Some((0, address)));
}
