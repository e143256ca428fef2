//! Made-up URLs: a number gives the URL, its host by Zipf's law.

use trawl_frontier::{Candidate, Identity};
use trawl_url::WebUrl;

pub struct Workload {
    pub urls: u64,
    hosts: f64,
}

pub fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Workload {
    pub fn new(urls: u64, hosts: u64) -> Self {
        Self { urls, hosts: hosts as f64 }
    }

    /// The host of the n-th URL: the k-th host has about 1/k of the first one's.
    pub fn host(&self, n: u64) -> u64 {
        let u = (mix(n) >> 11) as f64 / (1u64 << 53) as f64;
        (self.hosts.powf(u) as u64).saturating_sub(1)
    }

    pub fn url(&self, n: u64) -> String {
        format!("http://host-{}.example.org/section-{}/page-{n:x}.html", self.host(n), mix(n) % 40)
    }

    pub fn candidate(&self, n: u64) -> Candidate {
        let url = WebUrl::parse(&self.url(n)).expect("a URL");
        Candidate::seed(Identity::Key, url, None)
    }
}
