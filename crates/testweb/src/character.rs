//! Characters: the named ways in which hosts, pages and links differ from the plain ones.
//!
//! Each belongs to one axis. On an axis a thing has at most one character, drawn with the shares of the settings (parts
//! per thousand of the things it can apply to); what is left over is plain. Axes are independent of each other.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::error::Error;

/// What a character is about; things draw one character an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Axis {
    /// How a host is reached.
    Transport,
    /// What is wrong with the certificate of an https host.
    Certificate,
    /// The robots.txt of a host.
    Robots,
    /// How a host treats every request.
    Conduct,
    /// How a host announces its pages.
    Announcement,
    /// A space without end on a host.
    Trap,
    /// What a host says about paths that do not exist.
    Absence,
    /// How the URLs of a host's pages are written.
    Address,
    /// How the pages of a host hang together.
    Shape,
    /// How the name of a host is resolved.
    Name,
    /// What happens to a request for a page; only for pages without children.
    Fate,
    /// The content coding of a page.
    Coding,
    /// The framing of a page's body.
    Framing,
    /// The character encoding of a page.
    Charset,
    /// What a page says about its version.
    Validator,
    /// Whether a page changes.
    Change,
    /// Whether a page's text is its own; only for pages without children.
    Text,
    /// What a page tells crawlers about itself; only for pages without children.
    Directive,
    /// What a link leads to, or how it is written.
    Link,
}

macro_rules! characters {
    ($($name:ident $axis:ident $about:literal)*) => {
        /// A named way to differ from the plain.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Character { $(#[doc = $about] $name,)* }

        impl Character {
            /// All characters, axis by axis.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The axis it lies on.
            pub fn axis(self) -> Axis {
                match self { $(Self::$name => Axis::$axis,)* }
            }

            /// What it does, in a few words.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)* }
            }
        }
    };
}

characters! {
    Https Transport "https with HTTP/1.1 only; http answers with a redirect to https"
    Http2 Transport "https with HTTP/2 and HTTP/1.1; http answers with a redirect to https"
    CertSelfSigned Certificate "the certificate is signed by itself"
    CertExpired Certificate "the certificate has expired"
    CertWrongName Certificate "the certificate is for another name"
    CertBroken Certificate "the TLS handshake is cut off"
    RobotsMissing Robots "404: everything is allowed"
    RobotsForbidden Robots "403: everything is allowed"
    RobotsPartial Robots "one section is closed"
    RobotsDelay Robots "a crawl delay"
    RobotsPartialDelay Robots "one section is closed, and a crawl delay"
    RobotsMerged Robots "two groups name the agent and must be merged; a group for all must then be ignored"
    RobotsWildcard Robots "patterns with * and $, and an Allow inside a Disallow"
    RobotsOdd Robots "odd case, spaces, comments, line ends and unknown lines"
    RobotsBom Robots "a byte order mark before the first group"
    RobotsHuge Robots "larger than 500 KiB; the rules that matter stand early"
    RobotsRedirect Robots "up to four redirects lead to the rules"
    RobotsLoop Robots "redirects without end"
    RobotsClosed Robots "everything is closed"
    RobotsError Robots "503: nothing may be fetched for now"
    RobotsHtml Robots "200 with an HTML page: no rules"
    RobotsCut Robots "reset in the middle at first, before the rule that closes a section; then whole"
    RobotsStall Robots "nothing more after the first half at first; then whole"
    Slow Conduct "every response begins late"
    Silent Conduct "requests are read and never answered"
    HangUp Conduct "the connection is reset after each request"
    Throttle Conduct "429 with Retry-After for requests that come too soon after the last"
    Closing Conduct "no keep-alive: each connection serves one request"
    Sitemap Announcement "a sitemap lists all pages, some of which nothing links"
    SitemapIndex Announcement "the same, as an index of sitemaps, some compressed"
    Feed Announcement "a feed lists the newest pages"
    CalendarTrap Trap "months without end, each linking the next"
    SessionTrap Trap "each visit links the same pages with a new session id"
    FacetTrap Trap "every combination of filters is a page of its own"
    SoftNotFound Absence "200 with one and the same page"
    SemicolonQuery Address "pages differ only behind a semicolon of the query, as gitweb has it"
    PipeQuery Address "pages differ only by a list, with bars between, in the query parameter ref"
    FlatHost Shape "the home page links every page of the host"
    DnsFlaky Name "the first lookups of the name fail with SERVFAIL"
    DnsSlow Name "lookups of the name are answered late"
    Redirect Fate "one redirect to a page of the host"
    RedirectAway Fate "one redirect to another host"
    RedirectChain Fate "two to four redirects, then a page"
    RedirectLong Fate "thirty redirects in a row"
    RedirectLoop Fate "three URLs that redirect in a circle"
    Gone Fate "410"
    ServerError Fate "500, always"
    Busy Fate "429 with Retry-After at first, then a page"
    Unavailable Fate "503 with Retry-After at first, then a page"
    Stall Fate "no answer"
    Drip Fate "the body comes in small pieces, slowly"
    ResetBody Fate "the connection is reset in the middle of the body"
    ShortBody Fate "the connection ends before Content-Length is reached"
    LongBody Fate "more bytes follow than Content-Length says"
    SurplusBody Fate "a second response follows the body unasked, and the connection stays open"
    NoContentBody Fate "204 with a body, and the connection stays open"
    CutOnce Fate "the connection is reset in the middle of the body at first, then a page"
    EndlessBody Fate "the body never ends"
    Bomb Fate "a small body that decompresses to a very large one"
    BadHead Fate "a response head that breaks the rules; most can be read nevertheless"
    Gzip Coding "gzip, if the client accepts it"
    Brotli Coding "br, if the client accepts it"
    Zstd Coding "zstd, if the client accepts it"
    Deflate Coding "deflate (zlib), if the client accepts it"
    Chunked Framing "chunked transfer coding"
    UntilClose Framing "no length; the end of the connection ends the body"
    LegacyCharset Charset "an old encoding of the page's language, named in the header or only in the page"
    Utf16 Charset "UTF-16 with a byte order mark"
    Etag Validator "an entity tag"
    LastModified Validator "a modification date"
    BothValidators Validator "an entity tag and a modification date"
    Changing Change "the text changes at a rate of its own"
    Duplicate Text "the same bytes as the page before it"
    NearDuplicate Text "nearly the text of the page before it"
    NoFollow Directive "the page asks crawlers not to follow its links, one of which is on no other page"
    BrokenLink Link "leads to a path that does not exist"
    Insecure Link "names http for a host that answers on https"
    Tracked Link "carries utm_ parameters that do not change the page"
    OddSpelling Link "relative, with dot segments, a default port, a fragment, entities, upper case or white space"
}

impl Character {
    /// Its name in settings and descriptions, e.g. `robots-bom`.
    pub fn name(self) -> String {
        let mut out = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_ascii_uppercase() && !out.is_empty() {
                out.push('-');
            }
            out.push(c.to_ascii_lowercase());
        }
        out
    }
}

impl FromStr for Character {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.iter().copied().find(|character| character.name() == name).ok_or_else(|| Error::Setting {
            setting: "shares",
            expected: "the name of a character",
            found: name.to_owned(),
        })
    }
}

/// How often each character occurs, in parts per thousand of what it can apply to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Shares(pub BTreeMap<Character, u16>);

impl Shares {
    /// The share of a character.
    pub fn get(&self, character: Character) -> u16 {
        self.0.get(&character).copied().unwrap_or(0)
    }

    /// Sets the share of a character.
    pub fn set(&mut self, character: Character, per_mille: u16) -> &mut Self {
        self.0.insert(character, per_mille);
        self
    }

    /// The axis whose shares add up to more than a thousand, if there is one.
    pub(crate) fn overfull(&self) -> Option<Axis> {
        let mut sums = BTreeMap::<Axis, u32>::new();
        for (character, share) in &self.0 {
            *sums.entry(character.axis()).or_default() += u32::from(*share);
        }
        sums.into_iter().find(|&(_, sum)| sum > 1000).map(|(axis, _)| axis)
    }
}

/// The shares of one axis, ready to draw from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draw(Vec<(u64, Character)>);

impl Draw {
    pub(crate) fn new(shares: &Shares, axis: Axis) -> Self {
        let of_axis = shares.0.iter().filter(|&(c, &share)| c.axis() == axis && share > 0);
        let mut upto = 0;
        let mut add = |share: &u16| {
            upto += u64::from(*share);
            upto
        };
        Self(of_axis.map(|(&c, share)| (add(share), c)).collect())
    }

    /// Whether anything but the plain can come out.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.is_empty()
    }

    /// A character, or `None` for the plain.
    pub(crate) fn draw(&self, dice: &mut Dice) -> Option<Character> {
        let at = dice.below(1000);
        self.0.iter().find(|&&(upto, _)| at < upto).map(|&(_, c)| c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_settings() {
        for &character in Character::ALL {
            assert_eq!(serde_json::to_string(&character).unwrap(), format!("\"{}\"", character.name()));
            assert_eq!(character.name().parse::<Character>().unwrap(), character);
            assert!(!character.about().is_empty());
        }
        assert!("gzipp".parse::<Character>().unwrap_err().to_string().contains("gzipp"));
    }

    #[test]
    fn draws_follow_the_shares() {
        let mut shares = Shares::default();
        shares.set(Character::Gzip, 250).set(Character::Zstd, 500).set(Character::Slow, 1000);
        let draw = Draw::new(&shares, Axis::Coding);
        let count = |wanted| (0..10_000).filter(|&n| draw.draw(&mut Dice::new(1, 1, n, 0)) == wanted).count();
        assert!((2_300..2_700).contains(&count(Some(Character::Gzip))));
        assert!((4_700..5_300).contains(&count(Some(Character::Zstd))));
        assert!((2_300..2_700).contains(&count(None)));
        assert!(Draw::new(&shares, Axis::Trap).is_plain());
        assert_eq!(shares.overfull(), None);
        shares.set(Character::Brotli, 251);
        assert_eq!(shares.overfull(), Some(Axis::Coding));
    }
}
