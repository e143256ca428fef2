//! A name server for the hosts of the web, over UDP on loopback: the way a crawler finds them where it resolves names itself.
//!
//! It answers questions for A records with the address of the host, other types with no record, and names of strangers with
//! NXDOMAIN. What is wrong with it is a setting of the running server ([`NameService`]) or a character of a host.
//!
//! ```text
//! question   id 2 · flags 2 · counts 4x2 · name · type 2 · class 2
//! answer     id 2 · flags 2 · counts 4x2 · question as asked · [pointer c00c · type 1 · class 1 · ttl 4 · length 2 · address 4]
//! ```

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::watch;

use super::Shared;
use crate::character::Character;
use crate::world::{HostId, World};

/// How the name server treats every question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameService {
    /// As it should.
    #[default]
    Answers,
    /// It says nothing, as if the network were down.
    Silent,
    /// SERVFAIL.
    Fails,
    /// REFUSED.
    Refuses,
}

const NO_ERROR: u8 = 0;
const SERVER_FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;
const REFUSED: u8 = 5;

/// Lookups of a flaky name that fail before one is answered.
const FLAKY_TIMES: u32 = 2;
/// How long an answer may be kept, seconds. Short, so that a crawl of a minute asks again.
const TTL_S: u32 = 20;
/// Largest question read; real ones are far smaller.
const MAX_BYTES: usize = 1_500;
const TYPE_A: u16 = 1;

/// What the name server keeps.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Questions by host, answered or not.
    asked: Mutex<HashMap<HostId, u32>>,
}

impl Names {
    /// How often a host was asked about, this time included.
    fn count(&self, host: HostId) -> u32 {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry(host).or_default();
        *count = count.saturating_add(1);
        *count
    }
}

/// Answers questions until the server stops.
pub(super) async fn serve(socket: UdpSocket, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let socket = Arc::new(socket);
    let mut buffer = vec![0; MAX_BYTES];
    loop {
        let (length, from) = tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok(received) => received,
                // On loopback: the asker has closed its port before an earlier answer came. The next one may listen.
                Err(_) => continue,
            },
            _ = stopped.changed() => return,
        };
        let mode = *shared.names_mode.borrow();
        let Some(question) = buffer.get(..length).and_then(Question::read) else { continue };
        if mode == NameService::Silent || !from.ip().is_loopback() {
            continue;
        }
        let (answer, wait) = question.answer(&shared, mode);
        tokio::spawn(reply(Arc::clone(&socket), answer, from, wait));
    }
}

async fn reply(socket: Arc<UdpSocket>, answer: Vec<u8>, to: SocketAddr, wait: Duration) {
    tokio::time::sleep(wait).await;
    // Whether the asker still listens is its business.
    let _ = socket.send_to(&answer, to).await;
}

/// One question, as far as it matters here.
struct Question {
    id: [u8; 2],
    wants_recursion: bool,
    name: String,
    kind: u16,
    /// The question section, as asked: spelling of the name included, which some clients compare.
    section: Vec<u8>,
}

impl Question {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<12>()?;
        let [id0, id1, flags, ..] = *head;
        // A question, not an answer, and exactly one.
        if flags & 0x80 != 0 || head.get(4..6)? != [0, 1] {
            return None;
        }
        let mut name = String::new();
        let mut at = 0;
        loop {
            let length = usize::from(*rest.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            // Compressed names have no business in a question.
            let label = rest.get(at..at + length).filter(|_| length < 64)?;
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&String::from_utf8_lossy(label).to_ascii_lowercase());
            at += length;
        }
        let kind = u16::from_be_bytes(*rest.get(at..)?.first_chunk::<2>()?);
        let section = rest.get(..at + 4)?.to_vec();
        Some(Self { id: [id0, id1], wants_recursion: flags & 1 != 0, name, kind, section })
    }

    /// The answer, and how long it is held back.
    fn answer(&self, shared: &Shared, mode: NameService) -> (Vec<u8>, Duration) {
        let world: &World = &shared.world;
        let now = Duration::ZERO;
        match mode {
            NameService::Fails => return (self.encode(SERVER_FAILURE, None), now),
            NameService::Refuses => return (self.encode(REFUSED, None), now),
            NameService::Answers | NameService::Silent => {}
        }
        let Some(id) = world.host_by_name(&self.name) else { return (self.encode(NO_SUCH_NAME, None), now) };
        let resolution = world.host(id).and_then(|host| host.resolution);
        let address = (self.kind == TYPE_A).then(|| world.address(id));
        // Clients ask for both kinds of addresses at once; only questions for the kind that exists count.
        let flaky = resolution == Some(Character::DnsFlaky) && address.is_some();
        if flaky && shared.names.count(id) <= FLAKY_TIMES {
            return (self.encode(SERVER_FAILURE, None), now);
        }
        let late = Duration::from_millis(world.config().slow_ms);
        (self.encode(NO_ERROR, address), if resolution == Some(Character::DnsSlow) { late } else { now })
    }

    fn encode(&self, code: u8, address: Option<Ipv4Addr>) -> Vec<u8> {
        let answers = u8::from(address.is_some());
        let recursion = u8::from(self.wants_recursion);
        let mut out = self.id.to_vec();
        out.extend_from_slice(&[0x80 | 0x04 | recursion, 0x80 | code, 0, 1, 0, answers, 0, 0, 0, 0]);
        out.extend_from_slice(&self.section);
        if let Some(address) = address {
            out.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1]);
            out.extend_from_slice(&TTL_S.to_be_bytes());
            out.extend_from_slice(&[0, 4]);
            out.extend_from_slice(&address.octets());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_and_answered() {
        let asked = b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03WWW\x07example\x00\x00\x01\x00\x01";
        let question = Question::read(asked).unwrap();
        assert_eq!((question.name.as_str(), question.kind), ("www.example", TYPE_A));
        let answer = question.encode(NO_ERROR, Some(Ipv4Addr::new(127, 1, 2, 3)));
        assert_eq!(answer[..12], *b"\x12\x34\x85\x80\x00\x01\x00\x01\x00\x00\x00\x00");
        assert_eq!(answer[12..12 + 17], asked[12..]);
        assert!(answer.ends_with(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x14\x00\x04\x7f\x01\x02\x03"));
        assert_eq!(question.encode(REFUSED, None)[3], 0x85);
        for cut in 0..asked.len() {
            assert!(Question::read(&asked[..cut]).is_none(), "{cut}");
        }
    }
}
