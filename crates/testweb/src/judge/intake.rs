//! Reads the log, judges each request on its own, and keeps what the other checks need.

use std::collections::HashMap;
use std::io::BufRead;
use std::net::{IpAddr, SocketAddr};

use super::{Conditions, Fetch, Kind, Verdict};
use crate::config::Addresses;
use crate::log::{Event, LogReader, Record};
use crate::settings::CrawlSettings;
use crate::world::{HostId, World};

/// What the other checks work on.
pub(super) struct Log {
    /// Requests to hosts of this web.
    pub(super) fetches: Vec<Fetch>,
    /// When virtual time was set: log time, virtual seconds, rate.
    clock: Vec<(u64, u64, f64)>,
}

impl Log {
    /// Virtual time at a time of the log.
    pub(super) fn virtual_s(&self, world: &World, time_us: u64) -> u64 {
        let at = self.clock.partition_point(|&(since, _, _)| since <= time_us);
        match at.checked_sub(1).and_then(|n| self.clock.get(n)) {
            Some(&(since, unix_s, rate)) => (unix_s as f64 + time_us.saturating_sub(since) as f64 / 1e6 * rate) as u64,
            None => world.config().epoch_s,
        }
    }
}

struct Connection {
    local: SocketAddr,
    /// The server name of its handshake, if there was one.
    name: Option<Option<String>>,
}

pub(super) fn read(
    input: impl BufRead,
    world: &World,
    settings: &CrawlSettings,
    verdict: &mut Verdict,
) -> std::io::Result<Log> {
    let mut reader = LogReader::new(input);
    let mut log = Log { fetches: Vec::new(), clock: Vec::new() };
    let mut open = HashMap::<u64, Connection>::new();
    while let Some((line, event)) = reader.next_event()? {
        match event {
            Err(detail) => verdict.fault(line, detail),
            Ok(Event::Started { seed }) => {
                if seed != world.config().seed {
                    verdict.fault(line, format!("expected seed {}, found {seed}", world.config().seed));
                }
            }
            Ok(Event::Clock { time_us, unix_s, rate }) => log.clock.push((time_us, unix_s, rate)),
            Ok(Event::Opened { conn, local, .. }) => {
                verdict.connections += 1;
                open.insert(conn, Connection { local, name: None });
            }
            Ok(Event::Secured { conn, name, .. }) => {
                if let Some(connection) = open.get_mut(&conn) {
                    connection.name = Some(name);
                }
            }
            Ok(Event::Request(record)) => {
                verdict.requests += 1;
                let connection = open.get(&record.conn);
                if connection.is_none() {
                    verdict.fault(line, "expected a connection that was opened, found another".into());
                }
                let checked = Intake { line, world, settings, verdict: &mut *verdict }.check(&record, connection);
                log.fetches.extend(checked);
            }
            Ok(Event::Closed { conn, .. }) => drop(open.remove(&conn)),
        }
    }
    Ok(log)
}

struct Intake<'a> {
    line: u64,
    world: &'a World,
    settings: &'a CrawlSettings,
    verdict: &'a mut Verdict,
}

impl Intake<'_> {
    fn add(&mut self, kind: Kind, record: &Record, detail: String) {
        let scheme = if record.secure { "https" } else { "http" };
        let url = format!("{scheme}://{}{}", record.host.as_deref().unwrap_or("?"), record.target);
        self.verdict.add(kind, Some(self.line), None, url, detail);
    }

    /// Judges one request; what is left of it for the other checks.
    fn check(&mut self, record: &Record, connection: Option<&Connection>) -> Option<Fetch> {
        if record.status == 400 && record.host.is_none() {
            self.add(Kind::BadRequest, record, String::new());
            return None;
        }
        match &record.agent {
            None => self.add(Kind::MissingAgent, record, String::new()),
            Some(agent) if agent.trim().is_empty() => self.add(Kind::MissingAgent, record, "it is empty".into()),
            Some(agent) if !agent.to_ascii_lowercase().contains(&self.settings.agent) => {
                self.add(Kind::WrongAgent, record, format!("expected {}, found {agent:?}", self.settings.agent));
            }
            Some(_) => {}
        }
        if !matches!(record.method.as_str(), "GET" | "HEAD") {
            self.add(Kind::BadMethod, record, record.method.clone());
        }
        let Some(given) = &record.host else {
            self.add(Kind::MissingHost, record, String::new());
            return None;
        };
        let host = self.host_of(record, given)?;
        self.check_connection(record, connection, host, given);
        let conditions = (record.if_none_match.is_some() || record.if_modified_since.is_some()).then(|| {
            let (if_none_match, if_modified_since) = (record.if_none_match.clone(), record.if_modified_since.clone());
            Box::new(Conditions { if_none_match, if_modified_since })
        });
        Some(Fetch {
            line: self.line,
            start_us: record.start_us,
            end_us: record.end_us,
            address: connection.map(|c| c.local.ip()),
            host,
            secure: record.secure,
            node: self.world.find_target(record.secure, host, &record.target),
            status: record.status,
            bytes: record.bytes,
            whole: record.whole,
            with_body: record.method != "HEAD",
            conditions,
        })
    }

    /// The host a request is for. A port other than the scheme's own names another origin, which this web has not.
    fn host_of(&mut self, record: &Record, given: &str) -> Option<HostId> {
        let lower = given.to_ascii_lowercase();
        let default = if record.secure { ":443" } else { ":80" };
        let name = lower.strip_suffix(default).unwrap_or(&lower);
        let found = self.world.host_by_name(name);
        if found.is_none() {
            self.add(Kind::WrongHost, record, "no such host in this web".into());
        }
        found
    }

    fn check_connection(&mut self, record: &Record, connection: Option<&Connection>, host: HostId, given: &str) {
        let Some(connection) = connection else { return };
        if record.secure {
            let name = connection.name.as_ref().and_then(Option::as_deref);
            let asked = given.split(':').next().unwrap_or(given);
            if !name.is_some_and(|name| name.eq_ignore_ascii_case(asked)) {
                self.add(Kind::WrongServerName, record, format!("the handshake named {}", name.unwrap_or("nothing")));
            }
        }
        let own = IpAddr::V4(self.world.address(host));
        if self.world.config().addresses == Addresses::Many && connection.local.ip() != own {
            self.add(Kind::WrongAddress, record, format!("expected {own}, found {}", connection.local.ip()));
        }
    }
}
