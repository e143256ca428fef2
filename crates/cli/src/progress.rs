//! Progress of long work: a bar on a terminal, plain lines otherwise, nothing with `--quiet`.

use crate::output::harmless;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Between two plain lines: often enough to see life, seldom enough for a log.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// One line of progress that changes as the work goes on. Safe to report to from any thread.
pub enum Progress {
    /// `--quiet`.
    Off,
    /// A terminal.
    Bar(ProgressBar),
    /// A file or a pipe.
    Plain {
        /// What is being done.
        label: String,
        /// When the next line is due.
        next: Mutex<Instant>,
    },
}

impl Progress {
    /// Starts a line; `total` is the number of steps where it is known.
    pub fn start(label: &str, total: Option<u64>, quiet: bool) -> Self {
        // Names of datasets and files are in it.
        let label = harmless(label);
        if quiet {
            return Self::Off;
        }
        if !std::io::stderr().is_terminal() {
            return Self::Plain { label: label.into_owned(), next: Mutex::new(Instant::now() + PLAIN_EVERY) };
        }
        let (bar, template) = match total {
            Some(total) => (ProgressBar::new(total), "{prefix} {bar:30} {pos}/{len} {msg} [{elapsed}, {eta} left]"),
            None => (ProgressBar::new_spinner(), "{prefix} {spinner} {msg} [{elapsed}]"),
        };
        // A template that does not parse would show the default bar: still progress.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(label.into_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self::Bar(bar)
    }

    /// Says how far the work is; `message` is only made when it is shown.
    pub fn report(&self, done: u64, message: impl FnOnce() -> String) {
        match self {
            Self::Off => {}
            Self::Bar(bar) => {
                bar.set_position(done);
                bar.set_message(harmless(&message()).into_owned());
            }
            Self::Plain { label, next } => {
                let Ok(mut due) = next.lock() else { return };
                let now = Instant::now();
                if now >= *due {
                    *due = now + PLAIN_EVERY;
                    let _ = writeln!(std::io::stderr(), "{label}: {}", harmless(&message()));
                }
            }
        }
    }
}

/// The line disappears: what the work came to is a result, and results go to stdout.
impl Drop for Progress {
    fn drop(&mut self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
