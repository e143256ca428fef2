//! Settings of a crawl.

use crate::rules::LinkRules;
use crate::scope::Scope;
use crate::seeds::SeedInput;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use trawl_archive::{Creation, Registry};
use trawl_fetch::FetchConfig;

/// Settings of a crawl; `docs/crawling.md` has them in a table with their price.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where everything goes.
    pub out: PathBuf,
    /// What is done about files that are there already.
    pub start: Start,
    /// Where to start.
    pub seeds: Vec<SeedInput>,
    /// How lists of seeds are read.
    pub lists: trawl_lists::Options,
    /// Items of seeds that may not be URLs before the run fails; `None` for any number.
    pub max_rejects: Option<u64>,
    /// The name of the run, part of the names of its files; the start time as 14 digits when empty.
    pub run_id: String,
    /// The formats there are.
    pub registry: Registry,
    /// What captures are archived in: the name of a format of the registry that a crawl can write.
    pub format: String,
    /// How the archive is compressed, by a name of its format; as it usually is otherwise.
    pub compress: Option<String>,
    /// Compression level of the archive; its format's own otherwise.
    pub level: Option<i32>,
    /// Where bodies are remembered by digest over all crawls that share it (`NAME.kvseq`, `NAME.hindex`): one that is
    /// archived already becomes a revisit. `None`: every body is archived.
    pub digests: Option<PathBuf>,
    /// Whether pages that did not change since an earlier capture, which their seed tells of, are asked for and archived whole.
    pub store_unchanged: bool,
    /// First part of the names of archive files.
    pub prefix: String,
    /// Which links are followed.
    pub scope: Scope,
    /// Which of those are refused.
    pub rules: LinkRules,
    /// Whether sitemaps that a robots.txt names are read, and sitemaps that are met otherwise. Pages they list are one link away
    /// from them, and they are as far from a seed as what led to them.
    pub sitemaps: bool,
    /// What may be spent.
    pub budget: Budget,
    /// What is fetched next, when and how politely.
    pub frontier: trawl_frontier::Config,
    /// How it is fetched.
    pub fetch: FetchConfig,
    /// Whether images, scripts and styles of pages are fetched too.
    pub embeds: bool,
    /// Fetches at once.
    pub workers: usize,
    /// Captures fetched and not yet durable, those being fetched included. Each may hold a body in memory.
    pub max_unacked: usize,
    /// The longest a finished capture waits to be made durable.
    pub commit_interval: Duration,
    /// Bytes after which captures are made durable at once.
    pub commit_bytes: u64,
    /// Archive files are closed once they have this many bytes, in formats that have several.
    pub roll_bytes: u64,
    /// Decoded bytes of a body that are digested and searched for links.
    pub decode_bytes: u64,
    /// Links kept of one page; further ones are counted.
    pub max_links: usize,
    /// How long the run still waits once all that is left is in backoff; then that is given up.
    pub wait: Duration,
    /// Open files this process may have: connections, bodies in files and lookups are bounded by it. `None` asks the system.
    pub descriptors: Option<u64>,
    /// How long fetches may go on after a stop was asked for.
    pub grace: Duration,
    /// How often progress is reported.
    pub progress_interval: Duration,
    /// Threads for the network; 0 for one a core. Twice as many jobs of digests, compression and parsing run at once: one a
    /// core leaves a fifth of the machine idle while a job waits for its turn.
    pub threads: usize,
    /// Who runs this, for `warcinfo`.
    pub operator: Option<String>,
    /// Program and version, for `warcinfo` and `run.json`.
    pub software: String,
    /// The arguments of the command, for `run.json`.
    pub arguments: Vec<String>,
    /// The settings of the run by name, kept in `run.json` so that a resume need not be told them again.
    pub settings: BTreeMap<String, Vec<String>>,
}

/// What may be spent. What is under way when a budget is used up is still finished and archived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Budget {
    /// Body bytes of the run.
    pub bytes: Option<u64>,
    /// How long one start of the run may take; then it stops in order and can be resumed.
    pub time: Option<Duration>,
    /// Body bytes of one host.
    pub host_bytes: Option<u64>,
    /// Time that fetches of one host may take together.
    pub host_time: Option<Duration>,
}

/// What is done about files that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// They are left alone and the run is refused.
    New,
    /// The run they belong to goes on.
    Resume,
    /// They are removed.
    Overwrite,
}

impl Config {
    /// A crawl of `seeds` into `out` with every setting at its default.
    pub fn new(out: impl Into<PathBuf>, seeds: Vec<SeedInput>) -> Self {
        Self {
            out: out.into(),
            start: Start::New,
            seeds,
            lists: trawl_lists::Options::crawl(),
            max_rejects: None,
            run_id: String::new(),
            registry: Registry::default(),
            format: "warc".into(),
            compress: None,
            level: None,
            digests: None,
            store_unchanged: false,
            prefix: "trawl".into(),
            scope: Scope::Domain,
            rules: LinkRules::default(),
            sitemaps: false,
            budget: Budget::default(),
            frontier: trawl_frontier::Config::default(),
            fetch: FetchConfig::default(),
            embeds: false,
            workers: 256,
            max_unacked: 512,
            commit_interval: Duration::from_millis(100),
            commit_bytes: 8 << 20,
            roll_bytes: Creation::DEFAULT_ROLL_BYTES,
            decode_bytes: 64 << 20,
            max_links: 200_000,
            wait: Duration::from_secs(900),
            descriptors: None,
            grace: Duration::from_secs(15),
            progress_interval: Duration::from_secs(1),
            threads: 0,
            operator: None,
            software: concat!("trawl/", env!("CARGO_PKG_VERSION")).into(),
            arguments: Vec::new(),
            settings: BTreeMap::new(),
        }
    }
}
