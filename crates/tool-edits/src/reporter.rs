//! The things said about files that are edited.

use std::io;

use super::loose::LeftPlace;
use super::options::Options;
use super::report::{self, About, FileRow, Work};
use super::words::left_alone;
use tool_inputs::inputs::{Input, Inputs};
use tool_kit::Outcome;
use tool_kit::document;
use tool_kit::failure::Failure;
use tool_kit::finding::Finding;
use tool_kit::folded::Folded;
use tool_kit::format::Format;
use tool_kit::report::{self as messages, Message};

/// Takes the results of an edit one by one, in the order of the files, and says what is to be said about them.
pub trait Reporter {
    /// Gets all files before the first is edited.
    fn start(&mut self, _: &Inputs) {}

    /// Takes the rows of a file that was edited, or of a package and its members, or the reason why it was not.
    ///
    /// # Errors
    ///
    /// An error ends the command at once: standard output was closed early.
    fn take(&mut self, file: &Input, edited: Result<Vec<FileRow>, Failure>) -> io::Result<()>;

    /// Takes a place whose loose images have nothing for the targets of the command.
    fn leave(&mut self, _: &LeftPlace) {}

    /// Takes a message that is not about one file.
    fn say(&mut self, message: &Message) {
        message.print();
    }

    /// Notes that something failed, and was said.
    fn fail(&mut self);

    /// Returns whether something failed by now, and was said.
    fn has_failed(&self) -> bool;

    /// Returns whether all is well by now. If not, no file is deleted.
    fn outcome(&self) -> Outcome {
        if self.has_failed() { Outcome::Faults } else { Outcome::Clean }
    }

    /// Ends the report, after all files and lists are written. Some files may have been found in directories.
    ///
    /// # Errors
    ///
    /// Standard output was closed early.
    fn end(&mut self, _has_directory: bool) -> io::Result<Outcome> {
        Ok(self.outcome())
    }
}

/// Messages for each file, and tables or JSON.
pub(crate) struct FullReport<'a> {
    options: &'a Options,
    work: Work,
    outcome: Outcome,
    rows: Vec<FileRow>,
    /// Notes and warnings about files.
    notes: Folded,
    /// Errors, for documents.
    findings: Vec<Finding>,
    /// Files with code for other GPUs than those of the command.
    left: Vec<String>,
}

impl<'a> FullReport<'a> {
    pub(crate) fn new(options: &'a Options, work: Work) -> Self {
        let (outcome, rows, left) = (Outcome::Clean, Vec::new(), Vec::new());
        let (notes, findings) = (Folded::default(), Vec::new());
        FullReport { options, work, outcome, rows, notes, findings, left }
    }
}

impl Reporter for FullReport<'_> {
    fn take(&mut self, file: &Input, edited: Result<Vec<FileRow>, Failure>) -> io::Result<()> {
        let name = file.name();
        match edited {
            Ok(rows) => {
                for row in &rows {
                    let is_named = file.is_named() && row.about == About::File;
                    row.messages(self.work, is_named, &mut self.notes);
                }
                self.rows.extend(rows);
            }
            Err(Failure::NoCode) if !file.is_named() => {}
            Err(Failure::NotConcerned(_)) if !file.is_named() => self.left.push(name.to_owned()),
            Err(failure) => {
                self.findings.extend(failure.findings(name));
                failure.print(name)?;
                self.fail();
            }
        }
        Ok(())
    }

    fn leave(&mut self, LeftPlace { name, images, .. }: &LeftPlace) {
        let advice = "--allow-missing --allow-empty deletes them";
        self.left.push(format!("{name} ({images} loose images; {advice})"));
    }

    fn fail(&mut self) {
        self.outcome = Outcome::Faults;
    }

    fn has_failed(&self) -> bool {
        self.outcome == Outcome::Faults
    }

    fn outcome(&self) -> Outcome {
        self.outcome
    }

    fn end(&mut self, has_directory: bool) -> io::Result<Outcome> {
        self.notes.print();
        let (rows, left, output) = (&self.rows, &self.left, &self.options.output);
        if !left.is_empty() {
            let has_packs = left.iter().any(|name| name.ends_with(".kpack"));
            let advice = if has_packs { " (--databases deletes kernel packs)" } else { "" };
            messages::note(&format_args!("{}{advice}", left_alone(left)));
        }
        if has_directory && rows.is_empty() && self.outcome == Outcome::Clean {
            messages::error(&"no file with device code to edit");
            self.outcome = Outcome::Faults;
        }
        let format = output.format.get();
        if format != Format::Text {
            let findings = std::mem::take(&mut self.findings);
            return document::print_with(format, self.work.shape(), rows, findings, self.outcome);
        }
        if output.is_stdout() {
            // The new file is there.
        } else if has_directory || rows.iter().any(|row| row.about != About::File) {
            report::print_files(rows)?;
            report::print_distributions(rows)?;
            if self.work == Work::Compress {
                report::print_saved(rows, false)?;
            }
        } else {
            report::print(rows, self.work)?;
            if self.work == Work::Compress {
                report::print_saved(rows, true)?;
            }
        }
        Ok(self.outcome)
    }
}

/// The size that files have, or would have, without any message but errors, if these are wanted.
#[derive(Debug, Default)]
pub struct SizeReport {
    /// Bytes of all files; `None` if they are too many for a number.
    pub size: Option<u64>,
    has_failed: bool,
    says_errors: bool,
}

impl SizeReport {
    /// Returns the report of no file.
    pub fn new() -> Self {
        SizeReport { size: Some(0), has_failed: false, says_errors: false }
    }

    /// Returns the report of no file, which says why a file fails.
    pub fn saying_errors() -> Self {
        SizeReport { says_errors: true, ..SizeReport::new() }
    }
}

impl Reporter for SizeReport {
    fn take(&mut self, file: &Input, edited: Result<Vec<FileRow>, Failure>) -> io::Result<()> {
        match edited {
            Ok(rows) => {
                let wholes = rows.iter().filter(|row| !row.about.is_part());
                for row in wholes {
                    self.size = self.size.and_then(|size| size.checked_add(row.size_after));
                }
            }
            Err(Failure::NoCode | Failure::NotConcerned(_)) if !file.is_named() => {}
            Err(failure) => {
                self.has_failed = true;
                if self.says_errors {
                    failure.print(file.name())?;
                }
            }
        }
        Ok(())
    }

    fn say(&mut self, message: &Message) {
        if self.says_errors && matches!(message, Message::Error(_)) {
            message.print();
        }
    }

    fn fail(&mut self) {
        self.has_failed = true;
    }

    fn has_failed(&self) -> bool {
        self.has_failed
    }
}
