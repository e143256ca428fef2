//! TLS for servers that offer nothing that browsers still accept: TLS 1.0 and 1.1, RSA key exchange, CBC.
//!
//! rustls leaves these out by design, so they need a second library, s2n-tls. It is used only where the operator asked for it
//! (`--tls-version old`) and rustls and the server could not agree. Do not rely on the secrecy of such a connection.

use crate::error::{Error, class_of, failure};
use s2n_tls::callbacks::VerifyHostNameCallback;
use s2n_tls::config::{Builder, Config};
use s2n_tls::enums::Version;
use s2n_tls::security::Policy;
use s2n_tls_tokio::{TlsConnector, TlsStream};
use std::io;
use std::net::IpAddr;
use tokio::net::TcpStream;
use trawl_model::{ErrorClass, Failure, TlsFacts};

/// Every suite of the library, from TLS 1.0 on. Its numbered policies each leave out suites that some old server insists on.
const EVERY_SUITE: &str = "test_all";

pub(crate) struct OldTls(TlsConnector<Config>);

struct AnyName;

impl VerifyHostNameCallback for AnyName {
    fn verify_host_name(&self, _: &str) -> bool {
        true
    }
}

impl OldTls {
    pub(crate) fn new() -> Result<Self, Error> {
        config().map(|config| Self(TlsConnector::new(config))).map_err(|e| Error::OldTls(e.to_string()))
    }

    /// Shakes hands. The certificate is not checked: the library gives away only those that it has found valid.
    pub(crate) async fn connect(
        &self,
        host: &str,
        tcp: TcpStream,
    ) -> Result<(TlsStream<TcpStream, s2n_tls::connection::Connection>, TlsFacts), Failure> {
        // A name of a server is never an address: some answer that with an alert.
        let name = if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() { "" } else { host };
        let stream = self.0.connect(name, tcp).await.map_err(|e| {
            let text = format!("old TLS: {}", e.message());
            failure(class_of(&io::Error::from(e), ErrorClass::TlsFailure), text)
        })?;
        let connection: &s2n_tls::connection::Connection = stream.as_ref();
        let version = match connection.actual_protocol_version() {
            Ok(Version::TLS10) => "TLSv1",
            Ok(Version::TLS11) => "TLSv1.1",
            Ok(Version::TLS12) => "TLSv1.2",
            Ok(Version::TLS13) => "TLSv1.3",
            _ => "",
        };
        let cipher_suite = connection.cipher_suite().map(registered_name).unwrap_or_default();
        let refused = Some(format!("browsers do not accept {version} with {cipher_suite}; certificate not checked"));
        Ok((stream, TlsFacts { version: version.into(), cipher_suite, refused }))
    }
}

fn config() -> Result<Config, s2n_tls::error::Error> {
    let mut builder = Builder::new();
    builder.set_security_policy(&Policy::from_version(EVERY_SUITE)?)?;
    builder.set_application_protocol_preference(["http/1.1"])?;
    builder.with_system_certs(false)?;
    builder.set_verify_host_callback(AnyName)?;
    // Ten to thirty seconds of delay by default, against attacks on secrets that a crawler does not have.
    builder.set_max_blinding_delay(0)?;
    // Marked unsafe because it gives up authentication, not because of memory: a crawl without `--tls verify` accepts any
    // certificate, and `Tls::new` refuses the two settings together.
    #[allow(unsafe_code)]
    unsafe {
        builder.disable_x509_verification()?;
    }
    builder.build()
}

/// `TLS_RSA_WITH_AES_128_CBC_SHA` of `AES128-SHA`: archives use the names of IANA's registry, the library those of OpenSSL.
fn registered_name(name: &str) -> String {
    if name.starts_with("TLS_") {
        return name.to_owned();
    }
    let keys = ["ECDHE-RSA-", "ECDHE-ECDSA-", "DHE-RSA-"];
    let (keys, rest) = keys.iter().find_map(|k| Some((*k, name.strip_prefix(k)?))).unwrap_or(("RSA-", name));
    let mut cipher = rest
        .replace("AES128-", "AES_128-")
        .replace("AES256-", "AES_256-")
        .replace("DES-CBC3-", "3DES_EDE_CBC-")
        .replace("POLY1305", "POLY1305-SHA256");
    if cipher.starts_with("AES") && !cipher.contains("GCM") {
        cipher = cipher.replacen('-', "-CBC-", 1);
    }
    format!("TLS_{}WITH_{}", keys, cipher).replace('-', "_")
}

#[cfg(test)]
#[test]
fn suites_have_the_names_of_the_registry() {
    for (theirs, registered) in [
        ("AES128-SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"),
        ("AES256-GCM-SHA384", "TLS_RSA_WITH_AES_256_GCM_SHA384"),
        ("DES-CBC3-SHA", "TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
        ("ECDHE-RSA-AES128-SHA256", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256"),
        ("ECDHE-ECDSA-AES256-GCM-SHA384", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
        ("DHE-RSA-AES256-SHA", "TLS_DHE_RSA_WITH_AES_256_CBC_SHA"),
        ("DHE-RSA-CHACHA20-POLY1305", "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
        ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
    ] {
        assert_eq!(registered_name(theirs), registered);
    }
}
