//! `hostdb.HostDatum`: the state of a host.

use crate::class::NutchClasses;
use trawl_hadoop::{Decoded, Decoder, Encode, MapWritable, Text};

/// The state of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostDatum<'a> {
    /// Importance.
    pub score: f32,
    /// Milliseconds since 1970 when its name was last resolved.
    pub last_check: i64,
    /// Its home page, or nothing.
    pub homepage_url: Text<'a>,
    /// Times its name did not resolve.
    pub dns_failures: i64,
    /// Times it could not be reached.
    pub connection_failures: i64,
    /// URLs by state: unfetched.
    pub unfetched: i64,
    /// Fetched.
    pub fetched: i64,
    /// Not modified.
    pub not_modified: i64,
    /// Redirecting for now.
    pub redir_temp: i64,
    /// Redirecting for good.
    pub redir_perm: i64,
    /// Gone.
    pub gone: i64,
    /// Anything else.
    pub metadata: MapWritable<'a>,
}

impl<'a> HostDatum<'a> {
    /// Reads the one form there is.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        Ok(HostDatum {
            score: d.f32("score")?,
            last_check: d.i64("last check")?,
            homepage_url: d.text("home page")?,
            dns_failures: d.i64("DNS failures")?,
            connection_failures: d.i64("connection failures")?,
            unfetched: d.i64("unfetched")?,
            fetched: d.i64("fetched")?,
            not_modified: d.i64("not modified")?,
            redir_temp: d.i64("temporary redirects")?,
            redir_perm: d.i64("permanent redirects")?,
            gone: d.i64("gone")?,
            metadata: MapWritable::decode(d, &NutchClasses)?,
        })
    }

    /// Writes the one form there is.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_f32(self.score);
        out.put_i64(self.last_check);
        out.put_text(self.homepage_url.as_bytes());
        for count in [
            self.dns_failures,
            self.connection_failures,
            self.unfetched,
            self.fetched,
            self.not_modified,
            self.redir_temp,
            self.redir_perm,
            self.gone,
        ] {
            out.put_i64(count);
        }
        self.metadata.encode(out);
    }
}
