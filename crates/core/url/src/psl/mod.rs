//! The Public Suffix List: which part of a host name someone can register.
//!
//! The list is data, not code: its text is compiled in, parsed once on first use, and kept, so that a lake can store the very
//! list its domains were computed with and later read it back (`SuffixList::parse`). Lookup walks the labels from the right, one
//! probe of a flat hash table per label, and stops at the first suffix no rule continues.

mod table;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use crate::host;
use table::{EXCEPTION, RULE, Table, WILDCARD};

static BUILTIN_TEXT: &str = include_str!("../../data/public_suffix_list.dat");

/// A list above this size is refused before it is read: the real one has 0.3 MB.
pub const MAX_LIST_LEN: usize = 16 << 20;

/// Why a text is not a suffix list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SuffixListError {
    /// A line that is neither a rule nor a comment.
    #[error("suffix list line {line}: expected {expected}, found \"{found}\"")]
    Rule {
        /// The line, counted from 1.
        line: usize,
        /// What a rule may look like there.
        expected: &'static str,
        /// The rule as written, cut to 80 characters.
        found: String,
    },
    /// No rule at all.
    #[error("suffix list: expected at least one rule, found none")]
    Empty,
    /// Above [`MAX_LIST_LEN`].
    #[error("suffix list: expected at most {limit} bytes, found {len}")]
    TooLong {
        /// Bytes in the text.
        len: usize,
        /// The limit.
        limit: usize,
    },
}

/// Which of the list's two sections count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sections {
    /// Registries and companies that sell names below their own (`co.uk`, `github.io`). What Trawl uses everywhere.
    #[default]
    IcannAndPrivate,
    /// Registries only (`co.uk`).
    Icann,
}

/// A parsed Public Suffix List with its identity.
pub struct SuffixList {
    text: Cow<'static, str>,
    snapshot: String,
    hash: u64,
    table: Table,
}

impl std::fmt::Debug for SuffixList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SuffixList")
            .field("snapshot", &self.snapshot)
            .field("hash", &format_args!("{:016x}", self.hash))
            .field("rules", &self.table.rules())
            .finish()
    }
}

impl SuffixList {
    /// The list compiled into this build.
    pub fn builtin() -> &'static SuffixList {
        static LIST: OnceLock<SuffixList> = OnceLock::new();
        LIST.get_or_init(|| {
            let (table, _) = read(BUILTIN_TEXT, Sections::IcannAndPrivate);
            SuffixList::assemble(Cow::Borrowed(BUILTIN_TEXT), Sections::IcannAndPrivate, table)
        })
    }

    /// Reads a list in the format of publicsuffix.org, both sections.
    pub fn parse(text: &str) -> Result<SuffixList, SuffixListError> {
        SuffixList::parse_sections(text, Sections::IcannAndPrivate)
    }

    /// Reads a list, keeping only the given sections. A text without section marks counts as ICANN's.
    pub fn parse_sections(text: &str, sections: Sections) -> Result<SuffixList, SuffixListError> {
        if text.len() > MAX_LIST_LEN {
            return Err(SuffixListError::TooLong { len: text.len(), limit: MAX_LIST_LEN });
        }
        let (table, fault) = read(text, sections);
        if let Some(fault) = fault {
            return Err(fault);
        }
        if table.rules() == 0 {
            return Err(SuffixListError::Empty);
        }
        Ok(SuffixList::assemble(Cow::Owned(text.to_owned()), sections, table))
    }

    fn assemble(text: Cow<'static, str>, sections: Sections, table: Table) -> SuffixList {
        let hash = xxh3_64(text.as_bytes()) ^ u64::from(sections == Sections::Icann);
        let snapshot = match header(&text, "VERSION:") {
            Some(version) => match header(&text, "COMMIT:") {
                Some(commit) => format!("{version} {commit}"),
                None => version.to_owned(),
            },
            None => format!("unversioned {hash:016x}"),
        };
        SuffixList { text, snapshot, hash, table }
    }

    /// The registrable domain of a host: its public suffix plus one label.
    ///
    /// IP literals, bare suffixes and names with empty labels are their own domain; under a top-level name the list does not
    /// know, the last two labels count. The host is expected in punycode; ASCII case does not matter, a trailing dot is cut.
    ///
    /// ```
    /// let psl = trawl_url::SuffixList::builtin();
    /// assert_eq!(psl.registrable("shop.example.co.uk"), "example.co.uk");
    /// assert_eq!(psl.registrable("192.168.0.1"), "192.168.0.1");
    /// ```
    pub fn registrable<'a>(&self, host: &'a str) -> &'a str {
        let host = host.strip_suffix('.').unwrap_or(host);
        let bytes = host.as_bytes();
        let mut upper = false;
        let mut previous = b'.';
        for &byte in bytes {
            if byte == b'.' && previous == b'.' {
                return host;
            }
            upper |= byte.is_ascii_uppercase();
            previous = byte;
        }
        if previous == b'.' || host::is_ip_literal(host) {
            return host;
        }
        let start =
            if upper { self.domain_start(host.to_ascii_lowercase().as_bytes()) } else { self.domain_start(bytes) };
        host.get(start..).unwrap_or(host)
    }

    /// Where the registrable domain begins in a lower-case name without empty labels.
    fn domain_start(&self, name: &[u8]) -> usize {
        let mut start = label_start(name, name.len());
        let mut parent = start;
        let mut suffix = start; // the default rule: an unknown top-level name is a suffix
        let mut wildcard = false;
        loop {
            let flags = self.table.find(name.get(start..).unwrap_or_default());
            if flags & EXCEPTION != 0 {
                suffix = parent;
                break;
            }
            if flags & RULE != 0 || wildcard {
                suffix = start;
            }
            if start == 0 || flags == 0 {
                break;
            }
            wildcard = flags & WILDCARD != 0;
            parent = start;
            start = label_start(name, start - 1);
        }
        if suffix == 0 { 0 } else { label_start(name, suffix - 1) }
    }

    /// Whether the list has a rule for a top-level name or for a name below it. ASCII case does not matter.
    ///
    /// ```
    /// let psl = trawl_url::SuffixList::builtin();
    /// assert!(psl.has_top_level("com") && psl.has_top_level("CK") && !psl.has_top_level("www"));
    /// ```
    pub fn has_top_level(&self, label: &str) -> bool {
        !label.contains('.') && self.table.find(label.to_ascii_lowercase().as_bytes()) != 0
    }

    /// The date and commit the list carries in its header, or its hash when it has none.
    pub fn snapshot(&self) -> &str {
        &self.snapshot
    }

    /// The list's identity: two lists with this number equal give equal domains.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The text this list was read from, for storing beside what was computed with it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many rules are in force.
    pub fn rules(&self) -> usize {
        self.table.rules()
    }
}

/// Start of the label that ends at `end`.
fn label_start(name: &[u8], end: usize) -> usize {
    memchr::memrchr(b'.', name.get(..end).unwrap_or_default()).map_or(0, |dot| dot + 1)
}

/// The value of a `// NAME: value` line among the first lines.
fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().take(30).find_map(|line| line.strip_prefix("//")?.trim().strip_prefix(name)).map(str::trim)
}

/// Reads every rule; keeps the first fault and goes on, so that the built-in list needs no way to fail.
fn read(text: &str, sections: Sections) -> (Table, Option<SuffixListError>) {
    let mut table = Table::default();
    let mut fault = None;
    let mut private = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(comment) = line.trim_start().strip_prefix("//") {
            match comment.trim() {
                "===BEGIN PRIVATE DOMAINS===" => private = true,
                "===END PRIVATE DOMAINS===" => private = false,
                _ => {}
            }
            continue;
        }
        let Some(rule) = line.split_whitespace().next() else { continue };
        if private && sections == Sections::Icann {
            continue;
        }
        if let Err(expected) = add(&mut table, rule.trim_start_matches('\u{feff}')) {
            let found = rule.chars().take(80).collect();
            fault = fault.or(Some(SuffixListError::Rule { line: index + 1, expected, found }));
        }
    }
    (table, fault)
}

fn add(table: &mut Table, rule: &str) -> Result<(), &'static str> {
    let (flag, name) = if let Some(name) = rule.strip_prefix('!') {
        (EXCEPTION, name)
    } else if let Some(name) = rule.strip_prefix("*.") {
        (WILDCARD, name)
    } else if rule == "*" {
        return Ok(()); // the default rule is always in force
    } else {
        (RULE, rule)
    };
    if name.split('.').any(str::is_empty) {
        return Err("a name without empty labels");
    }
    if flag == EXCEPTION && !name.contains('.') {
        return Err("an exception of at least two labels");
    }
    let name = host::punycode(name.as_bytes()).map_err(|_| "a host name after '!' or '*.'")?;
    table.add(&name, flag);
    Ok(())
}
