//! Flags about which links are followed, and how much may be spent.

use crate::units::{bytes, duration};
use anyhow::{Context, bail};
use clap::ValueEnum;
use regex_lite::Regex;
use std::path::PathBuf;
use std::time::Duration;
use trawl_engine::{Budget, Config, Scope, Shard, Surts};

/// Which links are followed.
#[derive(Debug, clap::Args)]
pub struct ScopeArgs {
    /// Which links to follow
    #[arg(long, value_enum, default_value_t = ScopeName::Domain)]
    scope: ScopeName,

    /// Follow links only into the directories of the seeds and below, as wget -np
    #[arg(long)]
    no_parent: bool,

    /// Follow only links whose URL this regular expression matches; may be repeated
    #[arg(long, value_name = "REGEX")]
    include: Vec<Regex>,

    /// Follow no link whose URL this regular expression matches; may be repeated
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<Regex>,

    /// Follow only links below the SURT prefixes of this file: one a line, - in front leaves out; also URLs and host names
    #[arg(long, value_name = "FILE")]
    surts: Option<PathBuf>,

    /// Fetch only domains of shard I of N, from 0: each domain is in one
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,

    /// Read the sitemaps that robots.txt files name, and those met otherwise; the pages they list are one link away
    #[arg(long)]
    sitemaps: bool,

    /// Body bytes at most, about: what is under way is finished
    #[arg(long, value_parser = bytes, value_name = "SIZE")]
    max_bytes: Option<u64>,

    /// Body bytes of one host at most, about
    #[arg(long, value_parser = bytes, value_name = "SIZE")]
    max_bytes_per_host: Option<u64>,

    /// Stop in order after this time; --resume goes on, for as long again
    #[arg(long, value_parser = duration)]
    max_time: Option<Duration>,

    /// Time that fetches of one host may take together; waits between them do not count
    #[arg(long, value_parser = duration)]
    max_time_per_host: Option<Duration>,
}

impl ScopeArgs {
    /// These flags over `config`, whose depth is set.
    pub fn apply(self, config: &mut Config) -> anyhow::Result<()> {
        config.scope = match self.scope {
            ScopeName::Host => Scope::Host,
            ScopeName::Domain => Scope::Domain,
            ScopeName::Any => Scope::Any,
        };
        config.rules.no_parent = self.no_parent;
        (config.rules.include, config.rules.exclude) = (self.include, self.exclude);
        config.rules.shard = self.shard;
        if let Some(path) = &self.surts {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read --surts {}", path.display()))?;
            let surts = Surts::parse(&text).map_err(|why| anyhow::anyhow!("--surts {}: {why}", path.display()))?;
            config.rules.surts = Some(surts);
        }
        if self.sitemaps && config.frontier.max_depth == 0 {
            bail!("--sitemaps follows links, which --depth 0 does not: say --depth 1 or more");
        }
        config.sitemaps = self.sitemaps;
        config.budget = Budget {
            bytes: self.max_bytes,
            time: self.max_time,
            host_bytes: self.max_bytes_per_host,
            host_time: self.max_time_per_host,
        };
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScopeName {
    /// Links to the same host
    Host,
    /// Links to the same registrable domain
    Domain,
    /// All links
    Any,
}
