//! Edits of files, one by one or several at the same time.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use fat_edit::{EditableFile, NamedImages};

use super::job::Job;
use super::loose::{Databases, LooseFiles};
use super::new_images::NewImages;
use super::options::{Options, Within};
use super::report::Work;
use super::reporter::{FullReport, Reporter};
use super::wishes::Wishes;
use super::words::unclear;
use crate::inputs::{Input, Inputs};
use crate::records::{Listed, Lists};
use device_select::Rule;
use tool_kit::Outcome;
use tool_kit::failure::Failure;
use tool_kit::parallel::{Shares, Threads, in_order_by};
use tool_kit::positioned::Positioned;
use tool_kit::progress::Count;
use tool_kit::report::{self as messages, Message};
use tool_kit::store::Keep;

/// A file to be edited, for who decides how.
pub(crate) struct Subject<'a> {
    /// `false` for a file of a directory that is named, and may hold nothing for the command.
    pub(crate) is_named: bool,
    pub(crate) contents: &'a EditableFile,
    pub(crate) file: Positioned<'a>,
    /// The options of a walk through it, which may hold what is left.
    pub(crate) walk: &'a fat_object::Options,
    /// The threads for it.
    pub(crate) threads: Threads,
}

impl<'a> Subject<'a> {
    /// Returns the images and containers by the names of a listing, in the containers that are meant.
    pub(crate) fn named(&self, within: &'a Within) -> Result<NamedImages<'a>, String> {
        let named = self.contents.named(self.file, self.walk, &within.steps);
        named.map_err(|error| unclear(&error, ""))
    }
}

/// Returns the wishes for a file.
pub(crate) type Decide<'d> = dyn Fn(&Subject<'_>) -> Result<Wishes, Failure> + Sync + 'd;

/// The common settings of all files.
pub(crate) struct Editor<'a> {
    pub(crate) files: &'a [PathBuf],
    pub(crate) options: &'a Options,
    pub(crate) images: &'a NewImages,
    pub(crate) work: Work,
    pub(crate) decide: &'a Decide<'a>,
    /// The images that are needed of members of packages.
    pub(crate) keep: Keep<'a>,
    /// Sums are taken by this rule, and files that are refused stay.
    pub(crate) shrinks: Option<&'a Rule>,
    /// Files of kernel databases and loose images for other GPUs are deleted.
    pub(crate) databases: Option<Databases<'a>>,
}

impl<'a> Editor<'a> {
    pub(crate) fn new(
        files: &'a [PathBuf],
        options: &'a Options,
        work: Work,
        decide: &'a Decide<'a>,
    ) -> Self {
        Editor {
            files,
            options,
            images: const { &NewImages::NONE },
            work,
            decide,
            keep: Keep::All,
            shrinks: None,
            databases: None,
        }
    }

    /// Edits each file by itself, and reports all of them.
    pub(crate) fn run(self) -> io::Result<Outcome> {
        let mut reporter = FullReport::new(self.options, self.work);
        self.run_with(&mut reporter)
    }

    /// Edits each file by itself, several at the same time. The reporter gets the results in the order of the files; those of
    /// files that are deleted come last.
    pub(crate) fn run_with(self, reporter: &mut dyn Reporter) -> io::Result<Outcome> {
        let inputs = Inputs::find(self.files);
        let files = inputs.files();
        if let Some(fault) = self.options.output.fault(self.files) {
            tool_kit::arguments::usage(fault);
        }
        let directory = inputs.first_directory();
        if self.options.output.output.is_some()
            && let Some(directory) = directory
        {
            let advice = if self.shrinks.is_some() { "a file or package" } else { "--in-place" };
            messages::error(&format_args!("{directory}: Is a directory; expected {advice}"));
            return Ok(Outcome::Faults);
        }
        if inputs.have_faults() {
            reporter.fail();
        }
        reporter.start(&inputs);
        let lists = Mutex::new(Lists::dropping_signatures(self.options.host.drop_signature));
        let lock = || lists.lock().unwrap_or_else(PoisonError::into_inner);
        let is_written = self.options.output.in_place && !self.options.output.dry_run;
        if self.options.output.in_place {
            lock().find(files, is_written);
        }
        let limits = &self.options.limits;
        let names = |file: &Input| Listed::new(&lists).distributions(file);
        let loose = match &self.databases {
            Some(databases) => databases.find(&inputs, limits, &names)?,
            None => LooseFiles::default(),
        };
        loose.left.iter().for_each(|place| reporter.leave(place));
        loose.notes.iter().for_each(|note| reporter.say(&Message::Note(note.clone())));
        for fault in &loose.faults {
            reporter.say(&Message::Error(fault.clone()));
            reporter.fail();
        }
        let at_once = limits.threads.for_files(files.iter().map(Input::path));
        let shares = Shares::new(limits.held_of(u64::MAX), limits.threads, at_once);
        let edit =
            |file: &Input| shares.run(|share| Job::new(&self, (&lists, &loose), share).edit(file));
        let mut progress = Count::start(self.work.doing(), files.iter().map(Input::name));
        let mut going = Vec::new();
        in_order_by(at_once.0, files, Input::identity, edit, |file, edited| {
            progress.pass(|| match edited {
                Some(edited) => reporter.take(file, edited),
                None => {
                    going.push(file);
                    Ok(())
                }
            })
        })?;
        drop(progress);
        for file in going {
            if reporter.outcome() == Outcome::Faults {
                let text = "no file was deleted, as others could not be edited";
                reporter.say(&Message::Error(text.to_owned()));
                break;
            }
            reporter.take(file, Job::new(&self, (&lists, &loose), shares.all()).delete(file))?;
        }
        if reporter.outcome() == Outcome::Clean
            && let Some(note) = loose.note(&inputs, limits.max_input)
        {
            reporter.say(&Message::Note(note));
        }
        let said = lock().finish(is_written);
        for message in said {
            if matches!(message, Message::Error(_)) {
                reporter.fail();
            }
            reporter.say(&message);
        }
        reporter.end(directory.is_some())
    }
}
