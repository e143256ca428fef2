//! What a page tells crawlers about itself: `X-Robots-Tag` headers and `<meta name="robots">`.

use trawl_model::{UnixMillis, date};

/// The directives of a page that concern a crawler; unknown ones are passed over. The default forbids nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Directives {
    /// `noindex` or `none`: the page is not to appear in search.
    pub noindex: bool,
    /// `nofollow` or `none`: the page's links are not to be followed.
    pub nofollow: bool,
    /// `noarchive` or `nocache`: no copy is to be shown.
    pub noarchive: bool,
    /// `nosnippet`: no extract is to be shown.
    pub nosnippet: bool,
    /// `noimageindex`: the page's images are not to appear in search.
    pub noimageindex: bool,
    /// `unavailable_after`: from this moment on as `noindex`.
    pub unavailable_after: Option<UnixMillis>,
}

impl Directives {
    /// Reads a comma-separated list such as `noindex, nofollow`. A date may hold a comma: it takes all that follows.
    pub fn parse(list: &str) -> Directives {
        let mut this = Directives::default();
        let mut rest = list;
        while !rest.is_empty() {
            let trimmed = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
            if let Some(value) = strip_name(trimmed, "unavailable_after") {
                let used = this.take_date(value);
                rest = value.get(used..).unwrap_or_default();
                continue;
            }
            let (word, after) = trimmed.split_once(',').unwrap_or((trimmed, ""));
            this.word(word.trim());
            rest = after;
        }
        this
    }

    /// Reads one `X-Robots-Tag` value for an agent: `noindex`, or `otherbot: noindex, nofollow` for another one.
    ///
    /// A header that occurs several times is read value by value and [merged](Directives::merge).
    pub fn header(value: &str, agent: &str) -> Directives {
        let mut this = Directives::default();
        let mut rest = value;
        let mut ours = true;
        while !rest.is_empty() {
            let trimmed = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
            let (word, _) = trimmed.split_once(',').unwrap_or((trimmed, ""));
            // `name: rule` starts the rules of one agent, unless the name is a rule that takes a value.
            if let Some((name, _)) = word.split_once(':')
                && !takes_value(name.trim())
            {
                ours = name.trim().eq_ignore_ascii_case(agent) || name.trim() == "*";
                rest = trimmed.get(name.len() + 1..).unwrap_or_default();
                continue;
            }
            if let Some(value) = strip_name(trimmed, "unavailable_after") {
                let mut scratch = Directives::default();
                let target = if ours { &mut this } else { &mut scratch };
                let used = target.take_date(value);
                rest = value.get(used..).unwrap_or_default();
                continue;
            }
            if ours {
                this.word(word.trim());
            }
            rest = trimmed.get(word.len()..).unwrap_or_default();
        }
        this
    }

    /// Adds what another tag or header forbids: of two, the stricter counts.
    pub fn merge(&mut self, other: &Directives) {
        self.noindex |= other.noindex;
        self.nofollow |= other.nofollow;
        self.noarchive |= other.noarchive;
        self.nosnippet |= other.nosnippet;
        self.noimageindex |= other.noimageindex;
        self.unavailable_after = match (self.unavailable_after, other.unavailable_after) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// Whether the page is out of search at `now`.
    pub fn hidden(&self, now: UnixMillis) -> bool {
        self.noindex || self.unavailable_after.is_some_and(|after| now >= after)
    }

    fn word(&mut self, word: &str) {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let none = is("none");
        self.noindex |= none || is("noindex");
        self.nofollow |= none || is("nofollow");
        self.noarchive |= is("noarchive") || is("nocache");
        self.nosnippet |= is("nosnippet");
        self.noimageindex |= is("noimageindex");
    }

    /// Reads the date at the start of `text`, which may hold commas; returns the bytes it took.
    fn take_date(&mut self, text: &str) -> usize {
        let ends: Vec<usize> = text.match_indices(',').map(|(at, _)| at).chain([text.len()]).take(3).collect();
        for end in &ends {
            let candidate = text.get(..*end).unwrap_or_default().trim();
            // A year of two digits here is one of this century or the last; any `now` of our time decides alike.
            if let Some(date) = date::any_date(candidate, UnixMillis(1_700_000_000_000)) {
                self.merge(&Directives { unavailable_after: Some(date), ..Directives::default() });
                return *end;
            }
        }
        ends.first().copied().unwrap_or(text.len())
    }
}

/// Whether a name before a colon is a rule rather than an agent.
fn takes_value(name: &str) -> bool {
    const RULES: [&str; 4] = ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
    RULES.iter().any(|rule| name.eq_ignore_ascii_case(rule))
}

/// What follows `name:` at the start of `text`.
fn strip_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(name.len())?;
    head.eq_ignore_ascii_case(name).then_some(())?;
    rest.trim_start().strip_prefix(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(d: Directives) -> String {
        let all = [
            (d.noindex, "noindex"),
            (d.nofollow, "nofollow"),
            (d.noarchive, "noarchive"),
            (d.nosnippet, "nosnippet"),
            (d.noimageindex, "noimageindex"),
        ];
        let mut out: Vec<String> = all.iter().filter(|(set, _)| *set).map(|(_, name)| (*name).to_owned()).collect();
        out.extend(d.unavailable_after.map(|at| at.rfc3339_seconds()));
        out.join(" ")
    }

    #[test]
    fn lists() {
        for (list, want) in [
            ("", ""),
            ("all", ""),
            ("NoIndex,NOFOLLOW", "noindex nofollow"),
            (" none ", "noindex nofollow"),
            ("noarchive ,, nosnippet , noimageindex", "noarchive nosnippet noimageindex"),
            ("max-snippet:20, nocache", "noarchive"),
            ("unavailable_after: 25 Jun 2010 15:00:00 PST", "2010-06-25T23:00:00Z"),
            ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT, noindex", "noindex 2010-06-25T15:00:00Z"),
            ("noindex, unavailable_after: 2020-01-02", "noindex 2020-01-02T00:00:00Z"),
            ("unavailable_after: someday, nofollow", "nofollow"),
            ("noindexing", ""),
        ] {
            assert_eq!(flags(Directives::parse(list)), want, "{list}");
        }
    }

    #[test]
    fn headers_may_name_an_agent() {
        for (value, want) in [
            ("noindex, nofollow", "noindex nofollow"),
            ("TrawlBot: noindex", "noindex"),
            ("otherbot: noindex, nofollow", ""),
            ("otherbot: noindex, trawlbot: nofollow, noarchive", "nofollow noarchive"),
            ("noarchive, otherbot: noindex", "noarchive"),
            ("max-image-preview: none, noarchive", "noarchive"),
            ("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT", "2010-06-25T15:00:00Z"),
            ("otherbot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT", ""),
            ("trawlbot: unavailable_after: 25 Jun 2010 15:00:00 GMT, nofollow", "nofollow 2010-06-25T15:00:00Z"),
            ("*: none", "noindex nofollow"),
        ] {
            assert_eq!(flags(Directives::header(value, "TrawlBot")), want, "{value}");
        }
    }

    #[test]
    fn the_stricter_wins() {
        let mut page = Directives::parse("nofollow, unavailable_after: 2025-01-01");
        page.merge(&Directives::parse("noarchive, unavailable_after: 2024-01-01"));
        assert_eq!(flags(page), "nofollow noarchive 2024-01-01T00:00:00Z");
        let at = page.unavailable_after.unwrap();
        assert!(page.hidden(at) && !page.hidden(UnixMillis(at.0 - 1)));
    }
}
