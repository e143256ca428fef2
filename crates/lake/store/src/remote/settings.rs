//! Where a bucket is and how it is spoken to: an address, and the settings that every S3 program reads from the environment.

use super::{RemoteStore, Retries};
use crate::{Error, Result};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{ClientOptions, RetryConfig};
use std::sync::{Arc, Once};
use std::time::Duration;

/// How a remote store is used.
#[derive(Debug, Clone)]
pub struct RemoteSettings {
    /// Requests under way at a time.
    pub requests: usize,
    /// Ranges of one object at most this many bytes apart are one request.
    pub gap: u64,
    /// Longest range of one request, and length of the parts of an upload.
    pub part: u64,
    /// A request without an answer ends after this time and is retried.
    pub timeout: Duration,
    /// The newest state is asked for at most this often by readers.
    pub poll: Duration,
    /// What is tried again.
    pub retries: Retries,
}

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            requests: 64,
            gap: 16 << 10,
            part: 8 << 20,
            timeout: Duration::from_secs(30),
            poll: Duration::from_secs(1),
            retries: Retries::default(),
        }
    }
}

/// What a prefix may be. Others would be spelled in more than one way: by a client, in a signature, in a list.
const PREFIX: &str = "s3://bucket/prefix with a prefix of letters, digits and . _ - = between single slashes, no part starting \
                      with a dot";

/// Whether a place is an address of a remote store rather than a directory.
pub fn is_remote(place: &str) -> bool {
    ["s3://", "s3a://", "http://", "https://"].iter().any(|scheme| place.starts_with(scheme))
}

/// Whether a place looks like an address of any kind: `gs://bucket`, `file:///data`, or `s3:/bucket` with a slash left out. Taken
/// for a directory, it would be one below the current directory, and a lake or its copy would not be in the bucket that was
/// named. A single letter is a drive.
pub fn is_address(place: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-'))
    };
    place.split_once(":/").is_some_and(|(scheme, _)| is_scheme(scheme))
}

impl RemoteStore {
    /// Opens `s3://bucket/prefix` (read and written) or `http(s)://host/path` (only read). Credentials, region, endpoint and the
    /// like come from `env`: the variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
    /// `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP`, …
    pub fn open(place: &str, env: &[(String, String)], settings: RemoteSettings) -> Result<Self> {
        install_crypto();
        let bad = |found: &dyn ToString| Error::bad_name("s3://bucket/prefix or https://host/path", &found.to_string());
        let (scheme, rest) = place.split_once("://").ok_or_else(|| bad(&place))?;
        let refused = |error: object_store::Error| Error::Refused { reason: format!("{place}: {error}") };
        // All retries are ours.
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let place = place.trim_end_matches('/').to_owned();
        match scheme {
            "s3" | "s3a" => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                let prefix = prefix.trim_matches('/');
                if bucket.is_empty() {
                    return Err(bad(&place));
                }
                if !prefix.is_empty() && crate::check_path(prefix).is_err() {
                    return Err(Error::bad_name(PREFIX, &place));
                }
                let mut builder = AmazonS3Builder::new().with_retry(retry).with_client_options(client(&settings, env));
                for (name, value) in env.iter().filter(|(name, _)| name.starts_with("AWS_")) {
                    if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                        builder = builder.with_config(key, value);
                    }
                }
                // A bucket of its own name in the environment is not the one that was asked for.
                let builder = builder.with_bucket_name(bucket).with_checksum_algorithm(Checksum::SHA256);
                let store = Arc::new(builder.build().map_err(refused)?);
                let root = Path::parse(prefix).map_err(|_| bad(&prefix))?;
                Ok(Self::new(store.clone(), Some(store), root, place, settings))
            }
            "http" | "https" => {
                let builder = HttpBuilder::new().with_url(&place).with_retry(retry);
                let store = builder.with_client_options(client(&settings, env).with_allow_http(true)).build();
                Ok(Self::new(Arc::new(store.map_err(refused)?), None, Path::default(), place, settings))
            }
            _ => Err(bad(&place)),
        }
    }
}

fn client(settings: &RemoteSettings, env: &[(String, String)]) -> ClientOptions {
    let allowed = env.iter().any(|(name, value)| name == "AWS_ALLOW_HTTP" && matches!(value.as_str(), "1" | "true"));
    ClientOptions::new()
        .with_timeout(settings.timeout)
        .with_read_timeout(settings.timeout)
        .with_connect_timeout(settings.timeout.min(Duration::from_secs(5)))
        .with_pool_max_idle_per_host(settings.requests)
        .with_allow_http(allowed)
}

/// TLS by the library the crawler has too; of several the client would not know which to take.
fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // One that somebody else installed before serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
