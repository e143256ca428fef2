//! Certificates from files, read again when they change.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Where a certificate and its key are, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, followed by those that lead to its root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The certificate in use.
pub(crate) struct Tls {
    files: TlsFiles,
    now: RwLock<(Arc<ServerConfig>, Stamp)>,
}

/// By what a changed file is known.
type Stamp = [Option<(SystemTime, u64)>; 2];

impl Tls {
    pub fn open(files: TlsFiles) -> io::Result<Self> {
        let stamp = stamp(&files);
        let config = load(&files)?;
        Ok(Self { files, now: RwLock::new((config, stamp)) })
    }

    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.now.read().unwrap_or_else(PoisonError::into_inner).0.clone())
    }

    /// Reads the files again if they have changed; says whether they had. Connections that are open keep what they have.
    pub fn refresh(&self) -> io::Result<bool> {
        let found = stamp(&self.files);
        if self.now.read().unwrap_or_else(PoisonError::into_inner).1 == found {
            return Ok(false);
        }
        let loaded = load(&self.files);
        let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
        // A pair that does not match is reported once, not at every check.
        now.1 = found;
        now.0 = loaded?;
        Ok(true)
    }
}

fn stamp(files: &TlsFiles) -> Stamp {
    [&files.certificate, &files.key].map(|path| {
        let metadata = std::fs::metadata(path).ok()?;
        Some((metadata.modified().ok()?, metadata.len()))
    })
}

fn load(files: &TlsFiles) -> io::Result<Arc<ServerConfig>> {
    let bad = |path: &PathBuf, why: String| io::Error::other(format!("{}: {why}", path.display()));
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| bad(&files.certificate, format!("expected certificates in PEM: {e}")))?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|e| bad(&files.key, format!("expected a private key in PEM: {e}")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(|e| bad(&files.certificate, e.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
