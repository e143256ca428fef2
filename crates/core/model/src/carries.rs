//! What a container can carry, as a value: `convert` counts what it cannot, `crawl --format` names it beforehand.

use crate::capture::named;
use crate::{Capture, CaptureFacts, Outcome, Revisit, RevisitProfile};
use std::fmt;
use std::str::FromStr;

named! {
    /// One thing a capture or an archive can have that a container may be unable to carry.
    #[derive(PartialOrd, Ord, serde::Serialize)]
    #[serde(rename_all = "snake_case")]
    Capability {
        /// The request.
        Request = "request",
        /// The peer's address.
        Ip = "ip",
        /// More than one capture of a URL.
        ManyPerUrl = "many_per_url",
        /// Revisits.
        Revisits = "revisits",
        /// Of revisits those in which a server says that nothing changed. Who carries revisits carries these.
        NotModified = "not_modified",
        /// Failed fetches.
        Failures = "failures",
        /// Records that are not captures, byte for byte.
        OtherRecords = "other_records",
        /// What only the index would know: [`CaptureFacts`] but the address, the id and the times.
        Facts = "facts",
        /// Bodies with their content codings, as they were sent.
        Codings = "codings",
        /// Bodies of any length.
        LongBodies = "long_bodies",
    }
}

impl Capability {
    /// What it is, for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Request => "requests",
            Self::Ip => "IP addresses",
            Self::ManyPerUrl => "more than one capture of a URL",
            Self::Revisits => "revisits",
            Self::NotModified => "revisits of pages that have not changed, as their server says",
            Self::Failures => "failed fetches",
            Self::OtherRecords => "records that are not captures",
            Self::Facts => "what only captures.parquet knows",
            Self::Codings => "content codings of bodies",
            Self::LongBodies => "very long bodies",
        }
    }
}

/// What a container can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carries(&'static [Capability]);

impl Carries {
    /// Everything.
    pub const ALL: Self = Self(Capability::ALL);

    /// Exactly these.
    pub const fn only(capabilities: &'static [Capability]) -> Self {
        Self(capabilities)
    }

    /// Nothing: an index of captures that are elsewhere.
    pub const NOTHING: Self = Self(&[]);

    /// Whether it can carry `capability`.
    pub fn has(self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// What it cannot carry.
    pub fn missing(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.iter().copied().filter(move |capability| !self.has(*capability))
    }

    /// Whether it can carry the capture at all. If not, a sink drops it whole.
    pub fn takes(self, capture: &Capture<'_>) -> bool {
        match capture.outcome {
            Outcome::Response { .. } => true,
            Outcome::Revisit(ref revisit) => self.takes_revisit(revisit),
            Outcome::Failed(_) => self.has(Capability::Failures),
        }
    }

    fn takes_revisit(self, revisit: &Revisit) -> bool {
        let is_not_modified = revisit.profile == RevisitProfile::ServerNotModified;
        self.has(Capability::Revisits) || is_not_modified && self.has(Capability::NotModified)
    }

    /// What of the capture it cannot carry. That there is another capture of the URL is not a matter of one capture.
    pub fn losses(self, capture: &Capture<'_>) -> Vec<Capability> {
        let facts = &capture.facts;
        let plain = CaptureFacts {
            record_id: facts.record_id.clone(),
            fetched_at: facts.fetched_at,
            ip: facts.ip,
            ..CaptureFacts::default()
        };
        let has = |capability| match capability {
            Capability::Request => capture.request.is_some(),
            Capability::Ip => facts.ip.is_some(),
            Capability::Revisits => {
                matches!(&capture.outcome, Outcome::Revisit(revisit) if !self.takes_revisit(revisit))
            }
            Capability::Failures => matches!(capture.outcome, Outcome::Failed(_)),
            Capability::Facts => *facts != plain,
            // Of these a sink itself knows.
            Capability::ManyPerUrl | Capability::OtherRecords | Capability::Codings | Capability::LongBodies => false,
            // Reported as a revisit.
            Capability::NotModified => false,
        };
        self.missing().filter(|capability| has(*capability)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, UnixMillis};

    #[test]
    fn what_a_target_cannot_carry_is_named() {
        let target = Carries::only(&[Capability::Request, Capability::ManyPerUrl]);
        let missing: Vec<_> = target.missing().map(Capability::as_str).collect();
        assert_eq!(
            missing,
            ["ip", "revisits", "not_modified", "failures", "other_records", "facts", "codings", "long_bodies"]
        );
        assert_eq!(Carries::ALL.missing().count(), 0);
        let outcome = Outcome::Failed(Failure { class: crate::ErrorClass::Reset, message: String::new() });
        let facts = CaptureFacts { ip: Some([127, 0, 0, 1].into()), attempt: 1, ..CaptureFacts::default() };
        let capture = Capture { url: "u".into(), started_at: UnixMillis(0), request: None, outcome, facts };
        assert_eq!(target.losses(&capture), [Capability::Ip, Capability::Failures, Capability::Facts]);
        assert!(!target.takes(&capture) && Carries::ALL.takes(&capture));
        assert!(Carries::ALL.losses(&capture).is_empty());
        let revisit = |profile| Capture {
            url: "u".into(),
            started_at: UnixMillis(0),
            request: None,
            outcome: Outcome::Revisit(Revisit {
                head: Default::default(),
                profile,
                payload_digest: None,
                refers_to_url: None,
                refers_to_date: None,
                refers_to_id: None,
                body_length: 0,
            }),
            facts: CaptureFacts::default(),
        };
        let segment = Carries::only(&[Capability::NotModified]);
        for (profile, taken) in
            [(RevisitProfile::ServerNotModified, true), (RevisitProfile::IdenticalPayloadDigest, false)]
        {
            let capture = revisit(profile);
            assert!(segment.takes(&capture) == taken && Carries::ALL.takes(&capture) && !target.takes(&capture));
            assert_eq!(segment.losses(&capture).is_empty(), taken);
            assert_eq!(target.losses(&capture), [Capability::Revisits]);
        }
    }
}
