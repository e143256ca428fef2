//! What the judge found.

use std::collections::BTreeMap;

use serde::Serialize;

macro_rules! kinds {
    ($($name:ident $about:literal)*) => {
        /// A rule that can be broken.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Kind { $(#[doc = $about] $name,)* }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What was done wrong, in a few words.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)* }
            }
        }
    };
}

kinds! {
    HostConcurrency "more requests in flight at one host than allowed"
    HostSpacing "two requests to one host too close together"
    CrawlDelay "two requests to one host closer together than its robots.txt asks"
    RetryAfter "a request to a host before the time its Retry-After named"
    IpConcurrency "more requests in flight at one address than allowed"
    IpSpacing "two requests to one address too close together"
    RobotsNotFetched "a page asked for before the rules of its origin were fetched"
    RobotsStale "a page asked for with rules that were too old"
    RobotsUnreachable "a page asked for although the rules of its origin could not be had"
    RobotsDisallowed "a page asked for that the rules close"
    RobotsRefetched "a robots.txt asked for again although the last answer was fresh"
    FetchedTwice "a URL asked for again after it was answered"
    NeverFetched "a URL that had to be fetched and was not"
    GivenUp "a URL given up although it would have answered"
    TooManyRetries "a failing URL asked for more often than allowed"
    RedirectLimit "a redirect followed beyond the limit"
    BeyondDepth "a URL farther from the seeds than the depth allows"
    NotLinked "a URL that nothing the crawl could read leads to"
    TrapOverrun "more URLs of a trap than the budget allows"
    ValidatorIgnored "a page fetched again without the validator it came with"
    ValidatorWrong "a page fetched again with a validator it never had"
    MissingHost "a request without a Host"
    WrongHost "a request for a host that is not of this web"
    WrongAddress "a request for a host at an address that is not the host's"
    WrongServerName "a TLS server name that is missing or not that of the Host"
    MissingAgent "a request without a User-Agent"
    WrongAgent "a User-Agent that does not name the crawler"
    BadMethod "a method other than GET and HEAD"
    BadRequest "bytes that are not an HTTP request"
    BodyOverrun "a body read beyond the limit"
    CertificateIgnored "a page asked for over TLS with a certificate that had to be refused"
}

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which rule.
    pub kind: Kind,
    /// The line of the log that breaks it; none for what is missing.
    pub line: Option<u64>,
    /// An earlier line that it breaks the rule with, if there is one.
    pub with_line: Option<u64>,
    /// The URL asked for, or what could be made of the request.
    pub url: String,
    /// What was expected and what was found.
    pub detail: String,
}

/// A line of the log that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogFault {
    /// The line.
    pub line: u64,
    /// What was expected and what was found.
    pub detail: String,
}

/// Violations and faults kept of each kind; all are counted.
const KEPT: u64 = 1_000;

/// The judgement of a crawl.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether no rule was broken and every line could be read.
    pub clean: bool,
    /// Requests in the log.
    pub requests: u64,
    /// Connections in the log.
    pub connections: u64,
    /// URLs that had to be asked for.
    pub expected: u64,
    /// Those of them that were.
    pub fetched: u64,
    /// How often each rule was broken.
    pub counts: BTreeMap<Kind, u64>,
    /// The violations, by line; at most a thousand of each kind.
    pub violations: Vec<Violation>,
    /// Lines that could not be read.
    pub fault_count: u64,
    /// The first thousand of them.
    pub faults: Vec<LogFault>,
}

impl Verdict {
    /// How often a rule was broken.
    pub fn count(&self, kind: Kind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    pub(super) fn add(&mut self, kind: Kind, line: Option<u64>, with_line: Option<u64>, url: String, detail: String) {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        if *count <= KEPT {
            self.violations.push(Violation { kind, line, with_line, url, detail });
        }
    }

    pub(super) fn fault(&mut self, line: u64, detail: String) {
        self.fault_count += 1;
        if self.fault_count <= KEPT {
            self.faults.push(LogFault { line, detail });
        }
    }

    pub(super) fn finish(&mut self) {
        self.clean = self.counts.is_empty() && self.fault_count == 0;
        self.violations.sort_by(|a, b| {
            (a.line.is_none(), a.line, a.kind, &a.url).cmp(&(b.line.is_none(), b.line, b.kind, &b.url))
        });
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} requests, {} of {} expected URLs fetched", self.requests, self.fetched, self.expected)?;
        if self.clean {
            return writeln!(f, "no rule broken");
        }
        for fault in self.faults.iter().take(10) {
            writeln!(f, "line {}: {}", fault.line, fault.detail)?;
        }
        for (kind, count) in &self.counts {
            let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
            writeln!(f, "{times}: {}", kind.about())?;
            for violation in self.violations.iter().filter(|v| v.kind == *kind).take(10) {
                write!(f, "  ")?;
                if let Some(line) = violation.line {
                    write!(f, "line {line}: ")?;
                }
                write!(f, "{}", violation.url)?;
                if !violation.detail.is_empty() {
                    write!(f, " ({})", violation.detail)?;
                }
                if let Some(line) = violation.with_line {
                    write!(f, ", after line {line}")?;
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}
