//! Certificates: a certificate authority made at the start, and a certificate for each name when it is asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::character::Character;
use crate::error::{Error, Result};
use crate::world::World;

/// Certificates kept; a web with more hosts than this makes some anew.
const MAX_KEPT: usize = 8_192;

/// The server's side of TLS.
pub(super) struct Tls {
    ca_pem: String,
    http1: Arc<ServerConfig>,
    http2: Arc<ServerConfig>,
}

impl Tls {
    pub(super) fn new(world: Arc<World>) -> Result<Self> {
        let authority = Authority::new(world)?;
        let ca_pem = authority.issuer.pem();
        let authority = Arc::new(authority);
        let config = |protocols: &[&[u8]]| -> Result<Arc<ServerConfig>> {
            let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(fail)?
                .with_no_client_auth()
                .with_cert_resolver(Arc::clone(&authority) as Arc<dyn ResolvesServerCert>);
            config.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
            Ok(Arc::new(config))
        };
        Ok(Self { ca_pem, http1: config(&[b"http/1.1"])?, http2: config(&[b"h2", b"http/1.1"])? })
    }

    /// The certificate of the authority, as text.
    pub(super) fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// How to shake hands for a host; `None` to cut the handshake off.
    pub(super) fn config_for(&self, world: &World, name: Option<&str>) -> Option<Arc<ServerConfig>> {
        let host = name.and_then(|name| world.host_by_name(name)).and_then(|id| world.host(id));
        match host {
            Some(host) if host.certificate == Some(Character::CertBroken) => None,
            Some(host) if host.transport == Some(Character::Http2) => Some(Arc::clone(&self.http2)),
            _ => Some(Arc::clone(&self.http1)),
        }
    }
}

fn fail(reason: impl std::fmt::Display) -> Error {
    Error::Tls(reason.to_string())
}

/// Makes certificates; all share one key, which is quick and harmless here.
struct Authority {
    world: Arc<World>,
    issuer: CertifiedIssuer<'static, KeyPair>,
    leaf_key: KeyPair,
    signer: Arc<dyn rustls::sign::SigningKey>,
    kept: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    fn new(world: Arc<World>) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).map_err(fail)?;
        params.distinguished_name.push(DnType::CommonName, "testweb authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2060, 1, 1));
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().map_err(fail)?).map_err(fail)?;
        let leaf_key = KeyPair::generate().map_err(fail)?;
        let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(leaf_key.serialize_der()));
        let signer = ring::sign::any_supported_type(&der).map_err(fail)?;
        Ok(Self { world, issuer, leaf_key, signer, kept: Mutex::new(HashMap::new()) })
    }

    fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(name) {
            return Some(Arc::clone(found));
        }
        let fault = self.world.host_by_name(name).and_then(|id| self.world.host(id)).and_then(|h| h.certificate);
        let made = Arc::new(self.make(name, fault).ok()?);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(name.to_owned(), Arc::clone(&made));
        Some(made)
    }

    fn make(&self, name: &str, fault: Option<Character>) -> std::result::Result<CertifiedKey, rcgen::Error> {
        let shown = if fault == Some(Character::CertWrongName) { "somebody-else.example" } else { name };
        let mut params = CertificateParams::new(vec![shown.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, shown);
        let until = if fault == Some(Character::CertExpired) { 2021 } else { 2060 };
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(until, 1, 1));
        let certificate = if fault == Some(Character::CertSelfSigned) {
            params.self_signed(&self.leaf_key)?
        } else {
            params.signed_by(&self.leaf_key, &self.issuer)?
        };
        Ok(CertifiedKey::new(vec![certificate.der().clone()], Arc::clone(&self.signer)))
    }
}

impl ResolvesServerCert for Authority {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certificate(hello.server_name().unwrap_or("nameless.example"))
    }
}
