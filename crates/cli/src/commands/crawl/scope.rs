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
#[command(next_help_heading = "Links")]
pub struct ScopeArgs {
    /// Which links to follow
    #[arg(long, value_enum, default_value_t = ScopeName::Domain)]
    scope: ScopeName,

    /// Follow links only into the directories of the seeds and below, like wget -np
    #[arg(long)]
    no_parent: bool,

    /// Follow only links whose URL matches this regular expression; may be repeated
    #[arg(long, value_name = "REGEX")]
    include: Vec<Regex>,

    /// Follow no link whose URL matches this regular expression; may be repeated
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<Regex>,

    /// Follow only links below the SURT prefixes in this file, one per line; URLs and host names work too. A line that begins with
    /// - excludes what is below it
    #[arg(long, value_name = "FILE")]
    surts: Option<PathBuf>,

    /// Fetch only the domains of shard I of N, counted from 0; each domain is in exactly one shard
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,

    /// Also read sitemaps, those that robots.txt names and others that are found; their pages count as one link away
    #[arg(long)]
    sitemaps: bool,

    /// Stop after about this many body bytes; fetches under way are finished
    #[arg(long, value_parser = bytes, value_name = "SIZE", help_heading = "Politeness and amounts")]
    max_bytes: Option<u64>,

    /// Fetch about this many body bytes from one host at most
    #[arg(long, value_parser = bytes, value_name = "SIZE", help_heading = "Politeness and amounts")]
    max_bytes_per_host: Option<u64>,

    /// Stop cleanly after this time; --resume continues for as long again
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Politeness and amounts")]
    max_time: Option<Duration>,

    /// Spend at most this much time on fetches from one host; waits between them do not count
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Politeness and amounts")]
    max_time_per_host: Option<Duration>,
}

impl ScopeArgs {
    /// These flags over `config`, whose depth and `embeds` are set.
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
        for (flag, given) in [("--sitemaps", self.sitemaps), ("--embeds", config.embeds)] {
            if given && config.frontier.max_depth == 0 {
                bail!("{flag} follows links, which --depth 0 does not: say --depth 1 or more");
            }
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
