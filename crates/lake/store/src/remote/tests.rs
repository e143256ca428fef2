use super::*;
use object_store::memory::InMemory;
use std::io::Write;

fn store(settings: RemoteSettings) -> RemoteStore {
    let memory = Arc::new(InMemory::new());
    RemoteStore::new(memory.clone(), Some(memory), Path::from("lakes/one"), "memory".into(), settings)
}

#[test]
fn many_parts_make_one_object() {
    let store = store(RemoteSettings { part: 5 << 20, ..RemoteSettings::default() });
    let bytes: Vec<u8> = (0..23_000_000u32).map(|n| (n ^ (n >> 8)) as u8).collect();
    let mut upload = store.upload("a/b").unwrap();
    for piece in bytes.chunks(777_777) {
        upload.write_all(piece).unwrap();
    }
    assert!(store.len("a/b").unwrap_err().is_not_found(), "not before it is finished");
    upload.finish().unwrap();
    assert_eq!(store.get("a/b", 1 << 30).unwrap(), bytes);
    drop(store.upload("a/c").unwrap());
    assert!(!store.exists("a/c").unwrap());
}

#[test]
fn it_works_on_the_threads_of_another_runtime() {
    let store = store(RemoteSettings::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    runtime.block_on(async {
        let task = tokio::task::spawn_blocking(move || {
            store.put("x", b"1").unwrap();
            store.get("x", 1).unwrap()
        });
        assert_eq!(task.await.unwrap(), "1");
    });
}

#[test]
fn addresses() {
    let env = [("AWS_ENDPOINT_URL".to_owned(), "http://127.0.0.1:1".to_owned())];
    for good in ["s3://bucket", "s3://bucket/", "s3://bucket/a/b/", "https://host/x"] {
        RemoteStore::open(good, &env, RemoteSettings::default()).unwrap();
    }
    for bad in ["s3://", "s3:///x", "ftp://host/x", "bucket", "s3://bucket/../x"] {
        assert!(RemoteStore::open(bad, &env, RemoteSettings::default()).is_err(), "{bad}");
    }
    let odd = RemoteStore::open("s3://bucket/a b", &env, RemoteSettings::default()).unwrap_err().to_string();
    assert!(odd.contains("letters, digits") && odd.ends_with("found \"s3://bucket/a b\""), "{odd}");
    assert!(is_remote("s3://b/p") && is_remote("https://h") && !is_remote("/a/b") && !is_remote("s3"));
    for address in ["s3://b/p", "S3://b/p", "s3:/b", "gs://b/p", "file:///a"] {
        assert!(is_address(address), "{address}");
    }
    for directory in ["lake", "/a/b", "./gs://b", "a:b", "C:/lake", "", ":/"] {
        assert!(!is_address(directory), "{directory}");
    }
}

#[test]
fn a_server_that_is_down_is_asked_a_bounded_number_of_times() {
    let env = [("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "x")];
    let env: Vec<_> = env.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    let retries = Retries {
        attempts: 4,
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(2),
        budget: 10,
        ..Retries::default()
    };
    let settings = RemoteSettings { retries, ..RemoteSettings::default() };
    let env =
        [env, vec![("AWS_ACCESS_KEY_ID".into(), "a".into()), ("AWS_SECRET_ACCESS_KEY".into(), "b".into())]].concat();
    let store = RemoteStore::open("s3://bucket/p", &env, settings).unwrap();
    let error = store.get("index/x", 9).unwrap_err().to_string();
    assert!(error.contains("s3://bucket/p") && error.contains("index/x") && error.contains("4 attempts"), "{error}");
    for _ in 0..20 {
        assert!(store.len("index/x").is_err());
    }
    let usage = store.usage();
    assert!(usage.retries <= 10 && usage.requests == 21 + usage.retries, "{usage:?}");
}
