//! Robots rules as data, evaluated directly: the judge's own reading of RFC 9309.

/// One line of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// `Allow` if true, else `Disallow`.
    pub allow: bool,
    /// The pattern: a path prefix, with `*` for any run and a trailing `$` for the end.
    pub pattern: String,
}

/// Rules for some user agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Lower-case product tokens, or `*`.
    pub agents: Vec<String>,
    /// The rules, in file order.
    pub rules: Vec<Rule>,
    /// Crawl delay in milliseconds.
    pub crawl_delay_ms: Option<u64>,
}

/// The rules of one robots.txt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Robots {
    /// Groups, in file order.
    pub groups: Vec<Group>,
    /// Sitemaps named in the file.
    pub sitemaps: Vec<String>,
}

impl Robots {
    /// The groups that bind an agent: all that name it, else all for `*`.
    fn binding<'a>(&'a self, agent: &'a str) -> impl Iterator<Item = &'a Group> {
        let named = |name: &str| self.groups.iter().any(|g| g.agents.iter().any(|a| a == name));
        let wanted = if named(agent) { agent } else { "*" };
        self.groups.iter().filter(move |g| g.agents.iter().any(|a| a == wanted))
    }

    /// Whether the agent (a lower-case product token) may fetch a path: the longest matching pattern decides, allow wins ties.
    pub fn allows(&self, agent: &str, path: &str) -> bool {
        let matching = self.binding(agent).flat_map(|g| &g.rules).filter(|r| matches(&r.pattern, path));
        matching.map(|r| (r.pattern.len(), r.allow)).max().is_none_or(|(_, allow)| allow)
    }

    /// The crawl delay that binds the agent, milliseconds; the largest if several groups name one.
    pub fn crawl_delay_ms(&self, agent: &str) -> Option<u64> {
        self.binding(agent).filter_map(|g| g.crawl_delay_ms).max()
    }

    /// The file as plain text.
    pub fn render(&self) -> String {
        use std::fmt::Write;
        let mut out = String::new();
        // Writing to a String cannot fail.
        for group in &self.groups {
            for agent in &group.agents {
                let _ = writeln!(out, "User-agent: {agent}");
            }
            for rule in &group.rules {
                let _ = writeln!(out, "{}: {}", if rule.allow { "Allow" } else { "Disallow" }, rule.pattern);
            }
            if let Some(ms) = group.crawl_delay_ms {
                let _ = writeln!(out, "Crawl-delay: {}.{}", ms / 1000, ms % 1000 / 100);
            }
            out.push('\n');
        }
        for sitemap in &self.sitemaps {
            let _ = writeln!(out, "Sitemap: {sitemap}");
        }
        out
    }
}

/// Whether a robots pattern matches the start of a path. An empty pattern matches nothing.
fn matches(pattern: &str, path: &str) -> bool {
    let (body, anchored) = match pattern.strip_suffix('$') {
        Some(body) => (body, true),
        None => (pattern, false),
    };
    let mut parts = body.split('*');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = path.strip_prefix(first).filter(|_| !pattern.is_empty()) else { return false };
    let mut ends_open = false;
    for part in parts {
        let Some(found) = rest.find(part) else { return false };
        ends_open = part.is_empty();
        rest = rest.get(found + part.len()..).unwrap_or("");
    }
    if !anchored || ends_open || rest.is_empty() {
        return true;
    }
    // An anchored last part may also match later than where it was first found.
    let last = body.rsplit('*').next().unwrap_or("");
    body.contains('*') && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(list: &[(bool, &str)]) -> Robots {
        let rules = list.iter().map(|&(allow, p)| Rule { allow, pattern: p.into() }).collect();
        Robots { groups: vec![Group { agents: vec!["*".into()], rules, crawl_delay_ms: None }], sitemaps: vec![] }
    }

    #[test]
    fn patterns_match_as_rfc_9309_says() {
        let cases = [
            ("/", "/x", true),
            ("", "/x", false),
            ("/fish", "/fish.html", true),
            ("/fish", "/catfish", false),
            ("/fish*", "/fishheads", true),
            ("/*.php", "/a/b.php?x", true),
            ("/*.php$", "/a.php", true),
            ("/*.php$", "/a.php?x", false),
            ("/*.php$", "/a.php/b.php", true),
            ("/a*b$", "/ab/b", true),
            ("/a*b$", "/ab/c", false),
            ("/a$", "/a", true),
            ("/a$", "/ab", false),
            ("/*$", "/anything", true),
            ("/a*c*e", "/abcde", true),
            ("/a*e*c", "/abcde", false),
        ];
        for (pattern, path, expected) in cases {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn the_longest_rule_wins_and_allow_wins_ties() {
        let robots = rules(&[(false, "/a"), (true, "/a/b"), (false, "/a/b/c"), (true, "/t"), (false, "/t")]);
        assert!(!robots.allows("x", "/a/x"));
        assert!(robots.allows("x", "/a/b/x"));
        assert!(!robots.allows("x", "/a/b/c"));
        assert!(robots.allows("x", "/t"));
        assert!(robots.allows("x", "/other"));
    }

    #[test]
    fn groups_of_one_agent_are_merged_and_named_groups_replace_the_rest() {
        let mut robots = rules(&[(false, "/star")]);
        for path in ["/one", "/two"] {
            let rules = vec![Rule { allow: false, pattern: path.into() }];
            robots.groups.push(Group { agents: vec!["bot".into()], rules, crawl_delay_ms: Some(500) });
        }
        assert!(robots.allows("bot", "/star") && !robots.allows("bot", "/one") && !robots.allows("bot", "/two"));
        assert!(!robots.allows("other", "/star") && robots.allows("other", "/one"));
        assert_eq!((robots.crawl_delay_ms("bot"), robots.crawl_delay_ms("other")), (Some(500), None));
        assert!(robots.render().contains("User-agent: bot\nDisallow: /two\nCrawl-delay: 0.5\n"));
    }
}
