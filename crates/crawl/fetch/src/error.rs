//! Failures of a fetch and of its setup.

use rustix::io::Errno;
use std::io;
use std::net::IpAddr;
use trawl_model::{ErrorClass, Failure};

/// Why a [`crate::Fetcher`] cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting that cannot be used.
    #[error("{setting}: expected {expected}, found {found:?}")]
    Setting {
        /// Which one.
        setting: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// The TLS library refused its setup.
    #[error("tls setup: {0}")]
    Tls(#[from] rustls::Error),
    /// The library for old versions of TLS refused its setup.
    #[error("setup of old TLS: {0}")]
    OldTls(String),
}

/// A failure with its class.
pub(crate) fn failure(class: ErrorClass, message: impl Into<String>) -> Failure {
    Failure { class, message: message.into() }
}

/// The class of an error while connecting; `other` where the system's word says nothing more.
pub(crate) fn class_of(error: &io::Error, other: ErrorClass) -> ErrorClass {
    use io::ErrorKind as K;
    match error.kind() {
        K::ConnectionRefused => ErrorClass::ConnectRefused,
        K::TimedOut => ErrorClass::ConnectTimeout,
        K::HostUnreachable | K::PermissionDenied => ErrorClass::NoRoute,
        // Ports used up; no route or no network at all: nothing that the peer could do about.
        K::AddrNotAvailable | K::AddrInUse | K::NetworkUnreachable | K::NetworkDown => ErrorClass::LocalResource,
        K::ConnectionReset | K::ConnectionAborted | K::BrokenPipe | K::NotConnected | K::UnexpectedEof => {
            ErrorClass::Reset
        }
        K::OutOfMemory | K::StorageFull | K::QuotaExceeded => ErrorClass::LocalResource,
        _ if is_ours_for_now(error) => ErrorClass::LocalResource,
        _ => other,
    }
}

/// Whether something of this machine is used up that comes back: open files here or in the system, buffers, memory.
/// `io::ErrorKind` has no names for most of them.
pub(crate) fn is_ours_for_now(error: &io::Error) -> bool {
    let codes = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::INTR, Errno::AGAIN];
    error.raw_os_error().is_some_and(|code| codes.map(Errno::raw_os_error).contains(&code))
}

/// Whether this machine has no way to an address, or to any of its kind: another address of the host may do.
pub(crate) fn has_no_way(error: &io::Error, ip: IpAddr) -> bool {
    use io::ErrorKind as K;
    match error.kind() {
        K::NetworkUnreachable | K::NetworkDown => true,
        // IPv6 switched off. For IPv4 it means that all ports are taken.
        K::AddrNotAvailable | K::Unsupported => ip.is_ipv6(),
        _ => error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_words_have_classes() {
        let of = |code| class_of(&io::Error::from_raw_os_error(code), ErrorClass::ProtocolError);
        assert_eq!(of(111), ErrorClass::ConnectRefused);
        assert_eq!(of(110), ErrorClass::ConnectTimeout);
        assert_eq!(of(113), ErrorClass::NoRoute);
        assert_eq!([of(101), of(100), of(99), of(98)], [ErrorClass::LocalResource; 4]);
        assert_eq!(of(104), ErrorClass::Reset);
        assert_eq!([of(24), of(23), of(105), of(12)], [ErrorClass::LocalResource; 4]);
        assert_eq!(of(1_000_000), ErrorClass::ProtocolError);
    }
}
