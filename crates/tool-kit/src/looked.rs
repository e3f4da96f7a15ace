//! The result of a look into files, directories and packages, and notes about the ones in which nothing was seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::finding::{Finding, Level};
use crate::{Outcome, report, style};

/// The mark that a part of a file or a package was not read, and may hold what is looked for. Copies are one mark.
#[derive(Clone, Debug, Default)]
pub struct Partial(Arc<Marks>);

#[derive(Debug, Default)]
struct Marks {
    is_set: AtomicBool,
    has_failed: AtomicBool,
}

impl Partial {
    /// Sets the mark.
    pub fn set(&self) {
        self.0.is_set.store(true, Ordering::Relaxed);
    }

    /// Sets the mark because reading failed.
    pub fn fail(&self) {
        self.set();
        self.0.has_failed.store(true, Ordering::Relaxed);
    }

    /// Returns whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }

    /// Returns whether reading failed.
    pub fn has_failed(&self) -> bool {
        self.0.has_failed.load(Ordering::Relaxed)
    }
}

/// The result of a look into a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// The file lacks what is looked for, and the user did not name it.
    Nothing,
    /// The same, of a format that is not read and may hold it.
    Unread(String),
    /// All is well.
    Well,
    /// Something is wrong.
    Faults,
}

impl Seen {
    /// Returns faults if there are some.
    pub fn faults(are_there: bool) -> Self {
        if are_there { Seen::Faults } else { Seen::Well }
    }
}

/// Count of what was seen in a directory, or in a package.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    is_seen: bool,
    not_read: usize,
    /// `true` if more was not read than is counted.
    is_partial: bool,
}

impl Tally {
    /// Returns the words about an argument in which nothing was seen.
    fn nothing(self, name: &str, sought: &str, files: &str) -> String {
        let not_read = match self.not_read {
            0 if self.is_partial => "; not all was read".to_owned(),
            0 => String::new(),
            1 => "; 1 was not read".to_owned(),
            n => format!("; {n} were not read"),
        };
        format!("{name}: no {sought} in {files}{not_read}")
    }
}

/// The result of a look into all files.
#[derive(Debug)]
pub struct Looked {
    outcome: Outcome,
    sought: String,
    hidden: &'static str,
    directories: Vec<Tally>,
    /// Texts about the directories and packages in which nothing was seen.
    empty: Vec<String>,
    /// The first files that were not read.
    unread: Vec<String>,
    not_read: usize,
    is_partial: bool,
    /// All files in which something was seen, or that were not read.
    files: Vec<(String, Seen)>,
    findings: Vec<Finding>,
}

impl Looked {
    /// Starts a look for `sought` with this number of directories. Files that are not read may hold `hidden`.
    pub fn new(sought: String, hidden: &'static str, directories: usize) -> Self {
        let directories = vec![Tally::default(); directories];
        let (empty, unread, outcome) = (Vec::new(), Vec::new(), Outcome::Clean);
        let (files, findings) = (Vec::new(), Vec::new());
        let (not_read, is_partial) = (0, false);
        Looked {
            outcome,
            sought,
            hidden,
            directories,
            empty,
            unread,
            not_read,
            is_partial,
            files,
            findings,
        }
    }

    /// Adds what was seen in a file, or a member of a package.
    pub fn add(&mut self, name: &str, seen: Seen, tally: &mut Tally) {
        const MOST: usize = 5;
        match &seen {
            Seen::Nothing => return,
            Seen::Unread(format) => {
                if self.unread.len() < MOST {
                    self.unread.push(format!("{name} ({format})"));
                }
                self.not_read += 1;
                tally.not_read += 1;
            }
            Seen::Well => tally.is_seen = true,
            Seen::Faults => {
                tally.is_seen = true;
                self.set_faulty();
            }
        }
        self.files.push((name.to_owned(), seen));
    }

    /// Adds a file with a part that could not be read, and prints why. A program that collects messages finds it
    /// among the findings. `at_fault` is the file or the member, and the reason.
    pub fn fail(&mut self, name: &str, at_fault: (String, String), tally: &mut Tally) {
        let (at, reason) = at_fault;
        if !report::is_collected() {
            report::error_about(&at, &reason);
        }
        self.findings.push(Finding::error("file/error", &at, reason));
        self.add(name, Seen::Faults, tally);
    }

    /// Adds a finding about a file on a server that was not read as a whole.
    pub fn left_out(&mut self, name: &str, what: String) {
        let finding = Finding::error("network/not-read", name, what).with_level(Level::Note);
        self.findings.push(finding);
    }

    /// Returns all files in which something was seen, or that were not read.
    pub fn files(&self) -> &[(String, Seen)] {
        &self.files
    }

    /// Returns the findings: files that could not be read, and files of a format that is not read. If something
    /// must be there, also directories and packages in which nothing was seen.
    pub fn findings(&self, needs: bool) -> Vec<Finding> {
        let mut findings = self.findings.clone();
        for (name, seen) in &self.files {
            if let Seen::Unread(format) = seen {
                let text = format!("{format} is not read, and may hold {}", self.hidden);
                findings.push(Finding::error("file/unknown", name, text).with_level(Level::Note));
            }
        }
        for text in self.empty.iter().filter(|_| needs) {
            let (name, text) = text.split_once(": ").unwrap_or(("", text));
            findings.push(Finding::error("file/nothing", name, text));
        }
        findings
    }

    /// Ends a file, or a package with this number of members, and adds it to its directory. `named` is its name, if the user named it.
    pub fn end(
        &mut self,
        named: Option<String>,
        members: Option<usize>,
        directory: Option<usize>,
        (mut tally, partial): (Tally, &Partial),
    ) {
        tally.is_partial |= partial.is_set();
        self.is_partial |= tally.is_partial;
        if let Some((name, members)) = named.zip(members).filter(|_| !tally.is_seen) {
            let members = style::count(members, "member");
            self.empty.push(tally.nothing(&name, &self.sought, &members));
        }
        if let Some(directory) = directory.and_then(|at| self.directories.get_mut(at)) {
            directory.is_seen |= tally.is_seen;
            directory.not_read += tally.not_read;
            directory.is_partial |= tally.is_partial;
        }
    }

    /// Ends a directory with this number of files.
    pub fn end_directory(&mut self, directory: usize, name: &str, files: usize) {
        if let Some(tally) = self.directories.get(directory).filter(|tally| !tally.is_seen) {
            self.empty.push(tally.nothing(name, &self.sought, &style::files(files)));
        }
    }

    /// Returns whether a part was not read that may hold what is looked for.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// Returns whether something is wrong.
    pub fn is_faulty(&self) -> bool {
        self.outcome == Outcome::Faults
    }

    /// Adds a fault.
    pub fn set_faulty(&mut self) {
        self.outcome = Outcome::Faults;
    }

    /// Adds faults, if there are some.
    pub fn with_faults(self, are_there: bool) -> Self {
        if are_there { Looked { outcome: Outcome::Faults, ..self } } else { self }
    }

    /// Notes the files that were not read.
    fn report_unread(&self) {
        let mut all = self.unread.join(", ");
        match self.not_read - self.unread.len() {
            0 if self.not_read == 0 => return,
            0 => {}
            more => all.push_str(&format!(" and {more} more")),
        }
        let were = if self.not_read == 1 { "was" } else { "were" };
        let (files, hidden) = (style::files(self.not_read), self.hidden);
        report::note(&format_args!("{files} {were} not read and may hold {hidden}: {all}"));
    }

    /// Returns the outcome, and notes each directory in which nothing was seen.
    pub fn outcome(self) -> Outcome {
        self.report_unread();
        self.empty.iter().for_each(|text| report::note(text));
        self.outcome
    }

    /// Returns the outcome where something must be there: a directory in which nothing was seen is an error.
    pub fn needing(self) -> Outcome {
        self.report_unread();
        self.empty.iter().for_each(|text| report::error(text));
        if self.empty.is_empty() { self.outcome } else { Outcome::Faults }
    }
}
