//! Prefixes of URLs. Rows have their query parameters sorted, so what a URL begins with depends on its spelling.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use trawl_url::{LakeUrl, SuffixList};

/// A denied prefix: it stands for every URL that begins so in one of its spellings, that is with its query parameters in
/// any order that means the same (those of one name keep theirs).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    text: String,
    host: String,
    /// Where the text of host and port ends.
    path_start: usize,
    /// Where the query begins.
    query_start: Option<usize>,
}

/// Why a text is no prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoPrefix {
    /// It does not begin as a URL does.
    #[error("{text:?} is not a prefix of URLs: {source}")]
    Url {
        /// The text.
        text: String,
        /// Why it is no URL.
        source: trawl_url::Reject,
    },
    /// Longer URLs are spelled otherwise.
    #[error(
        "{text:?} cannot be a prefix: it is normalised to {form}, which longer URLs do not begin with; end it at another place"
    )]
    End {
        /// The text.
        text: String,
        /// What a URL of this text is normalised to.
        form: String,
    },
}

impl Prefix {
    /// What the rows begin with that begin as `text` does. Refused if its end is not the same in longer URLs: it would
    /// stand for more rows than were asked for, or for none.
    pub fn parse(text: &str, suffixes: &SuffixList) -> Result<Self, NoPrefix> {
        let parse = |text: &str| LakeUrl::parse(text, suffixes);
        let no_url = |source| NoPrefix::Url { text: text.to_owned(), source };
        // A fragment belongs to no row, and takes in all that follows.
        if text.contains('#') {
            let form = parse(text).map_err(no_url)?.as_str().to_owned();
            return Err(NoPrefix::End { text: text.to_owned(), form });
        }
        let after_scheme = text.split_once("://").map_or(text, |(_, rest)| rest);
        let whole = if after_scheme.contains(['/', '\\', '?']) { text.to_owned() } else { format!("{text}/") };
        let (path, query) = whole.split_once('?').map_or((&*whole, None), |(path, query)| (path, Some(query)));
        let url = parse(path).map_err(no_url)?;
        let path_start = url.as_str().len() - url.path_query().len();
        let mut form = url.as_str().to_owned();
        let query_start = query.map(|_| form.len() + 1);
        // Parameters one by one, as nothing else keeps them in their order.
        let (before, last) = match query {
            None => (None, None),
            Some(query) => {
                query.rsplit_once('&').map_or((None, Some(query)), |(before, last)| (Some(before), Some(last)))
            }
        };
        for piece in before.into_iter().flat_map(|before| before.split('&')).chain(last) {
            let piece = parse(&format!("{path}?{piece}")).map_err(no_url)?;
            let Some((_, piece)) = piece.as_str().split_once('?') else { continue };
            form.push(if query_start == Some(form.len() + 1) { '?' } else { '&' });
            form.push_str(piece);
        }
        // What is the end of every longer URL, spelled as it is in them.
        let (end, end_form) = match last {
            None => (whole.clone(), form.clone()),
            Some(last) => {
                let end = format!("{path}?{last}");
                let end_form = parse(&end).map_err(no_url)?.as_str().to_owned();
                (end, end_form)
            }
        };
        // A letter that ends a step between directories, and digits that may complete a percent escape.
        for more in ["x", "0", "20"] {
            let longer = parse(&format!("{end}{more}"));
            if !longer.is_ok_and(|longer| longer.as_str().strip_prefix(&*end_form) == Some(more)) {
                return Err(NoPrefix::End { text: text.to_owned(), form: end_form });
            }
        }
        Ok(Self { text: form, host: url.host().to_owned(), path_start, query_start })
    }

    /// A prefix as the deny list has it, whatever [`parse`](Self::parse) would say of it today; `None` if it begins as no
    /// URL does.
    pub(super) fn listed(text: &str, suffixes: &SuffixList) -> Option<Self> {
        let path = text.split_once('?').map_or(text, |(path, _)| path);
        let url = LakeUrl::parse(path, suffixes).ok()?;
        let path_start = url.as_str().len() - url.path_query().len();
        let query_start = text.find('?').map(|at| at + 1);
        Some(Self { text: text.to_owned(), host: url.host().to_owned(), path_start, query_start })
    }

    /// As the deny list has it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The host of its rows.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// With what the paths of its rows begin, as they are sorted.
    pub fn path_start(&self) -> &str {
        self.text.get(self.path_start..self.query_start.unwrap_or(self.text.len())).unwrap_or_default()
    }

    /// The parameters of its query; the last one may be the beginning of longer ones.
    fn pieces(&self) -> impl Iterator<Item = &str> {
        let query = self.query_start.and_then(|at| self.text.get(at..));
        query.into_iter().flat_map(|query| query.split('&'))
    }

    /// Whether it stands for a URL, which is in lake form.
    pub fn covers(&self, lake_url: &str) -> bool {
        let Some(query_start) = self.query_start else { return lake_url.starts_with(&self.text) };
        let (base, wanted) = self.text.split_at_checked(query_start).unwrap_or_default();
        let Some(query) = lake_url.strip_prefix(base) else { return false };
        // Most URLs begin so as they are, and those of fewer parameters never do.
        query.starts_with(wanted) || begins_in_some_order(query, wanted)
    }
}

/// The prefixes of one host, found by what a URL begins with: a list of takedowns may have tens of thousands of one host, and every
/// row of it is compared with them.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// Those without a query.
    paths: Starts<()>,
    /// Those with a query, by all before it, and then by one of their parameters.
    queries: HashMap<String, Starts<Vec<Prefix>>>,
}

impl Prefixes {
    pub fn new(all: Vec<Prefix>) -> Self {
        // A parameter that few prefixes have leads to few: `v=1&list=2` is one of many with `list=2`.
        let mut counts: HashMap<String, usize> = HashMap::new();
        for piece in all.iter().flat_map(Prefix::pieces) {
            *counts.entry(piece.to_owned()).or_default() += 1;
        }
        let mut prefixes = Self::default();
        for prefix in all {
            let rarest = prefix.pieces().min_by_key(|piece| counts.get(*piece)).map(str::to_owned);
            match (rarest, prefix.query_start) {
                (Some(piece), Some(query_start)) => {
                    let before = prefix.text.get(..query_start).unwrap_or_default().to_owned();
                    prefixes.queries.entry(before).or_default().add(piece).push(prefix);
                }
                _ => {
                    prefixes.paths.add(prefix.text);
                }
            }
        }
        prefixes
    }

    /// Whether one of them stands for a URL, which is in lake form.
    pub fn cover(&self, lake_url: &str) -> bool {
        if self.paths.beginning(lake_url).next().is_some() {
            return true;
        }
        let Some((before, query)) = lake_url.find('?').and_then(|at| lake_url.split_at_checked(at + 1)) else {
            return false;
        };
        // Whatever order they are put in: of each piece of a prefix some parameter has the beginning.
        self.queries.get(before).is_some_and(|of_path| {
            let mut may = query.split('&').flat_map(|piece| of_path.beginning(piece)).flatten();
            may.any(|prefix| prefix.covers(lake_url))
        })
    }
}

/// Texts with which others begin.
#[derive(Debug)]
struct Starts<T> {
    texts: HashMap<String, T>,
    lengths: BTreeSet<usize>,
}

impl<T> Default for Starts<T> {
    fn default() -> Self {
        Self { texts: HashMap::new(), lengths: BTreeSet::new() }
    }
}

impl<T: Default> Starts<T> {
    fn add(&mut self, text: String) -> &mut T {
        self.lengths.insert(text.len());
        self.texts.entry(text).or_default()
    }

    /// What is kept of the texts that `longer` begins with.
    fn beginning<'a>(&'a self, longer: &'a str) -> impl Iterator<Item = &'a T> {
        let lengths = self.lengths.range(..=longer.len());
        lengths.filter_map(move |length| self.texts.get(longer.get(..*length)?))
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether parameters, put into another order that keeps those of one name in theirs, begin with `wanted`.
pub fn begins_in_some_order(query: &str, wanted: &str) -> bool {
    let mut left: Vec<&str> = query.split('&').collect();
    let (whole, last) = wanted.rsplit_once('&').map_or((None, wanted), |(whole, last)| (Some(whole), last));
    for piece in whole.into_iter().flat_map(|whole| whole.split('&')) {
        match left.iter().position(|other| name_of(other) == name_of(piece)) {
            Some(at) if left.get(at) == Some(&piece) => drop(left.remove(at)),
            _ => return false,
        }
    }
    let first_of_its_name =
        |at: usize, piece: &str| left.iter().position(|other| name_of(other) == name_of(piece)) == Some(at);
    left.iter().enumerate().any(|(at, piece)| piece.starts_with(last) && first_of_its_name(at, piece))
}

/// The text of a parameter before its first `=`.
fn name_of(piece: &str) -> &str {
    piece.split_once('=').map_or(piece, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prefixes_that_longer_urls_do_not_begin_with_are_refused() {
        let psl = SuffixList::builtin();
        for (text, form) in [
            ("http://c.github.io", "http://c.github.io/"),
            ("HTTP://C.github.io:80/", "http://c.github.io/"),
            ("https://www.example.com/a", "https://www.example.com/a"),
            ("https://www.example.com/a/../b/", "https://www.example.com/b/"),
            ("https://www.example.com/%7Eme/", "https://www.example.com/~me/"),
            ("https://www.example.com/a?b=c", "https://www.example.com/a?b=c"),
            ("https://www.example.com/a?b=%7e&&a", "https://www.example.com/a?b=~&a"),
            ("https://www.example.com?b=/../c", "https://www.example.com/?b=/../c"),
            ("https://www.example.com/a?b?c", "https://www.example.com/a?b?c"),
            ("http://x.com:8080", "http://x.com:8080/"),
        ] {
            assert_eq!(Prefix::parse(text, psl).unwrap().as_str(), form, "{text}");
        }
        let host = "https://www.example.com";
        for end in [
            "/a?", "/d/..", "/d/.", "/p%", "/p%2", "/a#", "/a#b", "?", "/a ", "/%2e", "/%2e%2e", "/a?b=1&", "/a?b=%2",
            "/a?b#", "/a#?b", "/a?b#&c",
        ] {
            assert!(Prefix::parse(&format!("{host}{end}"), psl).is_err(), "{end}");
        }
    }

    fn covers(prefix: &str, url: &str) -> bool {
        let psl = SuffixList::builtin();
        let prefix = Prefix::parse(prefix, psl).unwrap();
        let listed = Prefix::listed(prefix.as_str(), psl).unwrap();
        assert_eq!(listed, prefix);
        let url = LakeUrl::parse(url, psl).unwrap();
        let covers = prefix.covers(url.as_str());
        // Among others it stands for the same.
        let others = ["https://e.com/other", "https://e.com/a?zz=1&zz=2", "https://e.com/p?zz=1"];
        let others = others.iter().filter_map(|other| Prefix::listed(other, psl));
        assert_eq!(Prefixes::new(others.chain([prefix.clone()]).collect()).cover(url.as_str()), covers, "{url}");
        assert!(!covers || url.host() == prefix.host() && url.path_query().starts_with(prefix.path_start()), "{url}");
        covers
    }

    /// Each of ten thousand URLs was compared with each of ten thousand prefixes.
    #[test]
    fn few_of_many_prefixes_are_compared_with_a_url() {
        let psl = SuffixList::builtin();
        let parse = |text: &str| Prefix::listed(text, psl).unwrap();
        let queries = (0..10_000).map(|n| parse(&format!("https://e.com/watch?v={n:05}&list=all")));
        let paths = (0..10_000).map(|n| parse(&format!("https://e.com/user/{n:05}/")));
        let prefixes = Prefixes::new(queries.chain(paths).collect());
        let of_path = &prefixes.queries["https://e.com/watch?"];
        let compared = |query: &str| query.split('&').flat_map(|piece| of_path.beginning(piece)).flatten().count();
        assert_eq!((compared("list=all&v=00007"), compared("list=all&v=x")), (1, 0));
        assert_eq!((prefixes.paths.lengths.len(), of_path.lengths.len()), (1, 1));
        for (url, covered) in [
            ("https://e.com/watch?list=all&v=00007", true),
            ("https://e.com/watch?list=all2&v=00007", true),
            ("https://e.com/watch?list=one&v=00007", false),
            ("https://e.com/watch?v=00007", false),
            ("https://e.com/user/09999/x", true),
            ("https://e.com/user/10000/x", false),
            ("https://e.com/", false),
        ] {
            assert_eq!(prefixes.cover(url), covered, "{url}");
        }
    }

    #[test]
    fn a_query_may_be_spelled_in_any_order() {
        let prefix = "https://e.com/a?b=2";
        for (query, covered) in [
            ("b=2", true),
            ("b=2&a=1", true),
            ("a=1&b=2", true),
            ("b=20&a=1", true),
            ("b=1&b=2", false),
            ("b=2&b=1", true),
            ("b=1", false),
            ("c=2", false),
            ("xb=2", false),
        ] {
            assert_eq!(covers(prefix, &format!("https://e.com/a?{query}")), covered, "{query}");
        }
        assert!(!covers(prefix, "https://e.com/a") && !covers(prefix, "https://e.com/ab?b=2"));
        assert!(covers("https://e.com/a?z=1&b", "https://e.com/a?a=0&bc=7&z=1"));
        assert!(!covers("https://e.com/a?z=1&b", "https://e.com/a?a=0&bc=7&z=10"));
        assert!(covers("https://e.com/a", "https://e.com/a?b=2&a=1"));
    }

    proptest! {
        #[test]
        fn what_begins_so_is_covered(prefix in "[a-c=&]{0,6}[a-c=]", more in "[a-c=&]{0,6}") {
            let url = format!("https://e.com/p?{prefix}");
            prop_assert!(covers(&url, &format!("{url}{more}")), "{}{}", prefix, more);
        }

        #[test]
        fn what_is_covered_begins_so_in_some_spelling(prefix in "[ab=]{1,2}(&[ab=]{1,2}){0,2}", query in "[ab=]{1,2}(&[ab=]{1,2}){0,3}") {
            let psl = SuffixList::builtin();
            let lake = |query: &str| LakeUrl::parse(&format!("https://e.com/p?{query}"), psl).unwrap();
            let wanted = lake(&query);
            let pieces: Vec<&str> = query.split('&').collect();
            let found = orders(&pieces).into_iter().any(|order| {
                let order = order.join("&");
                order.starts_with(&prefix) && lake(&order).as_str() == wanted.as_str()
            });
            prop_assert_eq!(covers(&format!("https://e.com/p?{prefix}"), wanted.as_str()), found);
        }
    }

    fn orders<'a>(pieces: &[&'a str]) -> Vec<Vec<&'a str>> {
        if pieces.is_empty() {
            return vec![Vec::new()];
        }
        let mut out = Vec::new();
        for i in 0..pieces.len() {
            let mut rest = pieces.to_vec();
            let first = rest.remove(i);
            out.extend(orders(&rest).into_iter().map(|order| [vec![first], order].concat()));
        }
        out
    }
}
