//! `crawl.log`: a line for each capture, in the columns of Heritrix, which operators' tools read.
//!
//! ```text
//! 2026-06-24T01:02:03.456Z   200       5120 http://a.example/x LL http://a.example/ text/html #000 20260624010203333+123 sha1:3I42… - 2t
//! time of the end            status    bytes URL              path referrer         type      thread start+ms          digest  tag  remarks
//! ```
//! A failure has a negative status. The path has an `L` for each link followed from a seed and an `R` for a redirect; the thread
//! is always `#000`, for there are none. Remarks: `2t` for the second try, `warcRevisit`, `lengthTrunc`, `timeTrunc`,
//! `disconnectTrunc`, and our own class of a failure. Each line follows from the capture's row alone, so that the file can be
//! made again.

use crate::error::Error;
use crate::layout::Layout;
use crate::record::SpoolEnd;
use crate::spool::read_all;
use std::fmt::Write as _;
use std::sync::Arc;
use trawl_archive::CaptureRow;
use trawl_io::{File, Fs, Mode};
use trawl_model::{ErrorClass, UnixMillis};

/// `crawl.log`. It is written with every commit, but synced only when the rows go on to another file: what a crash took of the
/// lines since then is made again from the rows.
pub(crate) struct LogFile {
    file: Box<dyn File>,
    /// Where the lines of the present spool begin.
    base: u64,
    end: u64,
    unwritten: String,
}

impl LogFile {
    /// Goes on after the rows of `closed` spools, whose lines end at `base`, and those of the `open` one.
    pub(crate) fn open(
        fs: &Arc<dyn Fs>,
        layout: &Layout,
        base: u64,
        closed: &[SpoolEnd],
        open: Option<&SpoolEnd>,
    ) -> Result<Self, Error> {
        let file = fs.open(&layout.crawl_log(), Mode::OpenOrCreate)?;
        let is_whole = file.len()? >= base;
        let mut log = Self { file, base, end: if is_whole { base } else { 0 }, unwritten: String::new() };
        log.file.set_len(log.end)?;
        if !is_whole {
            closed.iter().try_for_each(|spool| log.read(fs, layout, spool))?;
            log.roll()?;
        }
        open.into_iter().try_for_each(|spool| log.read(fs, layout, spool))?;
        Ok(log)
    }

    fn read(&mut self, fs: &Arc<dyn Fs>, layout: &Layout, spool: &SpoolEnd) -> Result<(), Error> {
        if spool.end == 0 {
            return Ok(());
        }
        read_all(fs, &layout.rows(spool.number), spool.end, &mut |record| {
            self.push(&record.row);
            if self.unwritten.len() > WRITE_BYTES { self.write() } else { Ok(()) }
        })?;
        self.write()
    }

    /// The bytes that are synced: how far a resume may believe the file.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn push(&mut self, row: &CaptureRow) {
        push_line(&mut self.unwritten, row);
    }

    pub(crate) fn write(&mut self) -> Result<(), Error> {
        self.file.write_at(self.end, self.unwritten.as_bytes())?;
        self.end += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }

    /// The rows go on to another spool.
    pub(crate) fn roll(&mut self) -> Result<(), Error> {
        self.write()?;
        self.sync()?;
        self.base = self.end;
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<(), Error> {
        Ok(self.file.sync_data()?)
    }
}

/// Lines that are gathered before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// Adds the line of a capture.
fn push_line(out: &mut String, row: &CaptureRow) {
    let ended = UnixMillis(row.fetched_at);
    let started = UnixMillis(row.started_at.unwrap_or(row.fetched_at));
    let took = row.fetch_duration_ms.unwrap_or(ended.0.saturating_sub(started.0)).max(0);
    let from = row.redirect_of.as_deref().or(row.via.as_deref()).filter(|from| !from.is_empty()).unwrap_or("-");
    let digest = if row.digest.is_empty() { "-".to_owned() } else { format!("sha1:{}", row.digest) };
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{ended} {:>5} {:>10} {} {} {} {} #000 {}{:03}+{took} {digest} - {}",
        status(row),
        row.body_length,
        bare(&row.url),
        path(row),
        bare(from),
        bare(row.content_type.split(';').next().unwrap_or_default().trim()),
        started.digits14(),
        started.0.rem_euclid(1000),
        remarks(row),
    );
}

/// As one column: without white space.
fn bare(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    text.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

fn path(row: &CaptureRow) -> String {
    let links = usize::try_from(row.depth.unwrap_or(0)).unwrap_or(0).min(64);
    let mut path = "L".repeat(links);
    if row.url.ends_with("/robots.txt") && row.robots.is_none() {
        path.push('P');
    } else if row.redirect_of.is_some() {
        path.push('R');
    }
    if path.is_empty() { "-".to_owned() } else { path }
}

/// The status, or Heritrix's code for why there is none.
fn status(row: &CaptureRow) -> i32 {
    let Some(class) = row.error_class.as_deref().and_then(|class| class.parse::<ErrorClass>().ok()) else {
        return row.status;
    };
    use ErrorClass as C;
    match class {
        C::DnsNxdomain | C::DnsTimeout | C::DnsServfail | C::DnsRefused | C::DnsFailure => -1,
        C::ConnectRefused | C::ConnectTimeout | C::NoRoute | C::TlsFailure => -2,
        C::Reset | C::ProtocolError => -3,
        C::HeaderTimeout | C::BodyTimeout => -4,
        C::LocalResource => -5,
        C::BadUrl | C::BadScheme | C::RedirectBad => -7,
        C::DeadHost => -8,
        C::RobotsUnavailable => -61,
        C::RedirectLimit => -4000,
        C::TooLarge | C::PrivateAddress => -5000,
        C::RobotsDenied => -9998,
        C::Cancelled => -5003,
    }
}

fn remarks(row: &CaptureRow) -> String {
    let mut all = Vec::new();
    if let Some(attempt) = row.attempt.filter(|attempt| *attempt > 1) {
        all.push(format!("{attempt}t"));
    }
    if row.record_type.as_deref() == Some("revisit") {
        all.push("warcRevisit".to_owned());
    }
    if let Some(why) = &row.truncated {
        all.push(match why.as_str() {
            "length" => "lengthTrunc".to_owned(),
            "time" => "timeTrunc".to_owned(),
            other => format!("{}Trunc", bare(other)),
        });
    }
    all.extend(row.error_class.clone());
    if all.is_empty() { "-".to_owned() } else { all.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(row: &CaptureRow) -> String {
        let mut out = String::new();
        push_line(&mut out, row);
        out
    }

    #[test]
    fn a_line_has_twelve_columns() {
        let mut row = CaptureRow {
            url: "http://a.example/a b".into(),
            status: 200,
            fetched_at: 1_782_262_923_456,
            started_at: Some(1_782_262_923_333),
            content_type: "text/html; charset=utf-8".into(),
            body_length: 5120,
            digest: "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".into(),
            depth: Some(2),
            attempt: Some(2),
            via: Some("http://a.example/".into()),
            robots: Some("allowed".into()),
            ..CaptureRow::default()
        };
        assert_eq!(
            line(&row),
            "2026-06-24T01:02:03.456Z   200       5120 http://a.example/a_b LL http://a.example/ text/html #000 \
             20260624010203333+123 sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ - 2t\n"
        );
        (row.status, row.error_class, row.digest) = (0, Some("robots_denied".into()), String::new());
        (row.redirect_of, row.via, row.depth) = (Some("http://b.example/".into()), None, None);
        let failed = line(&row);
        let columns: Vec<_> = failed.split_whitespace().collect();
        assert_eq!((columns.len(), columns[1], columns[4], columns[5]), (12, "-9998", "R", "http://b.example/"));
        assert_eq!((columns[9], columns[11]), ("-", "2t,robots_denied"));
    }

    #[test]
    fn every_class_has_a_code() {
        for class in ErrorClass::ALL {
            let row = CaptureRow { error_class: Some(class.to_string()), ..CaptureRow::default() };
            assert!(status(&row) < 0, "{class}");
        }
    }
}
