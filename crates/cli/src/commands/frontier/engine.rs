//! `trawl frontier run`: a frontier for a fetcher in any language, by JSON lines.

use super::reopened::{Reopened, named};
use super::requests::{Linked, Offered, Request, Told, admission_name, lease_id, lease_json, told_outcome};
use super::settings::SettingArgs;
use crate::exit::Status;
use crate::output::Output;
use crate::system;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::BufRead;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use trawl_frontier::{
    AllowAll, Answer, Candidate, Config, Error, Frontier, HostId, LeaseId, Next, Outcome, Recrawl, RobotsAnswer, Rules,
    Settled, Source, Work,
};
use trawl_io::{Fs, RealFs, describe_holder};
use trawl_model::{ErrorClass, UnixMillis};
use trawl_parse::robots::{AgentRules, MAX_BYTES, Robots};
use trawl_url::WebUrl;

/// Decides what to fetch next for another program, by JSON lines on standard input and output
///
/// Each line is one request. It is answered by one line as soon as its changes are durable. An invalid line is answered
/// by {"error": …} and changes nothing. docs/frontier.md lists all requests.
///
/// Example:
///   {"op":"offer","urls":[{"url":"http://a.example/"}]}          {"admissions":["new"]}
///   {"op":"lease","n":10}                                        {"leases":[{"id":"…","url":"http://a.example/",…}],"next":"blocked"}
///   {"op":"settle","outcomes":[{"id":"…","status":200,"links":["http://a.example/b"]}]}
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct RunArgs {
    /// Directory of the frontier; created if there is none
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    #[command(flatten)]
    settings: SettingArgs,
}

/// Refuses a directory that holds something else, such as a crawl, whose frontier is in `.crawl`: files would be mixed up.
fn refuse_foreign(dir: &Path) -> anyhow::Result<()> {
    // A process that died early left files and no CURRENT.
    let is_ours = |name: &String| ["lock", "log-", "run-", "base-", "."].iter().any(|start| name.starts_with(start));
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    match names.iter().find(|name| !is_ours(name)) {
        Some(other) if !names.iter().any(|name| name == "CURRENT") => {
            bail!(
                "{} is not empty and holds no frontier (it holds {other}): name a new or empty directory",
                dir.display()
            )
        }
        _ => Ok(()),
    }
}

/// Opens the frontier in a directory for this process.
pub fn open(dir: &Path, config: Config) -> anyhow::Result<Frontier> {
    if dir.is_file() {
        bail!("{} is a file: a frontier is a directory", dir.display());
    }
    refuse_foreign(dir)?;
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let now = system::now();
    let holder = describe_holder(concat!("trawl/", env!("CARGO_PKG_VERSION")), &now.rfc3339_seconds());
    Ok(Frontier::open(&fs, dir, config, now, &holder)?)
}

struct Parsed(AgentRules);

impl Rules for Parsed {
    fn allows(&self, path_and_query: &str) -> bool {
        self.0.allows(path_and_query).allowed
    }

    fn crawl_delay_ms(&self) -> Option<i64> {
        self.0.crawl_delay().map(|delay| i64::try_from(delay.as_millis()).unwrap_or(i64::MAX))
    }
}

pub(super) fn rules(text: &str, agent: &str) -> Arc<dyn Rules> {
    Arc::new(Parsed(Robots::parse(text.as_bytes()).agent(agent)))
}

/// Runs the command.
pub fn run(args: &RunArgs, out: &mut Output) -> anyhow::Result<Status> {
    let config = args.settings.config();
    let agent = args.settings.robots.clone().unwrap_or_default();
    let frontier = open(&args.dir, config)?;
    let mut reopened = Reopened::open(&frontier)?;
    let mut desk = Desk { frontier, agent, asked: HashMap::new(), begun: Instant::now(), base: system::now() };
    let (mut input, mut line) = (std::io::stdin().lock(), Vec::new());
    loop {
        line.clear();
        // Bytes, not text: a line that is not UTF-8 is a request that cannot be understood, and no reason to end.
        if input.read_until(b'\n', &mut line).context("standard input")? == 0 {
            break;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(request) => {
                let mut answer = desk.answer(request)?;
                if let Ok(answer) = &mut answer {
                    reopened.note(&mut desk.frontier, answer)?;
                }
                // One batch for all that a request changed: an outcome, its links and what they reopen are durable together.
                desk.frontier.sync()?;
                answer
            }
            Err(error) => Err(format!("expected a request such as {{\"op\":\"lease\",\"n\":10}}: {error}")),
        };
        out.json_line(&answer.unwrap_or_else(|error| json!({ "error": error })))?;
        out.flush()?;
    }
    desk.frontier.close()?;
    Ok(Status::Done)
}

/// Answers requests. The outer error ends the program, the inner one is the caller's.
struct Desk {
    frontier: Frontier,
    agent: String,
    /// Sites whose address was asked for.
    asked: HashMap<String, HostId>,
    begun: Instant,
    base: UnixMillis,
}

type Answered = anyhow::Result<Result<Value, String>>;

impl Desk {
    /// Now, by a clock that cannot be set.
    fn now(&self) -> UnixMillis {
        let elapsed = i64::try_from(self.begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        UnixMillis(self.base.0.saturating_add(elapsed))
    }

    fn answer(&mut self, request: Request) -> Answered {
        let now = self.now();
        let order = |known: bool| Ok(if known { Ok(json!({ "ok": true })) } else { Err("unknown host".to_owned()) });
        match request {
            Request::Offer { urls } => self.offer(now, urls),
            Request::Lease { n } => self.lease(now, n),
            Request::Settle { outcomes } => self.settle(now, outcomes),
            Request::Robots { id, status, text, error } => self.robots(now, &id, status, &text, error.as_deref()),
            Request::Return { ids } => match ids.iter().map(|id| lease_id(id)).collect::<Result<Vec<_>, _>>() {
                Ok(ids) => {
                    for id in ids {
                        self.frontier.returned(now, id)?;
                    }
                    Ok(Ok(json!({ "ok": true })))
                }
                Err(error) => Ok(Err(error)),
            },
            Request::Wanted { n } => {
                let wanted = self.frontier.wanted(now, n);
                let sites: Vec<&str> = wanted.iter().map(|wanted| wanted.site.as_str()).collect();
                let answer = json!({ "wanted": sites });
                self.asked.extend(wanted.into_iter().map(|wanted| (wanted.site, wanted.id)));
                Ok(Ok(answer))
            }
            Request::Ready { site, ip, seconds, error } => self.ready(now, &site, ip, seconds, error.as_deref()),
            Request::Pause { host } => order(self.frontier.pause(now, &host, true)?),
            Request::Resume { host } => order(self.frontier.pause(now, &host, false)?),
            Request::Block { host } => order(self.frontier.block(now, &host, true)?),
            Request::Unblock { host } => order(self.frontier.block(now, &host, false)?),
            Request::Delay { host, seconds } => match Duration::try_from_secs_f64(seconds) {
                Ok(delay) => match self.frontier.delay(now, &host, delay) {
                    Err(error @ Error::Order { .. }) => Ok(Err(error.to_string())),
                    known => order(known?),
                },
                Err(error) => Ok(Err(error.to_string())),
            },
            Request::Recrawl { before, host, gone } => self.recrawl(now, before.as_deref(), host.as_deref(), gone),
            Request::Release { host } => order(self.frontier.release(now, &host)?),
            Request::TakeUp { host } => order(self.frontier.take_up(now, &host)?),
            Request::Report { host } => Ok(match self.frontier.host_report(&host) {
                Some(report) => Ok(serde_json::to_value(report)?),
                None => Err("unknown host".to_owned()),
            }),
            Request::Stats => Ok(Ok(json!({
                "known": self.frontier.known(),
                "pending": self.frontier.pending(),
                "leased": self.frontier.out(),
                "parked": self.frontier.parked(),
                "hosts": self.frontier.hosts(),
            }))),
        }
    }

    fn candidate(&self, offered: Offered) -> Result<Candidate, String> {
        let url = WebUrl::parse(&offered.url).map_err(|e| format!("{:?}: {e}", offered.url))?;
        let Config { identity, queue, .. } = *self.frontier.config();
        let id = identity.in_queue(&url, queue).0;
        let mut candidate = Candidate { id, ..Candidate::seed(identity, url, None) };
        candidate.depth = offered.depth;
        if let Some(via) = offered.via {
            candidate.source = Source::Link(via.as_str().into());
        }
        candidate.priority = offered.priority.unwrap_or(candidate.priority);
        candidate.meta_json = offered.meta.map(|meta| meta.to_string().as_str().into());
        Ok(candidate)
    }

    fn offer(&mut self, now: UnixMillis, urls: Vec<Offered>) -> Answered {
        let candidates = match urls.into_iter().map(|url| self.candidate(url)).collect::<Result<Vec<_>, _>>() {
            Ok(candidates) => candidates,
            Err(error) => return Ok(Err(error)),
        };
        let admissions = match self.frontier.offer(now, &candidates) {
            Err(error @ Error::Order { .. }) => return Ok(Err(error.to_string())),
            admissions => admissions?,
        };
        let reopened: Vec<Value> =
            candidates.iter().zip(&admissions).filter_map(|(page, became)| named(page, *became)).collect();
        let admissions: Vec<&str> = admissions.into_iter().map(admission_name).collect();
        let mut answer = json!({ "admissions": admissions });
        if !reopened.is_empty() {
            answer["reopened"] = json!(reopened);
        }
        Ok(Ok(answer))
    }

    fn lease(&mut self, now: UnixMillis, n: usize) -> Answered {
        let mut work = Vec::new();
        let mut next = self.frontier.lease(now, n, &mut work)?;
        // Seeds that cannot be leased (their host has a limit of its own, or is blocked) keep no room from other pages.
        if next == Next::Empty && work.is_empty() && self.frontier.release_seed_room() {
            next = self.frontier.lease(now, n, &mut work)?;
        }
        let (mut leases, mut refused) = (Vec::new(), Vec::new());
        for work in work {
            match work {
                Work::Fetch(lease) => leases.push(lease_json(&lease)),
                Work::Refuse(lease, class, why) => {
                    let LeaseId::Page(id) = lease.id else { continue };
                    // There is nothing to fetch, so there is nothing to wait for: it is settled here.
                    self.frontier.settle(now, &[Outcome { id, answer: Answer::Failed(class), note: None }])?;
                    let mut line = lease_json(&lease);
                    line["error"] = json!(class.as_str());
                    line["why"] = json!(why);
                    refused.push(line);
                }
            }
        }
        // What was said of the next moment counts the refusals as leased: without them there may be more to do, or nothing at all.
        if !refused.is_empty() {
            next = Next::Now;
        }
        let (name, wait) = match next {
            Next::Now => ("now", 0),
            Next::WaitUntil(at) => ("wait", at.0.saturating_sub(now.0).max(0)),
            Next::Blocked => ("blocked", 0),
            Next::Empty => ("empty", 0),
        };
        let mut answer = json!({ "leases": leases, "refused": refused, "next": name, "wait_ms": wait });
        if self.frontier.wants_addresses() {
            answer["wanted"] = json!(true);
        }
        Ok(Ok(answer))
    }

    /// Takes the address of a site that `wanted` named, or why there is none.
    fn ready(
        &mut self,
        now: UnixMillis,
        site: &str,
        ip: Option<IpAddr>,
        seconds: f64,
        error: Option<&str>,
    ) -> Answered {
        use ErrorClass::{DnsFailure, DnsRefused, DnsServfail, DnsTimeout, LocalResource};
        let class = match error.map(|class| class.parse::<ErrorClass>().map_err(|_| class)).transpose() {
            Ok(class) => class,
            Err(class) => return Ok(Err(format!("unknown error class {class:?}"))),
        };
        let holds = match Duration::try_from_secs_f64(seconds) {
            Ok(holds) => holds,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let Some(id) = self.asked.remove(site) else {
            return Ok(Err("its address was not asked for".to_owned()));
        };
        match class {
            None => self.frontier.ready(now, id, Ok(ip.map(|ip| (ip, holds)))),
            Some(LocalResource) => self.frontier.ready(now, id, Err(())),
            Some(class @ (DnsFailure | DnsRefused | DnsServfail | DnsTimeout)) => {
                self.frontier.unresolved(now, id, class, format!("{site}: no address"))?;
            }
            // The fetch meets the same failure and reports it.
            Some(_) => self.frontier.ready(now, id, Ok(None)),
        }
        Ok(Ok(json!({ "ok": true })))
    }

    fn settle(&mut self, now: UnixMillis, outcomes: Vec<Told>) -> Answered {
        let mut read = Vec::new();
        for told in outcomes {
            match told_outcome(&told) {
                Ok(outcome) => read.push((outcome, told)),
                Err(error) => return Ok(Err(error)),
            }
        }
        // One admission for each link, whatever became of it.
        let (mut settled, mut linked) = (Vec::new(), Linked::default());
        for (outcome, told) in read {
            let page = self.frontier.leased_url(outcome.id).map(WebUrl::parse).transpose();
            let page = page.map_err(|e| anyhow::anyhow!("a leased URL is not a URL: {e}"))?;
            if told.ip.is_some() {
                self.frontier.released(now, LeaseId::Page(outcome.id), outcome.answer, told.ip)?;
            }
            let became = self.frontier.settle(now, &[outcome])?.first().copied().unwrap_or(Settled::Unknown);
            settled.push(match became {
                Settled::Done { .. } => "done",
                Settled::Again { .. } => "again",
                Settled::Unknown => "unknown",
            });
            let (Settled::Done { depth } | Settled::Again { depth }, Some(page)) = (became, page) else {
                // Their depth is not known. The page is leased again, and they are offered again then.
                linked.admissions.extend(told.links.iter().map(|_| "unknown"));
                continue;
            };
            self.links(now, &page, depth, told.links, &mut linked)?;
        }
        let Linked { admissions, rejected, reopened } = linked;
        let mut answer = json!({ "settled": settled, "admissions": admissions });
        for (name, list) in [("rejected", rejected), ("reopened", reopened)] {
            if !list.is_empty() {
                answer[name] = json!(list);
            }
        }
        Ok(Ok(answer))
    }

    /// Offers the links of a page, absolute or as they stand on it. What is not a URL is named, with the reason.
    fn links(
        &mut self,
        now: UnixMillis,
        page: &WebUrl,
        depth: u32,
        links: Vec<String>,
        linked: &mut Linked,
    ) -> anyhow::Result<()> {
        let Config { identity, queue, .. } = *self.frontier.config();
        let from: Arc<str> = page.as_str().into();
        let (mut candidates, mut places) = (Vec::new(), Vec::new());
        for link in links {
            match page.join(&link) {
                Ok(url) => {
                    places.push(linked.admissions.len());
                    candidates.push(Candidate::link(identity.in_queue(&url, queue).0, url, &from, depth));
                    linked.admissions.push("unknown");
                }
                Err(why) => {
                    linked.rejected.push(json!({ "page": page.as_str(), "link": link, "why": why.to_string() }));
                    linked.admissions.push("rejected");
                }
            }
        }
        let admissions = self.frontier.offer(now, &candidates)?;
        for ((place, admission), candidate) in places.into_iter().zip(admissions).zip(&candidates) {
            linked.reopened.extend(named(candidate, admission));
            linked.admissions[place] = admission_name(admission);
        }
        Ok(())
    }

    fn recrawl(&mut self, now: UnixMillis, before: Option<&str>, host: Option<&str>, gone: bool) -> Answered {
        let before = match before.map(UnixMillis::parse).transpose() {
            Ok(before) => before.unwrap_or(now),
            Err(error) => return Ok(Err(format!("before: {error}"))),
        };
        if let Some(host) = host
            && self.frontier.host_report(host).is_none()
        {
            return Ok(Err("unknown host".to_owned()));
        }
        let due = self.frontier.recrawl(now, &Recrawl { before, host, gone })?;
        Ok(Ok(json!({ "due": due })))
    }

    fn robots(&mut self, now: UnixMillis, id: &str, status: u16, text: &str, error: Option<&str>) -> Answered {
        let id = match lease_id(id) {
            Ok(id @ LeaseId::Robots(_)) => id,
            _ => return Ok(Err("expected the id of a robots.txt".to_owned())),
        };
        let class = match error.map(|class| class.parse::<ErrorClass>().map_err(|_| class)).transpose() {
            // No server answered: as for a page, that counts against the origin, which is asked again for an hour.
            Ok(None) if status == 0 => Some(ErrorClass::ConnectTimeout),
            Ok(class) => class,
            Err(class) => return Ok(Err(format!("unknown error class {class:?}"))),
        };
        let Some(site) = self.frontier.errand_site(id).map(str::to_owned) else {
            return Ok(Err("it is not leased, or the lease has expired".to_owned()));
        };
        if let Some(class) = class {
            self.frontier.released(now, id, Answer::Failed(class), None)?;
            self.frontier.robots(now, id, RobotsAnswer::Unavailable(class, class.to_string()))?;
            return Ok(Ok(json!({ "ok": true })));
        }
        // What comes behind does not count, and is not kept either.
        let (text, _) = text.split_at(text.floor_char_boundary(MAX_BYTES));
        let (answer, kept) = match status {
            200..=299 => (RobotsAnswer::Rules(rules(text, &self.agent)), Some(text)),
            300..=499 if !matches!(status, 408 | 425 | 429) => (RobotsAnswer::Rules(Arc::new(AllowAll)), Some("")),
            _ => {
                let why = format!("status {status}");
                (RobotsAnswer::Unavailable(ErrorClass::RobotsUnavailable, why), None)
            }
        };
        self.frontier.released(now, id, Answer::status(status), None)?;
        self.frontier.robots(now, id, answer)?;
        if let Some(text) = kept {
            self.frontier.keep_robots(now, &site, text)?;
        }
        Ok(Ok(json!({ "ok": true })))
    }
}
