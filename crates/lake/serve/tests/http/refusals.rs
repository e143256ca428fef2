//! Requests that are no good.

use crate::fixture::{Fixture, ask, connect, get, parse, request, send};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trawl_serve::{Config, Event};

#[test]
fn refusals_have_a_status_and_a_code() {
    let fixture = Fixture::new();
    let id = fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config::default());
    let urls = |query: &str| format!("/v1/domain/example.com/datasets/{id}/urls?{query}");
    let long = "x".repeat(5000);
    for (path, status, code) in [
        ("/v1/domain/absent.example".to_owned(), 404, "unknown_domain"),
        ("/v1/domain/com".to_owned(), 404, "unknown_domain"),
        ("/v1/domain/%20".to_owned(), 400, "bad_domain"),
        ("/v1/domain/%ff".to_owned(), 400, "bad_request"),
        ("/v1/domain/a%00b.com".to_owned(), 400, "bad_domain"),
        ("/v1/domain/..%2f..%2fetc%2fpasswd".to_owned(), 400, "bad_domain"),
        ("/v1/domain/%2e%2e".to_owned(), 400, "bad_domain"),
        (format!("/v1/domain/{long}.com"), 400, "bad_domain"),
        ("/v1/domain/example.com/datasets/99/urls".to_owned(), 404, "unknown_dataset"),
        ("/v1/domain/example.com/datasets/x/urls".to_owned(), 404, "unknown_dataset"),
        (format!("/v1/domain/example.com/datasets/+{id}/urls"), 404, "unknown_dataset"),
        (format!("/v1/domain/example.com/datasets/0{id}/urls"), 404, "unknown_dataset"),
        (urls("limit=-1"), 400, "bad_request"),
        (urls("limitt=1"), 400, "bad_request"),
        (urls("limit=1&limit=2"), 400, "bad_request"),
        (urls("cursor=rubbish"), 400, "bad_cursor"),
        (urls("cursor=x&offset=1"), 400, "bad_request"),
        (urls("from=yesterday"), 400, "bad_request"),
        (urls("host=a%2fb"), 400, "bad_domain"),
        ("/v1/url".to_owned(), 400, "bad_request"),
        ("/v1/url?url=mailto:x".to_owned(), 400, "bad_url"),
        ("/v1/stats?x=1".to_owned(), 400, "bad_request"),
        ("/v1/capture/first?url=http://example.com/".to_owned(), 404, "unknown_capture"),
        ("/v1/capture/first".to_owned(), 400, "bad_request"),
        ("/v1/capture/first?locator=rubbish".to_owned(), 400, "bad_request"),
        ("/cdx".to_owned(), 400, "bad_request"),
        ("/cdx?url=example.com&filter=(".to_owned(), 400, "bad_request"),
        ("/timegate/".to_owned(), 404, "unknown_path"),
        ("/timegate/http://example.com/".to_owned(), 404, "unknown_capture"),
        ("/web/2026/http://example.com/".to_owned(), 302, ""),
        ("/web/http://example.com/".to_owned(), 404, "unknown_capture"),
        ("/web/x/http://example.com/".to_owned(), 404, "unknown_capture"),
        ("/web/xid_/http://example.com/".to_owned(), 400, "bad_request"),
        ("/v2/domain/example.com".to_owned(), 404, "unknown_path"),
        ("/v1/domain//".to_owned(), 404, "unknown_path"),
    ] {
        let reply = get(server.address(), &path);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        if !code.is_empty() {
            let answer = reply.json();
            assert_eq!(answer["error"].as_str(), Some(code), "{path}: {answer}");
            let message = answer["message"].as_str().unwrap();
            assert!(!message.is_empty() && !message.contains("deserialize"), "{path}: {message}");
        }
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
        let refused = request(server.address(), method, "/v1/stats", "");
        assert_eq!((refused.status, refused.json()["error"].as_str()), (405, Some("method_not_allowed")), "{method}");
        assert!(refused.header("allow").is_some());
    }
    let host = "GET /healthz HTTP/1.1\r\n";
    for (raw, status, code) in [
        ("nonsense\r\n\r\n".to_owned(), 400, "bad_request"),
        (format!("{host}\r\n"), 400, "bad_request"),
        (format!("{host}Host: a\r\nHost: b\r\n\r\n"), 400, "bad_request"),
        (format!("{host}Host: a\r\nX: {}\r\n\r\n", "y".repeat(100_000)), 431, "head_too_large"),
    ] {
        let refused = parse(&send(server.address(), raw.as_bytes()));
        assert_eq!((refused.status, refused.json()["error"].as_str()), (status, Some(code)), "{raw:.40}");
        assert_eq!(refused.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn spellings_of_a_name_are_one_domain() {
    let fixture = Fixture::new();
    fixture.add("first", "http://b\u{fc}cher.example/\n");
    let server = fixture.serve(Config::default());
    for name in ["b%C3%BCcher.example", "B%C3%9CCHER.example", "xn--bcher-kva.example", "XN--BCHER-KVA.Example."] {
        assert_eq!(ask(server.address(), &format!("/v1/domain/{name}")).1["domain"], "xn--bcher-kva.example", "{name}");
    }
}

#[test]
fn what_follows_a_body_is_not_a_request() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config::default());
    let smuggled = "GET /v1/stats HTTP/1.1\r\nHost: x\r\n\r\n";
    for head in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Content-Length: 0\r\nContent-Length: 44\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
    ] {
        let text = format!("GET /v1/stats HTTP/1.1\r\nHost: x\r\n{head}\r\n0\r\n\r\n{smuggled}");
        let answer = send(server.address(), text.as_bytes());
        let text = String::from_utf8_lossy(&answer);
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{head}: {text}");
        assert!(parse(&answer).status >= 400, "{head}: {text}");
    }
}

#[test]
fn too_much_of_everything_is_refused() {
    let fixture = Fixture::new();
    fixture.add("first", "http://example.com/\n");
    let server = fixture.serve(Config::default());
    let at = server.address();
    let many = "X-Filler: y\r\n".repeat(200);
    assert_eq!(request(at, "GET", "/v1/stats", &many).status, 431);
    let wide = format!("X-Filler: {}\r\n", "y".repeat(100_000));
    assert!(matches!(request(at, "GET", "/v1/stats", &wide).status, 431 | 400));
    let long = format!("/v1/domain/{}", "a".repeat(100_000));
    assert!(matches!(get(at, &long).status, 400 | 414 | 431));
    assert_eq!(ask(at, "/healthz").0, 200);
}

#[test]
fn a_damaged_lake_is_told_to_the_operator_and_not_to_the_asker() {
    let fixture = Fixture::new();
    let id = fixture.add("first", "http://example.com/\n");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let server = fixture.serve(Config {
        on_event: Box::new(move |event| {
            if let Event::LakeError(error) = event {
                sink.lock().unwrap().push(error.to_string());
            }
        }),
        ..Config::default()
    });
    damage_parquet(&fixture.path("lake/urls"));
    let (status, answer) = ask(server.address(), &format!("/v1/domain/example.com/datasets/{id}/urls"));
    assert_eq!((status, answer["error"].as_str()), (500, Some("lake_error")));
    assert!(!answer.to_string().contains(".parquet"), "{answer}");
    assert!(heard.lock().unwrap().iter().any(|text| text.contains(".parquet")), "{heard:?}");
}

/// Overwrites the data of every Parquet file below `dir`.
fn damage_parquet(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        if entry.is_dir() {
            damage_parquet(&entry);
        } else if entry.extension().is_some_and(|e| e == "parquet") {
            let len = std::fs::metadata(&entry).unwrap().len();
            std::fs::write(&entry, vec![0xa5; usize::try_from(len).unwrap()]).unwrap();
        }
    }
}

#[test]
fn requests_are_logged_by_route_and_number_never_by_name() {
    let fixture = Fixture::new();
    let id = fixture.add("first", "http://secret-name.com/private/path\n");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let server = fixture.serve(Config {
        on_event: Box::new(move |event| {
            if let Event::Request(request) = event {
                sink.lock().unwrap().push(serde_json::to_string(request).unwrap());
            }
        }),
        ..Config::default()
    });
    ask(server.address(), "/v1/domain/secret-name.com");
    ask(server.address(), &format!("/v1/domain/secret-name.com/datasets/{id}/urls?path_prefix=/private"));
    get(server.address(), "/secret-name.com");
    let mut stream = connect(server.address());
    stream.write_all(b"GET /v1/url?url=http://secret-name.com/private HTTP/1.1\r\nHost: secret-name.com\r\nAuthorization: Bearer secret-token\r\nConnection: close\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    std::thread::sleep(Duration::from_millis(50));
    let heard = heard.lock().unwrap().join("\n");
    assert!(heard.contains("\"route\":\"/v1/domain/{domain}\"") && heard.contains("\"domain_id\":"), "{heard}");
    assert!(!heard.contains("secret") && !heard.contains("private"), "{heard}");
}
