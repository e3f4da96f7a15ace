//! Failures of commands.

use std::io;

use crate::finding::Finding;
use crate::{Outcome, report};

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Errors, one line each.
    Complaints(Vec<String>),
    /// The file was read and is refused as it is: errors.
    Refused(Vec<String>),
    /// The file lacks device code: an error if the user named it.
    NoCode,
    /// There is device code, but none that the command is about: errors if the user named the file.
    NotConcerned(Vec<String>),
    /// The file is edited after all others, if at all.
    Postponed,
    /// Standard output was closed early: print nothing.
    ReaderLeft,
}

impl Failure {
    /// Returns the failure to print results.
    pub fn printing(error: &io::Error) -> Self {
        Failure::of(error, |reason| format!("<stdout>: {reason}"))
    }

    /// Returns the refusal of a file, in these words.
    pub fn refused(why: impl Into<String>) -> Self {
        Failure::Refused(vec![why.into()])
    }

    /// Returns an error, in these words.
    fn of(error: &io::Error, words: impl Fn(String) -> String) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::ReaderLeft,
            io::ErrorKind::InvalidData => Failure::refused(words(report::reason(error))),
            _ => Failure::Complaints(vec![words(report::reason(error))]),
        }
    }

    /// Returns the errors; `Err` if nothing is to be printed.
    pub fn complaints(self) -> io::Result<Vec<String>> {
        match self {
            Failure::ReaderLeft => Err(io::ErrorKind::BrokenPipe.into()),
            Failure::NoCode => Ok(vec!["no device code found".to_owned()]),
            Failure::Postponed => Ok(Vec::new()),
            Failure::Complaints(complaints)
            | Failure::Refused(complaints)
            | Failure::NotConcerned(complaints) => Ok(complaints),
        }
    }

    /// Prints the errors about a file; `Err` if nothing is to be printed. A long list of them does not help.
    pub fn print(self, file: &str) -> io::Result<()> {
        const MOST: usize = 5;
        let complaints = self.complaints()?;
        let named = format!("'{file}': ");
        for complaint in complaints.iter().take(MOST) {
            // An output may be the file itself.
            let complaint = complaint.strip_prefix(&*named).unwrap_or(complaint);
            let colon = if of_member(complaint).is_some() { "" } else { ": " };
            report::error(&format_args!("{file}{colon}{complaint}"));
        }
        if let Some(more) = complaints.len().checked_sub(MOST).filter(|&n| n > 0) {
            report::error(&format_args!("{file}: ... and {more} more"));
        }
        Ok(())
    }

    /// Returns the errors about a file as findings.
    pub fn findings(&self, file: &str) -> Vec<Finding> {
        let (code, complaints) = match self {
            Failure::ReaderLeft | Failure::Postponed => return Vec::new(),
            Failure::NoCode => {
                return vec![Finding::error("targets/nothing", file, "no device code found")];
            }
            Failure::Complaints(complaints) => ("file/error", complaints),
            Failure::Refused(complaints) | Failure::NotConcerned(complaints) => {
                ("edit/refused", complaints)
            }
        };
        let finding = |complaint: &String| match of_member(complaint) {
            Some((member, text)) => Finding::error(code, &format!("{file}:{member}"), text),
            None => Finding::error(code, file, &**complaint),
        };
        complaints.iter().map(finding).collect()
    }

    /// Reports each complaint by `say`.
    pub fn report(self, say: impl Fn(&str)) -> io::Result<Outcome> {
        self.complaints()?.iter().for_each(|complaint| say(complaint));
        Ok(Outcome::Faults)
    }
}

/// Returns the path of a member of a package and the text after it, if an error starts with such a path.
fn of_member(complaint: &str) -> Option<(&str, &str)> {
    complaint.strip_prefix(':')?.split_once(": ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_about_members_name_them_as_files() {
        let texts = [":a/lib.so: is signed", "'out.whl': no space left"];
        let failure = Failure::Refused(texts.map(str::to_owned).to_vec());
        let found = failure.findings("x.whl").into_iter().map(|one| (one.file, one.message));
        let expected = [("x.whl:a/lib.so", "is signed"), ("x.whl", "'out.whl': no space left")];
        assert_eq!(
            found.collect::<Vec<_>>(),
            expected.map(|(file, text)| (file.to_owned(), text.to_owned()))
        );
    }
}
