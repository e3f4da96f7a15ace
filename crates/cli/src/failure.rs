//! Failures of commands.

use std::io;

use crate::{Outcome, report};

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Errors, one line each.
    Complaints(Vec<String>),
    /// Standard output was closed early: print nothing.
    ReaderLeft,
}

impl Failure {
    /// Returns the failure to print results.
    pub(crate) fn printing(error: &io::Error) -> Self {
        Failure::of(error, |reason| format!("<stdout>: {reason}"))
    }

    /// Returns an error, in these words.
    fn of(error: &io::Error, words: impl Fn(String) -> String) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            _ => Failure::Complaints(vec![words(report::reason(error))]),
        }
    }

    /// Reports each complaint by `say`.
    pub(crate) fn report(self, say: impl Fn(&str)) -> io::Result<Outcome> {
        match self {
            Failure::ReaderLeft => Err(io::ErrorKind::BrokenPipe.into()),
            Failure::Complaints(complaints) => {
                complaints.iter().for_each(|complaint| say(complaint));
                Ok(Outcome::Faults)
            }
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::from(&error)
    }
}

impl From<&io::Error> for Failure {
    fn from(error: &io::Error) -> Self {
        Failure::of(error, |reason| reason)
    }
}

impl From<String> for Failure {
    fn from(complaint: String) -> Self {
        Failure::Complaints(vec![complaint])
    }
}

impl From<Vec<String>> for Failure {
    fn from(complaints: Vec<String>) -> Self {
        Failure::Complaints(complaints)
    }
}
