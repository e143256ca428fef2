//! Ready-made sets of characters.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::character::{Character, Shares};
use crate::error::Error;

/// A ready-made set of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Small and well-behaved: plain http, only the usual robots.txt files.
    #[default]
    Demo,
    /// What a crawler meets on an ordinary day.
    Standard,
    /// Mostly trouble.
    Hostile,
    /// Ordinary trouble that passes: a crawl must come out of it with every page.
    Trouble,
}

impl Profile {
    /// All profiles, the mildest first.
    pub const ALL: [Self; 4] = [Self::Demo, Self::Standard, Self::Hostile, Self::Trouble];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Standard => "standard",
            Self::Hostile => "hostile",
            Self::Trouble => "trouble",
        }
    }

    /// How often each character occurs in this profile.
    pub fn shares(self) -> Shares {
        match self {
            Self::Demo => demo(),
            Self::Standard => standard(),
            Self::Hostile => hostile(),
            Self::Trouble => trouble(),
        }
    }
}

impl FromStr for Profile {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| Error::Setting {
            setting: "profile",
            expected: "demo, standard, hostile or trouble",
            found: name.to_owned(),
        })
    }
}

fn demo() -> Shares {
    let mut shares = Shares::default();
    shares
        .set(Character::RobotsMissing, 200)
        .set(Character::RobotsPartial, 200)
        .set(Character::RobotsDelay, 100)
        .set(Character::RobotsPartialDelay, 50);
    shares
}

fn standard() -> Shares {
    use Character::*;
    let per_mille = [
        (Https, 300),
        (Http2, 400),
        (CertSelfSigned, 10),
        (CertExpired, 10),
        (CertWrongName, 10),
        (RobotsMissing, 200),
        (RobotsForbidden, 15),
        (RobotsPartial, 150),
        (RobotsDelay, 60),
        (RobotsPartialDelay, 30),
        (RobotsMerged, 40),
        (RobotsWildcard, 60),
        (RobotsOdd, 40),
        (RobotsBom, 20),
        (RobotsHuge, 5),
        (RobotsRedirect, 20),
        (RobotsClosed, 15),
        (RobotsError, 10),
        (RobotsHtml, 10),
        (Slow, 10),
        (Silent, 5),
        (Closing, 50),
        (Sitemap, 200),
        (SitemapIndex, 50),
        (Feed, 100),
        (CalendarTrap, 10),
        (SessionTrap, 10),
        (FacetTrap, 10),
        (SoftNotFound, 30),
        (Redirect, 30),
        (RedirectAway, 10),
        (RedirectChain, 5),
        (Gone, 5),
        (ServerError, 3),
        (Busy, 2),
        (Unavailable, 2),
        (Gzip, 500),
        (Brotli, 200),
        (Zstd, 50),
        (Deflate, 10),
        (Chunked, 400),
        (UntilClose, 10),
        (LegacyCharset, 50),
        (Utf16, 2),
        (Etag, 200),
        (LastModified, 200),
        (BothValidators, 200),
        (Changing, 300),
        (Duplicate, 20),
        (NearDuplicate, 30),
        (NoFollow, 20),
        (BrokenLink, 20),
        (Insecure, 20),
        (Tracked, 20),
        (OddSpelling, 200),
    ];
    Shares(per_mille.into_iter().collect())
}

fn hostile() -> Shares {
    use Character::*;
    let mut shares = standard();
    let more = [
        (CertSelfSigned, 80),
        (CertExpired, 80),
        (CertWrongName, 80),
        (CertBroken, 60),
        (RobotsMissing, 80),
        (RobotsForbidden, 40),
        (RobotsPartial, 80),
        (RobotsMerged, 100),
        (RobotsWildcard, 100),
        (RobotsOdd, 100),
        (RobotsBom, 80),
        (RobotsHuge, 40),
        (RobotsRedirect, 80),
        (RobotsLoop, 30),
        (RobotsClosed, 40),
        (RobotsError, 40),
        (RobotsHtml, 40),
        (Slow, 50),
        (Silent, 40),
        (HangUp, 40),
        (Throttle, 100),
        (CalendarTrap, 100),
        (SessionTrap, 100),
        (FacetTrap, 100),
        (SoftNotFound, 200),
        (Redirect, 40),
        (RedirectAway, 40),
        (RedirectChain, 40),
        (RedirectLong, 10),
        (RedirectLoop, 20),
        (Gone, 20),
        (ServerError, 20),
        (Busy, 15),
        (Unavailable, 15),
        (Stall, 5),
        (Drip, 10),
        (ResetBody, 20),
        (ShortBody, 20),
        (LongBody, 20),
        (EndlessBody, 5),
        (Bomb, 5),
        (BadHead, 100),
        (UntilClose, 100),
        (LegacyCharset, 200),
        (Utf16, 20),
        (Duplicate, 150),
        (NearDuplicate, 150),
        (NoFollow, 60),
        (BrokenLink, 80),
        (Insecure, 80),
        (Tracked, 80),
        (OddSpelling, 600),
    ];
    shares.0.extend(more);
    shares
}

fn trouble() -> Shares {
    use Character::*;
    let per_mille = [
        (RobotsMissing, 150),
        (RobotsPartial, 150),
        (RobotsCut, 150),
        (RobotsStall, 50),
        (Closing, 100),
        (SemicolonQuery, 200),
        (PipeQuery, 100),
        (FlatHost, 100),
        (DnsFlaky, 150),
        (DnsSlow, 100),
        (Busy, 20),
        (Unavailable, 20),
        (SurplusBody, 60),
        (NoContentBody, 30),
        (CutOnce, 60),
        (Chunked, 300),
        (Gzip, 300),
    ];
    Shares(per_mille.into_iter().collect())
}
