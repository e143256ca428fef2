//! How long to wait: spacing, crawl-delay, Retry-After, backoff.

use crate::candidate::Answer;
use crate::config::Config;
use crate::host::Host;
use std::time::Duration;
use trawl_model::ErrorClass;

pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// One step of the interval that a host gets on top of the settings: twice as long after a plea to slow down, a twentieth less after
/// any other response, and at least a tenth of a second. It outlives the backoff itself, so that a busy host is not asked at full
/// speed again. By tenths of a second alone, three pages that say 503 whatever the pace slow a host down to five minutes a page,
/// and 3,000 answers later, after five days, it is where it was.
pub(crate) fn slowed_ms(interval: u32, plea: bool, config: &Config) -> u32 {
    if !plea {
        return interval.saturating_sub((interval / 20).max(100));
    }
    let least = millis(config.delay).min(millis(config.slow_cap));
    let doubled = i64::from(interval).saturating_mul(2).max(least).min(millis(config.slow_cap));
    u32::try_from(doubled).unwrap_or(u32::MAX)
}

impl Host {
    /// From the end of a fetch to the next: the setting, what robots.txt asks for up to a cap, what the operator asked for, or
    /// what the host has earned by its pleas.
    pub(crate) fn delay_ms(&self, config: &Config) -> i64 {
        let asked = i64::from(self.crawl_delay_ms).min(millis(config.crawl_delay_cap));
        asked.max(millis(config.delay)).max(i64::from(self.extra_delay_ms)).max(i64::from(self.slowed_ms))
    }
}

/// The `n`-th wait (from 1): doubled each time, half to whole of it by `dice`, so that hosts that failed together do not
/// come back together.
pub(crate) fn backoff_ms(config: &Config, n: u32, dice: u64) -> i64 {
    let base = millis(config.backoff).max(0);
    let doubled = base.saturating_mul(1i64 << n.saturating_sub(1).min(40));
    let whole = doubled.min(millis(config.backoff_cap));
    let share = i64::try_from(dice % 1024).unwrap_or(0);
    whole / 2 + (whole / 2 / 1024).saturating_mul(share) + (whole / 2 % 1024) * share / 1024
}

/// The `n`-th wait (from 1) after trouble of this machine's own: from a second up to a minute.
pub(crate) fn trouble_ms(n: u32) -> i64 {
    (1_000_i64 << n.saturating_sub(1).min(6)).min(60_000)
}

/// Whether an answer is a plea to slow down.
pub(crate) fn is_plea(answer: Answer) -> bool {
    matches!(answer, Answer::Response { status: 429 | 503, .. })
}

/// Whether a URL with this answer is worth another try.
pub(crate) fn is_passing(answer: Answer) -> bool {
    use ErrorClass::{
        BodyTimeout, DeadHost, HeaderTimeout, LocalResource, ProtocolError, Reset, RobotsUnavailable, TlsFailure,
    };
    match answer {
        // 52x is what a front end says of a server behind it.
        Answer::Response { status, cut, .. } => cut || matches!(status, 408 | 425 | 429 | 500 | 502..=504 | 520..=530),
        Answer::Failed(class) => {
            is_absence(answer)
                || matches!(
                    class,
                    BodyTimeout
                        | DeadHost
                        | HeaderTimeout
                        | LocalResource
                        | ProtocolError
                        | Reset
                        | RobotsUnavailable
                        | TlsFailure
                )
        }
    }
}

/// Whether an answer means that no server is there.
pub(crate) fn is_absence(answer: Answer) -> bool {
    use ErrorClass::{ConnectRefused, ConnectTimeout, DnsFailure, DnsRefused, DnsServfail, DnsTimeout, NoRoute};
    matches!(
        answer,
        Answer::Failed(ConnectRefused | ConnectTimeout | DnsFailure | DnsRefused | DnsServfail | DnsTimeout | NoRoute)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_answers_again_gets_its_pace_back() {
        let config = Config::default();
        let mut interval = (0..20).fold(0, |interval, _| slowed_ms(interval, true, &config));
        assert_eq!(interval, 300_000);
        let (mut answers, mut waited_ms) = (0, 0);
        while interval > 0 {
            waited_ms += interval;
            interval = slowed_ms(interval, false, &config);
            answers += 1;
        }
        assert!(answers < 150 && waited_ms < 2 * 3_600_000, "{answers} answers, {waited_ms} ms");
        assert_eq!(slowed_ms(1_000, false, &config), 900, "slowly, where it is short");
    }

    #[test]
    fn waits_double_up_to_a_cap_and_vary() {
        let config = Config::default();
        for dice in [0, 1, 511, 1023, u64::MAX] {
            assert!((30_000..=60_000).contains(&backoff_ms(&config, 1, dice)));
            assert!((60_000..=120_000).contains(&backoff_ms(&config, 2, dice)));
            assert!((43_200_000..=86_400_000).contains(&backoff_ms(&config, 99, dice)));
        }
        assert!(backoff_ms(&config, 1, 0) < backoff_ms(&config, 1, 1023));
        let none = Config { backoff: Duration::ZERO, ..config };
        assert_eq!(backoff_ms(&none, 5, 77), 0);
    }
}
