//! Inputs made to hurt: each is answered, and soon.

use std::time::{Duration, Instant};

use trawl_url::key::{self, HostGroup, Policy};
use trawl_url::{Base, LakeUrl, MAX_URL_LEN, Reject, SuffixList, WebUrl, surt};

/// All folds on, so that every branch has its chance to be slow.
fn policy() -> Policy {
    Policy { fold_trailing_slash: true, fold_index: true, fold_case: true, collapse_slashes: true, ..Policy::default() }
}

/// The time this thread has worked, whatever else the machine does; where the system does not tell, the time of day.
fn worked(epoch: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| epoch.elapsed(), Duration::from_nanos)
}

/// Every form of one text; returns the lake form's answer.
fn all(raw: &[u8]) -> Result<LakeUrl, Reject> {
    // A machine that stood still may count that as work; what is slow is slow each time.
    let mut least = Duration::MAX;
    for _ in 0..3 {
        let (lake, took) = timed(raw);
        least = least.min(took);
        // Linear work on 64 KiB takes a few milliseconds even unoptimised; quadratic work takes many seconds.
        if least < Duration::from_secs(2) {
            return lake;
        }
    }
    panic!("took {least:?}");
}

fn timed(raw: &[u8]) -> (Result<LakeUrl, Reject>, Duration) {
    let psl = SuffixList::builtin();
    let epoch = Instant::now();
    let started = worked(epoch);
    let lake = LakeUrl::parse_bytes(raw, psl);
    for policy in [policy(), Policy::default()] {
        if let Ok(key) = key::canonical(raw, Some(b"http://base.example/a/b"), &policy) {
            key::of(&key, HostGroup::Registrable, psl);
        }
    }
    let text = String::from_utf8_lossy(raw);
    if let Ok(found) = WebUrl::parse(&text) {
        let _ = key::canonical_web(&found, &policy());
    }
    let _ = Base::new("http://base.example/a/b").unwrap().resolve(&text);
    let _ = Base::new(&text).and_then(|base| base.resolve("x"));
    let _ = surt::from_url(&text);
    let _ = surt::with_scheme(&text);
    let _ = surt::to_url(&text, "http");
    let _ = surt::cdxj(&text);
    key::legacy(&text, None);
    psl.registrable(&text);
    (lake, worked(epoch).saturating_sub(started))
}

#[test]
fn two_megabytes() {
    for unit in ["a", "é", "../", "%41", "&", "a.", "[", ":", "@", "#", "\u{200d}"] {
        let raw = format!("http://example.com/{}", unit.repeat((2 << 20) / unit.len()));
        assert_eq!(all(raw.as_bytes()).unwrap_err().code(), "too_long", "{unit}");
        all(unit.repeat((2 << 20) / unit.len()).as_bytes()).unwrap_err();
    }
    assert_eq!(all(&vec![0xff; 2 << 20]).unwrap_err().code(), "too_long");
}

/// Keys have no limit of their own: archives hold what they hold. A key that decoded again and again once took 26 s for
/// 200 KB.
#[test]
fn keys_are_linear() {
    for (head, unit) in [
        ("http://e.com/", "%2525"),
        ("http://e.com/%", "25"),
        ("http://", "%2525"),
        ("http://e.com/?", "%2525&"),
        ("http://e.com/", "/(000000000000000000000000)/x"),
        ("http://e.com/", "/(000000000000000000000000)/x%3f.aspx"),
        ("http://e.com/", "/(a(000000000000000000000000)b(000000000000000000000000))/x"),
        ("http://e.com/", "a/../"),
        ("http://e.com/?", "cfid=1&cftoken="),
        ("http://e.com/?", "sid=0000000000000000000000000000000x&"),
        ("http://", "http://"),
        ("http://", "\u{fdfa}."),
        ("http://", "."),
    ] {
        // The same bytes as a hundred URLs, as ten, as one of 2 MB.
        let took = [1, 10, 100].map(|times| {
            let url = format!("{head}{}", unit.repeat(times * 20_000 / unit.len()));
            let epoch = Instant::now();
            let run = |_| {
                let started = worked(epoch);
                (0..100 / times).for_each(|_| drop(surt::cdxj(&url).unwrap()));
                worked(epoch).saturating_sub(started)
            };
            (0..3).map(run).min().unwrap()
        });
        // If the work were quadratic, the long one would take a hundred times as long as the short ones.
        let most = took[0].max(Duration::from_millis(20)) * 10;
        assert!(took[1] < most && took[2] < most, "{head}{unit}: {took:?}");
    }
}

#[test]
fn as_long_as_allowed() {
    let head = "http://example.com/";
    let longest = format!("{head}{}", "a".repeat(MAX_URL_LEN - head.len()));
    assert_eq!(all(longest.as_bytes()).unwrap().as_str(), longest);
    assert_eq!(key::canonical(longest.as_bytes(), None, &Policy::default()).as_ref(), Ok(&longest));
    assert_eq!(WebUrl::parse(&longest).unwrap().as_str(), longest);
    assert_eq!(all(format!("{longest}a").as_bytes()).unwrap_err().code(), "too_long");
}

#[test]
fn many_of_everything() {
    for unit in [
        "../",
        "./",
        "a/../",
        "/",
        "//..",
        "%2e%2e/",
        "a/",
        "index.html/",
        "?",
        "&",
        "&a",
        "&b=1&a",
        "=",
        ";",
        "%",
        "%zz",
        "+",
        " ",
        "\t",
        "\\",
        "#",
        "@",
        ":",
        "[",
        "]",
        ".",
        "a.",
        "xn--",
        "xn--a.",
        "é",
        "é.",
        "ß",
        "\u{200d}",
        "\u{fdfa}",
        "\u{ad}",
        "。",
        "0x7f.",
        "1.",
        "ａ",
        "א",
        "٠",
        "\u{300}",
        "\u{1161}",
        "%25",
        "sid=",
        "cfid=",
        "&cftoken=1",
        "&sid=00000000000000000000000000000000",
        "cfid=1&cftoken=",
        "/(000000000000000000000000)",
        "/(a(000000000000000000000000))/x?.aspx",
    ] {
        let many = unit.repeat(60_000 / unit.len());
        for head in ["", "http://", "http://e.com/", "http://e.com/?", "http://u:p", "http://xn--", "https://e.com:"] {
            let _ = all(format!("{head}{many}").as_bytes());
        }
    }
}

#[test]
fn ten_thousand_steps_up() {
    let url = all(format!("http://example.com/a/{}b", "../".repeat(10_000)).as_bytes()).unwrap();
    assert_eq!(url.as_str(), "http://example.com/b");
}

#[test]
fn international_bombs() {
    // One code point that normalises to 18; labels near and above what punycode coders take; marks without end.
    let letters: String = ('\u{4e00}'..'\u{51de}').collect();
    let labels = format!("{letters}.").repeat(20);
    for host in [
        letters.clone(),
        labels.clone(),
        labels.bytes().take(20_000).map(|byte| format!("%{byte:02x}")).collect(),
        "\u{fdfa}".repeat(300),
        "é".repeat(500),
        format!("xn--{}", "a".repeat(1000)),
        "a\u{300}".repeat(300),
        "日本.".repeat(140),
    ] {
        let _ = all(format!("http://{host}/").as_bytes());
        let _ = all(format!("http://{host}.com/").as_bytes());
    }
    assert!(all(format!("http://{}.com/", "é".repeat(5000)).as_bytes()).is_err());
}

#[test]
fn bytes_of_every_kind_in_every_place() {
    for byte in 0..=u8::MAX {
        for head in [
            "",
            "h",
            "http://",
            "http://e",
            "http://e.com:",
            "http://e.com/",
            "http://e.com/?",
            "http://e.com/#",
            "http://%",
        ] {
            for tail in ["", "x", "e.com/"] {
                let _ = all(&[head.as_bytes(), &[byte], tail.as_bytes()].concat());
            }
        }
    }
}

#[test]
fn every_refusal_has_its_own_code() {
    let codes = [
        all(b""),
        all(&[b'a'; 70_000]),
        all(b"/x"),
        all(b"mailto:x"),
        all(b"http://a)b/"),
        all(b"http://xn--\xc3\xa9/"),
        all(b"http://1.2.3.4.5/"),
        all(b"http://e:x/"),
        all(format!("http://{}/", "a".repeat(2000)).as_bytes()),
    ]
    .map(|answer| answer.unwrap_err().code());
    assert_eq!(
        codes,
        ["empty", "too_long", "no_host", "scheme", "host_byte", "host_idna", "host_ip", "port", "host_too_long"]
    );
}
