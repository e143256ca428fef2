//! What the calls answer.

use crate::fixture::{Fixture, H2_PREFACE, ask, frame, get, h2_get, request};
use trawl_serve::Config;
use trawl_store::Acl;

#[test]
fn the_two_calls_of_the_seed_in_both_spellings() {
    let fixture = Fixture::new();
    let urls: String = (0..250).map(|n| format!("https://www.example.com/a/{n:03}\n")).collect();
    let id = fixture.add("first", &format!("{urls}http://other.co.uk/\n"));
    let server = fixture.serve(Config::default());
    let at = server.address();

    let (status, answer) = ask(at, "/v1/domain/example.com");
    assert_eq!(status, 200);
    assert_eq!(answer["domain"], "example.com");
    assert!(answer["domain_id"].is_u64());
    assert_eq!(answer["datasets"][0]["dataset_id"], id);
    assert_eq!(answer["datasets"][0]["url_count_est"], 250);
    for same in ["/domain/example.com", "/v1/domain/WWW.Example.COM.", "/domain/www.example.com"] {
        assert_eq!(ask(at, same).1, answer, "{same}");
    }

    for base in [
        format!("/v1/domain/example.com/datasets/{id}/urls"),
        format!("/domain/example.com/dataset/{id}/urls"),
        "/v1/domain/example.com/datasets/first/urls".to_owned(),
    ] {
        let mut seen = Vec::new();
        let mut offset = Some(0);
        while let Some(from) = offset {
            let (status, page) = ask(at, &format!("{base}?offset={from}&limit=99"));
            assert_eq!((status, page["total_est"].as_u64()), (200, Some(250)), "{base}");
            assert!(page["items"].as_array().unwrap().iter().all(|item| item["url_id"].as_str().unwrap().len() == 18));
            seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["url"].as_str().unwrap().to_owned()));
            offset = page["next_offset"].as_u64();
        }
        assert_eq!(seen, urls.lines().collect::<Vec<_>>());
    }
    server.stop().unwrap();
}

#[test]
fn names_catalogue_url_and_diff() {
    let fixture = Fixture::new();
    fixture.add("a", "http://x.com/1\nhttp://x.com/2\nhttp://only-a.org/\n");
    fixture.add("b", "http://x.com/2\nhttp://x.com/3\nhttp://shop.x.net/\n");
    let server = fixture.serve(Config::default());
    let at = server.address();
    let names = |path: &str| -> Vec<String> {
        let (status, answer) = ask(at, path);
        assert_eq!(status, 200, "{answer}");
        answer["domains"].as_array().unwrap().iter().map(|d| d["domain"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("/v1/domains"), ["only-a.org", "x.com", "x.net"]);
    assert_eq!(names("/v1/domains?prefix=x"), ["x.com", "x.net"]);
    assert_eq!(names("/v1/domains?suffix=.org"), ["only-a.org"]);
    assert_eq!(names("/v1/domains?dataset=b"), ["x.com", "x.net"]);
    assert_eq!(names("/v1/datasets/a/domains?suffix=.com"), ["x.com"]);
    let (_, first) = ask(at, "/v1/domains?limit=2");
    assert_eq!(first["next_after"], "x.com");
    assert_eq!(names("/v1/domains?limit=2&after=x.com"), ["x.net"]);

    let (_, datasets) = ask(at, "/v1/datasets");
    assert_eq!(datasets["datasets"][1]["name"], "b");
    assert_eq!(datasets["datasets"][0]["archive_base"].as_array().unwrap().len(), 0, "a path of this machine leaked");
    let (_, url) = ask(at, "/v1/url?url=http%3A%2F%2FX.com%2F2");
    let held: Vec<_> = url["items"].as_array().unwrap().iter().map(|item| item["dataset"].as_str().unwrap()).collect();
    assert_eq!(held, ["a", "b"]);

    let diff = get(at, "/v1/datasets/a/diff/b?urls=true");
    assert_eq!(diff.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<serde_json::Value> = diff.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let summary = lines.last().unwrap();
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["urls"], serde_json::json!({ "only_a": 2, "only_b": 2, "both": 1 }));
    assert_eq!(ask(at, "/v1/datasets/a/diff/nothing").0, 404);
    assert_eq!(ask(at, "/v1/stats").1["rows"], 6);
}

#[test]
fn filters_say_how_far_they_got() {
    let fixture = Fixture::new();
    let urls: String = (0..3000)
        .map(|n| {
            let status = if n % 1000 == 7 { 404 } else { 200 };
            format!("{{\"url\":\"http://h{}.big.com/p/{n:05}\",\"status\":{status}}}\n", n % 3)
        })
        .collect();
    let failed = "{\"url\":\"http://big.com/gone\",\"error_class\":\"dns_nxdomain\",\"error\":\"no such name\"}\n";
    let id = fixture.add_file("big", "big.jsonl", format!("{urls}{failed}").as_bytes(), trawl_store::Acl::Public);
    let server = fixture.serve(Config::default());
    let base = format!("/v1/domain/big.com/datasets/{id}/urls");
    let (_, rare) = ask(server.address(), &format!("{base}?status=404"));
    assert_eq!(rare["items"].as_array().unwrap().len(), 3, "one page, however many rows are looked at");
    assert_eq!(rare["progress"], serde_json::json!({ "seen": 3001, "of": 3001 }));
    let (_, host) = ask(server.address(), &format!("{base}?host=h1.big.com&limit=10"));
    assert_eq!((host["total_filtered"].as_u64(), host["progress"]["of"].as_u64()), (Some(1000), Some(1000)));
    assert!(host["next_cursor"].is_string());
    let (_, failed) = ask(server.address(), &format!("{base}?error_class=dns_nxdomain"));
    assert_eq!(failed["items"][0]["url"], "http://big.com/gone");
    assert_eq!(ask(server.address(), &format!("{base}?path_prefix=/p/0000&host=h0.big.com")).1["total_filtered"], 4);

    // Out of time: what was found, how far, and a way to go on that ends.
    let hasty = fixture.serve(Config { budget: std::time::Duration::ZERO, ..Config::default() });
    let (mut found, mut cursor, mut rounds) = (0, String::new(), 0);
    loop {
        let (status, page) = ask(hasty.address(), &format!("{base}?from=2000-01-01{cursor}"));
        assert_eq!(status, 200, "{page}");
        found += page["items"].as_array().unwrap().len();
        rounds += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!((found, rounds), (0, 1), "3001 rows are one step");
}

#[test]
fn answers_are_compressed_and_known_again() {
    let fixture = Fixture::new();
    let urls: String = (0..500).map(|n| format!("http://example.com/{n}\n")).collect();
    let id = fixture.add("first", &urls);
    let server = fixture.serve(Config::default());
    let path = format!("/v1/domain/example.com/datasets/{id}/urls");
    let plain = get(server.address(), &path);
    let etag = plain.header("etag").unwrap().to_owned();
    assert_eq!(plain.header("cache-control"), Some("no-cache"));
    for coding in ["gzip", "zstd"] {
        let packed = request(server.address(), "GET", &path, &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(packed.header("content-encoding"), Some(coding));
        assert!(packed.body.len() * 2 < plain.body.len());
        let mut head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\n\r\n").into_bytes();
        let codings = trawl_http::Head::new(&head).content_codings();
        head.clear();
        std::io::copy(&mut trawl_http::decode_content(&packed.body[..], &codings, 1 << 20).unwrap(), &mut head)
            .unwrap();
        assert!(head == plain.body);
    }
    let known = request(server.address(), "GET", &path, &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((known.status, known.body.len()), (304, 0));
    fixture.add("second", "http://example.com/new\n");
    assert_eq!(request(server.address(), "GET", &path, &format!("If-None-Match: {etag}\r\n")).status, 200);
    assert_eq!(request(server.address(), "GET", &path, "If-None-Match: *\r\n").status, 304);
    let absent = request(server.address(), "GET", "/v1/domain/absent.com", "If-None-Match: *\r\n");
    assert_eq!(absent.status, 404, "what is not there is nobody's copy");
    let head = request(server.address(), "HEAD", &path, "");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn what_is_published_meanwhile_is_served() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config::default());
    assert_eq!(ask(server.address(), "/v1/domain/example.org").0, 404);
    fixture.add("second", "http://example.org/\nhttp://example.com/x\n");
    assert_eq!(ask(server.address(), "/v1/domain/example.org").0, 200);
    assert_eq!(ask(server.address(), "/v1/domain/example.com").1["datasets"].as_array().unwrap().len(), 2);
}

#[test]
fn the_server_tells_about_itself() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config::default());
    let at = server.address();
    assert_eq!(ask(at, "/healthz").1["status"], "ok");
    assert_eq!(ask(at, "/readyz").1["status"], "ready");
    ask(at, "/v1/domain/example.com");
    let metrics = get(at, "/metrics").text();
    assert!(metrics.contains("trawl_requests_total{route=\"/v1/domain/{domain}\",status=\"200\"} 1"), "{metrics}");
    assert!(metrics.contains("trawl_request_seconds_bucket{route=\"/v1/domain/{domain}\",le=\"+Inf\"} 1"));
    let (_, api) = ask(at, "/openapi.json");
    for path in api["paths"].as_object().unwrap().keys() {
        let filled = path.replace("{domain}", "example.com").replace("{dataset}", "first").replace("{other}", "first");
        assert_ne!(get(at, &filled).status, 404, "{path} is described and not there");
    }
    let page = get(at, "/");
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'; script-src 'self'"));
    assert!(
        !page.text().contains("<script>") && !page.text().contains("style="),
        "the policy would refuse inline code"
    );
    assert_eq!(get(at, "/docs").status, 200);
}

#[test]
fn http_2_is_spoken_without_tls_too() {
    use std::io::{Read, Write};
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config::default());
    let mut socket = crate::fixture::connect(server.address());
    let (good, absent) = (h2_get("/v1/domain/example.com"), h2_get("/v1/domain/absent.com"));
    let mut request = H2_PREFACE.to_vec();
    request.extend([frame(4, 0, 0, &[]), frame(1, 5, 1, &good), frame(1, 5, 3, &absent)].concat());
    socket.write_all(&request).unwrap();
    let mut statuses = std::collections::BTreeMap::new();
    while statuses.len() < 2 {
        let mut header = [0; 9];
        socket.read_exact(&mut header).unwrap();
        let mut payload = vec![0; usize::from(header[1]) << 8 | usize::from(header[2])];
        socket.read_exact(&mut payload).unwrap();
        if header[3] == 1 {
            statuses.insert(header[8], payload[0]);
        }
    }
    // 200 and 404 are fields of the static table.
    assert_eq!(statuses.into_iter().collect::<Vec<_>>(), [(1, 0x88), (3, 0x8d)]);
}

#[test]
fn addresses_of_archives_are_shown_without_what_opens_them() {
    let fixture = Fixture::new();
    let list = fixture.path("list.txt");
    std::fs::write(&list, "http://x.com/\n").unwrap();
    let base = "https://me:secret@files.example/a/?signature=secret".to_owned();
    fixture.take(&fixture.lake, "list", &list, Acl::Public, vec![base]);
    let server = fixture.serve(Config::default());
    let (_, datasets) = ask(server.address(), "/v1/datasets");
    assert_eq!(datasets["datasets"][0]["archive_base"], serde_json::json!(["https://files.example/a/"]));
}
