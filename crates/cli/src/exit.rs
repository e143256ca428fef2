//! Exit codes: 0 done, 1 done with findings, 2 failed. A closed pipe is quiet.

use std::io;
use std::process::ExitCode;

/// How a command ended, when it did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Everything asked for is there and sound.
    Done,
    /// The work is done, and something in the input wants attention: nothing found, faults, rejects.
    Findings,
}

impl Status {
    /// `Findings` when there are any.
    pub fn from_findings(any: bool) -> Self {
        if any { Self::Findings } else { Self::Done }
    }
}

/// The code for a result; a failure is printed on stderr.
pub fn code(result: anyhow::Result<Status>) -> ExitCode {
    match result {
        Ok(Status::Done) => ExitCode::SUCCESS,
        Ok(Status::Findings) => ExitCode::from(1),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            crate::output::complain(&in_one_line(&error));
            ExitCode::from(2)
        }
    }
}

/// The error and its causes. A library's message often ends with its cause's: that is not said twice.
pub fn in_one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if line.is_empty() {
            line = text;
        } else if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
    }
    line
}

/// Whether the reader of our output went away, as `head` does: nothing to report.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let broken = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(broken))
}
