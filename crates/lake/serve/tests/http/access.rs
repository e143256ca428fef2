//! Rights: who sees what, and that what is hidden is as good as absent.

use crate::fixture::{Fixture, Reply, get, request, response};
use sha2::Digest;
use std::time::{Duration, Instant};
use trawl_serve::Config;
use trawl_store::Acl;

fn hash(token: &str) -> String {
    data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(token.as_bytes()))
}

fn rules(fixture: &Fixture, anonymous: bool) -> std::path::PathBuf {
    let path = fixture.path("tokens.toml");
    let text = format!(
        "anonymous = {anonymous}\n\
         [[token]]\nsha256 = \"{}\"\nprincipal = \"ann\"\n\
         [[token]]\nsha256 = \"{}\"\nprincipal = \"bob\"\ngroups = [\"staff\"]\n\
         [[token]]\nsha256 = \"{}\"\nprincipal = \"root\"\nadmin = true\n",
        hash("ann-token"),
        hash("bob-token"),
        hash("root-token")
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn fixture() -> Fixture {
    let fixture = Fixture::new();
    let page = |id, url: &str| response(id, url, "2026-01-01T00:00:00Z", b"HTTP/1.1 200 OK\r\n\r\nsecret");
    fixture.add("open", "http://x.com/open\n");
    let staff = Acl::Principals(vec!["staff".into()]);
    fixture.add_file("closed", "closed.warc", &page(1, "http://x.com/closed"), staff.clone());
    fixture.add_file("hidden", "hidden.warc", &page(2, "http://hidden.com/"), staff);
    fixture
}

fn bearer(server: &trawl_serve::Running, path: &str, token: &str) -> Reply {
    let header = if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    request(server.address(), "GET", path, &header)
}

#[test]
fn every_call_with_every_principal() {
    let fixture = fixture();
    let server = fixture.serve(Config { access: Some(rules(&fixture, true)), ..Config::default() });
    // Of a dataset that one may not see there is no trace in any answer.
    let calls = [
        "/v1/domain/hidden.com",
        "/v1/domain/x.com/datasets/closed/urls",
        "/v1/domain/x.com/datasets/2/urls",
        "/v1/domain/x.com/datasets/2/export",
        "/v1/datasets/closed/export",
        "/v1/datasets/2/export",
        "/v1/datasets/2/domains",
        "/v1/datasets/open/diff/closed",
        "/v1/capture/closed?url=http://x.com/closed",
        "/v1/capture/2?url=http://x.com/closed",
        "/web/2026id_/http://hidden.com/",
        "/timegate/http://hidden.com/",
        "/timemap/link/http://hidden.com/",
    ];
    for path in calls {
        for token in ["", "ann-token"] {
            let reply = bearer(&server, path, token);
            assert_eq!(reply.status, 404, "{path} {token:?}: {}", reply.text());
        }
        for token in ["bob-token", "root-token"] {
            assert!(bearer(&server, path, token).status < 400, "{path} {token:?}");
        }
        assert_eq!(bearer(&server, path, "wrong").status, 401);
    }
    for (path, field) in [
        ("/v1/datasets", "closed"),
        ("/v1/domains", "hidden.com"),
        ("/v1/url?url=http://x.com/closed", "secret"),
        ("/cdx?url=*.hidden.com", "hidden"),
    ] {
        let without = bearer(&server, path, "");
        assert!(without.status == 200 && !without.text().contains("dataset\":\"closed"), "{path}");
        assert!(!without.text().contains(field) || path.contains("/v1/url"), "{path}: {}", without.text());
        assert_eq!(bearer(&server, path, "wrong").status, 401);
    }
    let stats = |token: &str| bearer(&server, "/v1/stats", token).json()["rows"].as_u64();
    assert_eq!(
        (stats(""), stats("ann-token"), stats("bob-token"), stats("root-token")),
        (Some(1), Some(1), Some(3), Some(3))
    );
    // Names are not counted either, and none that is hidden is where a page ends.
    let names = |query: &str, token: &str| bearer(&server, &format!("/v1/domains?{query}"), token).json();
    assert_eq!(
        (&names("prefix=hidden", "")["seen"], &names("prefix=hidden", "bob-token")["seen"]),
        (&0.into(), &1.into())
    );
    assert_eq!(
        (&names("limit=1", "")["next_after"], &names("limit=1", "")["seen"]),
        (&serde_json::Value::Null, &1.into())
    );
    assert_eq!(names("limit=1", "bob-token")["next_after"], "hidden.com");
    let sizes = |token: &str| bearer(&server, "/v1/stats", token).json();
    let (few, all) = (sizes(""), sizes("bob-token"));
    for key in ["rows", "domains", "datasets", "segments", "files", "bytes", "index_bytes"] {
        assert!(few[key].as_u64() < all[key].as_u64(), "{key}: {few}, {all}");
    }
    // Absent and hidden: the same bytes, but for the name that was asked for.
    let said = |path: &str, name: &str| bearer(&server, path, "").text().replace(name, "X");
    assert_eq!(said("/v1/domain/hidden.com", "hidden.com"), said("/v1/domain/absent.com", "absent.com"));
    assert_eq!(
        said("/v1/domain/x.com/datasets/closed/urls", "closed"),
        said("/v1/domain/x.com/datasets/absent/urls", "absent")
    );
    assert_eq!(said("/v1/domain/x.com/datasets/2/urls", "2"), said("/v1/domain/x.com/datasets/77/urls", "77"));
    assert_eq!(request(server.address(), "GET", "/v1/domain/hidden.com", "X-Api-Key: bob-token\r\n").status, 200);
}

/// Every address that the server has, from its own description and beside it, with every kind of token: nothing of what is closed
/// comes out, whatever is asked, and a wrong token opens nothing that a token is looked at for.
#[test]
fn every_address_with_every_principal_tells_nothing_that_is_closed() {
    let fixture = fixture();
    let server = fixture.serve(Config { access: Some(rules(&fixture, true)), ..Config::default() });
    let described = get(server.address(), "/openapi.json").json();
    let mut paths: Vec<String> = described["paths"].as_object().unwrap().keys().cloned().collect();
    assert!(paths.len() >= 16);
    let own = [
        "/",
        "/explorer.js",
        "/explorer.css",
        "/docs",
        "/docs.js",
        "/openapi.json",
        "/metrics",
        "/healthz",
        "/readyz",
        "/health",
    ];
    paths.extend(own.map(str::to_owned));
    paths.extend(
        ["/web/2026id_/", "/web/", "/web/*/", "/web/timemap/link/", "/timegate/", "/timemap/link/"]
            .into_iter()
            .flat_map(|path| ["x.com/closed", "hidden.com/"].map(|url| format!("{path}http://{url}"))),
    );
    for path in paths {
        for (domain, dataset) in [("x.com", "closed"), ("hidden.com", "hidden"), ("hidden.com", "3"), ("x.com", "2")] {
            let path = path.replace("{domain}", domain).replace("{dataset}", dataset).replace("{other}", "open");
            let url = if domain == "x.com" { "http://x.com/closed" } else { "http://hidden.com/" };
            let path = match path.as_str() {
                "/v1/url" => format!("{path}?url={url}"),
                "/cdx" => format!("{path}?url={url}&matchType=domain&fl=original,filename,digest,dataset"),
                path if path.starts_with("/v1/capture") => format!("{path}?url={url}"),
                path => path.to_owned(),
            };
            for token in ["", "ann-token"] {
                let reply = bearer(&server, &path, token);
                // What was asked for comes back in messages; bodies, files and names of datasets were not.
                let text = reply.text().replace(&path, "").replace(url, "").replace(&format!("\\\"{dataset}\\\""), "");
                for secret in ["secret", ".warc", "staff", "\"closed", "\"hidden\"", "sha1:"] {
                    assert!(!text.contains(secret), "{path} {token:?} tells {secret}: {text}");
                }
                assert!(reply.status < 500, "{path}: {}", reply.status);
            }
            let open = own.contains(&path.as_str());
            assert_eq!(bearer(&server, &path, "wrong").status == 401, !open, "{path} with a wrong token");
            for token in ["bob-token", "root-token"] {
                assert!(bearer(&server, &path, token).status < 500, "{path} {token}");
            }
        }
    }
}

#[test]
fn copies_know_whose_they_are() {
    let fixture = fixture();
    let server = fixture.serve(Config { access: Some(rules(&fixture, true)), ..Config::default() });
    let (anyone, bob) = (bearer(&server, "/v1/domain/x.com", ""), bearer(&server, "/v1/domain/x.com", "bob-token"));
    assert_ne!(anyone.header("etag"), bob.header("etag"));
    assert_eq!(
        (anyone.header("cache-control"), bob.header("cache-control")),
        (Some("no-cache"), Some("private, no-cache"))
    );
    assert!(bob.header("vary").unwrap().contains("authorization"));
    let stolen = format!("If-None-Match: {}\r\n", bob.header("etag").unwrap());
    assert_eq!(request(server.address(), "GET", "/v1/domain/x.com", &stolen).status, 200);
}

#[test]
fn tokens_are_read_again_and_bad_files_leave_the_old_ones() {
    let fixture = fixture();
    let path = rules(&fixture, false);
    let poll = Duration::from_millis(100);
    let server = fixture.serve(Config { access: Some(path.clone()), poll, ..Config::default() });
    assert_eq!(bearer(&server, "/v1/stats", "").status, 401);
    assert_eq!(bearer(&server, "/healthz", "").status, 200);
    assert_eq!(bearer(&server, "/v1/stats", "ann-token").status, 200);
    let until = |token: &str, status: u16| {
        let begun = Instant::now();
        while bearer(&server, "/v1/stats", token).status != status {
            assert!(begun.elapsed() < Duration::from_secs(20), "{token} never became {status}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    std::fs::write(&path, "nonsense").unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(bearer(&server, "/v1/stats", "ann-token").status, 200);
    std::fs::write(&path, format!("[[token]]\nsha256 = \"{}\"\nprincipal = \"eve\"\n", hash("eve-token"))).unwrap();
    until("ann-token", 401);
    until("eve-token", 200);
    // What a writer has emptied and not yet written again is no list of nobody.
    std::fs::write(&path, "").unwrap();
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(bearer(&server, "/v1/stats", "eve-token").status, 200);
    std::fs::write(fixture.path("bad.toml"), "[[token]]\nsha256 = \"plain\"\nprincipal = \"x\"\n").unwrap();
    let bad = fixture.try_serve(Config { access: Some(fixture.path("bad.toml")), ..Config::default() });
    assert!(bad.err().unwrap().to_string().contains("bad.toml: token of \"x\": expected sha256"));
}

#[test]
fn admin_calls_are_elsewhere_and_for_admins() {
    let fixture = fixture();
    let admin = Some(([127, 0, 0, 1], 0).into());
    let server = fixture.serve(Config { access: Some(rules(&fixture, true)), admin, ..Config::default() });
    let at = server.admin_address().unwrap();
    assert_eq!(request(at, "GET", "/metrics", "").status, 200);
    assert_eq!(request(server.address(), "GET", "/metrics", "").status, 404);
    assert_eq!(request(server.address(), "GET", "/admin/datasets", "").status, 404);
    assert_eq!(request(at, "GET", "/admin/datasets", "Authorization: Bearer bob-token\r\n").status, 401);
    let all = request(at, "GET", "/admin/datasets", "Authorization: Bearer root-token\r\n").json();
    assert_eq!(all["datasets"][1]["acl"]["principals"][0], "staff");
}

#[test]
fn origins_by_setting() {
    let fixture = fixture();
    let server = fixture.serve(Config { cors: vec!["https://good.example".into()], ..Config::default() });
    let from =
        |origin: &str, method: &str| request(server.address(), method, "/v1/stats", &format!("Origin: {origin}\r\n"));
    assert_eq!(from("https://good.example", "GET").header("access-control-allow-origin"), Some("https://good.example"));
    assert_eq!(from("https://evil.example", "GET").header("access-control-allow-origin"), None);
    let preflight = from("https://good.example", "OPTIONS");
    assert_eq!(preflight.status, 204);
    assert!(preflight.header("access-control-allow-headers").unwrap().contains("authorization"));
    assert_eq!(from("https://evil.example", "OPTIONS").header("access-control-allow-headers"), None);
}
